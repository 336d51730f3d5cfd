"""Codes of one feature in, a column of values out.

Categories are looked up. Numbers are drawn inside their public bin, one 64-bit word per
cell, uniformly or by a shape that was paid for (R21), and as multiples of a step where values
were rounded (R31); no value of the data is ever used. The type of the column follows from the
schema and the types asked for, never from the codes, so every batch has the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from operator import le
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.encoding import special_number, special_numbers
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.schema.binning import as_float, exact
from pegsynth.schema.dtypes import polars_dtype, typed_labels
from pegsynth.schema.feature import Feature, kept_codes
from pegsynth.schema.keys import UNKNOWN_LABEL
from pegsynth.schema.number_text import NumberText

if TYPE_CHECKING:
    from pegsynth.codec.bin_shape import Shape


def multiples_inside(
    values: NDArray[Any], bins: NDArray[np.integer[Any]], edges: Sequence[float], step: float
) -> Float64:
    """Return for every value a multiple of `step` in the same bin.

    It is the nearest one that the bin holds. A bin without any, which no rounded value falls
    in, gives the first multiple above its lower edge, or the last before the last edge. Nothing
    lies beyond the outer edges.
    """
    size = exact(step)
    first, last = _first_and_last(edges, size)
    wanted = _steps(values.astype(np.float64), step)
    steps = np.clip(wanted, first[bins], np.maximum(first, last)[bins])
    made = times_step(np.minimum(steps, last[-1]), size)
    held: Float64 = np.clip(made, edges[0], edges[-1])
    return held


def nearest_multiples(values: Float64, step: float) -> Float64:
    """Return the nearest multiples, the upper of two as near."""
    steps = _steps(values, step)
    # Numbers with so many steps in them have no other multiple near them.
    return np.where(np.isfinite(steps), times_step(steps, exact(step)), values)


def _steps(values: Float64, step: float) -> Float64:
    with np.errstate(over="ignore"):
        steps: Float64 = np.floor(values / step + 0.5)
    return steps


def times_step(steps: Float64, size: Fraction) -> Float64:
    """Return so many steps, divided once: three steps of 0.1 are 0.3."""
    with np.errstate(over="ignore"):
        made: Float64 = steps * float(size.numerator) / float(size.denominator)
    return made


def _first_and_last(edges: Sequence[float], size: Fraction) -> tuple[Float64, Float64]:
    """Return the first and the last multiple of every bin, counted in steps."""
    exact_edges = [exact(edge) / size for edge in edges]
    first = [math.ceil(edge) for edge in exact_edges[:-1]]
    last = [math.ceil(edge) - 1 for edge in exact_edges[1:]]
    last[-1] = math.floor(exact_edges[-1])
    return np.array(list(map(as_float, first))), np.array(list(map(as_float, last)))


How = Literal["values", "labels"]

MOST_LISTED = 1 << 12
_MOST_WIDTH = 1 << 62
_EXACT = 2.0**53


class LabelDecoder:
    """Looks up a text for every code: its category, the label of its bin, or a description."""

    def __init__(
        self,
        name: str,
        labels: Sequence[str | None],
        dtype: pl.DataType | None = None,
        *,
        listed: bool = False,
    ) -> None:
        self._name = name
        self._labels = typed_labels(labels, dtype or pl.String())
        self.listed = listed and self._labels.dtype == pl.String and len(labels) <= MOST_LISTED
        if self.listed:
            self._labels = self._labels.cast(
                pl.Enum(self._labels.drop_nulls().unique(maintain_order=True))
            )

    @property
    def dtype(self) -> pl.DataType:
        """Type of the column."""
        return self._labels.dtype

    def decode(self, codes: Codes, words: NDArray[np.uint64] | None) -> pl.Series:
        """Return the column; `words` are not used."""
        positions = pl.Series(codes.astype(np.uint32))
        return self._labels.gather(positions).alias(self._name)


def written_labels(feature: Feature) -> list[str | None]:
    """Return what is written for every code: its label, or the text that it was kept as."""
    labels: list[str | None] = list(feature.labels)
    if feature.missing_code is not None:
        labels[feature.missing_code] = None
    for code, text in kept_codes(feature).items():
        labels[code] = text
    return labels


class NumberDecoder:
    """Draws a number inside the bin of every code: by a shape, or uniformly."""

    listed = False

    def __init__(
        self,
        feature: Feature,
        dtype: pl.DataType | None,
        shape: Shape | None = None,
        *,
        written: NumberText | None = None,
    ) -> None:
        self._feature = feature
        self._shape = shape
        self._written = written or NumberText()
        self._taken = sorted(special_numbers(feature, self._written))
        self._low: NDArray[Any]
        self._high: NDArray[Any]
        self._draw_dtype = self._drawn_type(dtype)
        self._named = named_codes(feature, lambda text: special_number(text, self._written))
        text = not all(_fits(number, self._draw_dtype) for _, _, number in self._named)
        self.dtype: pl.DataType = pl.String() if text or dtype == pl.String else self._draw_dtype
        if self._draw_dtype.is_integer():
            self._start, self._width = self._whole_draws()

    def decode(self, codes: Codes, words: NDArray[np.uint64] | None) -> pl.Series:
        """Return the column, drawing cell i with word i."""
        feature = self._feature
        if words is None:
            words = np.zeros(len(codes), dtype=np.uint64)
        bins = np.minimum(codes, feature.bin_count - 1)
        drawn: NDArray[Any]
        if self._shape is not None:
            values = self._shape.values(bins, _unit(words))
            whole = self._draw_dtype.is_integer()
            drawn = self._held(np.floor(values) if whole else values, bins, bins)
        elif self._draw_dtype.is_integer():
            drawn = self._whole(bins, words)
        else:
            low, high = self._low[bins].astype(np.float64), self._high[bins].astype(np.float64)
            place = _unit(words)
            # Not low + place * (high - low): the difference of two floats can overflow.
            drawn = self._held((1 - place) * low + place * high, bins, bins)
            drawn = self._rounded(drawn, bins)
        if feature.recoding is not None and feature.recoding.round is not None:
            edges, step = feature.closed_edges, feature.recoding.round
            drawn = self._held(multiples_inside(drawn, bins, edges, step), 0, -1)
        drawn = self._off_taken(drawn, bins)
        column = pl.Series(feature.name, drawn).cast(self._draw_dtype)
        if self.dtype == pl.String:
            column = self._written.texts(column)
        if feature.category_count == feature.bin_count:
            return column
        named = [(code, self._named_value(text, number)) for code, text, number in self._named]
        return with_specials(column, codes, feature, named)

    def _drawn_type(self, dtype: pl.DataType | None) -> pl.DataType:
        """Return the type that numbers are drawn in: one that has numbers in every bin."""
        if dtype is not None and dtype.is_integer():
            low, high = self._whole_bins()
            types = (dtype, pl.UInt64() if dtype == pl.UInt64 else pl.Int64())
            inside = all(_fits(end, each) for end in (low[0], high[-1]) for each in types)
            if inside and all(map(le, low, high)):
                kind = np.uint64 if dtype == pl.UInt64 else np.int64
                self._low, self._high = np.array(low, kind), np.array(high, kind)
                return dtype
        if dtype == pl.Float32:
            self._low, self._high = self._float_bins(np.float32)
            if (self._low <= self._high).all():
                return dtype
        self._low, self._high = self._float_bins(np.float64)
        return pl.Float64()

    def _whole_bins(self) -> tuple[list[int], list[int]]:
        """First and last whole number of every bin."""
        edges = self._feature.closed_edges
        low = [math.ceil(edge) for edge in edges[:-1]]
        return low, [*(each - 1 for each in map(math.ceil, edges[1:-1])), math.floor(edges[-1])]

    def _whole_draws(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """First whole number to draw of every bin and how many, taken numbers left out.

        Of a bin with very many the middle is drawn, whose numbers a float can count.
        """
        low, high = self._whole_bins()
        width = [last - first + 1 for first, last in zip(low, high, strict=True)]
        start = [
            first + max(each - _MOST_WIDTH, 0) // 2 for first, each in zip(low, width, strict=True)
        ]
        starts = np.array(start, dtype=self._low.dtype)
        widths = np.array([min(each, _MOST_WIDTH) for each in width], dtype=np.int64)
        taken = np.zeros_like(widths)
        for number in self._taken:
            inside = (number >= starts) & (number - starts.astype(np.float64) < widths)
            taken += inside & number.is_integer()
        # A bin of taken numbers only keeps them: there is nothing else to draw.
        self._steps_over = (taken > 0) & (taken < widths)
        return starts, widths - np.where(self._steps_over, taken, 0)

    def _whole(self, bins: Codes, words: NDArray[np.uint64]) -> NDArray[np.integer[Any]]:
        width, start = self._width[bins], self._start[bins]
        steps = np.minimum((_unit(words) * width).astype(np.int64), width - 1)
        values: NDArray[np.integer[Any]] = start + steps.astype(start.dtype)
        if self._steps_over.any():
            steps_over = self._steps_over[bins]
            for number in self._taken:
                values += steps_over & number.is_integer() & (start <= number) & (values >= number)
        return values

    def _off_taken(self, values: NDArray[Any], bins: Codes) -> NDArray[Any]:
        """Move numbers that would be read as "missing" or "not applicable" inside their bin."""
        for number in self._taken:
            hit = values == number
            for place in np.unique(bins[hit]).tolist():
                values[hit & (bins == place)] = self._free(number, place)
        return values

    def _free(self, number: float, place: int) -> float:
        """Return a neighbour of a number that a bin holds, and that means nothing else."""
        whole, decimals = self._draw_dtype.is_integer(), self._feature.decimals or 0
        low, high = self._low[place].item(), self._high[place].item()
        near: float
        for far in range(1, len(self._taken) + 2):
            for step in (far, -far):
                near = round(number + step * 10.0**-decimals, decimals)
                near = int(number) + step if whole else near
                if low <= near <= high and near not in self._taken:
                    return near
        # No other number of so many decimals is there; one between them always is.
        near = number
        for _ in () if whole else self._taken:
            near = near / 2 + (high if number < high else low) / 2
            if near not in self._taken:
                return near
        return number

    def _held(self, values: NDArray[Any], first: Any, last: Any) -> NDArray[Any]:
        """Return numbers in the type that is drawn, held between the ends of bins."""
        low, high = self._low[first], self._high[last]
        least, most = low.astype(np.float64), high.astype(np.float64)
        if self._draw_dtype.is_integer():
            # A float of the last number of a type may lie beyond it.
            least = np.where(np.abs(least) > _EXACT, np.nextafter(least, np.inf), least)
            most = np.where(np.abs(most) > _EXACT, np.nextafter(most, -np.inf), most)
        held: NDArray[Any] = np.clip(np.clip(values, least, most).astype(low.dtype), low, high)
        return held

    def _rounded(self, values: NDArray[np.floating[Any]], bins: Codes) -> NDArray[np.floating[Any]]:
        """Cut values to the decimals of the feature, without leaving their bin."""
        decimals = self._feature.decimals
        if decimals is None:
            return values
        scale = 10.0**decimals
        with np.errstate(over="ignore"):
            cut = np.floor(values.astype(np.float64) * scale) / scale
        return self._held(cut, bins, bins)

    def _float_bins(self, kind: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Smallest and largest number of every bin that a type of floats can hold."""
        edges = np.asarray(self._feature.closed_edges, dtype=np.float64)
        with np.errstate(over="ignore"):
            low: NDArray[Any] = edges[:-1].astype(kind)
            high: NDArray[Any] = edges[1:].astype(kind)
        low = np.where(low < edges[:-1], np.nextafter(low, kind(np.inf)), low)
        beyond = high >= edges[1:]
        beyond[-1] = high[-1] > edges[-1]
        return low, np.where(beyond, np.nextafter(high, kind(-np.inf)), high)

    def _named_value(self, name: str, number: float | None) -> pl.Series:
        value: str | float | None = name
        if self.dtype != pl.String and number is not None:
            value = int(number) if self.dtype.is_integer() else number
        return pl.Series([value], dtype=self.dtype)


