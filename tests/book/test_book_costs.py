"""What whole runs cost together: an oracle by enumeration, and twins that convert too much."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from pegsynth.privacy import (
    Allowance,
    Budget,
    CategoriesFound,
    Ledger,
    NoisyCounts,
    NotPrivate,
    PegsDraws,
    Selection,
    UnitBound,
    Unspent,
)
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.recorded import delta_taken, total
from pegsynth.storage.book.book_policy import BookPolicy, Cost, added, cost_of, whole_cost

DELTA = 1e-6


def laplace(epsilon, purpose="blocks"):
    return NoisyCounts.laplace(1 / Fraction(epsilon), cells=1, purpose=purpose)


def parts_one_by_one(events):
    """The broken twin: every part of a pure filter is converted by itself."""
    spent = [event for event in events if not isinstance(event, Unspent)]
    return total("zcdp", spent)


# R6: a pure filter is one item


def filter_path(first):
    """Return the ledger of a filter of epsilon 1 after its first part came out 0 or 1."""
    rest = [laplace(Fraction(9, 10))] if first else [laplace(Fraction(1, 100))] * 90
    return [laplace(Fraction(1, 10)), *rest]


def filter_divergence(epsilon):
    """Return the exact hockey-stick divergence of that filter, on answers of yes or no.

    Every part is a randomised response of its amount. What it spends next depends on the first
    answer: all that is left at once, or in ninety parts.
    """

    def answer(amount):
        yes = math.exp(amount) / (1 + math.exp(amount))
        return ((yes, 1 - yes), (1 - yes, yes))

    found = 0.0
    for first, (p, q) in enumerate(answer(0.1)):
        if first:
            outcomes = [(p * a, q * b) for a, b in answer(0.9)]
        else:
            yes, no = answer(0.01)[0]
            outcomes = [
                (
                    p * math.comb(90, k) * yes**k * no ** (90 - k),
                    q * math.comb(90, k) * no**k * yes ** (90 - k),
                )
                for k in range(91)
            ]
        found += sum(max(0.0, a - math.exp(epsilon) * b) for a, b in outcomes)
    return found


def test_a_pure_filter_costs_the_same_on_every_path():
    costs = [cost_of(filter_path(first), delta=0.0) for first in (0, 1)]
    assert costs[0] == costs[1] == Cost(rho=Decimal("0.5"), epsilon=Decimal(1))
    assert filter_divergence(epsilon_at(costs[0].rho, delta=DELTA)) <= DELTA


def test_converting_the_parts_of_a_filter_one_by_one_is_caught():
    claimed = epsilon_at(parts_one_by_one(filter_path(0)), delta=DELTA)
    assert claimed < 1.0
    assert filter_divergence(claimed) > 1000 * DELTA


def test_what_a_filter_left_unspent_is_part_of_the_one_item():
    left = Unspent.of(Fraction(1, 2), route="pure")
    assert cost_of([laplace(Fraction(1, 2)), left], delta=0.0) == cost_of([laplace(1)], delta=0.0)
    chosen = Selection.of(Fraction(1, 4), count=2, purpose="heads")
    assert cost_of([chosen, laplace(Fraction(1, 2))], delta=0.0).rho == Decimal("0.5")


def test_draws_with_fixed_amounts_keep_their_own_price():
    draws = PegsDraws(features=3, rows=100, alpha_numerator=50, alpha_denominator=1)
    cost = cost_of([draws], delta=0.0)
    assert cost.rho == pytest.approx(total("zcdp", [draws]))
    assert cost.rho < cost.epsilon**2 / 2


# Sums


def gaussian_and_response(epsilon, sigma2, response):
    """Exact divergence of a discrete Gaussian count beside a randomised response, both ways."""
    span = range(-80, 82)
    weights = [math.exp(-(k**2) / (2 * sigma2)) for k in span]
    shifted = [math.exp(-((k - 1) ** 2) / (2 * sigma2)) for k in span]
    yes = math.exp(response) / (1 + math.exp(response))
    found = [0.0, 0.0]
    for (a, b), (p, q) in itertools.product(
        zip(weights, shifted, strict=True), ((yes, 1 - yes), (1 - yes, yes))
    ):
        left, right = a * p / sum(weights), b * q / sum(weights)
        found[0] += max(0.0, left - math.exp(epsilon) * right)
        found[1] += max(0.0, right - math.exp(epsilon) * left)
    return max(found)


def best_epsilon(rho, delta):
    """Search the conversion of R6 (c) over a fine grid of orders."""

    def at(order):
        return order * rho + (
            math.log(1 / delta) + order * math.log1p(-1 / order) - math.log(order - 1)
        ) / (order - 1)

    return min(at(1 + math.exp(u / 500)) for u in range(-4000, 8000))


@pytest.mark.parametrize(("response", "sigma2"), [(0.5, 4), (1.0, 9), (0.1, 1)])
def test_pure_and_approximate_runs_add_up_in_rho(response, sigma2):
    pure = cost_of([laplace(response), Unspent.of(Fraction(1, 10**9), route="pure")], delta=0.0)
    noise = NoisyCounts.gaussian(math.sqrt(sigma2), cells=1, purpose="blocks")
    approximate = cost_of([noise], delta=DELTA)
    together = added([pure, approximate])
    claimed = BookPolicy(epsilon=100, delta=DELTA).epsilon_of(together)
    rho = (response + 1e-9) ** 2 / 2 + 1 / (2 * sigma2)
    assert claimed == pytest.approx(best_epsilon(rho, DELTA), rel=1e-6)
    assert gaussian_and_response(claimed, sigma2, response) <= DELTA
    assert together.epsilon is None


def test_pure_runs_add_up_in_epsilon_too():
    runs = [cost_of([laplace(Fraction(1, 4))], delta=0.0)] * 4
    assert added(runs).epsilon == 1
    assert BookPolicy(epsilon=1.0).epsilon_of(added(runs)) == 1.0
    assert BookPolicy(epsilon=1.0, delta=1e-9).epsilon_of(added(runs)) == 1.0
    approximate = cost_of([NoisyCounts.gaussian(3.0, cells=1, purpose="x")], delta=DELTA)
    assert BookPolicy(epsilon=1.0).epsilon_of(added([*runs, approximate])) is None


def test_amounts_are_those_that_were_typed():
    tenth = cost_of([Unspent.of(Fraction(0.1), route="pure")], delta=0.0)
    policy = BookPolicy(epsilon=1.0)
    assert policy.why_not(added([tenth] * 10), tenth) == ""
    assert "1.1 would be spent" in policy.why_not(added([tenth] * 11), tenth)


def test_rho_adds_before_it_is_converted():
    noise = NoisyCounts.gaussian(10.0, cells=1, purpose="blocks")
    once = cost_of([noise], delta=DELTA)
    policy = BookPolicy(epsilon=1.0, delta=DELTA)
    assert added([once] * 5).rho == Decimal("0.025")
    assert policy.epsilon_of(added([once] * 5)) < 5 * policy.epsilon_of(once)


def test_found_categories_take_their_part_of_delta():
    found = CategoriesFound.of(8.0, threshold=70, features=("ward", "drug"))
    bound = UnitBound(rows_per_unit=2, label="person")
    cost = cost_of([bound, found], delta=DELTA)
    assert cost.delta_taken == pytest.approx(delta_taken([found], rows_per_unit=2))
    assert cost.rho == pytest.approx(Decimal(2 * 4) / (2 * 64))
    none_aside = BookPolicy(epsilon=9.0, delta=DELTA, unit="person")
    assert "sets nothing of delta aside" in none_aside.why_not(cost, cost)
    aside = BookPolicy(epsilon=9.0, delta=DELTA, unit="person", private_categories=True)
    assert aside.why_not(cost, cost) == ""
    assert aside.delta_for_rho < DELTA
    many = Cost(rho=cost.rho, delta_taken=Decimal(DELTA) / 5)
    assert "tenth of delta" in aside.why_not(many, many)


@pytest.mark.parametrize("delta", [1e-6, 1e-9, 3e-7, 1e-7, 5e-10, 7e-7, 2**-20, 0.01])
@pytest.mark.parametrize("runs", [1, 2, 8])
def test_exactly_the_tenth_of_delta_is_enough(delta, runs):
    """A run sets a tenth of its delta aside, so a book of the same delta covers one of them."""
    part = delta / runs  # Exact: a power of two.
    budget = Budget(epsilon=1.0, delta=part, delta_taken=Fraction(part) / 10)
    cost = whole_cost(budget, Allowance("zcdp", Fraction(1, 100)))
    assert Fraction(cost.delta_taken) == Fraction(part) / 10
    policy = BookPolicy(epsilon=9.0, delta=delta, private_categories=True)
    whole = added([cost] * runs)
    assert policy.why_not(whole, whole) == ""
    beyond = added([whole, Cost(rho=Decimal(0), delta_taken=Decimal(delta) / 10**12)])
    assert "tenth of delta" in policy.why_not(beyond, beyond)


def test_what_has_no_guarantee_has_no_cost():
    assert cost_of([NotPrivate.because("seeded")], delta=DELTA) is None
    assert cost_of([NoisyCounts.gaussian(3.0, cells=1, purpose="x")], delta=0.0) is None


@pytest.mark.parametrize("delta", [None, 1e-9])
def test_a_whole_budget_bounds_what_any_path_spends(delta):
    route = "pure" if delta is None else "zcdp"
    budget = Budget(epsilon=1.0, delta=delta, paid=Allowance(route, Fraction(1, 100)))
    cost = whole_cost(budget, budget.paid)
    policy = BookPolicy(epsilon=1.0, delta=delta or 0.0)
    assert policy.why_not(cost, cost) == ""
    assert policy.epsilon_of(cost) > 0.999999
    assert cost_of([Unspent.of(Fraction(cost.rho if delta else 1), route=route)], delta=delta or 0)


def test_a_release_of_the_whole_limit_fits_and_another_does_not():
    noise = Unspent.of(Budget(epsilon=2.0, delta=1e-9).whole("zcdp").amount, route="zcdp")
    cost = cost_of([noise], delta=1e-9)
    policy = BookPolicy(epsilon=2.0, delta=1e-9)
    assert policy.why_not(cost, cost) == ""
    little = added([cost, cost_of([laplace(Fraction(1, 1000))], delta=0.0)])
    assert "would be spent in all, and 2 is allowed" in policy.why_not(little, little)
    assert Ledger((noise,), (), 1e-9).guarantee.epsilon <= 2.0
