"""Missing values completed after synthesis: how near the truth, and how often intervals hold it.

``python -m checks.bench.missing [--rows N] [--runs K] [--epsilon E ..]`` loses charges of the
built-in discharges afterwards, 60 % of those of stays of 5 days or more, so that the truth is
known and complete cases are far off. The table is released by `pegs-once` with private edges,
completed from its own synthetic rows, and compared with the table before the loss. All runs are
unseeded but for the table. ``--coverage`` prints instead how often intervals hold the
truth (`nested_coverage`), and ``--trees`` the same for the shipped trees (`tree_coverage`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from checks.bench.nested_coverage import (
    completed_means,
    nested,
    partial_of_imputed,
    without_imputing,
)
from checks.bench.released_numbers import private_schema
from checks.bench.tree_coverage import held
from pegsynth import Schema, synthesize
from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.methods.completion import completed_frames
from pegsynth.random import RandomStream

DELTA = 1e-9
LOST = "charge"
LONG_STAY, SHARE_LOST = 5, 0.6
DESIGNS = ((2000, 5, 3), (2000, 10, 2), (500, 5, 3), (8000, 5, 3))
Codes = NDArray[np.unsignedinteger]


def truth_and_holes(rows: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return stays whose charges are all known, and the same with charges of long stays lost."""
    table = discharge(rows, seed=1).drop_nulls(["charge", "los"])
    lost = pl.Series(np.random.default_rng(1).random(table.height) < SHARE_LOST)
    hole = (table["los"] >= LONG_STAY) & lost
    holed = table.with_columns(pl.when(hole).then(None).otherwise(LOST).alias(LOST))
    return table, holed


def shares(codes: Codes, schema: Schema, places: Sequence[int]) -> NDArray[np.float64]:
    """Return the shares of all cells of some features, rows without a charge left out."""
    kept = codes[codes[:, schema.index(LOST)] != schema[LOST].missing_code]
    sizes = [schema.category_counts[place] for place in places]
    cells = np.ravel_multi_index([kept[:, place].astype(np.int64) for place in places], sizes)
    return np.bincount(cells, minlength=int(np.prod(sizes))) / len(kept)


def distances(table: pl.DataFrame, truth: pl.DataFrame) -> tuple[float, float, float]:
    """Return the error of the mean charge, and TVD of charge and of its pairs, on public bins."""
    schema = discharge_schema()
    place = schema.index(LOST)
    both = [encode(each.select(schema.names), schema) for each in (table, truth)]

    def apart(places: Sequence[int]) -> float:
        one, other = (shares(codes, schema, places) for codes in both)
        return float(np.abs(one - other).sum() / 2)

    others = [other for other in range(len(schema.names)) if other != place]
    error = float(table[LOST].mean() / truth[LOST].mean() - 1)  # type: ignore[operator]
    return error, apart([place]), float(np.mean([apart([place, other]) for other in others]))


def measured(
    rows: int, epsilons: Sequence[float], runs: int
) -> Iterator[tuple[str, list[tuple[float, float, float]]]]:
    """Yield what was done, and the distances of every run."""
    truth, holed = truth_and_holes(rows)
    yield "original, complete cases", [distances(holed, truth)]
    imputed = (completed_frames(holed, discharge_schema(), RandomStream())[0] for _ in range(runs))
    yield "original imputed, no privacy", [distances(each, truth) for each in imputed]
    for epsilon in epsilons:
        found = [_released(holed, truth, epsilon) for _ in range(runs)]
        yield f"epsilon {epsilon:g}, complete cases", [each[0] for each in found]
        yield f"epsilon {epsilon:g}, completed", [each[1] for each in found]


def _released(
    holed: pl.DataFrame, truth: pl.DataFrame, epsilon: float
) -> list[tuple[float, float, float]]:
    release = synthesize(
        holed,
        private_schema(),
        rows=holed.height,
        method="pegs-once",
        epsilon=epsilon,
        delta=DELTA,
        rows_in=holed.height,
        complete=True,
        imputations=2,
    )
    return [distances(each, truth) for each in (release.frames[0], release.completed[0][0])]


def lines(rows: int, epsilons: Sequence[float], runs: int) -> Iterator[str]:
    """Yield a Markdown table of means over runs."""
    yield "| table | mean charge | TVD of charge | TVD of its pairs | runs |"
    yield "|---|---|---|---|---|"
    for what, found in measured(rows, epsilons, runs):
        error, one, pairs = np.mean(found, axis=0)
        yield f"| {what} | {100 * error:+.1f} % | {one:.3f} | {pairs:.3f} | {len(found)} |"


def coverage_lines(replications: int) -> Iterator[str]:
    """Yield a Markdown table of how often 95 % intervals hold the truth."""
    yield (
        "| n, K, r | `nested` | w left out | imputer taken for known | imputer fitted to the "
        "original | Reiter's of 2004 |"
    )
    yield "|---|---|---|---|---|---|"
    for rows, datasets, imputations in DESIGNS:
        words = np.random.default_rng([rows, datasets, imputations])
        size = (rows, datasets, imputations, replications)
        own = completed_means(words, *size, "synthetic")
        figures = [
            nested(own, rows),
            without_imputing(own, rows),
            nested(completed_means(words, *size, "improper"), rows),
            nested(completed_means(words, *size, "original"), rows),
            partial_of_imputed(own),
        ]
        cells = " | ".join(f"{figure:.3f}" for figure in figures)
        yield f"| {rows:,}, {datasets}, {imputations} | {cells} |"


def tree_lines(runs: int) -> Iterator[str]:
    """Yield a Markdown table of how often intervals hold the truth with the trees themselves."""
    yield "| n, K, r | quantity | `nested` | w left out | runs |"
    yield "|---|---|---|---|---|"
    for rows, datasets, imputations in DESIGNS[::2]:
        found = held(rows, datasets, imputations, runs)
        for place, what in enumerate(("share", "difference of shares")):
            cells = f"{found.nested[place]:.3f} | {found.without[place]:.3f} | {runs}"
            yield f"| {rows:,}, {datasets}, {imputations} | {what} | {cells} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--replications", type=int, default=20_000)
    asked = parser.parse_args(arguments)
    if asked.coverage:
        printed = coverage_lines(asked.replications)
    elif asked.trees:
        printed = tree_lines(asked.runs)
    else:
        printed = lines(asked.rows, asked.epsilon, asked.runs)
    for line in printed:
        print(line, flush=True)


if __name__ == "__main__":
    main()
