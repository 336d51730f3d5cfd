"""Figures and names as text, a statement in paragraphs, a guarantee in one line.

Records found by name and subject, also where there are a hundred thousand of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import rows_counted

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics, Record
    from pegsynth.privacy import Ledger


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


def guarantee_fields(ledger: Ledger) -> dict[str, Any]:
    """Return the guarantee as plain fields for the report, rounded up for reading."""
    fields: dict[str, Any] = msgspec.to_builtins(ledger.guarantee)
    fields["rows_per_unit"] = rows_counted(ledger)
    for name in ("epsilon", "rho", "epsilon_per_row"):
        if fields[name] is not None:
            fields[name] = float(display_up(fields[name]))
    return fields


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


OFF = "utility_faults"
PAIR, GIVEN, TERM = ", ", " | ", " :: "
_VARIED = 2


class Lookup:
    """Saved metrics, indexed once; on a doubled key the first record counts."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._by_key: dict[tuple[str, str], Record] = {}
        self._by_name: dict[str, list[Record]] = {}
        for record in metrics.records:
            self._by_key.setdefault((record.name, record.subject), record)
            self._by_name.setdefault(record.name, []).append(record)

    def record(self, name: str, subject: str = "") -> Record | None:
        """Return the record of that name and subject, if there is one."""
        return self._by_key.get((name, subject))

    def headline(self, name: str) -> Record | None:
        """Return the record that stands for a measure: of a risk its strongest form."""
        from pegsynth.evaluation.records import headline

        return headline(self.named(name), name)

    def subjects(self, name: str) -> list[Record]:
        """Return the records of that name that are about something in particular."""
        return [record for record in self.named(name) if record.subject]

    def named(self, name: str) -> list[Record]:
        """Return all records of that name."""
        return self._by_name.get(name, [])

    def constant(self) -> set[str]:
        """Return the features that have one category only, in all tables: no error is theirs."""
        return {
            marginal.feature
            for marginal in self.metrics.marginals
            if sum(map(any, zip(marginal.original, marginal.synthetic, strict=True))) < _VARIED
        }

    def pairs(self, name: str) -> list[tuple[str, str, Record]]:
        """Return records about two features with these; names may hold separators themselves."""
        features = [marginal.feature for marginal in self.metrics.marginals]
        known = set(features)
        found = []
        separator = GIVEN if name.startswith("conditional") else PAIR
        for record in self.subjects(name):
            pair = _split(record.subject, separator, known)
            if pair is not None:
                found.append((*pair, record))
        return found


def _split(subject: str, separator: str, known: set[str]) -> tuple[str, str] | None:
    at = subject.find(separator)
    while at >= 0:
        first, second = subject[:at], subject[at + len(separator) :]
        if not known or (first in known and second in known):
            return first, second
        at = subject.find(separator, at + 1)
    return None
