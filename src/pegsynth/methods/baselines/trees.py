"""Classification trees and forests as arrays: the imputation models of synthpop.

A synthetic value is drawn from the distribution of the leaf that its row reaches (CART,
Reiter 2003), or from the votes of many trees (random forests, Caiola and Reiter 2010),
each tree voting with the distribution of its leaf. A category that no row of a leaf has
gets probability 0 there.

scikit-learn grows the trees. Ordinal and numeric features are split by their codes. A nominal
feature enters as one indicator per category in a single tree, where it has few of them; otherwise
its categories are ordered by the first principal component of the target's distribution given
the category (Coppersmith, Hong and Hosking 1999), so that splits by rank separate what
differs. Measured on the built-in data, trees and forests do best that way. Trees are not pruned:
as in synthpop, only the smallest leaf limits them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.kernels.tree_descent import Nodes, leaves_of, vote_shares
from pegsynth.methods.baselines.target_fits import (
    Arrays,
    Integers,
    RowsToFit,
    by_target,
    cell_starts,
    check_rows,
    damaged,
    of_targets,
    pack_text,
    take,
    unpack_text,
)
from pegsynth.random import Words
from pegsynth.runtime import Stop, check_trees

if TYPE_CHECKING:
    from pegsynth.schema import Schema


@dataclass(frozen=True)
class Trees:
    """All trees of one target.

    Parameters
    ----------
    ranks
        Rank of every cell (feature, code) of the schema: the order in which the
        categories of a feature are split for this target.
    roots
        Root node of every tree.
    nodes
        Nodes of all trees, numbered together.
    """

    ranks: NDArray[np.int32]
    roots: Integers
    nodes: Nodes


@dataclass(frozen=True)
class TreeModel:
    """Trees for some or all features given the others.

    Parameters
    ----------
    schema
        The public codebook.
    trees
        By target feature.
    note
        How the trees were grown.
    """

    schema: Schema
    trees: Mapping[int, Trees] = field(repr=False)
    note: str = ""

    def probabilities(self, target: int, rows: Codes) -> Float64:
        """Return the probabilities of the target's categories, one line per row of codes."""
        if target not in self.trees:
            raise ParameterError(f"feature {target} was not among the targets of this model")
        check_rows(rows, self.schema, ignore=target)
        held = self.trees[target]
        out = np.empty((len(rows), self.schema.category_counts[target]))
        plain = np.ascontiguousarray(rows, dtype=np.int32)
        starts = cell_starts(self.schema)
        vote_shares(plain, starts, held.ranks, held.nodes, held.roots, out)
        return out

    def leaves(self, target: int, rows: Codes) -> Integers:
        """Return the leaf of the target's first tree that every row of codes reaches."""
        check_rows(rows, self.schema, ignore=target)
        held = self.trees[target]
        out = np.empty(len(rows), dtype=np.int64)
        plain = np.ascontiguousarray(rows, dtype=np.int32)
        leaves_of(plain, cell_starts(self.schema), held.ranks, held.nodes, int(held.roots[0]), out)
        return out

    def arrays(self) -> Arrays:
        """Return everything the model holds as flat arrays."""
        held = {
            target: {
                "ranks": trees.ranks,
                "roots": trees.roots,
                **{f"node_{name}": getattr(trees.nodes, name) for name in _NODE_ARRAYS},
            }
            for target, trees in self.trees.items()
        }
        return {**by_target(held), "note": pack_text(self.note)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, schema: Schema) -> Self:
        """Rebuild a model from `arrays`, refusing what does not belong to the schema."""
        trees = {}
        for target, held in of_targets(arrays, schema):
            parts = {n: take(held, f"node_{n}", dtype) for n, dtype in _NODE_ARRAYS.items()}
            ranks, roots = take(held, "ranks", np.int32), take(held, "roots", np.int64)
            trees[target] = Trees(ranks, roots, Nodes(**parts))
            _check(trees[target], schema, target)
        return cls(schema, trees, unpack_text(take(arrays, "note", np.uint8)))


_NODE_ARRAYS: dict[str, type] = {
    "feature": np.int32,
    "split": np.int32,
    "left": np.int32,
    "right": np.int32,
    "start": np.int64,
    "codes": np.int32,
    "shares": np.float64,
}


