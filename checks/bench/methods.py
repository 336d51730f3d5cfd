"""Methods at equal total budget: ``python -m checks.bench.methods [--repeats N] [--quick]``.

Draws from 200,000 built-in rows with `pegs`, `pegs-rs` and `pegs-capped`, each with the
defaults that the planner picks from public quantities, and prints the mean total
variation of all one-way and all two-way tables. `pegs-rs` is also shown with the marginal
prior that `pegs-capped` uses by default, and `pegs-capped` with and without its urn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np

from checks.bench.distances import tvd1, tvd2
from pegsynth import synthesize
from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema

DELTA = 1e-9
ROWS = (1_000, 10_000)
EPSILONS = (1.0, 10.0, 100.0, 1000.0)
WAYS: dict[str, dict[str, Any]] = {
    "pegs": {"method": "pegs"},
    "pegs-rs": {"method": "pegs-rs"},
    "pegs-rs, marginal prior": {"method": "pegs-rs", "prior": "marginal"},
    "pegs-capped": {"method": "pegs-capped"},
    "pegs-capped, no urn": {"method": "pegs-capped", "urn": False},
}


def main(arguments: Sequence[str] | None = None) -> list[tuple[int, float, str, float, float]]:
    parser = argparse.ArgumentParser(prog="checks.bench.methods", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes; the values mean nothing")
    options = parser.parse_args(arguments)
    rows_in, sizes, repeats = (200_000, ROWS, options.repeats)
    if options.quick:
        rows_in, sizes, repeats = 2_000, (100,), 1
    table, schema = discharge(rows_in, seed=1), discharge_schema()
    original = encode(table, schema)
    counts = schema.category_counts
    print("| rows | total epsilon | " + " | ".join(WAYS) + " | bootstrap |")
    print("|---" * (len(WAYS) + 3) + "|")
    found = []
    for rows in sizes:
        floor = _bootstrap(original, rows, counts)
        for epsilon in EPSILONS:
            cells = []
            for name, way in WAYS.items():
                drawn = [
                    encode(
                        synthesize(
                            table, schema, rows=rows, epsilon=epsilon, delta=DELTA, **way
                        ).frames[0],
                        schema,
                    )
                    for _ in range(repeats)
                ]
                one = mean(tvd1(original, codes, counts) for codes in drawn)
                two = mean(tvd2(original, codes, counts) for codes in drawn)
                cells.append(f"{one:.3f} / {two:.3f}")
                found.append((rows, epsilon, name, one, two))
            print(f"| {rows:,} | {epsilon:g} | " + " | ".join(cells) + f" | {floor} |", flush=True)
    return found


def _bootstrap(original: np.ndarray, rows: int, counts: tuple[int, ...]) -> str:
    chosen = np.random.default_rng(1).integers(0, len(original), rows)
    sample = original[chosen]
    return f"{tvd1(original, sample, counts):.3f} / {tvd2(original, sample, counts):.3f}"


if __name__ == "__main__":
    main()
