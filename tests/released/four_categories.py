"""One table of four categories, measured with noise: a law known in closed form (R28).

The share of a category has sampling variance p (1 - p)/N. Noise of deviation s on four
cells, projected on a known total, leaves a cell with 3/4 s^2.
"""

from __future__ import annotations

import math

import numpy as np

from pegsynth.inference import combine
from pegsynth.mechanisms.noise import add_noise
from pegsynth.methods.released import _replicates as perturbing
from pegsynth.methods.released import _row_replicates as weighing
from pegsynth.methods.released._draw import draw_rows, fine_shares
from pegsynth.methods.released._replicates import Source
from pegsynth.methods.released._row_replicates import Replicates
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream

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
    """Return the shares of rows, and those with every replicate weight."""
    source = Source(released, events_of(deviation))
    (codes,) = draw_rows(released, ROWS, stream)
    found = Replicates.fitted(source, codes, stream, count=count, rows=ROWS)
    signs = weighing.Signs(stream.substream(), count).take(ROWS)
    lines = np.vstack([np.ones((1, ROWS)), found.weights(codes, signs)])
    cells = [np.bincount(codes[:, 0], line, 4) for line in lines]
    return np.array([line / line.sum() for line in cells])


def shares_of_own(released, deviation, stream, count=REPLICATES):
    """Return the shares of counts with sampling and noise of their own."""
    own = Source(released, events_of(deviation)).replicates(count, stream)
    return np.array([fine_shares(each, smooth=False)[0] for each in own])


def interval_of(released, deviation, way, stream):
    """Return the interval of the last category as a rule gives it."""
    if way in ("own-noise", "v subtracted"):
        rest = shares_of_own(released, deviation, stream)[:, 3]
        if way == "own-noise":
            return combine(rest, rule="own-noise").interval()
        v = rest.mean() * (1 - rest.mean()) / ROWS
        half = 2.26 * math.sqrt(max((1 + 1 / REPLICATES) * rest.var(ddof=1) - v, 0.0))
        return rest.mean() - half, rest.mean() + half
    q = shares_by_weights(released, deviation, stream)[:, 3]
    if way == "plug-in":
        half = 1.96 * math.sqrt(q[0] * (1 - q[0]) / ROWS * (1 + 1 / REPLICATES))
        return q[0] - half, q[0] + half
    part = 1.0 if way == "f forgotten" else None
    return combine(q[1:], rule="replicate-weights", main=q[0], part=part).interval()


def break_noise(monkeypatch, way):
    """Put a broken twin of the perturbation in place."""

    def none(counts, event, stream, *, threads=1):
        return np.zeros_like(counts)

    def one_for_all(counts, event, stream, *, threads=1):
        return np.broadcast_to(add_noise(counts[:1], event, stream), counts.shape)

    made = {"noise forgotten": none, "nothing perturbed": none, "one noise for all": one_for_all}
    if way in made:
        monkeypatch.setattr(perturbing, "add_noise", made[way])
    if way in ("rows not resampled", "nothing perturbed"):
        still = lambda self, rows: np.zeros((self.count, rows))  # noqa: E731
        monkeypatch.setattr(weighing.Signs, "take", still)
        nothing = {
            "table": lambda self, times, table: np.zeros(len(table.counts)),
            "one_ways": lambda self, times: np.zeros(len(self.levels)),
        }
        for name, function in nothing.items():
            monkeypatch.setattr(perturbing.Resample, name, function)


def coverage(deviation, ways, runs, *, seed):
    """Return how often the intervals of every rule hold the rare share."""
    words, held = np.random.default_rng(seed), np.zeros(len(ways))
    for run in range(runs):
        stream = RandomStream(seed * runs + run)
        released = release(RARE, deviation, stream, words)
        ends = [interval_of(released, deviation, way, stream) for way in ways]
        held += [low <= RARE[3] <= high for low, high in ends]
    return held / runs
