"""``privacy.json``: writing it, reading it, and checking it against itself.

A file states a guarantee and lists the events behind it. Reading trusts the events only:
the guarantee is recomputed, and `verify` names every figure that disagrees. A file from
elsewhere may be hostile; whatever is wrong with it ends in one `ModelError`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from pegsynth.errors import ModelError, PegsynthError
from pegsynth.privacy.assumptions import Assumption
from pegsynth.privacy.events import KNOWN_KINDS, Event, KnownEvent, UnknownEvent
from pegsynth.privacy.guarantee import Guarantee
from pegsynth.privacy.ledger import Ledger
from pegsynth.privacy.program import Program

FORMAT = 2

_KEYS = frozenset(("format", "programs", "guarantee", "assumptions", "not_covered", "events"))
_TOLERANCE = 1e-9
_DEEPEST = 20
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class _MalformedError(ValueError):
    """Why a text is no ledger; becomes a `ModelError` that names the file."""


def to_json(ledger: Ledger) -> str:
    """Write a ledger, its guarantee first; the same ledger gives the same text."""
    content = {
        "format": FORMAT,
        "programs": [msgspec.to_builtins(program) for program in ledger.programs],
        "guarantee": msgspec.to_builtins(ledger.guarantee),
        "assumptions": [msgspec.to_builtins(assumption) for assumption in ledger.assumptions],
        "not_covered": list(ledger.not_covered),
        "events": [event_to_builtins(event) for event in ledger.events],
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str | bytes, *, source: str = "the ledger") -> Ledger:
    """Read a ledger, recomputing its guarantee from its events."""
    return _read(text, source)[0]


def verify(text: str | bytes, *, source: str = "the ledger") -> list[str]:
    """Name every stated figure that the events do not support; empty when all agree."""
    ledger, stated, stated_lines = _read(text, source)
    differences = [
        f"{name} is stated as {_words(ours_stated)}, but the events give {_words(recomputed)}"
        for name in Guarantee.__struct_fields__
        if not _agree(
            ours_stated := getattr(stated, name), recomputed := getattr(ledger.guarantee, name)
        )
    ]
    missing = [line for line in ledger.not_covered if line not in stated_lines]
    foreign = [line for line in stated_lines if line not in ledger.not_covered]
    differences += [f"not_covered lacks the line: {line}" for line in missing]
    differences += [f"not_covered has a line that no event supports: {line}" for line in foreign]
    return differences


def event_to_builtins(event: Event) -> dict[str, Any]:
    """Turn one event into plain objects, for ``privacy.json`` or a model's manifest."""
    if isinstance(event, UnknownEvent):
        return event.content
    plain: dict[str, Any] = msgspec.to_builtins(event)
    return plain


def event_from_builtins(content: object) -> Event:
    """Read one event; a kind that this version does not know is kept word for word."""
    if not isinstance(content, dict) or not isinstance(kind := content.get("kind"), str):
        raise ModelError("an event must be an object with a kind")
    try:
        _check_plain(content, depth=0)
    except _MalformedError as error:
        raise ModelError(str(error)) from None
    if kind not in KNOWN_KINDS:
        return UnknownEvent(kind, content)
    try:
        event: Event = msgspec.convert(content, KnownEvent)
    except msgspec.ValidationError as error:
        raise ModelError(f"event of kind {kind!r}: {error}") from None
    return event


def _read(text: str | bytes, source: str) -> tuple[Ledger, Guarantee, list[str]]:
    try:
        content = _parse(text)
        stated = msgspec.convert(content["guarantee"], Guarantee)
        assumptions = msgspec.convert(content["assumptions"], tuple[Assumption, ...])
        lines = msgspec.convert(content["not_covered"], list[str])
        events = tuple(map(event_from_builtins, msgspec.convert(content["events"], list[Any])))
        programs = msgspec.convert(content["programs"], tuple[Program, ...])
        return Ledger(events, assumptions, stated.delta or 0.0, programs), stated, lines
    except RecursionError:
        raise ModelError(f"{source}: not a ledger that can be read: nested too deeply") from None
    except (_MalformedError, PegsynthError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ModelError(f"{source}: not a ledger that can be read: {error}") from None


def _parse(text: str | bytes) -> dict[str, Any]:
    try:
        content = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise _MalformedError(
            f"it is truncated or no JSON (line {error.lineno}: {error.msg})"
        ) from None
    except ValueError as error:
        raise _MalformedError(str(error)) from None
    if not isinstance(content, dict):
        raise _MalformedError("it must be one object")
    version = content.get("format")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _MalformedError("it has no format number")
    if version != FORMAT:
        raise _MalformedError(
            f"it has format {version}, and this program reads format {FORMAT} only; use the "
            "version of pegsynth that wrote it"
        )
    wrong = sorted(set(content) ^ _KEYS)
    if wrong:
        raise _MalformedError(f"missing or unknown key {wrong[0]!r}")
    _check_plain(content, depth=0)
    return content


def _check_plain(content: object, *, depth: int) -> None:
    """Refuse deep nesting, and text that could not be written or could fool a terminal."""
    if depth > _DEEPEST:
        raise _MalformedError("it is nested too deeply")
    if isinstance(content, str) and _UNPRINTABLE.search(content):
        raise _MalformedError("a text holds characters that cannot be printed")
    if isinstance(content, dict):
        for key, value in content.items():
            _check_plain(key, depth=depth)
            _check_plain(value, depth=depth + 1)
    elif isinstance(content, list):
        for value in content:
            _check_plain(value, depth=depth + 1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, refusing a key that two readers might resolve differently."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise _MalformedError("a key occurs twice in one object")
    return content


def _no_constant(name: str) -> float:
    raise _MalformedError(f"{name} is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _MalformedError("a number is out of range")
    return value


def _agree(stated: object, recomputed: object) -> bool:
    if isinstance(stated, float) and isinstance(recomputed, float):
        # Another machine's logarithm may move the last digits of a converted epsilon.
        return math.isclose(stated, recomputed, rel_tol=_TOLERANCE)
    return bool(stated == recomputed)


def _words(value: object) -> str:
    return "nothing" if value is None else str(value)
