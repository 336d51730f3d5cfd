"""Which columns classification trees may split, for one target.

Ordinal and numeric features are split by their codes. A nominal feature enters as one
indicator per category, where that is asked for and it has few of them; otherwise its
categories are ordered by the first principal component of the target's distribution given
the category (Coppersmith, Hong and Hosking 1999), so that splits by rank separate what
differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Codes, Float64

if TYPE_CHECKING:
    from pegsynth.schema import Schema

FEW_CATEGORIES = 32
_MOST_ORDERED_CELLS = 1 << 24


class Splits:
    """The columns that trees of one target may split.

    `features` and `categories` describe the columns: the feature, and the category of an
    indicator, or -1 for the feature's ranks.
    """

    def __init__(
        self,
        codes: Codes,
        schema: Schema,
        target: int,
        weights: Float64,
        outcome: NDArray[np.int64],
        *,
        one_by_one: bool,
    ) -> None:
        self.features: list[int] = []
        self.categories: list[int] = []
        ranks = []
        for index, feature in enumerate(schema.features):
            count = feature.category_count
            ranks.append(np.arange(count, dtype=np.int32))
            nominal = feature.kind == "nominal" and count > 2
            if index == target:
                continue
            if nominal and one_by_one and count <= FEW_CATEGORIES:
                self.features += [index] * count
                self.categories += range(count)
                continue
            if nominal:
                ranks[index] = category_ranks(codes[:, index], outcome, weights, count)
            self.features.append(index)
            self.categories.append(-1)
        self._by_feature = ranks
        self.ranks: NDArray[np.int32] = np.concatenate(ranks)

    def matrix(self, codes: Codes) -> NDArray[np.float32]:
        """Write out the columns."""
        out = np.empty((len(codes), len(self.features)), dtype=np.float32)
        for column, (index, category) in enumerate(
            zip(self.features, self.categories, strict=True)
        ):
            if category < 0:
                out[:, column] = self._by_feature[index][codes[:, index]]
            else:
                out[:, column] = codes[:, index] == category
        return out


def category_ranks(
    codes: NDArray[np.unsignedinteger[Any]],
    outcome: NDArray[np.int64],
    weights: Float64,
    count: int,
) -> NDArray[np.int32]:
    """Rank the categories of a predictor by what they say of the outcome.

    Categories are placed on the first principal component of their outcome distributions;
    one that never occurs has the overall distribution.
    """
    classes = int(outcome.max()) + 1
    if count * classes > _MOST_ORDERED_CELLS:
        return np.arange(count, dtype=np.int32)
    table = np.bincount(codes.astype(np.int64) * classes + outcome, weights, count * classes)
    table = table.reshape(count, classes)
    mass = table.sum(axis=1)
    overall = table.sum(axis=0) / mass.sum()
    held = mass > 0
    centred = np.zeros_like(table)
    centred[held] = table[held] / mass[held, None] - overall
    _, vectors = np.linalg.eigh((centred * mass[:, None]).T @ centred)
    axis = vectors[:, -1] * np.sign(vectors[np.argmax(np.abs(vectors[:, -1])), -1])
    ranks = np.empty(count, dtype=np.int32)
    ranks[np.argsort(centred @ axis, kind="stable")] = np.arange(count, dtype=np.int32)
    return ranks
