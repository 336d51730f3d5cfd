"""One table of four categories, measured with noise: a law known in closed form (R28).

The share of a category has sampling variance p (1 - p)/N. Noise of deviation s on four
cells, projected on a known total, leaves a cell with 3/4 s^2.
"""

from __future__ import annotations

import math

import numpy as np

from pegsynth.inference import combine
from pegsynth.mechanisms.noise import add_noise
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream
from pegsynth.released import perturbed as perturbing
from pegsynth.released.published import NoisyTable, Released
from pegsynth.released.replicates import Source, replicate_weights

ROWS = 2000
RARE = np.array([0.5, 0.3, 0.15, 0.05])
TOTAL_DEVIATION = 0.5
REPLICATES = 10


def events_of(deviation):
    """Return what a ledger records of the total and of the table."""
    return tuple(
        NoisyCounts.gaussian(each, cells=1, purpose=purpose)
        for each, purpose in ((TOTAL_DEVIATION, "total"), (deviation, "marginals"))
    )


def published(counts, deviation):
    """Return a model that holds nothing but these counts."""
    return Released(
        total=(ROWS, TOTAL_DEVIATION),
        one_ways=(NoisyTable((0,), np.asarray(counts), deviation),),
        public=(False,),
        ordered=(False,),
        loud=False,
        levels=(np.arange(4),),
        order=(0,),
        blocks=(),
        extra=(),
    )


def release(shares, deviation, stream, words):
    """Sample a population and measure the sample."""
    counts = words.multinomial(ROWS, shares).astype(np.int64)
    return published(add_noise(counts, events_of(deviation)[1], stream), deviation)


def closed_form(shares, deviation):
    """Return the covariance of the estimated shares."""
    sampling = (np.diag(shares) - np.outer(shares, shares)) / ROWS
    return sampling + (deviation / ROWS) ** 2 * (np.eye(4) - 0.25)


def shares_by_weights(released, deviation, stream, count=REPLICATES):
    """Return the shares with all weights, one line for each, through the public door."""
    source = Source(released, events_of(deviation))
    (lot,) = replicate_weights(source, ROWS, stream, count=count)
    cells = [np.bincount(lot.codes[:, 0], line, 4) for line in lot.weights]
    return np.array([line / line.sum() for line in cells])


def interval_of(q, way):
    """Return the interval of the last category as a rule gives it."""
    q0, rest = q[0, 3], q[1:, 3]
    v = q0 * (1 - q0) / ROWS
    if way == "plug-in":
        half = 1.96 * math.sqrt(v * (1 + 1 / REPLICATES))
        return q0 - half, q0 + half
    if way == "v subtracted":
        variance = max((1 + 1 / REPLICATES) * rest.var(ddof=1) - v, 0.0)
        half = 2.26 * math.sqrt(variance)
        return rest.mean() - half, rest.mean() + half
    if way == "own-noise":
        return combine(rest, rule="own-noise").interval()
    return combine(rest, rule="replicate-weights", main=q0).interval()


def break_noise(monkeypatch, way):
    """Put a broken twin of the perturbation in place."""

    def none(counts, event, stream, *, threads=1):
        return np.zeros_like(counts)

    def one_for_all(counts, event, stream, *, threads=1):
        return np.broadcast_to(add_noise(counts[:1], event, stream), counts.shape)

    if way == "noise forgotten":
        monkeypatch.setattr(perturbing, "add_noise", none)
    if way == "one noise for all":
        monkeypatch.setattr(perturbing, "add_noise", one_for_all)
    if way in ("rows not resampled", "nothing perturbed"):
        nothing = {
            "table": lambda self, times, table: np.zeros(len(table.counts)),
            "one_ways": lambda self, times: np.zeros(len(self.levels)),
        }
        for name, function in nothing.items():
            monkeypatch.setattr(perturbing.Resample, name, function)
    if way == "nothing perturbed":
        monkeypatch.setattr(perturbing, "add_noise", none)


def coverage(deviation, ways, runs, *, seed):
    """Return how often the intervals of every rule hold the rare share."""
    words, held = np.random.default_rng(seed), np.zeros(len(ways))
    for run in range(runs):
        stream = RandomStream(seed * runs + run)
        q = shares_by_weights(release(RARE, deviation, stream, words), deviation, stream)
        ends = [interval_of(q, way) for way in ways]
        held += [low <= RARE[3] <= high for low, high in ends]
    return held / runs
