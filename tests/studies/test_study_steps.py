"""The written-down run on three features: counts, perturbation, visits, resets."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.publishing.report.charts import Look
from pegsynth.publishing.report.drawing import HEAT
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema
from studies.paper import step_charts
from studies.paper.demonstration import Demonstration, demonstrate, part_of
from studies.paper.setting import setting_of
from studies.paper.step_figures import (
    answer_rows,
    block_rows,
    step_figures,
    steps_table,
    visit_rows,
)

SCHEMA = discharge_schema()
NAMES = ("sex", "age.yrs", "race")


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    return encode(discharge(2000, 1), SCHEMA)


@pytest.fixture(scope="module")
def run(codes) -> Demonstration:
    pool = encode(discharge(300, 2), SCHEMA)
    return demonstrate(codes, SCHEMA, NAMES, RandomStream("run"), pool=pool, block_size=40)


def test_blocks_are_counts_of_the_table(run, codes) -> None:
    places = [SCHEMA.index(name) for name in NAMES]
    for target, place in enumerate(places):
        first, second = (places[head] for head in run.heads[target])
        line = run.line(target, (1, 0))
        rows = codes[(codes[:, first] == 1) & (codes[:, second] == 0)]
        by_hand = np.bincount(rows[:, place], minlength=SCHEMA.category_counts[place])
        assert (run.counts[target][line] == by_hand).all()
        assert run.counts[target].sum() == len(codes)


def test_perturbed_shares_are_those_of_the_paper(run) -> None:
    for target, counts in enumerate(run.counts):
        categories = counts.shape[1]
        total = counts.sum(axis=1, keepdims=True)
        by_hand = (counts + run.alpha) / (total + categories * run.alpha)
        assert run.perturbed(target) == pytest.approx(by_hand)
        assert run.counted(target).sum(axis=1)[total.ravel() > 0] == pytest.approx(1)
        assert (run.counted(target)[total.ravel() == 0] == 0).all()


def test_visits_follow_the_row_and_reset_what_was_asked(run) -> None:
    row, asked = list(run.seed_row), set()
    assert len(run.visits) == 40 * 3
    for number, visit in enumerate(run.visits):
        assert (visit.row, visit.target) == (number // 3 + 1, number % 3)
        assert visit.key == tuple(row[head] for head in run.heads[visit.target])
        assert visit.before == row[visit.target]
        assert visit.answered == ((visit.target, visit.key) not in asked)
        asked.add((visit.target, visit.key))
        row[visit.target] = visit.drawn
    assert not all(visit.answered for visit in run.visits)


def test_first_answers_come_from_counts_and_later_ones_do_not(codes) -> None:
    """Without virtual rows to speak of, an entry that never saw a category cannot draw it."""
    pool = encode(discharge(300, 2), SCHEMA)
    run = demonstrate(
        codes, SCHEMA, NAMES, RandomStream("x"), pool=pool, block_size=60, epsilon=200.0
    )
    held = [run.counts[v.target][run.line(v.target, v.key)] for v in run.visits]
    first = [
        h[v.drawn] > 0 for v, h in zip(run.visits, held, strict=True) if v.answered and h.any()
    ]
    later = [h[v.drawn] > 0 for v, h in zip(run.visits, held, strict=True) if not v.answered]
    assert all(first)
    assert not all(later)


def test_figures_and_tables_of_the_run(run) -> None:
    drawn = step_figures(run)
    assert [each.figure.name for each in drawn] == [
        "figure-1-blocks",
        "figure-2-visits",
        "figure-3-reset",
    ]
    rows = block_rows(run)
    assert len(rows) == 2 * sum(counts.size for counts in run.counts)
    assert sum(row["count"] for row in rows) == 2 * 3 * 2000
    drawn_now = [row for row in answer_rows(run) if row["drawn"] == "drawn"]
    assert len(drawn_now) == 3
    assert len(visit_rows(run)) == 120
    for each in drawn:
        assert each.figure.drawn().height > 100


def test_a_part_of_a_schema_keeps_the_rules_that_speak_of_it_alone() -> None:
    schema = Schema(
        tuple(Feature(name, categories=("x", "y"), heads=()) for name in "abcd"),
        rules=(Rule.of({1: [0], 3: [1]}, "kept"), Rule.of({0: [0], 1: [0]}, "gone")),
    )
    small = part_of(schema, [3, 1, 2])
    assert small.names == ("d", "b", "c")
    assert [rule.label for rule in small.rules] == ["kept"]
    assert small.breaks_a_rule(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])).tolist() == [
        True,
        False,
        False,
    ]


def test_the_table_of_sampling_steps() -> None:
    from pegsynth.methods.gibbs.samplers import TraceStep

    schema = Schema(tuple(Feature(name, categories=("x", "y")) for name in "ab"))
    table = steps_table(schema, (0, 0), [TraceStep(0, (1, 0)), TraceStep(1, (1, 0))])
    assert table == [
        {"sequence": "seed", "a": "x", "b": "x"},
        {"sequence": "X1 | X-1", "a": "*y*", "b": "x"},
        {"sequence": "X2 | X-2", "a": "y", "b": "*x*"},
        {"sequence": "final row", "a": "changed", "b": "as in the seed"},
    ]


def test_every_entry_that_is_known_is_a_cell(run) -> None:
    svg = step_charts.entries(block_rows(run), Look()).svg
    known = sum(row["value"] is not None for row in block_rows(run))
    # The page and the keys of the legend are no cells.
    assert svg.count("<rect") == known + 1 + len(HEAT)


def test_long_labels_stay_in_their_cells() -> None:
    rows = [
        {"row": i, "line": "ward", "label": "Accident and emergency", "series": "x", "text": "t"}
        for i in range(1, 11)
    ]
    svg = step_charts.visits(rows, Look()).svg
    labels = re.findall(r">(Acc[^<]*)</text>", svg)
    assert len(labels) == 10
    assert all(label.endswith("…") and len(label) < 12 for label in labels)


def test_the_example_is_of_features_with_more_than_one_category() -> None:
    names = ("one", "a", "b", "c")
    features = tuple(
        Feature(name, categories=("x",) if name == "one" else ("x", "y"), role="quasi-identifier")
        for name in names
    )
    found = setting_of(Schema(features))
    assert found.trio == ("a", "b", "c")
    assert "one" not in (*found.given, *found.histograms)
