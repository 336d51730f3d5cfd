"""What the pages of the codebook need beside the codebook itself: suggestions, counts, words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegsynth.codec.codebook_counts import CodebookCounts, FeatureCounts
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.assumed import assumed
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.feature import KINDS, ROLES, number_text
from pegsynth.schema.recoding import Recoding
from pegsynth.schema.rule_text import said
from pegsynth.schema.temporal import bound_text
from pegsynth.studio.codebook_changes import KEPT, suggestions

_MOST_VALUES = 6
_MOST_LISTED = 2_000
_MOST_SUGGESTED = 40
_MOST_BARS = 60


def overview(schema: Schema, counts: CodebookCounts | None, *, may_see: bool) -> dict[str, Any]:
    """Return what the page of the codebook shows; figures of rows only to those who may see."""
    remarks = tuple(suggestions(schema)) if may_see else ()
    asked = [each for each in remarks if each.what]
    signed = assumed(replace(schema, reviewed=True))
    return {
        "schema": schema,
        "panel": schema.panel,
        "roles": ROLES,
        "private": left_to_release,
        "most_values": _MOST_VALUES,
        "remarked": {each.column for each in remarks},
        "refused": {} if counts is None else {e.name: e.refused for e in counts.features},
        "rules": list(_rules(schema, counts)),
        "assumed": [line for line in signed if not line.startswith("Reviewed")],
        "suggested": asked[:_MOST_SUGGESTED],
        "more_suggested": max(0, len(asked) - _MOST_SUGGESTED),
        "suggested_roles": len({each.column for each in asked if each.what == "role"}),
        "counted": "" if counts is None else f"{counts.rows:,}",
    }


def _rules(schema: Schema, counts: CodebookCounts | None) -> Iterator[dict[str, Any]]:
    """Yield rules in words, and how many rows break them, where that was counted."""
    own = [rule for rule in schema.rules if not rule.structural]
    broken = counts.broken if counts is not None and len(counts.broken) == len(own) else ()
    for place, rule in enumerate(own):
        found = broken[place] if broken else None
        told = "" if found is None else "no row breaks it" if not found else f"{found:,} rows do"
        text = said(rule, schema.features)
        yield {"text": text, "drafted": rule.drafted_from_data, "broken": told}


def left_to_release(column: Feature) -> str:
    """Return what of a column the release finds and pays for; empty for nothing."""
    return "edges" if column.private_edges else "categories" if column.private_categories else ""


def details(
    schema: Schema, number: int, counts: CodebookCounts | None, *, may_see: bool
) -> dict[str, Any]:
    """Return what the page of one column shows."""
    column = schema.columns[number]
    recoding = column.recoding or Recoding()
    hierarchy = recoding.hierarchy
    prefixes = ",".join(map(str, hierarchy.prefixes)) if hierarchy is not None else ""
    found = [each for each in counts.features if each.name == column.name] if counts else []
    counted = found[0] if found and not column.dropped else None
    return {
        "name": column.name,
        "label": column.label,
        "kind": column.kind,
        "role": column.role,
        "categories": "\n".join(column.categories[:_MOST_LISTED]),
        "listable": len(column.categories) <= _MOST_LISTED,
        "edges": " ".join(_edge(column, edge) for edge in column.edges),
        "lowest": _told(column.lowest),
        "highest": _told(column.highest),
        "missing": "\n".join(column.missing),
        "unknown": column.unknown,
        "parent": column.parent or "",
        "top": _told(recoding.top),
        "bottom": _told(recoding.bottom),
        "round": _told(recoding.round),
        "hierarchy": "" if hierarchy is None else f"prefix:{prefixes}" if prefixes else KEPT,
        "level": recoding.level,
        "recoded": "" if column.recoding is None else recoding.said(),
        "notes": [e for e in suggestions(schema) if e.column == column.name and may_see],
        "private": left_to_release(column),
        "bars": () if counted is None else counted.levels[:_MOST_BARS],
        "highest_bar": max((rows for _, rows in counted.levels), default=0) if counted else 0,
        "counted": [] if counted is None else list(_said_of(counted)),
        "others": [name for name in schema.names if name != column.name],
        "roles": ROLES,
        "kinds": KINDS,
    }


def _edge(column: Feature, edge: float) -> str:
    return bound_text(column, edge) if column.kind in TEMPORAL else number_text(edge)


def _told(number: float | None) -> str:
    return "" if number is None else number_text(number)


def _said_of(counted: FeatureCounts) -> Iterator[str]:
    """Say what else was counted of a column, beside its bars."""
    if counted.missing:
        yield f"{counted.missing:,} rows have no value."
    if counted.unlisted:
        yield f"{counted.unlisted:,} rows have a value that is not listed."
    if counted.refused:
        yield (
            f"A release would refuse the table for {counted.refused:,} of them: list the values, "
            'name the texts that mean "not known", or let other values be a category.'
        )
    if len(counted.levels) > _MOST_BARS:
        yield f"{len(counted.levels) - _MOST_BARS:,} further bars are not shown."
    if not counted.settled:
        yield "The release will make levels of its own; these are for the eye."


def read_counts(file: Path, schema: Schema) -> CodebookCounts | None:
    """Return the counts of rows; None where there are none of this codebook."""
    try:
        counts = CodebookCounts.load(file)
    except DataError:
        return None
    return counts if {each.name for each in counts.features} <= set(schema.names) else None
