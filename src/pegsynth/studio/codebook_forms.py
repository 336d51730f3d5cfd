"""The codebook as pages show it: all columns in one table, and one column with everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pegsynth.codec.codebook_counts import CodebookCounts, FeatureCounts
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.assumed import assumed
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.feature import KINDS, ROLES, number_text
from pegsynth.schema.rule_text import said
from pegsynth.schema.temporal import bound_text
from pegsynth.studio.codebook_changes import KEPT, Suggestion, suggestions

_MOST_VALUES = 6
_MOST_LISTED = 2_000
_MOST_SUGGESTED = 40
_MOST_BARS = 60


@dataclass(frozen=True)
class Line:
    """One column in the table of all."""

    number: int
    name: str
    kind: str
    role: str
    levels: str
    values: str
    missing: str
    drafted: bool
    remarks: int
    refused: str


@dataclass(frozen=True)
class RuleLine:
    """A rule in words, and how many rows break it, where that was counted."""

    text: str
    drafted: bool
    broken: str


@dataclass(frozen=True)
class Overview:
    """What the page of the codebook shows."""

    lines: tuple[Line, ...]
    unit: str
    rows_per_unit: int
    time: str
    fixed: tuple[str, ...]
    columns: tuple[str, ...]
    named: tuple[str, ...]
    rules: tuple[RuleLine, ...]
    assumed: tuple[str, ...]
    reviewed: bool
    reviewed_by: str
    reviewed_on: str
    suggested: tuple[Suggestion, ...]
    more_suggested: int
    suggested_roles: int
    counted: str
    roles: tuple[str, ...] = ROLES


@dataclass(frozen=True)
class Bar:
    """Rows of one category or bin: a share of the highest bar."""

    name: str
    rows: str
    share: float


@dataclass(frozen=True)
class Details:
    """What the page of one column shows."""

    name: str
    label: str
    kind: str
    role: str
    categories: str
    listable: bool
    edges: str
    lowest: str
    highest: str
    missing: str
    unknown: str
    parent: str
    top: str
    bottom: str
    round: str
    hierarchy: str
    level: int
    recoded: str
    notes: tuple[Suggestion, ...]
    drafted: bool
    private: str
    bars: tuple[Bar, ...]
    counted: tuple[str, ...]
    others: tuple[str, ...]
    roles: tuple[str, ...] = ROLES
    kinds: tuple[str, ...] = KINDS


def overview(schema: Schema, counts: CodebookCounts | None, *, may_see: bool) -> Overview:
    """Return what the page of the codebook shows; figures of rows only to those who may see."""
    remarks = tuple(suggestions(schema)) if may_see else ()
    asked = tuple(each for each in remarks if each.what)
    by_name = {} if counts is None else {each.name: each for each in counts.features}
    noted = [each.column for each in remarks]
    panel = schema.panel
    as_signed = replace(schema, reviewed=True)
    return Overview(
        tuple(
            _line(number, column, noted.count(column.name), by_name.get(column.name))
            for number, column in enumerate(schema.columns)
        ),
        schema.unit or "",
        panel.most if panel else schema.rows_per_unit,
        panel.time if panel else "",
        panel.fixed if panel else (),
        tuple(column.name for column in schema.columns),
        schema.names,
        tuple(_rules(schema, counts)),
        tuple(line for line in assumed(as_signed) if not line.startswith("Reviewed")),
        schema.reviewed,
        schema.reviewer or "",
        str(schema.reviewed_on or ""),
        asked[:_MOST_SUGGESTED],
        max(0, len(asked) - _MOST_SUGGESTED),
        len({each.column for each in asked if each.what == "role"}),
        "" if counts is None else f"{counts.rows:,}",
    )


def _rules(schema: Schema, counts: CodebookCounts | None) -> Iterable[RuleLine]:
    own = [rule for rule in schema.rules if not rule.structural]
    broken = counts.broken if counts is not None and len(counts.broken) == len(own) else ()
    for place, rule in enumerate(own):
        found = broken[place] if broken else None
        told = "" if found is None else "no row breaks it" if not found else f"{found:,} rows do"
        yield RuleLine(said(rule, schema.features), rule.drafted_from_data, told)


def _line(number: int, column: Feature, remarks: int, counted: FeatureCounts | None) -> Line:
    private = column.private_edges or column.private_categories
    labels = () if column.dropped else column.labels
    values = ", ".join(labels[:_MOST_VALUES]) + (", .." if len(labels) > _MOST_VALUES else "")
    refused = f"{counted.refused:,}" if counted is not None and counted.refused else ""
    return Line(
        number,
        column.name,
        "" if column.dropped else column.kind,
        column.role,
        "" if column.dropped or private else str(column.bin_count),
        "found by the release, which pays" if private else values,
        ", ".join(repr(text) for text in column.missing),
        column.drafted_from_data,
        remarks,
        refused,
    )


def details(
    schema: Schema, number: int, counts: CodebookCounts | None, *, may_see: bool
) -> Details:
    """Return what the page of one column shows."""
    column = schema.columns[number]
    recoding = column.recoding
    hierarchy = recoding.hierarchy if recoding is not None else None
    prefixes = ",".join(map(str, hierarchy.prefixes)) if hierarchy is not None else ""
    bars, counted = _histogram(column, counts)
    return Details(
        column.name,
        column.label,
        column.kind,
        column.role,
        "\n".join(column.categories[:_MOST_LISTED]),
        len(column.categories) <= _MOST_LISTED,
        " ".join(_edge(column, edge) for edge in column.edges),
        _told(column.lowest),
        _told(column.highest),
        "\n".join(column.missing),
        column.unknown,
        column.parent or "",
        _told(recoding.top if recoding is not None else None),
        _told(recoding.bottom if recoding is not None else None),
        _told(recoding.round if recoding is not None else None),
        "" if hierarchy is None else f"prefix:{prefixes}" if prefixes else KEPT,
        recoding.level if recoding is not None else 1,
        recoding.said() if recoding is not None else "",
        tuple(each for each in suggestions(schema) if each.column == column.name and may_see),
        column.drafted_from_data,
        "edges" if column.private_edges else "categories" if column.private_categories else "",
        bars,
        counted,
        tuple(name for name in schema.names if name != column.name),
    )


def _edge(column: Feature, edge: float) -> str:
    return bound_text(column, edge) if column.kind in TEMPORAL else number_text(edge)


def _told(number: float | None) -> str:
    return "" if number is None else number_text(number)


def _histogram(
    column: Feature, counts: CodebookCounts | None
) -> tuple[tuple[Bar, ...], tuple[str, ...]]:
    """Return bars of rows for each category or bin, and what else was counted."""
    found = [each for each in counts.features if each.name == column.name] if counts else []
    if not found or column.dropped:
        return (), ()
    counted = found[0]
    highest = max((rows for _, rows in counted.levels), default=0) or 1
    bars = tuple(
        Bar(name, f"{rows:,}", round(100 * rows / highest, 2))
        for name, rows in counted.levels[:_MOST_BARS]
    )
    lines = [
        f"{counted.missing:,} rows have no value." if counted.missing else "",
        f"{counted.unlisted:,} rows have a value that is not listed." if counted.unlisted else "",
        f"A release would refuse the table for {counted.refused:,} of them: list the values, name "
        'the texts that mean "not known", or let other values be a category.'
        if counted.refused
        else "",
        f"{len(counted.levels) - _MOST_BARS:,} further bars are not shown."
        if len(counted.levels) > _MOST_BARS
        else "",
        ""
        if counted.settled
        else "The release will make levels of its own; these are for the eye.",
    ]
    return bars, tuple(filter(None, lines))


def read_counts(file: Path, schema: Schema) -> CodebookCounts | None:
    """Return the counts of rows; None where there are none of this codebook."""
    try:
        counts = CodebookCounts.load(file)
    except DataError:
        return None
    return counts if {each.name for each in counts.features} <= set(schema.names) else None
