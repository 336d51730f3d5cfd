"""The verdict: what saved figures mean, in plain words chosen by fixed rules.

`rules_of` states the rules on the page. Utility was judged when it was measured, by rules that the
record of the faults brings along: here faults are only put into the headline, kind by kind and the
worst first. Risks are judged here: every form of every attack is held against its reference by one
rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pegsynth.publishing.rendering import page
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
from pegsynth.publishing.report.wording import OFF, TERM, Lookup, number, short

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics, Record

M = TypeVar("M", bound="Metrics")
_AS_CHANCE, _CLOSE, _VISIBLE = 1.25, 0.02, 0.10
_CODES = (
    "as close as chance allows.",
    "close to the original.",
    "roughly alike; small groups will differ.",
    "far apart: expect wrong answers about features taken together.",
)
MOST_LINES, MOST_SAID = 3, 10
_MOST_NAMED, _NAMED_OF_SEVERAL = 4, 2
_NUMBERS = "numbers"
OVERLAPS = 0.5
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
    "feature pairs": "Pairs of features lose their dependence",
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
_JUDGED = (*_ATTACKS, "uniqueness")
# Of these, people who are in no table are right as often by what the population tells.
_ONLY_CONTROLLED = ("reiter_risk",)


def verdict(found: Lookup) -> dict[str, Any]:
    """Say what the figures mean: a headline and a few sentences on utility, and on risk."""
    off = by_kind(found)
    risk = risk_verdict(found)
    utility = _utility_headline(found, off)
    return {
        "lines": _lines(found, off, risk, utility),
        "utility": utility,
        "off": bool(off),
        "utility_sentences": _utility_sentences(found, off),
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


def _utility_headline(found: Lookup, off: dict[str, list[Record]]) -> str:
    """Name what is off first, kind by kind; tables of codes come after."""
    codes = _codes_headline(found.record("tvd2_weighted") or found.record("tvd2"))
    overlap, apart = found.record("interval_overlap"), ""
    low = overlap is not None and overlap.value is not None and overlap.value < OVERLAPS
    if low and overlap is not None and "regressions" not in off:
        apart = (
            f" Intervals of regression coefficients overlap by {number(overlap.value or 0.0)} "
            "only, which chance could explain."
        )
    if not off and not apart:
        return codes[:1].upper() + codes[1:]
    most = _MOST_NAMED if len(off) == 1 else _NAMED_OF_SEVERAL
    parts = [f"{_TITLES[kind]}: {_named(records, most)}." for kind, records in off.items()]
    nothing = off and codes.startswith("there is")
    parts.append(codes.capitalize() if nothing else f"On average, tables of codes are {codes}")
    return " ".join(parts) + apart


def _named(records: list[Record], most: int) -> str:
    """Name the worst, without their last bracket: its figures stand in the sentences below."""
    named = list(dict.fromkeys(e.note.rpartition(" (")[0] or e.note for e in records))
    more = f"; and {len(named) - most} more" if len(named) > most else ""
    return f"{'; '.join(named[:most])}{more}"


def _codes_headline(pairs: Record | None) -> str:
    if pairs is None or pairs.value is None or pairs.baseline is None:
        return "there is no two-way table to judge by."
    return _CODES[closeness(pairs.value, pairs.baseline)]


def closeness(value: float, floor: float) -> int:
    """Say how far tables of codes are apart, from 0 (as close as chance allows) to 3 (far)."""
    if value <= _AS_CHANCE * floor:
        return 0
    return 1 + bisect_left((_CLOSE, _VISIBLE), value - floor)


def _lines(
    found: Lookup, off: dict[str, list[Record]], risk: RiskVerdict, utility: str
) -> list[str]:
    """Say the most important in at most three lines, the worst first."""
    if not off:
        return [risk.headline, utility] if risk.alarm else [utility, risk.headline]
    said = [f"{_TITLES[kind]}: {_named(records, 1)}." for kind, records in off.items()]
    if risk.alarm:
        said.insert(0, risk.headline)
    if len(said) > MOST_LINES:
        others = list(off)[MOST_LINES - 1 - len(said) :]
        titles = "; ".join(f"{_TITLES[kind].lower()} ({len(off[kind])})" for kind in others)
        return [*said[: MOST_LINES - 1], f"Also: {titles}."]
    codes = _codes_headline(found.record("tvd2_weighted") or found.record("tvd2"))
    rest = (f"On average, tables of codes are {codes}", risk.headline)
    return [*said, *(each for each in rest if each not in said and "there is no" not in each)][
        :MOST_LINES
    ]


def _utility_sentences(found: Lookup, off: dict[str, list[Record]]) -> list[str]:
    said, constant = _worst_of_each(off), found.constant()
    ones = [r for r in found.subjects("tvd1") if r.value is not None and r.subject not in constant]
    weighted = [each for each in found.named("effective_rows") if each.value is not None]
    moved = [each for each in found.subjects("cap_effect") if each.value]
    most_moved = max(moved, key=lambda each: each.value or 0.0, default=None)
    return _sentences(
        "verdict_utility.j2",
        found=found,
        faults=[_said(each) for each in said],
        reason_of=reason_of,
        unsaid=len(found.subjects(OFF)) - len(said),
        unjudged=[r for r in found.subjects("value_mean") if r.value is None][:MOST_SAID],
        weakest=max(ones, key=lambda r: (r.value or 0.0) - (r.baseline or 0.0), default=None),
        uneven=min(weighted, key=lambda r: (r.value or 0.0) / max(r.n, 1), default=None),
        moved="" if most_moved is None else most_moved.note.partition(" of the rows")[0],
    )


def _said(fault: Record) -> str:
    """Write a fault as a sentence; the name of a feature stays as it is."""
    note = fault.note
    named = any(name and note.startswith(name) for name in (fault.subject or "").split(", "))
    return f"{note if named else note[:1].upper() + note[1:]}."


def _sentences(template: str, **content: Any) -> list[str]:
    """Return the lines of a template, one sentence each."""
    return [line for line in page(template, **content).split("\n") if line]


@dataclass(frozen=True)
class RiskVerdict:
    """A headline, sentences, whether anything is to be worried about, and could be judged."""

    headline: str
    sentences: tuple[str, ...]
    alarm: bool
    judged: bool


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

    @property
    def title(self) -> str:
        """The measure, and what it is about."""
        return _title(self.record)

    def text(self, value: float | None) -> str:
        """Write a figure in the unit of the measure."""
        return figure_text(value, as_percent=in_percent(self.record.name, self.record))


def risk_verdict(found: Lookup) -> RiskVerdict:
    """Judge every measure of risk that has a reference."""
    listed = [name for name in _JUDGED if found.named(name)]
    every = [_judge(found, record) for name in listed for record in _judgeable(found, name)]
    named = [each for each in every if each.named]
    # What was found stands, whatever the odds of finding it were.
    judged = [each for each in every if each.named or not each.record.no_power]
    sentences = _sentences(
        "verdict_risk.j2",
        named=sorted(named, key=lambda each: (not each.worse, not each.open)),
        membership=[each for each in judged if each.record.name == "membership_auc"],
        slightly=_titles([each for each in judged if each.above and not each.open]),
        powerless=_by_reason((e.record.no_power, e.title) for e in every if e not in judged),
        missing=_by_reason(
            (reason_of(found.headline(name)), measure(name).title)
            for name in listed
            if name not in {each.record.name for each in every}
        ),
    )
    alarm = any(each.worse or each.open for each in judged)
    headline = _headline(judged, len(listed))
    return RiskVerdict(headline, tuple(sentences), alarm, bool(judged))


def _by_reason(told: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return reasons, each with the titles of the measures that it is of."""
    reasons: dict[str, list[str]] = {}
    for reason, title in told:
        reasons.setdefault(reason, []).append(title)
    return reasons


