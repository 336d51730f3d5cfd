"""The verdict: what saved figures mean, in plain words chosen by fixed rules.

`rules_of` states the rules on the page. Utility was judged when it was measured, by rules that the
record of the faults brings along: here faults are only put into the headline, kind by kind and the
worst first. Risks are judged here, every form of every attack; `risk_verdict` does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pegsynth.publishing.report.measures import reason_of
from pegsynth.publishing.report.risk_verdict import RISK_RULE, risk_verdict
from pegsynth.publishing.report.wording import OFF, TERM, Lookup, number, percent, short

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics, Record

M = TypeVar("M", bound="Metrics")
_AS_CHANCE, _CLOSE, _VISIBLE = 1.25, 0.02, 0.10
MOST_SAID = 10
_MOST_NAMED, _NAMED_OF_SEVERAL = 4, 2
_NUMBERS = "numbers"
_OVERLAPS = 0.5
UTILITY_RULE = (
    f"Tables of codes: “as close as chance allows” is at most {_AS_CHANCE:g} times the sampling "
    f"floor of the two-way tables; “close” at most {_CLOSE:.0%} of the rows above it; “roughly "
    f"alike” at most {_VISIBLE:.0%}; “far apart” beyond. Pairs count by the smaller of their two "
    "entropies, so that columns that hardly vary do not dilute the mean."
)
_TITLES = {
    "subgroups": "Subgroups change",
    "impossible rows": "Impossible rows appear",
    "regressions": "Regressions change",
    "predictions": "Predictions change",
    _NUMBERS: "Numbers are off",
    "feature pairs": "Pairs of features come apart",
}

_OUT_OF_PLACE = (
    "In a TABLE table {value} of the synthetic rows are out of place on average; a plain resample "
    "of the original with as many rows has {baseline}."
)
_OVERLAP = (
    "The intervals of regression coefficients overlap by {value} on average; 1 means that analysts "
    "would conclude the same."
)
_PROPENSITY = (
    "For a model that tries to tell synthetic from original rows the propensity error is {value} "
    "times what chance gives; 1 means that it cannot tell them apart."
)
_PREDICTION = (
    "Trained on synthetic rows, a model predicts {subject} in real rows with an area under the "
    "curve of {value}; trained on real rows, {baseline}."
)


def _said(fault: Record) -> str:
    """Write a fault as a sentence; the name of a feature stays as it is."""
    note = fault.note
    named = any(name and note.startswith(name) for name in (fault.subject or "").split(", "))
    return f"{note if named else note[:1].upper() + note[1:]}."


def verdict(found: Lookup) -> dict[str, Any]:
    """Say what the figures mean: a headline and a few sentences on utility, and on risk."""
    pairs = found.record("tvd2_weighted") or found.record("tvd2")
    off = by_kind(found)
    said = _worst_of_each(off)
    utility = [
        *(_said(each) for each in said),
        _unsaid(len(found.subjects(OFF)) - len(said)),
        *_numbers_unjudged(found),
        _sentence(found.record("tvd2"), _OUT_OF_PLACE.replace("TABLE", "two-way"), percent),
        _sentence(found.record("tvd3"), _OUT_OF_PLACE.replace("TABLE", "three-way"), percent),
        _weakest(found),
        _sentence(found.record("interval_overlap"), _OVERLAP, number),
        _sentence(found.record("pmse_ratio"), _PROPENSITY, number),
        _sentence(found.headline("auc_synthetic"), _PREDICTION, number),
        _effective(found),
        _cap(found),
    ]
    risk = risk_verdict(found)
    return {
        "utility": _utility_headline(pairs, off, found.record("interval_overlap")),
        "off": bool(off),
        "utility_sentences": [sentence for sentence in utility if sentence],
        "risk": risk.headline,
        "risk_sentences": list(risk.sentences),
        "alarm": risk.alarm,
    }


def with_verdict(metrics: M) -> M:
    """Return metrics that bring their verdict along, as ``metrics.json`` does."""
    return msgspec.structs.replace(metrics, verdict=verdict(Lookup(metrics)))


def rules_of(found: Lookup) -> list[str]:
    """Return the rules by which the verdict was chosen."""
    faults = found.record(OFF)
    judged = [] if faults is None or faults.value is None else faults.note.split("\n")
    return [*judged, UTILITY_RULE, RISK_RULE]


def by_kind(found: Lookup) -> dict[str, list[Record]]:
    """Return what is off, kind by kind in the order of the titles, the worst of each first."""
    kinds: dict[str, list[Record]] = {kind: [] for kind in _TITLES}
    for record in found.subjects(OFF):
        kind = record.subject.partition(TERM)[0]
        kinds[kind if kind in kinds else _NUMBERS].append(record)
    return {kind: records for kind, records in kinds.items() if records}


def titled_kind(kind: str) -> str:
    """Return the title of a kind of faults."""
    return _TITLES[kind]


def _worst_of_each(off: dict[str, list[Record]]) -> list[Record]:
    """Return the faults that are said: the worst of every kind before any other."""
    ranked = [
        (place, number, record)
        for number, records in enumerate(off.values())
        for place, record in enumerate(records)
    ]
    chosen = sorted(ranked, key=lambda each: each[:2])[:MOST_SAID]
    return [record for *_, record in sorted(chosen, key=lambda each: each[1::-1])]


def _utility_headline(
    pairs: Record | None, off: dict[str, list[Record]], overlap: Record | None
) -> str:
    """Name what is off first, kind by kind; tables of codes come after."""
    codes = _codes_headline(pairs)
    little = overlap is not None and overlap.value is not None and overlap.value < _OVERLAPS
    apart = (
        f" Intervals of regression coefficients overlap by {number(overlap.value or 0.0)} only, "
        "which chance could explain."
        if little and overlap is not None and "regressions" not in off
        else ""
    )
    if not off and apart:
        return f"On average, tables of codes are {codes}{apart}"
    if not off:
        return codes[:1].upper() + codes[1:]
    most = _MOST_NAMED if len(off) == 1 else _NAMED_OF_SEVERAL
    parts = [f"{_TITLES[kind]}: {_named(records, most)}." for kind, records in off.items()]
    nothing = codes.startswith("there is")
    parts.append(codes.capitalize() if nothing else f"On average, tables of codes are {codes}")
    return " ".join(parts) + apart


def _named(records: list[Record], most: int) -> str:
    """Name the worst, without the figures that stand in the sentences below."""
    named = list(dict.fromkeys(_plain(each.note) for each in records))
    more = f"; and {len(named) - most} more" if len(named) > most else ""
    return f"{'; '.join(named[:most])}{more}"


def _plain(words: str) -> str:
    """Return a fault without its last bracket, which holds figures, and what follows it."""
    return words.rpartition(" (")[0] or words


def _codes_headline(pairs: Record | None) -> str:
    if pairs is None or pairs.value is None or pairs.baseline is None:
        return "there is no two-way table to judge by."
    if pairs.value <= _AS_CHANCE * pairs.baseline:
        return "as close as chance allows."
    excess = pairs.value - pairs.baseline
    if excess <= _CLOSE:
        return "close to the original."
    if excess <= _VISIBLE:
        return "roughly alike; small groups will differ."
    return "far apart: expect wrong answers about features taken together."


def _unsaid(more: int) -> str:
    return f"{more:,} more figures are off; “What is off” below lists them." if more > 0 else ""


def _numbers_unjudged(found: Lookup) -> list[str]:
    """Say of which features the numbers could not be looked at."""
    return [
        f"The numbers of {short(record.subject)} were not judged: {reason_of(record)}."
        for record in found.subjects("value_mean")
        if record.value is None
    ][:MOST_SAID]


def _cap(found: Lookup) -> str:
    """Say what the cap of rows per unit did, before anything was counted."""
    rows, units = found.record("cap_rows"), found.record("cap_units")
    moved = [each for each in found.subjects("cap_effect") if each.value]
    if rows is None or units is None or not rows.value:
        return ""
    worst = max(moved, key=lambda each: each.value or 0.0, default=None)
    moved_most = "" if worst is None else worst.note.partition(" of the rows")[0]
    most = f" Most moved: {moved_most} of the rows." if moved_most else ""
    return (
        f"The cap of rows per unit leaves out {percent(rows.value)} of the original rows "
        f"({rows.note.partition(';')[0]}) of {percent(units.value or 0.0)} of the units.{most}"
    )


def _effective(found: Lookup) -> str:
    """Say what uneven weights leave of the rows."""
    known = [each for each in found.named("effective_rows") if each.value is not None]
    if not known:
        return ""
    worst = min(known, key=lambda each: (each.value or 0.0) / max(each.n, 1))
    share = (worst.value or 0.0) / max(worst.n, 1)
    return (
        f"Weighted, {worst.n:,} rows say as much as {number(worst.value or 0.0)} of equal weight "
        f"({percent(share)}); figures are compared with what chance does in {worst.n:,} rows."
    )


def _weakest(found: Lookup) -> str:
    constant = found.constant()
    ones = [
        record
        for record in found.subjects("tvd1")
        if record.value is not None and record.subject not in constant
    ]
    if not ones:
        return ""
    worst = max(ones, key=lambda r: (r.value or 0.0) - (r.baseline or 0.0))
    if not worst.value:
        return ""
    return (
        f"The feature furthest from the original is {short(worst.subject)}: by itself it has "
        f"{percent(worst.value or 0.0)} of the rows out of place."
    )


def _sentence(record: Record | None, words: str, write: Callable[[float], str]) -> str:
    """Fill a sentence with a record; nothing where it lacks a figure that the sentence needs."""
    if record is None or record.value is None:
        return ""
    if record.baseline is None and "{baseline}" in words:
        return ""
    return words.format(
        value=write(record.value),
        baseline="" if record.baseline is None else write(record.baseline),
        subject=short(record.subject),
    )
