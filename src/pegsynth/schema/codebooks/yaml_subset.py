"""As much of YAML as a codebook of domains needs: mappings, lists, plain and quoted scalars.

Anchors, tags, several documents and texts over several lines are refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pegsynth.errors import SchemaError

_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#:\-\[\]{},&*!|>%@`][^#:]*?)\s*:(?:\s+|$)"""
)
_WHOLE = re.compile(r"[-+]?\d+")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
_DEEPEST = 20


def read_yaml(text: str) -> Any:
    """Return the document as Python values."""
    lines: list[tuple[int, str]] = []
    for raw in text.splitlines():
        if not raw.strip() or raw.lstrip().startswith("#") or raw.strip() == "---":
            continue
        if "\t" in raw[: len(raw) - len(raw.lstrip())]:
            raise SchemaError("the YAML is indented with tabs; use spaces")
        lines.append((len(raw) - len(raw.lstrip(" ")), _without_comment(raw.strip())))
    found, rest = _block(lines, 0, 0)
    if rest != len(lines):
        raise _unknown(lines[rest][1])
    return found


def _without_comment(line: str) -> str:
    return re.sub(r"""((?:"[^"]*"|'[^']*'|[^"'#]|(?<=\S)#)*?)\s+#.*$""", r"\1", line)


def _block(lines: list[tuple[int, str]], at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise SchemaError("the YAML is nested too deeply; write it flat")
    if at >= len(lines):
        return None, at
    indent = lines[at][0]
    if lines[at][1].startswith("- ") or lines[at][1] == "-":
        return _list(lines, at, indent, depth)
    found: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent:
        key = _KEY.match(lines[at][1])
        if key is None:
            if not found:
                return _scalar(lines[at][1]), at + 1
            raise _unknown(lines[at][1])
        rest = lines[at][1][key.end() :].strip()
        name = str(_scalar(key[1]))
        at += 1
        if rest:
            found[name] = _scalar(rest)
        elif at < len(lines) and (
            lines[at][0] > indent or (lines[at][0] == indent and lines[at][1].startswith("- "))
        ):
            found[name], at = _block(lines, at, depth + 1)
        else:
            found[name] = None
    return found, at


def _list(lines: list[tuple[int, str]], at: int, indent: int, depth: int) -> tuple[Any, int]:
    items = []
    while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("-"):
        rest = lines[at][1][1:].strip()
        if rest and (_KEY.match(rest) is None or rest[0] in "\"'"):
            items.append(_scalar(rest))
            at += 1
            continue
        # What follows the dash is the first line of a block of its own.
        inner = indent + len(lines[at][1]) - len(rest) if rest else None
        if inner is None:
            item, at = _block(lines, at + 1, depth + 1)
        else:
            lines[at] = (inner, rest)
            item, at = _block(lines, at, depth + 1)
        items.append(item)
    return items, at


def _scalar(text: str) -> Any:
    if text[:1] in ("[", "{"):
        return _flow(text)
    if text[:1] == '"':
        try:
            return json.loads(text)
        except ValueError:
            raise _unknown(text) from None
    if text[:1] == "'" and len(text) > 1 and text.endswith("'"):
        return text[1:-1].replace("''", "'")
    if text[:1] in ("'", "&", "*", "!", "|", ">", "%", "@", "`"):
        raise _unknown(text)
    return _WORDS[text.lower()] if text.lower() in _WORDS else _plain(text)


def _plain(text: str) -> Any:
    """Return a number, or the text itself."""
    if _WHOLE.fullmatch(text) and len(text) < 19:
        # 007 is a code, not the number seven.
        return text if len(text.lstrip("+-")) > 1 and text.lstrip("+-")[0] == "0" else int(text)
    try:
        return float(text) if re.search(r"\d", text) else text
    except ValueError:
        return text


def _flow(text: str) -> Any:
    """Return a list or a mapping that is written in one line."""
    closing = {"[": "]", "{": "}"}[text[0]]
    if not text.endswith(closing):
        raise _unknown(text)
    parts = _cut(text[1:-1])
    if closing == "]":
        return [_scalar(part) for part in parts]
    found = {}
    for part in parts:
        key = _KEY.match(part)
        if key is None:
            raise _unknown(text)
        found[str(_scalar(key[1]))] = _scalar(part[key.end() :].strip())
    return found


def _cut(text: str) -> list[str]:
    parts, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _unknown(text: str) -> SchemaError:
    return SchemaError(
        f"the YAML line {text[:60]!r} is of a form that is not read here; use plain mappings and "
        "lists"
    )
