"""Small panels with times of every kind."""

from __future__ import annotations

import datetime as dt

import polars as pl

from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import Panel

PERSON = Feature("person", role="identifier")
SEX = Feature("sex", categories=("f", "m"), missing=("",))
STATE = Feature("state", categories=("a", "b", "c"), missing=("", "?"))
SCORE = Feature(
    "score", kind="numeric", edges=(0.0, 10.0, 20.0, 40.0), dtype="int64", missing=("",)
)
DATE = Feature(
    "when",
    kind="date",
    edges="year",
    lowest=dt.date(2020, 1, 1),
    highest=dt.date(2026, 1, 1),
    missing=("",),
)
YEAR = Feature("when", kind="numeric", edges=(2000.0, 2010.0, 2020.0), dtype="int64", missing=("",))
WAVE = Feature(
    "when", kind="ordinal", categories=("1", "2", "3", "4"), dtype="int64", missing=("",)
)
TIMES = {"date": DATE, "number": YEAR, "ordinal": WAVE}
MOST = 3


def panel_book(kind: str = "date", **changes) -> Schema:
    """Return a reviewed schema whose time is of a kind."""
    panel = Panel("person", "when", MOST, ("sex",), **changes)
    return Schema((PERSON, SEX, TIMES[kind], STATE, SCORE), panel=panel, reviewed=True)


def moment(kind: str, number: int):
    """Return a time by its number."""
    if kind == "date":
        return dt.date(2020, 1, 1) + dt.timedelta(days=150 * number)
    return 2000 + number if kind == "number" else 1 + number % 4


def table(lines, kind: str = "date") -> pl.DataFrame:
    """Return lines of person, sex, number of the time, state and score as a table."""
    types = {"date": pl.Date, "number": pl.Int64, "ordinal": pl.Int64}
    columns = {
        "person": pl.Series([line[0] for line in lines], dtype=pl.String),
        "sex": pl.Series([line[1] for line in lines], dtype=pl.String),
        "when": pl.Series(
            [None if line[2] is None else moment(kind, line[2]) for line in lines],
            dtype=types[kind],
        ),
        "state": pl.Series([line[3] for line in lines], dtype=pl.String),
        "score": pl.Series([line[4] for line in lines], dtype=pl.Int64),
    }
    return pl.DataFrame(columns)
