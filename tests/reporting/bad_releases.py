"""Releases with one deliberate fault each, of a table with zeros, heaps and a tail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from pegsynth.schema import Feature, Schema

EDGES = {
    "age": tuple(range(0, 101, 10)),
    "stay": (0, 1, 2, 4, 8, 16, 32, 64, 400),
    "income": (0, 1, 10_000, 20_000, 40_000, 80_000, 5_000_000),
}
WIDE = {"age": (0, 50, 101), "stay": (0, 4, 400), "income": (0, 1, 20_000, 5_000_000)}
FORMULA = "income ~ age + stay"


def schema(edges: dict[str, tuple[int, ...]] = EDGES) -> Schema:
    return Schema(
        (
            Feature("age", kind="numeric", edges=edges["age"], dtype="int64"),
            Feature("stay", kind="numeric", edges=edges["stay"], dtype="int64"),
            Feature("income", kind="numeric", edges=edges["income"], missing=("",)),
            Feature("ward", categories=("a", "b", "c")),
        )
    )


def table(rows: int, seed: int) -> pl.DataFrame:
    """Stays in days and incomes that go with age; a quarter without income, heaps at 30,000."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 100, rows)
    stay = np.floor(np.exp(0.2 + age / 60 + draw.normal(0, 0.8, rows))).clip(0, 399)
    income = np.exp(9 + age / 70 + 0.15 * np.log1p(stay) + draw.normal(0, 0.8, rows)).clip(1, 4e6)
    income = np.where(draw.random(rows) < 0.05, 30_000.0, np.round(income, 2))
    income = np.where(draw.random(rows) < 0.25, 0.0, income)
    missing = draw.random(rows) < 0.03
    return pl.DataFrame(
        {
            "age": age,
            "stay": stay.astype(np.int64),
            "income": pl.Series(np.where(missing, np.nan, income)).fill_nan(None),
            "ward": np.array(["a", "b", "c"])[draw.integers(0, 3, rows)],
        }
    )


def bootstrap(original: pl.DataFrame, seed: int) -> pl.DataFrame:
    return original.sample(original.height, with_replacement=True, seed=seed)


def scaled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("income") * 1.2)


def without_zeros(frame: pl.DataFrame) -> pl.DataFrame:
    """Zeros become small numbers, so that the mean hardly moves."""
    return _replaced(frame, 0.0, pl.int_range(pl.len()) % 97 + 1.0)


def without_heap(frame: pl.DataFrame) -> pl.DataFrame:
    return _replaced(frame, 30_000.0, 30_000.0 + pl.int_range(pl.len()) * 37 % 801 - 400.0)


def cut(frame: pl.DataFrame) -> pl.DataFrame:
    highest = int(frame["stay"].quantile(0.985) or 0)
    return frame.with_columns(pl.col("stay").clip(upper_bound=highest))


def moved(frame: pl.DataFrame) -> pl.DataFrame:
    """The mean and the deviation stay, the shape does not."""
    age = frame["age"].to_numpy()
    low, high = (age.mean() + sign * age.std() for sign in (-1, 1))
    two = np.where(np.arange(len(age)) % 2 == 0, low, high)
    return frame.with_columns(pl.Series("age", np.round(two).astype(np.int64)))


def narrow(frame: pl.DataFrame) -> pl.DataFrame:
    middle = pl.col("age").mean()
    return frame.with_columns(((pl.col("age") - middle) * 0.8 + middle).round().cast(pl.Int64))


def shuffled_in_bins(frame: pl.DataFrame) -> pl.DataFrame:
    """Every number goes to another row of its wide bin: no code changes."""
    draw = np.random.default_rng(1)
    columns = []
    for name, edges in WIDE.items():
        values = frame[name].to_numpy().copy()
        bins = np.searchsorted(edges[1:-1], values, side="right")
        bins[np.isnan(values.astype(float))] = -1
        for each in np.unique(bins):
            place = np.flatnonzero(bins == each)
            values[place] = values[draw.permutation(place)]
        columns.append(pl.Series(name, values).fill_nan(None))
    return frame.with_columns(columns)


def independent(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(frame["stay"].shuffle(seed=5))


def _replaced(frame: pl.DataFrame, number: float, by: pl.Expr) -> pl.DataFrame:
    income = pl.col("income")
    return frame.with_columns(pl.when(income == number).then(by).otherwise(income).alias("income"))


FAULTS: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "scaled": (scaled, "the mean of income is"),
    "without zeros": (without_zeros, "zeros of income vanish"),
    "without a heap": (without_heap, "rows heaped at one number of income vanish"),
    "cut": (cut, "the upper tail of stay is cut"),
    "moved": (moved, "values of age lie elsewhere"),
    "narrow": (narrow, "the standard deviation of age is"),
    "shuffled in bins": (shuffled_in_bins, "age and stay do not go together as they did"),
    "independent": (independent, "age and stay do not go together as they did"),
}
"""By name: how to spoil a table, and what the headline must then say."""
