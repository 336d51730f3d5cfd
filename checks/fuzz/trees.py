"""Documents as trees: JSON and TOML that are well formed, or nearly, and wild in their values.

A tree is a dict, list, text, number, truth value, None, or one of `Raw` and `Twice`, which
only the writers here know: text that goes out as it is, and a key that is there twice.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TEXTS = (
    *("", " ", "x", "a", "true", "null", "nan", "0", "-1", "1e400", "007", "=1+1", "+", "-", "@x"),
    *("<script>alert(1)</script>", "]]>", "</style>", '"><img src=x onerror=alert(1)>', "a,b"),
    *("\t=1", "'", '"', "\\", "\n", "\r", "\u0085", "\u2028", "\x1b[31m", "\x7f", "\0", "\u202e"),
    *("\ud800", "é", "e\u0301", "\U0001f600", "\ufeff", "../../up", "/etc/passwd", "%s%n", "{0}"),
    *("a" * 300, "b" * 70_000, "[table]", "__class__", "$(touch canary)", "inf", "1_0", "٣"),
)
NUMBERS = (
    *(0, 1, -1, 2, 3, 10, 100, 255, 256, 65536, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, 1 << 62),
    *((1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), -(1 << 63) - 1, 10**30, 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, 1.5, -1.5, 1e-300, 5e-324, 1e15, 1e17, 1e300, 1e308, 1e-9, 0.1, 0.30000001),
)


@dataclass(frozen=True)
class Raw:
    """Text that is written as it is."""

    text: str


@dataclass(frozen=True)
class Twice:
    """A value whose key is written twice."""

    first: Any
    second: Any


RAW_JSON = ("NaN", "Infinity", "-Infinity", "1e999", "-0", "01", "1" * 5000, "0x1", "'a'", "", "1.")
RAW_TOML = (
    *("nan", "inf", "-inf", "1e999", "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "0x1f"),
    *("1" * 5000, "0b1", "1_000", "'''a\nb'''", '"""a\nb"""', "{", "]", "", "9999-99-99", "+1.5"),
)


def wild(source: random.Random, *, toml: bool = False, depth: int = 0) -> Any:
    """Make a value that nobody expects."""
    kind = source.random()
    if kind < 0.3:
        return source.choice(TEXTS)
    if kind < 0.6:
        return source.choice(NUMBERS)
    if kind < 0.7:
        return source.choice((True, False, "x" if toml else None))
    if kind < 0.78:
        return Raw(source.choice(RAW_TOML if toml else RAW_JSON))
    if kind < 0.8:
        return _deep(source)
    if depth > 2:
        return source.choice(([], {}))
    size = source.choice((0, 1, 2, 3, 20))
    values = [wild(source, toml=toml, depth=depth + 1) for _ in range(size)]
    if source.random() < 0.6:
        return values
    return {source.choice(TEXTS) or "k": value for value in values}


def _deep(source: random.Random) -> Raw:
    levels = source.choice((25, 120, 1100, 30_000))
    opening, closing = source.choice((("[", "]"), ('{"a":', "}"), ("{a=", "}")))
    return Raw(opening * levels + "1" + closing * levels)


def changed(tree: Any, source: random.Random, *, toml: bool = False) -> Any:
    """Return a copy of a tree with a few changes anywhere in it."""
    found = [copy.deepcopy(tree)]
    for _ in range(source.choice((1, 1, 1, 2, 2, 3, 6))):
        places = list(_places(found))
        holder, key = source.choice(places)
        _change(holder, key, source, toml=toml)
    return found[0] if found else None


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every value as its holder and its key."""
    keys = range(len(tree)) if isinstance(tree, list) else list(tree)
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def _change(holder: Any, key: Any, source: random.Random, *, toml: bool) -> None:
    value, kind = holder[key], source.random()
    if kind < 0.45:
        holder[key] = wild(source, toml=toml)
    elif kind < 0.55 and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = source.choice((-value, value + 1, value - 1, value * 2, value // 3, [value]))
    elif kind < 0.65 and isinstance(holder, dict):
        holder[source.choice((*holder, *TEXTS))] = holder.pop(key)
    elif kind < 0.75 and len(holder) > 1:
        del holder[key]
    elif kind < 0.85 and isinstance(value, list):
        holder[key] = source.choice((value[::-1], value * 2, value[:1], [value], value + value[:1]))
    elif kind < 0.9 and isinstance(holder, dict):
        holder[key] = Twice(value, wild(source, toml=toml))
    elif isinstance(holder, list):
        holder.insert(source.randrange(len(holder) + 1), copy.deepcopy(value))
    else:
        holder[source.choice(TEXTS) or "k"] = wild(source, toml=toml)


def json_text(tree: Any) -> str:
    """Write a tree as JSON."""
    if isinstance(tree, Raw):
        return tree.text
    if isinstance(tree, dict):
        return "{" + ",".join(f"{json.dumps(str(k))}:{json_text(v)}" for k, v in _pairs(tree)) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(json_text, tree)) + "]"
    if isinstance(tree, Twice):
        return json_text(tree.first)
    return json.dumps(tree)


def toml_text(tree: dict[Any, Any]) -> str:
    """Write a tree as TOML, lists of tables as ``[[tables]]`` where they are."""
    lines, tables = [], []
    for key, value in _pairs(tree):
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            tables += [f"[[{_key(key)}]]\n{_toml_lines(each)}" for each in value]
        elif isinstance(value, dict):
            tables.append(f"[{_key(key)}]\n{_toml_lines(value)}")
        else:
            lines.append(f"{_key(key)} = {_toml_value(value)}\n")
    return "".join((*lines, *tables))


def _toml_lines(table: dict[Any, Any]) -> str:
    return "".join(f"{_key(key)} = {_toml_value(value)}\n" for key, value in _pairs(table))


def _toml_value(value: Any) -> str:
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_toml_value(v)}" for k, v in _pairs(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, Twice):
        return _toml_value(value.first)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=value.isascii()).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _key(key: Any) -> str:
    return json.dumps(str(key), ensure_ascii=False).replace("\x7f", "\\u007f")


def _pairs(tree: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for key, value in tree.items():
        if isinstance(value, Twice):
            yield key, value.first
            yield key, value.second
        else:
            yield key, value
