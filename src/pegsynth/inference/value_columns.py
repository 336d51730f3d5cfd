"""The number that stands for a code, where the meaning of a feature is numeric.

Measures that need quantities (regressions, a mean charge) take one number per code, so
that a table of values and a table of bin labels give the same figure.

The numbers of numeric features as they stand in a table, beside its codes.

Goes in: frames of a table and their codes, batch by batch. Comes out: `TableValues`, a column
of float64 for every numeric feature and every one of dates or times, NaN where a row has no
number, and the weights of a table that has some (R28). At most `MOST_VALUES` numbers are kept
of a table: beyond that every second row is let go, then every second of these, so that memory is
bounded and no row is preferred.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from pegsynth.codec.column_decoding import nearest_multiples
from pegsynth.codec.encoding import moments_of
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.schema import Schema
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import NumberText, parsed_number


def is_numeric(feature: Feature) -> bool:
    """Say whether a feature has numbers: it is binned, or ordinal with numbers as categories.

    Nominal categories are names, even those that look like numbers.
    """
    if feature.binned:
        return True
    return (
        feature.kind == "ordinal"
        and feature.bin_count > 0
        and all(parsed_number(text) is not None for text in feature.categories)
    )


def numeric_values(feature: Feature) -> Float64:
    """Return one number per code; NaN where a code has none.

    Parameters
    ----------
    feature
        A column of the schema.

    Returns
    -------
    array
        The midpoint of a bin, which for a column of whole numbers is the mean of those in the
        bin; the number that an ordinal category spells. NaN for missing, not applicable and
        unknown, and for every code of a feature that `is_numeric` says has no numbers.
    """
    values = np.full(feature.category_count, np.nan)
    if not is_numeric(feature):
        return values
    listed = _midpoints(feature) if feature.binned else _spelled(feature)
    values[: feature.bin_count] = listed
    return values


def _midpoints(feature: Feature) -> Float64:
    edges = np.asarray(feature.closed_edges, dtype=np.float64)
    low, high = edges[:-1], edges[1:].copy()
    if feature.integer:
        # The upper edge belongs to the next bin, except the last one.
        high[:-1] -= 1
    # Halved first: the sum of two floats can overflow.
    return np.asarray(low / 2 + high / 2, dtype=np.float64)


def _spelled(feature: Feature) -> Float64:
    numbers = (parsed_number(text) for text in feature.categories)
    return np.array([math.nan if number is None else number for number in numbers])


MOST_VALUES = 1 << 26
_FEWEST_NUMBERS = 3


@dataclass(frozen=True)
class TableValues:
    """The numbers of one table, row by row.

    Parameters
    ----------
    columns
        By feature; NaN where a row has no number.
    every
        Every so manieth row was kept, the first one first; 1 where all were.
    labelled
        Features of which the table holds labels of bins in place of numbers.
    weights
        How much each row counts; None where all count alike.
    replicates
        One line of weights for each replicate; None where there are none.
    """

    columns: dict[str, Float64]
    every: int = 1
    labelled: frozenset[str] = frozenset()
    weights: Float64 | None = None
    replicates: Float64 | None = None

    def has(self, name: str) -> bool:
        """Say whether the table has numbers of a feature."""
        return name in self.columns and name not in self.labelled


def value_features(schema: Schema) -> tuple[str, ...]:
    """Name the features whose numbers are compared: numeric ones, and ordinal ones of numbers.

    Two numbers are no more than two categories, which tables of codes compare.
    """
    return tuple(f.name for f in schema.features if f.kind == "numeric" or _counts(f))


def moment_features(schema: Schema) -> tuple[str, ...]:
    """Name the features of dates and times, whose moments are compared by their resolution."""
    return tuple(f.name for f in schema.features if f.kind in TEMPORAL)


def _counts(feature: Feature) -> bool:
    ordinal = feature.kind == "ordinal" and feature.bin_count >= _FEWEST_NUMBERS
    return ordinal and is_numeric(feature)


@dataclass
class ValueCollector:
    """Gathers the numbers of a table while it is read.

    Parameters
    ----------
    schema
        The codebook.
    weights
        Columns of weights that the table has.
    most
        Numbers kept at most.
    """

    schema: Schema
    weights: tuple[str, ...] = ()
    most: int = MOST_VALUES
    _parts: list[Float64] = field(default_factory=list)
    _labelled: set[str] = field(default_factory=set)
    _every: int = 1
    _seen: int = 0
    _kept: int = 0

    def __post_init__(self) -> None:
        self._names = (*value_features(self.schema), *moment_features(self.schema))
        self._numbers = NumberText(self.schema.dialect)

    def add(self, frame: pl.DataFrame, codes: Codes) -> None:
        """Take the rows of a batch; `codes` are theirs, in the order of the schema's features."""
        if not (self._names or self.weights):
            return
        part = np.empty((len(self._names) + len(self.weights), frame.height))
        for line, name in enumerate(self._names):
            part[line] = self._column(frame, codes, name)
        for line, name in enumerate(self.weights, start=len(self._names)):
            part[line] = _weight(frame.get_column(name), self._numbers)
        first = -self._seen % self._every
        self._seen += frame.height
        self._keep(part[:, first :: self._every])

    def finish(self) -> TableValues:
        """Return what was gathered."""
        lines = len(self._names) + len(self.weights)
        every = np.concatenate(self._parts, axis=1) if self._parts else np.empty((lines, 0))
        weights = every[len(self._names) :]
        return TableValues(
            dict(zip(self._names, every, strict=False)),
            self._every,
            frozenset(self._labelled),
            weights[0] if len(weights) else None,
            weights[1:] if len(weights) > 2 else None,
        )

    def _column(self, frame: pl.DataFrame, codes: Codes, name: str) -> Float64:
        place = self.schema.index(name)
        feature = self.schema.features[place]
        if name not in frame.columns:
            return np.full(frame.height, np.nan)
        numbers, labelled = numbers_of(
            frame.get_column(name), codes[:, place], feature, self._numbers
        )
        if labelled:
            self._labelled.add(name)
        return numbers

    def _keep(self, part: Float64) -> None:
        self._parts.append(part)
        self._kept += part.shape[1]
        while self._kept * len(part) > self.most and self._kept > 1:
            together = np.concatenate(self._parts, axis=1)[:, ::2].copy()
            self._parts, self._kept = [together], together.shape[1]
            self._every *= 2


