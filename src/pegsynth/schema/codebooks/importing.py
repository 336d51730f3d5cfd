"""Which codebook a file is, and the schema that it gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema.codebooks import json_books
from pegsynth.schema.codebooks.ddi import read_ddi
from pegsynth.schema.codebooks.described import Described, feature_of
from pegsynth.schema.codebooks.headers import HEADERS, read_header
from pegsynth.schema.codebooks.lists import read_list
from pegsynth.schema.codebooks.yaml_subset import read_yaml
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.schema import Schema

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
    if extension in HEADERS:
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
