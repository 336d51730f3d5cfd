"""Which codebook a file is, and the schema that it gives; no row is read.

Read here are lists of codes and labels of one feature, as offices keep them in spreadsheets, the
headers of SPSS, Stata and SAS files, and DDI Codebook 2.5; `described` reads the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from pegsynth.errors import DataError, SchemaError
from pegsynth.schema.codebooks.described import (
    Described,
    Type,
    feature_of,
    number_of,
    read_dialect,
    read_json,
)
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
    from pegsynth.tables.foreign_read import described

    if not path.is_file():
        raise SchemaError("there is no such file; check the path")
    try:
        found = described(path, KINDS[table_format(path) or ""])
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


# DDI Codebook 2.5: the XML in which archives describe surveys.

_DECLARATION = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)
_TYPES: dict[str, Type] = {"date": "date", "time": "time"}


def read_ddi(content: bytes) -> Iterator[Described]:
    """Yield what every variable of a codebook is said to be."""
    if _DECLARATION.search(content):
        # Entities make small files large; codebooks need none.
        raise SchemaError("the XML declares a document type or entities; remove the declaration")
    try:
        root = ET.fromstring(content)
    except (ET.ParseError, ValueError, LookupError):
        raise SchemaError("the file is not valid XML; write it again") from None
    for variable in root.iter():
        if _tag(variable) == "var" and "name" in variable.attrib:
            yield _variable(variable)


def _variable(variable: ET.Element) -> Described:
    codes, missing = [], []
    limits: list[float | None] = [None, None]
    for part in variable:
        tag = _tag(part)
        if tag == "catgry":
            value = _child(part, "catValu")
            codes.append((value, _child(part, "labl")))
            if part.get("missing", "N").upper() == "Y":
                missing.append(value)
        elif tag == "invalrng":
            missing += [each.get("VALUE", "") for each in part if _tag(each) == "item"]
        elif tag == "valrng":
            for each in part:
                if _tag(each) == "range":
                    limits = [number_of(each.get("min")), number_of(each.get("max"))]
    form = next((each for each in variable if _tag(each) == "varFormat"), None)
    nature = variable.get("nature", "")
    continuous = variable.get("intrvl") == "contin" or nature in ("interval", "ratio")
    labelled = [pair for pair in codes if pair[0]]
    if continuous and limits[0] is not None:
        # Labels of some points of a scale are no list of its values.
        labelled = [pair for pair in labelled if pair[0] in missing]
    return Described(
        variable.get("name", ""),
        _ddi_type(form, variable),
        _child(variable, "labl"),
        tuple(labelled),
        tuple(text for text in missing if text),
        limits[0],
        limits[1],
        ordered=nature == "ordinal",
    )


def _ddi_type(form: ET.Element | None, variable: ET.Element) -> Type:
    if form is None:
        return ""
    if (category := form.get("category", "")) in _TYPES:
        return _TYPES[category]
    if form.get("type") == "character":
        return "text"
    return "whole" if variable.get("dcml", "") == "0" else "number"


def _tag(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _child(element: ET.Element, tag: str) -> str:
    found = next((each for each in element if _tag(each) == tag), None)
    return "" if found is None else " ".join("".join(found.itertext()).split())


MOST_BYTES = 1 << 28
KNOWN = (
    "a .sav, .dta, .sas7bdat or .xpt file, DDI Codebook (.xml), Frictionless, CSVW, SDV, mbi or "
    "NIST (.json), or a list of codes and labels (.csv with --feature)"
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
    if extension != ".json":
        raise _unknown_form()
    text = _text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError("the file is not valid JSON; write it again") from None
    columns = read_json(document) if isinstance(document, dict) else None
    if columns is None:
        raise _unknown_form()
    return _some(columns), read_dialect(document)


def _unknown_form() -> SchemaError:
    return SchemaError(f"this is no codebook that is known; give {KNOWN}")


def _some(columns: Iterable[Described]) -> Sequence[Described]:
    found = list(columns)
    if not found:
        raise SchemaError("the codebook describes no column")
    return found


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
