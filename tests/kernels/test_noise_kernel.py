"""The noise kernel: every word of a few bits, and 64 bits against whole numbers (R11, R15)."""

from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from noise_laws import (
    REJECTED,
    Answers,
    agrees,
    bounds,
    exponential,
    follow,
    gaussian,
    laplace,
    shares,
)
from pegsynth.errors import ParameterError
from pegsynth.kernels.compiled import as_kernel
from pegsynth.kernels.noise_draws import (
    CELL,
    DONE,
    MORE_WORDS,
    UNDECIDED,
    WORD,
    draw_noise,
    exp_fixed,
)
from pegsynth.mechanisms.bins import MOST_BINS, Noise
from pegsynth.mechanisms.exact import certain
from pegsynth.random import RandomStream

ZERO = Fraction(0)
NARROW = {
    "gaussian 0.3": (Noise.gaussian(Fraction(9, 100)), gaussian(0.3)),
    "gaussian 1": (Noise.gaussian(Fraction(1)), gaussian(1)),
    "gaussian 2.5": (Noise.gaussian(Fraction(25, 4)), gaussian(2.5)),
    "laplace 1/2": (Noise.laplace(Fraction(1, 2)), laplace(0.5)),
    "laplace 3": (Noise.laplace(Fraction(3)), laplace(3)),
}
# Bins of 2 sizes: what large scales have, at a scale that can be enumerated.
WIDE = {
    "gaussian 12": (Noise(Fraction(1, 288), ZERO, 1), gaussian(12)),
    "laplace 5": (Noise(ZERO, Fraction(1, 5), 1), laplace(5)),
}


def one_draw(noise, attempt, bits, tables=None):
    """What the kernel makes of the words of one draw: its answer, and the value if any."""
    out, state = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    words = np.array(attempt, dtype=np.uint64)
    answer = draw_noise(out, state, tables or noise.tables(bits), words, np.uint64(bits))
    if answer == MORE_WORDS:
        assert state.tolist() == [0, len(attempt)]
        return answer, REJECTED
    assert state[CELL] == (answer == DONE)
    assert state[WORD] == (len(attempt) if answer == DONE else 0)
    return answer, int(out[0])


def finished(noise, attempt, source, bits, tables=None):
    """One round: the kernel, and `finish` where it stops."""
    answer, value = one_draw(noise, attempt, bits, tables)
    if answer == UNDECIDED:
        value = noise.finish(attempt, source, bits)
    return REJECTED if value is None else value


def kernel_law(noise, bits, cutoff, tables=None):
    """Exact law of one draw with bins of one size."""

    def draw(source):
        return finished(noise, [source.below(1 << bits)], source, bits, tables)

    return follow(draw, cutoff)


def bin_law(noise, bits, cutoff):
    """Exact law of the bin that a first word gives: the second one is sure to be accepted.

    Also words that lead to each bin, one that the kernel decides wherever there is one.
    """

    def draw(source):
        return finished(noise, [source.below(1 << bits), 0], source, bits)

    ways = {}
    found, rest = follow(draw, cutoff, ways)
    for word in range(1 << bits):
        answer, value = one_draw(noise, [word, 0], bits)
        if answer == DONE:
            ways[value] = (word,)
    return found, rest, ways


def acceptance_law(noise, way, bits, cutoff, tables=None):
    """Exact law of the size that a second word gives, after words that lead to some bin."""
    word, *more = way

    def draw(source):
        attempt = [word, source.below(1 << bits)]
        return finished(noise, attempt, Answers(more, source), bits, tables)

    return follow(draw, cutoff)


@pytest.mark.parametrize("bits", [5, 8])
@pytest.mark.parametrize("name", NARROW)
def test_every_word_and_every_refinement_gives_the_exact_law(name, bits):
    noise, expected = NARROW[name]
    assert noise.width_bits == 0
    found, rest = kernel_law(noise, bits, 1e-7)
    assert rest < 2e-5
    assert found[REJECTED] == 0
    assert agrees(found, rest, expected)


