"""Noise on counts has exactly the stated distribution, as OpenDP's has (R11, R15)."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from noise_laws import gaussian, laplace
from pegsynth.errors import ParameterError
from pegsynth.mechanisms import noise as noise_module
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.noise import add_noise, fill, noise_of
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream
from significance import ALPHA, fits, outcomes_fit

STREAMS = {"seeded": 5, "secure": None}
KINDS = ["laplace", "gaussian"]
SCALES = [0.3, 1.0, 37.5, 1000.0]
LAWS = {"laplace": laplace, "gaussian": gaussian}


def event_of(kind, scale):
    return getattr(NoisyCounts, kind)(scale, cells=3, purpose="marginals")


def drawn(event, size, seed):
    return add_noise(np.zeros(size, dtype=np.int64), event, RandomStream(seed))


# Against the probability function


def binned(kind, scale):
    """Probabilities of runs of values, and the runs' first values."""
    reach = int((60 if kind == "laplace" else 11) * scale) + 2
    values = np.arange(-reach, reach + 1)
    ratios = np.abs(values) / scale
    weights = np.exp(-ratios if kind == "laplace" else -ratios * ratios / 2)
    starts = np.arange(0, len(values), max(1, int(scale / 20)))
    return values[starts], np.add.reduceat(weights / weights.sum(), starts)


def counted(values, starts):
    return np.bincount(
        np.searchsorted(starts, values, side="right") - 1, minlength=len(starts)
    ).tolist()


def follows(values, kind, scale):
    starts, shares = binned(kind, scale)
    return fits(counted(values, starts), shares)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_follows_its_probability_function(kind, scale, stream):
    assert follows(drawn(event_of(kind, scale), 200_000, STREAMS[stream]), kind, scale)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_of_another_scale_is_caught(kind, scale):
    values = drawn(event_of(kind, scale * 0.97), 200_000, 5)
    assert not follows(values, kind, scale)


def rounded_gaussian(scale, size):
    return np.rint(np.random.default_rng(1).normal(0, scale, size)).astype(np.int64)


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_a_rounded_gaussian_is_caught(scale):
    assert not follows(rounded_gaussian(scale, 200_000), "gaussian", scale)


def one_sided(values):
    return np.abs(values)


