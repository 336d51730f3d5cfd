"""What an attacker gains (R35): bounds against enumerated laws, and twins that are too small."""

import math
from fractions import Fraction
from itertools import product

import pytest

from noise_laws import gaussian, laplace
from pegsynth.auditing.guess_cases import GUESSES, GuessCase, guess_cases, total_variation
from pegsynth.auditing.run import audit
from pegsynth.privacy import Guarantee, Ledger, NoisyCounts
from pegsynth.privacy.conversion import rho_at
from pegsynth.privacy.guesses import (
    TOLD,
    gain_of,
    gain_of_ledger,
    variation_at_epsilon,
    variation_at_rho,
)

RHOS = (1e-9, 1e-4, 0.015, 0.5, 3.0, 40.0, 1e4)


def approximate(epsilon, delta=1e-9):
    rho = rho_at(epsilon, delta=delta)
    return Guarantee(kind="approximate", epsilon=epsilon, delta=delta, rho=rho)


def kullback_leibler(p, q):
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a)


def largest_by_search(allowed, steps=400):
    """The largest p - q of two coins that `allowed` admits: the slow twin of the closed forms."""
    points = [(i + 0.5) / steps for i in range(steps)]
    return max(p - q for p, q in product(points, points) if p > q and allowed(p, q))


@pytest.mark.parametrize("rho", [0.015, 0.1, 0.5, 2.0])
def test_the_bound_of_rho_is_what_two_coins_reach(rho):
    found = largest_by_search(
        lambda p, q: kullback_leibler(p, q) <= rho and kullback_leibler(q, p) <= rho
    )
    assert found <= variation_at_rho(rho) <= found + 0.006


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.0), (1.0, 0.0), (1.0, 0.05), (3.0, 0.01)])
def test_the_bound_of_epsilon_is_what_two_coins_reach(epsilon, delta):
    def allowed(p, q):
        ratio = math.exp(epsilon)
        pairs = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
        return all(a <= ratio * b + delta + 1e-12 for a, b in pairs)

    found = largest_by_search(allowed)
    assert found <= variation_at_epsilon(epsilon, delta=delta) <= found + 0.006


@pytest.mark.parametrize("rho", RHOS)
def test_it_is_no_larger_than_pinsker_and_bretagnolle_huber(rho):
    bound = variation_at_rho(rho)
    slack = 1 + 1e-9
    assert bound <= min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho))) * slack
    # Rounded up: the divergence at the bound is not below rho.
    assert bound == 1 or bound * (math.log1p(bound) - math.log1p(-bound)) >= rho


def test_rounding_is_upward():
    for epsilon in (1e-6, 0.3, 1.0, 20.0, 1e6):
        exact = 1 - 2 / (Fraction(math.exp(min(epsilon, 700.0))) + 1)
        assert Fraction(variation_at_epsilon(epsilon)) >= exact * (1 - Fraction(1, 10**13))


def test_the_figures_of_the_page():
    figures = {0.1: ("50.5", 123), 1.0: ("54.4", 14), 3.0: ("62.2", 5), 10.0: ("83.6", 2)}
    for epsilon, (percent, people) in figures.items():
        gain = gain_of(approximate(epsilon))
        assert (gain.percent, gain.people) == (percent, people)
    pure = gain_of(Guarantee(kind="pure", epsilon=1.0, delta=0.0, rho=0.5))
    assert (pure.percent, pure.people) == ("73.2", 3)
    assert gain_of(Guarantee(kind="none")) is None
    assert gain_of(Guarantee(kind="pure", epsilon=50.0, delta=0.0)) == (1.0, 1)


def test_every_case_of_the_audit_holds():
    findings = list(audit(GUESSES))
    assert len(findings) == len(guess_cases()) > 20
    assert all(each.holds for each in findings)


def test_the_figure_of_continuous_noise_is_too_small_for_discrete_noise():
    """A twin: 2 Phi(sqrt(rho/2)) - 1 is exact for a density, and not for whole numbers."""
    for sigma in (1, 2, 5):
        rho, law = 1 / (2 * sigma**2), gaussian(sigma)
        apart = total_variation(law, {value + 1: share for value, share in law.items()})
        continuous = math.erf(math.sqrt(rho / 2) / math.sqrt(2))
        assert continuous < apart <= variation_at_rho(rho)
        assert (
            not GuessCase("twin", law, {v + 1: s for v, s in law.items()}, continuous)
            .finding("twin")
            .holds
        )


def test_twins_of_epsilon_and_of_groups_are_caught():
    law = laplace(2)
    moved = {value + 1: share for value, share in law.items()}
    assert total_variation(law, moved) > variation_at_epsilon(0.25)
    assert total_variation(law, moved) <= variation_at_epsilon(0.5)
    # Three people more: rho grows with the square of their number.
    law, rho = gaussian(2), 1 / 8
    moved = {value + 3: share for value, share in law.items()}
    assert variation_at_rho(3 * rho) < total_variation(law, moved) <= variation_at_rho(9 * rho)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_a_cell_is_as_large_as_the_bound_allows_and_no_larger(epsilon):
    guarantee = approximate(epsilon)
    people = gain_of(guarantee).people

    def success(units):
        return (1 + variation_at_rho(units**2 * guarantee.rho)) / 2

    assert success(people - 1) <= TOLD < success(people)


def test_private_categories_take_their_part():
    """A group of people alone with a value may be found with more than delta' (R29)."""
    guarantee = approximate(1.0)
    plain, taken = gain_of(guarantee), gain_of(guarantee, delta_taken=1e-3)
    assert taken.success == pytest.approx(plain.success + 5e-4)
    # The square of R12 does not hold for what is found: groups go by epsilon then.
    assert taken.people == 3 < plain.people
    tails = sum(math.exp(k) for k in range(3)) * 1e-9
    assert (1 + variation_at_epsilon(3.0, delta=tails)) / 2 > TOLD


def test_a_ledger_says_it_in_order():
    ledger = Ledger((NoisyCounts.gaussian(50.0, cells=1, purpose="marginals"),), (), 1e-9)
    gain, said = gain_of_ledger(ledger), ledger.statement()
    odds = said.index("exp(epsilon)")
    success = said.index(f"right at most {gain.percent}% of the time")
    cell = said.index(f"A cell with fewer than {gain.people} rows cannot be told from an empty one")
    assert odds < success < cell
    strong = Ledger((NoisyCounts.gaussian(0.3, cells=1, purpose="marginals"),), (), 1e-9)
    assert "No cell is so small" in strong.statement()
    assert gain_of_ledger(Ledger(())) is not None
