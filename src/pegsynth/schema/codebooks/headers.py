"""The headers of SPSS, Stata and SAS files as codebooks; no row is read."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pegsynth.errors import DataError, SchemaError
from pegsynth.schema.codebooks.described import Described, Type, number_of

HEADERS: Mapping[str, str] = {
    ".sav": "spss",
    ".zsav": "spss",
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "xport",
}
"""Extensions of files whose header is a codebook, and their kind."""


def read_header(path: Path) -> Sequence[Described]:
    """Return what the header of a file tells of its columns."""
    import pyarrow as pa
    from pyarrow import ipc

    from pegsynth.io.foreign_read import ForeignTable, described

    if not path.is_file():
        raise SchemaError("there is no such file; check the path")
    try:
        found = described(ForeignTable(path, HEADERS[path.suffix.lower()]))
    except DataError as error:
        raise SchemaError(str(error)) from None
    schema = ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"])))
    return [_column(field, found) for field in schema]


def _column(field: Any, found: Mapping[str, Any]) -> Described:
    name = field.name
    codes = tuple((code, text) for code, text in found["value_labels"].get(name, []) if code)
    missing = _missing(found["missing"].get(name, []), [code for code, _ in codes])
    extended = tuple(code for code, _ in codes if code.startswith(".") and len(code) == 2)
    measure = found["measure"].get(name, "unknown")
    labelled = [code for code, _ in codes if code not in (*missing, *extended)]
    # Labels of some points of a scale are no list of its values.
    some = measure == "scale" or not labelled
    return Described(
        name,
        _type(str(field.type)),
        found["labels"].get(name, ""),
        tuple((c, t) for c, t in codes if not some or c in (*missing, *extended)),
        (*missing, *extended),
        ordered=measure == "ordinal",
        dtype="" if name in found["coded"] else str(field.type),
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
