import math
from collections import Counter

import numpy as np
import pytest
import risk_twins as twins

from pegsynth.evaluation.risk import membership as m
from pegsynth.evaluation.risk import membership as search
from pegsynth.evaluation.risk.risk_tables import SEED, risk_tables
from significance import ALPHA

SIZES = (8, 6, 5, 12, 4, 9)
SCHEMA = twins.make_schema(SIZES)


def run(original, released, holdout, **given):
    tables = risk_tables(original, released, SCHEMA, holdout=holdout, **given)
    records, per_record = m.membership_records(tables)
    return {(r.name, r.subject): r for r in records}, per_record


def people(rows, seed):
    return twins.population(rows, seed, SIZES)


def test_distances_equal_their_twin():
    original, released, holdout = people(40, 1), people(30, 2), people(25, 3)
    found, _ = run(original, [released], holdout)
    near = [
        [-twins.nearest(row, released.tolist(), range(6))[0] for row in table.tolist()]
        for table in (original, holdout)
    ]
    area = found["membership_auc", m.DISTANCE]
    assert area.value == pytest.approx(twins.area(*near))
    assert found["membership_advantage", m.DISTANCE].value == pytest.approx(twins.advantage(*near))
    assert (area.baseline, area.n, area.better) == (0.5, 65, "lower")
    assert "40 members, 25 non-members" in area.note


def test_density_ratios_equal_their_twin():
    original, released, holdout = people(15, 1), people(30, 2), people(20, 3)
    found, per_record = run(original, [released], holdout)
    order = np.random.default_rng([SEED, m._HALVES]).permutation(20)
    reference, others = holdout[order[:10]].tolist(), holdout[order[10:]].tolist()

    def score(row):
        total = 0.0
        for i in range(6):
            for j in range(i + 1, 6):
                shares = []
                for table in (released.tolist(), reference):
                    count = Counter((r[i], r[j]) for r in table)[row[i], row[j]]
                    shares.append((count + 0.5) / (len(table) + 0.5 * SIZES[i] * SIZES[j]))
                total += math.log(shares[0] / shares[1])
        return total

    scores = [score(row) for row in original.tolist()]
    np.testing.assert_allclose(per_record["membership_score"], scores)
    expected = twins.area(scores, [score(row) for row in others])
    assert found["membership_auc", m.DENSITY].value == pytest.approx(expected)


def test_a_copy_is_found_out():
    original, holdout = people(2000, 1), people(2000, 3)
    found, _ = run(original, [np.random.default_rng(1).permutation(original)], holdout)
    assert found["membership_auc", m.DISTANCE].low > 0.55
    assert found["membership_advantage", m.DISTANCE].low > 0.1
    assert found["membership_auc", m.DENSITY].low > 0.5


def test_a_bootstrap_is_found_out():
    original, holdout = people(2000, 1), people(2000, 3)
    sample = np.random.default_rng(1).integers(0, 2000, 2000)
    found, _ = run(original, [original[sample]], holdout)
    assert found["membership_auc", m.DISTANCE].low > 0.52


@pytest.mark.parametrize("kind", ["fresh sample", "independent columns"])
def test_what_tells_nothing_is_not_alarming(kind):
    # Intervals of level 1 - ALPHA: one false alarm in 1/ALPHA runs of each of the four.
    original, holdout, released = people(3000, 1), people(3000, 3), people(3000, 4)
    if kind == "independent columns":
        rng = np.random.default_rng(5)
        released = np.stack([rng.choice(column, 3000) for column in original.T], axis=1)
    found, _ = run(original, [released], holdout, level=1 - ALPHA)
    for subject in (m.DISTANCE, m.DENSITY):
        for name in m.NAMES:
            record = found[name, subject]
            assert record.low <= record.baseline <= record.high, (name, subject)


def test_the_same_interval_has_power():
    original, holdout = people(3000, 1), people(3000, 3)
    found, _ = run(original, [original[::-1]], holdout, level=1 - ALPHA)
    assert found["membership_auc", m.DISTANCE].low > 0.5


def test_copies_in_any_of_several_tables_are_found():
    original, holdout = people(1500, 1), people(1500, 3)
    found, _ = run(original, [people(1500, 4), original[::-1]], holdout)
    record = found["membership_auc", m.DISTANCE]
    assert record.low > 0.52
    assert "the 2 released tables are taken together" in record.note


@pytest.mark.parametrize(
    ("holdout", "reason"),
    [
        (None, "there is no hold-out"),
        (np.zeros((0, 6), np.uint8), "the hold-out has no rows"),
        (people(50, 1), "the hold-out is the original itself"),
        (people(3, 3), "the hold-out fewer than four"),
    ],
)
def test_without_strangers_there_is_no_answer(holdout, reason):
    found, per_record = run(people(50, 1), [people(20, 2)], holdout)
    assert len(found) == 4
    for record in found.values():
        assert record.value is None
        assert reason in record.note
    assert per_record == {}


def test_a_single_member_is_too_few():
    found, _ = run(people(1, 1), [people(20, 2)], people(9, 3))
    assert "fewer than two rows" in found["membership_auc", m.DISTANCE].note


def test_a_part_of_the_rows_is_said(monkeypatch):
    monkeypatch.setattr(search, "COMPARISONS", 0)
    monkeypatch.setattr(search, "FEWEST", 60)
    found, _ = run(people(200, 1), [people(30, 2)], people(100, 3))
    record = found["membership_auc", m.DISTANCE]
    assert record.n == 120
    assert "drawn at random (seeded), at most 60 of each" in record.note
    assert found["membership_auc", m.DENSITY].n == 250


def test_which_pairs_are_scored():
    assert m.scored_pairs((2, 3, 4)) == [(0, 1), (0, 2), (1, 2)]
    assert m.scored_pairs((5000, 5000, 2)) == [(0, 2), (1, 2)]
    many = m.scored_pairs((3,) * 40)
    assert len(set(many)) == m.MOST_PAIRS
    assert many == sorted(many)
    assert len({i for pair in many for i in pair}) == 40


def test_features_too_large_to_pair_are_said():
    sizes = (5000, 5000)
    schema = twins.make_schema(sizes, quasi=(0,), sensitive=(1,))
    rng = np.random.default_rng(1)
    original, released, holdout = (rng.integers(0, 5000, (20, 2)) for _ in range(3))
    tables = risk_tables(original, [released], schema, holdout=holdout)
    records, per_record = m.membership_records(tables)
    assert records[0].value is not None
    assert "no pair of features" in records[-1].note
    assert per_record == {}
