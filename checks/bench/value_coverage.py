"""How often intervals for means of numbers hold the truth, with private edges (R21, R28).

Invented discharges are released through `pegsynth.synthesize` as users do it, with edges of
age, stay and charge measured out of the same budget, and 20 replicate weights. The truth is
the mean of two million discharges, tails and all. ``python -m checks.bench.coverage --only
values`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import polars as pl

from checks.bench.coverage_tally import Interval, Release
from checks.bench.released_coverage import DELTA, NORMAL
from checks.bench.released_numbers import NUMBERS, private_schema
from pegsynth import Release as Synthesized
from pegsynth import replicated, synthesize
from pegsynth.datasets import discharge
from pegsynth.inference import Combined

METHOD = "pegs-once, private edges"


@cache
def true_means(rows: int) -> dict[str, float]:
    """Return the means of the population."""
    table = discharge(rows, seed=987_654)
    return {name: float(table[name].cast(float).mean()) for name in NUMBERS}


def measure(which: Release, truth: int, replicates: int) -> Iterator[Interval]:
    """Yield the intervals of one release; widths are multiples of the original's own."""
    table, released = released_table(which, replicates)
    found = means_of(released)
    for name in NUMBERS:
        low, high = found[name].interval(0.95)
        column = table[name].drop_nulls().to_numpy()
        usual = 2 * NORMAL * float(column.std()) / len(column) ** 0.5
        value = true_means(truth)[name]
        yield Interval(f"mean of {name}", found.rule, low <= value <= high, (high - low) / usual)


def released_table(which: Release, replicates: int) -> tuple[pl.DataFrame, Synthesized]:
    """Return an original table, and its release."""
    table = discharge(which.rows, seed=which.seed)
    released = synthesize(
        table,
        private_schema(),
        method="pegs-once",
        epsilon=which.epsilon,
        delta=DELTA,
        rows=which.rows,
        replicates=replicates,
        seed=which.seed,
        progress=False,
    )
    return table, released


def means_of(released: Synthesized) -> Combined:
    """Return the means of numbers in a release, with their intervals."""
    return replicated(_means, released.frames[0], ledger=released.ledger).combined


def _means(table, weights):  # type: ignore[no-untyped-def]
    means = {}
    for name in NUMBERS:
        numbers = table[name].cast(float).to_numpy()
        known = np.isfinite(numbers)
        means[name] = float(np.average(numbers[known], weights=weights[known]))
    return means
