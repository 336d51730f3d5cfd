"""Rounding goes up, by very little, and leaves exact values alone (R15)."""

import random
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.privacy.draw_events import draw_price
from pegsynth.privacy.rounding import display_up, float_down, float_up, log_one_plus_up, product_up

REFERENCE = Context(prec=300)


def exact_eta(numerator: int, denominator: int) -> Decimal:
    ratio = REFERENCE.divide(Decimal(numerator + denominator), Decimal(numerator))
    return REFERENCE.ln(ratio)


def test_eta_is_never_below_and_within_1e_12_for_thousands_of_alphas() -> None:
    generator = random.Random(7)
    plain_below = 0
    for _ in range(3000):
        numerator = int(2 ** generator.uniform(0, 62))
        denominator = int(2 ** generator.uniform(0, 32))
        exact = exact_eta(numerator, denominator)
        rounded = float_up(draw_price(numerator, denominator))
        assert Decimal(rounded) >= exact
        assert Decimal(rounded) <= exact * (1 + Decimal("1e-12"))
        plain_below += Decimal(float(exact)) < exact
    # The test has power: rounding to nearest would have failed it about every other time.
    assert plain_below > 1000


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(1, 2**20), (2**62, 1), (2**250, 1), (1, 1)]
)
def test_eta_at_the_extremes(numerator: int, denominator: int) -> None:
    price = draw_price(numerator, denominator)
    assert price > 0
    assert exact_eta(numerator, denominator) <= price
    assert price <= REFERENCE.multiply(
        exact_eta(numerator, denominator), REFERENCE.add(1, Decimal("1e-45"))
    )


@given(st.integers(1, 2**62), st.integers(1, 2**62), st.integers(1, 2**62))
def test_eta_falls_as_alpha_grows(numerator: int, more: int, denominator: int) -> None:
    assert draw_price(numerator + more, denominator) <= draw_price(numerator, denominator)


@given(st.floats(1e-30, 1e30))
def test_doubles_pass_through_unchanged(value: float) -> None:
    assert float_up(product_up(Decimal(value), 1)) == value
    assert float_down(Decimal(value)) == value


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_floats_bracket_a_decimal(value: Fraction) -> None:
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    assert Decimal(float_down(decimal)) <= decimal <= Decimal(float_up(decimal))


def test_known_logarithm() -> None:
    assert str(log_one_plus_up(1, 1)).startswith(
        "0.69314718055994530941723212145817656807550013436"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.0, "1"), (0.1, "0.1"), (0.99999999999, "1"), (2.0000000001, "2.00001"),
     (1e-9, "1e-9"), (123456789.0, "123457000"), (1.5e12, "1.5e12")],
)  # fmt: skip
def test_display_rounds_up(value: float, text: str) -> None:
    assert display_up(value) == text
