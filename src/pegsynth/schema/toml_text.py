"""A schema as the text of ``schema.toml``; writing is deterministic.

Of dropped columns there is nothing but name and role.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pegsynth.errors import SchemaError, escaped
from pegsynth.schema.calendar_units import TEMPORAL, resolution_of
from pegsynth.schema.feature import Feature, number_text
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.keys import PRIVATE, keys_of
from pegsynth.schema.rule_text import rule_labels
from pegsynth.schema.rules import Rule
from pegsynth.schema.schema import Schema
from pegsynth.schema.tally import FEW_PEOPLE
from pegsynth.schema.temporal import bound_text

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
    lines = [header, f"format = {FORMAT}", f"reviewed = {toml(schema.reviewed)}"]
    signed = {"reviewed_by": schema.reviewer, "reviewed_on": schema.reviewed_on}
    lines += [f"{key} = {toml(text)}" for key, text in signed.items() if text]
    return "\n".join((*lines, ""))


def _blocks(schema: Schema, notes: bool) -> Iterator[str]:
    panel, unit = schema.panel, "" if schema.panel else schema.unit
    if unit or schema.rows_per_unit != 1 or schema.dialect:
        rows = str(schema.rows_per_unit) if unit or schema.rows_per_unit != 1 else ""
        named = {"unit": toml(unit) if unit else "", "rows_per_unit": rows}
        stated = (f"{key} = {text}" for key, text in named.items() if text)
        yield _block("[table]", [*stated, *_lines(schema.dialect)])
    if panel and panel.tables and not panel.wide:
        units, rows_of_units = panel.tables
        least = [] if panel.least else ["least = 0"]
        key = f"key = {toml(panel.unit)}"
        fixed = f"features = {toml(panel.fixed)}"
        ordered = (f"order = {toml(panel.time)}", f"most = {panel.most}", *least)
        yield _block("[[tables]]", [f"name = {toml(units)}", key, fixed])
        yield _block("[[tables]]", [f"name = {toml(rows_of_units)}", key, *ordered])
    elif panel:
        folded = {"tables": toml(panel.tables), "least": str(panel.least)} if panel.tables else {}
        yield _block("[panel]", _lines(panel, {"least": "", **folded}))
    for column in schema.columns:
        # A comment may hold no control characters either, and notes quote what stands in cells.
        comments = [f"# {escaped(' '.join(note.split()))}" for note in column.notes if notes]
        yield _block("[[features]]", [*comments, *_lines(column, _of_feature(column))])
    for rule in schema.rules:
        if not rule.structural:
            yield rule_text(rule, schema.features)
    for analysis in schema.analyses:
        yield _block("[[analyses]]", _lines(analysis))
    for table in schema.tables_wanted:
        yield _block("[[tables_wanted]]", _lines(table))


def _block(header: str, lines: Iterable[str]) -> str:
    return "\n".join((header, *lines, ""))


def _lines(value: Any, instead: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield a line for every declared key that says something else than a file without it.

    Parameters
    ----------
    instead
        What to write for some keys, whatever the value holds; nothing: they are left out.
    """
    for key in keys_of(type(value)):
        text = (instead or {}).get(key.name)
        if text is None:
            held = getattr(getattr(value, key.part) if key.part else value, key.name, key.default)
            silent = held == key.default or held in (None, "", ())
            text = "" if silent and not key.always else toml(held)
        if text:
            yield f"{key.name} = {text}"


def _of_feature(feature: Feature) -> dict[str, str]:
    """Return what is written of a feature in another form than it is held."""
    found: dict[str, str] = {}
    if not feature.modelled:
        found["kind"] = ""
    if feature.private_categories:
        found |= {"categories": toml(PRIVATE), "unknown": ""}
    elif feature.integer and all(map(_CANONICAL_INTEGER.fullmatch, feature.categories)):
        found["categories"] = _list(feature.categories) if feature.categories else ""
    if feature.private_edges:
        found["edges"] = toml(PRIVATE)
    if feature.calendar:
        text = partial(bound_text, feature)
        ends = {"lowest": feature.lowest, "highest": feature.highest}
        found |= {key: toml(text(end)) for key, end in ends.items() if end is not None}
        if feature.edges:
            found["edges"] = toml(tuple(map(text, feature.edges)))
    if feature.kind in TEMPORAL and feature.resolution == resolution_of(feature.kind, ""):
        found["resolution"] = ""
    if feature.recoding is not None and feature.recoding.hierarchy is not None:
        found["level"] = str(feature.recoding.level)
    return found


def rule_text(rule: Rule, features: Sequence[Feature]) -> str:
    """Return one rule as a schema file writes it."""
    label = [f"label = {toml(rule.label)}"] if rule.label else []
    parts = (f"{_key(name)} = {toml(said)}" for name, said in rule_labels(rule, features).items())
    drafted = ["drafted_from_data = true"] if rule.drafted_from_data else []
    return _block("[[rules]]", [*label, f"forbid = {{ {', '.join(parts)} }}", *drafted])


def toml(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # A JSON string is a TOML string, but for the one control character JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, Hierarchy):
        pairs = ", ".join(f"{toml(code)} = {toml(parent)}" for code, parent in value.pairs)
        prefix = "prefix:" + ",".join(map(str, value.prefixes))
        return f"{{ {pairs} }}" if pairs else toml(prefix)
    if value and isinstance(value[0], tuple):
        # Names of groups are always in quotes, and codes are where they must be.
        pairs = ", ".join(
            f"{_key(name) if isinstance(held, str) else toml(name)} = {toml(held)}"
            for name, held in value
        )
        return f"{{ {pairs} }}"
    return _list([toml(each) for each in value])


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
    return name if _BARE_KEY.fullmatch(name) else toml(name)
