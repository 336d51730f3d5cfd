"""Figures and names as text, a statement in paragraphs, a guarantee in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pegsynth.privacy.rounding import display_up

NOT_COMPUTED = "n/a"
LONGEST_LABEL = 80

_FACTS = {
    "epsilon": "Epsilon, whole release",
    "delta": "Delta",
    "rho": "Rho (zCDP)",
    "epsilon_per_row": "Epsilon per synthetic row",
    "l": "l of entropy l-diversity",
    "unit": "Protected unit",
    "rows_per_unit": "Most rows of a unit",
    "neighbours": "Neighbouring tables",
}
_BLANK = re.compile(r"[\t\n\r]+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float, *, digits: int = 2) -> str:
    """Write a share as a percentage; what is above zero never shows as zero."""
    smallest = 10.0**-digits
    if 0 < 100 * share < smallest / 2:
        return f"<{smallest:.{digits}f}%"
    return f"{100 * share:.{digits}f}%"


def number(value: float) -> str:
    """Write a distance with three significant digits."""
    if value != 0 and not 1e-4 <= abs(value) < 1e5:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}\u00d710{str(int(exponent)).translate(_SUPERSCRIPT)}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def amount(value: float) -> str:
    """Write an amount with four significant digits, thousands apart."""
    if value != 0 and not 1e-4 <= abs(value) < 1e12:
        return number(value)
    whole = len(f"{abs(value):.0f}") if abs(value) >= 1 else 1
    return f"{value:,.{max(0, 4 - whole)}f}"


def short(text: str) -> str:
    """Keep a label to a length that fits; an empty one is named."""
    if not text.strip():
        return "(empty)"
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def short_labels(names: Iterable[str]) -> dict[str, str]:
    """Give each name a short label of its own; names that only differ late are numbered."""
    labels: dict[str, str] = {}
    taken: dict[str, int] = {}
    for name in dict.fromkeys(names):
        label = short(name)
        taken[label] = taken.get(label, 0) + 1
        labels[name] = label if taken[label] == 1 else f"{label} ({taken[label]})"
    return labels


def printable(text: str) -> str:
    """Replace what neither a page nor an image can hold: control characters, torn letters."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _BLANK.sub(" ", text))


def paragraphs(statement: str) -> list[dict[str, Any]]:
    """Part a statement into paragraphs, each a text and the items of its list."""
    blocks = []
    for block in statement.replace("\r\n", "\n").split("\n\n"):
        lines = [line.strip() for line in block.split("\n") if line.strip()]
        items = [line[2:] for line in lines if line.startswith("- ")]
        text = " ".join(line for line in lines if not line.startswith("- "))
        if lines:
            blocks.append({"text": text, "items": items})
    return blocks


def guarantee_headline(guarantee: Mapping[str, Any]) -> str:
    """Say the guarantee in one line."""
    match guarantee.get("kind"):
        case "pure":
            return (
                f"Differentially private, ε = {_shown(guarantee['epsilon'])}, for the whole release"
            )
        case "approximate":
            return (
                f"Differentially private, ε = {_shown(guarantee['epsilon'])} at "
                f"δ = {_shown(guarantee['delta'])}, for the whole release"
            )
        case "l-diversity":
            return f"l-diverse, l = {guarantee.get('l')}; not differentially private"
        case _:
            return "No privacy guarantee"


def _shown(value: Any) -> str:
    """Write a figure of a ledger as its statement does: rounded up, 1e-6 and not 1e-06."""
    return display_up(value) if isinstance(value, float) else str(value)


def guarantee_facts(guarantee: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the stated parts of a guarantee, as they stand in the ledger."""
    if guarantee.get("kind", "none") == "none":
        return []
    return [
        # An l is a lower bound, which rounding up would make false.
        (words, str(guarantee[name]) if name == "l" else _shown(guarantee[name]))
        for name, words in _FACTS.items()
        if guarantee.get(name) is not None
    ]
