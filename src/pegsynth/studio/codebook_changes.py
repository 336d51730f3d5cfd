"""What a form of the codebook changes, and the Python code that changes the same.

Every change goes through `Schema` and is refused as the command line would refuse it. A change to
a reviewed codebook takes the review back: somebody has to look again. Remarks of a draft stay in
the file until they are dismissed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.entry import Entry, PublicFiles
from pegsynth.schema.feature import DROPPED
from pegsynth.schema.panel import Panel
from pegsynth.schema.recoding import Recoding
from pegsynth.schema.rule_text import rule_labels
from pegsynth.schema.rules import NamedRule
from pegsynth.schema.toml import load, loads, save, with_comments

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


Told = Mapping[str, Sequence[str]]

_LISTED = ("nominal", "ordinal")
KEPT = "as it is"
"""What stands for a hierarchy that a form cannot spell, because it was read from a file."""
_NO_NUMBER: dict[str, Any] = {
    **dict.fromkeys(("decimals", "inside", "lowest", "highest", "bins", "recoding")),
    "shares": (),
}
"""What only numbers have, taken away."""


def apply(file: Path, told: Told) -> tuple[str, str]:
    """Do what a form of the codebook asks and save it.

    Returns
    -------
    tuple
        Where to go then, and Python code that does the same; empty where nothing changed.
    """
    if not file.is_file():
        raise ParameterError("there is no codebook yet; choose a table first")
    what, to = one(told, "what"), one(told, "to")
    to = to if to.startswith("/codebook") else "/codebook"
    old = _as_it_was(file, torn=what == "text")
    if what == "text" or old is None:
        text = one(told, "text").replace("\r\n", "\n")
        new = with_comments(loads(text, file.name, folder=file.parent), text)
    elif what in _CHANGES:
        new = _CHANGES[what](old, told, file.parent)
    else:
        raise ParameterError("this form is not one of the codebook's")
    if what != "review" and new != old:
        new = replace(new, reviewed=False, reviewer="", reviewed_on="")
    save(new, file)
    return to, "" if old is None else code(old, new, file.name)


def _as_it_was(file: Path, *, torn: bool) -> Schema | None:
    """Return the codebook; None for one that cannot be read, where its text is replaced."""
    try:
        return load(file, notes=True)
    except SchemaError:
        if torn:
            return None
        raise


def _bulk(schema: Schema, told: Told, folder: Path) -> Schema:
    """Change several columns at once; what is left as it is stays."""
    chosen = told.get("chosen", ())
    if not chosen:
        raise ParameterError("tick the columns that should be changed")
    role, kind, private = (one(told, name) for name in ("role", "kind", "private"))
    missing = _lines(told, "missing")
    if not any((role, kind, private, missing)):
        raise ParameterError("say what should be changed: role, kind, missing texts or who finds")
    for name in chosen:
        changes: dict[str, Any] = {"role": role} if role else {}
        if role in DROPPED or (schema[name].dropped and not role):
            schema = schema.with_feature(name, **changes)
            continue
        if missing:
            old = schema[name]
            changes["missing"] = tuple(dict.fromkeys((*old.missing, *missing)))
            changes["categories"] = tuple(c for c in old.categories if c not in missing)
        changes |= _left_to_release(private)
        changes |= {"kind": kind} if kind else {}
        schema = schema.with_feature(name, **changes)
    return schema


def _left_to_release(private: str) -> dict[str, Any]:
    if private == "categories":
        return {"kind": "nominal", "categories": "private", "edges": (), **_NO_NUMBER}
    if private == "edges":
        return {"kind": "numeric", "edges": "private", "categories": (), "shares": ()}
    return {}


def _unit(schema: Schema, told: Told, folder: Path) -> Schema:
    """Say whose a row is, how many rows of one count, and whether they are kept together."""
    unit, rows = one(told, "unit"), one(told, "rows_per_unit") or "1"
    if not rows.isdecimal():
        raise ParameterError("rows per unit is a whole number, the most that one person may have")
    time = one(told, "time")
    if time and not unit:
        raise ParameterError(
            "rows are kept in order for each person; name the column of the person"
        )
    schema = replace(schema, panel=None, unit=None, rows_per_unit=1)
    if not unit:
        return schema
    if schema[unit].role not in DROPPED:
        schema = schema.with_feature(unit, role="identifier")
    if not time:
        return replace(schema, unit=unit, rows_per_unit=int(rows))
    panel = Panel(unit, time, int(rows), fixed=tuple(told.get("fixed", ())))
    return replace(schema, panel=panel)


def _feature(schema: Schema, told: Told, folder: Path) -> Schema:
    """Change one feature."""
    name = one(told, "name")
    old = schema[name]
    changes: dict[str, Any] = {"role": one(told, "role")}
    if changes["role"] in DROPPED:
        return schema.with_feature(name, **changes)
    changes |= {"label": one(told, "label"), "missing": _lines(told, "missing")}
    changes |= {"parent": one(told, "parent") or None, "unknown": one(told, "unknown") or "error"}
    changes |= {"recoding": _recoding(old, told, folder), **_levels(old, told)}
    return schema.with_feature(name, **changes)


def _levels(old: Feature, told: Told) -> dict[str, Any]:
    """Return kind, categories and edges as a form states them."""
    private, kind = one(told, "private"), one(told, "kind")
    if private == "edges" and old.kind in TEMPORAL:
        return {"edges": "private"}
    if private:
        bounds = {key: _number(told, key) for key in ("lowest", "highest")}
        return _left_to_release(private) | (bounds if private == "edges" else {})
    edges = one(told, "edges")
    if edges and old.kind in TEMPORAL:
        return {} if edges == one(told, "edges_before") else {"edges": tuple(edges.split())}
    if edges:
        return {"edges": _numbers(edges), "kind": "numeric", "categories": ()}
    if "categories" in told and (kind in _LISTED or not old.binned):
        number = {"edges": (), **_NO_NUMBER} if old.binned else {}
        return {
            "categories": _lines(told, "categories"),
            "kind": kind if kind in _LISTED else old.kind,
            **number,
        }
    return {}


def _recoding(old: Feature, told: Told, folder: Path) -> Recoding | None:
    """Return the recoding as a form states it; what the form does not know of stays."""
    before = old.recoding or Recoding()
    values: dict[str, Any] = {key: _number(told, key) for key in ("top", "bottom", "round")}
    values = {key: value for key, value in values.items() if value is not None}
    hierarchy, level = one(told, "hierarchy"), one(told, "level") or "1"
    kept: dict[str, Any] = {"groups": before.groups, "rare": before.rare}
    if hierarchy == KEPT:
        kept |= {"hierarchy": before.hierarchy, "level": before.level}
    elif hierarchy:
        if not level.isdecimal():
            raise ParameterError("the level of a hierarchy is a whole number: steps to go up")
        stated, files = {"hierarchy": hierarchy}, PublicFiles(folder)
        read = Entry.at(Feature, f"feature {old.name!r}", stated, files).made(Recoding)
        kept |= {"hierarchy": read.hierarchy, "level": int(level)}
    found = Recoding(**values, **kept)
    return None if found == Recoding() else found


def _rule(schema: Schema, told: Told, folder: Path) -> Schema:
    """Add a rule, or drop one."""
    number = one(told, "number")
    if number:
        if not number.isdecimal() or int(number) >= len(schema.rules):
            raise ParameterError("there is no such rule")
        kept = [rule for place, rule in enumerate(schema.rules) if place != int(number)]
        return replace(schema, rules=tuple(kept))
    values = tuple(
        (one(told, f"feature_{side}"), tuple(filter(None, _lines(told, f"values_{side}"))))
        for side in ("a", "b")
    )
    if not all(name and listed for name, listed in values):
        raise ParameterError("a rule names two columns and the categories that never go together")
    if values[0][0] == values[1][0]:
        raise ParameterError("a rule names two different columns")
    rules: Any = (NamedRule(values, one(told, "label")),)
    return schema.with_rules(*rules)


def _suggestion(schema: Schema, told: Told, folder: Path) -> Schema:
    """Accept or dismiss a remark of the draft."""
    if one(told, "do") == "roles":
        return accept_roles(schema)
    name, place = one(told, "name"), one(told, "place")
    if not place.isdecimal():
        raise ParameterError("there is no such suggestion any more; load the page again")
    do = {"accept": accept, "dismiss": dismiss}.get(one(told, "do"))
    if do is None:
        raise ParameterError("a suggestion is accepted or dismissed")
    return do(schema, name, int(place))


def _review(schema: Schema, told: Told, folder: Path) -> Schema:
    """Write down who declares all of it public knowledge."""
    name = one(told, "reviewer").strip()
    if not name or one(told, "declared") != "yes":
        raise ParameterError("a review needs your name and your declaration")
    return schema.reviewed_by(name)


_CHANGES = {
    "bulk": _bulk,
    "unit": _unit,
    "feature": _feature,
    "rule": _rule,
    "suggestion": _suggestion,
    "review": _review,
}


def code(old: Schema, new: Schema, file: str) -> str:
    """Return Python code that makes the new codebook of the old one."""
    lines = [*_feature_lines(old, new), *_schema_lines(old, new)]
    if not lines:
        return ""
    called = {
        "Panel": "pegsynth.schema.panel",
        "Recoding": "pegsynth.schema.recoding",
        "Hierarchy": "pegsynth.schema.hierarchy",
        "NamedRule": "pegsynth.schema.rules",
        "Dialect": "pegsynth.schema.dialect",
        "Analysis": "pegsynth.schema.declared",
        "WantedTable": "pegsynth.schema.declared",
        "replace": "dataclasses",
    }
    text = "\n".join(lines)
    imports = sorted(
        f"from {module} import {name}" for name, module in called.items() if f"{name}(" in text
    )
    begin = [*imports, "from pegsynth.schema.toml import load, save", ""]
    return "\n".join(
        [*begin, f"schema = load({file!r}, notes=True)", text, f"save(schema, {file!r})", ""]
    )


def _feature_lines(old: Schema, new: Schema) -> list[str]:
    before = {column.name: column for column in old.columns}
    if list(before) != [column.name for column in new.columns]:
        return [f"schema = replace(schema, columns={new.columns!r})"]
    lines = []
    for column in new.columns:
        was = before[column.name]
        changed = {
            each.name: getattr(column, each.name)
            for each in fields(Feature)
            if getattr(column, each.name) != getattr(was, each.name)
        }
        if changed:
            told = ", ".join(f"{key}={value!r}" for key, value in changed.items())
            lines.append(f"schema = schema.with_feature({column.name!r}, {told})")
    return lines


def _schema_lines(old: Schema, new: Schema) -> list[str]:
    changed = {
        each.name: getattr(new, each.name)
        for each in fields(Schema)
        if each.name not in ("columns", "rules")
        and getattr(new, each.name) != getattr(old, each.name)
    }
    if _named(old) != _named(new):
        changed["rules"] = _named(new)
    if not changed:
        return []
    told = ", ".join(f"{key}={value!r}" for key, value in changed.items())
    return [f"schema = replace(schema, {told})"]


def _named(schema: Schema) -> tuple[NamedRule, ...]:
    return tuple(
        NamedRule(
            tuple(rule_labels(rule, schema.features).items()), rule.label, rule.drafted_from_data
        )
        for rule in schema.rules
        if not rule.structural
    )


def one(told: Told, name: str) -> str:
    """Return the only value of a field; empty where the form has none."""
    values = told.get(name, ())
    return values[0] if values else ""


def _lines(told: Told, name: str) -> tuple[str, ...]:
    text = one(told, name).replace("\r\n", "\n")
    return tuple(text.split("\n")) if text else ()


def _number(told: Told, name: str) -> float | None:
    text = one(told, name).strip()
    try:
        return float(text) if text else None
    except ValueError:
        raise SchemaError(f"{name} is a number") from None


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(each) for each in text.split())
    except ValueError:
        raise SchemaError("edges are numbers with spaces between them") from None
