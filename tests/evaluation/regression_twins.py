"""Slow, obvious twins of the regressions: one line a row, formulas of statsmodels itself."""

import warnings

import numpy as np
import pandas as pd

from pegsynth.inference.value_columns import is_numeric, numeric_values
from pegsynth.schema import Feature, Schema

SCHEMA = Schema(
    (
        Feature(
            "age",
            kind="numeric",
            edges=(0.0, 20.0, 40.0, 60.0, 90.0),
            missing=("",),
            role="quasi-identifier",
        ),
        Feature("sev", kind="ordinal", categories=("0", "1", "2")),
        Feature("cat", categories=("medical", "surgical"), role="quasi-identifier"),
        Feature("ward", categories=("a", "b", "c"), missing=("",), role="quasi-identifier"),
        Feature(
            "los",
            kind="numeric",
            edges=(0.0, 1.0, 2.0, 3.0, 10.0),
            dtype="int64",
            role="quasi-identifier",
        ),
        Feature(
            "charge", kind="numeric", edges=(0.0, 10.0, 20.0, 30.0, 50.0, 100.0), role="sensitive"
        ),
    )
)
SIZES = SCHEMA.category_counts


def rows(count, seed, *, strength=1.0):
    """Rows whose charge follows age, severity, category and stay, as codes."""
    rng = np.random.default_rng(seed)
    age = rng.choice(5, count, p=[0.2, 0.3, 0.25, 0.2, 0.05])
    sev = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    cat = rng.random(count) < 0.3
    ward = rng.choice(4, count, p=[0.4, 0.3, 0.2, 0.1])
    los = np.minimum(rng.poisson(1 + 0.5 * sev), 3)
    level = strength * (0.3 * (age % 4) + 0.5 * sev + 0.8 * cat + 0.3 * los)
    charge = np.clip(np.round(level + rng.normal(0, 1.0, count)), 0, 4)
    return np.stack([age, sev, cat, ward, los, charge], axis=1).astype(np.uint8)


def frame(codes, schema=SCHEMA):
    """The rows as a table of numbers and labels, missing numbers as NaN."""
    columns = {}
    for index, feature in enumerate(schema.features):
        if is_numeric(feature):
            columns[feature.name] = numeric_values(feature)[codes[:, index]]
        else:
            columns[feature.name] = np.array(feature.labels)[codes[:, index]]
    return pd.DataFrame(columns)


def linear(codes, formula):
    """Coefficients, standard errors and intervals of every row on its own."""
    import statsmodels.formula.api as smf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return smf.ols(formula, frame(codes)).fit()


def logistic(codes, formula):
    import statsmodels.formula.api as smf

    table = frame(codes)
    for name in formula.replace("y", "").split("+"):
        table = table[table[name.strip(" ~")].notna()] if name.strip(" ~") in table else table
    table["y"] = (table["charge"] > 30).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return smf.logit(formula, table).fit(disp=0, tol=1e-12, maxiter=100)
