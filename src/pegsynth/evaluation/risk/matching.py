"""Probabilistic identification by matching (Reiter).

For each row t of the original the intruder knows the identifying features and takes every
released row that agrees on them, c_t in number, for t with equal probability 1/c_t. With
m_t the number of right ones among them,

- the *expected match risk* is the mean of m_t/c_t, 0 where c_t = 0;
- the *true match rate* is the share of targets with a single match that is right;
- the *false match rate* is the share of wrong ones among the targets with a single match.

What is *right* depends on the kind of release:

- *Rows correspond* (partially synthetic tables): released row t was made from row t, and it
  alone is right, as in the paper. Several tables give the mean.
- *No correspondence* (fully synthetic tables): no released row belongs to anybody. A row is
  right when it agrees with t on all sensitive features together, so that who takes it for t
  learns them all. Much of that is no disclosure, as common values are guessed without the
  release; the control are rows of a hold-out as targets.

Notes
-----
Reiter and Mitra (2009), Estimating risks of identification disclosure in partially synthetic
data, Journal of Privacy and Confidentiality 1(1), 99-110, doi:10.29012/jpc.v1i1.567; the
probabilities go back to Reiter (2005), Estimating risks of identification disclosure in
microdata, Journal of the American Statistical Association 100(472), 1103-1112.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pegsynth.codec.tabulation import group_rows
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk.risk_tables import (
    NO_IDENTIFIER,
    NO_SENSITIVE,
    RiskTables,
    power_reason,
    with_references,
)
from pegsynth.inference.statistics import Estimate, hull, share
from pegsynth.kernels.arrays import Float64, Int64

Rates = tuple[float, float, float]

NAMES = ("reiter_risk", "reiter_true_match_rate", "reiter_false_match_rate")
_DEFINITIONS = (
    "expected match risk: mean over the targets of the share of right ones among the released "
    "rows that agree on the identifying features, 0 where none does",
    "share of the targets with a single matching row, and that one right",
    "share of wrong ones among the targets with a single matching row",
)
_OTHERS = "the same expected of as many rows drawn from other people of the original"
_CONTROL = "the same for rows of the hold-out as targets, who were never given"


@dataclass(frozen=True)
class Matches:
    """Released rows that agree with each target, and how many of them are right."""

    found: Int64
    right: Int64

    @property
    def probability(self) -> Float64:
        """Chance that a matching row taken at random is right; 0 without a match."""
        return np.asarray(self.right / np.maximum(self.found, 1), dtype=np.float64)

    def rates(self, level: float) -> list[Estimate]:
        """Return expected match risk, true match rate and false match rate."""
        single = self.found == 1
        wrong = self.right[single] == 0
        return [
            share(float(self.probability.mean()), len(single), level=level),
            share(float((single & (self.right == 1)).mean()), len(single), level=level),
            share(float(wrong.mean()) if len(wrong) else 0.0, len(wrong), level=level),
        ]


def matching_records(tables: RiskTables) -> tuple[list[Record], dict[str, Float64]]:
    """Match every row of the original with what is released.

    Returns
    -------
    records, per_record
        Reiter's three rates, with the control of the first; the match probability of every
        row of the original.
    """
    reason = "" if tables.identifiers else NO_IDENTIFIER
    if not reason and not tables.sensitive and not tables.corresponding:
        reason = f"{NO_SENSITIVE}: in a fully synthetic table no row belongs to anybody"
    if reason:
        return [not_computed(name, "", reason) for name in NAMES], {}
    original, others = tables.original, None
    known = group_rows(
        [original, *tables.tables]
        if tables.corresponding
        else tables.with_holdout(original, tables.released),
        tables.identifiers,
        tables.sizes,
    )
    mine = known.ids[0]
    group = known.sizes(0)[mine]
    if tables.corresponding:
        matches = [
            Matches(known.sizes(number)[mine], (ids == mine).astype(np.int64))
            for number, ids in enumerate(known.ids[1:], start=1)
        ]
        control = None
        without = (float((1 / group).mean()), float((group == 1).mean()), 0.0)
    else:
        every = tables.with_holdout(original, tables.released)
        whole = group_rows(every, (*tables.identifiers, *tables.sensitive), tables.sizes)
        # Of the original and, where there is one, of the hold-out.
        found = [
            Matches(known.sizes(1)[known.ids[table]], whole.sizes(1)[whole.ids[table]])
            for table in (0, 2)[: len(every) - 1]
        ]
        matches, control = found[:1], found[1] if found[1:] else None
        profile = whole.sizes(0)[whole.ids[0]]
        without = bootstrap_rates(group, profile, tables.released_rows)
        # Whoever is alone in a group leaves none behind that could match.
        others = bootstrap_rates(np.maximum(group - 1, 1), profile - 1, tables.released_rows)[0]
    subject = f"{tables.listed(tables.sensitive) or 'row'} | {tables.listed(tables.identifiers)}"
    by_table = [each.rates(tables.level) for each in matches]
    controls = (None, None, None) if control is None else control.rates(tables.level)
    records: list[Record] = []
    for number, name in enumerate(NAMES):
        value, held = hull([rates[number] for rates in by_table]), controls[number]
        if not value.n:
            records.append(not_computed(name, subject, "no target has a single matching row"))
            continue
        references, no_power = {}, ""
        if not number and others is not None:
            population = share(others, tables.rows, level=tables.level)
            real = share(without[0], tables.rows, level=tables.level)
            no_power = power_reason(real, held or population)
            references = {"others": (population, _OTHERS)}
            if held is not None:
                references["control"] = (held, _CONTROL)
        record = measured(
            name,
            subject,
            value,
            baseline=without[number] if held is None else held.value,
            note=f"{_DEFINITIONS[number]}; {_decisions(tables)}",
            no_power=no_power,
        )
        records += with_references(record, references)
    probability = np.mean([each.probability for each in matches], axis=0)
    return records, {"match_probability": probability}


def bootstrap_rates(group: Int64, profile: Int64, rows: int) -> Rates:
    """Rates expected when `rows` rows of the original are released, drawn with replacement.

    Parameters
    ----------
    group, profile
        For every row of the original, the rows with its identifying features, and those
        with its sensitive ones too.

    Notes
    -----
    The first two are exact: a matching row is drawn uniformly from the group, and the number
    of them is binomial. The third is the ratio of two exact expectations.
    """
    others = 1 - group / len(group)
    risk = np.mean(profile / group * (1 - others**rows))
    once = rows / len(group) * others ** (rows - 1)
    true, single = float(np.mean(once * profile)), float(np.mean(once * group))
    return float(risk), true, 1 - true / single if single > 0 else math.nan


def _decisions(tables: RiskTables) -> str:
    if tables.corresponding:
        return (
            "rows correspond (partially synthetic), so that only released row t, made from row t, "
            f"is right; baseline: the original itself as released; {tables.limits}"
        )
    baseline = (
        f"the bootstrap in expectation, as {tables.no_holdout}"
        if tables.holdout is None
        else f"the {tables.holdout.shape[1]} rows of the hold-out as targets"
    )
    return (
        "rows do not correspond (fully synthetic), so that a row is right when it agrees on "
        f"{tables.listed(tables.sensitive)} together{tables.stacked}; baseline: {baseline}; "
        f"{tables.limits}"
    )
