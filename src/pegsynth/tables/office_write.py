"""Columns of listed categories, written so that the schema reads the same categories again.

A schema lists categories as texts. A format that keeps the type of a column gives the same text
back; in all others the column is written as the schema's own texts, or in a type that has them.

SPSS, Stata and Excel files out, with the labels and missing codes of the codebook.

Their libraries write a table at once, so that its frames are gathered first. Numbers, dates and
text are written as such; truth values, lengths of time and whatever a format lacks become text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.errors import OutputError

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature
    from pegsynth.schema.schema import Schema


def listed_names(codebook: Schema | None) -> frozenset[str]:
    """Return the columns whose values are categories that the schema lists as texts."""
    features = () if codebook is None else codebook.features
    return frozenset(feature.name for feature in features if not feature.binned)


def as_categories(
    frame: pl.DataFrame, listed: Collection[str], changed: Callable[[pl.Series], bool]
) -> pl.DataFrame:
    """Return a frame whose listed columns are text where a format would change their values.

    Floats of 32 bits become longer ones that have the same text.

    Parameters
    ----------
    changed
        Whether the format changes the text of values of such a column.
    """
    from pegsynth.schema.dtypes import as_text

    columns = []
    for column in frame:
        if column.name in listed and changed(column):
            columns.append(as_text(column))
        elif column.name in listed and column.dtype == pl.Float32:
            columns.append(as_text(column).cast(pl.Float64))
    return frame.with_columns(columns)


OFFICE = {"spss": "pyreadstat", "stata": "pyreadstat", "excel": "xlsxwriter"}
"""Kinds of files that are written here, and the package that each needs."""

MOST_ROWS = 1_048_575
MOST_COLUMNS = 16_384
MOST_TEXT = 32_767
_STATA_INTEGERS = (-2_147_483_647, 2_147_483_620)
_EXACT = 1 << 53
_MOST_MISSING = 3
_NAMES = {
    "spss": re.compile(
        r"(?!(?i:all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with)\Z)"
        r"[^\W\d_@#$.][\w@#$.]{0,62}(?<![.])"
    ),
    "stata": re.compile(
        r"(?!(?:_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_[nN]|_pi|_pred|_rc|_skip"
        r"|strL|str\d+|using|with)\Z)[A-Za-z_][A-Za-z0-9_]{0,31}"
    ),
    "excel": re.compile(r"[\s\S]{1,255}"),
}
"""Names of columns; words that a program keeps for itself are none."""
_MOST_BYTES = 64
_FIRST_DAY = dt.datetime(1900, 3, 1)


def check_office(path: str | Path, kind: str) -> None:
    """Refuse an output whose library is not there, before any work."""
    package = OFFICE[kind]
    if find_spec(package) is None:
        raise OutputError(
            f"cannot write {str(path)!r}: it needs {package}; install it with pip install "
            "'pegsynth[office]'"
        )


def check_office_table(
    path: str | Path, kind: str, columns: Sequence[str], rows: int | None
) -> None:
    """Refuse columns and numbers of rows that a format cannot hold.

    Parameters
    ----------
    rows
        None where that is not known.
    """
    for name in columns:
        long = kind == "spss" and len(name.encode()) > _MOST_BYTES
        if long or not _NAMES[kind].fullmatch(name):
            raise OutputError(
                f"cannot write {str(path)!r}: the column name {name[:80]!r} is not allowed in this "
                "format; rename the column, or choose another extension"
            )
    if kind == "spss":
        check_case(path, columns)
    if kind == "excel" and ((rows or 0) > MOST_ROWS or len(columns) > MOST_COLUMNS):
        raise OutputError(
            f"cannot write {str(path)!r}: a sheet holds at most {MOST_ROWS:,} rows and "
            f"{MOST_COLUMNS:,} columns; choose another extension"
        )


def check_case(target: object, columns: Sequence[str]) -> None:
    """Refuse names that are one to a program that does not tell upper from lower case."""
    known: dict[str, str] = {}
    for name in columns:
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise OutputError(
                f"cannot write {str(target)!r}: the column names {other[:80]!r} and {name[:80]!r} "
                "are the same in this format; rename one of them (--weight-name for weights), or "
                "choose another format"
            )


class OfficeWriter:
    """Gathers the frames of a table, and writes them when it is closed.

    Parameters
    ----------
    temporary
        The file to fill.
    path
        What messages call it.
    kind
        ``spss``, ``stata`` or ``excel``.
    codebook
        Labels and missing codes of its columns.
    """

    def __init__(
        self,
        temporary: Path,
        path: str | Path,
        kind: str,
        schema: Mapping[str, Any] | None,
        codebook: Schema | None,
    ) -> None:
        self._temporary, self._path, self._kind = temporary, path, kind
        self._features = {} if codebook is None else {each.name: each for each in codebook.features}
        self._frames = [] if schema is None else [pl.DataFrame(schema=schema)]

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows."""
        check_office_table(self._path, self._kind, frame.columns, None)
        self._frames.append(frame)

    def close(self) -> None:
        """Write the file."""
        frame = pl.concat(self._frames, rechunk=True)
        listed = {name: each for name, each in self._features.items() if not each.binned}
        long = {name for name, each in listed.items() if _has_long_numbers(each)}
        # Statistics files hold long floats, though not long whole numbers; a sheet holds neither.
        floats = self._kind == "excel"
        frame = as_categories(
            frame,
            listed,
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
            options["compress"] = str(self._path).lower().endswith(".zsav")
            options["row_compress"] = not options["compress"]
        write = pyreadstat.write_sav if self._kind == "spss" else pyreadstat.write_dta
        try:
            write(frame, str(self._temporary), **options)
        except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, ValueError, TypeError):
            raise OutputError(
                f"cannot write {str(self._path)!r}: the columns cannot be written in this format; "
                "choose another extension"
            ) from None

    def _workbook(self, frame: pl.DataFrame) -> None:
        import xlsxwriter

        check_office_table(self._path, "excel", frame.columns, frame.height)
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
            self._codebook_sheet(book)

    def _codebook_sheet(self, book: Any) -> None:
        lines = [
            (each.name, code, text)
            for each in self._features.values()
            for code, text in (("", each.label), *each.value_labels)
            if text
        ]
        if not lines:
            return
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
        return series if _fits(series) else series.cast(pl.Float64)
    if dtype in (pl.Float64, pl.Date, pl.String):
        return series
    if isinstance(dtype, pl.Datetime):
        # Times of a zone are told by its clocks, which is how the schema reads them.
        return series.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    from pegsynth.schema.dtypes import as_text

    return as_text(series)


