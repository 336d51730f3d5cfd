"""All keys of ``schema.toml`` by their place: where one belongs, and a JSON Schema for editors."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from pegsynth.schema.binning import EqualWidth
from pegsynth.schema.declared import Analysis, WantedTable
from pegsynth.schema.feature import Feature
from pegsynth.schema.keys import FORMS, Key, keys_of
from pegsynth.schema.panel import OneOfTwo, Panel
from pegsynth.schema.rule_text import RuleTable
from pegsynth.schema.toml import File, Table

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


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the whole file."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "schema.toml of pegsynth",
        **_object(File),
    }


def _object(kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _property(key) for key in keys_of(kind)},
    }
    required = [key.name for key in keys_of(kind) if key.needed]
    return found | ({"required": required} if required else {})


def _property(key: Key) -> dict[str, Any]:
    found = dict(FORMS[key.form].json)
    if key.inside is not None:
        inner = _object(key.inside)
        several: dict[str, Any] = {"type": "array", "items": inner}
        counted: dict[str, Any] = {"anyOf": [inner, {"type": "integer"}]}
        found = {"tables": several, "bins": counted}.get(key.form, inner)
    if key.choices:
        found["enum"] = list(key.choices)
    known = "" if key.guarantee == "none" else f" Guarantee: {key.guarantee}."
    return {**found, "description": key.meaning + known}
