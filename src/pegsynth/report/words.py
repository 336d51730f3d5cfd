"""Figures as text: numbers, names of measures, the verdict, the guarantee.

The words for a result are chosen by fixed rules from saved figures; `VERDICT_RULE` states
them on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics, Record

NOT_COMPUTED = "n/a"
LONGEST_LABEL = 80

MEASURES = {
    "tvd1": "One-way tables",
    "tvd2": "Two-way tables",
    "tvd3": "Three-way tables",
    "marginal_distance": "Marginal distance",
    "conditional_distance": "Conditional distance",
    "regression_distance": "Regression distance",
    "uniqueness": "Unique rows",
}
EXPLANATIONS = {
    "tvd1": "rows out of place, mean over features",
    "tvd2": "rows out of place, mean over pairs",
    "tvd3": "rows out of place, mean over triples",
    "marginal_distance": "squared differences of shares, mean over features",
    "conditional_distance": "squared differences of conditional shares, mean over ordered pairs",
    "regression_distance": "relative differences of coefficients",
    "uniqueness": "alone with their quasi-identifiers",
}
_SHARES = ("tvd1", "tvd2", "tvd3", "uniqueness")

_AS_CHANCE, _CLOSE, _VISIBLE = 1.25, 0.02, 0.10
VERDICT_RULE = (
    f"“As close as chance allows” is at most {_AS_CHANCE:g} times the sampling floor of the "
    f"two-way tables; “close” at most {_CLOSE:.0%} of the rows above it; “roughly alike” at most "
    f"{_VISIBLE:.0%}; “far apart” beyond."
)

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


def value_text(name: str, value: float | None) -> str:
    """Write the value of a measure in its own unit."""
    if value is None:
        return NOT_COMPUTED
    return percent(value) if name in _SHARES else number(value)


def short(text: str) -> str:
    """Keep a label to a length that fits; an empty one is named."""
    if not text.strip():
        return "(empty)"
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


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
            return f"Differentially private, ε = {guarantee.get('epsilon')}, for the whole release"
        case "approximate":
            return (
                f"Differentially private, ε = {guarantee.get('epsilon')} at "
                f"δ = {guarantee.get('delta')}, for the whole release"
            )
        case "l-diversity":
            return f"l-diverse, l = {guarantee.get('l')}; not differentially private"
        case _:
            return "No privacy guarantee"


def guarantee_facts(guarantee: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the stated parts of a guarantee, as they stand in the ledger."""
    if guarantee.get("kind", "none") == "none":
        return []
    return [
        (words, str(guarantee[name]))
        for name, words in _FACTS.items()
        if guarantee.get(name) is not None
    ]


def verdict(metrics: Metrics) -> dict[str, Any]:
    """Say in plain words what the figures mean: a headline and a few sentences."""
    pairs = metrics.record("tvd2")
    sentences = [
        _table_sentence(pairs, "two-way"),
        _table_sentence(metrics.record("tvd3"), "three-way"),
        _weakest(metrics),
        _unique_sentence(metrics.record("uniqueness")),
    ]
    return {"headline": _verdict_headline(pairs), "sentences": [s for s in sentences if s]}


def _verdict_headline(pairs: Record | None) -> str:
    if pairs is None or pairs.value is None or pairs.baseline is None:
        return "There is no two-way table to judge by."
    if pairs.value <= _AS_CHANCE * pairs.baseline:
        return "As close as chance allows."
    excess = pairs.value - pairs.baseline
    if excess <= _CLOSE:
        return "Close to the original."
    if excess <= _VISIBLE:
        return "Roughly alike; small groups will differ."
    return "Far apart: expect wrong answers about features taken together."


def _table_sentence(record: Record | None, kind: str) -> str:
    if record is None or record.value is None or record.baseline is None:
        return ""
    return (
        f"In a {kind} table {percent(record.value)} of the synthetic rows are out of place on "
        f"average; a plain resample of the original with as many rows has "
        f"{percent(record.baseline)}."
    )


def _weakest(metrics: Metrics) -> str:
    ones = [r for r in metrics.records if r.name == "tvd1" and r.subject and r.value is not None]
    if not ones:
        return ""
    worst = max(ones, key=lambda r: (r.value or 0.0) - (r.baseline or 0.0))
    return (
        f"The feature furthest from the original is {short(worst.subject)}: by itself it has "
        f"{percent(worst.value or 0.0)} of the rows out of place."
    )


def _unique_sentence(record: Record | None) -> str:
    if record is None or record.value is None or record.baseline is None:
        return ""
    return (
        f"At equal size {percent(record.value)} of the synthetic rows and "
        f"{percent(record.baseline)} of the original rows are alone with their quasi-identifiers. "
        "A unique synthetic row is not a person, but somebody may take it for one."
    )
