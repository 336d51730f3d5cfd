"""SPSS, Stata and Excel files out, with the labels and missing codes of the codebook.

Their libraries write a table at once, so that its frames are gathered first. Numbers, dates and
text are written as such; truth values, lengths of time and whatever a format lacks become text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.errors import OutputError
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.number_text import parsed_number
from pegsynth.tables.table_output import Content, TableWriter, check_limits

if TYPE_CHECKING:
    from xlsxwriter import Workbook

    from pegsynth.schema.feature import Feature

MOST_TEXT = 32_767
_STATA_INTEGERS = (-2_147_483_647, 2_147_483_620)
_EXACT = 1 << 53
_MOST_MISSING = 3
_FIRST_DAY = dt.datetime(1900, 3, 1)


class OfficeWriter(TableWriter):
    """Gathers the frames of a table, and writes them when it is closed."""

    def __init__(self, temporary: Path, content: Content) -> None:
        self._temporary, self._content = temporary, content
        self._path = str(content.path)
        self._kind, self._features = content.kind, content.features
        self._frames: list[pl.DataFrame] = []

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows."""
        check_limits(self._path, frame.columns, None)
        self._frames.append(frame)

    def complete(self) -> None:
        """Write the file."""
        frame = pl.concat(self._frames, rechunk=True)
        long = set()
        for name, each in self._features.items():
            listed = map(parsed_number, (*each.categories, *each.not_applicable, *each.missing))
            # A float would round a category that is a whole number of so many digits.
            if any(number is not None and abs(number) >= _EXACT for number in listed):
                long.add(name)
        # Statistics files hold long floats, though not long whole numbers; a sheet holds neither.
        floats = self._kind == "excel"
        frame = self._content.as_categories(
            frame,
            lambda column: (
                column.name in long
                and (column.dtype.is_integer() or (floats and column.dtype.is_float()))
            ),
        )
        frame = frame.with_columns(_plain(series) for series in frame)
        _WRITERS[self._kind](self, frame)

    def _statistics(self, frame: pl.DataFrame) -> None:
        import pyreadstat

        numeric = {name for name, dtype in frame.schema.items() if dtype.is_numeric()}
        known = [each for name, each in self._features.items() if name in frame.columns]
        # Dates have neither labels nor missing codes.
        coded = [each for each in known if not frame.schema[each.name].is_temporal()]
        options: dict[str, Any] = {
            "column_labels": {each.name: each.label for each in known if each.label},
            "variable_value_labels": {
                each.name: labels
                for each in coded
                if (labels := _labels(each, self._kind, numbers=each.name in numeric))
            },
        }
        if self._kind == "spss":
            options["missing_ranges"] = {
                each.name: codes
                for each in coded
                if (codes := _missing(each, numbers=each.name in numeric))
            }
            options["compress"] = self._path.lower().endswith(".zsav")
            options["row_compress"] = not options["compress"]
        write = pyreadstat.write_sav if self._kind == "spss" else pyreadstat.write_dta
        try:
            write(frame, str(self._temporary), **options)
        except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, ValueError, TypeError):
            raise OutputError(
                f"cannot write {self._path!r}: the columns cannot be written in this format; "
                "choose another extension"
            ) from None

    def _workbook(self, frame: pl.DataFrame) -> None:
        import xlsxwriter

        check_limits(self._path, frame.columns, frame.height)
        # Texts stay texts: nothing is taken for a formula, an address or a number.
        plain = dict.fromkeys(
            ("strings_to_formulas", "strings_to_urls", "strings_to_numbers"), False
        )
        with xlsxwriter.Workbook(str(self._temporary), {**plain, "in_memory": True}) as book:
            sheet = book.add_worksheet("data")
            # A row without any value is no row of a sheet, so that it gets an empty text.
            for row in frame.select(pl.all_horizontal(pl.all().is_null())).to_series().arg_true():
                sheet.write_string(row + 1, 0, "")
            for column, name in enumerate(frame.columns):
                sheet.write_string(0, column, name)
                for row, (method, cell) in enumerate(_cells(frame[name], book), start=1):
                    if cell is not None:
                        getattr(sheet, method)(row, column, *cell)
            lines = [
                (each.name, code, text)
                for each in self._features.values()
                for code, text in (("", each.label), *each.value_labels)
                if text
            ]
            if lines:
                sheet = book.add_worksheet("codebook")
                for row, line in enumerate([("column", "code", "label"), *lines]):
                    for column, text in enumerate(line):
                        sheet.write_string(row, column, text[:MOST_TEXT])


