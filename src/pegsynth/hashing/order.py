"""Which features become the heads of a target.

`public_heads` follows the schema (a feature's own `heads`, then schema order);
`heads_by_score` ranks the others by any matrix of pairwise scores, such as the mutual
information of the data (the paper's order, which looks at the data and is therefore
recorded as not private, R10) or of paid-for noisy pair counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.schema import Schema


def check_head_count(heads: int, features: int) -> int:
    """Return m, refused when outside 0 .. M-1."""
    if not 0 <= heads <= features - 1:
        raise ParameterError(
            f"--heads {heads}: a target has between 0 and {features - 1} other features here"
        )
    return heads


def public_heads(schema: Schema, heads: int) -> tuple[tuple[int, ...], ...]:
    """Return m heads per target from the schema alone."""
    check_head_count(heads, len(schema.features))
    chosen = []
    for target, feature in enumerate(schema.features):
        listed = [schema.index(name) for name in feature.heads]
        others = [i for i in range(len(schema.features)) if i != target and i not in listed]
        chosen.append(tuple([*listed, *others][:heads]))
    return tuple(chosen)


def heads_by_score(scores: NDArray[np.float64], heads: int) -> tuple[tuple[int, ...], ...]:
    """Return, for every target, the m others of highest score; ties by schema order."""
    features = len(scores)
    check_head_count(heads, features)
    chosen = []
    for target in range(features):
        others = [i for i in range(features) if i != target]
        ranked: Sequence[int] = sorted(others, key=lambda i, t=target: (-scores[t, i], i))  # type: ignore[misc]
        chosen.append(tuple(ranked[:heads]))
    return tuple(chosen)
