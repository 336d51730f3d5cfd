"""`schema check`, `show` and `count`: what a codebook says, assumes, and how rows fit it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegsynth.cli.console import say
from pegsynth.codec.codebook_counts import count_rows
from pegsynth.errors import escaped
from pegsynth.schema import Feature, Schema
from pegsynth.schema.assumed import assumed
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.rule_text import said
from pegsynth.schema.temporal import bound_text
from pegsynth.tables.atomic import atomic_text

HEADER: tuple[str, ...] = (
    *("feature", "role", "kind", "levels", "pair cells", "values", "missing", "else"),
)
_WIDTH = 44


def check(file: Path) -> None:
    """Validate a schema file, and say what will be assumed."""
    schema = Schema.load(file)
    print(escaped(f"{file}: valid, {len(schema.features)} features, {len(schema.rules)} rules."))
    for line in assumed(schema):
        print(escaped(f"  {line}"))


def count(file: Path, data: Any, output: Path | None) -> None:
    """Say how many rows fit a schema; nothing of it may be published."""
    schema = Schema.load(file)
    found = count_rows(data, schema)
    print(f"{found.rows:,} rows.")
    for each in found.features:
        if each.refused:
            print(
                escaped(
                    f"{each.name}: {each.unlisted:,} values are not listed and {each.missing:,} "
                    "are missing; a release would refuse the table."
                )
            )
    for rule, broken in zip(schema.rules, found.broken, strict=True):
        told = "cannot be counted yet" if broken is None else f"{broken:,} rows break it"
        print(escaped(f"rule {rule.label or ''}: never {said(rule, schema.features)}: {told}"))
    if output is not None:
        atomic_text(output, found.to_json(), mode=0o600)
    say("CONFIDENTIAL: figures of the data under no guarantee; nothing of them may be published.")


def show(file: Path) -> None:
    """Print the codebook as a table."""
    schema = Schema.load(file)
    print(escaped(_unit(schema)))
    if schema.dialect:
        print(escaped(f"Text: {schema.dialect.said()}"))
    total = sum(feature.category_count for feature in schema.features)
    lines = [HEADER, *(_line(column, total) for column in schema.columns)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print(escaped("  ".join(cells).rstrip()))
    for column in schema.features:
        if column.recoding is not None:
            print(escaped(f"recoded {column.name}: {column.recoding.said()}"))
        if column.parent is not None:
            print(escaped(f"detail {column.name}: drawn given {column.parent}"))
    for rule in schema.rules:
        drafted = " (found in the data)" if rule.drafted_from_data else ""
        print(escaped(f"rule {rule.label or ''}: never {said(rule, schema.features)}{drafted}"))
    print(
        "levels: categories with those for unlisted, not applicable and missing values. pair "
        "cells: noisy counts of all its pairs with others, over which a budget is spread."
    )


def _unit(schema: Schema) -> str:
    most = f", at most {schema.rows_per_unit} rows"
    if schema.panel is not None:
        most = f", at most {schema.panel.most} rows, folded in the order of {schema.panel.time!r}"
    unit = "a row" if schema.unit is None else f"{schema.unit!r}{most}"
    return f"Unit: {unit}. Reviewed: {'yes' if schema.reviewed else 'no'}."


def _line(column: Feature, total: int) -> tuple[str, ...]:
    if column.dropped:
        return (column.name, column.role, "", "", "", "dropped", "", "")
    if column.label_of is not None:
        return (column.name, column.role, "", "", "", f"describes {column.label_of!r}", "", "")
    levels = column.category_count
    open_ = column.private_edges or column.private_categories
    return (
        column.name,
        column.role,
        column.kind,
        *(("private", "") if open_ else (str(levels), f"{levels * (total - levels):,}")),
        _values(column),
        ", ".join(map(repr, column.missing)) or "refused",
        "(other)" if column.unknown == "category" else "refused",
    )


def _values(column: Feature) -> str:
    labels = column.labels[: column.bin_count]
    if column.private_categories:
        text = "categories found privately"
    elif column.private_edges:
        text = "edges measured privately"
    elif column.binned:
        low, high = (
            bound_text(column, edge) if column.kind in TEMPORAL else f"{edge:g}"
            for edge in column.public_bounds
        )
        text = f"{len(labels)} bins from {low} to {high}"
    else:
        named = dict(column.value_labels)
        text = ", ".join(f"{each} {named[each]}" if each in named else each for each in labels)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 2]}.."
