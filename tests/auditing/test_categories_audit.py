"""The exact audit of private categories, and the broken twins that it must find (R29)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import msgspec
import numpy as np
import polars as pl
import pytest

from pegsynth.auditing.measured_codecs import (
    CATEGORIES,
    audit_categories,
    categories_cases,
    claimed_by,
    counted,
)
from pegsynth.auditing.paths import WatchedFilter
from pegsynth.auditing.run import audit
from pegsynth.codec.finding_categories import Part
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.unseen_categories import passing, smallest_threshold, unseen_delta

CASES = categories_cases()
ONE_ROW, MORE_NOISE, APART, TOGETHER = CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_search_costs_more_than_is_claimed_and_the_claim_is_used(case):
    worst = audit_categories(case)
    assert worst.holds
    # The chance of a category that only one unit has is reached, but for finding two at once.
    twice = worst.claim.delta_taken**2 if case is APART else 0.0
    assert worst.lost == pytest.approx(worst.claim.delta_taken - twice / 4, rel=1e-9)
    assert worst.loss.rho > 0.3 * worst.claim.rho


def test_both_worst_ways_to_deal_rows_occur():
    def p(case, count):
        _, ledger = case.run(counted(()), lambda _, counts: counts)
        event = ledger.events[-1]
        variance = Fraction(event.variance_numerator, event.variance_denominator)
        return passing(variance, event.threshold, count)

    assert 2 * p(APART, 1) > p(APART, 2)
    assert 2 * p(TOGETHER, 1) < p(TOGETHER, 2)


class TooLow(WatchedFilter):
    """Compares with one less than the threshold that is recorded."""

    def _passing(self, event, counts):
        noisy = self._noisy(counts, event.noise)
        return np.where(noisy >= event.threshold, noisy, 0)


class Unnoised(WatchedFilter):
    """Compares the counts themselves."""

    def _passing(self, event, counts):
        return np.where(counts > event.threshold, counts, 0)


def in_order_of_appearance(table):
    """Count as shipped, texts as they came."""
    order = list(dict.fromkeys(table))
    return [Part("x", pl.Series(order, dtype=pl.String), _counts(table, order))]


def _counts(table, order):
    return np.array([table.count(text) for text in order], dtype=np.int64)


def unsorted(schema, plan, parts, budget_filter):
    """Search as shipped, and publish in the order of the parts."""
    search = budget_filter.search(plan.share, delta=plan.delta, features=(0,))
    found = []
    for part in parts:
        found += part.texts.filter(pl.Series(search(part.counts) > 0)).to_list()
    return {"x": tuple(found)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize(
    "twin",
    [
        {"budget_filter": TooLow},
        {"budget_filter": Unnoised},
        {"count": in_order_of_appearance, "find": unsorted},
    ],
    ids=["threshold too low by one", "counts kept unnoised", "order of first appearance"],
)
def test_broken_twins_are_found(case, twin):
    assert not audit_categories(replace(case, **twin)).holds


class DeltaOfOneRow(WatchedFilter):
    """Takes the threshold for units of one row."""

    def search(self, share, *, delta, features=()):
        super().search(share, delta=delta, features=features)
        variance = Fraction(self.price.deviation(share)) ** 2
        threshold = smallest_threshold(variance, delta, 1)
        self._events[-1] = msgspec.structs.replace(self._events[-1], threshold=threshold)
        return partial(self._passing, self._events[-1])


def of_one_row(ledger):
    """Claim the delta' that units of one row have."""
    event = ledger.events[-1]
    variance = Fraction(event.variance_numerator, event.variance_denominator)
    taken = float(unseen_delta(variance, event.threshold, 1))
    return replace(claimed_by(ledger), delta_taken=taken)


@pytest.mark.parametrize("case", [APART, TOGETHER], ids=lambda case: case.name)
def test_delta_of_one_row_is_found_where_units_have_two(case):
    twin = replace(case, budget_filter=DeltaOfOneRow, claim=of_one_row)
    assert not audit_categories(twin).holds


def delta_forgotten(ledger):
    """Convert rho at the whole delta, as if finding categories took none of it."""
    claim = claimed_by(ledger)
    epsilon = epsilon_at(claim.rho, delta=claim.delta)
    return replace(claim, delta_taken=0.0, epsilon=epsilon)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_forgotten_delta_is_found(case):
    worst = audit_categories(replace(case, claim=delta_forgotten))
    assert not worst.holds


def test_a_forgotten_delta_breaks_the_promise_itself():
    # Nobody takes it out of the stated delta, so nobody notices that it is larger than that.
    worst = audit_categories(replace(MORE_NOISE, delta_share=Fraction(2), claim=delta_forgotten))
    assert worst.apart > worst.claim.delta


def test_the_command_audits_categories():
    findings = list(audit(CATEGORIES))
    assert len(findings) == len(CASES)
    assert all(finding.holds for finding in findings)
