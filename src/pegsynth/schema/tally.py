"""What a draft needs to know of a column, gathered from batches in bounded memory.

In go the batches of one column; out come its distinct values with their counts while
there are few, whether all are numbers or whole numbers, their range, and on request an
approximate quantile function. Everything here is confidential.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from pegsynth.schema.dtypes import as_text

TEXTS = pl.Schema({"value": pl.String, "count": pl.UInt64})
MAX_TEXTS = 1_000
MAX_SKETCH = 1_000_000

# Read as missing in untyped files. All are listed whichever occurred, so that the list
# says nothing of the data.
FILE_MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
TYPED_MISSING = ("",)

# The apostrophe that keeps spreadsheets from running a text as a formula is not part of it.
_PROTECTED = r"^'([=+\-@\t\r])"
_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_WHOLE_DECIMAL = r"^-?(?:0|[1-9][0-9]*)\.0*$"
_NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


@dataclass
class QuantileSketch:
    """Values and their weights: exact while they are few, merged in pairs when they are not.

    A merge adds the weight of every second value to its neighbour above, so that a rank is
    off by at most the weight of one merged value.
    """

    limit: int = MAX_SKETCH
    _points: pl.DataFrame | None = None

    def add(self, numbers: pl.Series, counts: pl.Series) -> None:
        """Take in distinct finite numbers and how often each occurs."""
        points = pl.DataFrame({"value": numbers, "count": counts.cast(pl.UInt64)})
        self._points = _merged(self._points, points).sort("value")
        while self._points.height > self.limit:
            pair = pl.int_range(self._points.height).floordiv(2)
            self._points = (
                self._points.group_by(pair.alias("pair"), maintain_order=True)
                .agg(pl.col("value").last(), pl.col("count").sum())
                .drop("pair")
            )

    def quantiles(self, parts: int) -> list[float]:
        """Find the inner values that cut the column into `parts` of about equal weight."""
        if self._points is None:
            return []
        ranks = self._points["count"].cum_sum()
        total = int(ranks[-1])
        wanted = pl.Series([-(-total * part // parts) for part in range(1, parts)], dtype=pl.UInt64)
        at = ranks.search_sorted(wanted, side="left")
        return [float(value) for value in self._points["value"].gather(at)]


@dataclass
class ColumnTally:
    """Running summary of one column.

    Parameters
    ----------
    name
        Column name.
    typed
        Whether the table has types; if not, texts may be numbers or mean missing.
    sketch
        Gathers quantiles; None: they are not wanted.
    """

    name: str
    typed: bool
    sketch: QuantileSketch | None = None
    rows: int = 0
    has_missing: bool = False
    numeric: bool = True
    whole: bool = True
    whole_decimals: bool = True
    lowest: float | None = None
    highest: float | None = None
    texts: pl.DataFrame | None = field(default_factory=lambda: pl.DataFrame(schema=TEXTS))

    @property
    def given_up(self) -> bool:
        """Whether it holds too many texts to list, so that nothing more need be known."""
        return self.texts is None and not self.numeric

    @property
    def nearly_unique(self) -> bool:
        """Whether there is nearly one value per row, in a table of more than a few rows."""
        distinct = MAX_TEXTS + 1 if self.texts is None else self.texts.height
        return self.rows > 20 and distinct > 0.9 * self.rows

    def add(self, column: pl.Series) -> None:
        """Take in the next batch."""
        if column.dtype == pl.Duration:
            # A length of time has no one text; a person may turn it into a number.
            self.numeric, self.texts = False, None
        present = self._present(column)
        self.rows += len(present)
        self.has_missing |= len(present) < len(column)
        if self.given_up or present.is_empty():
            return
        counted = present.rename("value").value_counts(name="count")
        values, counts = counted["value"], counted["count"]
        self._add_numbers(values, counts)
        if self.texts is not None:
            self._add_texts(values, counts)

    def _present(self, column: pl.Series) -> pl.Series:
        if column.dtype.is_float():
            column = column.fill_nan(None)
        column = column.drop_nulls()
        if isinstance(column.dtype, pl.Categorical | pl.Enum):
            column = column.cast(pl.String)
        if column.dtype != pl.String:
            return column
        missing = TYPED_MISSING if self.typed else FILE_MISSING
        return column.filter(~column.str.strip_chars().is_in(missing))

    def _add_texts(self, values: pl.Series, counts: pl.Series) -> None:
        texts = as_text(values)
        if not self.typed:
            texts = texts.str.replace(_PROTECTED, "$1")
        batch = pl.DataFrame({"value": texts, "count": counts.cast(pl.UInt64)})
        merged = _merged(self.texts, batch)
        self.texts = merged if merged.height <= MAX_TEXTS else None

    def _add_numbers(self, values: pl.Series, counts: pl.Series) -> None:
        if not self.numeric:
            return
        numbers = self._numbers(values)
        if numbers is None:
            self.numeric = self.whole = self.whole_decimals = False
            self.sketch = None
            return
        finite = numbers.is_finite()
        numbers, counts = numbers.filter(finite), counts.filter(finite)
        if numbers.is_empty():
            return
        low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
        self.lowest = low if self.lowest is None else min(low, self.lowest)
        self.highest = high if self.highest is None else max(high, self.highest)
        if self.sketch is not None:
            self.sketch.add(numbers, counts)

    def _numbers(self, values: pl.Series) -> pl.Series | None:
        """Take the values as numbers, None when one is not, and note whether all are whole."""
        if values.dtype.is_numeric():
            self.whole = self.whole and (values.dtype.is_integer() or _all_whole(values))
            self.whole_decimals = False
            return values.cast(pl.Float64)
        if self.typed or values.dtype != pl.String:
            return None
        integers = values.str.contains(_INTEGER)
        # Digits beyond a 64-bit integer are a code, not a quantity.
        too_long = values.filter(integers).cast(pl.Int64, strict=False).null_count() > 0
        if too_long or not (integers | values.str.contains(_NUMBER)).all():
            return None
        self.whole = self.whole and bool(integers.all())
        self.whole_decimals = self.whole_decimals and values.str.contains(_WHOLE_DECIMAL).all()
        return values.cast(pl.Float64)


def _all_whole(values: pl.Series) -> bool:
    numbers = values.cast(pl.Float64)
    # Larger floats no longer tell neighbouring integers apart, and their text has an exponent.
    return bool(((numbers == numbers.round(0)) & (numbers.abs() < 1e15)).all())


def _merged(first: pl.DataFrame | None, second: pl.DataFrame) -> pl.DataFrame:
    if first is None:
        return second
    return pl.concat([first, second]).group_by("value").agg(pl.col("count").sum())
