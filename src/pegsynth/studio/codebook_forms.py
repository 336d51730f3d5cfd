"""The codebook as forms: what a page shows of it, and what a form changes.

Every change goes through `Schema` and is refused as the command line would refuse it. A change to
a reviewed codebook takes the review back: somebody has to look again.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.assumed import assumed
from pegsynth.schema.feature import KINDS, ROLES
from pegsynth.schema.rule_text import rule_labels
from pegsynth.schema.toml import loads, save

_MOST_VALUES = 6
_MOST_LISTED = 2_000
_COMMENT = re.compile(r"^# (.+)$", re.MULTILINE)

Told = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Line:
    """One feature in the table of all."""

    number: int
    name: str
    kind: str
    role: str
    levels: str
    values: str
    missing: str
    drafted: bool


@dataclass(frozen=True)
class Overview:
    """What the page of the codebook shows."""

    lines: tuple[Line, ...]
    unit: str
    rows_per_unit: int
    columns: tuple[str, ...]
    rules: tuple[str, ...]
    assumed: tuple[str, ...]
    reviewed: bool
    reviewed_by: str
    reviewed_on: str
    roles: tuple[str, ...] = ROLES


@dataclass(frozen=True)
class Details:
    """What the page of one feature shows."""

    name: str
    label: str
    kind: str
    role: str
    categories: str
    listable: bool
    edges: str
    missing: str
    notes: tuple[str, ...]
    drafted: bool
    private: str
    bars: tuple[tuple[str, float], ...]
    roles: tuple[str, ...] = ROLES
    kinds: tuple[str, ...] = KINDS


def overview(schema: Schema) -> Overview:
    """Return what the page of the codebook shows."""
    rules = [
        " and ".join(
            f"{n} in {', '.join(v)}" for n, v in rule_labels(rule, schema.features).items()
        )
        + (" (seen in the table only)" if rule.drafted_from_data else "")
        for rule in schema.rules
    ]
    return Overview(
        tuple(_line(number, column) for number, column in enumerate(schema.columns)),
        schema.unit or "",
        schema.rows_per_unit,
        tuple(column.name for column in schema.columns),
        tuple(rules),
        tuple(assumed(replace(schema, reviewed=True))),
        schema.reviewed,
        schema.reviewed_by or "",
        str(schema.reviewed_on or ""),
    )


def _line(number: int, column: Feature) -> Line:
    labels = () if column.dropped else column.labels
    values = ", ".join(labels[:_MOST_VALUES]) + (", .." if len(labels) > _MOST_VALUES else "")
    private = "private" if column.private_edges or column.private_categories else ""
    return Line(
        number,
        column.name,
        "" if column.dropped else column.kind,
        column.role,
        "" if column.dropped else private or str(column.bin_count),
        "found by the release, which pays" if private else values,
        ", ".join(repr(text) for text in column.missing),
        column.drafted_from_data,
    )


def details(file: Path, schema: Schema, number: int) -> Details:
    """Return what the page of one feature shows."""
    column = schema.columns[number]
    text = file.read_text(encoding="utf-8")
    entries = text.split("[[features]]")[1:]
    notes = _COMMENT.findall(entries[number]) if number < len(entries) else []
    categories = column.categories
    return Details(
        column.name,
        column.label,
        column.kind,
        column.role,
        "\n".join(categories[:_MOST_LISTED]),
        len(categories) <= _MOST_LISTED and not column.binned and not column.private_categories,
        " ".join(f"{edge:g}" for edge in column.edges),
        "\n".join(column.missing),
        tuple(notes),
        column.drafted_from_data,
        "edges" if column.private_edges else "categories" if column.private_categories else "",
        _bars(column),
    )


def _bars(column: Feature) -> tuple[tuple[str, float], ...]:
    """Return the widths of public bins, for a picture; it shows no row."""
    edges = column.edges
    if len(edges) < 2:
        return ()
    whole = edges[-1] - edges[0]
    return tuple(
        (f"{low:g} to {high:g}", 100 * (high - low) / whole) for low, high in pairwise(edges)
    )


def apply(file: Path, told: Told) -> str:
    """Do what a form of the codebook asks, save it, and return where to go then."""
    if not file.is_file():
        raise ParameterError("there is no codebook yet; choose a table first")
    what = _one(told, "what")
    text = file.read_text(encoding="utf-8")
    if what == "text":
        schema = loads(_one(told, "text").replace("\r\n", "\n"), file.name, folder=file.parent)
        return _saved(file, _unreviewed(schema) if schema != Schema.load(file) else schema)
    schema = loads(text, file.name, folder=file.parent)
    changes = {
        "roles": _roles,
        "unit": _unit,
        "feature": _feature,
        "rule": _rule,
        "review": _review,
    }
    if what not in changes:
        raise ParameterError("this form is not one of the codebook's")
    changed = changes[what](schema, told)
    if what != "review" and changed != schema:
        changed = _unreviewed(changed)
    to = _one(told, "to")
    return _saved(file, changed, to if to.startswith("/codebook") else "/codebook")


def _saved(file: Path, schema: Schema, to: str = "/codebook") -> str:
    save(schema, file)
    return to


def _unreviewed(schema: Schema) -> Schema:
    return replace(schema, reviewed=False, reviewed_by="", reviewed_on="")


def _roles(schema: Schema, told: Told) -> Schema:
    """Give several features one role."""
    role, chosen = _one(told, "role"), told.get("chosen", ())
    if not chosen:
        raise ParameterError("tick the features that should get this role")
    for name in chosen:
        schema = schema.with_feature(name, role=role)
    return schema


def _unit(schema: Schema, told: Told) -> Schema:
    unit, rows = _one(told, "unit"), _one(told, "rows_per_unit") or "1"
    if not rows.isdecimal():
        raise ParameterError("rows per unit is a whole number, the most that one person may have")
    return replace(schema, unit=unit or None, rows_per_unit=int(rows) if unit else 1)


def _feature(schema: Schema, told: Told) -> Schema:
    """Change one feature."""
    name = _one(told, "name")
    column = schema[name]
    changes: dict[str, Any] = {"role": _one(told, "role"), "label": _one(told, "label")}
    if changes["role"] in ("identifier", "drop"):
        return schema.with_feature(name, role=changes["role"])
    changes["missing"] = _lines(told, "missing")
    if _one(told, "private") == "categories":
        changes |= {"kind": "nominal", "categories": "private", "edges": ()}
    elif _one(told, "private") == "edges":
        changes |= {"kind": "numeric", "edges": "private", "categories": ()}
    elif _one(told, "edges"):
        changes |= {"edges": _numbers(_one(told, "edges")), "private_edges": False}
        if not column.binned:
            changes |= {"kind": "numeric", "categories": ()}
    elif "categories" in told:
        kind = _one(told, "kind")
        changes |= {"categories": _lines(told, "categories")}
        changes |= {"kind": kind} if kind in ("nominal", "ordinal") else {}
    return schema.with_feature(name, **changes)


def _rule(schema: Schema, told: Told) -> Schema:
    """Drop a rule; new ones are written as text."""
    number = _one(told, "number")
    if not number.isdecimal() or int(number) >= len(schema.rules):
        raise ParameterError("there is no such rule")
    kept = [rule for place, rule in enumerate(schema.rules) if place != int(number)]
    return replace(schema, rules=tuple(kept))


def _review(schema: Schema, told: Told) -> Schema:
    """Write down who declares all of it public knowledge."""
    name = _one(told, "reviewer").strip()
    if not name or _one(told, "declared") != "yes":
        raise ParameterError("a review needs your name and your declaration")
    day = dt.datetime.now(tz=dt.UTC).date().isoformat()
    return replace(schema, reviewed=True, reviewed_by=name, reviewed_on=day)


def _one(told: Told, name: str) -> str:
    values = told.get(name, ())
    return values[0] if values else ""


def _lines(told: Told, name: str) -> tuple[str, ...]:
    return tuple(_one(told, name).replace("\r\n", "\n").split("\n")) if _one(told, name) else ()


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(each) for each in text.split())
    except ValueError:
        raise SchemaError("edges are numbers with spaces between them") from None
