"""Writes docs/schema.md and docs/schema.schema.json from the keys that are declared.

python tools/schema_reference.py docs
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegsynth.schema.keys import Key, keys_of
from pegsynth.schema.toml import PLACES, File

OPENING = """# The schema file

`schema.toml` is the public codebook of a table: which columns it has and what each may hold.
Everything that a release draws from, prices and publishes follows from this file and from noisy
counts, and from nothing else. It is written by a person, drafted from the table
(`pegs schema DATA -o schema.toml`, [drafts.md](drafts.md)), drafted from names and declared types
without reading a row
(`pegs schema --private DATA -o schema.toml`), or made from a codebook that exists
(`pegs schema --from CODEBOOK -o schema.toml`; what that does not tell is left to the release).
`pegs schema check FILE` says what a guarantee will assume, `pegs schema show FILE` prints it as a
table, and `pegs schema review FILE` asks what is still open. `pegs schema count FILE DATA`
counts the rows of every category and bin, the values that a release would refuse and the rows that
break a rule: figures of the table for those who may see it, under no guarantee.

```toml
format = 1
reviewed = true

[table]
unit = "person"
rows_per_unit = 3
separator = ";"

[[features]]
name = "person"
role = "identifier"

[[features]]
name = "sex"
categories = ["1", "2"]
value_labels = { 1 = "male", 2 = "female" }
missing = ["", "-9"]

[[features]]
name = "age"
kind = "numeric"
role = "quasi-identifier"
dtype = "int64"
bins = { lowest = 0, highest = 100, count = 20 }
```

Editors that know TOML (taplo, Even Better TOML) complete and check the file with
[schema.schema.json](schema.schema.json): put `#:schema docs/schema.schema.json` in its first line.
This page and that file are written by `python tools/schema_reference.py docs`.
"""


@dataclass(frozen=True)
class Form:
    """What the value of a key is, in words and as a JSON Schema."""

    words: str
    json: Mapping[str, Any]


def _list_of(*kinds: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": kinds[0] if len(kinds) == 1 else list(kinds)}}


def _or_text(other: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [other, {"type": "string"}]}


_TABLE: dict[str, Any] = {"type": "object"}
_TEXTS = _TABLE | {"additionalProperties": {"type": "string"}}

FORMS: Mapping[str, Form] = {
    "flag": Form("true or false", {"type": "boolean"}),
    "whole": Form("whole number", {"type": "integer"}),
    "number": Form("number", {"type": "number"}),
    "text": Form("text", {"type": "string"}),
    "texts": Form("list of texts", _list_of("string")),
    "values": Form("list of texts or numbers", _list_of("string", "number", "boolean")),
    "numbers": Form("list of numbers", _list_of("number")),
    "table": Form("table", _TABLE),
    "groups": Form("table", _TABLE),
    "tables": Form("tables in double brackets", {"type": "array", "items": _TABLE}),
    "edges": Form(
        'list of numbers or dates, "private", or a calendar step',
        _or_text(_list_of("number", "string")),
    ),
    "bins": Form(
        "table, or a whole number with private edges", {"anyOf": [_TABLE, {"type": "integer"}]}
    ),
    "listed": Form(
        'list of texts or numbers, the name of a file, or "private"',
        _or_text(_list_of("string", "number", "boolean")),
    ),
    "labels": Form("table, or the name of a file", _or_text(_TEXTS)),
    "hierarchy": Form("name of a file, `prefix:N`, or table", _or_text(_TEXTS)),
    "bound": Form("number, or a date", {"type": ["number", "string"]}),
    "gaps": Form('list of numbers, or "private"', _or_text(_list_of("number"))),
}


def pages() -> dict[str, str]:
    """Return the files by name."""
    return {
        "schema.md": reference(),
        "schema.schema.json": json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n",
    }


def reference() -> str:
    """Return the page that explains every key."""
    titles = (
        "At the top",
        "`[table]`: the whole table",
        "`[panel]`: rows of a unit that belong together",
        "`[[tables]]`: units and their rows in two tables",
        "`[[features]]`: one for each column",
        "`bins = { .. }` of a feature",
        "`[[rules]]`: what cannot occur",
        "`[[analyses]]`: regressions that a release is to hold",
        "`[[tables_wanted]]`: tables that a release is to publish",
    )
    parts = [OPENING]
    for kind, title in zip(PLACES, titles, strict=True):
        parts.append(f"## {title}\n")
        parts.append("| key | value | if left out | example | meaning | for the guarantee |")
        parts.append("|---|---|---|---|---|---|")
        parts += [_line(key) for key in keys_of(kind)]
        parts.append("")
    return "\n".join(parts)


def _line(key: Key) -> str:
    choices = ""
    if key.choices and key.form == "text" and len(key.choices) < 6:
        choices = ": " + ", ".join(f"`{_shown(each)}`" for each in key.choices)
    cells = (
        f"`{key.name}`",
        FORMS[key.form].words + choices,
        key.left_out,
        f"`{_shown(key.example)}`",
        key.meaning,
        key.guarantee,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _shown(text: str) -> str:
    return text.replace("\t", "\\t")


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


if __name__ == "__main__":
    for file, text in pages().items():
        Path(sys.argv[1], file).write_text(text, encoding="utf-8")
