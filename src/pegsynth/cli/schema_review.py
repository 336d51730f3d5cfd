"""`schema review`: a person answers what is still open in a codebook, one question at a time.

Questions go to standard error and answers come from standard input. Nothing is written before the
end; a review that stops early leaves the file as it was.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegsynth.cli.notes import say
from pegsynth.errors import ParameterError, PegsynthError, escaped
from pegsynth.schema import Feature, Schema
from pegsynth.schema.assumed import assumed
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.feature import ROLES
from pegsynth.schema.rule_text import said
from pegsynth.schema.toml import with_comments

_MOST_SHOWN = 40
_KEEP, _LATER, _DROP = "keep", "later", "drop"


class _StoppedError(Exception):
    """The answers ended before the questions."""


def review(file: Path) -> None:
    """Ask, and write the reviewed schema at the end."""
    schema = Schema.load(file)
    if schema.reviewed:
        raise ParameterError(
            f"{file}: this schema is reviewed already; set reviewed to false to review it again"
        )
    # What a draft says of its columns is in comments, and a reviewer should see it.
    schema = with_comments(schema, file.read_text(encoding="utf-8"))
    try:
        found, left = _walk(schema)
    except _StoppedError:
        say("Stopped: the file is as it was.")
        return
    found.save(file)
    if left:
        names = ", ".join(map(repr, left))
        say(f"{file}: answers are saved. Still open, so that it is not reviewed: {names}.")
    else:
        say(f"{file}: reviewed by {found.reviewer} on {found.reviewed_on}.")


def _walk(schema: Schema) -> tuple[Schema, list[str]]:
    """Ask all questions; return the schema, and the features that are still open."""
    schema = _unit(schema)
    left = []
    for feature in schema.features:
        if not feature.drafted_from_data:
            continue
        schema, answer = _feature(schema, feature)
        if answer == _LATER:
            left.append(feature.name)
    schema = _rules(schema)
    if left:
        return schema, left
    for line in assumed(replace(schema, reviewed=True)):
        say(f"  {line}")
    name = _ask("Your name, if all of this is public knowledge (empty: not yet)")
    if not name:
        return schema, ["the declaration"]
    return schema.reviewed_by(name), []


def _ask(question: str, choices: tuple[str, ...] = ()) -> str:
    """Ask until the answer is one of the choices; a choice may be cut short."""
    while True:
        listed = f" [{'/'.join(choices)}]" if choices else ""
        print(escaped(f"{question}{listed}: "), end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)
            raise _StoppedError
        answer = line.strip()
        if not choices:
            return answer
        fitting = [each for each in choices if answer and each.startswith(answer.lower())]
        if len(fitting) == 1:
            return fitting[0]


def _unit(schema: Schema) -> Schema:
    if schema.panel is not None:
        return schema
    if schema.unit is None:
        names = [column.name for column in schema.columns]
        for column in schema.columns:
            for note in column.notes:
                if "set unit" in note:
                    say(f"{column.name}: {note}")
        while True:
            unit = _ask(
                "Column that tells whose a row is, if a person can have several (empty: none)"
            )
            if not unit:
                return schema
            if unit in names:
                break
            say(f"There is no column {unit!r}.")
        schema = replace(schema, unit=unit)
    say("The most rows of one unit that count: a public figure, never the observed maximum.")
    while True:
        answer = _ask(f"Rows per unit (empty: {schema.rows_per_unit})")
        if not answer:
            return schema
        if answer.isdecimal() and int(answer) >= 1:
            return replace(schema, rows_per_unit=int(answer))


def _feature(schema: Schema, feature: Feature) -> tuple[Schema, str]:
    """Ask about one feature that was read off the data."""
    labels = _shown(feature)
    more = f" and {len(labels) - _MOST_SHOWN} more" if len(labels) > _MOST_SHOWN else ""
    say(f"{feature.name} ({feature.kind}, {feature.role}): {', '.join(labels[:_MOST_SHOWN])}{more}")
    for note in feature.notes:
        say(f"  {note}")
    while True:
        answer = _ask(
            "Is that public knowledge, whoever is in the table?",
            (_KEEP, "role", "categories", "edges", _DROP, _LATER),
        )
        if answer in (_KEEP, _LATER):
            return schema, answer
        try:
            changed = _changed(schema, feature.name, answer)
        except PegsynthError as error:
            say(str(error))
            continue
        schema = changed
        if answer == _DROP:
            return schema, answer
        say(f"  now: {', '.join(_shown(schema[feature.name])[:_MOST_SHOWN])}")


def _shown(feature: Feature) -> tuple[str, ...]:
    """Return what a feature may hold, in words where a release finds out."""
    measured = {
        "edges are measured by the release": feature.private_edges,
        "categories are found by the release": feature.private_categories,
        f"{feature.decimals} decimals": feature.decimals is not None,
    }
    return (*(text for text, holds in measured.items() if holds), *feature.labels)


def _changed(schema: Schema, name: str, what: str) -> Schema:
    if what == _DROP:
        return schema.with_feature(name, role="identifier")
    if what == "role":
        return schema.with_feature(name, role=_ask("Its role", tuple(ROLES)))
    if what == "categories":
        listed = _ask("All of its categories in order, with | between them")
        categories = tuple(text.strip() for text in listed.split("|") if text.strip())
        return schema.with_feature(name, categories=categories)
    listed = _ask("Edges of its bins, with spaces between them")
    if schema[name].kind in TEMPORAL:
        return schema.with_feature(name, edges=tuple(map(_bound, listed.split())))
    try:
        edges = tuple(float(text) for text in listed.split())
    except ValueError:
        raise ParameterError("edges are numbers") from None
    return schema.with_feature(name, edges=edges)


def _bound(text: str) -> Any:
    """Return an edge of dates or lengths of time: a number if it is one, else text."""
    return int(text) if text.isdecimal() and text.isascii() else text


def _rules(schema: Schema) -> Schema:
    """Ask about rules that were found in the data; those that are no public knowledge go."""
    kept = []
    for rule in schema.rules:
        if rule.drafted_from_data:
            say(f"Never in the data: {said(rule, schema.features)}")
            if _ask("Is it publicly known that this cannot occur?", ("yes", "no")) == "no":
                continue
        kept.append(rule)
    return replace(schema, rules=tuple(kept))
