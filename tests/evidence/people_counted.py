"""Tiny published tables, and the rows behind them, for the tests of evidence."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pegsynth import Feature, Schema
from pegsynth.tables.published_tables import PublishedTable

SIZES = (3, 2, 4)
SCHEMA = Schema(
    (
        Feature("age", "numeric", edges=(0, 18, 65, 110), dtype="int64"),
        Feature("sex", "nominal", categories=("f", "m"), value_labels=(("f", "Female"),)),
        Feature("job", "nominal", categories=("1", "2", "3", "4")),
    ),
    reviewed=True,
)


def people(rows: int, seed: int) -> np.ndarray:
    """Return codes of rows whose features depend on each other."""
    draws = np.random.default_rng(seed)
    age = draws.choice(3, rows, p=[0.3, 0.5, 0.2])
    sex = (draws.random(rows) < 0.3 + 0.2 * age).astype(int)
    job = (age + draws.integers(0, 2, rows) + sex * draws.integers(0, 2, rows)) % 4
    return np.stack([age, sex, job], axis=1)


def counts(codes: np.ndarray, features: tuple[int, ...]) -> np.ndarray:
    """Count rows by cell."""
    shape = [SIZES[each] for each in features]
    keys = np.ravel_multi_index([codes[:, each] for each in features], shape)
    return np.bincount(keys, minlength=int(np.prod(shape))).astype(float)


def exact(codes: np.ndarray, features: tuple[int, ...]) -> PublishedTable:
    """Return an exact table of rows."""
    cells = counts(codes, features)
    return PublishedTable("exact.csv", features, cells, cells, np.zeros(len(cells)))


def estimated(cells: np.ndarray, features: tuple[int, ...], variance: float) -> PublishedTable:
    """Return estimates with one variance."""
    return PublishedTable("estimates.csv", features, cells, cells, np.full(len(cells), variance))


FOUR_HUNDRED = people(400, 9)
JOBS = ("1", "2", "3", "4")
CODES_OF = {
    (age, job): int(((FOUR_HUNDRED[:, 0] == age) & (FOUR_HUNDRED[:, 2] == place)).sum())
    for age in range(3)
    for place, job in enumerate(JOBS)
}
"""Rows of every age and job."""


def written_tables(folder: Path) -> None:
    """Write tables of 400 people: age by sex, rounded and suppressed, and age by job, exactly."""
    cells = counts(FOUR_HUNDRED, (0, 1)).reshape(3, 2).astype(int)
    lines = ["age,sex,n"]
    for age, row in zip(("0-17", "18-64", "65+"), cells, strict=True):
        for sex, count in zip(("Female", "m"), row, strict=True):
            lines.append(f"{age},{sex},{'<5' if count < 5 else round(count / 5) * 5}")
    (folder / "age-sex.csv").write_text("\n".join(lines))
    lines = ["age," + ",".join(JOBS)]
    for place, age in enumerate(("0-17", "18-64", "65+")):
        lines.append(f"{age}," + ",".join(str(CODES_OF[place, job]) for job in JOBS))
    (folder / "age-job.csv").write_text("\n".join(lines))
    (folder / "tables.toml").write_text(
        '[[tables]]\nfile = "age-sex.csv"\nfeatures = ["age", "sex"]\ncount = "n"\n'
        'error = "rounded"\nbase = 5\nbelow = 5\nmark = "<5"\n'
        'guarantee = "epsilon = 1"\nby = "Office X"\n\n'
        '[[tables]]\nfile = "age-job.csv"\nfeatures = ["age", "job"]\nacross = "job"\n'
        'error = "exact"\n'
    )