def _check(trees: Trees, schema: Schema, target: int) -> None:
    """Refuse nodes that would send a row out of the arrays, or around in a circle."""
    nodes = trees.nodes
    lengths = {len(each) for each in (nodes.feature, nodes.split, nodes.left, nodes.right)}
    whole = lengths == {len(nodes.start) - 1} and len(nodes.codes) == len(nodes.shares)
    if not whole or len(trees.ranks) != cell_starts(schema)[-1]:
        raise damaged()
    count, entries = len(nodes.feature), len(nodes.codes)
    inner = np.flatnonzero(nodes.feature >= 0)
    leaves = np.flatnonzero(nodes.feature < 0)
    children = (nodes.left[inner], nodes.right[inner])
    sizes = np.diff(nodes.start)
    sound = (
        len(trees.roots) > 0
        and ((trees.roots >= 0) & (trees.roots < count)).all()
        and (nodes.feature < len(schema.features)).all()
        and all(((child > inner) & (child < count)).all() for child in children)
        and nodes.start[0] == 0
        and nodes.start[-1] == entries
        and (sizes >= 0).all()
        and (sizes[leaves] > 0).all()
        and ((nodes.codes >= 0) & (nodes.codes < schema.category_counts[target])).all()
        and np.isfinite(nodes.shares).all()
        and (nodes.shares > 0).all()
    )
    if not sound:
        raise damaged()


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
        outcome: Integers,
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
    codes: Codes,
    outcome: Integers,
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


@dataclass(frozen=True)
class Growth:
    """How the trees of one target are grown.

    Parameters
    ----------
    trees
        Number of trees of a forest; None for a single classification tree.
    min_leaf
        Smallest weight of a leaf: its number of rows, where there are no weights.
    """

    trees: int | None = None
    min_leaf: float = 5

    @property
    def note(self) -> str:
        """The choices in words; they tell parameters only, nothing of the data."""
        kind = f"random forest of {self.trees} trees" if self.trees else "classification tree"
        votes = ", trees vote with the shares in their leaves" if self.trees else ""
        return (
            f"one {kind} per feature, leaves of at least {self.min_leaf:g} rows, no pruning{votes}"
        )

    def grow(
        self,
        matrix: NDArray[np.float32],
        outcome: Integers,
        weights: Float64,
        seed: int,
        stop: Stop,
    ) -> list[Any]:
        """Return scikit-learn's trees."""
        check_trees("forest" if self.trees else "cart")
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.tree import DecisionTreeClassifier

        # A little less than asked, so that rounding does not forbid leaves of just that weight.
        least = self.min_leaf * (1.0 - 1e-9) / weights.sum()
        if self.trees is None:
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


CART_TREE, FOREST_TREES = Growth(), Growth(trees=20)


def fit_trees(rows: RowsToFit, growth: Growth, *, words: Words) -> TreeModel:
    """Grow one classification tree, or a random forest, per target.

    Parameters
    ----------
    words
        Decides between splits that are equally good; in a forest it draws the bootstrap samples
        and the features that each split may use.

    Raises
    ------
    ParameterError
        A target has too many categories.
    """
    schema, weights = rows.schema, rows.weights
    leaves = min(len(weights), weights.sum() / growth.min_leaf)
    for target in rows.targets:
        classes = schema.category_counts[target]
        if 2 * leaves * classes * (growth.trees or 1) > MOST_CELLS:
            raise ParameterError(
                f"feature {schema.names[target]!r}: trees over {classes:,} categories would be "
                "too large; set max_rows, a larger min_leaf or fewer trees"
            )
    seeds = {target: words.below(_SEEDS) for target in rows.targets}

    def grow(target: int, stop: Stop) -> Trees:
        return _grow(rows, target, growth, seeds[target], stop)

    # scikit-learn's forests exchange the process-wide warning filters while they are fitted,
    # which two of them at a time would race for; so the targets follow each other.
    threads = 1 if growth.trees else rows.threads
    trees = rows.fit_each(rows.targets, grow, threads=threads)
    limit = "" if rows.max_rows is None else f"; grown from at most {rows.max_rows:,} rows"
    return TreeModel(schema, trees, growth.note + limit)


def _grow(rows: RowsToFit, target: int, growth: Growth, seed: int, stop: Stop) -> Trees:
    """Grow the trees of one target over the categories that occur."""
    codes, weights = rows.codes, rows.weights
    seen, outcome = np.unique(codes[:, target], return_inverse=True)
    outcome = outcome.astype(np.int64)
    one_by_one = growth.trees is None
    split = Splits(codes, rows.schema, target, weights, outcome, one_by_one=one_by_one)
    if len(seen) == 1 or not split.features or weights.sum() < 2 * growth.min_leaf:
        shares = np.bincount(outcome, weights) / weights.sum()
        return Trees(split.ranks, np.zeros(1, dtype=np.int64), _single_leaf(seen, shares))
    grown = growth.grow(split.matrix(codes), outcome, weights, seed, stop)
    sizes = [tree.node_count for tree in grown]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return Trees(split.ranks, roots, _nodes(grown, roots, split, seen))


def _nodes(grown: list[Any], roots: Integers, split: Splits, seen: Codes) -> Nodes:
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


def _children(parts: list[Integers], shift: Integers, leaf: NDArray[np.bool_]) -> NDArray[np.int32]:
    return np.where(leaf, -1, np.concatenate(parts) + shift).astype(np.int32)


def _single_leaf(seen: Codes, shares: Float64) -> Nodes:
    none = np.full(1, -1, dtype=np.int32)
    start = np.array([0, len(seen)], dtype=np.int64)
    return Nodes(none, none, none, none, start, seen.astype(np.int32), shares)
