"""Dates and times that a release measures: grids of a calendar, weekdays, differences (R21)."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pegsynth
from command import check_refused, done, pegs
from pegsynth.auditing.measured_codecs import exact_counts as date_counts
from pegsynth.codec.estimate import cell_masses
from pegsynth.codec.measured_numbers import settle
from pegsynth.codec.number_grid import grid_of, grid_schema, levels_of
from pegsynth.codec.tree import exact_tree
from pegsynth.privacy import NoisyCounts
from pegsynth.schema import Feature, Schema
from pegsynth.schema.calendar_units import moment

ROWS = 4000
PRIVATE = {"edges": "private"}
SCHEMA = Schema(
    (
        Feature("ward", categories=("a", "b")),
        Feature("admitted", kind="date", weekday=True, **PRIVATE),
        Feature("discharged", kind="date", after="admitted", missing=("",), **PRIVATE),
        Feature("clock", kind="time", **PRIVATE),
        Feature("scan", kind="datetime", lowest="2018-01-01", highest="2022-12-31", **PRIVATE),
    ),
    reviewed=True,
)


def table(rows=ROWS, seed=1):
    """Return stays of 2019 to 2021, fewer at weekends, longer in ward b; some have not ended."""
    words = np.random.default_rng(seed)
    days = np.arange(17_897, 18_993)
    weight = np.where((days - 4) % 7 >= 5, 0.2, 1.0)
    admitted = words.choice(days, rows, p=weight / weight.sum())
    ward = words.integers(0, 2, rows)
    stay = words.geometric(0.2, rows) + 10 * ward
    seconds = words.integers(8 * 3600, 18 * 3600, rows)
    left = pl.Series((admitted + stay).astype(np.int32)).cast(pl.Date)
    return pl.DataFrame(
        {
            "ward": np.array(["a", "b"])[ward],
            "admitted": pl.Series(admitted.astype(np.int32)).cast(pl.Date),
            "discharged": left.set(pl.Series(words.random(rows) < 0.05), None),
            "clock": pl.Series(seconds * 10**9).cast(pl.Time),
            "scan": pl.Series((admitted * 86_400 + seconds) * 10**6).cast(pl.Datetime("us")),
        }
    )


TABLE = table()


@settings(max_examples=60)
@given(
    st.sampled_from(["date", "datetime", "time"]),
    st.dates(dt.date(1950, 1, 1), dt.date(2000, 1, 1)),
    st.integers(1, 20_000),
    st.sampled_from(["hour", "minute", "second"]),
)
def test_levels_nest_and_cover_the_whole_range(kind, first, days, resolution):
    options = {"resolution": resolution} if kind != "date" else {}
    if kind != "time":
        options |= {"lowest": first, "highest": first + dt.timedelta(days)}
    feature = Feature("x", kind=kind, **PRIVATE, **options)
    grid = grid_of(feature)
    assert grid.edges[0] == (feature.lowest or 0)
    assert grid.cells <= 1 << 21
    assert (np.diff(grid.edges) > 0).all()
    for level in range(1, len(grid.starts)):
        assert set(grid.starts[level - 1]) <= set(grid.starts[level])
    assert grid.starts[-1].tolist() == list(range(grid.cells))
    if kind == "date":
        assert (np.diff(grid.edges) == 1).all()
        assert grid.edges[-1] == moment("date", "day", first) + days + 1
        starts = [
            dt.date(1970, 1, 1) + dt.timedelta(int(day)) for day in grid.edges[grid.starts[1]]
        ]
        assert all(day.day == 1 for day in starts[1:])


def test_long_and_short_ranges_have_suitable_levels():
    assert levels_of("datetime", "second", 0, 100 * 86_400)[-1] == "minute"
    assert levels_of("datetime", "second", 0, 10_000 * 86_400)[-1] == "hour"
    assert levels_of("datetime", "second", 0, 1_000_000 * 86_400)[-1] == "day"
    assert levels_of("date", "day", 0, 3_000_000)[-1] == "month"
    assert levels_of("time", "minute", 0, 1440) == ("hour", "quarter hour", "minute", "minute")


def test_exact_trees_have_the_days_that_occur():
    feature = Feature("x", kind="date", **PRIVATE)
    days = ["2020-02-29"] * 30 + ["2020-03-02"] * 10
    tree = exact_tree(date_counts(feature, days), feature)
    grid = grid_of(feature)
    masses, _ = cell_masses(tree, grid)
    held = {int(grid.edges[cell]): masses[cell] for cell in np.flatnonzero(masses > 1e-6)}
    assert held == pytest.approx({18_321: 30.0, 18_323: 10.0})
    settled = settle(Schema((feature,)), {"x": tree}, 6)
    shape = settled.shapes["x"]
    drawn = {
        shape.values(np.array([each]), np.array([0.5]))[0] for each in range(len(shape.shares))
    }
    assert drawn == {18_321, 18_323}


def test_a_difference_is_counted_although_the_other_date_is_not_measured():
    public = SCHEMA.with_feature(
        "admitted", edges=("2019-01-01", "2020-01-01", "2021-12-31"), weekday=False
    )
    assert "admitted" in grid_schema(public).names
    for method in ("pegs-once", "bootstrap"):
        budget = {"epsilon": 5.0, "delta": 1e-6} if method == "pegs-once" else {}
        release = pegsynth.synthesize(
            TABLE, public, method=method, rows=500, accept_unreviewed_schema=True, **budget
        )
        frame = release.frames[0]
        assert (frame["discharged"] >= frame["admitted"]).drop_nulls().all()


@pytest.mark.parametrize("method", ["pegs", "pegs-once", "marginal"])
def test_private_methods_pay_for_dates_inside_its_total(method):
    release = pegsynth.synthesize(TABLE, SCHEMA, method=method, epsilon=20.0, delta=1e-6, rows=300)
    assert 19.0 < release.ledger.guarantee.epsilon <= 20.0
    paid = [e for e in release.ledger.events if isinstance(e, NoisyCounts) and e.purpose == "edges"]
    assert {name for event in paid for name in event.features} == set(SCHEMA.names[1:])
    frame = release.frames[0]
    assert frame.schema == TABLE.schema
    assert (frame["discharged"] >= frame["admitted"]).drop_nulls().all()
    assert frame["admitted"].dt.year().is_between(2018, 2022).all()
    assert "dates-in-order" in {each.code for each in release.ledger.assumptions}


def test_weekdays_are_kept_where_days_are_too_few_to_be_seen():
    rows = 6000
    real = table(rows)
    share = (real["admitted"].dt.weekday() >= 6).mean()
    found = {}
    for weekday in (True, False):
        schema = SCHEMA.with_feature("admitted", weekday=weekday)
        release = pegsynth.synthesize(
            real,
            schema,
            method="pegs-once",
            epsilon=2.0,
            delta=1e-6,
            rows=20_000,
            seed=7,
            accept_unreviewed_schema=True,
        )
        found[weekday] = (release.frames[0]["admitted"].dt.weekday() >= 6).mean()
    # Weekends have 1 in 17 rows; days alone drown in noise, and 2 of 7 days are weekends.
    assert found[True] == pytest.approx(share, abs=0.04)
    assert found[False] > 0.15


def test_texts_come_back_in_their_format_and_a_wrong_date_is_refused(tmp_path):
    text = TABLE.select(
        "ward", pl.col("admitted", "discharged").dt.to_string("%d.%m.%Y"), pl.col("clock").cast(str)
    )
    text.write_csv(tmp_path / "stays.csv")
    done("schema", tmp_path / "stays.csv", "-o", tmp_path / "schema.toml")
    schema = Schema.load(tmp_path / "schema.toml")
    assert [column.kind for column in schema.columns] == ["nominal", "date", "date", "time"]
    assert schema["admitted"].format == "%d.%m.%Y"
    schema = schema.with_feature("discharged", after="admitted")
    Schema(schema.columns, reviewed=True).save(tmp_path / "reviewed.toml")
    out = tmp_path / "out.csv"
    command = ("--schema", tmp_path / "reviewed.toml", "--epsilon", "5", "--rows", "200")
    done("synthesize", tmp_path / "stays.csv", *command, "-o", out)
    frame = pl.read_csv(out, infer_schema=False)
    days = frame.select(pl.col("admitted", "discharged").str.to_date("%d.%m.%Y"))
    assert (days["discharged"] >= days["admitted"]).drop_nulls().all()
    assert frame["clock"].str.contains("^[0-9]{2}:[0-9]{2}:[0-9]{2}$").all()
    wrong = text.with_columns(admitted=pl.lit("30.02.2020"))
    wrong.write_csv(tmp_path / "wrong.csv")
    refused = pegs("synthesize", tmp_path / "wrong.csv", *command, "-o", tmp_path / "no.csv")
    check_refused(refused, "wrong.csv", "'admitted'", "%d.%m.%Y", "missing")
    assert "30.02" not in refused.err
    assert not (tmp_path / "no.csv").exists()


def test_releases_of_dates_are_evaluated():
    public = SCHEMA.with_feature("discharged", edges=(0, 2, 5, 10, 20, 100))
    edges = {"edges": "quarter", "lowest": "2019-01-01", "highest": "2021-12-31"}
    public = Schema(
        (public["ward"], Feature("admitted", kind="date", **edges), public["discharged"])
    )
    real = TABLE.select(public.names)
    result = pegsynth.evaluate(real, [table(2000, seed=2).select(public.names)], public)
    assert result.records
