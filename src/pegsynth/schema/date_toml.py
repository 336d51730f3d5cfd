"""Dates and times in ``schema.toml``: what a feature of them says, read and written."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

from pegsynth.schema.calendar_units import CALENDAR, TEMPORAL, moment, resolution_of
from pegsynth.schema.entry import Entry
from pegsynth.schema.feature import PRIVATE, Feature
from pegsynth.schema.temporal import bound_text

_MOMENTS = (str, dt.date, dt.time, dt.datetime)


def is_dated(entry: Entry) -> bool:
    """Say whether a table describes dates, times or lengths of time that are modelled."""
    return entry.values.get("kind") in TEMPORAL and entry.values.get("role") != "identifier"


def read_moments(entry: Entry) -> dict[str, Any]:
    """Read edges and bounds; `Feature` turns them into numbers."""
    values = entry.values
    edges = values.get("edges", [])
    if "bins" in values and (edges != PRIVATE or not isinstance(values["bins"], int)):
        raise entry.error(
            'bins goes with edges = "private" and is a whole number; for bins of a calendar write '
            'edges = "month", lowest = .. and highest = ..'
        )
    if not isinstance(edges, str | list):
        raise entry.error('edges must be a list of dates, "private", or a step such as "month"')
    on_calendar = values["kind"] in CALENDAR and "after" not in values
    found: dict[str, Any] = {"bins": entry.whole_or_none("bins"), "edges": edges}
    for key in ("lowest", "highest"):
        if key in values:
            found[key] = _checked(entry, key, values[key], on_calendar)
    if isinstance(edges, list):
        found["edges"] = tuple(_checked(entry, "edges", each, on_calendar) for each in edges)
    return found


def _checked(entry: Entry, key: str, value: Any, on_calendar: bool) -> Any:
    """Return a date or a number, whichever belongs here."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if on_calendar and not isinstance(value, _MOMENTS):
        raise entry.error(f'{key} must hold dates or times in quotes, as "2020-12-31"')
    if not on_calendar and not number:
        raise entry.error(f"{key} must hold numbers, without quotes")
    return value


def read_bound(entry: Entry, feature: Feature, key: str) -> float | None:
    """Read one end of a range of a feature: a date where it has dates, else a number."""
    if not feature.calendar or key not in entry.values:
        return entry.number(key)
    try:
        return moment(feature.kind, feature.resolution, entry.values[key])
    except ValueError as error:
        raise entry.error(f"{key} {error}") from None


def date_lines(feature: Feature) -> Iterator[str]:
    """Yield what only dates, times and lengths of time have."""
    if feature.kind not in TEMPORAL:
        return
    for key in ("format", "after"):
        if text := getattr(feature, key):
            yield f"{key} = {_quoted(text)}"
    if feature.resolution != resolution_of(feature.kind, ""):
        yield f"resolution = {_quoted(feature.resolution)}"
    if feature.weekday:
        yield "weekday = true"


def moment_toml(feature: Feature, number: float) -> str:
    """Return an edge or a bound of a calendar as TOML."""
    return _quoted(bound_text(feature, number))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
