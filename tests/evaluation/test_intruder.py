from typing import NamedTuple

import numpy as np
import pytest
import risk_twins as twins

from pegsynth.errors import ParameterError
from pegsynth.evaluation.risk import intruder as intruder_records
from pegsynth.evaluation.risk.intruder import Attack, attacks_of, cells_of, guess
from pegsynth.evaluation.risk.risk_tables import risk_tables
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema
from studies.paper import intruder_targets

NUMBERS = np.array([10.0, 20.0, 40.0, np.nan, 100.0])


class Found(NamedTuple):
    """What an attack on code matrices achieved, with the error of every row."""

    error: float
    low: float
    high: float
    matched_share: float
    targets: int
    left_out: int
    per_row: np.ndarray


def attack(original, released, known, sensitive, values=None):
    """Attack the rows of a code matrix with those of another."""
    tables = [np.ascontiguousarray(codes.T) for codes in (original, released)]
    sizes = (np.maximum(*(table.max(axis=1) for table in tables)).astype(int) + 1).tolist()
    if values is not None:
        sizes[sensitive] = len(values)
    crossing = cells_of(tables, known, sensitive, sizes)
    targets, counts = map(crossing.counts, crossing.cells)
    found = guess(crossing, counts, values)
    (error, matched), rows = (
        found.reach(targets, amounts=values is not None),
        found.errors[crossing.cells[0]],
    )
    return Found(
        error.value, error.low, error.high, matched, error.n, int(np.isnan(rows).sum()), rows
    )


def by_name(records):
    return {(record.name, record.subject): record for record in records}


def test_a_hand_worked_guess():
    # Known (0): values 1, 1, 2 -> 1. Known (1): 0, 2 -> a tie. Known (2): nothing -> overall 1.
    released = np.array([[0, 1], [0, 1], [0, 2], [1, 0], [1, 2]])
    original = np.array([[0, 1], [0, 2], [1, 2], [2, 1], [2, 0]])
    found = attack(original, released, [0], 1)
    # Overall 0 occurs once, 1 and 2 twice each: the fallback is a tie too.
    assert found.per_row.tolist() == [0, 1, 0.5, 0.5, 1]
    assert found.error == pytest.approx(0.6)
    assert found.matched_share == pytest.approx(0.6)
    assert (found.targets, found.left_out) == (5, 0)
    assert found.low < 0.6 < found.high


def test_a_hand_worked_mean():
    # Known (0): 10 and 20, a missing value left out -> 15. Known (1): only missing -> overall.
    released = np.array([[0, 0], [0, 1], [0, 3], [1, 3], [2, 4]])
    original = np.array([[0, 0], [0, 3], [1, 4], [2, 4], [3, 1]])
    found = attack(original, released, [0], 1, NUMBERS)
    overall = (10 + 20 + 100) / 3
    expected = [5, np.nan, 100 - overall, 0, overall - 20]
    np.testing.assert_allclose(found.per_row, expected)
    assert found.error == pytest.approx(np.nanmean(expected))
    assert (found.targets, found.left_out, found.matched_share) == (4, 1, 0.5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("known", [(0,), (0, 1, 2), (4, 1)])
def test_every_row_equals_its_twin(seed, known):
    original, released = twins.population(60, seed), twins.population(25, 50 + seed)
    rows, others = original.tolist(), released.tolist()
    found = attack(original, released, known, 3)
    expected = twins.error_by_category(rows, others, known, 3)
    np.testing.assert_allclose(found.per_row, expected, atol=1e-12)
    assert found.error == pytest.approx(np.mean(expected))
    assert found.matched_share == pytest.approx(twins.matched(rows, others, known))
    found = attack(original, released, known, 3, NUMBERS)
    expected = twins.error_by_mean(rows, others, known, 3, NUMBERS)
    np.testing.assert_allclose(found.per_row, np.array(expected, dtype=float), atol=1e-9)
    assert found.left_out == expected.count(None)


def test_more_combinations_than_rows_are_counted_sparsely():
    rng = np.random.default_rng(3)
    original, released = (rng.integers(0, 60_000, (n, 4)).astype(np.uint16) for n in (50, 40))
    released[:20] = original[:20]
    found = attack(original, released, [0, 1, 2], 3)
    expected = twins.error_by_category(original.tolist(), released.tolist(), (0, 1, 2), 3)
    np.testing.assert_allclose(found.per_row, expected, atol=1e-12)
    assert found.matched_share == pytest.approx(0.4)


@pytest.mark.parametrize("most", [intruder_targets.MOST_CELLS, 10])
def test_targets_that_are_counted_once_give_the_same(monkeypatch, most):
    monkeypatch.setattr(intruder_targets, "MOST_CELLS", most)
    schema = twins.make_schema()
    original = np.ascontiguousarray(twins.population(300, 1).T)
    for values in (None, NUMBERS):
        targets = intruder_targets.Targets.of(Attack("f3", ("f0", "f1"), values), original, schema)
        for seed in (2, 3):
            released = twins.population(80, seed)
            found = attack(original.T, released, (0, 1), 3, values)
            error, matched = targets.reach(np.ascontiguousarray(released.T))
            assert error.value == pytest.approx(found.error, rel=1e-12)
            assert matched == found.matched_share


def test_rows_that_match_no_target_count_for_the_fallback():
    schema = Schema(
        (
            Feature("k", categories=("a", "b", "c"), role="quasi-identifier"),
            Feature("s", categories=("x", "y"), role="sensitive"),
        )
    )
    original = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 0]], dtype=np.uint8)
    released = np.array([[0, 0], [2, 1], [2, 1]], dtype=np.uint8)
    found = intruder_targets.Targets.of(Attack("s", ("k",)), original.T, schema).reach(released.T)
    # Group a: guess x, one of three wrong. Group b has no match: the mode is y, one of two wrong.
    assert (found.error.value, found.matched) == (pytest.approx(2 / 5), pytest.approx(3 / 5))