def zeros_twice_as_likely(values):
    """What counting both 0 and -0 would give."""
    moved = np.flatnonzero(values)[: np.count_nonzero(values == 0) // 2]
    return np.where(np.isin(np.arange(len(values)), moved), 0, values)


def low_bit_lost(values):
    """Sizes within a bin that are not uniform."""
    return values & ~1


@pytest.mark.parametrize("broken", [one_sided, zeros_twice_as_likely, low_bit_lost])
@pytest.mark.parametrize("kind", KINDS)
def test_broken_twins_are_caught(kind, broken):
    values = drawn(event_of(kind, 1.75), 20_000, 5)
    law = {k: float(p) for k, p in LAWS[kind](1.75).items()}
    assert outcomes_fit(values.tolist(), law)
    assert not outcomes_fit(broken(values).tolist(), law)


def test_low_bits_of_large_noise_are_uniform():
    """Sizes inside a bin: at this scale neighbours are equally likely to 1 in 10^9."""
    values = np.abs(drawn(event_of("gaussian", 1e12), 64_000, 5))
    assert fits(np.bincount(values % 64, minlength=64), np.full(64, 1 / 64))


# Against OpenDP


def opendp(event, size):
    """The same noise by OpenDP's vetted samplers, which cannot be seeded."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    scale = Fraction(event.scale_numerator, event.scale_denominator)
    if event.mechanism == "discrete-gaussian":
        mechanism = make_gaussian(domain, l2_distance(T=float), scale=float(scale) ** 0.5)
    else:
        mechanism = make_laplace(domain, l1_distance(T="i64"), scale=float(scale))
    return np.array(mechanism([0] * size), dtype=np.int64)


def same_law(values, others, kind, scale):
    """Two samples of one law: chi-square of homogeneity at false-alarm rate ALPHA."""
    starts, shares = binned(kind, scale)
    least = 10 / min(len(values), len(others))
    cuts = starts[np.flatnonzero(np.diff(np.floor(np.cumsum(shares) / (2 * least)), prepend=-1))]
    table = np.array([counted(values, cuts), counted(others, cuts)])
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table).pvalue >= ALPHA


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_like_opendps(kind, scale):
    event = event_of(kind, scale)
    theirs = opendp(event, 10_000)
    assert same_law(drawn(event, 100_000, 5), theirs, kind, scale)
    too_small = event_of(kind, scale * 0.8)
    assert not same_law(drawn(too_small, 100_000, 5), theirs, kind, scale)


# Words that leave a draw open


class Script:
    """Words and integers that are given; more of them come from a seeded stream."""

    def __init__(self, words, integers):
        self._words, self._integers = list(words), list(integers)
        self._stream = RandomStream(1).substream()
        self.asked = 0

    def take(self, count):
        given = self._words[:count]
        self._words = self._words[count:]
        return np.array(given + self._stream.take(count - len(given)).tolist(), dtype=np.uint64)

    def below(self, bound):
        self.asked += 1
        return self._integers.pop(0)


@pytest.mark.parametrize("scale", [Fraction(75, 2), Fraction(1000)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_word_on_a_boundary_is_decided_by_more_bits(kind, scale):
    noise = getattr(Noise, kind)(scale**2 if kind == "gaussian" else scale)
    table, fine, finest = (noise.cumulated(bits) for bits in (63, 127, 191))
    for index in (0, 3, 40, len(table) - 2):
        place = fine[index] >> 64
        second = [0] if noise.width_bits else []
        below, above = noise.start(index), noise.start(index + 1)
        boundary = fine[index] & (2**64 - 1)
        last = finest[index] & (2**64 - 1)
        for integers, expected in (
            ([boundary - 1], below),
            ([boundary + 2], above),
            ([boundary, last - 1], below),
            ([boundary, last + 2], above),
        ):
            source = Script([place << 1, *second, 0], integers)
            out = np.zeros(2, dtype=np.int64)
            fill(out, noise, source)
            assert out[0] == expected
            assert source.asked == len(integers)


def test_the_tail_beyond_the_table_is_reached():
    noise = Noise.gaussian(Fraction(1))
    ones = 2**64 - 1
    table = noise.cumulated(191)
    source = Script([ones], [ones, ones // 2])
    out = np.zeros(1, dtype=np.int64)
    fill(out, noise, source)
    prefix = (2**127 - 1) << 64 | ones // 2
    assert out[0] == -int(np.searchsorted(np.array(table, dtype=object), prefix, side="right"))
    assert out[0] < -12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width_bits", [0, 1])
def test_draws_by_words_of_8_bits_are_as_exact(kind, width_bits):
    """Most of them are finished with more bits, and proposals rejected; the law is the same."""
    scale = Fraction(12 if kind == "gaussian" else 5)
    made = getattr(Noise, kind)(scale**2 if kind == "gaussian" else scale)
    noise = Noise(made.square, made.linear, width_bits)

    class Bytes:
        def __init__(self):
            self._words = RandomStream(6).substream()

        def take(self, count):
            return self._words.take(count) >> np.uint64(56)

        def below(self, bound):
            return self._words.below(bound)

    out = np.empty(20_000, dtype=np.int64)
    fill(out, noise, Bytes(), bits=8)
    law = {k: float(p) for k, p in LAWS[kind](scale).items()}
    assert outcomes_fit(out.tolist(), law)


# What the noise is put on


@pytest.mark.parametrize("scale", [3.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_the_same_for_any_number_of_threads(kind, scale, monkeypatch):
    monkeypatch.setattr(noise_module, "CHUNK_CELLS", 1000)
    counts = np.arange(4500, dtype=np.int64).reshape(45, 100)
    event = event_of(kind, scale)
    alone, others = (
        add_noise(counts, event, RandomStream(7), threads=threads) for threads in (1, 3)
    )
    assert np.array_equal(alone, others)
    chunks = (alone - counts).reshape(-1)[:4000].reshape(4, 1000)
    assert len({chunk.tobytes() for chunk in chunks}) == 4


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_is_touched_zeros_included(kind, stream):
    event = event_of(kind, 1e5)
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
@pytest.mark.parametrize("kind", KINDS)
def test_noise_and_counts_beyond_32_bits(kind, stream):
    counts = np.full(40, 1 << 40, dtype=np.int64)
    moved = np.abs(add_noise(counts, event_of(kind, 1e12), RandomStream(STREAMS[stream])) - counts)
    assert np.median(moved) > 1e11
    assert len(set(moved.tolist())) == 40


def test_no_cells_take_no_noise():
    empty = np.zeros((0, 3), dtype=np.int64)
    assert add_noise(empty, event_of("laplace", 2.0), RandomStream(1)).shape == (0, 3)


def test_a_scale_that_is_no_double_is_refused():
    """Another library would have to round it, perhaps to less noise."""
    third = NoisyCounts.laplace(Fraction(1, 3), cells=1, purpose="marginals")
    with pytest.raises(ParameterError, match="double"):
        noise_of(third)
    root = NoisyCounts(
        mechanism="discrete-gaussian",
        purpose="marginals",
        scale_numerator=2,
        scale_denominator=1,
        cells=1,
    )
    with pytest.raises(ParameterError, match="square of a double"):
        noise_of(root)
