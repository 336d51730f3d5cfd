"""Codes of dates, times and lengths of time in, a column of real ones out.

A moment is drawn inside its bin like any whole number (R21) and written as the column had it: as
text of the stated format, or typed. A date that is counted from another is that date, drawn
with the same words as in its own column, and the drawn difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.column_decoding import NumberDecoder, named_codes, with_specials
from pegsynth.codec.encoding import special_numbers
from pegsynth.kernels.arrays import Codes
from pegsynth.schema.calendar_units import per_day
from pegsynth.schema.date_text import LAST_DAY, DateText, is_temporal
from pegsynth.schema.dtypes import polars_dtype
from pegsynth.schema.feature import Feature
from pegsynth.schema.temporal import chain

if TYPE_CHECKING:
    from pegsynth.codec.bin_shape import Shape
    from pegsynth.schema.schema import Schema

_ANY = 1 << 62
_DIGITS = re.compile(r"(?:%[YymdHMS])+")


@dataclass(frozen=True)
class Moment:
    """A feature that a date consists of: the date itself, or the one that it is counted from.

    Parameters
    ----------
    place, word
        Its position among the codes, and that of its words.
    shape
        How values lie inside its bins.
    last
        The last moment of it that may be written.
    """

    feature: Feature
    place: int
    word: int
    shape: Shape | None
    last: int

    @cached_property
    def taken(self) -> Sequence[int]:
        """The moments that mean "missing" or "not applicable"."""
        return _taken(self.feature)

    @cached_property
    def numbers(self) -> NumberDecoder:
        """What draws whole numbers in its bins."""
        return NumberDecoder(_numbers_of(self.feature), pl.Int64(), self.shape)


class DateDecoder:
    """Draws a moment inside the bin of every code.

    Parameters
    ----------
    moments
        The feature, the one that it is counted from, and so on.
    dtype
        The type of the column, if it is known.
    counted
        Whether a date is counted from another here, which takes the time of day of both.
    """

    listed = False

    def __init__(
        self, moments: Sequence[Moment], dtype: pl.DataType | None, *, counted: bool
    ) -> None:
        self._moments = moments
        self._feature = moments[0].feature
        self._counted = counted
        self._text = DateText(self._feature)
        self._named = named_codes(self._feature, self._text.number)
        self.dtype: pl.DataType = self._type(dtype)

    def _type(self, dtype: pl.DataType | None) -> pl.DataType:
        feature = self._feature
        wanted = polars_dtype(feature.dtype) or dtype
        specials = [number for _, _, number in self._named]
        if None in specials:
            return pl.String()
        day = per_day(feature.resolution)
        within_days = (self._counted and day > 1) or any(edge % day for edge in feature.edges)
        if wanted == pl.Date and within_days:
            # Bins that begin within a day are not told by days.
            wanted = pl.Datetime("us")
        if isinstance(wanted, pl.Datetime) and not self._holds(wanted, specials):
            wanted = pl.Datetime("us", wanted.time_zone)
        if is_temporal(wanted, feature.kind):
            return wanted  # type: ignore[return-value]
        digits = _DIGITS.fullmatch(feature.format) is not None
        return wanted if wanted is not None and wanted.is_integer() and digits else pl.String()

    def _holds(self, dtype: pl.DataType, numbers: Sequence[float | None]) -> bool:
        """Say whether a type holds these moments; nanoseconds end in 2262."""
        moments = pl.Series(numbers, dtype=pl.Float64).cast(pl.Int64)
        read = self._text.typed(self._text.as_type(moments, dtype))
        return read is not None and read.equals(moments)

    def decode_rows(self, codes: Codes, words: NDArray[np.uint64]) -> pl.Series:
        """Return the column of whole rows of codes, with one word of every row for each number."""
        total = np.zeros(len(codes), dtype=np.int64)
        known = np.ones(len(codes), dtype=bool)
        # From the first date on, so that each is held before the next is counted from it.
        for moment in reversed(self._moments):
            feature, column = moment.feature, codes[:, moment.place]
            if feature is not self._feature:
                known &= column < feature.bin_count
            drawn = moment.numbers.decode(column, words[:, moment.word])
            values = np.minimum(drawn.fill_null(0).to_numpy(), moment.last - total)
            if feature.after is not None:
                values = _off_taken(feature, values, column, total, moment.taken)
            total = total + values
        own = codes[:, self._moments[0].place]
        return self._written(total, own, known | (own >= self._feature.bin_count))

    def _written(
        self, numbers: NDArray[np.int64], codes: Codes, known: NDArray[np.bool_]
    ) -> pl.Series:
        """Return numbers as the column has them, special categories included."""
        column = self._as_type(pl.Series(self._feature.name, numbers))
        if not known.all():
            nothing = pl.Series(column.name, [None], dtype=column.dtype)
            column = column.zip_with(pl.Series(known), nothing.new_from_index(0, len(column)))
        named = [(code, self._named_value(text, number)) for code, text, number in self._named]
        return with_specials(column, codes, self._feature, named)

    def _named_value(self, text: str, number: float | None) -> pl.Series:
        if self.dtype == pl.String:
            return pl.Series([text])
        whole = None if number is None else int(number)
        return self._as_type(pl.Series([whole], dtype=pl.Int64))

    def _as_type(self, numbers: pl.Series) -> pl.Series:
        if is_temporal(self.dtype, self._feature.kind):
            return self._text.as_type(numbers, self.dtype)
        return self._text.written(numbers).cast(self.dtype)


def date_decoder(
    schema: Schema,
    name: str,
    dtype: Any,
    *,
    words_of: Mapping[str, int],
    shapes: Mapping[str, Shape],
) -> DateDecoder:
    """Return the decoder of a feature of dates, times or lengths of time."""
    moments = [
        Moment(
            feature,
            schema.index(feature.name),
            words_of[feature.name],
            shapes.get(feature.name),
            last_moment(schema, feature),
        )
        for feature in chain(schema[name], schema.features)
    ]
    counted = any(name in (each.name, each.after) for each in schema.features if each.after)
    return DateDecoder(moments, polars_dtype(dtype), counted=counted)


def last_moment(schema: Schema, feature: Feature) -> int:
    """Return the last moment of a feature that may be written: by the calendar, or a bound.

    Times of a folded panel have one bound, which the sum of the times between rows may pass (R24).
    """
    if feature.kind not in ("date", "datetime"):
        return _ANY
    last = (LAST_DAY + 1) * per_day(feature.resolution) - 1
    panel = schema.panel
    wide = panel is not None and panel.wide
    later = [panel.at(panel.time, each) for each in panel.positions[1:]] if panel and wide else []
    if panel is None or feature.name not in later:
        return last
    return min(last, int(schema[panel.at(panel.time, 1)].public_bounds[1]))


def _taken(feature: Feature) -> list[int]:
    """Return the moments that mean "missing" or "not applicable"."""
    return sorted(map(int, special_numbers(feature, DateText(feature))))


def _off_taken(
    feature: Feature,
    values: NDArray[np.int64],
    codes: Codes,
    others: NDArray[np.int64],
    taken: Sequence[int],
) -> NDArray[np.int64]:
    """Move differences whose date would mean "missing" inside their bin, if it has another one."""
    edges = np.array(feature.closed_edges)
    bins = np.minimum(codes, feature.bin_count - 1)
    low, high = edges[bins], edges[bins + 1] - (bins < feature.bin_count - 1)
    for step in (step for far in range(1, len(taken) + 1) for step in (far, -far)):
        hit = np.isin(values + others, taken)
        if not hit.any():
            break
        near = values + step
        free = (low <= near) & (near <= high) & ~np.isin(near + others, taken)
        values = np.where(hit & free, near, values)
    return values


def _numbers_of(feature: Feature) -> Feature:
    """Return a feature of whole numbers with the same bins, which draws none that is taken."""
    taken = _taken(feature) if feature.after is None else []
    return Feature(
        feature.name,
        kind="numeric",
        dtype="int64",
        edges=feature.edges,
        highest=feature.highest,
        missing=tuple(map(str, taken)),
    )
