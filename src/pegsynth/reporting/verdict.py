"""The verdict: what saved figures mean, in plain words chosen by fixed rules.

`rules_of` states the rules on the page. Numbers were judged when they were measured, by a rule that
their record brings along: here they are only put into the headline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegsynth.reporting.lookup import OFF
from pegsynth.reporting.measures import figure_text, has_control, in_percent, measure, reference_of
from pegsynth.reporting.missing import reason_of
from pegsynth.reporting.wording import number, percent, short

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Record
    from pegsynth.reporting.lookup import Lookup

_AS_CHANCE, _CLOSE, _VISIBLE = 1.25, 0.02, 0.10
MOST_SAID = 8
_MOST_NAMED = 4
UTILITY_RULE = (
    f"Utility: “as close as chance allows” is at most {_AS_CHANCE:g} times the sampling floor of "
    f"the two-way tables; “close” at most {_CLOSE:.0%} of the rows above it; “roughly alike” at "
    f"most {_VISIBLE:.0%}; “far apart” beyond."
)
RISK_RULE = (
    "Risk: a measure is “worse than its reference” when its whole interval lies on the bad side "
    "of chance, of people who were never given, or of real rows. Without a hold-out a measure is "
    "also named when it is not clearly better than releasing real rows (the bootstrap)."
)
_JUDGED = ("membership_auc", "intruder_error", "reappearing_uniques", "reappearing_as_unique")
_ONLY_CONTROLLED = ("reiter_risk", "recognition")
_NO_REFERENCE = "computed, but judged only with a hold-out (--holdout FILE) to hold against"

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
_UNIQUE = (
    "At equal size {value} of the synthetic rows and {baseline} of the original rows are alone "
    "with their quasi-identifiers. A unique synthetic row is not a person, but somebody may take "
    "it for one."
)


@dataclass(frozen=True)
class _Judged:
    """A measure of risk, whether it is worse than its reference, and whether it may be."""

    record: Record
    reference: str
    worse: bool
    open: bool


def verdict(found: Lookup) -> dict[str, Any]:
    """Say what the figures mean: a headline and a few sentences on utility, and on risk."""
    pairs = found.record("tvd2")
    off = found.subjects(OFF)
    utility = [
        *(f"{each.note[:1].upper()}{each.note[1:]}." for each in off[:MOST_SAID]),
        _unsaid(off),
        *_numbers_unjudged(found),
        _sentence(pairs, _OUT_OF_PLACE.replace("TABLE", "two-way"), percent),
        _sentence(found.record("tvd3"), _OUT_OF_PLACE.replace("TABLE", "three-way"), percent),
        _weakest(found),
        _sentence(found.record("interval_overlap"), _OVERLAP, number),
        _sentence(found.record("pmse_ratio"), _PROPENSITY, number),
        _sentence(found.headline("auc_synthetic"), _PREDICTION, number),
    ]
    judged = [_judge(found, record) for record in _judgeable(found)]
    named = [each for each in judged if each.worse or each.open]
    risk = [_alarm_sentence(each) for each in named]
    risk += [
        _membership_sentence([each for each in judged if each.record.name == "membership_auc"]),
        _sentence(found.record("uniqueness"), _UNIQUE, percent),
    ]
    risk += _unjudged_sentences(found, judged)
    return {
        "utility": _utility_headline(pairs, off),
        "off": bool(off),
        "utility_sentences": [sentence for sentence in utility if sentence],
        "risk": _risk_headline(found, judged),
        "risk_sentences": [sentence for sentence in risk if sentence],
        "alarm": bool(named),
    }


def rules_of(found: Lookup) -> list[str]:
    """Return the rules by which the verdict was chosen."""
    numbers = found.record(OFF)
    judged = [] if numbers is None or numbers.value is None else [numbers.note]
    return [UTILITY_RULE, *judged, RISK_RULE]


def _utility_headline(pairs: Record | None, off: list[Record]) -> str:
    """Name what is off about numbers first; tables of codes come after."""
    codes = _codes_headline(pairs)
    if not off:
        return codes[:1].upper() + codes[1:]
    # What is off, without the figures that stand in the sentences below.
    named = list(dict.fromkeys(each.note.rpartition(" (")[0] or each.note for each in off))
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    about = "" if codes.startswith("there is") else "tables of codes are "
    return (
        f"Numbers are off: {'; '.join(named[:_MOST_NAMED])}{more}. {(about + codes).capitalize()}"
    )


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


def _unsaid(off: list[Record]) -> str:
    more = len(off) - MOST_SAID
    return f"{more:,} more figures are off; “Numbers” below lists them." if more > 0 else ""


def _numbers_unjudged(found: Lookup) -> list[str]:
    """Say of which features the numbers could not be looked at."""
    return [
        f"The numbers of {short(record.subject)} were not judged: {reason_of(record)}."
        for record in found.subjects("value_mean")
        if record.value is None
    ][:MOST_SAID]


def _risk_headline(found: Lookup, judged: list[_Judged]) -> str:
    if not judged:
        return "No measure of risk could be held against a reference."
    if worse := _titles([each for each in judged if each.worse]):
        return f"Worse than the reference: {worse}."
    if unclear := _titles([each for each in judged if each.open]):
        return f"Not clearly better than releasing real rows: {unclear}."
    count, every = len({each.record.name for each in judged}), len(_listed(found))
    if count == every:
        return "No measure of risk stands out against its reference."
    who = "it does not stand" if count == 1 else "none of these stands"
    return f"Of {every} measures of risk {count} could be judged; {who} out against its reference."


def _titles(judged: list[_Judged]) -> str:
    return "; ".join(dict.fromkeys(measure(each.record.name).title for each in judged))


def _listed(found: Lookup) -> list[str]:
    """Return the measures of risk with a reference that were to be computed."""
    return [name for name in (*_JUDGED, *_ONLY_CONTROLLED) if found.named(name)]


def _unjudged_sentences(found: Lookup, judged: list[_Judged]) -> list[str]:
    """Say which measures of risk could not be judged, and why, those of one reason together."""
    done = {each.record.name for each in judged}
    reasons: dict[str, list[str]] = {}
    for name in _listed(found):
        if name not in done:
            computed = any(record.value is not None for record in found.named(name))
            reason = _NO_REFERENCE if computed else reason_of(found.headline(name))
            reasons.setdefault(reason, []).append(measure(name).title)
    return [f"{'; '.join(titles)}: {reason}." for reason, titles in reasons.items()]


def _judgeable(found: Lookup) -> list[Record]:
    records = []
    for name in (*_JUDGED, *_ONLY_CONTROLLED):
        whole = found.record(name)
        ours = found.subjects(name) or ([whole] if whole is not None else [])
        records += [
            record
            for record in ours
            if record.value is not None
            and record.baseline is not None
            and (name in _JUDGED or has_control(found, record))
        ]
    return records


def _judge(found: Lookup, record: Record) -> _Judged:
    value, reference = record.value or 0.0, record.baseline or 0.0
    low = value if record.low is None else record.low
    high = value if record.high is None else record.high
    lower = record.better == "lower"
    worse = low > reference if lower else high < reference
    better = high < reference if lower else low > reference
    worst_case = record.name != "membership_auc" and not has_control(found, record)
    return _Judged(
        record,
        reference_of(found, record),
        worse,
        worst_case and not worse and not better,
    )


def _alarm_sentence(each: _Judged) -> str:
    record = each.record
    as_percent = in_percent(record.name, record)
    about = f" ({short(record.subject)})" if record.subject else ""
    value, reference = (
        figure_text(figure, as_percent=as_percent) for figure in (record.value, record.baseline)
    )
    return f"{measure(record.name).title}{about}: {value}; {each.reference}: {reference}."


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


def _membership_sentence(judged: list[_Judged]) -> str:
    if not judged or any(each.worse for each in judged):
        return ""
    areas = " and ".join(number(each.record.value or 0.0) for each in judged)
    return (
        "Whether somebody was in the original cannot be told from the release better than by "
        f"chance: area under the curve {areas}, chance 0.5."
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
