"""From rho to epsilon and delta: never below the truth, and not far above it (R6)."""

import math
from decimal import Decimal, localcontext

import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from pegsynth.errors import BudgetError
from pegsynth.privacy.conversion import check_delta, check_epsilon, epsilon_at, rho_at

DELTAS = (1e-6, 1e-9, 1e-12)


def gaussian_delta(epsilon: float, rho: float) -> float:
    """Exact delta of the Gaussian mechanism with rho = 1/(2 sigma^2)."""
    mu = math.sqrt(2 * rho)
    far = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    return float(norm.cdf(mu / 2 - epsilon / mu)) - far


def gaussian_rho(epsilon: float, delta: float) -> float:
    """Rho at which the Gaussian mechanism has exactly this epsilon and delta."""
    return float(brentq(lambda rho: gaussian_delta(epsilon, rho) - delta, 1e-12, 1e3, xtol=1e-18))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100])
def test_within_15_percent_of_the_exact_gaussian_and_never_below(epsilon, delta) -> None:
    ours = epsilon_at(gaussian_rho(epsilon, delta), delta=delta)
    assert epsilon <= ours <= 1.15 * epsilon


@pytest.mark.parametrize(
    ("sigma", "interval"), [(400.0, 1e-4), (30.0, 1e-4), (3.0, 1e-3), (1.0, 1e-3), (0.12, 1e-2)]
)
def test_against_an_independent_loss_distribution(sigma: float, interval: float) -> None:
    reference = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, value_discretization_interval=interval, use_connect_dots=True
    )
    for delta in DELTAS[:2]:
        theirs = reference.get_epsilon_for_delta(delta)
        ours = epsilon_at(1 / (2 * sigma**2), delta=delta)
        assert ours >= theirs * (1 - 1e-3)
        assert ours <= 1.15 * theirs


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 5.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_against_an_independent_renyi_conversion(rho: float, delta: float) -> None:
    orders = [1 + math.exp(u / 20) for u in range(-100, 240)]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, [rho * o for o in orders], delta)
    assert epsilon_at(rho, delta=delta) == pytest.approx(theirs, rel=2e-3)
    assert epsilon_at(rho, delta=delta) <= theirs * (1 + 1e-12)


@given(st.floats(1e-6, 1e4), st.sampled_from((1e-3, *DELTAS, 1e-30)))
def test_the_largest_rho_stays_within_epsilon(epsilon: float, delta: float) -> None:
    rho = rho_at(epsilon, delta=delta)
    assert rho > 0
    assert epsilon_at(rho, delta=delta) <= epsilon
    assert epsilon_at(rho / 3, delta=delta) <= epsilon
    assert epsilon_at(rho * (1 + 1e-9), delta=delta) > epsilon * (1 - 1e-9)


@given(st.floats(1e-8, 1e3), st.floats(1e-3, 1e3))
def test_rounded_up_against_the_formula_in_high_precision(rho: float, t: float) -> None:
    # Any lambda is valid, so the optimum is at most the value at an arbitrary one.
    lam, r, d = 1 + Decimal(t), Decimal(rho), Decimal("1e-9")
    bound = lam * r + ((1 / d).ln() + lam * (1 - 1 / lam).ln() - (lam - 1).ln()) / (lam - 1)
    assert epsilon_at(rho, delta=1e-9) <= max(0.0, float(bound)) * (1 + 1e-12)


def test_extremes_are_finite() -> None:
    assert epsilon_at(0, delta=1e-9) == 0
    assert epsilon_at(1e-40, delta=1e-9) == 0
    assert epsilon_at(1e200, delta=1e-9) == pytest.approx(1e200)


def test_twelve_times_less_noise_for_1300_draws() -> None:
    # R6: at eps = 1, delta = 1e-9.
    per_draw = math.sqrt(8 * rho_at(1, delta=1e-9) / 1300)
    assert math.expm1(per_draw) / math.expm1(1 / 1300) == pytest.approx(12, rel=0.1)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon(value: float) -> None:
    with pytest.raises(BudgetError, match="finite number above 0"):
        check_epsilon(value)
    with pytest.raises(BudgetError):
        rho_at(value, delta=1e-9)


@pytest.mark.parametrize("value", [0.0, -1e-9, 1.0, 2.0, math.nan, math.inf])
def test_bad_delta(value: float) -> None:
    with pytest.raises(BudgetError, match="strictly between 0 and 1"):
        check_delta(value)
    with pytest.raises(BudgetError):
        epsilon_at(1.0, delta=value)


def test_no_sign_or_sum_is_rounded_to_the_digits_of_the_thread() -> None:
    # The result before it becomes a float, with one digit of context and with a hundred.
    found = []
    for digits in (2, 100):
        with localcontext() as context:
            context.prec = digits
            found.append((epsilon_at(Decimal("0.0123"), delta=1e-9), rho_at(0.7, delta=1e-9)))
    assert found[0] == found[1]