def with_specials(
    column: pl.Series, codes: Codes, feature: Feature, named: Iterable[tuple[int, pl.Series]]
) -> pl.Series:
    """Return a column with what stands for its special codes.

    Parameters
    ----------
    named
        The codes that a text of the schema names, and a column of the one value of each.
    """
    other = UNKNOWN_LABEL if column.dtype == pl.String else None
    nothing, unknown = (pl.Series([value], dtype=column.dtype) for value in (None, other))
    marks = ((feature.missing_code, nothing), (feature.unknown_code, unknown), *named)
    for code, value in marks:
        if code is not None:
            filling = value.new_from_index(0, len(column)).alias(column.name)
            column = filling.zip_with(pl.Series(codes == code), column)
    return column


def named_codes(
    feature: Feature, number_of: Callable[[str], float | None]
) -> list[tuple[int, str, float | None]]:
    """Return the codes that a text of the schema names, with it and the number that it is, if any.

    They are "not applicable", and the missing codes that are told apart.
    """
    found = list(kept_codes(feature).items())
    if feature.not_applicable_code is not None:
        found.insert(0, (feature.not_applicable_code, feature.not_applicable[0]))
    return [(code, text, number_of(text)) for code, text in found]


def column_decoder(
    feature: Feature,
    how: How,
    dtype: pl.DataType | None,
    *,
    listed: bool = False,
    shape: Shape | None = None,
    written: NumberText | None = None,
) -> LabelDecoder | NumberDecoder:
    """Choose how a feature is decoded; the schema's own type comes before `dtype`.

    With `listed`, text comes as positions in a list of categories, if the list is short;
    `written` says how numbers are written in columns of text.
    """
    wanted = polars_dtype(feature.dtype) or dtype
    if wanted == pl.String and isinstance(dtype, pl.Categorical | pl.Enum):
        wanted = dtype
    if not feature.binned:
        return LabelDecoder(feature.name, written_labels(feature), wanted, listed=listed)
    if how == "values":
        return NumberDecoder(feature, wanted, shape, written=written)
    return LabelDecoder(feature.name, written_labels(feature), listed=listed)


def _unit(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers in [0, 1), multiples of 2**-53."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _fits(number: float | None, dtype: pl.DataType) -> bool:
    if number is None:
        return False
    if not dtype.is_integer():
        return True
    bits = int(str(dtype).lstrip("UInt").rstrip("()") or 64)
    signed = dtype.is_signed_integer()
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return number == int(number) and low <= number < high
