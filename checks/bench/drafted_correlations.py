"""Correlations under a schema that nobody wrote: drafted, accepted as it is, released, compared.

``python -m checks.bench.drafted_correlations [--tables T ..] [--epsilon E ..] [--runs K]`` takes at
most 20,000 rows of public tables, accepts the drafted schema of each, releases it by `pegs-once`
and prints, over all pairs of columns of numbers whose correlation is above 0.2, the median of what
the release keeps of it (1: all of it), and how many pairs there are. Unseeded; delta = 1e-6.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from checks.bench.column_kinds import frame_of
from pegsynth import Schema, synthesize

DELTA = 1e-6
MOST_ROWS = 20_000
LEAST = 0.2
TABLES = (
    *("COUNT/rwm5yr", "ggplot2/diamonds", "wooldridge/labsup", "Ecdat/HI"),
    *("wooldridge/k401ksubs", "modeldata/lending_club"),
)


def taken(table: str) -> pd.DataFrame:
    """Return rows of a table; the same ones at every call."""
    frame = frame_of(table)
    return frame.sample(min(len(frame), MOST_ROWS), random_state=1).reset_index(drop=True)


def correlations(frame: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return the correlations of columns of numbers."""
    numbers = {name: pd.to_numeric(frame[name], errors="coerce").astype(float) for name in names}
    with np.errstate(all="ignore"):
        return pd.DataFrame(numbers).corr()


def kept(original: pd.DataFrame, released: Any, names: Sequence[str]) -> list[float]:
    """Return what is kept of each correlation that is large enough."""
    before, after = correlations(original, names), correlations(released, names)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    return [
        float(np.nan_to_num(after.at[a, b] / before.at[a, b]))
        for a, b in pairs
        if abs(before.at[a, b]) > LEAST
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for every table and epsilon."""
    parser = argparse.ArgumentParser(prog="checks.bench.drafted_correlations", description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| table | rows | epsilon | pairs | kept, median | kept, lowest quarter |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for table in options.tables:
        frame = taken(table)
        schema = replace(Schema.draft(frame), reviewed=True)
        names = [name for name in schema.names if frame[name].dtype.kind in "iuf"]
        for epsilon in options.epsilon:
            found = []
            for _ in range(options.runs):
                asked = {"rows": len(frame), "epsilon": epsilon, "delta": DELTA}
                release = synthesize(frame, schema, method="pegs-once", **asked)
                found.append(kept(frame, release.frames[0], names))
            figures = f"{np.median(found):.3f} | {np.quantile(found, 0.25):.3f}"
            pairs = len(found[0])
            print(f"| {table} | {len(frame)} | {epsilon:g} | {pairs} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
