"""Dates and times are compared as moments: distances in their unit, and a verdict."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.schema import Feature, Schema

ROWS = 2_000
FIRST = dt.date(2020, 1, 1)
EDGES = tuple(f"20{year}-01-01" for year in range(20, 24))
SCHEMA = Schema(
    (
        Feature("day", kind="date", edges=EDGES, missing=("",), dtype="string"),
        Feature("sex", categories=("f", "m"), dtype="string"),
    ),
    reviewed=True,
)


def visits(shift=0, seed=1):
    source = np.random.default_rng(seed)
    days = source.integers(0, 300, ROWS) + shift
    texts = [str(FIRST + dt.timedelta(days=int(each))) for each in days]
    texts[:20] = [""] * 20
    return pl.DataFrame({"day": texts, "sex": source.choice(["f", "m"], ROWS)})


def distances(found):
    names = ("kolmogorov_distance", "wasserstein_distance")
    return [
        next(r for r in found.records if (r.name, r.subject) == (name, "day")) for name in names
    ]


def test_the_same_dates_are_no_distance_apart():
    found = pegsynth.evaluate(visits(), visits(), SCHEMA)
    apart, far = distances(found)
    assert apart.value == far.value == 0
    assert "counted in days" in far.note
    assert "20 original, 20 synthetic" in far.note


def test_dates_inside_one_bin_that_move_are_told():
    """All of them stay within their year, so that codes are the same."""
    found = pegsynth.evaluate(visits(), visits(60), SCHEMA)
    apart, far = distances(found)
    assert far.value == pytest.approx(60)
    assert apart.value == pytest.approx(60 / 300, abs=0.05)
    assert any("values of day lie elsewhere" in fault for fault in found.faults), found.faults


def test_fresh_dates_are_not_blamed():
    """The allowance has a false-alarm rate of 0.1 % for all kinds of faults together."""
    found = pegsynth.evaluate(visits(), visits(seed=2), SCHEMA)
    assert not any("day" in fault for fault in found.faults), found.faults


def test_labels_of_bins_are_no_dates():
    labels = pegsynth.synthesize(
        visits(), SCHEMA, method="bootstrap", rows=ROWS, decode="labels", seed=1
    )
    found = pegsynth.evaluate(visits(), labels.frames[0], SCHEMA)
    apart = next(r for r in found.records if (r.name, r.subject) == ("kolmogorov_distance", "day"))
    assert apart.value is None
    assert "labels of bins" in apart.note