def test_no_number_anywhere_is_no_error():
    found = attack(np.array([[0, 1]]), np.array([[0, 1]]), [0], 1, np.array([1.0, np.nan]))
    assert np.isnan(found.error)
    assert (found.targets, found.left_out) == (0, 1)
    assert np.isnan(found.matched_share)


def test_a_single_target_and_row():
    found = attack(np.array([[0, 1]]), np.array([[1, 1]]), [0], 1)
    assert (found.error, found.matched_share, found.targets) == (0, 0, 1)
    assert found.low == 0
    assert found.high < 1


def test_the_papers_attacks_are_the_default_on_its_features():
    from pegsynth.datasets import discharge_schema

    schema = discharge_schema()
    chosen = attacks_of(schema)
    assert [each.subject for each in chosen] == [
        "MDC | age.yrs, sex, patzip",
        "charge | age.yrs, los, patzip",
    ]
    assert not chosen[0].amounts
    assert chosen[1].amounts
    (other,) = attacks_of(schema, ["sex"], ["disp"])
    assert other.subject == "disp | sex"


def test_roles_are_the_default_elsewhere():
    schema = twins.make_schema(sensitive=(3, 4))
    assert [s.subject for s in attacks_of(schema)] == ["f3 | f0, f1, f2", "f4 | f0, f1, f2"]
    assert [s.subject for s in attacks_of(schema, ["f3"])] == ["f4 | f3"]
    assert [s.subject for s in attacks_of(schema, None, ["f1"])] == ["f1 | f0, f2"]
    with pytest.raises(ParameterError, match="'x' is not a feature"):
        attacks_of(schema, ["x"])
    with pytest.raises(ParameterError, match="'f1' is both known and to be inferred"):
        attacks_of(schema, ["f1"], ["f1"])


def run(original, released, schema=None, **given):
    schema = schema or twins.make_schema()
    tables = risk_tables(original, released, schema, **given)
    return by_name(intruder_records.intruder_records(tables, attacks_of(schema))[0])


SUBJECT = "f3 | f0, f1, f2"


def test_references_are_what_they_say():
    original, released, holdout = (twins.population(n, s) for n, s in ((300, 1), (80, 2), (80, 3)))
    found = run(original, [released], holdout=holdout)
    plain = attack(original, released, (0, 1, 2), 3)
    record = found["intruder_error", SUBJECT]
    assert (record.value, record.low, record.high) == (plain.error, plain.low, plain.high)
    assert (record.better, record.n) == ("higher", 300)
    instead = found["intruder_error_holdout", SUBJECT]
    assert instead.value == attack(original, holdout, (0, 1, 2), 3).error == record.baseline
    control = found["intruder_error_control", SUBJECT]
    assert control.value == pytest.approx(attack(holdout, released, (0, 1, 2), 3).error)
    assert found["intruder_matched", SUBJECT].value == plain.matched_share
    assert found["intruder_error", ""].value == plain.error


def test_the_bootstrap_is_at_its_expectation():
    # Two rows a group of equal chance: the exact error is known by enumeration.
    # N = 2 rows (0, 0), (0, 1), n = 3 draws: the mode is right for one row and wrong for the
    # other, whatever is drawn; so the error is 1/2 in every draw.
    found = run(
        np.array([[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]], dtype=np.uint8),
        [np.zeros((3, 5), dtype=np.uint8)],
    )
    assert found["intruder_error_bootstrap", SUBJECT].value == 0.5
    # N = 2 rows of different known values, n = 1: a matching row is right; the other guesses
    # the only released value, wrong. Error 1/2 again; matched 1/2.
    two = np.array([[0, 0, 0, 0, 0], [1, 0, 0, 1, 0]], dtype=np.uint8)
    found = run(two, [two[:1]])
    assert found["intruder_error_bootstrap", SUBJECT].value == 0.5
    assert found["intruder_matched", SUBJECT].baseline == 0.5


