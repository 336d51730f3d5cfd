"""Certified numbers hold what they stand for, and decisions have exact probabilities (R15)."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noise_laws import agrees, exponential, follow
from pegsynth.mechanisms.exact import certain, coin_exp, cumulative, exp_bounds, invert

EXPONENTS = st.one_of(
    st.fractions(0, 1),
    st.fractions(0, 200),
    st.sampled_from([Fraction(0), Fraction(1, 10**30), Fraction(10**30), Fraction(63)]),
)


@given(exponent=EXPONENTS, bits=st.integers(0, 150))
def test_the_exponential_lies_between_its_bounds(exponent, bits):
    low, high = exp_bounds(exponent, bits)
    assert 0 <= low <= high <= min(low + 2, 1 << bits)
    if exponent < 1000:
        truth = exponential(exponent) * 2**bits
        slack = truth / 10**58
        assert low <= truth + slack
        assert truth - slack <= high


def test_only_the_exponent_0_is_certain_to_be_accepted():
    assert exp_bounds(Fraction(0), 7) == (128, 128)
    assert exp_bounds(Fraction(1, 10**40), 7)[0] < 128


WEIGHTS = st.lists(st.fractions(Fraction(1, 10**6), 100), min_size=1, max_size=6)


def family(weights):
    """The weights in fixed point, from below and from above."""

    def bounded(bits, scale):
        low = [int(weight * (1 << scale)) for weight in weights]
        return low, [each + 1 for each in low], 0

    return bounded


@given(weights=WEIGHTS, bits=st.integers(1, 70))
def test_cumulated_integers_are_below_their_shares_by_less_than_2(weights, bits):
    found = cumulative(family(weights), bits)
    total = Fraction(0)
    for integer, weight in zip(found, weights, strict=False):
        total += weight / sum(weights)
        assert integer <= total * 2**bits < integer + 2
    assert found[-1] >= 2**bits - 2
    assert found == sorted(found)


def test_bounds_that_are_too_wide_are_asked_for_again():
    scales = []

    def bounded(bits, scale):
        scales.append(scale)
        return [1 << scale] * 3, [(1 << scale) + (1 << 90)] * 3, 0

    assert cumulative(bounded, 30) == [(1 << 30) // 3, (2 << 30) // 3, (1 << 30) - 1]
    assert scales == [94, 158]


def test_which_words_are_certain():
    table = [10, 10, 13, 30]
    found = [certain(table, word) for word in range(32)]
    # 10 and 11 are open between 0, 1 and 2; 13 and 14 between 2 and 3; 30 and 31 are not known.
    assert found == [0] * 10 + [None] * 2 + [2] + [None] * 2 + [3] * 15 + [None] * 2


THIRDS = [Fraction(1), Fraction(2), Fraction(0), Fraction(4)]


def inverted(table_at):
    def draw(source):
        return invert(table_at, source.below(8), 3, source, 3)

    return follow(draw, 1e-6)


def test_inversion_by_enumeration():
    def table_at(bits):
        return cumulative(family(THIRDS), bits)

    expected = {0: Fraction(1, 7), 1: Fraction(2, 7), 3: Fraction(4, 7)}
    found, rest = inverted(table_at)
    assert rest < 1e-5
    assert agrees(found, rest, expected)
    assert not agrees(
        found, rest, {0: Fraction(15, 100), 1: Fraction(28, 100), 3: Fraction(57, 100)}
    )


@pytest.mark.parametrize("moved", [-1, 1])
def test_a_table_that_is_off_is_caught(moved):
    """All but the last share end 1/512 too soon or too late."""

    def table_at(bits):
        *most, last = cumulative(family(THIRDS), bits)
        return [*(each + (moved << bits) // 512 for each in most), last]

    found, rest = inverted(table_at)
    assert rest < 1e-5
    assert not agrees(found, rest, {0: Fraction(1, 7), 1: Fraction(2, 7), 3: Fraction(4, 7)})


@pytest.mark.parametrize("exponent", ["0", "1/3", "1", "5/4", "3", "1/1000"])
@pytest.mark.parametrize("known", [0, 2])
def test_coins_by_enumeration(exponent, known):
    truth = exponential(Fraction(exponent))

    def draw(source):
        return coin_exp(Fraction(exponent), source.below(1 << known), known, source, 4)

    found, rest = follow(draw, 1e-7)
    assert rest < 1e-5
    assert agrees(found, rest, {True: truth, False: 1 - truth} if truth < 1 else {True: truth})
    off = truth * Fraction(999, 1000)
    assert not agrees(found, rest, {True: off, False: 1 - off})
