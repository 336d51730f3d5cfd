"""Which columns classification trees may split, for one target.

Ordinal and numeric features are split by their codes. A nominal feature enters as one
indicator per category, where that is asked for and it has few of them; otherwise its
categories are ordered by the first principal component of the target's distribution given
the category (Coppersmith, Hong and Hosking 1999), so that splits by rank separate what
differs.

Grow classification trees with scikit-learn and keep them as plain arrays.

A single tree splits nominal features category by category where they have few, a forest
splits them by rank; see `splits`. Measured on the built-in data, each does best that way.
Trees are not pruned: as in synthpop, only the smallest leaf limits them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.kernels.tree_descent import Nodes
from pegsynth.methods.baselines.target_fits import check_targets, fit_each, kept_rows
from pegsynth.methods.baselines.trees import TreeModel, Trees
from pegsynth.progress import Progress, quiet
from pegsynth.random import Words
from pegsynth.runtime import Stop

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


FOREST_FEATURES = "sqrt"
MOST_CELLS = 1 << 27
_SEEDS = 1 << 32
_LOT_SECONDS = 0.3
"""About how long a forest may grow before it looks whether it is still wanted."""


def fit_cart(
    codes: Codes,
    schema: Schema,
    *,
    words: Words,
    targets: Sequence[int] | None = None,
    sample_weight: Float64 | None = None,
    min_leaf: float = 5,
    max_rows: int | None = None,
    threads: int = 1,
    progress: Progress = quiet,
) -> TreeModel:
    """Grow one classification tree per target.

    Parameters
    ----------
    codes, schema
        One line of codes per row, and the codebook they follow.
    words
        Decides between splits that are equally good.
    targets
        Features to be predicted; all by default.
    sample_weight
        Weight of every row; a weight of 2 is the same as the row twice.
    min_leaf
        Smallest weight of a leaf: its number of rows, where there are no weights.
    max_rows
        Most rows to grow from, evenly spaced; all by default.
    threads
        How many targets are fitted at a time.
    progress
        Told of every finished target.

    Raises
    ------
    ParameterError
        A target has too many categories, or a parameter makes no sense.
    """
    chosen = check_targets(targets, schema)
    codes, weights = kept_rows(codes, schema, sample_weight, max_rows)
    how = _Growth(1, min_leaf, max_rows, forest=False)
    return _fit(
        codes, schema, weights, chosen, how, words=words, threads=threads, progress=progress
    )


def fit_forest(
    codes: Codes,
    schema: Schema,
    *,
    words: Words,
    trees: int = 20,
    targets: Sequence[int] | None = None,
    sample_weight: Float64 | None = None,
    min_leaf: float = 5,
    max_rows: int | None = None,
    progress: Progress = quiet,
) -> TreeModel:
    """Grow a random forest per target, one after the other; parameters as in `fit_cart`.

    Parameters
    ----------
    words
        Draws the bootstrap samples and the features that each split may use.
    trees
        Number of trees per target.
    """
    if trees < 1:
        raise ParameterError("a forest needs at least one tree")
    chosen = check_targets(targets, schema)
    codes, weights = kept_rows(codes, schema, sample_weight, max_rows)
    how = _Growth(trees, min_leaf, max_rows, forest=True)
    # scikit-learn's forests exchange the process-wide warning filters while they are fitted,
    # which two of them at a time would race for; so the targets follow each other.
    return _fit(codes, schema, weights, chosen, how, words=words, threads=1, progress=progress)


@dataclass(frozen=True)
class _Growth:
    """How the trees of one target are grown."""

    trees: int
    min_leaf: float
    max_rows: int | None
    forest: bool

    def __post_init__(self) -> None:
        if not (np.isfinite(self.min_leaf) and self.min_leaf > 0):
            raise ParameterError("min_leaf must be a positive number of rows")

    @property
    def note(self) -> str:
        """The choices in words; they tell parameters only, nothing of the data."""
        kind = f"random forest of {self.trees} trees" if self.forest else "classification tree"
        votes = ", trees vote with the shares in their leaves" if self.forest else ""
        limit = "" if self.max_rows is None else f"; grown from at most {self.max_rows:,} rows"
        return (
            f"one {kind} per feature, leaves of at least {self.min_leaf:g} rows, "
            f"no pruning{votes}{limit}"
        )

    def grow(
        self,
        matrix: NDArray[np.float32],
        outcome: NDArray[np.int64],
        weights: Float64,
        seed: int,
        stop: Stop,
    ) -> list[Any]:
        """Return scikit-learn's trees."""
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.tree import DecisionTreeClassifier

        # A little less than asked, so that rounding does not forbid leaves of just that weight.
        least = self.min_leaf * (1.0 - 1e-9) / weights.sum()
        if not self.forest:
            tree = DecisionTreeClassifier(min_weight_fraction_leaf=least, random_state=seed)
            return [tree.fit(matrix, outcome, sample_weight=weights).tree_]
        forest = RandomForestClassifier(
            min_weight_fraction_leaf=least,
            max_features=FOREST_FEATURES,
            random_state=seed,
            warm_start=True,
        )
        # A few trees at a time, so that growing can be stopped; a warm start gives each tree
        # the seed that it would have had among all, so their number does not matter.
        grown, lot = 0, 1
        while grown < self.trees:
            stop.check()
            began = time.monotonic()
            grown = min(grown + lot, self.trees)
            forest.set_params(n_estimators=grown).fit(matrix, outcome, sample_weight=weights)
            seconds = max(time.monotonic() - began, _LOT_SECONDS / self.trees)
            lot = max(1, int(lot * _LOT_SECONDS / seconds))
        return [tree.tree_ for tree in forest.estimators_]


