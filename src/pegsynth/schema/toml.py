"""The schema as a file, ``schema.toml``.

In goes a path or the text of such a file, out comes a `Schema`, and the reverse. Reading
refuses unknown keys and wrong types with a `SchemaError` that says where and what to do;
writing is deterministic, and ``loads(dumps(schema)) == schema``.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema.binning import EqualWidth
from pegsynth.schema.calendar_units import CALENDAR, MOMENTS, TEMPORAL
from pegsynth.schema.declared import Analysis, WantedTable, read_declared
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.entry import Entry, PublicFiles, file_text, parsed, shown
from pegsynth.schema.feature import DROPPED, Feature
from pegsynth.schema.keys import PRIVATE, Key, keys_of, needed, optional, part
from pegsynth.schema.panel import OneOfTwo, Panel
from pegsynth.schema.recoding import refuse_by_data
from pegsynth.schema.rule_text import RuleTable, read_rules
from pegsynth.schema.schema import Schema
from pegsynth.schema.toml_text import FORMAT, confidential, dumps

__all__ = ["FORMAT", "File", "Table", "dumps", "load", "loads", "save", "with_comments"]

MOST_BINS = 1 << 20
_TWO = 2
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True)
class Table:
    """What ``[table]`` of a file says."""

    unit: str | None = optional(
        None,
        '"person"',
        "Column that names whom the guarantee protects; it is dropped.",
        "neighbours differ in all rows of one unit: assumption `unit-column`",
        left_out="a row is the unit",
    )
    rows_per_unit: int = optional(
        1,
        "5",
        "The most rows of one unit that count; others are left out at random.",
        "the price grows with it; never the observed maximum",
    )
    dialect: Dialect = part(Dialect, Dialect())


@dataclass(frozen=True)
class File:
    """What a schema file holds, its tables as they were parsed."""

    format: int = optional(FORMAT, "1", "Version of the file's form.")
    reviewed: bool = optional(
        False,
        "true",
        "A person has checked that everything here is public knowledge.",
        "without it a guarantee is refused: assumption `reviewed-schema`",
    )
    reviewed_by: str = optional("", '"A. Nowak"', "Who reviewed it.", left_out="nobody")
    reviewed_on: str = optional("", '"2026-03-01"', "The day of the review.", left_out="never")
    table: Any = optional(
        None,
        '{ unit = "person" }',
        "What is said of the whole table; written `[table]`.",
        form="table",
        left_out="a row is the unit",
        inside=Table,
    )
    panel: Any = optional(
        None,
        '{ unit = "patient", time = "admitted", most = 4 }',
        "How the rows of a unit belong together; written `[panel]` ([panels.md](panels.md)).",
        "all rows of a unit are protected together, at the price of one row (R24)",
        form="table",
        left_out="rows stand alone",
        inside=Panel,
    )
    tables: tuple[Any, ...] = optional(
        (),
        '[{ name = "households", key = "household", features = ["region"] }]',
        "Two tables: units such as households, and their rows such as members; written "
        "`[[tables]]` ([panels.md](panels.md#two-tables)).",
        "a unit with all its rows is protected, at the price of one row (R24)",
        form="tables",
        left_out="one table",
        inside=OneOfTwo,
    )
    features: tuple[Any, ...] = field(
        default=(),
        metadata=needed(
            '[{ name = "sex", categories = ["f", "m"] }]',
            "One table for each column, in their order; written `[[features]]`.",
            "the order of features may settle heads: assumption `feature-order`",
            form="tables",
            inside=Feature,
        ),
    )
    rules: tuple[Any, ...] = optional(
        (),
        '[{ forbid = { sex = ["m"], birth = ["yes"] } }]',
        "Combinations that cannot occur; written `[[rules]]`.",
        "assumption `public-rules`",
        form="tables",
        left_out="no rules",
        inside=RuleTable,
    )
    analyses: tuple[Any, ...] = optional(
        (),
        '[{ formula = "charge ~ age + los", share = 0.05 }]',
        "Regressions that a release of `pegs-once` is to hold; written `[[analyses]]`.",
        "paid out of the budget: noisy sums (R26)",
        form="tables",
        inside=Analysis,
    )
    tables_wanted: tuple[Any, ...] = optional(
        (),
        '[{ features = ["ward", "chapter"], share = 0.05 }]',
        "Tables of counts that a release of `pegs-once` is to publish; written "
        "`[[tables_wanted]]`.",
        "paid out of the budget: noisy counts (R11)",
        form="tables",
        inside=WantedTable,
    )


def load(path: str | Path, *, notes: bool = False) -> Schema:
    """Read a schema file.

    Parameters
    ----------
    path
        The file, usually called ``schema.toml``.
    notes
        Whether the comments on features are kept as notes.

    Returns
    -------
    Schema
        What the file says, checked.

    Raises
    ------
    SchemaError
        The file cannot be read, is not TOML, or describes no valid schema.
    """
    text = file_text(path)
    schema = loads(text, str(path), folder=Path(path).absolute().parent)
    return with_comments(schema, text) if notes else schema


def loads(text: str, source: str = "schema", *, folder: Path | None = None) -> Schema:
    """Read a schema from the text of a schema file; `source` names it in messages.

    Public files that it names are looked for in `folder`; without one it may name none.
    """
    try:
        return _read_schema(parsed(text), PublicFiles(folder))
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None


def with_comments(schema: Schema, text: str) -> Schema:
    """Return the schema with the comments that stand in the blocks of its features, as notes."""
    found: dict[str, list[str]] = {}
    held: list[str] | None = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            held = [] if line == "[[features]]" else None
        elif held is not None and line.startswith("#"):
            held.append(line.lstrip("# "))
        elif held is not None and re.match(r"name\s*=", line):
            with suppress(ValueError):
                found[str(tomllib.loads(line)["name"])] = held
    return schema.with_columns(
        replace(column, notes=tuple(found.get(column.name, column.notes)))
        for column in schema.columns
    )


def save(schema: Schema, path: str | Path, *, notes: bool = False) -> None:
    """Write a schema file, whole or not at all.

    A draft that no person has reviewed has its notes as comments and is readable by its owner
    alone (mode 0600). Others have them with `notes` only.

    Raises
    ------
    OutputError
        The file cannot be written; an earlier one is untouched.
    """
    from pegsynth.tables.atomic import atomic_text

    private = confidential(schema)
    atomic_text(path, dumps(schema, notes=private or notes), mode=0o600 if private else None)


def _read_schema(document: dict[str, Any], files: PublicFiles) -> Schema:
    # Before anything else: another format may well have keys that are unknown here.
    version = Entry("the file", document).whole("format", FORMAT)
    if version != FORMAT:
        raise SchemaError(
            f"the file has format {version}, and this program reads format {FORMAT} only; write "
            f"format = {FORMAT}, or use the version of pegsynth that wrote it"
        )
    entry = Entry.at(File, "the file", document)
    file = entry.made(File)
    table = Entry.at(Table, "[table]", document.get("table", {})).made(Table)
    columns = tuple(_read_features(file.features, files))
    if not columns:
        raise SchemaError("no feature is described; add a [[features]] table for each column")
    analyses, tables_wanted = read_declared(entry)
    panel = _read_panel(document)
    unit = panel.unit if panel else table.unit
    modelled = [column for column in columns if column.modelled and column.name != unit]
    return Schema(
        columns=columns,
        unit=table.unit,
        rows_per_unit=table.rows_per_unit,
        rules=read_rules(file.rules, modelled),
        reviewed=file.reviewed,
        dialect=table.dialect,
        reviewer=file.reviewed_by,
        reviewed_on=file.reviewed_on,
        panel=panel,
        analyses=analyses,
        tables_wanted=tables_wanted,
    )


def _read_panel(document: dict[str, Any]) -> Panel | None:
    """Read what the file says of a panel; None where it says nothing."""
    if "tables" in document:
        if "panel" in document:
            raise SchemaError(
                "the file has both [panel] and [[tables]]; two tables need no [panel]"
            )
        return _read_two_tables(document["tables"])
    if "panel" not in document:
        return None
    entry = Entry.at(Panel, "[panel]", document["panel"])
    names = entry.texts("tables")
    if not names:
        # Only the codebook of a model says which two tables a folded one comes from.
        return entry.made(Panel, tables=None, least=1)
    if len(names) != _TWO or not entry.flag("wide"):
        raise entry.error("tables requires wide = true; describe two tables by [[tables]]")
    return entry.made(Panel)


def _read_two_tables(listed: list[Any]) -> Panel:
    """Read two tables and the key between them."""
    if len(listed) != _TWO:
        more = "three levels or more are not" if len(listed) > _TWO else "one is"
        raise SchemaError(
            f"[[tables]]: {len(listed)} tables are described; give two, units first and then their "
            f"rows. {more} {'known' if len(listed) > _TWO else 'described without it'}"
        )
    entries = [
        Entry.at(OneOfTwo, f"[[tables]] number {number}", each)
        for number, each in enumerate(listed, start=1)
    ]
    units, rows = (entry.made(OneOfTwo) for entry in entries)
    for entry, each in zip(entries, (units, rows), strict=True):
        for key in ("name", "key"):
            if not getattr(each, key):
                raise entry.error(f'{key} is missing; add {key} = ".."')
    if units.key != rows.key:
        raise entries[1].error(
            "its key has another name than that of the first table; call both alike"
        )
    for entry, keys in zip(entries, (("order", "most", "least"), ("features",)), strict=True):
        for key in keys:
            if key in entry.values:
                raise entry.error(f"{key} belongs to the other table; remove it here")
    names = (units.name, rows.name)
    if names[0] == names[1] or not all(map(_FILE_NAME.fullmatch, names)):
        raise entries[0].error(
            "names of tables are two different words of letters, digits, - and _"
        )
    return Panel(
        unit=units.key,
        time=rows.order,
        most=rows.most,
        fixed=units.features,
        tables=names,
        least=rows.least,
    )


def _read_features(tables: tuple[Any, ...], files: PublicFiles) -> Iterator[Feature]:
    """Read every feature; a few lines must not stand for more bins than memory holds."""
    bins = 0
    for number, raw in enumerate(tables, start=1):
        feature = _read_feature(number, raw, files)
        few_lines = "bins" in raw or isinstance(raw.get("edges"), str)
        bins += len(feature.edges) if few_lines and not feature.private_edges else 0
        if bins > MOST_BINS:
            raise SchemaError(
                f"the features have more than {MOST_BINS:,} bins in all; use fewer, or list the "
                "edges"
            )
        yield feature


def _read_feature(number: int, raw: Any, files: PublicFiles) -> Feature:
    name = raw.get("name") if isinstance(raw, dict) else None
    where = f"feature {shown(name)}" if isinstance(name, str) else f"feature number {number}"
    if isinstance(raw, dict):
        try:
            refuse_by_data(raw)
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}") from None
    entry = Entry.at(Feature, where, raw, files)
    if not entry.text("name"):
        raise entry.error('it has no name; add name = "..", the name of the column')
    dated = entry.values.get("kind") in TEMPORAL and entry.values.get("role") != "identifier"
    return entry.made(Feature, **(_moments(entry) if dated else _bins(entry)))


def _moments(entry: Entry) -> dict[str, Any]:
    """Read edges and bounds of dates; `Feature` turns them into numbers."""
    values = entry.values
    edges = values.get("edges", [])
    if "bins" in values and (edges != PRIVATE or not isinstance(values["bins"], int)):
        raise entry.error(
            'bins requires edges = "private" and is a whole number; for bins of a calendar write '
            'edges = "month", lowest = .. and highest = ..'
        )
    if not isinstance(edges, str | list):
        raise entry.error('edges must be a list of dates, "private", or a step such as "month"')
    on_calendar = values["kind"] in CALENDAR and "after" not in values
    found: dict[str, Any] = {"bins": entry.whole_or_none("bins"), "edges": edges}
    for key in ("lowest", "highest"):
        found[key] = _moment(entry, key, values[key], on_calendar) if key in values else None
    if isinstance(edges, list):
        found["edges"] = tuple(_moment(entry, "edges", each, on_calendar) for each in edges)
    return found


def _moment(entry: Entry, key: str, value: Any, on_calendar: bool) -> Any:
    """Return a date or a number, whichever belongs here."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if on_calendar and not isinstance(value, MOMENTS):
        raise entry.error(f'{key} must hold dates or times in quotes, as "2020-12-31"')
    if not on_calendar and not number:
        raise entry.error(f"{key} must hold numbers, without quotes")
    return value


