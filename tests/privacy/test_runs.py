"""Runs that are added: wholes, the same on every path, and never less than they come to."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.pipeline.running import true_of_both
from pegsynth.privacy import (
    AgreementCounts,
    Ledger,
    NoisyCounts,
    RunBegins,
    UnitBound,
    Unspent,
    verify,
)
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.schema import Feature, Schema
from pegsynth.storage.book.book_policy import BookPolicy, added, cost_of

DELTA = 1e-6
GAUSSIAN = Ledger((NoisyCounts.gaussian(5.0, cells=1, purpose="blocks"),), delta=DELTA)


def laplace(epsilon):
    return NoisyCounts.laplace(1 / Fraction(epsilon), cells=1, purpose="edges")


def adaptive(first):
    """Return the ledger of a filter of epsilon 1 after its first part came out 0 or 1."""
    rest = [laplace(Fraction(9, 10))] if first else [laplace(Fraction(1, 100))] * 90
    return Ledger((laplace(Fraction(1, 10)), *rest))


def booked(*ledgers, delta=DELTA):
    """Return what a budget book says of the same runs."""
    costs = [cost_of(ledger.events, delta=ledger.delta) for ledger in ledgers]
    return BookPolicy(epsilon=100.0, delta=delta).epsilon_of(added(costs))


# One command on several tables

SCHEMA = Schema(
    (
        Feature("v", kind="numeric", private_edges=True, lowest=0.0, highest=1000.0),
        Feature("c", categories=("a", "b", "c")),
    ),
    reviewed=True,
)
VALUES = {
    "spread out": np.linspace(0, 1000, 900),
    "one value": np.full(900, 3.0),
    "three rows": np.array([1.0, 2.0, 999.0]),
}


@pytest.mark.parametrize("delta", [None, DELTA])
@pytest.mark.parametrize("method", ["pegs", "pegs-once", "marginal"])
def test_one_command_promises_the_same_on_every_table(method, delta):
    """The codec is paid first, by amounts that depend on what was seen."""
    ledgers = [
        pegsynth.synthesize(
            pl.DataFrame({"v": values, "c": np.resize(["a", "b"], len(values))}),
            SCHEMA,
            method=method,
            rows=20,
            epsilon=1.0,
            delta=delta,
        ).ledger
        for values in VALUES.values()
    ]
    assert len({ledger.epsilon for ledger in ledgers}) == 1
    assert ledgers[0].epsilon <= 1.0
    together = [ledger + GAUSSIAN for ledger in ledgers]
    assert len({(each.epsilon, each.rho) for each in together}) == 1
    for ledger, each in zip(ledgers, together, strict=True):
        assert each.epsilon == pytest.approx(booked(ledger, GAUSSIAN), rel=1e-12)


# An oracle


def divergence_with_noise(epsilon, sigma2=25):
    """Return the exact divergence of the filter beside a discrete Gaussian count.

    Every part of the filter is a randomised response of its amount; the neighbour answers the
    other way, and has one row more in the count.
    """

    def answer(amount):
        yes = math.exp(amount) / (1 + math.exp(amount))
        return ((yes, 1 - yes), (1 - yes, yes))

    yes, no = answer(0.01)[0]
    (p, q), (r, s) = answer(0.1)
    many = [(math.comb(90, k), k) for k in range(91)]
    outcomes = [
        *((p * c * yes**k * no ** (90 - k), q * c * no**k * yes ** (90 - k)) for c, k in many),
        *((r * a, s * b) for a, b in answer(0.9)),
    ]
    span = np.arange(-80, 82)
    weights, moved = (np.exp(-((span - at) ** 2) / (2 * sigma2)) for at in (0, 1))
    left, right = np.array(outcomes).T
    left = np.outer(left, weights / weights.sum())
    right = np.outer(right, moved / weights.sum())
    return float(np.maximum(left - math.exp(epsilon) * right, 0).sum())


def test_the_sum_is_not_below_what_the_runs_come_to():
    found = [(adaptive(first) + GAUSSIAN).epsilon for first in (0, 1)]
    assert found[0] == found[1]
    assert divergence_with_noise(found[0]) <= DELTA


def test_parts_that_are_converted_one_by_one_are_found_out():
    """The broken twin: events of several runs as if they were those of one."""
    flat = Ledger((*adaptive(0).events, *GAUSSIAN.events), delta=DELTA)
    assert flat.epsilon < booked(adaptive(0), GAUSSIAN)
    assert divergence_with_noise(flat.epsilon) > 1000 * DELTA


# Sums of sums


def test_the_order_of_adding_does_not_matter():
    runs = [adaptive(0), GAUSSIAN, Ledger((laplace(2), Unspent.of(Fraction(1, 3), route="pure")))]
    whole = Ledger.combine(runs)
    for a, b, c in permutations(runs):
        assert ((a + b) + c).guarantee == (a + (b + c)).guarantee == whole.guarantee
    assert whole.epsilon == pytest.approx(booked(*runs), rel=1e-12)
    assert Ledger.from_json(whole.to_json()) == whole
    assert verify(whole.to_json()) == []
    assert booked(whole) == pytest.approx(booked(*runs), rel=1e-12)
    assert [event.delta for event in whole.events if isinstance(event, RunBegins)] == [0, DELTA, 0]
    assert "A run on the table begins, which stated no delta" in whole.explain()


def test_a_pure_run_with_a_rest_adds_up_with_an_approximate_one():
    once = Ledger((laplace(Fraction(3, 4)), Unspent.of(Fraction(1, 4), route="pure")))
    both = once + GAUSSIAN
    assert both.guarantee.kind == "approximate"
    assert both.rho == pytest.approx(0.5 + GAUSSIAN.rho)
    assert both.epsilon == epsilon_at(both.rho, delta=DELTA)


def test_every_run_has_the_price_of_its_own_unit():
    two, three = (Ledger((UnitBound(rows_per_unit=k), laplace(1))) for k in (2, 3))
    both = two + three
    assert both.epsilon == 5.0
    assert both.guarantee.rows_per_unit == 3
    assert [line for line in both.to_frame()["epsilon"] if line] == [2.0, 3.0]


def test_questions_keep_the_price_that_was_settled_before_they_were_asked():
    about = {"formula": "y ~ x", "terms": ("x", "z"), "parts": 50}
    question = Ledger((AgreementCounts.laplace(2, **about),))
    both = question + question
    assert both.epsilon == 2.0
    assert both.rho == pytest.approx(2 * question.rho)


def test_a_ledger_that_is_true_of_two_tables_promises_no_more_than_either(tmp_path):
    path = tmp_path / "privacy.json"
    for old, new in permutations((adaptive(0), adaptive(1), GAUSSIAN), 2):
        path.write_text(old.to_json())
        both = true_of_both(path, new)
        for each in (old, new):
            rho = cost_of(each.events, delta=each.delta).rho
            alone = epsilon_at(rho, delta=both.delta) if both.delta else each.epsilon
            assert both.epsilon >= min(alone, each.epsilon)
