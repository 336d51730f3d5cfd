"""What makes intervals from replicate weights wide: noise, sampling, bins, few replicates (R28).

Releases of built-in discharges are weighed again with parts of the perturbation left out, on the
same rows. Widths are medians, the original's own interval being 1; squares of the parts add up to
that of the whole, about. ``python -m checks.bench.width_parts --releases 6`` prints the table.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import numpy as np

from checks.bench.coverage_populations import Population
from checks.bench.coverage_tally import Release
from checks.bench.released_coverage import METHOD, NORMAL, How, held, release, usual_width
from checks.bench.value_coverage import NUMBERS, means_of, released_table
from pegsynth.inference import combine
from pegsynth.methods import released as released_room
from pegsynth.methods.released._row_replicates import Replicates, Signs
from pegsynth.random import RandomStream

T_QUANTILE = 2.086
"""That of 20 degrees of freedom; with known variances it would be 1.96."""
PARTS = ("all", "noise", "sampling", "bins")
Widths = Iterator[tuple[str, str, float]]


def of_codes(which: Release, population: Population, count: int) -> Widths:
    """Yield statistic, part and width for statistics of codes."""
    found = release(population, which, How(replicates=count, tables=0))
    made, rows = found.replicates, found.rows
    signs = Signs(RandomStream(which.seed).substream(), count).take(len(rows))
    still = [np.zeros_like(line) for line in made.potentials]
    lines = {
        "all": found.weights[1:],
        "noise": made.weights(rows, 0 * signs),
        "sampling": replace(made, potentials=still).weights(rows, signs),
    }
    for statistic in population.wanted:
        if not held(found.released, statistic):
            continue
        usual = usual_width(statistic, found.original)
        main = statistic.of(statistic.counted(rows))
        for part, weights in lines.items():
            again = [statistic.of(statistic.counted(rows, line)) for line in weights]
            low, high = combine(again, main=main).interval(0.95)
            yield statistic.group, part, (high - low) / usual


def of_values(which: Release, count: int) -> Widths:
    """Yield the same for means of numbers whose edges were measured."""
    weights = Replicates.weights

    def without_noise(self, codes, signs):  # type: ignore[no-untyped-def]
        still = [np.zeros_like(line) for line in self.potentials]
        return weights(replace(self, potentials=still), codes, signs)

    ways = {
        "all": (weights, True),
        "noise": (lambda self, codes, signs: weights(self, codes, 0 * signs), False),
        "sampling": (without_noise, False),
        "bins": (lambda self, codes, signs: np.ones_like(signs), True),
    }
    for part, (way, shapes) in ways.items():
        usual = released_room.reweighed if shapes else (lambda frame, lines, *more: lines)
        with (
            mock.patch.object(Replicates, "weights", way),
            mock.patch.object(released_room, "reweighed", usual),
        ):
            table, released = released_table(which, count)
        found = means_of(released)
        for name in NUMBERS:
            low, high = found[name].interval(0.95)
            column = table[name].drop_nulls().to_numpy()
            own = 2 * NORMAL * float(column.std()) / len(column) ** 0.5
            yield f"mean of {name}", part, (high - low) / own


def main() -> None:
    """Print a line for every kind of statistic."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=6)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=95_001)
    asked = parser.parse_args()
    population = Population.named("discharge", 1_000_000)
    widths = defaultdict(list)
    for number in range(asked.releases):
        which = Release("discharge", asked.rows, asked.epsilon, METHOD, asked.seed + number)
        for source in (of_codes(which, population, 20), of_values(which, 20)):
            for group, part, width in source:
                widths[group, part].append(width)
    print(f"t quantile of 20 replicates over that of many: {T_QUANTILE / NORMAL:.2f}")
    print("| statistic | all | noise | sampling | bins |\n|---|---|---|---|---|")
    for group in dict.fromkeys(group for group, _ in widths):
        cells = (
            f"{np.median(widths[group, part]):.2f}" if (group, part) in widths else ""
            for part in PARTS
        )
        print(f"| {group} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
