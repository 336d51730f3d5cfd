"""Noise and choices have exactly the stated distributions (R10, R11, R15)."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from pegsynth.errors import ParameterError
from pegsynth.perturb import noise
from pegsynth.perturb.noise import (
    add_noise,
    bernoulli,
    bernoulli_exp,
    choose,
    discrete_gaussian,
    discrete_laplace,
)
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream
from significance import outcomes_fit

STREAMS = {"seeded": 5, "secure": None}


def laplace(scale, most=400):
    ratio = math.exp(-1 / scale)
    return {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-most, most + 1)}


def gaussian(sigma):
    weights = {k: math.exp(-k * k / (2 * sigma * sigma)) for k in range(-200, 201)}
    total = sum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def exponential(scores, epsilon):
    weights = [math.exp(epsilon * score / 2) for score in scores]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


# Every branch, with its exact probability


class MoreNeededError(Exception):
    def __init__(self, branches):
        self.branches = branches


class RejectedError(Exception):
    """A round came to nothing and the next one, which is like it, began."""


class Script:
    """A source that follows a list of answers and stops where the list ends.

    A rejection sampler asks for one integer at the start of every round. Rounds are
    independent, so what one round gives, divided by its chance to give anything, is the
    whole distribution.
    """

    def __init__(self, answers):
        self._answers = iter(answers)
        self._rounds = 0

    def start(self, branches):
        self._rounds += 1
        if self._rounds > 1:
            raise RejectedError
        return self.branch(branches)

    def branch(self, branches):
        answer = next(self._answers, None)
        if answer is None:
            raise MoreNeededError([(value, share) for value, share in branches if share])
        return answer

    def below(self, bound):
        return self.start([(value, Fraction(1, bound)) for value in range(bound)])


def coin(probability, source):
    """Stand in for `bernoulli`, which is checked by itself: two branches are enough."""
    return source.branch([(True, probability), (False, 1 - probability)])


def coin_exp(exponent, source):
    """Stand in for `bernoulli_exp`, once that is checked."""
    return coin(math.exp(-exponent), source)


def laplace_branches(scale, source):
    """Stand in for `discrete_laplace`, once that is checked."""
    return source.start(list(laplace(float(scale), 60).items()))


def enumerate_draw(draw, cutoff):
    """Return the mass of every outcome of one round, and the mass that was not followed."""
    found, rest = Counter(), 0
    paths = [((), 1)]
    while paths:
        answers, mass = paths.pop()
        try:
            found[draw(Script(answers))] += mass
        except RejectedError:
            continue
        except MoreNeededError as more:
            for value, share in more.branches:
                if mass * share < cutoff:
                    rest += mass * share
                else:
                    paths.append(((*answers, value), mass * share))
    return found, rest


def agrees(draw, expected):
    """Whether every outcome's probability lies within what enumeration leaves open."""
    found, rest = enumerate_draw(draw, 1e-10)
    assert rest < 1e-6
    accepted = sum(found.values())
    return all(
        found[k] / (accepted + rest) - 1e-9
        <= expected.get(k, 0)
        <= (found[k] + rest) / accepted + 1e-9
        for k in found.keys() | expected.keys()
    )


@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1), Fraction(2, 7), Fraction(1, 2)])
def test_bernoulli_is_exact(probability):
    found, rest = enumerate_draw(lambda source: bernoulli(probability, source), 0)
    assert rest == 0
    assert found[True] == probability


@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 4), Fraction(3)]
)
def test_bernoulli_exp_by_enumeration(exponent, monkeypatch):
    monkeypatch.setattr(noise, "bernoulli", coin)
    truth = math.exp(-exponent)

    def draw(source):
        return bernoulli_exp(exponent, source)

    assert agrees(draw, {True: truth, False: 1 - truth})
    off = truth * 0.999
    assert not agrees(draw, {True: off, False: 1 - off})


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3, 2), Fraction(1, 2), Fraction(5)])
def test_discrete_laplace_by_enumeration(scale, monkeypatch):
    monkeypatch.setattr(noise, "bernoulli", coin)
    monkeypatch.setattr(noise, "bernoulli_exp", coin_exp)

    def draw(source):
        return discrete_laplace(scale, source)

    assert agrees(draw, laplace(float(scale)))
    assert not agrees(draw, laplace(0.999 * float(scale)))


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(2), Fraction(9, 4)])
def test_discrete_gaussian_by_enumeration(variance, monkeypatch):
    monkeypatch.setattr(noise, "discrete_laplace", laplace_branches)
    monkeypatch.setattr(noise, "bernoulli_exp", coin_exp)

    def draw(source):
        return discrete_gaussian(variance, source)

    sigma = math.sqrt(variance)
    assert agrees(draw, gaussian(sigma))
    assert not agrees(draw, gaussian(0.999 * sigma))


