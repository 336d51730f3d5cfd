"""Populations whose samples are released, and what is true of them.

The invented discharges are sampled anew; the truth is that of two million. A real table is
a population itself: samples are drawn from its rows with replacement, so that its own
figures are the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from checks.bench.coverage_statistics import Codes, Slope, Statistic, statistics
from checks.bench.peers.tables import data_folder, load
from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.schema import Rule

TRUTH_ROWS = 2_000_000
ORDERED = {
    "adult": (
        "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week",
    ),
    "yrbss": (
        "age", "height", "weight", "physically_active_7d", "strength_training_7d",
    ),
    "mplsstops": ("date", "lat", "long", "policePrecinct"),
}  # fmt: skip
"""Columns of real tables whose codes are numbers in order."""


@dataclass(frozen=True)
class Population:
    """What is sampled, and what is true of it.

    Parameters
    ----------
    sample
        Rows of codes, by their number and a seed.
    """

    name: str
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    sample: Callable[[int, int], Codes]
    wanted: list[Statistic | Slope]
    true: list[float]
    rules: tuple[Rule, ...] = field(default=())

    @classmethod
    def invented(cls, rows: int = TRUTH_ROWS) -> Population:
        """Take a large sample of the discharges for the population."""
        schema = discharge_schema()
        truth = encode(discharge(rows, seed=987_654), schema)
        ordered = tuple(feature.kind != "nominal" for feature in schema.features)

        def sample(number: int, seed: int) -> Codes:
            return encode(discharge(number, seed=seed), schema)

        return cls(
            "discharge",
            schema.category_counts,
            ordered,
            sample,
            *_figures(truth, schema.category_counts, ordered),
            schema.rules,
        )

    @classmethod
    def of_table(cls, name: str) -> Population:
        """Take a table of the benchmark of peers for the population, all of its rows."""
        table = load(name, data_folder())
        rows = np.concatenate([table.train, table.test])
        ordered = tuple(column in ORDERED[name] for column in table.domain)

        def sample(number: int, seed: int) -> Codes:
            drawn: Codes = rows[np.random.default_rng(seed).integers(0, len(rows), number)]
            return drawn

        return cls(name, table.levels, ordered, sample, *_figures(rows, table.levels, ordered))

    @classmethod
    def named(cls, name: str, truth: int = TRUTH_ROWS) -> Population:
        """Return a population by its name."""
        return cls.invented(truth) if name == "discharge" else cls.of_table(name)


def _figures(
    truth: Codes, sizes: tuple[int, ...], ordered: tuple[bool, ...]
) -> tuple[list[Statistic | Slope], list[float]]:
    wanted = statistics(truth, sizes, list(ordered))
    return wanted, [each.of(each.counted(truth)) for each in wanted]
