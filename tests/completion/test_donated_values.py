"""Dates counted from others, and descriptions, in completed tables (R23)."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from pegsynth import Feature, Schema
from pegsynth.methods.completion import completed_frames
from pegsynth.random import RandomStream

DAYS = [date(2020, 1, 1) + timedelta(days=int(each)) for each in range(700)]


def book(**options):
    return Schema(
        (
            Feature("ward", categories=("1", "2"), missing=("",)),
            Feature(
                "ward name",
                label_of="ward",
                value_labels=(("1", "heart"), ("2", "eyes")),
            ),
            Feature(
                "admitted",
                kind="date",
                edges=("2020-01-01", "2020-07-01", "2021-01-01", "2022-01-01"),
                missing=("",),
                **options,
            ),
            Feature(
                "discharged",
                kind="date",
                after="admitted",
                edges=(0, 3, 10, 60),
                missing=("",),
                not_applicable=("1900-01-01",),
                **options,
            ),
        )
    )


def stays(rows=500):
    random = np.random.default_rng(3)
    ward = random.integers(0, 2, rows)
    start = random.integers(0, 600, rows)
    length = np.where(ward == 0, 1, random.integers(5, 40, rows))
    lost = random.random((3, rows)) < 0.2
    lines = []
    for i in range(rows):
        begin, end = DAYS[start[i]], DAYS[start[i]] + timedelta(days=int(length[i]))
        end = date(1900, 1, 1) if i % 25 == 0 else end
        name = None if lost[0, i] else str(ward[i] + 1)
        text = {None: None, "1": "heart", "2": "eyes"}[name]
        known = not (lost[1, i] or lost[2, i]) or (end.year == 1900 and not lost[2, i])
        lines.append((name, text, None if lost[1, i] else begin, end if known else None))
    names = {"ward": pl.String, "ward name": pl.String, "admitted": pl.Date, "discharged": pl.Date}
    return pl.DataFrame(lines, schema=names, orient="row")


@pytest.mark.parametrize("written", ["dates", "texts"])
def test_the_order_of_dates_holds_and_lengths_are_those_of_donors(written):
    table, schema = stays(), book()
    if written == "texts":
        schema = book(format="%d.%m.%Y")
        table = table.with_columns(pl.col("admitted", "discharged").dt.to_string("%d.%m.%Y"))
    (completed,) = completed_frames(table, schema, RandomStream(4))
    assert completed.schema == table.schema
    assert sum(completed.null_count().row(0)) == 0
    for name in table.columns:
        seen = table[name].is_not_null()
        assert completed[name].filter(seen).equals(table[name].filter(seen))
    if written == "texts":
        dates = pl.col("admitted", "discharged").str.to_date("%d.%m.%Y")
        table, completed = table.with_columns(dates), completed.with_columns(dates)
    usual = pl.col("discharged").dt.year() > 1900
    days = (pl.col("discharged") - pl.col("admitted")).dt.total_days()
    lengths = completed.filter(usual).select(days).to_series()
    assert lengths.min() >= 1
    assert set(lengths) <= set(table.filter(usual).select(days).to_series().drop_nulls())


def test_a_description_goes_with_its_code():
    (completed,) = completed_frames(stays(), book(), RandomStream(5))
    pairs = set(completed.select("ward", "ward name").rows())
    assert pairs == {("1", "heart"), ("2", "eyes")}
