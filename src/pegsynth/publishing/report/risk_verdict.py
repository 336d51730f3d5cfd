"""The verdict on risk: every form of every attack, held against its reference by one rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from pegsynth.publishing.report.wording import number, short

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Record
    from pegsynth.publishing.report.wording import Lookup

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
    sentences = [
        *(_alarm_sentence(each) for each in sorted(named, key=_first)),
        _membership_sentence([each for each in judged if each.record.name == "membership_auc"]),
        _slightly(judged),
        *_powerless_sentences([each for each in every if each not in judged]),
        *_unjudged_sentences(found, every),
    ]
    return RiskVerdict(
        _headline(found, judged),
        tuple(each for each in sentences if each),
        any(each.worse or each.open for each in judged),
    )


def _first(each: _Judged) -> tuple[bool, bool]:
    return not each.worse, not each.open


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


def _unjudged_sentences(found: Lookup, judged: list[_Judged]) -> list[str]:
    """Say which measures of risk could not be judged, and why, those of one reason together."""
    done = {each.record.name for each in judged}
    reasons: dict[str, list[str]] = {}
    for name in _listed(found):
        if name not in done:
            reason = reason_of(found.headline(name))
            reasons.setdefault(reason, []).append(measure(name).title)
    return [f"{'; '.join(titles)}: {reason}." for reason, titles in reasons.items()]


def _powerless_sentences(every: list[_Judged]) -> list[str]:
    """Say which attacks could have found nothing, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for each in every:
        reasons.setdefault(each.record.no_power, []).append(_title(each.record))
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


def _slightly(judged: list[_Judged]) -> str:
    """Name what lies on the bad side of its reference, but not by more than its interval."""
    names = _titles([each for each in judged if each.above and not each.open])
    return (
        f"On the bad side of the reference, but by less than the interval: {names}."
        if names
        else ""
    )


def _membership_sentence(judged: list[_Judged]) -> str:
    if not judged or any(each.worse for each in judged):
        return ""
    areas = " and ".join(number(each.record.value or 0.0) for each in judged)
    return (
        "Whether somebody was in the original cannot be told from the release better than by "
        f"chance: area under the curve {areas}, chance 0.5."
    )
