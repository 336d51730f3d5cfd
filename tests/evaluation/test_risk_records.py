import time
import tracemalloc

import numpy as np
import pytest
import risk_twins as twins

from pegsynth.errors import DataError, ParameterError
from pegsynth.evaluation import Metrics
from pegsynth.evaluation.risk.membership import DISTANCE
from pegsynth.evaluation.risk.risk_tables import risk_tables
from significance import ALPHA, bonferroni

SIZES = (9, 7, 5, 8, 4, 6)
NAMES = {
    "intruder_error",
    "intruder_error_bootstrap",
    "intruder_error_holdout",
    "intruder_error_control",
    "intruder_error_others",
    "intruder_matched",
    "reappearing_uniques",
    "reappearing_uniques_control",
    "reappearing_uniques_others",
    "reappearing_as_unique",
    "reappearing_as_unique_control",
    "reappearing_as_unique_others",
    "reiter_risk",
    "reiter_risk_control",
    "reiter_risk_others",
    "reiter_true_match_rate",
    "reiter_false_match_rate",
    "membership_auc",
    "membership_advantage",
}
CONTROLLED = ("reappearing_uniques", "reappearing_as_unique", "reiter_risk")


def people(rows, seed):
    return twins.population(rows, seed, SIZES)


def run(original, released, holdout=None, schema=None, **given):
    schema = schema or twins.make_schema(SIZES)
    return twins.all_risks(original, released, schema, holdout=holdout, **given)


def by_name(result):
    return {(r.name, r.subject): r for r in result.records}


@pytest.fixture(scope="module")
def example():
    return run(people(400, 1), [people(150, 2)], people(300, 3))


def test_every_measure_has_value_interval_baseline_and_note(example):
    assert {record.name for record in example.records} == NAMES
    for record in example.records:
        assert record.value is not None, record.name
        assert record.baseline is not None, record.name
        assert record.low <= record.value <= record.high, record.name
        assert record.n > 0
        assert record.note
    higher = {record.name for record in example.records if record.better == "higher"}
    assert higher == {n for n in NAMES if n.startswith("intruder_error") or "false" in n}


def test_records_are_found_once_and_survive_the_file(example):
    metrics = Metrics(summary={}, records=example.records)
    assert Metrics.from_json(metrics.to_json()) == metrics
    assert len(by_name(example)) == len(example.records)


def test_there_is_a_figure_for_every_row_of_the_original(example):
    assert set(example.per_record) == {
        "intruder_error: f3 | f0, f1, f2",
        "group_size",
        "released_matches",
        "released_copies",
        "match_probability",
        "membership_score",
    }
    for name, values in example.per_record.items():
        assert values.shape == (400,), name
    assert example.per_record["group_size"].min() == 1


def test_the_same_tables_give_the_same_figures_on_any_threads(example):
    again = run(people(400, 1), [people(150, 2)], people(300, 3), threads=3)
    assert again.records == example.records


def alarming(found, name):
    """Measures whose interval lies above that of their control."""
    return [
        key
        for key in found
        if key[0] == name and found[key].low > found[f"{name}_control", key[1]].high
    ]


def test_a_synthesizer_that_copies_is_high_risk():
    original, holdout = people(3000, 1), people(3000, 3)
    copy = np.random.default_rng(1).permutation(original)
    found = by_name(run(original, [copy], holdout, level=1 - ALPHA))
    for name in ("reappearing_uniques", "reappearing_as_unique"):
        assert alarming(found, name), name
    risk = found["reiter_risk", "f3 | f0, f1, f2"]
    assert risk.value > risk.baseline
    assert found["reappearing_uniques", "all features"].value == 1
    assert found["reappearing_as_unique", "all features"].value == 1
    assert found["membership_auc", DISTANCE].low > 0.5


def test_a_small_bootstrap_is_high_risk_by_reappearance():
    original, holdout = people(3000, 1), people(3000, 3)
    rows = original[np.random.default_rng(2).integers(0, 3000, 400)]
    found = by_name(run(original, [rows], holdout, level=1 - ALPHA))
    assert ("reappearing_uniques", "all features") in alarming(found, "reappearing_uniques")


