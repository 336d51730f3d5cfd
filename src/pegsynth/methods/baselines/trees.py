"""Classification trees and forests as arrays: the imputation models of synthpop.

A synthetic value is drawn from the distribution of the leaf that its row reaches (CART,
Reiter 2003), or from the votes of many trees (random forests, Caiola and Reiter 2010),
each tree voting with the distribution of its leaf. A category that no row of a leaf has
gets probability 0 there.
"""

from __future__ import annotations

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
    cell_starts,
    check_rows,
    damaged,
    pack_text,
    take,
    unpack_text,
)

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
        """Return everything the model holds as flat arrays, the targets one after another."""
        targets = sorted(self.trees)
        held = [self.trees[target] for target in targets]
        out: Arrays = {
            "targets": np.array(targets, dtype=np.int64),
            "tree_counts": np.array([len(trees.roots) for trees in held], dtype=np.int64),
            "node_counts": np.array([len(trees.nodes.feature) for trees in held], dtype=np.int64),
            "entry_counts": np.array([len(trees.nodes.codes) for trees in held], dtype=np.int64),
            "ranks": _joined([trees.ranks for trees in held], np.int32),
            "roots": _joined([trees.roots for trees in held], np.int64),
            "note": pack_text(self.note),
        }
        for name, dtype in _NODE_ARRAYS.items():
            parts = [getattr(trees.nodes, name) for trees in held]
            out[f"node_{name}"] = _joined(parts, dtype)
        return out

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], schema: Schema) -> Self:
        """Rebuild a model from `arrays`, refusing what does not belong to the schema."""
        targets = take(arrays, "targets", np.int64)
        features = len(schema.features)
        known = ((targets >= 0) & (targets < features)).all()
        if not known or len(set(targets.tolist())) != len(targets):
            raise damaged()
        nodes = take(arrays, "node_counts", np.int64)
        entries = take(arrays, "entry_counts", np.int64)
        cells = np.full(len(targets), int(cell_starts(schema)[-1]))
        lengths = {"feature": nodes, "split": nodes, "left": nodes, "right": nodes}
        lengths |= {"start": nodes + 1, "codes": entries, "shares": entries}
        ranks = _split(take(arrays, "ranks", np.int32), cells)
        roots = _split(take(arrays, "roots", np.int64), take(arrays, "tree_counts", np.int64))
        parts = {
            name: _split(take(arrays, f"node_{name}", dtype), lengths[name])
            for name, dtype in _NODE_ARRAYS.items()
        }
        if any(len(part) != len(targets) for part in (ranks, roots, *parts.values())):
            raise damaged()
        trees = {}
        for index, target in enumerate(targets.tolist()):
            held = Nodes(**{name: parts[name][index] for name in _NODE_ARRAYS})
            trees[target] = Trees(ranks[index], roots[index], held)
            _check(trees[target], features, schema.category_counts[target])
        return cls(schema, trees, unpack_text(take(arrays, "note", np.uint8)))


_NODE_ARRAYS: dict[str, Any] = {
    "feature": np.int32,
    "split": np.int32,
    "left": np.int32,
    "right": np.int32,
    "start": np.int64,
    "codes": np.int32,
    "shares": np.float64,
}


def _joined(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *parts])


def _split(flat: NDArray[Any], lengths: Integers) -> list[NDArray[Any]]:
    if (lengths < 0).any() or lengths.sum() != len(flat):
        raise damaged()
    return np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _check(trees: Trees, features: int, categories: int) -> None:
    """Refuse nodes that would send a row out of the arrays, or around in a circle."""
    nodes = trees.nodes
    count, entries = len(nodes.feature), len(nodes.codes)
    inner = np.flatnonzero(nodes.feature >= 0)
    leaves = np.flatnonzero(nodes.feature < 0)
    children = (nodes.left[inner], nodes.right[inner])
    sizes = np.diff(nodes.start)
    sound = (
        len(trees.roots) > 0
        and ((trees.roots >= 0) & (trees.roots < count)).all()
        and (nodes.feature < features).all()
        and all(((child > inner) & (child < count)).all() for child in children)
        and nodes.start[0] == 0
        and nodes.start[-1] == entries
        and (sizes >= 0).all()
        and (sizes[leaves] > 0).all()
        and ((nodes.codes >= 0) & (nodes.codes < categories)).all()
        and np.isfinite(nodes.shares).all()
        and (nodes.shares > 0).all()
    )
    if not sound:
        raise damaged()