def numbers_of(
    values: pl.Series, codes: Codes, feature: Feature, written: NumberText
) -> tuple[Float64, bool]:
    """Return the number in every row of a column, and whether some hold the label of a bin.

    Parameters
    ----------
    values, codes
        A column and its codes. A row whose code is no bin (missing, not applicable, without a
        code) has no number, nor has one that is not finite.
    feature
        What the column is.
    written
        How numbers are written in columns of text.
    """
    inside = codes < feature.bin_count
    if feature.kind in TEMPORAL:
        moments = moments_of(DateText(feature), values)
        labelled = bool((np.isnan(moments) & inside).any())
        moments[~inside] = np.nan
        return moments, labelled
    if feature.kind != "numeric":
        spelled = np.append(numeric_values(feature), np.nan)
        return np.asarray(spelled[np.minimum(codes, feature.category_count)]), False
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        numbers = _floats(values.cast(pl.Float64))
    else:
        text = as_text(values)
        numbers = _floats(written.numbers(text))
        lost = np.isnan(numbers) & inside
        if lost.any():
            numbers[lost] = _looked_at(text.filter(pl.Series(lost)), written)
    labelled = bool((np.isnan(numbers) & inside).any())
    numbers[~inside | ~np.isfinite(numbers)] = np.nan
    return _recoded(numbers, feature), labelled


def _recoded(numbers: Float64, feature: Feature) -> Float64:
    """Round and bound numbers as the codebook says; those of a release are so already."""
    recoding = feature.recoding
    if recoding is None or not recoding.bounds_numbers:
        return numbers
    if recoding.round is not None:
        numbers = nearest_multiples(numbers, recoding.round)
    bottom = -np.inf if recoding.bottom is None else recoding.bottom
    return np.clip(numbers, bottom, np.inf if recoding.top is None else recoding.top)


def _looked_at(text: pl.Series, written: NumberText) -> Float64:
    """Read texts one by one, each distinct one once: numbers between spaces."""
    distinct = text.unique()
    found = [written.number(each.strip()) if each else None for each in distinct]
    numbers = pl.Series(found, dtype=pl.Float64)
    return _floats(text.replace_strict(distinct, numbers, default=None, return_dtype=pl.Float64))


def _weight(values: pl.Series, written: NumberText) -> Float64:
    """Read a column of weights; what is no positive number does not count."""
    if values.dtype == pl.String and not written.usual:
        values = written.plain(values)
    numbers = _floats(values.cast(pl.Float64, strict=False))
    numbers[~(np.isfinite(numbers) & (numbers > 0))] = 0.0
    return numbers


def _floats(values: pl.Series) -> Float64:
    numbers: Any = values.to_numpy(writable=True)
    return np.asarray(numbers, dtype=np.float64)