def _has_long_numbers(feature: Feature) -> bool:
    """Say whether a category is a whole number that a float would round."""
    numbers = map(_number, (*feature.categories, *feature.not_applicable, *feature.missing))
    return any(number is not None and abs(number) >= _EXACT for number in numbers)


def _fits(series: pl.Series) -> bool:
    """Say by its type whether a column of whole numbers fits Stata's largest integers."""
    return series.dtype in (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)


def _labels(feature: Feature, kind: str, *, numbers: bool) -> dict[Any, str]:
    """Return the value labels that a column of a format can hold."""
    if not numbers:
        return dict(feature.value_labels) if kind == "spss" else {}
    found = {_number(code): text for code, text in feature.value_labels}
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
    codes = sorted({number for text in texts if (number := _number(text)) is not None})
    if len(codes) <= _MOST_MISSING:
        return list(codes)
    listed = [_number(text) for text in feature.categories]
    within = [c for c in (*listed, *feature.edges) if c is not None and codes[0] <= c <= codes[-1]]
    return codes[:_MOST_MISSING] if within else [{"lo": codes[0], "hi": codes[-1]}]


def _number(text: str) -> float | None:
    from pegsynth.schema.number_text import parsed_number

    return parsed_number(text)


def _cells(series: pl.Series, book: Any) -> Iterator[tuple[str, tuple[Any, ...] | None]]:
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
