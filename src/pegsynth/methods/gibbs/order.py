"""Which features become the heads of a target.

`public_heads` follows the schema (a feature's own `heads`, then schema order);
`heads_by_score` ranks the others by any matrix of pairwise scores, such as the mutual
information of the data (the paper's order, which looks at the data and is therefore
recorded as not private, R10) or of paid-for noisy pair counts.

Private choice of heads by the exponential mechanism (R10).

For a target i and a candidate j the score is the distance between their true pair table
and the table that independence would give, `sum |n_xy - mu_xy|`. The reference mu comes
from marginals already paid for, so one row changes the score by at most 1. What
independence itself would give by chance, and what cells cost, is subtracted from public
numbers alone and changes no sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.pair_counts import PairCounts
from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import Schema

Heads = tuple[tuple[int, ...], ...]


def check_head_count(heads: int, features: int) -> int:
    """Return m, refused when outside 0 .. M-1."""
    if not 0 <= heads <= features - 1:
        raise ParameterError(
            f"--heads {heads}: a target has between 0 and {features - 1} other features here"
        )
    return heads


def public_heads(schema: Schema, heads: int) -> Heads:
    """Return m heads per target from the schema alone; a detail's head is its parent."""
    plain = plain_features(schema)
    check_head_count(heads, len(plain))
    chosen = []
    for target in plain:
        listed = [schema.index(name) for name in schema.features[target].heads]
        listed = [i for i in listed if i in plain]
        others = [i for i in plain if i != target and i not in listed]
        chosen.append(tuple([*listed, *others][:heads]))
    return with_parents(schema, tuple(chosen))


def plain_features(schema: Schema) -> tuple[int, ...]:
    """Return the features that are no detail of another."""
    return tuple(i for i, feature in enumerate(schema.features) if feature.parent is None)


def detail_features(schema: Schema) -> tuple[int, ...]:
    """Return the features that are drawn given their parent, parents before their details."""
    order: list[int] = list(plain_features(schema))
    waiting = [i for i, feature in enumerate(schema.features) if feature.parent is not None]
    while waiting:
        ready = [i for i in waiting if schema.index(schema.features[i].parent or "") in order]
        if not ready:
            raise SchemaError(
                f"feature {schema.features[waiting[0]].name!r}: its parents lead back to itself"
            )
        order += ready
        waiting = [i for i in waiting if i not in ready]
    return tuple(order[len(plain_features(schema)) :])


def with_parents(schema: Schema, chosen: Heads) -> Heads:
    """Return heads of all features, given those of the plain ones in order."""
    heads = dict(zip(plain_features(schema), chosen, strict=True))
    for detail in detail_features(schema):
        heads[detail] = (schema.index(schema.features[detail].parent or ""),)
    return tuple(heads[i] for i in range(len(schema.features)))


def heads_by_score(scores: NDArray[np.float64], heads: int) -> Heads:
    """Return, for every target, the m others of highest score; ties by schema order."""
    features = len(scores)
    check_head_count(heads, features)
    chosen = []
    for target in range(features):
        others = [i for i in range(features) if i != target]
        ranked: Sequence[int] = sorted(others, key=lambda i, t=target: (-scores[t, i], i))  # type: ignore[misc]
        chosen.append(tuple(ranked[:heads]))
    return tuple(chosen)


Choose = Callable[[Sequence[int]], int]

_MEAN_ABSOLUTE_NORMAL = float(np.sqrt(2 / np.pi))


def pair_scores(
    pairs: PairCounts, shares: Sequence[NDArray[np.float64]], total: float
) -> NDArray[np.int64]:
    """Return the symmetric matrix of scores, whole numbers of sensitivity 1."""
    features = len(pairs.category_counts)
    scores = np.zeros((features, features), dtype=np.int64)
    for (left, right), table in pairs.tables.items():
        reference = np.rint(np.outer(total * shares[left], shares[right])).astype(np.int64)
        chance = _by_chance(shares[left], shares[right], total)
        score = int(np.abs(table - reference).sum()) - chance
        scores[left, right] = scores[right, left] = score
    for (left, right), cells in pairs.cells.items():
        score = _sparse_score(cells, shares[left], shares[right], total)
        scores[left, right] = scores[right, left] = score
    return scores


def _sparse_score(
    cells: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    total: float,
) -> int:
    """Return the score of a pair too large to tabulate: cells that occur, and the rest."""
    rows, columns, counts = cells
    reference = np.rint(total * left[rows] * right[columns]).astype(np.int64)
    seen = int(np.abs(counts - reference).sum())
    # Cells that do not occur contribute their reference; the sum over all cells is public.
    everything = sum(int(np.rint(total * share * right).sum()) for share in left)
    return seen + everything - int(reference.sum()) - _by_chance(left, right, total)


def _by_chance(left: NDArray[np.float64], right: NDArray[np.float64], total: float) -> int:
    """Return what independent features would score on average, from paid numbers alone."""
    roots = np.sqrt(left).sum() * np.sqrt(right).sum()
    return int(_MEAN_ABSOLUTE_NORMAL * np.sqrt(total) * roots)


def heads_by_choice(scores: NDArray[np.int64], heads: int, choose: Choose) -> Heads:
    """Choose m heads for every target, one private choice each."""
    features = len(scores)
    chosen = []
    for target in range(features):
        others = [index for index in range(features) if index != target]
        taken: list[int] = []
        for _ in range(heads):
            index = choose([int(scores[target, other]) for other in others])
            taken.append(others.pop(index))
        chosen.append(tuple(taken))
    return tuple(chosen)
