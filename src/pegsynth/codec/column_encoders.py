"""The encoders of all features of a schema, those of dates that are counted from others too.

A feature with `after` is read off two columns of the same row: its own date and the one that it is
counted from. The rule is public and looks at one row (R30): a date before the other counts as
the same moment, and where the other is not known the difference is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.encoding import ABSENT, Codes, ColumnEncoder
from pegsynth.schema.date_text import DateText
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import NumberText

if TYPE_CHECKING:
    from pegsynth.schema.schema import Schema


class DifferenceEncoder(ColumnEncoder):
    """Turns dates into codes of how long after another date they are.

    Parameters
    ----------
    feature
        The feature, with `after`.
    other
        The feature that it is counted from.
    spare
        As for `ColumnEncoder`.
    """

    def __init__(self, feature: Feature, other: Feature, *, spare: bool = False) -> None:
        super().__init__(feature, spare=spare)
        self._other = other.name
        self._other_text = DateText(other)
        special = (*other.missing, *other.not_applicable)
        found = (self._other_text.number(text) for text in special)
        self._other_special = np.array([number for number in found if number is not None])

    def encode(self, values: pl.Series) -> Codes:
        """Return codes of texts that name a category; dates alone have none."""
        return self._resolve(as_text(values))

    def encode_batch(self, batch: pl.DataFrame) -> Codes:
        """Return the code of every row."""
        own = batch.get_column(self.feature.name)
        text = as_text(own)
        moments = moments_of(DateText(self.feature), own)
        codes = np.zeros(len(own), dtype=np.int64)
        strange = np.isnan(moments)
        if strange.any():
            codes[strange] = self._resolve(text.filter(pl.Series(strange)))
        counted = ~strange
        for number, code in self._numbers.items():
            hit = moments == number
            codes[hit] = code
            counted &= ~hit
        others = np.full(len(own), np.nan)
        if self._other in batch.columns:
            others = moments_of(self._other_text, batch.get_column(self._other))
            others[np.isin(others, self._other_special)] = np.nan
        alone = counted & np.isnan(others)
        if alone.any():
            codes[alone] = self._counted(ABSENT, int(np.count_nonzero(alone)))
        both = counted & ~alone
        # Rows in which the order is violated count as the same moment.
        differences = np.maximum(moments[both] - others[both], 0.0)
        codes[both] = np.searchsorted(self._inner_edges, differences, side="right")
        return codes


def column_encoders(schema: Schema, *, spare: bool = False) -> list[ColumnEncoder]:
    """Return an encoder for every feature of a schema, in order."""
    numbers = NumberText(schema.dialect)
    return [
        ColumnEncoder(feature, spare=spare, numbers=numbers)
        if feature.after is None
        else DifferenceEncoder(feature, schema[feature.after], spare=spare)
        for feature in schema.features
    ]


def moments_of(text: DateText, values: pl.Series) -> NDArray[np.float64]:
    """Return the number of every moment, NaN for none."""
    typed = text.typed(values)
    numbers = text.numbers(as_text(values)) if typed is None else typed
    return numbers.cast(pl.Float64).to_numpy().copy()