@pytest.mark.parametrize("name", WIDE)
def test_bins_of_several_sizes_by_enumeration(name):
    """Bins in proportion to their largest weight, sizes in them to exp(-x)."""
    noise, expected = WIDE[name]
    starts, rest, ways = bin_law(noise, 8, 1e-5)
    assert rest < 5e-4
    weights = {k: 2 * p for k, p in expected.items() if k % 2}
    weights[0] = expected[0]
    assert agrees(starts, rest, shares(weights))
    for start in [k for k, mass in starts.items() if k > 0 and mass > 0.02]:
        found, left = acceptance_law(noise, ways[start], 8, 1e-5)
        ratio = expected[start + 1] / expected[start]
        assert left < 1e-4
        assert abs(found[start] - Fraction(1, 2)) <= left
        assert found[start + 1] <= ratio / 2 <= found[start + 1] + left
        assert found[REJECTED] <= (1 - ratio) / 2 <= found[REJECTED] + left


@pytest.mark.parametrize("name", WIDE)
def test_a_proposal_that_is_always_accepted_is_caught(name):
    noise, expected = WIDE[name]
    tables = noise.tables(8)
    flat = tables._replace(slope=np.zeros_like(tables.slope), bend=np.uint64(0))
    *_, ways = bin_law(noise, 8, 1e-3)
    found, left = acceptance_law(noise, ways[5], 8, 1e-5, flat)
    assert found[6] > expected[6] / expected[5] / 2 + left


def test_a_table_off_by_one_is_caught():
    """One too many, or one too few for the margin of 2."""
    noise, expected = NARROW["gaussian 2.5"]
    tables = noise.tables(8)
    for moved in (1, -2):
        off = (tables.cumulated.astype(np.int64) + moved).astype(np.uint64)
        off[-1] = tables.cumulated[-1]
        found, rest = kernel_law(noise, 8, 1e-7, tables._replace(cumulated=off))
        assert not agrees(found, rest, expected)


def test_boundary_words_that_are_not_refined_are_caught():
    """Words alone: what lies on a boundary goes to the bin above it."""
    noise, expected = NARROW["gaussian 2.5"]
    table = noise.cumulated(7)
    found = Counter()
    for word in range(256):
        size = int(np.searchsorted(table, word >> 1, side="right"))
        found[-size if word & 1 else size] += Fraction(1, 256)
    assert not agrees(found, Fraction(0), expected)


def test_neighbouring_counts_are_told_apart_by_exactly_1_over_scale():
    """P(k)/P(k + 1) is exp(1/b) or its inverse, within what a few bits leave open (R11)."""
    noise, _ = NARROW["laplace 3"]
    found, rest = kernel_law(noise, 8, 1e-7)
    allowed = bounds(found, rest)
    ratio = 1 / exponential(Fraction(1, 3))
    for k in range(-12, 12):
        (low, high), (other_low, other_high) = allowed[k], allowed[k + 1]
        truth = ratio if k >= 0 else 1 / ratio
        assert low / other_high <= truth <= high / other_low
        assert high / other_low < truth * Fraction(102, 100)


# 64 bits

SCALES = [Fraction(1, 100), Fraction(3, 10), Fraction(75, 2), Fraction(1000), Fraction(10) ** 12]
BOTH = [Noise.gaussian(scale**2) for scale in SCALES] + [Noise.laplace(scale) for scale in SCALES]


