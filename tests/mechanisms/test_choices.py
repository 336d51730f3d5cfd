"""Choices by the exponential mechanism have exactly the stated probabilities (R10, R15)."""

from fractions import Fraction

import numpy as np
import pytest

from noise_laws import agrees, bounds, choices, exponential, follow, shares
from pegsynth.errors import ParameterError
from pegsynth.mechanisms import noise as noise_module
from pegsynth.mechanisms.noise import Levels, choose
from pegsynth.random import RandomStream
from significance import fits, outcomes_fit

CASES = {
    "a few": ([0, 3, -1], Fraction(1, 2)),
    "one level": ([5, 5, 4, 5], Fraction(1, 7)),
    "gaps between levels": ([0, 9, 2, 9], Fraction(3, 2)),
    "fractions": ([Fraction(1, 3), Fraction(5, 2), 2], Fraction(2)),
    "one candidate": ([-4], Fraction(1)),
    "hopeless ones": ([0, 10**6, 10**12, 10**12 - 1], Fraction(1)),
}


def exponents(scores, epsilon):
    return [epsilon * (max(scores) - score) / 2 for score in scores]


def proposal_law(scores, epsilon, monkeypatch, bits=4):
    """Exact law of the candidates that a round proposes; coins are checked by themselves."""

    def take_any(exponent, prefix, known, source, each):
        taken.append(exponent)
        return True

    taken = []
    monkeypatch.setattr(noise_module, "coin_exp", take_any)

    def draw(source):
        chosen = choose(scores, epsilon, source, bits=bits)
        whole = exponents(scores, epsilon)[chosen]
        assert taken.pop() == whole - whole.__floor__()
        return chosen

    return follow(draw, 1e-5)


def proposals(scores, epsilon):
    """What they should be: a candidate weighs exp(-level)."""
    levels = [Fraction(x.__floor__()) for x in map(Fraction, exponents(scores, epsilon))]
    return shares({j: exponential(level) for j, level in enumerate(levels)})


@pytest.mark.parametrize("name", CASES)
def test_every_path_gives_the_exact_law(name, monkeypatch):
    scores, epsilon = CASES[name]
    found, rest = proposal_law(scores, epsilon, monkeypatch)
    assert rest < 1e-3
    expected = proposals(scores, epsilon)
    assert agrees(found, rest, expected)
    # Kept with exp(level - x), proposals are choices.
    kept = {
        j: share * exponential(x - x.__floor__())
        for (j, share), x in zip(
            expected.items(), map(Fraction, exponents(scores, epsilon)), strict=True
        )
    }
    truth = choices(scores, epsilon)
    assert all(abs(share - truth[j]) < 1e-50 for j, share in shares(kept).items())


def test_levels_in_plain_proportion_are_caught(monkeypatch):
    """Sizes alone, the exponential forgotten; and an epsilon twice as large."""
    found, rest = proposal_law([0, 9, 2], Fraction(1), monkeypatch)
    assert not agrees(found, rest, shares({j: Fraction(1) for j in range(3)}))
    assert not agrees(found, rest, proposals([0, 9, 2], Fraction(2)))


def test_neighbours_are_told_apart_by_at_most_epsilon(monkeypatch):
    """Scores that differ by 1 in either direction (R10), bounds of a few bits included."""
    epsilon = Fraction(1, 2)
    laws = []
    for scores in ([0, 3, -1], [1, 2, -2], [0, 4, -1]):
        found, rest = proposal_law(scores, epsilon, monkeypatch, bits=6)
        whole = [Fraction(x) for x in exponents(scores, epsilon)]
        low, high = (
            [
                bounds(found, rest)[j][side] * exponential(x - x.__floor__())
                for j, x in enumerate(whole)
            ]
            for side in (0, 1)
        )
        laws.append([(a / sum(high), b / sum(low)) for a, b in zip(low, high, strict=True)])
    allowed = 1 / exponential(epsilon) * Fraction(102, 100)
    for other in laws[1:]:
        for (low, high), (other_low, other_high) in zip(laws[0], other, strict=True):
            assert max(high / other_low, other_high / low) <= allowed