_WRITERS: Mapping[str, Callable[[OfficeWriter, pl.DataFrame], None]] = {
    "spss": OfficeWriter._statistics,
    "stata": OfficeWriter._statistics,
    "excel": OfficeWriter._workbook,
}


def _plain(series: pl.Series) -> pl.Series:
    """Return a column in a type that all of the formats have."""
    dtype = series.dtype
    if dtype.is_decimal() or dtype == pl.Float32:
        return series.cast(pl.Float64)
    if dtype.is_integer():
        # Of whole numbers these fit Stata's largest integers, by their type.
        fits = dtype in (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
        return series if fits else series.cast(pl.Float64)
    if dtype in (pl.Float64, pl.Date, pl.String):
        return series
    if isinstance(dtype, pl.Datetime):
        # Times of a zone are told by its clocks, which is how the schema reads them.
        return series.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    return as_text(series)


def _labels(feature: Feature, kind: str, *, numbers: bool) -> dict[str | float, str]:
    """Return the value labels that a column of a format can hold."""
    if not numbers:
        return dict(feature.value_labels) if kind == "spss" else {}
    found = {parsed_number(code): text for code, text in feature.value_labels}
    found.pop(None, None)
    if kind == "stata":
        low, high = _STATA_INTEGERS
        return {
            int(code): text
            for code, text in found.items()
            if code is not None and code == int(code) and low <= code <= high
        }
    return {code: text for code, text in found.items() if code is not None}


def _missing(feature: Feature, *, numbers: bool) -> list[Any]:
    """Return the missing codes of a feature as SPSS holds them: three, or a range."""
    texts = [text for text in feature.missing if text]
    if not numbers:
        return [text for text in texts if len(text.encode()) <= 8][:_MOST_MISSING]
    codes = sorted({number for text in texts if (number := parsed_number(text)) is not None})
    if len(codes) <= _MOST_MISSING:
        return list(codes)
    listed = [parsed_number(text) for text in feature.categories]
    within = [c for c in (*listed, *feature.edges) if c is not None and codes[0] <= c <= codes[-1]]
    return codes[:_MOST_MISSING] if within else [{"lo": codes[0], "hi": codes[-1]}]


def _cells(series: pl.Series, book: Workbook) -> Iterator[tuple[str, tuple[Any, ...] | None]]:
    """Yield how to write each value of a column."""
    dtype = series.dtype
    if dtype.is_numeric():
        for value in series:
            if value is None or abs(value) <= _EXACT:
                yield "write_number", None if value is None else (value,)
            else:
                # A sheet holds floats, which would round it.
                yield "write_string", (str(value),)
        return
    if dtype.is_temporal():
        day = dtype == pl.Date
        form = book.add_format({"num_format": "yyyy-mm-dd" if day else "yyyy-mm-dd hh:mm:ss.000"})
        for value in series:
            if value is None:
                yield "write_datetime", None
                continue
            moment = dt.datetime(value.year, value.month, value.day) if day else value
            if moment < _FIRST_DAY or (not day and value.microsecond % 1000):
                yield "write_string", (value.isoformat(),)
            else:
                yield "write_datetime", (moment, form)
        return
    for value in series:
        yield "write_string", None if value is None else (value[:MOST_TEXT],)