def _fit(
    codes: Codes,
    schema: Schema,
    weights: Float64,
    targets: Sequence[int],
    how: _Growth,
    *,
    words: Words,
    threads: int,
    progress: Progress,
) -> TreeModel:
    _check_size(schema, targets, weights, how)
    seeds = {target: words.below(_SEEDS) for target in targets}

    def grow(target: int, stop: Stop) -> Trees:
        return _grow(codes, schema, target, weights, how, seeds[target], stop)

    trees = fit_each(targets, grow, threads=threads, progress=progress)
    return TreeModel(schema, trees, how.note)


def _grow(
    codes: Codes,
    schema: Schema,
    target: int,
    weights: Float64,
    how: _Growth,
    seed: int,
    stop: Stop,
) -> Trees:
    """Grow the trees of one target over the categories that occur."""
    seen, outcome = np.unique(codes[:, target], return_inverse=True)
    outcome = outcome.astype(np.int64)
    split = Splits(codes, schema, target, weights, outcome, one_by_one=not how.forest)
    if len(seen) == 1 or not split.features or weights.sum() < 2 * how.min_leaf:
        shares = np.bincount(outcome, weights) / weights.sum()
        return Trees(split.ranks, np.zeros(1, dtype=np.int64), _single_leaf(seen, shares))
    grown = how.grow(split.matrix(codes), outcome, weights, seed, stop)
    sizes = [tree.node_count for tree in grown]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return Trees(split.ranks, roots, _nodes(grown, roots, split, seen))


def _nodes(grown: list[Any], roots: NDArray[np.int64], split: Splits, seen: NDArray[Any]) -> Nodes:
    """Join the nodes of all trees and list the categories of every leaf."""
    features = np.array([*split.features, -1], dtype=np.int32)
    categories = np.array([*split.categories, -1], dtype=np.int32)
    column = np.concatenate([np.maximum(tree.feature, -1) for tree in grown])
    shift = np.repeat(roots, [tree.node_count for tree in grown])
    threshold = np.floor(np.concatenate([tree.threshold for tree in grown])).astype(np.int32)
    single = categories[column]
    leaf = column < 0
    shares = np.concatenate([tree.value[:, 0, :] for tree in grown])
    shares = np.where(leaf[:, None], shares / shares.sum(axis=1, keepdims=True), 0.0)
    entry_node, entry_class = np.nonzero(shares)
    return Nodes(
        features[column],
        np.where(single >= 0, -1 - single, threshold).astype(np.int32),
        _children([tree.children_left for tree in grown], shift, leaf),
        _children([tree.children_right for tree in grown], shift, leaf),
        np.concatenate([[0], np.cumsum(np.bincount(entry_node, minlength=len(column)))]),
        seen[entry_class].astype(np.int32),
        shares[entry_node, entry_class],
    )


def _children(
    parts: list[NDArray[np.int64]], shift: NDArray[np.int64], leaf: NDArray[np.bool_]
) -> NDArray[np.int32]:
    return np.where(leaf, -1, np.concatenate(parts) + shift).astype(np.int32)


def _single_leaf(seen: NDArray[Any], shares: Float64) -> Nodes:
    none = np.full(1, -1, dtype=np.int32)
    start = np.array([0, len(seen)], dtype=np.int64)
    return Nodes(none, none, none, none, start, seen.astype(np.int32), shares)


def _check_size(schema: Schema, targets: Sequence[int], weights: Float64, how: _Growth) -> None:
    leaves = min(len(weights), weights.sum() / how.min_leaf)
    for target in targets:
        classes = schema.category_counts[target]
        if 2 * leaves * classes * how.trees > MOST_CELLS:
            raise ParameterError(
                f"feature {schema.names[target]!r}: trees over {classes:,} categories would be "
                "too large; set max_rows, a larger min_leaf or fewer trees"
            )
