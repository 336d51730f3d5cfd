"""What a draft suggests, as something to accept: the remark, and the change that it speaks of.

Remarks are those that `schema.suggest` writes into a draft as comments. One that asks for a change
which a form can make is a suggestion; the others are for the eye. Nothing is changed by a program
alone: a person accepts or dismisses each.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pegsynth.errors import ParameterError
from pegsynth.schema import Schema
from pegsynth.schema.rules import NamedRule

_TEXT = r'"(?:[^"\\]|\\.)*"'
_ROLE = re.compile(rf"consider role = ({_TEXT})")
_PARENT = re.compile(rf"consider parent = ({_TEXT})")
_MISSING = re.compile(rf"^does ({_TEXT}(?:, {_TEXT})*) mean that nothing is known")
_UNIT = re.compile(rf"set unit = ({_TEXT}) under \[table\]")
_RULE = re.compile(r"add: \[\[rules\]\] (forbid = \{.*\}), drafted_from_data = true$")
_ADDED = re.compile(r"; only if that is publicly known to be impossible, add: .*$")
_CONSIDER = re.compile(rf"[;:] consider (?:role|parent) = {_TEXT}$")
_TWIN = re.compile(r"one to one: a code and its description\? Drop one$")


@dataclass(frozen=True)
class Suggestion:
    """A remark on a column and what accepting it does.

    Parameters
    ----------
    column, place
        The column, and the place of the remark among its remarks.
    note
        The remark.
    what, value
        What would be changed, and to what; `what` is empty where there is nothing to accept.
    """

    column: str
    place: int
    note: str
    what: str = ""
    value: Any = None

    @property
    def text(self) -> str:
        """Return the remark without what the button says."""
        if self.what == "rule":
            return _ADDED.sub("; only if that is publicly known to be impossible", self.note)
        return _CONSIDER.sub("", self.note)

    @property
    def button(self) -> str:
        """Say what accepting does."""
        return {
            "role": f"Make it {self.value}",
            "parent": f"Make it a detail of {self.value}",
            "missing": "Move to missing",
            "unit": "Protect all rows of one together",
            "rule": "Add the rule",
            "": "",
        }[self.what]


def suggestions(schema: Schema) -> Iterator[Suggestion]:
    """Yield every remark of a draft, in the order of its columns."""
    for column in schema.columns:
        for place, note in enumerate(column.notes):
            what, value = _meaning(note)
            yield Suggestion(column.name, place, note, what, value)


def _meaning(note: str) -> tuple[str, Any]:
    for what, pattern in (("role", _ROLE), ("parent", _PARENT), ("unit", _UNIT)):
        if found := pattern.search(note):
            return what, json.loads(found[1])
    if found := _MISSING.search(note):
        return "missing", tuple(json.loads(f"[{found[1]}]"))
    if found := _RULE.search(note):
        return "rule", tomllib.loads(found[1])["forbid"]
    return ("role", "drop") if _TWIN.search(note) else ("", None)


def accept(schema: Schema, name: str, place: int) -> Schema:
    """Do what a remark suggests, and take the remark away."""
    found = [each for each in suggestions(schema) if (each.column, each.place) == (name, place)]
    if not found or not found[0].what:
        raise ParameterError("there is no such suggestion any more; load the page again")
    return dismiss(_changed(schema, found[0]), name, place)


def accept_roles(schema: Schema) -> Schema:
    """Accept every suggestion of a role; the first one of a column counts."""
    for each in reversed(list(suggestions(schema))):
        if each.what == "role":
            schema = accept(schema, each.column, each.place)
    return schema


def dismiss(schema: Schema, name: str, place: int) -> Schema:
    """Take a remark away."""
    return schema.with_columns(
        replace(column, notes=tuple(n for p, n in enumerate(column.notes) if p != place))
        if column.name == name
        else column
        for column in schema.columns
    )


def _changed(schema: Schema, wanted: Suggestion) -> Schema:
    name, value = wanted.column, wanted.value
    if wanted.what == "unit":
        return replace(schema, unit=value)
    if wanted.what == "rule":
        values = tuple((feature, tuple(texts)) for feature, texts in value.items())
        rules: Any = (NamedRule(values, drafted_from_data=True),)
        return schema.with_rules(*rules)
    if wanted.what == "missing":
        column = schema[name]
        kept = tuple(text for text in column.categories if text not in value)
        missing = (*column.missing, *(text for text in value if text not in column.missing))
        return schema.with_feature(name, missing=missing, categories=kept)
    return schema.with_feature(name, **{wanted.what: value})