def _headline(judged: list[_Judged], every: int) -> str:
    if not judged:
        return "No measure of risk could be held against a reference."
    named = (
        ("Worse than the reference", [each for each in judged if each.worse]),
        ("Not clearly better than releasing real rows", [each for each in judged if each.open]),
        (
            "Above the reference, but only a hold-out could judge it",
            [each for each in judged if each.uncontrolled],
        ),
    )
    if parts := [f"{words}: {_titles(ours)}." for words, ours in named if ours]:
        return " ".join(parts)
    count = len({each.record.name for each in judged})
    if count == every:
        return "No measure of risk stands out against its reference."
    who = "it does not stand" if count == 1 else "none of these stands"
    return f"Of {every} measures of risk {count} could be judged; {who} out against its reference."


def _titles(judged: list[_Judged]) -> str:
    return "; ".join(dict.fromkeys(measure(each.record.name).title for each in judged))


def _title(record: Record) -> str:
    about = f" ({short(record.subject)})" if record.subject else ""
    return f"{measure(record.name).title}{about}"


def _judgeable(found: Lookup, name: str) -> list[Record]:
    whole = found.record(name)
    ours = found.subjects(name) or ([whole] if whole is not None else [])
    return [r for r in ours if r.value is not None and r.baseline is not None]


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