def test_choices_by_enumeration(monkeypatch):
    monkeypatch.setattr(noise, "bernoulli_exp", coin_exp)
    scores, epsilon = [0, 3, -1], Fraction(1, 2)

    def draw(source):
        return choose(scores, epsilon, source)

    assert agrees(draw, exponential(scores, 0.5))
    assert not agrees(draw, exponential(scores, 0.499))


# The same by sampling, through the door that the marginals use


def one_sided(event, counts, stream):
    return np.abs(add_noise(counts, event, stream))


def without_zero_correction(event, counts, stream):
    """Algorithm 2 without its last line: minus zero counts as zero."""
    noisy = add_noise(counts, event, stream)
    again = add_noise(counts, event, stream)
    coins = np.arange(len(noisy)) % 2 == 0
    # Zeros would be twice as likely before normalising; mix some in.
    return np.where((noisy != 0) & coins & (again == 0), 0, noisy)


def shipped(event, counts, stream):
    return add_noise(counts, event, stream)


def noise_fits(mechanism, event, expected, seed, size=4000):
    drawn = mechanism(event, np.zeros(size, dtype=np.int64), RandomStream(seed))
    return outcomes_fit(drawn.tolist(), expected)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_on_counts_and_its_broken_twins(kind, stream):
    seed = STREAMS[stream]
    event = getattr(NoisyCounts, kind)(1.75, cells=3, purpose="marginals")
    too_small = getattr(NoisyCounts, kind)(1.75 * 0.7, cells=3, purpose="marginals")
    expected = {"laplace": laplace, "gaussian": gaussian}[kind](1.75)
    assert noise_fits(shipped, event, expected, seed)
    assert not noise_fits(shipped, too_small, expected, seed)
    assert not noise_fits(one_sided, event, expected, seed)
    assert not noise_fits(without_zero_correction, event, expected, seed)


def test_choices_by_sampling_and_a_forgotten_factor():
    scores, epsilon = [0, 3, 1, 3, -2], Fraction(2, 3)
    expected = exponential(scores, 2 / 3)

    def chosen(each):
        words = RandomStream(8).substream()
        return [choose(scores, each, words) for _ in range(8000)]

    assert outcomes_fit(chosen(epsilon), expected)
    assert not outcomes_fit(chosen(2 * epsilon), expected)


# What the noise is put on


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_every_cell_is_touched_zeros_included(kind, stream):
    event = getattr(NoisyCounts, kind)(1e5, cells=1, purpose="marginals")
    counts = np.zeros((5, 8), dtype=np.int64)
    counts[1] = 7
    random = RandomStream(STREAMS[stream])
    first, second = (add_noise(counts, event, random) for _ in range(2))
    assert first.shape == counts.shape
    assert first.dtype == np.int64
    # One cell alone keeps its count once in 10^5 times; twice over, once in 10^10.
    assert ((first != counts) | (second != counts)).all()
    assert np.count_nonzero(first == second) < 3


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_and_counts_beyond_32_bits(kind, stream):
    event = getattr(NoisyCounts, kind)(1e12, cells=1, purpose="marginals")
    counts = np.full(40, 1 << 40, dtype=np.int64)
    moved = np.abs(add_noise(counts, event, RandomStream(STREAMS[stream])) - counts)
    assert np.median(moved) > 1e11
    assert len(set(moved.tolist())) == 40


def test_the_vetted_samplers_get_exactly_the_recorded_scale():
    """A scale that is no double would have to be rounded, perhaps to less noise."""
    third = NoisyCounts.laplace(Fraction(1, 3), cells=1, purpose="marginals")
    with pytest.raises(ParameterError, match="double"):
        add_noise(np.zeros(2, dtype=np.int64), third, RandomStream())
    root = NoisyCounts(
        mechanism="discrete-gaussian",
        purpose="marginals",
        scale_numerator=2,
        scale_denominator=1,
        cells=1,
    )
    with pytest.raises(ParameterError, match="square of a double"):
        add_noise(np.zeros(2, dtype=np.int64), root, RandomStream())