@pytest.mark.parametrize("kind", ["fresh sample", "independent columns"])
def test_what_tells_nothing_is_not_high_risk(kind):
    # A false alarm needs two intervals of level 1 - ALPHA/6 apart: fewer than ALPHA of all runs.
    original, holdout, released = people(3000, 1), people(3000, 3), people(3000, 4)
    if kind == "independent columns":
        rng = np.random.default_rng(5)
        released = np.stack([rng.choice(column, 3000) for column in original.T], axis=1)
    found = by_name(run(original, [released], holdout, level=1 - bonferroni(6)))
    for name in CONTROLLED:
        assert not alarming(found, name), name
    error, control = (
        found[name, "f3 | f0, f1, f2"] for name in ("intruder_error", "intruder_error_control")
    )
    assert control.low <= error.high
    area = found["membership_auc", DISTANCE]
    assert area.low <= 0.5 <= area.high


def test_no_roles_no_holdout_one_row():
    one = np.zeros((1, 6), dtype=np.uint8)
    schema = twins.make_schema(SIZES, quasi=(), sensitive=())
    for record in run(one, [one], schema=schema).records:
        if record.subject != "all features":
            assert record.value is None
            assert record.note.startswith("not computed: ")
    for record in run(one, [one], one).records:
        assert record.value is not None or record.note.startswith("not computed: ")


def test_no_matching_row_is_said():
    found = by_name(run(np.zeros((9, 6), np.uint8), [np.ones((4, 6), np.uint8)]))
    record = found["intruder_error", "f3 | f0, f1, f2"]
    assert "9 of 9 targets have no such row" in record.note
    assert record.value == 1
    assert found["intruder_matched", "f3 | f0, f1, f2"].value == 0
    assert found["reiter_risk", "f3 | f0, f1, f2"].value == 0


def test_roles_can_be_named():
    found = by_name(run(people(60, 1), [people(40, 2)], attacks=[(["f4", "f5"], ["f0"])]))
    assert found["intruder_error", "f0 | f4, f5"].value is not None
    assert found["reappearing_uniques", "f4, f5"].n > 0


@pytest.mark.parametrize("what", ["original", "synthetic table 1", "hold-out"])
def test_tables_that_do_not_fit_the_schema(what):
    tables = {"original": people(9, 1), "synthetic table 1": people(9, 2), "hold-out": people(9, 3)}
    tables[what] = np.full((3, 6), 250, dtype=np.uint8)
    with pytest.raises(DataError, match=f"^{what}: column 1 holds a code outside"):
        run(*(t if i != 1 else [t] for i, t in enumerate(tables.values())))


def test_bad_input():
    table, schema = people(9, 1), twins.make_schema(SIZES)
    with pytest.raises(ParameterError, match="no synthetic table"):
        run(table, [])
    with pytest.raises(DataError, match="synthetic table 1: the table has no rows"):
        run(table, [table[:0]])
    with pytest.raises(ParameterError, match="'x' is not a feature"):
        run(table, [table], attacks=[(["x"], None)])
    with pytest.raises(ParameterError, match="both known and to be inferred"):
        run(table, [table], attacks=[(["f1"], ["f1"])])
    with pytest.raises(ParameterError, match="threads"):
        run(table, [table], threads=0)
    with pytest.raises(ParameterError, match="level"):
        run(table, [table], level=2)
    with pytest.raises(ParameterError, match="infer: 'x'"):
        risk_tables(table, [table], schema, infer=["x"])


def test_memory_grows_with_the_rows_only():
    sizes = (50_000, 40_000, 30_000, 20_000, 10_000, 3)
    rng = np.random.default_rng(1)
    original, released, holdout = (
        np.stack([rng.integers(0, c, 5_000) for c in sizes], axis=1).astype(np.uint16)
        for _ in range(3)
    )
    tracemalloc.start()
    twins.all_risks(original, [released], twins.make_schema(sizes), holdout=holdout)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.slow
def test_a_million_rows_take_seconds():
    rng = np.random.default_rng(1)
    sizes = (6, 18, 3, 4, 7, 16, 16, 13, 9, 25, 25, 3, 2)
    schema = twins.make_schema(sizes, quasi=(1, 2, 5), sensitive=(9, 10))
    original, released, holdout = (
        np.stack([rng.random(1_000_000) ** 2 * c for c in sizes], axis=1).astype(np.uint8)
        for _ in range(3)
    )
    start = time.process_time()
    result = twins.all_risks(original, [released], schema, holdout=holdout)
    assert time.process_time() - start < 60
    areas = [r.value for r in result.records if r.name == "membership_auc"]
    assert areas == pytest.approx([0.5, 0.5], abs=0.05)
