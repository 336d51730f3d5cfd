"""Rows of a unit to one wide row and back (R24): by its own values alone, and without a loss."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panel_tables import MOST, TIMES, panel_book, table

from pegsynth.codec.folding import Folding, folded_reader
from pegsynth.codec.unfolding import Unfolding
from pegsynth.errors import DataError
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.table_input import open_table

STATES, SCORES = ("a", "b", "c", None), (0, 5, 15, 39, None)


@st.composite
def people(draw, most_rows=MOST):
    """Lines of some people, each with one sex."""
    lines = []
    for person in range(draw(st.integers(1, 5))):
        sex = draw(st.sampled_from(("f", "m", None)))
        for _ in range(draw(st.integers(1, most_rows))):
            time = draw(st.one_of(st.none(), st.integers(0, 3)))
            state, score = draw(st.sampled_from(STATES)), draw(st.sampled_from(SCORES))
            lines.append((f"p{person}", sex, time, state, score))
    return lines


def wide_of(frame, schema, **told):
    return pl.concat(list(folded_reader(open_table(frame), schema, **told).batches()))


def histories(frame):
    """Every person as a list of rows, names of people aside."""
    groups = frame.partition_by("person", maintain_order=True)
    return sorted(sorted(map(str, group.drop("person").rows())) for group in groups)


@pytest.mark.parametrize("kind", TIMES)
@settings(max_examples=15, deadline=None)
@given(lines=people())
def test_unfolding_what_was_folded_gives_every_unit_back(kind, lines):
    frame, schema = table(lines, kind), panel_book(kind)
    wide = wide_of(frame, schema)
    assert wide.height == frame["person"].n_unique()
    back = Unfolding(wide_schema(schema), tuple(frame.columns)).rows(wide)
    assert back.columns == frame.columns
    texts = [each.with_columns(pl.exclude("person").cast(pl.String)) for each in (back, frame)]
    assert histories(texts[0]) == histories(texts[1])
    # Known times do not run backwards, and unknown ones come last.
    times = back.group_by("person").agg("when")["when"].to_list()
    for known in times:
        there = [time for time in map(str, known) if time != "None"]
        assert there == sorted(there)
        assert all(time is None for time in known[len(there) :])


@pytest.mark.parametrize("kind", TIMES)
@settings(max_examples=8, deadline=None)
@given(lines=people(most_rows=6), random=st.randoms())
def test_where_rows_stand_and_who_else_is_there_changes_nothing(kind, lines, random):
    schema = panel_book(kind)
    frame = table(lines, kind)
    shuffled = list(lines)
    random.shuffle(shuffled)
    wide = wide_of(frame, schema)
    assert wide.equals(wide_of(table(shuffled, kind), schema))
    names = sorted(set(frame["person"]))
    for place, name in enumerate(names):
        alone = wide_of(frame.filter(pl.col("person") == name), schema)
        assert alone.equals(wide[place : place + 1])


@pytest.mark.parametrize("most_cells", [1, 20, 200, 1 << 20])
def test_shares_change_nothing_but_the_order(most_cells):
    lines = [(f"p{i % 40}", "f", i % 7, "abc"[i % 3], i % 40) for i in range(300)]
    schema = panel_book("number")
    whole, shared = (
        wide_of(table(lines, "number"), schema, most_cells=n) for n in (1 << 20, most_cells)
    )
    assert sorted(map(str, whole.rows())) == sorted(map(str, shared.rows()))


def test_rows_beyond_the_most_are_cut_by_time_and_ties_by_values():
    lines = [
        ("p", "f", 3, "a", 1),
        ("p", "f", 1, "b", 30),
        ("p", "f", 1, "a", 30),
        ("p", "f", 0, "c", 2),
    ]
    wide = wide_of(table(lines, "number"), panel_book("number"))
    assert wide.row(0, named=True) == {
        "sex": "f",
        "when_1": "2000",
        "state_1": "c",
        "score_1": "2",
        "person_rows": 3,
        "when_2": "1",
        "state_2": "a",
        "score_2": "30",
        "when_3": "0",
        "state_3": "b",
        "score_3": "30",
    }


def test_of_contradicting_fixed_values_the_first_known_one_counts():
    lines = [("p", None, 0, "a", 1), ("p", "m", 1, "a", 1), ("p", "f", 2, "a", 1)]
    assert wide_of(table(lines), panel_book())["sex"].to_list() == ["m"]
    assert wide_of(table(lines[:1]), panel_book())["sex"].to_list() == [None]


def test_times_of_any_type_and_text_fold_alike():
    lines = [("p", "f", 2, "a", 1), ("p", "f", 0, "b", 2), ("q", "m", None, "c", None)]
    frame, schema = table(lines), panel_book()
    typed = wide_of(frame, schema)
    text = wide_of(frame.with_columns(pl.all().cast(pl.String)), schema)
    assert typed.equals(text)
    moments = wide_of(frame.with_columns(pl.col("when").cast(pl.Datetime("us"))), schema)
    assert typed.equals(moments)


def test_a_row_without_a_unit_is_refused():
    frame = table([("p", "f", 0, "a", 1), ("", "f", 0, "a", 1)])
    with pytest.raises(DataError, match="unit column 'person': 1 values are missing"):
        wide_of(frame, panel_book())


def test_columns_are_checked():
    frame = table([("p", "f", 0, "a", 1)])
    with pytest.raises(DataError, match="'score' of the schema is not in the table"):
        folded_reader(open_table(frame.drop("score")), panel_book())
    with pytest.raises(DataError, match="'more' is not in the schema"):
        folded_reader(open_table(frame.with_columns(more=1)), panel_book())


def test_added_times_stay_within_their_public_domain():
    schema = panel_book("number")
    frame = table([("p", "f", 0, "a", 1), ("p", "f", 19, "a", 1)], "number")
    wide = wide_of(frame, schema).with_columns(when_1=pl.lit("2015"))
    back = Unfolding(wide_schema(schema)).rows(wide)
    assert back["when"].cast(pl.Int64).to_list()[0] == 2015


def test_positions_are_numbered_through_all_frames():
    schema = panel_book()
    wide = wide_of(table([(f"p{i}", "f", 0, "a", 1) for i in range(5)]), schema)
    unfolding = Unfolding(wide_schema(schema))
    rows = [unfolding.rows(wide[:3]), unfolding.rows(wide[3:], 4)]
    assert np.array_equal(pl.concat(rows)["person"], np.arange(1, 6))


def test_folding_needs_a_panel():
    from pegsynth.schema import Schema

    with pytest.raises(ValueError, match="no panel"):
        _ = Folding(Schema(panel_book().columns)).panel
