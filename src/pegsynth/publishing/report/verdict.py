"""The verdict: what saved figures mean, in plain words chosen by fixed rules.

`rules_of` states the rules on the page. Utility was judged when it was measured, by rules that the
record of the faults brings along: here faults are only put into the headline, kind by kind and the
worst first. Risks are judged here: every form of every attack is held against its reference by one
rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pegsynth.publishing.report.measures import (
    control_range,
    figure_text,
    has_control,
    in_percent,
    limits,
    measure,
    reason_of,
    reference_of,
)
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
RISK_RULE = (
    "Risk: a measure is “worse than its reference” when its whole interval lies on the bad side "
    "of chance, of real rows, of the original at equal size, or of the whole interval of people "
    "who were never given; "
    "every form of an attack is judged, and the summary shows the strongest. Without a hold-out a "
    "measure is also named when it is not clearly better than releasing real rows (the bootstrap), "
    "and in either case only when its whole interval lies on the bad side of what other people of "
    "the original tell. What lies on the bad side by less than its interval is named as such. "
    "Where even real rows would not stand out, the measure has no power and is not judged."
)
_ATTACKS = (
    "membership_auc",
    "intruder_error",
    "reappearing_uniques",
    "reappearing_as_unique",
    "reiter_risk",
)
# Of these, people who are in no table are right as often by what the population tells.
_ONLY_CONTROLLED = ("reiter_risk",)
_NO_HOLDOUT = (
    "without a hold-out (--holdout FILE) it cannot be told what of this the population alone "
    "betrays"
)
_NOBODY = "a synthetic row is nobody, but somebody may take it for a person"

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


@dataclass(frozen=True)
class RiskVerdict:
    """A headline, sentences, and whether anything is to be worried about."""

    headline: str
    sentences: tuple[str, ...]
    alarm: bool


@dataclass(frozen=True)
class _Judged:
    """A measure of risk: on the bad side clearly, by a little, or not clearly on the good one.

    `uncontrolled`: clearly on the bad side, of a reference that only a hold-out could judge.
    """

    record: Record
    reference: str
    worse: bool
    open: bool
    above: bool
    uncontrolled: bool = False

    @property
    def named(self) -> bool:
        """Whether a sentence of its own speaks of it."""
        return self.worse or self.open or self.uncontrolled


def risk_verdict(found: Lookup) -> RiskVerdict:
    """Judge every measure of risk that has a reference."""
    every = [_judge(found, record) for record in _judgeable(found)]
    named = [each for each in every if each.named]
    # What was found stands, whatever the odds of finding it were.
    judged = [each for each in every if each.named or not each.record.no_power]
    slightly = _titles([each for each in judged if each.above and not each.open])
    sentences = [
        *(
            _alarm_sentence(each)
            for each in sorted(named, key=lambda each: (not each.worse, not each.open))
        ),
        _membership_sentence([each for each in judged if each.record.name == "membership_auc"]),
        f"On the bad side of the reference, but by less than the interval: {slightly}."
        if slightly
        else "",
        *_by_reason((e.record.no_power, _title(e.record)) for e in every if e not in judged),
        *_by_reason(
            (reason_of(found.headline(name)), measure(name).title)
            for name in _listed(found)
            if name not in {each.record.name for each in every}
        ),
    ]
    return RiskVerdict(
        _headline(found, judged),
        tuple(each for each in sentences if each),
        any(each.worse or each.open for each in judged),
    )


def _headline(found: Lookup, judged: list[_Judged]) -> str:
    if not judged:
        return "No measure of risk could be held against a reference."
    parts = []
    if worse := _titles([each for each in judged if each.worse]):
        parts.append(f"Worse than the reference: {worse}.")
    if unclear := _titles([each for each in judged if each.open]):
        parts.append(f"Not clearly better than releasing real rows: {unclear}.")
    alone = _titles([each for each in judged if each.uncontrolled])
    if alone:
        parts.append(f"Above the reference, but only a hold-out could judge it: {alone}.")
    if parts:
        return " ".join(parts)
    count, every = len({each.record.name for each in judged}), len(_listed(found))
    if count == every:
        return "No measure of risk stands out against its reference."
    who = "it does not stand" if count == 1 else "none of these stands"
    return f"Of {every} measures of risk {count} could be judged; {who} out against its reference."


def _titles(judged: list[_Judged]) -> str:
    return "; ".join(dict.fromkeys(measure(each.record.name).title for each in judged))


def _listed(found: Lookup) -> list[str]:
    """Return the measures of risk with a reference that were to be computed."""
    return [name for name in (*_ATTACKS, "uniqueness") if found.named(name)]


def _by_reason(told: Iterable[tuple[str, str]]) -> list[str]:
    """Say reasons, each with the titles of the measures that it is of."""
    reasons: dict[str, list[str]] = {}
    for reason, title in told:
        reasons.setdefault(reason, []).append(title)
    return [f"{'; '.join(titles)}: {reason}." for reason, titles in reasons.items()]


def _judgeable(found: Lookup) -> list[Record]:
    records = []
    for name in (*_ATTACKS, "uniqueness"):
        whole = found.record(name)
        ours = found.subjects(name) or ([whole] if whole is not None else [])
        records += [r for r in ours if r.value is not None and r.baseline is not None]
    return records


def _judge(found: Lookup, record: Record) -> _Judged:
    value, reference = record.value or 0.0, record.baseline or 0.0
    low, high = limits(record)
    lower, controlled = record.better == "lower", has_control(found, record)
    least, most = control_range(found, record)
    # Where there is no hold-out: what other people's rows tell as well is no disclosure.
    others = None if controlled else found.record(f"{record.name}_others", record.subject)
    beyond = others is None or (low > limits(others)[1] if lower else high < limits(others)[0])
    above = all(
        value > each if lower else value < each
        for each in (reference, None if others is None else others.value)
        if each is not None
    )
    worse = beyond and (low > most if lower else high < least)
    better = high < reference if lower else low > reference
    worst_case = (
        record.name in _ATTACKS
        and record.name not in ("membership_auc", *_ONLY_CONTROLLED)
        and not controlled
    )
    unsure = record.name in _ONLY_CONTROLLED and not controlled
    uncontrolled = worse and unsure and not record.no_power
    return _Judged(
        record,
        reference_of(found, record),
        worse and not unsure,
        worst_case and beyond and not worse and not better,
        above and not worse,
        uncontrolled,
    )


def _alarm_sentence(each: _Judged) -> str:
    record = each.record
    as_percent = in_percent(record.name, record)
    value, reference = (
        figure_text(figure, as_percent=as_percent) for figure in (record.value, record.baseline)
    )
    remark = ""
    if each.uncontrolled:
        remark = f"; {_NO_HOLDOUT}"
    elif record.name == "uniqueness":
        remark = f"; {_NOBODY}"
    return f"{_title(record)}: {value}; {each.reference}: {reference}{remark}."


def _title(record: Record) -> str:
    about = f" ({short(record.subject)})" if record.subject else ""
    return f"{measure(record.name).title}{about}"


def _membership_sentence(judged: list[_Judged]) -> str:
    if not judged or any(each.worse for each in judged):
        return ""
    areas = " and ".join(number(each.record.value or 0.0) for each in judged)
    return (
        "Whether somebody was in the original cannot be told from the release better than by "
        f"chance: area under the curve {areas}, chance 0.5."
    )
