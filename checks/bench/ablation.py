"""What each step of released blocks brings: the same release with one step left out.

Run with ``python -m checks.bench.ablation [--table adult] [--epsilon 1] [--repeats 3]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from checks.bench.peers.scores import score
from checks.bench.peers.tables import Table, data_folder, load
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released.domain import Domain
from pegsynth.methods.released.draw import draw_rows
from pegsynth.methods.released.fit import release_blocks
from pegsynth.methods.released.steps import Steps
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream

DELTA = 1e-9
SCORES = ("tvd1", "tvd2", "tvd3", "auc")
VARIANTS: dict[str, dict[str, Any]] = {
    "all steps": {},
    "no merging of levels": {"merge": False},
    "no maps": {"dependences": False},
    "pairs only in the second round": {"triples": False},
    "no exchange of rows": {"exchange": 0},
    "blocks by projection alone": {"pulled": 0.0},
    "no table is quiet enough for all pairs": {"residuals": False},
    "one head": {"heads": 1},
}


def one_release(table: Table, epsilon: float, seed: int | None, steps: Steps) -> NDArray[np.uint32]:
    """Release blocks of a table once and draw as many rows."""
    stream = RandomStream(seed)
    budget_filter = PrivacyFilter(
        Budget(epsilon=epsilon, delta=DELTA).whole("zcdp"), stream, threads=2
    )
    rows = len(table.train)
    released, fit = release_blocks(
        table.train,
        Domain(tuple(table.levels), (True,) * len(table.levels)),
        budget_filter,
        stream,
        rows=rows,
        steps=steps,
        threads=2,
    )
    return np.concatenate(list(draw_rows(released, rows, stream, steps=steps, ready=fit)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of errors with every step, and with each left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="adult")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args(arguments)
    table = load(asked.table, data_folder())
    for epsilon in asked.epsilon:
        print(f"\n{asked.table}, epsilon {epsilon:g}, delta {DELTA:g}, {asked.repeats} runs each\n")
        print("| variant | tvd1 | tvd2 | tvd3 | auc |\n|---|---|---|---|---|")
        for name, flags in VARIANTS.items():
            steps = replace(Steps(), **flags)
            found = [
                score(table, one_release(table, epsilon, seed, steps), threads=2)
                for seed in range(asked.repeats)
            ]
            means = [mean(getattr(each, key) for each in found) for key in SCORES]
            print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in means) + " |", flush=True)


if __name__ == "__main__":
    main()
