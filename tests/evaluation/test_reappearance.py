from itertools import product

import numpy as np
import pytest
import risk_twins as twins

from pegsynth.evaluation.risk.reappearance import (
    ALL_FEATURES,
    expectation,
    reappearance_records,
    seen_again,
)
from pegsynth.evaluation.risk.risk_tables import risk_tables

SUBJECT = "f0, f1, f2"


def run(original, released, schema=None, **given):
    tables = risk_tables(original, released, schema or twins.make_schema(), **given)
    records, per_record = reappearance_records(tables)
    return {(r.name, r.subject): r for r in records}, per_record


def hand_worked():
    original = np.zeros((5, 5), dtype=np.uint8)
    original[:, 0] = (0, 0, 1, 2, 3)  # 1, 2 and 3 are unique
    first, second = np.zeros((4, 5), dtype=np.uint8), np.zeros((2, 5), dtype=np.uint8)
    first[:, 0] = (1, 1, 2, 0)  # 1 twice, 2 alone
    second[:, 0] = (1, 1)
    holdout = np.zeros((4, 5), dtype=np.uint8)
    holdout[:, :2] = ((0, 0), (1, 1), (2, 1), (2, 1))  # three rows that the original lacks
    return original, [first, second], holdout


def test_a_hand_worked_example():
    original, released, holdout = hand_worked()
    released[1][0, 1] = 1  # (1, 1, ..) once
    found, per_record = run(original, released, holdout=holdout)
    assert found["reappearing_uniques", SUBJECT].value == pytest.approx(2 / 3)
    assert found["reappearing_uniques", SUBJECT].n == 3
    # 2 is alone in the first table, 1 is alone in the second.
    assert found["reappearing_as_unique", SUBJECT].value == pytest.approx(2 / 3)
    assert found["reappearing_uniques_control", SUBJECT].value == pytest.approx(1 / 3)
    assert found["reappearing_uniques_control", SUBJECT].n == 3
    assert found["reappearing_uniques", SUBJECT].baseline == pytest.approx(1 / 3)
    assert per_record["group_size"].tolist() == [2, 2, 1, 1, 1]
    assert per_record["released_matches"].tolist() == [1, 1, 3, 1, 0]
    assert per_record["released_copies"].tolist() == [1, 1, 3, 1, 0]


@pytest.mark.parametrize("seed", range(4))
def test_shares_equal_their_twins(seed):
    original, released, holdout = (
        twins.population(n, s).tolist() for n, s in ((80, seed), (40, 10 + seed), (60, 20 + seed))
    )
    schema = twins.make_schema()
    tables = risk_tables(
        np.array(original), [np.array(released)], schema, holdout=np.array(holdout)
    )
    for features in ((0, 1, 2), (0, 1, 2, 3, 4)):
        records, _, _ = seen_again(tables, features, "these")
        found = {record.name: record.value for record in records}
        keys = [twins.values_of(row, features) for row in released]
        alone = twins.uniques(original, features)
        expected = np.mean([key in keys for key in alone])
        assert found["reappearing_uniques"] == pytest.approx(expected)
        expected = np.mean([keys.count(key) == 1 for key in alone])
        assert found["reappearing_as_unique"] == pytest.approx(expected)
        known = {twins.values_of(row, features) for row in original}
        others = [twins.values_of(row, features) for row in holdout]
        others = [key for key in others if key not in known]
        expected = np.mean([key in keys for key in others])
        assert found["reappearing_uniques_control"] == pytest.approx(expected)


@pytest.mark.parametrize("released", [[1], [2], [3], [2, 1]])
def test_expectation_of_a_bootstrap_by_enumeration(released):
    rows = 3
    again = alone = 0
    draws = list(product(range(rows), repeat=sum(released)))
    for draw in draws:
        parts = np.split(np.array(draw), np.cumsum(released)[:-1])
        again += 0 in draw
        alone += any((part == 0).sum() == 1 for part in parts)
    expected = again / len(draws), alone / len(draws)
    assert expectation(1 / rows, released) == pytest.approx(expected)


def test_without_a_holdout_the_bootstrap_is_the_baseline():
    original, released, _ = hand_worked()
    found, _ = run(original, released[:1])
    expected = expectation(1 / 5, [4])
    assert found["reappearing_uniques", SUBJECT].baseline == pytest.approx(expected[0])
    assert found["reappearing_as_unique", SUBJECT].baseline == pytest.approx(expected[1])
    assert "--holdout" in found["reappearing_uniques", SUBJECT].note
    assert ("reappearing_uniques_control", SUBJECT) not in found


def test_a_holdout_that_the_original_holds_gives_no_control():
    original, released, holdout = hand_worked()
    found, _ = run(original, released, holdout=holdout[:1])
    assert ("reappearing_uniques_control", SUBJECT) not in found
    assert "holds the values of every row" in found["reappearing_uniques", SUBJECT].note


def test_no_unique_rows_and_no_identifiers_are_said():
    table = np.zeros((4, 5), dtype=np.uint8)
    found, _ = run(table, [table])
    assert found["reappearing_uniques", SUBJECT].value is None
    assert "no row of the original is alone" in found["reappearing_uniques", ALL_FEATURES].note
    found, per_record = run(table, [table], twins.make_schema(quasi=()))
    assert "no feature identifies" in found["reappearing_uniques", ""].note
    assert set(per_record) == {"released_copies"}
