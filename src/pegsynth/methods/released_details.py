"""Details of a parent in a release of blocks: what the schema says of them, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegsynth.arrays import Int64
from pegsynth.errors import ParameterError
from pegsynth.hashing.order import detail_features
from pegsynth.released.details import Detail, allowed_pairs
from pegsynth.schema.parents import ancestors, belongs_to, has_map

if TYPE_CHECKING:
    from pegsynth.schema import Schema


def check_details(method: str, schema: Schema) -> None:
    """Refuse details that nothing public leads to their parent."""
    details = [schema.features[i] for i in detail_features(schema)]
    for feature in details:
        if not has_map(feature):
            raise ParameterError(
                f"feature {feature.name!r}: {method} draws a detail given its parent by a public "
                "hierarchy; state hierarchy and level = 0 in the schema, leave `parent` out, or "
                "use --method pegs"
            )
    for detail in details_of(schema):
        childless = [i for i, line in enumerate(detail.allowed) if not line.any()]
        if childless:
            names = schema.names
            raise ParameterError(
                f"feature {names[detail.feature]!r}: nothing belongs to category number "
                f"{childless[0] + 1} of its parent {names[detail.parent]!r}; list a category that "
                "does, or leave that one out"
            )


def details_of(schema: Schema) -> tuple[Detail, ...]:
    """Return the details of a schema, parents first, on their categories."""
    found = []
    for place in detail_features(schema):
        feature = schema.features[place]
        parent = schema[feature.parent or ""]
        belongs = belongs_to(feature, parent)
        allowed = allowed_pairs(belongs, parent.category_count, parent.bin_count)
        found.append(Detail(place, schema.index(parent.name), allowed))
    return tuple(found)


def parents_of(schema: Schema) -> set[int]:
    """Return the places of features that others are details of: these stay whole."""
    return {schema.index(feature.parent) for feature in schema.features if feature.parent}


def hierarchies(schema: Schema) -> list[Sequence[Int64]]:
    """Return what the categories of every feature belong to, level by level."""
    return [ancestors(feature) for feature in schema.features]
