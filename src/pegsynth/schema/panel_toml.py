"""``[panel]`` and ``[[tables]]`` of a schema file, read and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema.entry import Entry
from pegsynth.schema.feature import number_text
from pegsynth.schema.panel import Panel

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
