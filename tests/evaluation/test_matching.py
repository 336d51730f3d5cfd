from itertools import product

import numpy as np
import pytest
import risk_twins as twins

from pegsynth.evaluation.risk.matching import NAMES, Matches, bootstrap_rates, matching_records
from pegsynth.evaluation.risk.risk_tables import risk_tables

SUBJECT = "f3 | f0, f1, f2"


def run(original, released, schema=None, **given):
    tables = risk_tables(original, released, schema or twins.make_schema(), **given)
    records, per_record = matching_records(tables)
    return {(r.name, r.subject): r for r in records}, per_record


def test_hand_worked_rates():
    matches = Matches(np.array([0, 1, 1, 2, 4]), np.array([0, 1, 0, 1, 4]))
    risk, true, false = matches.rates(0.95)
    assert risk.value == pytest.approx((0 + 1 + 0 + 0.5 + 1) / 5)
    assert true.value == pytest.approx(1 / 5)
    assert (false.value, false.n) == (0.5, 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sensitive", [(3,), (3, 4)])
def test_fully_synthetic_tables_equal_their_twin(seed, sensitive):
    original, released, holdout = (
        twins.population(n, s) for n, s in ((70, seed), (30, 10 + seed), (50, 20 + seed))
    )
    schema = twins.make_schema(sensitive=sensitive)
    found, per_record = run(original, [released], schema, holdout=holdout)
    subject = f"{', '.join(f'f{i}' for i in sensitive)} | f0, f1, f2"
    for rows, name in ((original, "reiter_risk"), (holdout, "reiter_risk_control")):
        counts = [
            twins.match_counts(row, released.tolist(), (0, 1, 2), sensitive)
            for row in rows.tolist()
        ]
        risks = [right / max(all_of_them, 1) for all_of_them, right in counts]
        assert found[name, subject].value == pytest.approx(np.mean(risks))
        if rows is original:
            np.testing.assert_allclose(per_record["match_probability"], risks)
            single = [right for all_of_them, right in counts if all_of_them == 1]
            true = found["reiter_true_match_rate", subject].value
            assert true == pytest.approx(sum(single) / 70)
            record = found["reiter_false_match_rate", subject]
            assert record.value == pytest.approx(1 - sum(single) / len(single))
            assert (record.n, record.better) == (len(single), "higher")
    assert found["reiter_risk", subject].baseline == found["reiter_risk_control", subject].value


def test_rates_of_a_bootstrap_by_enumeration():
    keys = [(0, 0), (0, 1), (0, 1), (1, 0)]
    group = np.array([sum(k[0] == key[0] for k in keys) for key in keys])
    profile = np.array([keys.count(key) for key in keys])
    for rows in (1, 2, 3):
        risk = true = single = 0.0
        draws = list(product(keys, repeat=rows))
        for draw in draws:
            for key in keys:
                found = [k for k in draw if k[0] == key[0]]
                right = sum(k == key for k in found)
                risk += right / max(len(found), 1)
                true += len(found) == 1 and right == 1
                single += len(found) == 1
        count = len(draws) * len(keys)
        expected = risk / count, true / count, 1 - true / single
        assert bootstrap_rates(group, profile, rows) == pytest.approx(expected)


def test_partially_synthetic_tables_are_matched_by_row():
    original = twins.population(60, 1)
    tables = []
    for seed in (2, 3):
        table = original.copy()
        table[:, 1] = twins.population(60, seed)[:, 1]  # an identifying feature is replaced
        tables.append(table)
    found, per_record = run(original, tables, holdout=twins.population(30, 4))
    risks = []
    for table in tables:
        rows = [twins.values_of(row, (0, 1, 2)) for row in table.tolist()]
        mine = [twins.values_of(row, (0, 1, 2)) for row in original.tolist()]
        risks.append(
            [
                (ours == theirs) / max(rows.count(ours), 1)
                for ours, theirs in zip(mine, rows, strict=True)
            ]
        )
    expected = np.mean(risks, axis=0)
    np.testing.assert_allclose(per_record["match_probability"], expected)
    record = found["reiter_risk", SUBJECT]
    assert record.value == pytest.approx(expected.mean())
    assert "rows correspond" in record.note
    groups = [mine.count(key) for key in mine]
    assert record.baseline == pytest.approx(np.mean([1 / size for size in groups]))
    assert ("reiter_risk_control", SUBJECT) not in found


def test_kept_identifiers_identify_as_the_original_does():
    original = twins.population(60, 1)
    table = original.copy()
    table[:, 3] = twins.population(60, 2)[:, 3]
    for name in NAMES[:2]:
        record = run(original, [table])[0][name, SUBJECT]
        assert record.value == pytest.approx(record.baseline)


def test_shuffled_and_short_tables_do_not_correspond():
    original = twins.population(60, 1)
    for table in (np.random.default_rng(1).permutation(original), original[:59]):
        found, _ = run(original, [table])
        assert "rows do not correspond" in found["reiter_risk", SUBJECT].note
    # Two equal rows agree by chance: nothing follows from that.
    pair = np.zeros((2, 5), dtype=np.uint8)
    assert "rows do not correspond" in run(pair, [pair])[0]["reiter_risk", SUBJECT].note


def test_what_cannot_be_matched_is_said():
    table, other = twins.population(20, 1), twins.population(30, 2)
    for schema, reason in (
        (twins.make_schema(quasi=()), "no feature identifies"),
        (twins.make_schema(sensitive=()), "no feature is sensitive"),
    ):
        found, per_record = run(table, [other], schema)
        assert found["reiter_risk", ""].value is None
        assert reason in found["reiter_risk", ""].note
        assert per_record == {}
    apart = np.full((5, 5), 1, dtype=np.uint8)
    found, _ = run(np.zeros((6, 5), dtype=np.uint8), [apart])
    assert found["reiter_risk", SUBJECT].value == 0
    assert found["reiter_false_match_rate", SUBJECT].value is None
    assert "no target has a single" in found["reiter_false_match_rate", SUBJECT].note
