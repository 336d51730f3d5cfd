"""Measures of panels: exact on tables whose transitions are known (R24)."""

from __future__ import annotations

import polars as pl
import pytest
from panel_tables import panel_book, table

import pegsynth
from pegsynth.datasets import panel, panel_schema
from pegsynth.evaluation.utility.panel_records import PANEL_KEYS, panel_records

ONE = [("p", "f", 0, "a", 1), ("p", "f", 1, "b", 1), ("q", "f", 0, "a", 1), ("q", "f", 1, "a", 1)]


def figures(original, synthetic, kind="ordinal"):
    records = panel_records(table(original, kind), [table(synthetic, kind)], panel_book(kind))
    return {(record.name, record.subject): record.value for record in records}


def test_a_table_is_at_no_distance_from_itself():
    found = figures(ONE, ONE)
    distances = [value for (name, _), value in found.items() if name.endswith("_distance")]
    assert distances
    assert not any(distances)


def test_transitions_rows_first_and_last_are_counted():
    other = [("p", "f", 0, "a", 1), ("q", "f", 0, "a", 1), ("q", "f", 1, "b", 1)]
    found = figures(ONE, other)
    # (a, b) and (a, a) once each against (a, b) alone.
    assert found["transition_distance", "state"] == pytest.approx(0.5)
    assert found["rows_per_unit_distance", ""] == pytest.approx(0.5)
    assert found["first_row_distance", "state"] == pytest.approx(0.0)
    assert found["last_row_distance", "state"] == pytest.approx(0.0)


def test_units_that_cannot_be_are_counted():
    wrong = [("p", "f", 0, "a", 1), ("p", "m", 1, "a", 1), ("q", "f", 0, "a", 1)]
    assert figures(ONE, wrong)["inconsistent_units", ""] == pytest.approx(0.5)
    long = [("p", "f", i % 4, "a", 1) for i in range(4)]
    assert figures(ONE, long)["inconsistent_units", ""] == 1


def test_histories_that_reappear_are_those_of_one_unit():
    assert figures(ONE, ONE)["reappearing_histories", ""] == 1
    assert figures([*ONE, *[(f"{p}2", *rest) for p, *rest in ONE]], ONE)[
        "reappearing_histories", ""
    ] == pytest.approx(0.0)


def test_rows_that_are_shuffled_among_people_lose_transitions():
    """The broken twin: one-way tables are the same, and the link is gone."""
    original = panel(400, seed=1)
    shuffled = original.with_columns(pl.col("patient").shuffle(seed=1))
    twin, real = (
        {r.name: r.value for r in panel_records(original, [each], panel_schema()) if not r.subject}
        for each in (shuffled, original)
    )
    assert real["transition_distance"] == 0
    assert twin["transition_distance"] > 0.2


def test_an_evaluation_has_them_for_panels_alone():
    original, other = panel(150, seed=1), panel(150, seed=2)
    found = pegsynth.evaluate(original, other, panel_schema(), progress=False)
    assert set(PANEL_KEYS) <= set(found.summary)
    plain = pegsynth.Schema(panel_schema().features)
    without = pegsynth.evaluate(
        original.drop("patient"), other.drop("patient"), plain, progress=False
    )
    assert not set(PANEL_KEYS) & set(without.summary)
