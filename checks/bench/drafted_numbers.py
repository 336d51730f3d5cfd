"""Numbers under a schema that nobody wrote: drafted, accepted, released, compared.

``python -m checks.bench.drafted_numbers [--rows N] [--runs K] [--epsilon E ..]`` drafts the schema
of the built-in discharges with two more columns, invented wages and dividends that are 0 in 94 %
and 89 % of the rows. It accepts the draft as it is, releases it by `pegs-once` and prints the
Kolmogorov distance of every number and how far the share of zeros is off. Unseeded; means over
runs, delta = 1e-9.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from checks.bench.released_numbers import DELTA, NUMBERS, kolmogorov
from pegsynth import Schema, synthesize
from pegsynth.datasets import discharge

ZEROS = {"wages": 0.94, "dividends": 0.89}


def drafted_table(rows: int) -> pl.DataFrame:
    """Return the discharges with two columns of which most values are 0."""
    words = np.random.default_rng(1)
    amounts = {
        name: np.where(words.random(rows) < share, 0, np.rint(np.exp(words.normal(7, 1.4, rows))))
        for name, share in ZEROS.items()
    }
    return discharge(rows, seed=1).with_columns(
        pl.Series(name, values.astype(np.int64)) for name, values in amounts.items()
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for every epsilon and number."""
    parser = argparse.ArgumentParser(prog="checks.bench.drafted_numbers", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    options = parser.parse_args(arguments)
    table = drafted_table(options.rows)
    schema = replace(Schema.draft(table), reviewed=True)
    names = (*NUMBERS, *ZEROS)
    print("| epsilon | " + " | ".join(names) + " | zeros off, wages and dividends |")
    print("|---|" + "---|" * (len(names) + 1))
    for epsilon in options.epsilon:
        distances, zeros = [], []
        for _ in range(options.runs):
            asked = {"rows": options.rows, "epsilon": epsilon, "delta": DELTA}
            frame = synthesize(table, schema, method="pegs-once", **asked).frames[0]
            distances.append([kolmogorov(table[name], frame[name]) for name in names])
            zeros.append([abs((table[n] == 0).mean() - (frame[n] == 0).mean()) for n in ZEROS])
        figures = [f"{figure:.4f}" for figure in np.mean(distances, axis=0)]
        apart = " / ".join(f"{figure:.4f}" for figure in np.mean(zeros, axis=0))
        print(f"| {epsilon:g} | {' | '.join(figures)} | {apart} |")


if __name__ == "__main__":
    main()