def _bins(entry: Entry) -> dict[str, Any]:
    """Read edges, bounds and bins of numbers; a dropped column has none."""
    stated, bins = entry.values.get("edges"), entry.values.get("bins")
    private = stated == PRIVATE
    if entry.values.get("role") in DROPPED:
        return {"edges": (), "lowest": None, "highest": None, "bins": None}
    if isinstance(bins, int) and not private:
        raise entry.error(
            'bins as a whole number requires edges = "private"; list the edges, or write '
            "bins = { lowest = .., highest = .., count = .. }"
        )
    return {
        "lowest": entry.number("lowest"),
        "highest": entry.number("highest"),
        "bins": entry.whole_or_none("bins") if private else None,
        "edges": PRIVATE if private else _listed_edges(entry),
    }


def _listed_edges(entry: Entry) -> tuple[float, ...]:
    if isinstance(entry.values.get("edges"), str):
        raise entry.error('edges must be a list of numbers, or "private"')
    if "bins" not in entry.values:
        return entry.numbers("edges")
    if "edges" in entry.values:
        raise entry.error("give either edges or bins, not both")
    bins = Entry.at(EqualWidth, f"{entry.where}, bins", entry.values["bins"])
    try:
        return bins.made(EqualWidth).edges
    except SchemaError as error:
        raise bins.error(str(error).removeprefix(f"{bins.where}: ")) from None


