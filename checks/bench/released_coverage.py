"""How often intervals from replicates of released blocks hold the truth (R28).

A population is sampled again and again; every sample is released by `pegs-once` at a total
epsilon and a delta of 1e-9 and analysed by replicate weights, by tables with noise of their
own, and by the plug-in rule on tables that share their noise. Codes are analysed, not values
inside bins. ``python -m checks.bench.coverage --only released`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from checks.bench.coverage_populations import Population
from checks.bench.coverage_statistics import Array, Codes, Slope, Statistic
from checks.bench.coverage_tally import Interval, Release
from pegsynth.inference import Combined, Floor, combine
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released._draw import draw_rows, released_total
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._replicates import Source, own_noise_tables
from pegsynth.methods.released._row_replicates import Replicates, Signs
from pegsynth.methods.released._supported import (
    cell_deviation,
    merged_categories,
    missing_pairs,
    supported,
)
from pegsynth.methods.released._values import Domain, Released
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

DELTA = 1e-9
NORMAL = 1.959964
METHOD = "pegs-once"


def held(released: Released, statistic: Statistic | Slope) -> bool:
    """Whether published tables have every pair that a statistic is made of, unmerged."""
    features = statistic.features
    merged = any(merged_categories(released, feature) for feature in features)
    return len(features) == 1 or not (merged or missing_pairs(released, features))


def flagged(released: Released, statistic: Statistic | Slope) -> bool:
    """Whether `supported` tells an analyst of these features that something is not supported."""
    names = [f"f{feature}" for feature in range(len(released.levels))]
    schema = Schema(
        tuple(
            Feature(name, categories=tuple(map(str, range(len(levels)))))
            for name, levels in zip(names, released.levels, strict=True)
        )
    )
    asked = " + ".join(names[feature] for feature in statistic.features)
    return bool({"not supported", "merged"} & set(supported(released, schema, asked).flags))


@dataclass(frozen=True)
class How:
    """How releases are analysed.

    Parameters
    ----------
    replicates
        Replicate weights.
    tables
        Tables with noise of their own, and as many that share it; 0 for none.
    """

    replicates: int = 20
    tables: int = 5
    pure: bool = False
    threads: int = 1


@dataclass(frozen=True)
class Analysed:
    """One release as analysts get it."""

    original: Codes
    released: Released
    rows: Codes
    weights: Array
    own: list[Codes]
    shared: list[Codes]
    replicates: Replicates

    def intervals(self, statistic: Statistic | Slope) -> Iterator[tuple[str, Combined]]:
        """Yield what every rule says about a statistic."""
        lines = [statistic.of(statistic.counted(self.rows, line)) for line in self.weights]
        weighted = {"rule": "replicate-weights", "main": lines[0]}
        floor = self.floor(statistic)
        yield "replicate-weights", combine(lines[1:], **weighted, floor=floor)
        if len(statistic.cell) == 1:
            yield "without floor", combine(lines[1:], **weighted)
        if self.own:
            cells = [statistic.counted(codes) for codes in self.own]
            yield (
                "own-noise",
                combine(list(map(statistic.of, cells)), rule="own-noise", floor=floor),
            )
        if self.shared:
            cells, rows = [statistic.counted(codes) for codes in self.shared], len(self.original)
            variances = [statistic.variance(table, rows) for table in cells]
            yield (
                "plug-in",
                combine(list(map(statistic.of, cells)), variances, rows=rows, rows_in=rows),
            )

    def floor(self, statistic: Statistic | Slope) -> Floor | None:
        """Return the published noise on a share."""
        if not statistic.cell:
            return None
        cell = dict(zip(statistic.features, statistic.cell, strict=True))
        deviation, total = cell_deviation(self.released, cell), released_total(self.released)
        return Floor(deviation / total, total) if np.isfinite(deviation) else None


def release(population: Population, which: Release, how: How) -> Analysed:
    """Sample the population, release the sample and draw from what was published."""
    codes, threads = population.sample(which.rows, which.seed), how.threads
    stream = RandomStream(which.seed)
    budget = Budget(epsilon=which.epsilon, delta=None if how.pure else DELTA)
    budget_filter = PrivacyFilter(
        budget.whole("pure" if how.pure else "zcdp"), stream, threads=threads
    )
    released, ready = release_blocks(
        codes,
        Domain(tuple(population.sizes), tuple(population.ordered), rules=tuple(population.rules)),
        budget_filter,
        Work(stream, threads),
        rows=len(codes),
    )
    source = Source(released, budget_filter.events, rules=population.rules)
    rows = len(codes)
    lots = draw_rows(released, rows, stream, ready=ready)
    drawn, count = np.concatenate(list(lots)), how.replicates
    found = Replicates.fitted(source, drawn, stream, count=count, rows=rows, threads=threads)
    lines = found.weights(drawn, Signs(stream.substream(), count).take(rows))
    own = (
        own_noise_tables(source, rows, stream, count=how.tables, threads=threads)
        if how.tables
        else ()
    )
    shared = (
        draw_rows(released, rows, stream, rules=population.rules, threads=threads)
        for _ in range(how.tables)
    )
    return Analysed(
        codes,
        released,
        drawn,
        np.vstack([np.ones((1, rows)), lines]),
        [np.concatenate(list(table)) for table in own],
        [np.concatenate(list(table)) for table in shared],
        found,
    )


def measure(population: Population, which: Release, how: How) -> Iterator[Interval]:
    """Yield the intervals of one release; widths are multiples of the original's own."""
    found = release(population, which, how)
    for statistic, value in zip(population.wanted, population.true, strict=True):
        group = statistic.group
        if not held(found.released, statistic):
            group = f"not supported: {group}"
            yield Interval(group, "flag", flagged(found.released, statistic), 0.0)
        usual = usual_width(statistic, found.original)
        for rule, result in found.intervals(statistic):
            low, high = result.interval(0.95)
            yield Interval(group, rule, bool(low <= value <= high), (high - low) / usual)


def usual_width(statistic: Statistic | Slope, original: Codes) -> float:
    """Return the width of the interval that the original itself gives."""
    variance = statistic.variance(statistic.counted(original), len(original))
    return max(2 * NORMAL * float(np.sqrt(variance)), 1e-12)
