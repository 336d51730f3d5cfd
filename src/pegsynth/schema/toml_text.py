"""A schema as the text of ``schema.toml``; writing is deterministic.

Of dropped columns there is nothing but name and role.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from pegsynth.errors import SchemaError, escaped
from pegsynth.schema.declared import declared_blocks
from pegsynth.schema.feature import PRIVATE, Feature, number_text
from pegsynth.schema.rule_text import rule_labels
from pegsynth.schema.rules import Rule
from pegsynth.schema.schema import Schema
from pegsynth.schema.section_toml import (
    date_lines,
    moment_toml,
    panel_lines,
    recoding_lines,
    two_table_lines,
)
from pegsynth.schema.tally import FEW_PEOPLE

FORMAT = 1

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_LINE_WIDTH = 96

_CONFIDENTIAL_HEADER = f"""\
# CONFIDENTIAL: drafted from data; not to be shared before a person has reviewed it.
#
# Check that everything below is public knowledge, and mend what is not:
#   - categories and their order: from a codebook, not because somebody has them. A value that
#     fewer than {FEW_PEOPLE} rows have is not listed, unless min_count said otherwise: texts and
#     codes become "(other)", and numbers are measured;
#   - edges: "private" ones are measured by a release and need no review; listed ones are round
#     public figures, beyond which values fall in the end bins; decimals: how many numbers have;
#   - missing: the texts that mean "not known"; not_applicable: those that mean "cannot be";
#   - role: identifier (dropped; nothing is kept of it but its name), quasi-identifier (an
#     intruder may know it), sensitive, other;
#   - unit and rows_per_unit: the most rows one person may have, never the observed maximum.
# Then set reviewed to true: this declares all of it public. Leave drafted_from_data as it is.
# Comments on features are figures of the data: delete them before you share this file.
"""
_PUBLIC_HEADER = """\
# The public codebook of a table: its features, their categories in order, and rules.
"""


def dumps(schema: Schema, *, notes: bool = False) -> str:
    """Write a schema as the text of a schema file.

    Of dropped columns there is nothing but name and role. Notes on a draft are confidential, so
    they are left out unless asked for.
    """
    blocks = [_head_text(schema), *_blocks(schema, notes)]
    text = "\n".join(blocks)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            "a name, category or label holds half of a surrogate pair, which no text file can "
            "hold; correct that text"
        ) from None
    return text


def confidential(schema: Schema) -> bool:
    """Say whether a schema is a draft that no person has reviewed."""
    return not schema.reviewed and any(column.drafted_from_data for column in schema.columns)


def _head_text(schema: Schema) -> str:
    header = _CONFIDENTIAL_HEADER if confidential(schema) else _PUBLIC_HEADER
    lines = [header, f"format = {FORMAT}", f"reviewed = {_flag(schema.reviewed)}"]
    signed = {"reviewed_by": schema.reviewer, "reviewed_on": schema.reviewed_on}
    lines += [f"{key} = {_text(text)}" for key, text in signed.items() if text]
    return "\n".join((*lines, ""))


def _blocks(schema: Schema, notes: bool) -> Iterator[str]:
    if (schema.unit and not schema.panel) or schema.rows_per_unit != 1 or schema.dialect:
        yield _block("[table]", _table_lines(schema))
    if schema.panel and schema.panel.tables and not schema.panel.wide:
        for lines in two_table_lines(schema.panel, _text, _list):
            yield _block("[[tables]]", lines)
    elif schema.panel:
        yield _block("[panel]", panel_lines(schema.panel, _text, _list))
    for column in schema.columns:
        # A comment may hold no control characters either, and notes quote what stands in cells.
        comments = [f"# {escaped(' '.join(note.split()))}" for note in column.notes if notes]
        yield _block("[[features]]", [*comments, *_feature_lines(column)])
    for rule in schema.rules:
        if rule.structural:
            continue
        yield _block("[[rules]]", _rule_lines(rule, schema.features))
    for heading, pairs in declared_blocks(schema.analyses, schema.tables_wanted):
        yield _block(heading, (f"{key} = {_declared(key, value)}" for key, value in pairs))


def _declared(key: str, value: Any) -> str:
    if key == "features":
        return _list([_text(name) for name in value])
    return str(value) if key == "share" else _text(value)


def _table_lines(schema: Schema) -> Iterator[str]:
    if schema.unit and not schema.panel:
        yield f"unit = {_text(schema.unit)}"
    if (schema.unit and not schema.panel) or schema.rows_per_unit != 1:
        yield f"rows_per_unit = {schema.rows_per_unit}"
    for each in fields(schema.dialect):
        if text := getattr(schema.dialect, each.name):
            yield f"{each.name} = {_text(text)}"


def _block(header: str, lines: Iterable[str]) -> str:
    return "\n".join((header, *lines, ""))


def _feature_lines(feature: Feature) -> Iterator[str]:
    yield f"name = {_text(feature.name)}"
    if feature.label:
        yield f"label = {_text(feature.label)}"
    if feature.modelled:
        yield f"kind = {_text(feature.kind)}"
    yield f"role = {_text(feature.role)}"
    if feature.dtype:
        yield f"dtype = {_text(feature.dtype)}"
    if feature.private_categories:
        yield f"categories = {_text(PRIVATE)}"
    yield from _value_lines(feature)
    yield from recoding_lines(feature, _text, _list)
    if feature.unknown != "error" and not feature.private_categories:
        yield f"unknown = {_text(feature.unknown)}"
    if feature.heads:
        yield f"heads = {_list([_text(head) for head in feature.heads])}"
    if feature.l is not None:
        yield f"l = {number_text(feature.l)}"
    if feature.parent:
        yield f"parent = {_text(feature.parent)}"
    if feature.shares:
        yield f"shares = {_list([number_text(share) for share in feature.shares])}"
    if feature.drafted_from_data:
        yield "drafted_from_data = true"


def _value_lines(feature: Feature) -> Iterator[str]:
    if feature.categories:
        as_integers = feature.integer and all(map(_CANONICAL_INTEGER.fullmatch, feature.categories))
        items = feature.categories if as_integers else [_text(c) for c in feature.categories]
        yield f"categories = {_list(items)}"
    if feature.value_labels:
        pairs = ", ".join(f"{_key(code)} = {_text(text)}" for code, text in feature.value_labels)
        yield f"value_labels = {{ {pairs} }}"
    yield from _bin_lines(feature)
    for key in ("missing", "not_applicable"):
        if texts := getattr(feature, key):
            yield f"{key} = {_list([_text(text) for text in texts])}"
    if feature.keep_missing_codes:
        yield "keep_missing_codes = true"


def _bin_lines(feature: Feature) -> Iterator[str]:
    if feature.private_edges:
        yield f"edges = {_text(PRIVATE)}"
    text = partial(moment_toml, feature) if feature.calendar else number_text
    if feature.edges:
        yield f"edges = {_list([text(edge) for edge in feature.edges])}"
    for key in ("lowest", "highest"):
        if (value := getattr(feature, key)) is not None:
            yield f"{key} = {text(value)}"
    for key in ("bins", "decimals"):
        if (value := getattr(feature, key)) is not None:
            yield f"{key} = {number_text(value)}"
    yield from date_lines(feature)
    if feature.inside is not None:
        yield f"inside = {_text(feature.inside)}"


def rule_text(rule: Rule, features: Sequence[Feature]) -> str:
    """Return one rule as a schema file writes it."""
    return _block("[[rules]]", _rule_lines(rule, features))


def _rule_lines(rule: Rule, features: Sequence[Feature]) -> Iterator[str]:
    if rule.label:
        yield f"label = {_text(rule.label)}"
    parts = (
        f"{_key(name)} = {_list([_text(label) for label in labels])}"
        for name, labels in rule_labels(rule, features).items()
    )
    yield f"forbid = {{ {', '.join(parts)} }}"
    if rule.drafted_from_data:
        yield "drafted_from_data = true"


def _list(items: Sequence[str]) -> str:
    line = f"[{', '.join(items)}]"
    return line if len(line) <= _LINE_WIDTH - 16 else "[\n" + "\n".join(_filled(items)) + "\n]"


def _filled(items: Sequence[str]) -> Iterator[str]:
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > _LINE_WIDTH and line != "   ":
            yield line
            line = "   "
        line += f" {item},"
    yield line


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # A JSON string is a TOML string, but for the one control character JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _flag(value: bool) -> str:
    return "true" if value else "false"
