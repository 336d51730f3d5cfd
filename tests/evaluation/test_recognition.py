import numpy as np
import pytest
import risk_twins as twins

from pegsynth.evaluation import nearest_rows as search
from pegsynth.evaluation.recognition import recognition_records
from pegsynth.evaluation.risk_tables import risk_tables

SUBJECT = "f3 | all other features"
KNOWN = (0, 1, 2, 4)


def run(original, released, schema=None, **given):
    tables = risk_tables(original, released, schema or twins.make_schema(), **given)
    return {(r.name, r.subject): r for r in recognition_records(tables)}


def twin(rows, released, known, sensitive):
    shares = []
    for row in rows.tolist():
        _, near = twins.nearest(row, released.tolist(), known)
        right = [twins.values_of(r, sensitive) == twins.values_of(row, sensitive) for r in near]
        shares.append(sum(right) / len(right))
    return np.mean(shares)


def test_a_hand_worked_example():
    # The target agrees with the first two rows in three known features; one has its value.
    original = np.array([[0, 0, 0, 1, 0]], dtype=np.uint8)
    released = np.array([[0, 0, 0, 1, 1], [1, 0, 0, 2, 0], [1, 1, 0, 1, 0]], dtype=np.uint8)
    record = run(original, [released])["recognition", SUBJECT]
    assert record.value == 0.5
    assert record.baseline == pytest.approx(2 / 3)  # a released row taken at random
    assert record.n == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("threads", [1, 3])
def test_fully_synthetic_tables_equal_their_twin(seed, threads):
    original, released, holdout = (
        twins.population(n, s) for n, s in ((50, seed), (30, 10 + seed), (40, 20 + seed))
    )
    found = run(original, [released], holdout=holdout, threads=threads)
    record, control = found["recognition", SUBJECT], found["recognition_control", SUBJECT]
    assert record.value == pytest.approx(twin(original, released, KNOWN, (3,)))
    assert control.value == pytest.approx(twin(holdout, released, KNOWN, (3,)))
    assert record.baseline == control.value
    assert "every row of the original" in record.note


def test_partially_synthetic_tables_are_recognised_by_row():
    original = twins.population(40, 1)
    tables = [original.copy(), original.copy()]
    for seed, table in enumerate(tables):
        table[:, 0] = twins.population(40, 5 + seed)[:, 0]
    record = run(original, tables)["recognition", "f0, f1, f2, f4"]
    expected = []
    for table in tables:
        numbered = np.column_stack([table, np.arange(40)])
        own = np.column_stack([original, np.arange(40)])
        expected.append(twin(own, numbered, KNOWN, (5,)))
    assert record.value == pytest.approx(np.mean(expected))
    assert record.baseline == 1 / 40
    assert "rows correspond" in record.note


def test_a_part_of_the_targets_is_said(monkeypatch):
    monkeypatch.setattr(search, "COMPARISONS", 0)
    monkeypatch.setattr(search, "FEWEST", 20)
    original, released = twins.population(400, 1), twins.population(30, 2)
    record = run(original, [released], holdout=twins.population(10, 3))["recognition", SUBJECT]
    assert record.n == 20
    assert "20 rows, drawn at random (seeded), of the original" in record.note
    whole = twin(original, released, KNOWN, (3,))
    assert record.low <= whole <= record.high
    again = run(original, [released])["recognition", SUBJECT]
    assert again.value == record.value


def test_how_many_targets_a_search_takes():
    assert search.searchable(np.zeros((13, 1000), dtype=np.uint8)) > 1_000_000
    wide = np.broadcast_to(np.uint8(0), (300, 10**7))
    assert search.searchable(wide) == search.FEWEST


def test_what_cannot_be_recognised_is_said():
    table, other = twins.population(20, 1), twins.population(30, 2)
    record = run(table, [other], twins.make_schema(sensitive=()))["recognition", ""]
    assert record.value is None
    assert "no feature is sensitive" in record.note
    schema = twins.make_schema(quasi=(), sensitive=range(5))
    assert "every feature is sensitive" in run(table, [other], schema)["recognition", ""].note
