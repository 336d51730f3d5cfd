"""A list of codes and labels of one feature, as offices keep them in spreadsheets.

The headers of SPSS, Stata and SAS files as codebooks; no row is read.

Which codebook a file is, and the schema that it gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.errors import DataError, SchemaError
from pegsynth.schema.codebooks import json_books
from pegsynth.schema.codebooks.ddi import read_ddi
from pegsynth.schema.codebooks.described import Described, Type, feature_of, number_of
from pegsynth.schema.codebooks.yaml_subset import read_yaml
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.hierarchy import listed_codes
from pegsynth.schema.schema import Schema
from pegsynth.tables.file_kinds import KINDS, table_format

if TYPE_CHECKING:
    import pyarrow as pa

    from pegsynth.tables.foreign import Described as Header


def read_list(text: str, feature: str) -> Described:
    """Return the feature whose codes stand in the first column and labels in the second.

    The first line may name the columns. Fields are separated by commas, semicolons or tabs,
    whichever the first line has most of.
    """
    lines = [line for _, line in listed_codes(text)]
    if not lines or any(len(line) > 2 for line in lines):
        raise SchemaError("a list of codes has two columns: the code, and what it means")
    codes = tuple((line[0], line[1] if len(line) > 1 else "") for line in lines)
    if len({code for code, _ in codes}) < len(codes):
        raise SchemaError("a code is listed twice; list each once")
    return Described(feature, codes=codes)


def read_header(path: Path) -> Sequence[Described]:
    """Return what the header of a file tells of its columns."""
    from pegsynth.tables.foreign_read import ForeignTable, described

    if not path.is_file():
        raise SchemaError("there is no such file; check the path")
    try:
        found = described(ForeignTable(path, KINDS[table_format(path) or ""]))
    except DataError as error:
        raise SchemaError(str(error)) from None
    return [_column(field, found) for field in found.arrow_schema]


def _column(field: pa.Field, found: Header) -> Described:
    name = field.name
    codes = tuple((code, text) for code, text in found.value_labels.get(name, []) if code)
    missing = _missing(found.missing.get(name, []), [code for code, _ in codes])
    extended = tuple(code for code, _ in codes if code.startswith(".") and len(code) == 2)
    measure = found.measure.get(name, "unknown")
    labelled = [code for code, _ in codes if code not in (*missing, *extended)]
    # Labels of some points of a scale are no list of its values.
    some = measure == "scale" or not labelled
    return Described(
        name,
        _type(str(field.type)),
        found.labels.get(name, ""),
        tuple((c, t) for c, t in codes if not some or c in (*missing, *extended)),
        (*missing, *extended),
        ordered=measure == "ordinal",
        dtype="" if name in found.coded else str(field.type),
    )


def _missing(ranges: Sequence[Sequence[str]], codes: Sequence[str]) -> tuple[str, ...]:
    """Return missing codes: those that are listed, and labelled codes within a range."""
    found: dict[str, None] = {}
    for low, high in ranges:
        if low == high:
            found[low] = None
            continue
        lowest, highest = number_of(low), number_of(high)
        for code in codes:
            number = number_of(code)
            if (
                number is not None
                and (lowest is None or lowest <= number)
                and (highest is None or number <= highest)
            ):
                found[code] = None
    return tuple(found)


def _type(arrow: str) -> Type:
    if arrow.startswith("int"):
        return "whole"
    if arrow.startswith("timestamp"):
        return "time"
    return "number" if arrow in ("double", "float") else "text"


MOST_BYTES = 1 << 28
KNOWN = (
    "a .sav, .dta, .sas7bdat or .xpt file, DDI Codebook (.xml), Frictionless, CSVW, SDV, mbi or "
    "NIST (.json), a domain (.yaml), or a list of codes and labels (.csv with --feature)"
)


def read_codebook(path: str | Path, *, feature: str | None = None) -> Schema:
    """Return the schema that a codebook gives, unreviewed, and not drafted from data.

    Parameters
    ----------
    feature
        The feature that a list of codes and labels is about.

    Raises
    ------
    SchemaError
        The file is none of the known codebooks, or describes no column that can be used.
    """
    path = Path(path)
    try:
        columns, dialect = _columns(path, feature)
        return Schema(tuple(map(feature_of, columns)), dialect=dialect)
    except SchemaError as error:
        message = str(error)
        if "no feature left" in message:
            message = (
                "the codebook describes nothing but identifiers, which are dropped; describe other "
                "columns in it, or draft a schema from the table"
            )
        named = message if message.startswith(str(path)) else f"{path}: {message}"
        raise SchemaError(named) from None


def _columns(path: Path, feature: str | None) -> tuple[Sequence[Described], Dialect]:
    extension = path.suffix.lower()
    kind = table_format(path)
    if kind is not None and KINDS[kind].codebook:
        return read_header(path), Dialect()
    if extension == ".csv":
        if feature is None:
            raise SchemaError("say with --feature which feature the list of codes is about")
        return [read_list(_text(path), feature)], Dialect()
    if extension == ".xml":
        return _some(read_ddi(_bytes(path))), Dialect()
    if extension in (".yaml", ".yml"):
        return _some(json_books.read_domain(_mapping(read_yaml(_text(path))))), Dialect()
    if extension != ".json":
        raise SchemaError(f"this is no codebook that is known; give {KNOWN}")
    document = _mapping(_json(path))
    for fits, read in _JSON:
        if fits(document):
            return _some(read(document)), json_books.read_dialect(document)
    raise SchemaError(f"this is no codebook that is known; give {KNOWN}")


_JSON: tuple[
    tuple[Callable[[Mapping[str, Any]], bool], Callable[..., Iterable[Described]]], ...
] = (
    (json_books.is_frictionless, json_books.read_frictionless),
    (json_books.is_csvw, json_books.read_csvw),
    (json_books.is_sdv, json_books.read_sdv),
    (json_books.is_mbi, json_books.read_mbi),
    (json_books.is_domain, json_books.read_domain),
)


def _some(columns: Iterable[Described]) -> Sequence[Described]:
    found = list(columns)
    if not found:
        raise SchemaError("the codebook describes no column")
    return found


def _mapping(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise SchemaError(f"this is no codebook that is known; give {KNOWN}")
    return document


def _json(path: Path) -> Any:
    text = _text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError("the file is not valid JSON; write it again") from None


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError("the file is not UTF-8 text; save it as UTF-8") from None


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SchemaError("the file is too large for a codebook; give one of less than 256 MiB")
        return path.read_bytes()
    except OSError as error:
        raise SchemaError(f"the file cannot be read ({error.strerror}); check the path") from None
