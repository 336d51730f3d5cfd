"""Releases of a table of patients with one deliberate fault of groups, rows or models each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from pegsynth.schema import Feature, Schema

FORMULA = "stay ~ age + C(sex)"
TARGET = "readmitted"
RACES = ("white", "black", "hispanic", "asian", "other")
DIAGNOSES = ("heart", "lung", "birth", "injury")


def schema() -> Schema:
    quasi = {"role": "quasi-identifier"}
    return Schema(
        (
            Feature("sex", categories=("F", "M"), **quasi),
            Feature("race", categories=RACES, **quasi),
            Feature("age", kind="numeric", edges=tuple(range(0, 101, 10)), dtype="int64", **quasi),
            Feature("diagnosis", categories=DIAGNOSES, role="sensitive"),
            Feature("stay", kind="numeric", edges=(0, 2, 4, 8, 16, 101), dtype="int64"),
            Feature("flag", categories=("no", "yes")),
            Feature("mark", categories=("no", "yes")),
            Feature("readmitted", categories=("no", "yes")),
        )
    )


def table(rows: int, seed: int) -> pl.DataFrame:
    """Patients; no man gives birth, one in twenty-five is asian, flag and mark hardly vary."""
    draw = np.random.default_rng(seed)
    sex = draw.integers(0, 2, rows)
    age = draw.integers(0, 100, rows)
    diagnosis = draw.choice(4, rows, p=(0.4, 0.25, 0.2, 0.15))
    diagnosis = np.where((sex == 1) & (diagnosis == 2), 3, diagnosis)
    stay = np.floor(np.exp(0.3 + age / 50 + 0.3 * sex + draw.normal(0, 0.6, rows))).clip(0, 100)
    chance = 1 / (1 + np.exp(3 - age / 25 - 0.1 * stay))
    return pl.DataFrame(
        {
            "sex": np.array(["F", "M"])[sex],
            "race": np.array(RACES)[draw.choice(5, rows, p=(0.6, 0.2, 0.12, 0.04, 0.04))],
            "age": age,
            "diagnosis": np.array(DIAGNOSES)[diagnosis],
            "stay": stay.astype(np.int64),
            "flag": np.where(draw.random(rows) < 0.004, "yes", "no"),
            "mark": np.where(draw.random(rows) < 0.004, "yes", "no"),
            "readmitted": np.where(draw.random(rows) < chance, "yes", "no"),
        }
    )


def bootstrap(original: pl.DataFrame, seed: int) -> pl.DataFrame:
    return original.sample(original.height, with_replacement=True, seed=seed)


def group_lost(frame: pl.DataFrame) -> pl.DataFrame:
    race = pl.col("race")
    return frame.with_columns(
        pl.when(race == "asian").then(pl.lit("white")).otherwise(race).alias("race")
    )


def group_grown(frame: pl.DataFrame) -> pl.DataFrame:
    race, every = pl.col("race"), pl.int_range(pl.len()) % 10 == 0
    return frame.with_columns(pl.when(every).then(pl.lit("other")).otherwise(race).alias("race"))


def combination_lost(frame: pl.DataFrame) -> pl.DataFrame:
    """Old black women become white, and as many white men black: both shares stay."""
    old = (pl.col("sex") == "F") & (pl.col("race") == "black") & (pl.col("age") >= 50)
    count = int(frame.select(old.sum()).item())
    white = (pl.col("sex") == "M") & (pl.col("race") == "white")
    first = white & (white.cum_sum() <= count)
    race = pl.when(old).then(pl.lit("white")).when(first).then(pl.lit("black"))
    return frame.with_columns(race.otherwise(pl.col("race")).alias("race"))


def impossible(frame: pl.DataFrame) -> pl.DataFrame:
    """Diagnoses of every twentieth row go to another row."""
    some = np.arange(0, frame.height, 5)
    diagnosis = frame["diagnosis"].to_numpy().copy()
    diagnosis[some] = diagnosis[some][np.random.default_rng(1).permutation(len(some))]
    return frame.with_columns(pl.Series("diagnosis", diagnosis))


def sign_changed(frame: pl.DataFrame) -> pl.DataFrame:
    """Men and women of each age change their stays."""
    return frame.with_columns(
        pl.when(pl.col("sex") == "F").then(pl.lit("M")).otherwise(pl.lit("F")).alias("sex")
    )


def significance_lost(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(frame["sex"].shuffle(seed=3))


def unpredictable(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(frame["readmitted"].shuffle(seed=3))


def torn(frame: pl.DataFrame) -> pl.DataFrame:
    """Stays of all ages alike."""
    return frame.with_columns(frame["age"].shuffle(seed=3))


FAULTS: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str, str]] = {
    "group lost": (group_lost, "Subgroups change", "race = asian vanishes"),
    "group grown": (group_grown, "Subgroups change", "race = other becomes more common"),
    "combination lost": (combination_lost, "Subgroups change", "sex = F, race = black, age = "),
    "impossible": (impossible, "Impossible rows appear", "sex = M with diagnosis = birth"),
    "sign changed": (sign_changed, "Regressions change", "C(sex)[M] changes its sign"),
    "significance lost": (significance_lost, "Regressions change", "loses its significance"),
    "unpredictable": (unpredictable, "Predictions change", "readmitted is predicted worse"),
    "torn": (
        torn,
        "Pairs of features lose their dependence",
        "age and stay depend less on each other",
    ),
}
"""By name: how to spoil a table, the kind of fault, and what the headline must then say."""