@pytest.mark.parametrize("n", [60, 300])
def test_the_references_agree_with_independent_draws(n):
    # Fewer rows than cells (120) are drawn row by row, more cell by cell.
    original, holdout = twins.population(400, 4), twins.population(900, 7)
    found = run(original, [twins.population(n, 5)], holdout=holdout)
    rng = np.random.default_rng(6)
    for name, rows, again in (
        ("intruder_error_bootstrap", original, True),
        ("intruder_error_holdout", holdout, False),
    ):
        errors = [
            attack(original, rng.choice(rows, n, replace=again), (0, 1, 2), 3).error
            for _ in range(200)
        ]
        # Means of 20 and 200 draws: within 6 standard errors, one false alarm in 1e8.
        spread = np.std(errors) * np.sqrt(1 / intruder_records.DRAWS + 1 / 200)
        record = found[name, SUBJECT]
        assert abs(record.value - np.mean(errors)) < 6 * spread
        assert record.low < record.value < record.high


def test_a_larger_holdout_is_thinned_and_a_smaller_one_is_said():
    original, released = twins.population(300, 1), twins.population(50, 2)
    larger = run(original, [released], holdout=twins.population(500, 3))
    note = larger["intruder_error_holdout", SUBJECT].note
    assert "500 rows thinned to 50: mean over 20 seeded draws" in note
    smaller = run(original, [released], holdout=twins.population(20, 3))
    note = smaller["intruder_error", SUBJECT].note
    assert "all 20 rows of it, fewer than the 50 released: what compares is the error" in note


def test_without_a_holdout_the_bootstrap_is_the_baseline():
    found = run(twins.population(90, 1), [twins.population(30, 2)])
    record = found["intruder_error", SUBJECT]
    assert record.baseline == found["intruder_error_bootstrap", SUBJECT].value
    assert "--holdout" in record.note
    assert found["intruder_error_holdout", SUBJECT].value is None


def test_several_tables_are_attacked_as_one():
    original, parts = twins.population(100, 1), [twins.population(30, 2), twins.population(40, 3)]
    record = run(original, parts)["intruder_error", SUBJECT]
    assert record.value == attack(original, np.concatenate(parts), (0, 1, 2), 3).error
    assert "the 2 released tables are taken together" in record.note


def test_what_cannot_be_attacked_is_said():
    table = twins.population(20, 1)
    for schema, reason in (
        (twins.make_schema(quasi=()), "no feature identifies"),
        (twins.make_schema(sensitive=()), "no feature is sensitive"),
    ):
        record = run(table, [table], schema)["intruder_error", ""]
        assert record.value is None
        assert reason in record.note


def test_amounts_are_not_averaged_with_each_other():
    amount = {"kind": "numeric", "categories": (), "edges": (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)}
    other = {"kind": "numeric", "categories": (), "edges": (0.0, 10.0, 20.0, 30.0)}
    table = twins.population(50, 1)
    mixed = twins.make_schema(sensitive=(3, 4), f4=other)
    found = run(table, [table[:30]], mixed)
    assert found["intruder_error", ""].value == found["intruder_error", SUBJECT].value
    both = twins.make_schema(sensitive=(3, 4), f3=amount, f4=other)
    found = run(table, [table[:30]], both)
    assert found["intruder_error", ""].value is None
    assert "no common unit" in found["intruder_error", ""].note
    assert found["intruder_error", "f4 | f0, f1, f2"].value > 0


def test_a_released_table_without_any_number_is_said():
    schema = Schema(
        (
            Feature("a", categories=("x", "y"), role="quasi-identifier"),
            Feature("b", kind="numeric", edges=(0.0, 1.0), missing=("",), role="sensitive"),
        )
    )
    original = np.array([[0, 0], [1, 0]], dtype=np.uint8)
    found = run(original, [np.array([[0, 1]], dtype=np.uint8)], schema)
    assert found["intruder_error", "b | a"].value is None
    assert "no released row has a number" in found["intruder_error", "b | a"].note
    assert found["intruder_error", ""].value is None


def test_a_copy_is_told_by_the_control():
    # Rows of which nothing is known twice: a copy betrays them all, strangers not at all.
    rng = np.random.default_rng(1)
    sizes = (200, 200, 2, 5, 3)
    original, holdout = (
        np.stack([rng.integers(0, size, 500) for size in sizes], axis=1) for _ in range(2)
    )
    found = run(original, [original[::-1]], twins.make_schema(sizes), holdout=holdout)
    error = found["intruder_error", SUBJECT]
    control = found["intruder_error_control", SUBJECT]
    assert error.high < 0.05
    assert control.low > 0.6