# The same by sampling


def chosen(scores, epsilon, size, seed=8):
    words = RandomStream(seed).substream()
    return [choose(scores, epsilon, words) for _ in range(size)]


@pytest.mark.parametrize("name", sorted(set(CASES) - {"one candidate"}))
def test_choices_by_sampling(name):
    scores, epsilon = CASES[name]
    law = {j: float(p) for j, p in choices(scores, epsilon).items()}
    assert outcomes_fit(chosen(scores, epsilon, 2000), law)


def test_broken_twins_are_caught_by_sampling(monkeypatch):
    scores, epsilon = [0, 3, 1, 3, -2], Fraction(2, 3)
    law = {j: float(p) for j, p in choices(scores, epsilon).items()}
    assert outcomes_fit(chosen(scores, epsilon, 2000), law)
    assert not outcomes_fit(chosen(scores, 2 * epsilon, 2000), law)
    monkeypatch.setattr(noise_module, "coin_exp", lambda *arguments: True)
    assert not outcomes_fit(chosen(scores, epsilon, 2000), law)


def test_one_good_candidate_among_ten_thousand():
    """One at 0 and 9,999 that are 18 behind: exp(-9) each, together about as likely."""
    scores = np.full(10_000, -18, dtype=np.int64)
    scores[4321] = 0
    best = 1 / (1 + 9_999 * float(exponential(Fraction(9))))
    found = np.array(chosen(scores, Fraction(1), 200))
    hits = int(np.count_nonzero(found == 4321))
    assert fits([hits, 200 - hits], [best, 1 - best])
    others = found[found != 4321]
    assert len(set(others.tolist())) > 0.9 * len(others)


# Levels


def test_members_are_those_of_the_level():
    rate = Fraction(3, 7)
    gaps = np.arange(60, dtype=np.int64)
    levels = Levels(gaps, rate)
    for level in range(25):
        expected = [g for g in range(60) if (rate * g).__floor__() == level]
        assert levels.members(level).tolist() == expected


def test_words_between_levels_ask_for_more_bits():
    """The boundary of level 0 in 64, 128 and 192 bits decides, whatever came before."""
    scores, epsilon = [0, -2, -2, -4], Fraction(1)
    coarse, fine, finest = (Levels.of(scores, epsilon).cumulated(64 * n) for n in (1, 2, 3))
    assert fine[0] >> 64 == coarse[0]

    class Script:
        def __init__(self, integers):
            self._integers = list(integers)

        def below(self, bound):
            return self._integers.pop(0)

    low = 2**64 - 1
    for bits, expected in (
        ([fine[0] & low, (finest[0] & low) - 1], 0),
        ([fine[0] & low, (finest[0] & low) + 2], 1),
        ([(fine[0] & low) - 1], 0),
        ([(fine[0] & low) + 2], 1),
    ):
        # A boundary word, more bits, and the first of the level, which needs no coin.
        assert choose(scores, epsilon, Script([coarse[0], *bits, 0])) == expected


def test_scores_of_any_kind():
    words = RandomStream(2).substream()
    assert choose([10**40 - 10**12, 10**40, 10**40 - 10**9], Fraction(1), words) == 1
    assert choose(np.array([0, 4000], dtype=np.int32), Fraction(1), words) == 1
    assert choose([np.int64(0), np.int64(4000)], Fraction(1), words) == 1
    assert choose([-(2**62), 2**62 - 2], Fraction(1), words) == 1
    assert choose(np.array([0, 200, 100], dtype=np.uint8), Fraction(9), words) == 1
    tiny = Fraction(1, 2**80)
    assert choose([0, 5], tiny, words) in (0, 1)


def test_refusals():
    words = RandomStream(2).substream()
    with pytest.raises(ParameterError, match="above 0"):
        choose([1, 2], Fraction(0), words)
    with pytest.raises(ParameterError, match="64 bits"):
        choose([0, 2**64], Fraction(1), words)
    with pytest.raises(ParameterError, match="64 bits"):
        choose([-(2**62), 2**62], Fraction(1), words)
