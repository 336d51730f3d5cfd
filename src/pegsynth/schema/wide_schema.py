"""The codebook of a folded panel, made from that of its long table, and the way back (R24).

A unit's row has its fixed features, how many rows the unit has, and every other feature once for
each position. From the second position on the time is the time since the row before, so it never
runs backwards. What a unit cannot be follows from the schema (`panel`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema.feature import Feature
from pegsynth.schema.keys import PRIVATE
from pegsynth.schema.panel import ABSENT, FOLDED, POOLED, Panel
from pegsynth.schema.rule_text import named_rules
from pegsynth.schema.rules import NamedRule
from pegsynth.schema.schema import Schema

_FLOAT_STEPS = 12
"""Bins of the time between rows, where times are no whole numbers."""


def wide_schema(schema: Schema) -> Schema:
    """Return the codebook of the folded table of a panel; other schemas as they are."""
    return schema if schema.panel is None or schema.panel.wide else schema._folded


def folded(schema: Schema) -> Schema:
    """Fold the codebook of a panel."""
    panel = schema.panel
    if panel is None:
        raise ValueError("the schema has no panel")
    columns = [
        _once(column, panel) if _stays(column, panel) else _at(column, panel, 1)
        for column in schema.columns
    ]
    columns.append(_count(panel))
    changing = [column for column in schema.columns if not _stays(column, panel)]
    for position in panel.positions[1:]:
        columns += [_at(column, panel, position) for column in changing]
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(
            f"[panel]: the folded table would have two columns {twice[0]!r}; give the feature of "
            "that name another one"
        )
    rules: Any = tuple(_rules(schema, panel))
    return replace(
        schema,
        columns=tuple(columns),
        rules=rules,
        panel=replace(panel, wide=True, transitions=POOLED if panel.pooled else FOLDED),
        unit=panel.unit,
    )


def long_schema(schema: Schema) -> Schema:
    """Return the codebook of the long table of a folded one; others as they are.

    What was measured at the first position is what the long codebook says.
    """
    panel = schema.panel
    if panel is None or not panel.wide:
        return schema
    narrow = replace(panel, wide=False, transitions="")
    if narrow.pooled != panel.pooled:
        narrow = replace(narrow, transitions=panel.transitions)
    described = [column.name for column in schema.columns if not column.dropped]
    names = {panel.at(name, 1): name for name in panel.changing(described)}
    later = {
        panel.at(name, position) for name in names.values() for position in panel.positions[1:]
    }
    renamed = [
        _renamed(column, lambda name: names.get(name, name))
        for column in schema.columns
        if column.name not in later and column.name != panel.count
    ]
    # In a long table no row is absent.
    columns = tuple(
        replace(each, not_applicable=()) if ABSENT in each.not_applicable else each
        for each in renamed
    )
    known = {column.name for column in columns if column.modelled}
    rules: Any = tuple(
        replace(rule, values=tuple((names.get(name, name), texts) for name, texts in rule.values))
        for rule in named_rules(schema.rules, schema.features)
        if {names.get(name, name) for name, _ in rule.values} <= known
    )
    return replace(schema, columns=columns, rules=rules, panel=narrow)


def measured_positions(schema: Schema) -> Schema:
    """Return the codebook by which edges and categories are measured.

    Where transitions are pooled, all positions have those of the first rows (R24).
    """
    panel = schema.panel
    if panel is None or not (panel.wide and panel.pooled):
        return schema
    return wide_schema(first_rows(long_schema(schema)))


def first_rows(schema: Schema) -> Schema:
    """Return the codebook of a panel of which the first row of every unit counts."""
    if schema.panel is None:
        return schema
    return replace(schema, panel=replace(schema.panel, most=1, transitions=""))


def at_all_positions(measured: Schema, schema: Schema) -> Schema:
    """Return a codebook with what was measured of its `measured_positions`."""
    panel = schema.panel
    if panel is None or not (panel.wide and panel.pooled):
        return measured
    long, gaps = long_schema(measured), panel.gaps
    first = schema[panel.at(panel.time, 1)]
    if not gaps and first.private_edges and first.highest is None:
        # No bound is stated: bins up to the last number there is would be for noise.
        gaps = gap_edges(replace(long[panel.time], highest=None))
    return wide_schema(replace(long, panel=replace(panel, wide=False, gaps=gaps)))


def _stays(column: Feature, panel: Panel) -> bool:
    return column.dropped or column.name in panel.fixed or column.label_of in panel.fixed


def _once(column: Feature, panel: Panel) -> Feature:
    """Return a feature that a unit has once; it may look at the first position."""
    if column.dropped:
        return column
    if column.after is not None and column.after not in panel.fixed:
        raise SchemaError(
            f"[panel]: fixed feature {column.name!r} is counted from {column.after!r}, which "
            "changes; let it change too, or count it from a fixed one"
        )
    if column.parent is not None and column.parent not in panel.fixed:
        raise SchemaError(
            f"[panel]: the parent of the fixed feature {column.name!r} changes; list "
            f"{column.parent!r} under fixed too"
        )
    return replace(column, heads=tuple(panel.at(head, 1) for head in column.heads))


def _placed(column: Feature, panel: Panel, position: int) -> Feature:
    """Return a feature at a position; its public shares were those of all rows."""
    if column.not_applicable:
        if column.binned:
            raise SchemaError(
                f"[panel]: {column.name!r} has values that are not applicable, and absent rows are "
                "such too; list them under missing, with keep_missing_codes = true"
            )
        # Absent rows are what is not applicable; the feature's own is one category more.
        text, *others = column.not_applicable
        if others:
            raise SchemaError(
                f"[panel]: {column.name!r} lists several texts under not_applicable; list one, and "
                "the others as categories"
            )
        column = replace(
            column, categories=(*column.categories, text), not_applicable=(), shares=()
        )
    return _renamed(replace(column, shares=()), lambda name: panel.at(name, position))


def _at(column: Feature, panel: Panel, position: int) -> Feature:
    """Return a feature at a position, which not every unit may have a row for."""
    placed = _placed(column, panel, position)
    if column.label_of is not None or panel.sure(position):
        return placed
    if column.name == panel.time and column.binned and position > 1:
        placed = _gap(column, placed, panel, position)
    return replace(placed, not_applicable=(ABSENT,))


def _gap(time: Feature, placed: Feature, panel: Panel, position: int) -> Feature:
    """Return the time since the row before."""
    private = panel.gaps == PRIVATE or (not panel.gaps and time.private_edges)
    edges = PRIVATE if private else (panel.gaps or gap_edges(time))
    plain: dict[str, Any] = {
        "edges": edges,
        "private_edges": private,
        "lowest": 0.0 if private else None,
        "highest": _span(time) if private else None,
        "bins": time.bins if private else None,
        # Pooled over positions there is no row of which a gap could be measured.
        "inside": "uniform" if panel.pooled and time.inside == "measured" else time.inside,
        "recoding": None,
    }
    if time.kind == "numeric":
        # Whatever keeps a time from being known leaves the time since it unknown.
        special = time.category_count > time.bin_count
        plain |= {"missing": ("",) if special else (), "keep_missing_codes": False}
        return replace(placed, **plain, unknown="error")
    return replace(placed, **plain, after=panel.at(time.name, position - 1), weekday=False)


def _span(time: Feature) -> float | None:
    low, high = time.public_bounds if time.edges else (time.lowest, time.highest)
    return high - low if low is not None and high is not None else None


def gap_edges(time: Feature) -> tuple[float, ...]:
    """Return edges of the time between rows that follow from those of the time: 0, 1, 2, 4, .."""
    span = _span(time) or 1.0
    if not time.integer:
        steps = [span / 2**step for step in range(_FLOAT_STEPS, -1, -1)]
        return (0.0, *steps)
    powers = [float(2**step) for step in range(math.ceil(math.log2(span)) if span > 1 else 0)]
    return (0.0, *(power for power in powers if power < span), max(span, 1.0))


def _count(panel: Panel) -> Feature:
    return Feature(
        panel.count,
        kind="ordinal",
        categories=tuple(map(str, range(panel.least, panel.most + 1))),
        dtype="int64",
        label="rows of the unit that count",
    )


def _rules(schema: Schema, panel: Panel) -> Iterator[NamedRule]:
    """Yield the schema's rules, at every position that they speak of."""
    for rule in named_rules(schema.rules, schema.features):
        labels = [name for name, _ in rule.values]
        for position in panel.positions:
            if panel.time in labels and position > 1 and schema[panel.time].binned:
                raise SchemaError(
                    f"[panel]: a rule speaks of {panel.time!r}, which from the second row on is "
                    "the time since the row before; take that out"
                )
            if position > 1 and set(labels) <= set(panel.fixed):
                break
            at = ((panel.at(name, position), texts) for name, texts in rule.values)
            yield replace(rule, values=tuple(at))


def _renamed(column: Feature, name_of: Callable[[str], str]) -> Feature:
    """Return a feature with other names, its own and those of the features that it speaks of."""
    named: dict[str, Any] = {
        key: name_of(name)
        for key in ("name", "parent", "after", "label_of")
        if (name := getattr(column, key))
    }
    return replace(column, **named, heads=tuple(map(name_of, column.heads)))
