"""A JSON Schema of ``schema.toml`` for editors, made of the declared keys."""

from __future__ import annotations

from typing import Any

from pegsynth.schema.keys import Form, Key, Place, keys_of

_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
_PLAIN: dict[Form, dict[str, Any]] = {
    "flag": {"type": "boolean"},
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "values": {"type": "array", "items": {"type": ["string", "number", "boolean"]}},
    "numbers": {"type": "array", "items": {"type": "number"}},
    "table": {"type": "object"},
    "tables": {"type": "array", "items": {"type": "object"}},
    "edges": {
        "anyOf": [{"type": "array", "items": {"type": ["number", "string"]}}, {"type": "string"}]
    },
    "bound": {"type": ["number", "string"]},
    "gaps": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]},
    "bins": {"anyOf": [{"type": "object"}, {"type": "integer"}]},
    "listed": {
        "anyOf": [
            {"type": "array", "items": {"type": ["string", "number", "boolean"]}},
            {"type": "string"},
        ]
    },
    "labels": {"anyOf": [_TEXTS, {"type": "string"}]},
    "hierarchy": {"anyOf": [_TEXTS, {"type": "string"}]},
}
_NEEDED: dict[Place, list[str]] = {
    "panel": ["unit", "time", "most"],
    "tables": ["name", "key"],
    "features": ["name"],
    "bins": ["lowest", "highest"],
    "analyses": ["formula"],
    "tables_wanted": ["features"],
}
_INSIDE: dict[tuple[Place, str], Place] = {
    ("file", "table"): "table",
    ("file", "panel"): "panel",
    ("file", "tables"): "tables",
    ("file", "features"): "features",
    ("file", "rules"): "rules",
    ("file", "analyses"): "analyses",
    ("file", "tables_wanted"): "tables_wanted",
    ("features", "bins"): "bins",
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the whole file."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "schema.toml of pegsynth",
        **_place("file"),
    }


def _place(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _key(key) for key in keys_of(place)},
    }
    if place in _NEEDED:
        found["required"] = _NEEDED[place]
    return found


def _key(key: Key) -> dict[str, Any]:
    inside = _INSIDE.get((key.place, key.name))
    found = dict(_PLAIN[key.form])
    if inside is not None:
        whole = _place(inside)
        several: dict[str, Any] = {"type": "array", "items": whole}
        counted: dict[str, Any] = {"anyOf": [whole, {"type": "integer"}]}
        found = {"tables": several, "bins": counted}.get(key.form, whole)
    if key.choices:
        found["enum"] = list(key.choices)
    meaning = (
        key.meaning if key.guarantee == "none" else f"{key.meaning} Guarantee: {key.guarantee}."
    )
    return {**found, "description": meaning}
