"""Writes docs/ledger.md from the declarations of what a ledger may hold.

python tools/ledger_reference.py docs
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec

from pegsynth.privacy.assumptions import Assumption
from pegsynth.privacy.events import KnownEvent
from pegsynth.privacy.guarantee import Guarantee
from pegsynth.privacy.privacy_json import FORMAT
from pegsynth.privacy.program import Program

OPENING = f"""# The ledger

`privacy.json` says what was done with a table and what follows from it. It is plain JSON, and its
amounts are exact fractions. `pegs inspect privacy.json` and `pegsynth.Ledger.from_json` work the
guarantee out again from the events; what a file claims is never trusted. Models hold the same
ledger. Prices of events, and how they add up, are in [the mathematics](maths.md) under the number
that each event names. Nothing here depends on the data but what was paid for.

| key | value |
|---|---|
| `format` | {FORMAT} |
| `programs` | those that looked at the data or drew rows, in order |
| `guarantee` | the claim that the events support |
| `assumptions` | what was declared to be public |
| `not_covered` | a sentence for every event that no result covers; the guarantee is then "none" |
| `events` | what was done, in order; `kind` says which of those below |

This page is written by `python tools/ledger_reference.py docs` from the declarations.
"""
SHARED = {
    "rows": "Synthetic rows.",
    "sweeps": "Sweeps over all features.",
    "datasets": "Synthetic tables.",
    "chains": "Chains of the sampler.",
    "visits": "How often an entry answers in the whole release.",
    "hashings": "Hash functions, each with counts of its own.",
    "block_size": "Rows of a block.",
    "features": "How many features are drawn.",
    "code": "A stable short name of the reason.",
    "text": "The reason in a sentence.",
    "rows_per_unit": "The most rows of a unit.",
}
"""Fields that a docstring leaves to their names."""


def page() -> str:
    """Return the page."""
    parts = [OPENING]
    for title, kind in (
        ("`programs`", Program),
        ("`guarantee`", Guarantee),
        ("`assumptions`", Assumption),
    ):
        parts += [f"## {title}\n", *_described(kind), ""]
    parts.append("## `events`\n")
    for kind in get_args(KnownEvent):
        parts += [f"### `{kind.__struct_config__.tag}`\n", *_described(kind), ""]
    return "\n".join(parts)


def _described(kind: type[msgspec.Struct]) -> Iterator[str]:
    yield _in_words(_texts(kind)[0])
    yield "\n| key | meaning |\n|---|---|"
    told = _told(kind)
    for name in kind.__struct_fields__:
        meaning = told.get(name) or SHARED.get(name)
        if meaning is None:
            raise ValueError(f"{kind.__name__}.{name} is explained nowhere")
        yield f"| `{name}` | {_in_words(meaning)} |"


def _texts(kind: type) -> tuple[str, str]:
    """Return what a docstring says before its parameters, and of these."""
    text = inspect.getdoc(kind) or ""
    before, _, after = text.partition("\nParameters\n----------\n")
    return before.strip(), after


def _told(kind: type) -> dict[str, str]:
    """Return what docstrings say of fields, those of a parent as well."""
    told: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__doc__ and issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
            for names, body in re.findall(
                r"^(\S[^\n]*)\n((?:    [^\n]*\n?)+)", _texts(each)[1], re.MULTILINE
            ):
                told |= dict.fromkeys(re.split(r",\s*", names), body)
    return told


def _in_words(text: str) -> str:
    """Return text on one line, as a cell of a table takes it."""
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    Path(sys.argv[1], "ledger.md").write_text(page(), encoding="utf-8")
