"""What a draft needs to know of a column, gathered from batches in bounded memory.

In go the batches of one column; out come its distinct values with their counts while
there are few, about how many there are otherwise, whether all are numbers or whole numbers,
their range, and an approximate quantile function. Everything here is confidential.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from pegsynth.schema.date_text import DateGuess
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.number_text import PROTECTED, NumberText

TEXTS = pl.Schema({"value": pl.String, "count": pl.UInt64})
FEW_ROWS = 20
FEW_PEOPLE = 10
"""A value that fewer rows have is not listed by a draft unless it is told otherwise."""
MAX_TEXTS = 1_000
MAX_SKETCH = 1_000_000
MAX_HASHES = 4_096

# Read as missing in untyped files. All are listed whichever occurred, so that the list
# says nothing of the data.
FILE_MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "?")
TYPED_MISSING = ("",)

_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_WHOLE_DECIMAL = r"^(?:0|-?[1-9][0-9]{0,14})\.0+$"
_DECIMALS = r"^-?[0-9]*(?:\.([0-9]*?)0*)?$"
MOST_SUGGESTED = 6
"""Numbers with more decimals are taken to have any number of them."""
_NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


@dataclass
class QuantileSketch:
    """Values and their weights: exact while they are few, merged in groups when they are not.

    A merge adds the weights of neighbours to the value above them, so that a rank is off by
    at most the weight of one merged value.
    """

    limit: int = MAX_SKETCH
    _points: pl.DataFrame | None = None

    def add(self, numbers: pl.Series, counts: pl.Series) -> None:
        """Take in distinct finite numbers and how often each occurs."""
        points = pl.DataFrame({"value": numbers, "count": counts.cast(pl.UInt64)})
        if self._points is not None:
            points = pl.concat([self._points, points])
        value, rank = pl.col("value"), pl.col("count").cum_sum().alias("rank")
        points = points.sort("value").select(value, rank)
        points = points.filter(value.ne_missing(value.shift(-1)))
        group = 1
        while points.height > self.limit * group:
            group *= 2
        last = points.tail(1 if points.height % group else 0)
        points = pl.concat([points.gather_every(group, group - 1), last])
        before = pl.col("rank").shift(1, fill_value=0)
        self._points = points.select(value, (pl.col("rank") - before).alias("count"))

    def weights(self, edges: Sequence[float]) -> list[int]:
        """Add up the weight of every bin; what lies beyond is in the end bins."""
        if self._points is None:
            return [0] * (len(edges) - 1)
        values, weights = self._points.get_columns()
        bins = values.search_sorted(pl.Series(edges[1:-1], dtype=pl.Float64), side="left")
        starts = [0, *bins, len(values)]
        return [int(weights[a:b].sum()) for a, b in itertools.pairwise(starts)]

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
class LeastHashes:
    """The least hashes of the values seen, from which the number of distinct values follows.

    It is exact while there are no more than are kept. Beyond that, of K kept hashes the largest
    lies about K/D of the way to the end of their range, D being the number wanted.
    """

    kept: int = MAX_HASHES
    _hashes: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.UInt64))

    def add(self, values: pl.Series) -> None:
        """Take in values, repeated or not."""
        hashes = values.hash(seed=0).rename("")
        if len(self._hashes) == self.kept:
            hashes = hashes.filter(hashes < self._hashes.max())
        self._hashes = pl.concat([self._hashes, hashes]).unique().bottom_k(self.kept)

    @property
    def estimate(self) -> int:
        """About how many distinct values there were; off by some 2 in 100 if many."""
        if len(self._hashes) < self.kept:
            return len(self._hashes)
        largest = int(self._hashes.max())  # type: ignore[arg-type]
        return ((self.kept - 1) << 64) // (largest + 1)


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
    hashes
        Counts the distinct values of a column of numbers when they are too many to list.
    written
        How numbers are written where values are text.
    """

    name: str
    typed: bool
    sketch: QuantileSketch | None = None
    hashes: LeastHashes = field(default_factory=LeastHashes)
    rows: int = 0
    has_missing: bool = False
    numeric: bool = True
    whole: bool = True
    whole_decimals: bool = True
    lowest: float | None = None
    highest: float | None = None
    texts: pl.DataFrame | None = field(default_factory=lambda: pl.DataFrame(schema=TEXTS))
    written: NumberText = field(default_factory=NumberText)
    marked: bool = False
    most_decimals: int = 0
    dates: DateGuess = field(default_factory=DateGuess)

    @property
    def decimals(self) -> int | None:
        """How many decimals its numbers have; None if they are many, or numbers have powers."""
        return self.most_decimals if self.most_decimals <= MOST_SUGGESTED else None

    @property
    def integers(self) -> bool:
        """Whether all are whole numbers; "1.0" is one, as integers with gaps are often written."""
        return self.whole or self.whole_decimals

    @property
    def counts(self) -> pl.DataFrame:
        """Its values and how many rows each has; nothing if they are too many to list."""
        return pl.DataFrame(schema=TEXTS) if self.texts is None else self.texts

    @property
    def distinct(self) -> int:
        """Number of distinct values; about that many if they are too many to list."""
        return self.hashes.estimate if self.texts is None else self.texts.height

    def add(self, column: pl.Series) -> None:
        """Take in the next batch."""
        if column.dtype == pl.Duration:
            # A length of time has no one text; a person may turn it into a number.
            self.numeric, self.texts = False, None
        present = self._present(column)
        self.rows += len(present)
        self.has_missing |= len(present) < len(column)
        # Of too many texts to list nothing more need be known.
        given_up = self.texts is None and not self.numeric and not self.dates.open
        if given_up or present.is_empty():
            return
        counted = present.rename("value").value_counts(name="count")
        values, counts = counted["value"], counted["count"]
        self.dates.add(values)
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
            texts = texts.str.replace(PROTECTED, "$1")
        batch = pl.DataFrame({"value": texts, "count": counts.cast(pl.UInt64)})
        both = pl.concat([self.counts, batch])
        merged = both.group_by("value").agg(pl.col("count").sum())
        self.texts = merged if merged.height <= MAX_TEXTS else None

    def _add_numbers(self, values: pl.Series, counts: pl.Series) -> None:
        if not self.numeric:
            return
        numbers = self._numbers(values)
        if numbers is None:
            self.numeric = self.whole = self.whole_decimals = False
            self.sketch = None
            return
        if self.whole or self.whole_decimals:
            self.hashes.add(numbers)
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
            if not self.whole:
                finite = values.filter(values.is_finite()) if values.dtype.is_float() else values
                self._note_decimals(finite.cast(pl.String))
            return values.cast(pl.Float64)
        if self.typed or values.dtype != pl.String:
            return None
        plain = self.written.plain(values)
        if plain.null_count():
            return None
        # A number with a mark of its own is a quantity, whatever else the column holds.
        self.marked = self.marked or not plain.equals(values)
        values = plain
        integers = values.str.contains(_INTEGER)
        # Digits beyond a 64-bit integer are a code, not a quantity.
        too_long = values.filter(integers).cast(pl.Int64, strict=False).null_count() > 0
        if too_long or not (integers | values.str.contains(_NUMBER)).all():
            return None
        self.whole = self.whole and bool(integers.all())
        self.whole_decimals = self.whole_decimals and values.str.contains(_WHOLE_DECIMAL).all()
        self._note_decimals(values)
        return values.cast(pl.Float64)

    def _note_decimals(self, numbers: pl.Series) -> None:
        """Note the most decimals of numbers that are written out, zeros at their end aside."""
        if self.most_decimals > MOST_SUGGESTED:
            return
        if not numbers.str.contains(_DECIMALS).all():
            self.most_decimals = MOST_SUGGESTED + 1
            return
        digits = numbers.str.extract(_DECIMALS).str.len_bytes()
        self.most_decimals = max((self.most_decimals, *digits.fill_null(0).unique()))


def _all_whole(values: pl.Series) -> bool:
    numbers = values.cast(pl.Float64)
    # Larger floats no longer tell neighbouring integers apart, and their text has an exponent.
    return bool(((numbers == numbers.round(0)) & (numbers.abs() < 1e15)).all())
