"""How often intervals of bought distances hold (R34): 200 purchases on each of three tables.

    python -m checks.bench.quality_intervals [--runs 200]

The release is a plain resample with one feature shuffled, so that distances differ; what is
bought is measured anew in every run.
"""

from __future__ import annotations

import argparse

import numpy as np

from pegsynth.codec.codec import Encoder
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.mechanisms.quality_distances import (
    buy,
    cell_counts,
    distance,
    expected_counts,
    settle_quality,
)
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

EPSILON, DELTA, SHARE = 1.0, 1e-6, 0.1


def invented(sizes: tuple[int, ...], rows: int, seed: int) -> tuple[Schema, np.ndarray]:
    draw = np.random.default_rng(seed)
    schema = Schema(
        tuple(
            Feature(f"f{i}", categories=tuple(map(str, range(size))))
            for i, size in enumerate(sizes)
        )
    )
    first = draw.integers(0, 2**16, rows)
    columns = [(first + draw.geometric(0.2, rows)) % size for size in sizes]
    return schema, np.stack(columns, axis=1)


def stays(rows: int) -> tuple[Schema, np.ndarray]:
    schema, frame = discharge_schema(), discharge(rows, seed=1)
    encoder = Encoder(schema, source="discharge", columns=frame.columns)
    return schema, encoder.encode(frame)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    tables = {
        "discharge, 20,000 rows of 13 features": stays(20_000),
        "8 features of 2 to 30 categories, 5,000 rows": invented(
            (2, 2, 3, 4, 6, 10, 20, 30), 5_000, 1
        ),
        "3 features of 100 categories, 50,000 rows": invented((100, 100, 100), 50_000, 2),
    }
    print(f"epsilon {EPSILON}, delta {DELTA}, a share of {SHARE}, {runs} runs")
    for name, (schema, original) in tables.items():
        draw = np.random.default_rng(7)
        released = original[draw.integers(0, len(original), len(original))].copy()
        released[:, 0] = draw.permutation(released[:, 0])
        for delta in (DELTA, None):
            plan, _ = settle_quality(schema, Budget(epsilon=EPSILON, delta=delta), SHARE)
            ours, theirs = (cell_counts(iter((t,)), schema, plan) for t in (original, released))
            held = figures = 0
            for seed in range(runs):
                found = buy(plan, ours, theirs, RandomStream(seed))
                for value, counts, made in zip(found.distances, ours, theirs, strict=True):
                    true = distance(counts, expected_counts(made, found.total))
                    held += abs(value - true) <= found.half_width
                    figures += 1
            width = found.half_width / (2 * len(original))
            kind = "Gaussian" if delta else "Laplace"
            print(
                f"{name}, {kind}: {held / figures:.2%} of {figures:,} intervals hold; half width "
                f"{width:.2%} of the rows"
            )


if __name__ == "__main__":
    main()
