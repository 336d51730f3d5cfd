"""Send rows of codes down classification trees kept as plain arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import njit

from pegsynth.kernels.arrays import Float64, Int32, Int64


class Nodes(NamedTuple):
    """Nodes of any number of trees, numbered together; children come after their parent.

    A row goes left at node v, with c its code of ``feature[v]``, if ``split[v] >= 0`` and
    the rank of c is at most ``split[v]``, or if ``split[v] < 0`` and c is not the category
    ``-1 - split[v]``. At a leaf, where feature is -1, the categories
    ``codes[start[v] .. start[v + 1]]`` have the probabilities `shares`.
    """

    feature: Any
    split: Any
    left: Any
    right: Any
    start: Any
    codes: Any
    shares: Any


@njit(cache=True, nogil=True)
def leaf_of(row: Int32, cell_start: Int64, ranks: Int32, nodes: Nodes, root: int) -> int:
    """Return the leaf that a row of codes reaches."""
    node = root
    while nodes.feature[node] >= 0:
        feature = nodes.feature[node]
        split = nodes.split[node]
        code = row[feature]
        left = ranks[cell_start[feature] + code] <= split if split >= 0 else code != -1 - split
        node = nodes.left[node] if left else nodes.right[node]
    return node


@njit(cache=True, nogil=True)
def vote_shares(
    rows: Int32, cell_start: Int64, ranks: Int32, nodes: Nodes, roots: Int64, out: Float64
) -> None:
    """Write the mean over trees of the distribution in the leaf that every row reaches."""
    out[:] = 0.0
    for index in range(rows.shape[0]):
        line = out[index]
        total = 0.0
        for tree in range(len(roots)):
            leaf = leaf_of(rows[index], cell_start, ranks, nodes, roots[tree])
            for entry in range(nodes.start[leaf], nodes.start[leaf + 1]):
                line[nodes.codes[entry]] += nodes.shares[entry]
                total += nodes.shares[entry]
        for code in range(len(line)):
            line[code] /= total


@njit(cache=True, nogil=True)
def leaves_of(
    rows: Int32, cell_start: Int64, ranks: Int32, nodes: Nodes, root: int, out: Int64
) -> None:
    """Write the leaf of one tree that every row reaches."""
    for index in range(rows.shape[0]):
        out[index] = leaf_of(rows[index], cell_start, ranks, nodes, root)
