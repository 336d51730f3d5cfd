"""Weighted tables are compared with chance in the rows that were released (Kish)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegsynth
from pegsynth.inference.combining_rules import effective_rows
from pegsynth.options import WEIGHT, named_weights
from pegsynth.pipeline.drawn_tables import WEIGHT_DIGITS, written_weights
from pegsynth.publishing.report.verdict import verdict
from pegsynth.publishing.report.wording import Lookup
from pegsynth.schema import Feature, Schema

SCHEMA = Schema(
    (
        Feature("group", categories=("a", "b", "c"), role="quasi-identifier"),
        Feature("sex", categories=("f", "m"), role="quasi-identifier"),
        Feature("pay", "numeric", edges=(0.0, 10.0, 20.0, 40.0), dtype="double"),
        Feature("age", "numeric", edges=(0.0, 30.0, 60.0, 90.0), dtype="double"),
    ),
    reviewed=True,
)


def table(rows, seed, *, shift=0.0):
    """Return rows of which, shifted, groups, numbers and dependences are off."""
    words = np.random.default_rng(seed)
    group = words.choice(3, rows, p=(0.5 - shift, 0.45, 0.05 + shift))
    pay = words.gamma(2.0, 4.0 + 6 * shift, rows)
    age = np.clip(30 + (1 - 4 * shift) * 2 * pay + words.normal(0, 8, rows), 0, 90)
    return pl.DataFrame(
        {
            "group": [("a", "b", "c")[i] for i in group],
            "sex": [("f", "m")[i] for i in words.integers(0, 2, rows)],
            "pay": np.clip(pay, 0, 40),
            "age": age,
        }
    )


def weighted(frame, weights):
    """Return a table with its weights, and replicates that are the same."""
    return frame.with_columns(pl.Series(name, weights) for name in named_weights(WEIGHT, 3))


def problems(frame):
    return pegsynth.evaluate(table(3000, 1), frame, SCHEMA, threads=1)


@pytest.mark.parametrize("shift", [0.05, 0.1, 0.2])
def test_uneven_weights_make_no_verdict_kinder(shift):
    """A table of ten copies of some rows, and the same table of which one copy counts for all.

    Every weighted figure is the same, so that what is off must be the same as well: the second
    table is worth a tenth of the rows, and is no better for it.
    """
    copies = pl.concat([table(80, 2, shift=shift)] * 10)
    even = problems(weighted(copies, np.ones(800)))
    uneven = problems(weighted(copies, np.repeat([10.0, *[0.0] * 9], 80)))
    count = Lookup(even).record("utility_faults").value
    assert count > 0
    assert Lookup(uneven).record("utility_faults").value >= count
    for name in ("kolmogorov_distance", "wasserstein_distance", "pearson_distance", "tvd2"):
        found = [Lookup(each).record(name) for each in (even, uneven)]
        assert found[0].baseline == pytest.approx(found[1].baseline, rel=1e-9)
        assert found[0].n == found[1].n == 800


def test_effective_rows_are_a_record_and_a_sentence():
    found = problems(weighted(table(400, 3), np.repeat([3.0, 1.0], 200)))
    record = Lookup(found).record("effective_rows")
    assert record.value == pytest.approx((800**2) / (200 * 10))
    assert (record.baseline, record.n, record.better) == (400, 400, "higher")
    sentences = verdict(Lookup(found))["utility_sentences"]
    assert "Weighted, 400 rows say as much as 320 of equal weight (80.00%)" in " ".join(sentences)
    plain = problems(table(400, 3))
    assert Lookup(plain).record("effective_rows") is None


def test_effective_rows():
    assert effective_rows(np.ones(7)) == pytest.approx(7.0)
    assert effective_rows(np.zeros(3)) == 0.0


numbers = st.one_of(st.just(0.0), st.floats(1e-6, 1e9), st.floats(1e-3, 1e3))


@given(st.lists(numbers, max_size=40), st.floats(1e-3, 1e9))
def test_written_weights_have_six_digits(values, last):
    weights = np.array([[*values, last], np.ones(len(values) + 1)])
    found = written_weights(weights)
    assert found.shape == weights.shape
    for text in map(repr, found.ravel().tolist()):
        assert float(f"{float(text):.{WEIGHT_DIGITS}g}") == float(text)
    # Six digits are right to 5 in a million.
    np.testing.assert_allclose(found, weights, rtol=5.1e-6)