def certified(noise):
    """The bins' shares by a plain sum, to 60 digits."""
    weights = [
        count * exponential(noise.exponent(noise.start(index)))
        for index, count in enumerate([1] + [2 << noise.width_bits] * (MOST_BINS + MOST_BINS // 4))
        if noise.exponent(noise.start(index)) < 140
    ]
    sums = list(accumulate(weights))
    return [total / sums[-1] for total in sums]


@pytest.mark.parametrize("noise", [BOTH[1], BOTH[2], BOTH[8]])
def test_tables_hold_the_shares_of_the_bins(noise):
    table = noise.cumulated(63)
    for integer, share in zip(table, certified(noise), strict=False):
        assert integer <= share * 2**63 < integer + 2
    assert table[-1] >= 2**63 - 2
    assert len(table) <= MOST_BINS


@pytest.mark.parametrize("noise", BOTH)
def test_the_kernel_follows_the_table_at_every_boundary(noise):
    table = noise.cumulated(63)
    for index in {0, 1, len(table) // 2, len(table) - 2, len(table) - 1} & set(range(len(table))):
        for step in (-2, -1, 0, 1, 2, 3):
            place = table[index] + step
            if not 0 <= place < 2**63:
                continue
            attempt = [place << 1 | 1, 0][: 2 if noise.width_bits else 1]
            answer, value = one_draw(noise, attempt, 64)
            expected = certain(table, place)
            assert (answer == UNDECIDED) == (expected is None)
            if expected is not None:
                assert value == -noise.start(expected)


class Constant:
    """A source whose bits are all 0 or all 1."""

    def __init__(self, ones):
        self._ones = ones

    def below(self, bound):
        return bound - 1 if self._ones else 0


@pytest.mark.parametrize("noise", BOTH)
def test_what_the_kernel_decides_no_further_bits_can_change(noise):
    each = 2 if noise.width_bits else 1
    words = RandomStream(3).substream().take(400 * each).reshape(-1, each)
    # Proposals at the far end of their bins, just above and below acceptance.
    close = words.copy()
    if each == 2:
        shift = np.uint64(64 - noise.width_bits)
        close[:, 1] |= ((np.uint64(1) << np.uint64(noise.width_bits)) - np.uint64(1)) << shift
    decided = 0
    for attempt in [*words.tolist(), *close.tolist()]:
        answer, value = one_draw(noise, attempt, 64)
        if answer == UNDECIDED:
            continue
        decided += 1
        for ones in (False, True):
            slow = noise.finish(attempt, Constant(ones))
            assert value == (REJECTED if slow is None else slow)
    assert decided > 790


def test_exp_in_fixed_point_is_within_2():
    compiled = as_kernel(exp_fixed)
    for step in range(0, 2**62 + 1, 2**62 // 400):
        found = int(compiled(np.uint64(step)))
        assert abs(found - exponential(Fraction(step, 2**63)) * 2**63) <= 2


@pytest.mark.parametrize("noise", [BOTH[3], BOTH[8]])
def test_acceptance_is_decided_right_next_to_the_exponential(noise):
    """A coin some units below exp(-x) is accepted, some units above rejected."""
    table = noise.cumulated(63)
    coin_bits = 64 - noise.width_bits
    for index in range(1, len(table) - 1, 97):
        place = (table[index - 1] + table[index]) // 2
        if certain(table, place) != index:
            continue
        for offset in (1, (1 << noise.width_bits) - 1):
            start = noise.start(index)
            exponent = noise.exponent(start + offset) - noise.exponent(start)
            edge = int(exponential(exponent) * 2**coin_bits)
            for coin, expected in ((edge - 4, start + offset), (edge + 4, REJECTED)):
                attempt = [place << 1, offset << coin_bits | coin]
                answer, value = one_draw(noise, attempt, 64)
                assert answer != UNDECIDED
                assert value == expected
            answer, _ = one_draw(noise, [place << 1, offset << coin_bits | edge], 64)
            assert answer == UNDECIDED


def test_a_kernel_goes_on_where_it_stopped():
    noise = Noise.gaussian(Fraction(10**6))
    words = RandomStream(4).substream().take(400)
    whole, state = np.zeros(150, dtype=np.int64), np.zeros(2, dtype=np.int64)
    assert draw_noise(whole, state, noise.tables(), words, np.uint64(64)) == DONE
    pieces, state = np.zeros(150, dtype=np.int64), np.zeros(2, dtype=np.int64)
    position = 0
    while draw_noise(pieces, state, noise.tables(), words[position : position + 7], np.uint64(64)):
        position += int(state[WORD])
        state[WORD] = 0
    assert np.array_equal(whole, pieces)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_tables_stay_small_and_noise_beyond_64_bits_is_refused(kind):
    for power in range(-3, 17):
        scale = Fraction(10) ** power
        noise = getattr(Noise, kind)(scale**2 if kind == "gaussian" else scale)
        assert len(noise.cumulated(63)) <= MOST_BINS
    with pytest.raises(ParameterError, match="64 bits"):
        getattr(Noise, kind)(Fraction(10) ** 40)
    with pytest.raises(ParameterError, match="too wide"):
        Noise(ZERO, Fraction(1), 3).tables()
