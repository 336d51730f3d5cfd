"""Which cells are missing, and whether a schema lets them be filled in.

All of it follows from the schema, before any row is drawn, or from the synthetic rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.arrays import Codes, Int64
from pegsynth.errors import DataError, ParameterError
from pegsynth.schema.missing_codes import missing_codes

if TYPE_CHECKING:
    from pegsynth.schema import Feature, Schema


def check_completable(schema: Schema, given: Mapping[str, str] | None = None) -> None:
    """Refuse to complete tables of a schema where that cannot mean anything.

    Parameters
    ----------
    given
        Features that keep a given value in every row.
    """
    features = [feature for feature in schema.features if feature.missing]
    if not features:
        raise ParameterError(
            "--complete: no feature of the schema has missing values; leave it out"
        )
    for feature in features:
        found_later = feature.private_edges or feature.private_categories
        if not found_later and len(value_codes(feature)) == 0:
            raise ParameterError(
                f"--complete: feature {feature.name!r} has no value but missing; list its "
                "categories, or drop the column"
            )
        value = (given or {}).get(feature.name)
        if value is not None and (not value.strip() or value in feature.missing):
            raise ParameterError(
                f"--complete: --where keeps {feature.name!r} missing in every row, so that nothing "
                "says what it could be; leave one of the two out"
            )


def missing_cells(codes: Codes, schema: Schema) -> dict[int, Int64]:
    """Return the rows in which each feature is missing, for features where any are."""
    found = {}
    for place, feature in enumerate(schema.features):
        if feature.missing:
            rows = np.flatnonzero(np.isin(codes[:, place], missing_codes(feature)))
            if len(rows):
                found[place] = rows
    return found


def check_holes(codes: Codes, schema: Schema, *, source: str) -> None:
    """Refuse a table that is complete, or of which a feature has no value at all."""
    holes = missing_cells(codes, schema)
    if not holes:
        raise DataError(f"{source}: no value is missing; use the table as it is")
    for place, rows in holes.items():
        if len(rows) == len(codes):
            raise DataError(
                f"{source}: column {schema.names[place]!r} has no value but missing, so that "
                "nothing says what it could be; take the column out of the table and the schema"
            )


def value_codes(feature: Feature) -> Int64:
    """Return the codes of a feature that are values: all but those of missing."""
    return np.setdiff1d(np.arange(feature.category_count), missing_codes(feature))
