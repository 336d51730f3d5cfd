"""Exact audit of dates and times: the noisy tree over a calendar, weekdays, differences (R21).

Cases run like those of numbers (`auditing/numbers.py`). A difference is read off two dates of one
row, so that a row still lies in one cell of the grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pegsynth.arrays import Int64
from pegsynth.auditing.numbers import DELTA, NumberCase, number_case
from pegsynth.numbers.number_grid import grid_feature
from pegsynth.schema import Feature
from pegsynth.schema.column_encoders import DifferenceEncoder
from pegsynth.schema.encoding import ColumnEncoder

DATES = "dates"
FIRST = Feature("first", kind="date", edges=("2020-01-01", "2021-12-31"), missing=("",))  # type: ignore[arg-type]
"""The date that others are counted from."""


def date_counts(feature: Feature, values: list[Any]) -> Int64:
    """Count dates, given as texts, on the grid of their feature."""
    grid = grid_feature(feature)
    codes = ColumnEncoder(grid).encode(pl.Series(feature.name, values, dtype=pl.String))
    return np.bincount(codes, minlength=grid.category_count).astype(np.int64)


def difference_counts(feature: Feature, values: list[Any]) -> Int64:
    """Count dates by how long after another they are; every value is a pair of texts."""
    grid = grid_feature(feature)
    own, first = ([pair[place] for pair in values] for place in (0, 1))
    table = pl.DataFrame(
        {feature.name: own, FIRST.name: first},
        schema={feature.name: pl.String, FIRST.name: pl.String},
    )
    codes = DifferenceEncoder(grid, FIRST).encode_batch(table)
    return np.bincount(codes, minlength=grid.category_count).astype(np.int64)


def date_cases() -> list[NumberCase]:
    """Return a case for every kind of grid, for weekdays and for differences."""
    private: dict[str, Any] = {"edges": "private", "missing": ("",)}
    year: dict[str, Any] = {"lowest": "2020-01-01", "highest": "2021-12-31"}
    date = Feature("x", kind="date", **private, **year)
    stamp = Feature("x", kind="datetime", resolution="minute", **private, **year)
    clock = Feature("x", kind="time", **private)
    weekly = Feature("x", kind="date", weekday=True, **private, **year)
    after = Feature("x", kind="date", after=FIRST.name, highest=40, **private)
    public: Any = ("2020-01-01", "2020-06-15", "2021-12-31")
    shaped = Feature("x", kind="date", edges=public, inside="measured")
    dates = ("2020-02-29", "2020-03-01", "2021-12-31", "1999-01-01", None)
    pairs = (
        *(("2020-03-18", "2020-03-01"), ("2020-02-01", "2020-03-01"), ("2020-03-19", "2020-03-01")),
        *((None, "2020-03-01"), ("2020-03-18", None)),
    )
    texts: dict[str, Any] = {"count": date_counts}
    return [
        number_case("dates", date, dates, **texts),
        number_case("dates, approximate", date, dates, delta=DELTA, **texts),
        number_case("dates, two rows per unit", date, dates, unit=2, **texts),
        number_case(
            "dates with a time", stamp, ("2020-02-29T12:30:00", "2020-02-29T13:00:00"), **texts
        ),
        number_case("times of day", clock, ("12:30:00", "12:30:01", "12:44:59", None), **texts),
        number_case("weekdays", weekly, dates, **texts),
        number_case("weekdays, approximate", weekly, dates, delta=DELTA, **texts),
        number_case("dates inside public edges", shaped, dates[:3], **texts),
        number_case(
            "days after another date", after, pairs, others=(FIRST,), count=difference_counts
        ),
    ]
