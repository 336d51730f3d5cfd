"""A small table of people with numbers, and a schema that declares analyses of it (R26)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis, WantedTable

ANALYSES = """
[[analyses]]
formula = "pay ~ age + C(area)"
share = 0.2

[[analyses]]
formula = "I(pay > 30) ~ age + job"
family = "binomial"
share = 0.1

[[tables_wanted]]
features = ["area", "job"]
share = 0.05
"""


def people(rows=2000, *, seed=1):
    """Return a table in which pay depends on age and job."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 70, rows)
    job = random.integers(0, 2, rows)
    pay = np.maximum(age * 0.5 + 15 * job + random.gamma(2.0, 4.0, rows), 0.0).round()
    area = random.choice(["n", "s", "w"], rows, p=[0.5, 0.3, 0.2])
    lost = random.random(rows) < 0.05
    return pl.DataFrame(
        {
            "age": age,
            "job": np.where(job == 1, "a", "b"),
            "area": area,
            "pay": pl.Series(pay).cast(pl.Int64).set(pl.Series(lost), None),
        }
    )


def schema(**declared):
    """Return the schema, which declares nothing unless asked."""
    return Schema(
        (
            Feature("age", kind="numeric", edges=(18.0, 30.0, 45.0, 60.0, 70.0), dtype="int64"),
            Feature("job", categories=("b", "a")),
            Feature("area", categories=("n", "s", "w")),
            Feature(
                "pay",
                kind="numeric",
                edges=(0.0, 15.0, 25.0, 35.0, 50.0, 120.0),
                dtype="int64",
                missing=("",),
            ),
        ),
        reviewed=True,
        **declared,
    )


def declaring():
    """Return the schema with two analyses and a table."""
    return schema(
        analyses=(
            Analysis("pay ~ age + C(area)", share=0.2),
            Analysis("I(pay > 30) ~ age + job", "binomial", 0.1),
        ),
        tables_wanted=(WantedTable(("area", "job")),),
    )
