"""Dates and times of a schema together: what is counted from what, and how it is written.

A feature with `after` counts from another date of the same row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import moment_text
from pegsynth.schema.panel import ABSENT

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature

WRITTEN = {
    "date": "YYYY-MM-DD",
    "time": "HH:MM:SS",
    "datetime": "YYYY-MM-DDTHH:MM:SS",
    "duration": "P1DT2H3M4S",
}
"""How values are written where no format is stated."""


def check_order(features: Sequence[Feature]) -> None:
    """Refuse features that are counted from what is no date, or from themselves."""
    by_name = {feature.name: feature for feature in features}
    for feature in features:
        if feature.after is None:
            continue
        other = by_name.get(feature.after)
        if other is None or other.kind != feature.kind or other is feature:
            raise _error(
                feature,
                f"after names {feature.after!r}, which is not another {feature.kind} of this "
                "schema that is modelled",
            )
        if other.resolution != feature.resolution:
            raise _error(feature, f"its resolution must be that of {other.name!r}")
        # Where a panel has no row, neither date is there (R24).
        absent = ABSENT in other.not_applicable and ABSENT in feature.not_applicable
        if other.category_count > other.bin_count + absent and feature.missing_code is None:
            raise _error(
                feature,
                f"{other.name!r} may be missing, and then no date after it is known; add "
                'missing = [""]',
            )
        chain(feature, features)


def chain(feature: Feature, features: Sequence[Feature]) -> tuple[Feature, ...]:
    """Return a feature, the one that it is counted from, and so on to the first date."""
    by_name = {each.name: each for each in features}
    found = [feature]
    while (after := found[-1].after) is not None:
        if after in {each.name for each in found}:
            raise _error(feature, "it is counted from itself; take one after out")
        found.append(by_name[after])
    return tuple(found)


def described(feature: Feature, *, several: bool) -> str:
    """Say what its values are and how they are written, for messages."""
    one, many = {
        "date": ("a date that exists", "dates that exist"),
        "time": ("a time of day", "times of day"),
        "datetime": ("a date that exists with a time", "dates that exist with times"),
        "duration": ("a length of time", "lengths of time"),
    }[feature.kind]
    written = feature.format or WRITTEN[feature.kind]
    return f"{many if several else one}, written as {written}"


def bound_text(feature: Feature, number: float) -> str:
    """Return an edge or a bound as people write it: a date, or a number of units."""
    kind = feature.kind if feature.calendar else "duration"
    return moment_text(kind, feature.resolution, number)


def _error(feature: Feature, what: str) -> SchemaError:
    return SchemaError(f"feature {feature.name!r}: {what}")
