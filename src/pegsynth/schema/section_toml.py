"""Dates and times in ``schema.toml``: what a feature of them says, read and written.

``[panel]`` and ``[[tables]]`` of a schema file, read and written.

Recodings as ``schema.toml`` holds them: keys of a feature in, a `Recoding` out, and back.

Forms that would look at the table are refused here, each with its reason (R31).
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import CALENDAR, TEMPORAL, moment, resolution_of
from pegsynth.schema.entry import Entry
from pegsynth.schema.feature import PRIVATE, Feature, number_text
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.panel import Panel
from pegsynth.schema.public_files import PublicFiles
from pegsynth.schema.recoding import (
    Recoding,
    check_paid,
    check_public_number,
    refused_filling,
    refused_grouping,
    refused_suppression,
)
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


_TWO = 2
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def read_panel(document: dict[str, Any]) -> Panel | None:
    """Read what the file says of a panel; None where it says nothing."""
    if "panel" not in document:
        return None
    entry = Entry.at("panel", "[panel]", document["panel"])
    gaps = entry.values.get("gaps")
    return Panel(
        unit=entry.text("unit"),
        time=entry.text("time"),
        most=entry.whole("most", 0),
        fixed=entry.texts("fixed"),
        gaps=gaps if isinstance(gaps, str) else entry.numbers("gaps"),
        wide=entry.flag("wide"),
        transitions=entry.text("transitions"),
        **_folded_tables(entry),
    )


def _folded_tables(entry: Entry) -> dict[str, Any]:
    """Read which two tables a folded one comes from; only the codebook of a model says so."""
    names = entry.texts("tables")
    if not names:
        return {}
    if len(names) != _TWO or not entry.flag("wide"):
        raise entry.error("tables goes with wide = true; describe two tables by [[tables]]")
    return {"tables": (names[0], names[1]), "least": entry.whole("least", 1)}


def panel_lines(
    panel: Panel, text: Callable[[str], str], listed: Callable[[Sequence[str]], str]
) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"unit = {text(panel.unit)}"
    yield f"time = {text(panel.time)}"
    yield f"most = {panel.most}"
    if panel.fixed:
        yield f"fixed = {listed([text(name) for name in panel.fixed])}"
    if isinstance(panel.gaps, str):
        yield f"gaps = {text(panel.gaps)}"
    elif panel.gaps:
        yield f"gaps = {listed([number_text(gap) for gap in panel.gaps])}"
    if panel.transitions:
        yield f"transitions = {text(panel.transitions)}"
    if panel.wide:
        yield "wide = true"
    if panel.wide and panel.tables:
        yield f"tables = {listed([text(name) for name in panel.tables])}"
        yield f"least = {panel.least}"


def read_two_tables(document: dict[str, Any]) -> Panel | None:
    """Read two tables and the key between them; None where the file has one table."""
    if "tables" not in document:
        return None
    if "panel" in document:
        raise SchemaError("the file has both [panel] and [[tables]]; two tables need no [panel]")
    listed = document["tables"]
    if not isinstance(listed, list):
        raise SchemaError("tables must be tables headed [[tables]], in double brackets")
    if len(listed) != _TWO:
        more = "three levels or more are not" if len(listed) > _TWO else "one is"
        raise SchemaError(
            f"[[tables]]: {len(listed)} tables are described; give two, units first and then their "
            f"rows. {more} {'known' if len(listed) > _TWO else 'described without it'}"
        )
    entries = [
        Entry.at("tables", f"[[tables]] number {number}", each)
        for number, each in enumerate(listed, start=1)
    ]
    units, rows = entries
    for entry in entries:
        for key in ("name", "key"):
            if not entry.text(key):
                raise entry.error(f'{key} is missing; add {key} = ".."')
    if units.text("key") != rows.text("key"):
        raise rows.error("its key has another name than that of the first table; call both alike")
    for entry, keys in ((units, ("order", "most", "least")), (rows, ("features",))):
        for key in keys:
            if key in entry.values:
                raise entry.error(f"{key} goes with the other table; leave it out here")
    names = (units.text("name"), rows.text("name"))
    if names[0] == names[1] or not all(map(_FILE_NAME.fullmatch, names)):
        raise units.error("names of tables are two different words of letters, digits, - and _")
    return Panel(
        unit=units.text("key"),
        time=rows.text("order"),
        most=rows.whole("most", 0),
        fixed=units.texts("features"),
        tables=names,
        least=rows.whole("least", 1),
    )


def two_table_lines(
    panel: Panel, text: Callable[[str], str], listed: Callable[[Sequence[str]], str]
) -> tuple[list[str], list[str]]:
    """Return the lines of both tables."""
    units, rows = panel.tables or ("", "")
    key = f"key = {text(panel.unit)}"
    fixed = f"features = {listed([text(name) for name in panel.fixed])}"
    least = [] if panel.least else ["least = 0"]
    return (
        [f"name = {text(units)}", key, fixed],
        [
            f"name = {text(rows)}",
            key,
            f"order = {text(panel.time)}",
            f"most = {panel.most}",
            *least,
        ],
    )


_Listed = TypeVar("_Listed")
_NUMBERS = ("top", "bottom", "round")
_KEYS = (*_NUMBERS, "groups", "hierarchy", "level", "rare")
_REFUSED: dict[str, Callable[[str], SchemaError]] = {
    **dict.fromkeys(("fill", "impute", "fill_missing", "default"), refused_filling),
    **dict.fromkeys(("k", "k_anonymity", "suppress", "suppress_below"), refused_suppression),
    **dict.fromkeys(("min_count", "least", "group_below", "threshold"), refused_grouping),
}
_FILLED = ("mode", "mean", "median", "most frequent")


def refuse_by_data(where: str, raw: Mapping[str, Any]) -> None:
    """Refuse recodings that would depend on other rows, and say why."""
    for key in raw:
        if key in _REFUSED:
            raise SchemaError(f"{where}: {_REFUSED[key](key)}")
    if raw.get("missing") in _FILLED:
        raise SchemaError(f"{where}: {refused_filling('missing')}")
    if isinstance(raw.get("groups"), str | int | float):
        raise SchemaError(f"{where}: {refused_grouping('groups')}")
    try:
        for key in _NUMBERS:
            if isinstance(raw.get(key), str):
                check_public_number(key, raw[key])
        check_paid(raw.get("rare"))
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def read_recoding(entry: Entry, files: PublicFiles) -> Recoding | None:
    """Read the recoding of a feature; None where it has none."""
    if not any(key in entry.values for key in _KEYS):
        return None
    try:
        return Recoding(
            **{key: entry.number(key) for key in _NUMBERS},
            groups=_groups(entry),
            hierarchy=_hierarchy(entry, files),
            level=entry.whole("level", 1),
            rare=entry.text("rare") or None,
        )
    except SchemaError as error:
        raise entry.error(str(error).removeprefix(f"{entry.where}: ")) from None


def _groups(entry: Entry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    table = entry.values.get("groups", {})
    if not isinstance(table, dict):
        raise entry.error('groups must be a table, as groups = { heart = ["I20", "I21"] }')
    inside = Entry(f"{entry.where}, groups", table)
    return tuple((name, inside.categories(name)) for name in table)


def _hierarchy(entry: Entry, files: PublicFiles) -> Hierarchy | None:
    stated = entry.values.get("hierarchy")
    if stated is None:
        return None
    if isinstance(stated, dict):
        return Hierarchy(entry.labels("hierarchy"))
    text = entry.text("hierarchy")
    by_prefix = Hierarchy.by_prefix(text)
    if by_prefix is not None:
        return by_prefix
    if text.startswith("prefix"):
        raise entry.error('hierarchy by prefix is written "prefix:3", or "prefix:3,1"')
    lines = files.lines(text, "hierarchy")
    try:
        return Hierarchy.of_lines(lines)
    except SchemaError as error:
        raise SchemaError(f"hierarchy = {text[:80]!r}: {error}") from None


def read_categories(entry: Entry, files: PublicFiles) -> Any:
    """Read categories: a list, the name of a public file that lists them, or "private"."""
    if entry.values.get("categories") == PRIVATE:
        return PRIVATE
    if not isinstance(entry.values.get("categories"), str):
        return entry.categories("categories")
    return _of_file(entry, "categories", files.codes)


def read_value_labels(entry: Entry, files: PublicFiles) -> tuple[tuple[str, str], ...]:
    """Read texts by code: a table, or the name of a public file that lists them."""
    if not isinstance(entry.values.get("value_labels"), str):
        return entry.labels("value_labels")
    return _of_file(entry, "value_labels", files.labels)


def _of_file(entry: Entry, key: str, read: Callable[[str, str], _Listed]) -> _Listed:
    try:
        return read(entry.text(key), key)
    except SchemaError as error:
        raise entry.error(str(error)) from None


def recoding_lines(
    feature: Feature, text: Callable[[str], str], items: Callable[[list[str]], str]
) -> Iterator[str]:
    """Yield the lines of a feature's recoding; files are written out.

    Parameters
    ----------
    text, items
        Write a text and a list as TOML.
    """
    recoding = feature.recoding
    if feature.label_of:
        yield f"label_of = {text(feature.label_of)}"
    if recoding is None:
        return
    for key in _NUMBERS:
        if (value := getattr(recoding, key)) is not None:
            yield f"{key} = {number_text(value)}"
    if recoding.groups:
        named = (f"{text(name)} = {items([*map(text, v)])}" for name, v in recoding.groups)
        yield f"groups = {{ {', '.join(named)} }}"
    if recoding.hierarchy is not None:
        pairs = ", ".join(f"{text(a)} = {text(b)}" for a, b in recoding.hierarchy.pairs)
        prefix = "prefix:" + ",".join(map(str, recoding.hierarchy.prefixes))
        yield f"hierarchy = {{ {pairs} }}" if pairs else f"hierarchy = {text(prefix)}"
        yield f"level = {recoding.level}"
    if recoding.rare:
        yield f"rare = {text(recoding.rare)}"
