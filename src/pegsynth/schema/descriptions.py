"""Columns that describe the codes of another one: neither read nor modelled, written from it.

Which text belongs to which code is public, so a description is a function of the synthetic code
and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.kernels.arrays import Codes
from pegsynth.schema.dtypes import typed_labels
from pegsynth.schema.feature import Feature


def check_descriptions(columns: Sequence[Feature]) -> None:
    """Refuse descriptions of what is no feature, or that lack a text for a category."""
    by_name = {column.name: column for column in columns}
    for column in columns:
        if column.label_of is None:
            continue
        of = by_name.get(column.label_of)
        if of is None or not of.modelled or of.binned:
            raise SchemaError(
                f"feature {column.name!r}: label_of names no feature with categories; give the "
                "name of the column that holds the codes"
            )
        described_labels(column, of)


def described_labels(column: Feature, of: Feature) -> list[str | None]:
    """Return the text of every code of a feature; special ones have none.

    Raises
    ------
    SchemaError
        A category has no text.
    """
    # A group is called by a name that somebody can read.
    named = {name: name for name, _ in of.recoding.groups} if of.recoding else {}
    texts = named | dict(column.value_labels or of.value_labels)
    for number, category in enumerate(of.categories, start=1):
        if category not in texts:
            raise SchemaError(
                f"feature {column.name!r}: category number {number} of {of.name!r} has no text; "
                "list it under value_labels of either, or in the file that is named there"
            )
    listed: list[str | None] = [texts[category] for category in of.categories]
    return listed + [None] * (of.category_count - of.bin_count)


class DescriptionDecoder:
    """Looks up the description of every code of another feature."""

    words = False
    listed = False

    def __init__(self, column: Feature, of: Feature) -> None:
        self._name = column.name
        self._labels = typed_labels(described_labels(column, of), pl.String())

    @property
    def dtype(self) -> pl.DataType:
        """Type of the column."""
        return self._labels.dtype

    def decode(self, codes: Codes, words: NDArray[np.uint64] | None) -> pl.Series:
        """Return the column; `words` are not used."""
        positions = pl.Series(codes.astype(np.uint32))
        return self._labels.gather(positions).alias(self._name)