PLACES: dict[type, str] = {
    File: "at the top of the file",
    Table: "under [table]",
    Panel: "under [panel]",
    OneOfTwo: "under [[tables]]",
    Feature: "under [[features]]",
    EqualWidth: "in bins = { .. } of a feature",
    RuleTable: "under [[rules]]",
    Analysis: "under [[analyses]]",
    WantedTable: "under [[tables_wanted]]",
}
"""The types that declare keys, and where these stand in a file."""


def all_keys() -> Iterator[tuple[type, Key]]:
    """Yield every key with the type that declares it."""
    return ((kind, key) for kind in PLACES for key in keys_of(kind))


def misplaced(name: str, kind: type) -> str:
    """Say where a key that is not known here belongs, or which key was probably meant."""
    elsewhere = [(place, key) for place, key in all_keys() if key.name == name and place != kind]
    if elsewhere:
        places = " or ".join(PLACES[place] for place, _ in elsewhere)
        return f"it belongs {places}, as {name} = {elsewhere[0][1].example}"
    here = [key.name for key in keys_of(kind)]
    close = difflib.get_close_matches(name[:60], [key.name for _, key in all_keys()], 1, 0.75)
    if close and not difflib.get_close_matches(name[:60], here, 1, 0.75):
        found = next(place for place, key in all_keys() if key.name == close[0])
        return f"did you mean {close[0]!r}? It belongs {PLACES[found]}"
    return f"did you mean {difflib.get_close_matches(name[:60], here, 1, 0.0)[0]!r}?"
