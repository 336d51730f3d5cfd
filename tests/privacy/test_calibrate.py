"""The smallest exact alpha: hand-worked numbers, minimality, and no overspending."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.privacy import (
    DEFAULT_SCALE,
    BlockDraws,
    Budget,
    CappedDraws,
    ContingencyDraws,
    ImputationDraws,
    Ledger,
    PegsDraws,
    Selection,
    UnitBound,
    UrnDraws,
    alpha_per_row,
    calibrate,
    stated_alpha,
)
from pegsynth.privacy.draw_events import draw_price

PAPER_GRID = (0.1, 0.5, 1, 5, 10, 50, 100)
REFERENCE = Context(prec=80)


def formula(exponent: Fraction, scale: int) -> int:
    """1/(exp(exponent) - 1) rounded up to a multiple of 1/scale, in high precision."""
    power = REFERENCE.exp(
        REFERENCE.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    )
    return max(1, math.ceil(REFERENCE.divide(Decimal(scale), power - 1)))


@pytest.mark.parametrize("scale", [1, 1000, DEFAULT_SCALE, 2**32])
@pytest.mark.parametrize("epsilon", PAPER_GRID)
def test_the_papers_grid(epsilon: float, scale: int) -> None:
    # R2 for rows, R4 for blocks.
    exact = Fraction(epsilon)
    assert alpha_per_row(epsilon, features=13, scale=scale) == formula(exact / 13, scale)
    assert alpha_per_row(epsilon, features=13, block_size=10, scale=scale) == formula(
        exact * 10 / 13, scale
    )
    assert alpha_per_row(epsilon, features=13, sweeps=4, scale=scale) == formula(exact / 52, scale)


def calibrate_draws(shape, budget, *, parts=(), routes=None, rows_per_unit=1):
    """Return the draws at the smallest alpha that their share of a total allows, and the route."""
    return min(
        (
            (
                calibrate(
                    shape, budget.parts(parts, route=route)["draws"], rows_per_unit=rows_per_unit
                ),
                route,
            )
            for route in routes or budget.routes
        ),
        key=lambda found: found[0].alpha_numerator,
    )


def test_by_hand() -> None:
    # 1/(exp(1/13) - 1) = 12.5064...; 1/(exp(10/13) - 1) = 0.86395...
    assert alpha_per_row(1, features=13) / DEFAULT_SCALE == pytest.approx(12.506409, abs=1e-6)
    assert alpha_per_row(1, features=13, block_size=10) / DEFAULT_SCALE == pytest.approx(
        1 / math.expm1(10 / 13), abs=1e-6
    )
    # The paper asks for 4e-34 here; the smallest step answers.
    assert alpha_per_row(100, features=13, block_size=10) == 1
    assert alpha_per_row(math.log(2), features=1, scale=1) == 2  # the double is below log 2
    assert alpha_per_row(0.7, features=1, scale=1) == 1


@given(st.floats(1e-6, 1e4), st.integers(1, 10**5), st.sampled_from((1, 1000, DEFAULT_SCALE)))
def test_smallest_and_never_over(epsilon: float, count: int, scale: int) -> None:
    numerator = alpha_per_row(epsilon, features=count, scale=scale)
    allowed = Fraction(epsilon) / count
    assert Fraction(draw_price(numerator, scale)) <= allowed
    if numerator > 1:
        assert Fraction(draw_price(numerator - 1, scale)) > allowed


SHAPES = [
    PegsDraws.shape(features=13, rows=100, sweeps=2, datasets=2),
    BlockDraws.shape(features=13, rows=105, block_size=10, datasets=2),
    CappedDraws.shape(features=13, rows=10**6, visits=5, hashings=2),
    UrnDraws.shape(features=13, rows=10**6, visits=50, urns=2, restricted=3),
    ImputationDraws.shape(features=13, rows=100),
    ContingencyDraws.shape(features=13, rows=100),
]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(SHAPES),
    st.floats(1e-3, 1e3),
    st.sampled_from((None, 1e-6, 1e-9)),
    st.integers(1, 4),
)
def test_the_ledger_never_exceeds_what_was_asked(shape, epsilon, delta, k) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    found, _ = calibrate_draws(shape, budget, rows_per_unit=k)
    ledger = Ledger(delta=delta).add(UnitBound(rows_per_unit=k), found)
    assert ledger.epsilon <= epsilon
    if found.alpha_numerator > 1:
        smaller = shape.at(found.alpha_numerator - 1, found.alpha_denominator)
        assert Ledger(delta=delta).add(UnitBound(rows_per_unit=k), smaller).epsilon > epsilon * (
            1 - 1e-9
        )


def test_the_better_accountant_is_taken() -> None:
    many = PegsDraws.shape(features=13, rows=1000)
    few = PegsDraws.shape(features=1, rows=1)
    budget = Budget(epsilon=1, delta=1e-9)
    best, route = calibrate_draws(many, budget)
    assert route == "zcdp"
    assert calibrate_draws(few, budget)[1] == "pure"
    assert calibrate_draws(few, budget, routes=("zcdp",))[1] == "zcdp"
    pure, route = calibrate_draws(many, Budget(epsilon=1))
    assert route == "pure"
    assert pure.alpha_numerator / best.alpha_numerator == pytest.approx(39, rel=0.05)  # R6


def test_parts_leave_less_for_the_draws() -> None:
    shape = SHAPES[0]
    for delta in (None, 1e-9):
        budget = Budget(epsilon=1, delta=delta)
        whole, route = calibrate_draws(shape, budget)
        part, same = calibrate_draws(shape, budget, parts=("order", "marginals"))
        assert part.alpha_numerator > whole.alpha_numerator
        assert same == route


def test_parts_together_stay_within_the_total() -> None:
    budget = Budget(epsilon=0.7)
    allowances = budget.parts(("order",), route="pure")
    choice = Selection.of(allowances["order"].amount / 12, count=12, purpose="order")
    draws = calibrate(SHAPES[0], allowances["draws"])
    assert Ledger().add(choice, draws).epsilon <= 0.7


def test_overflow_says_what_would_help() -> None:
    with pytest.raises(BudgetError, match=r"virtual rows.*25 categories.*larger epsilon"):
        alpha_per_row(1e-6, features=10**9, categories=25)
    with pytest.raises(BudgetError, match="64 bits"):
        stated_alpha(1e30)
    largest = alpha_per_row(1e-6, features=10**5, categories=25)
    assert largest * 25 < 2**62


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 700.0, 1e4])
def test_no_overflow_of_floats(epsilon: float) -> None:
    assert alpha_per_row(epsilon, features=1) >= 1
    assert alpha_per_row(epsilon, features=3, block_size=1000) >= 1


def test_stated_alpha_is_rounded_up() -> None:
    assert stated_alpha(0.5, scale=10) == 5
    assert stated_alpha(0.51, scale=10) == 6
    assert stated_alpha(1e-30, scale=10) == 1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(BudgetError):
        alpha_per_row(epsilon, features=1)
    with pytest.raises(BudgetError, match="per row"):
        alpha_per_row(epsilon, features=2)
    with pytest.raises(BudgetError):
        stated_alpha(epsilon)


def test_bad_shapes() -> None:
    with pytest.raises(ParameterError, match="whole number"):
        alpha_per_row(1.0, features=0)
    with pytest.raises(TypeError, match="block_size"):
        BlockDraws.shape(features=3, rows=10)
    with pytest.raises(ParameterError, match="visits"):
        CappedDraws.shape(features=3, rows=10, visits=0)
    with pytest.raises(ParameterError, match="rows"):
        PegsDraws.shape(features=3, rows=0)
