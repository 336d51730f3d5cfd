"""SPSS, Stata and SAS files by `pyreadstat`, some rows at a time.

The header of a file declares the type of every column, and formats say which numbers are dates.
Values are converted by that declaration alone, each for itself (R30). User-missing values stay
the codes that they are. Extended missing values of Stata (``.a`` to ``.z``) stay what they are in
columns whose value labels name some, which then hold text; elsewhere they are missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pegsynth.tables.foreign import Asked, Described, ForeignError, schema_text

CHUNK_CELLS = 1 << 20
LARGER = 4
_READERS = {
    "spss": "read_sav",
    "stata": "read_dta",
    "sas": "read_sas7bdat",
    "xport": "read_xport",
}
_TYPES = {
    "double": pa.float64(),
    "float": pa.float32(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "string": pa.string(),
}
_TIME = pa.timestamp("us")
_ICONV = {"latin-1": "iso-8859-1"}
_STATA_UTF8 = re.compile(rb"<release>1(1[89]|[2-9]\d)<")
_SPSS_DAYS = 141_428
"""Days from the first day of SPSS, 14 October 1582, to 1970."""
_DAYS_1960 = 3_653
_DAY = 86_400
_FAR = 1 << 62
_SPSS_DATES = re.compile(r"(DATE|ADATE|EDATE|JDATE|SDATE|DATETIME|YMDHMS)\d*(\.\d*)?")
_STATA_DAYS = re.compile(r"%-?(td|d)\w*.*")
_STATA_TIMES = re.compile(r"%-?t[cC].*")
_SAS_DAYS = re.compile(
    r"(DATE|DAY|DDMMYY[A-Z]?|MMDDYY[A-Z]?|YYMMDD[A-Z]?|E8601DA|B8601DA|IS8601DA|WEEKDATE|WORDDATE)"
    r"\d*(\.\d*)?"
)
_SAS_TIMES = re.compile(r"(DATETIME|E8601DT|B8601DT|IS8601DT|DATEAMPM|MDYAMPM)\d*(\.\d*)?")


class StatisticsFile:
    """One file of SPSS, Stata or SAS.

    A stated encoding counts if the file says it wrongly or not at all; one that says UTF-8 is
    right.
    """

    def __init__(self, asked: Asked) -> None:
        try:
            import pyreadstat
        except ImportError:
            raise ForeignError("missing-package", ["pyreadstat"]) from None
        self._path, self._kind = asked.path, asked.kind
        self._read = getattr(pyreadstat, _READERS[asked.kind])
        self._options: dict[str, Any] = {
            "output_format": "dict",
            "disable_datetime_conversion": True,
            "encoding": None,
        }
        if asked.kind != "xport":
            self._options["user_missing"] = True
        # UTF-16 is an encoding of text files alone.
        encoding = asked.encoding
        if encoding and not encoding.startswith("utf-16") and not self._says_utf8(pyreadstat):
            self._options["encoding"] = _ICONV.get(encoding, encoding)
        _, self._header = self._part(metadataonly=True)
        self._columns = {name: self._column(name) for name in self._header.column_names}

    def _part(self, **options: Any) -> tuple[Mapping[str, Sequence[Any]], Any]:
        # What it raises ends the process, and the client knows that the file is broken.
        found: tuple[Mapping[str, Sequence[Any]], Any] = self._read(
            self._path, **self._options, **options
        )
        return found

    def _says_utf8(self, pyreadstat: Any) -> bool:
        if self._kind == "stata":
            with open(self._path, "rb") as file:
                return _STATA_UTF8.search(file.read(64)) is not None
        try:
            _, header = self._part(metadataonly=True)
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeDecodeError):
            return False
        return (header.file_encoding or "").upper() in ("UTF-8", "UTF8")

    def _column(self, name: str) -> Column:
        header = self._header
        kind = header.readstat_variable_types.get(name)
        if kind not in _TYPES:
            raise ForeignError("broken")
        labels = header.variable_value_labels.get(name, {})
        form = header.original_variable_types.get(name) or ""
        coded = kind != "string" and any(isinstance(code, str) for code in labels)
        return Column(kind, coded, None if kind == "string" else date_unit(self._kind, form))

    def describe(self) -> Described:
        """Return names, types, labels and missing values, as the header declares them."""
        header = self._header
        return Described(
            schema_text(self.row_schema(list(self._columns))),
            header.number_rows,
            coded=[name for name, column in self._columns.items() if column.coded],
            labels={name: text for name, text in header.column_names_to_labels.items() if text},
            value_labels={
                name: [[_code_text(code), str(text)] for code, text in labels.items()]
                for name, labels in header.variable_value_labels.items()
            },
            missing={
                name: [[_code_text(each["lo"]), _code_text(each["hi"])] for each in ranges]
                for name, ranges in (header.missing_ranges or {}).items()
            },
            measure=dict(header.variable_measure or {}),
        )

    def row_schema(self, columns: Sequence[str]) -> pa.Schema:
        """Return the types that columns are handed over in."""
        return pa.schema([(name, self._columns[name].type) for name in columns])

    def batches(self, columns: Sequence[str], skip: int, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows in order; `rows` is the most at a time."""
        # Compressed rows before a chunk are unpacked again for it: few and large chunks of SPSS.
        cells = CHUNK_CELLS * (LARGER if self._kind == "spss" else 1)
        size = max(1, cells // max(len(columns), 1))
        schema = self.row_schema(columns)
        total = self._header.number_rows
        while total is None or skip < total:
            found, _ = self._part(usecols=list(columns), row_offset=skip, row_limit=size)
            read = min((len(found.get(name, ())) for name in columns), default=0)
            if read:
                arrays = [self._columns[name].array(found[name]) for name in columns]
                chunk = pa.record_batch(arrays, schema=schema)
                del arrays, found
                yield from (chunk.slice(start, rows) for start in range(0, read, rows))
            skip += read
            if read < size:
                if total is not None and skip < total:
                    raise ForeignError("broken")
                return


class Column:
    """How the values of one column become Arrow values, by what the header declares."""

    def __init__(self, kind: str, coded: bool, dates: float | None) -> None:
        self.coded = coded
        self._dates = None if coded else dates
        self.type = pa.string() if coded else _TIME if self._dates is not None else _TYPES[kind]

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Return values as Arrow; codes of missing values without a label become null."""
        if self.coded:
            return pa.array([_code_text(value) for value in values], pa.string())
        wanted = pa.float64() if self._dates is not None else self.type
        try:
            found = pa.array(values, wanted, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            found = pa.array(_plain(values, wanted), wanted, from_pandas=True)
        return found if self._dates is None else times(found, self._dates)


def date_unit(kind: str, form: str) -> float | None:
    """Say by the format of a column what its numbers count from 1582 or 1960, if they are dates.

    Returns seconds in one of them: 86,400 for days, 1 for seconds, 0.001 for milliseconds; None
    for a column of plain numbers. SPSS's are told by being negative.
    """
    text = form if kind == "stata" else form.upper()
    if kind == "spss":
        return -1.0 if _SPSS_DATES.fullmatch(text) else None
    if kind == "stata":
        return (
            _DAY if _STATA_DAYS.fullmatch(text) else 0.001 if _STATA_TIMES.fullmatch(text) else None
        )
    return _DAY if _SAS_DAYS.fullmatch(text) else 1.0 if _SAS_TIMES.fullmatch(text) else None


def times(numbers: pa.Array, unit: float) -> pa.Array:
    """Return numbers of days or seconds as times; what is beyond any calendar stays beyond."""
    gaps = np.asarray(numbers.is_null())
    values = np.array(numbers.fill_null(0.0), dtype=np.float64)
    gaps |= np.isnan(values)
    values = np.nan_to_num(values, nan=0.0, posinf=1e300, neginf=-1e300)
    # Whole and broken parts apart: microseconds of four centuries do not fit a float.
    scale = abs(unit) if abs(unit) >= 1 else 1.0
    parts = 1 if abs(unit) >= 1 else round(1 / abs(unit))
    whole = np.floor(values)
    rest = np.round((values - whole) * scale / parts * 1e6)
    far = np.abs(whole) > 1e15
    whole = np.where(far, 0, whole).astype(np.int64)
    first = _SPSS_DAYS if unit < 0 else _DAYS_1960
    micro = whole * round(scale * 1_000_000 / parts) + rest.astype(np.int64)
    micro -= first * _DAY * 1_000_000
    micro = np.where(far, np.where(values > 0, _FAR, -_FAR), micro)
    return pa.array(micro, pa.int64(), mask=gaps).cast(_TIME)


def _plain(values: Sequence[Any], wanted: pa.DataType) -> list[Any]:
    """Return values of a column of numbers without the codes of missing values."""
    if pa.types.is_string(wanted):
        return [value if isinstance(value, str) else None for value in values]
    return [None if isinstance(value, str) else value for value in values]


def _code_text(value: Any) -> Any:
    """Return a value as the text that a schema has for it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return f".{value}" if len(value) == 1 and value.islower() and value.isascii() else value
    if isinstance(value, float) and value.is_integer() and abs(value) < 9.2e18:
        return str(int(value))
    return str(value)
