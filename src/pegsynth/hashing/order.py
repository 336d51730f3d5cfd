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

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import Schema


def check_head_count(heads: int, features: int) -> int:
    """Return m, refused when outside 0 .. M-1."""
    if not 0 <= heads <= features - 1:
        raise ParameterError(
            f"--heads {heads}: a target has between 0 and {features - 1} other features here"
        )
    return heads


def public_heads(schema: Schema, heads: int) -> tuple[tuple[int, ...], ...]:
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


def with_parents(
    schema: Schema, chosen: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    """Return heads of all features, given those of the plain ones in order."""
    heads = dict(zip(plain_features(schema), chosen, strict=True))
    for detail in detail_features(schema):
        heads[detail] = (schema.index(schema.features[detail].parent or ""),)
    return tuple(heads[i] for i in range(len(schema.features)))


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
