"""What a feature of dates, times or lengths of time says, checked and as numbers.

In go the keys of a feature as a person wrote them: ISO texts, a calendar step such as "month", or
"private". Out come edges and bounds as whole numbers of the feature's resolution, so that all that
is done with numbers is done with them (R21). A feature with `after` counts from another date of
the same row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import (
    CALENDAR,
    STEPS,
    TEMPORAL,
    moment,
    moment_text,
    resolution_of,
    stepped,
)
from pegsynth.schema.date_format import DateFormat
from pegsynth.schema.panel import ABSENT

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature

_OWN = ("format", "resolution", "weekday", "after")
_PRIVATE = "private"
WRITTEN = {
    "date": "YYYY-MM-DD",
    "time": "HH:MM:SS",
    "datetime": "YYYY-MM-DDTHH:MM:SS",
    "duration": "P1DT2H3M4S",
}
"""How values are written where no format is stated."""


def taken(feature: Feature) -> dict[str, Any]:
    """Return the fields of a feature that are to be replaced by numbers."""
    if feature.role == "identifier":
        return {}
    if feature.kind not in TEMPORAL:
        for name in _OWN:
            if getattr(feature, name):
                kinds = ", ".join(TEMPORAL)
                raise _error(feature, f"{name} goes with a kind of {kinds}; it is {feature.kind}")
        return {}
    _check(feature)
    found: dict[str, Any] = {"resolution": _resolution(feature)}
    for name in ("lowest", "highest"):
        if getattr(feature, name) is not None:
            found[name] = _moment(feature, name, getattr(feature, name))
    edges = feature.edges
    if isinstance(edges, str) and edges != _PRIVATE:
        found |= {"edges": _stepped(feature, edges, found), "lowest": None, "highest": None}
    elif isinstance(edges, tuple) and all(type(edge) is float for edge in edges):
        # They are numbers already; a grid has very many.
        pass
    elif isinstance(edges, Sequence) and not isinstance(edges, str):
        found["edges"] = tuple(_moment(feature, "edges", edge) for edge in edges)
    if feature.after is not None:
        found |= _not_before(feature, found)
    return found


def _check(feature: Feature) -> None:
    if feature.kind not in CALENDAR and (feature.format or feature.weekday or feature.after):
        raise _error(feature, "format, weekday and after go with dates, not with a duration")
    if feature.kind == "time" and (feature.weekday or feature.after):
        raise _error(feature, "weekday and after go with dates, not with a time of day")
    if feature.weekday and feature.after:
        raise _error(feature, "a date that is counted from another has no weekday of its own")
    if feature.weekday and feature.inside == "uniform":
        raise _error(feature, 'weekday = true is a measured shape; leave inside = "uniform" out')
    if feature.decimals is not None:
        raise _error(feature, f"decimals go with a numeric feature; it is a {feature.kind}")
    if feature.format:
        try:
            DateFormat(feature.format, feature.kind)
        except ValueError as error:
            raise _error(feature, f"format {error}") from None


def _resolution(feature: Feature) -> str:
    try:
        return resolution_of(feature.kind, feature.resolution)
    except ValueError as error:
        raise _error(feature, str(error)) from None


def _moment(feature: Feature, name: str, value: Any) -> float:
    kind = "duration" if feature.after is not None else feature.kind
    try:
        return moment(kind, _resolution(feature), value)
    except ValueError as error:
        raise _error(feature, f"{name} {error}") from None


def _stepped(feature: Feature, step: str, found: Mapping[str, Any]) -> tuple[float, ...]:
    if feature.kind not in CALENDAR or feature.after is not None:
        raise _error(feature, 'edges must be a list of numbers, or "private"')
    if step not in STEPS:
        raise _error(
            feature, f'edges must be a list of dates, "private", or a step: {", ".join(STEPS)}'
        )
    if "lowest" not in found or "highest" not in found:
        raise _error(feature, f'edges = "{step}" needs lowest and highest')
    if found["lowest"] >= found["highest"]:
        raise _error(feature, "lowest must be less than highest")
    try:
        return stepped(feature.kind, _resolution(feature), step, found["lowest"], found["highest"])
    except ValueError as error:
        raise _error(feature, f"edges {error}") from None


def _not_before(feature: Feature, found: Mapping[str, Any]) -> dict[str, Any]:
    """Hold a difference at zero from below: no row is before the date that it is counted from."""
    edges = found.get("edges", ())
    lowest = found.get("lowest")
    if (edges and edges[0] < 0) or (lowest is not None and lowest < 0):
        raise _error(feature, f"a date after {feature.after!r} is 0 or more units from it")
    private = feature.private_edges or (
        isinstance(feature.edges, str) and feature.edges == _PRIVATE
    )
    return {"lowest": 0.0} if private and lowest is None else {}


def cleared(feature: Feature, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is to be forgotten of a feature that becomes one of another kind."""
    if feature.kind not in TEMPORAL or changes.get("kind", feature.kind) == feature.kind:
        return {}
    none = {"format": "", "resolution": "", "weekday": False, "after": None}
    return {name: value for name, value in none.items() if name not in changes}


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
