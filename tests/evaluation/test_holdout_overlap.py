"""A hold-out that is a part of the original is noticed; an honest one is not."""

import numpy as np
import pytest

from pegsynth.evaluation.risk.risk_tables import holdout_records

WIDE = (10,) * 8
NARROW = (2, 3)


def rows(count, sizes, seed):
    generator = np.random.default_rng(seed)
    return np.stack([generator.integers(0, size, count) for size in sizes]).astype(np.uint8)


@pytest.mark.parametrize("strangers", [0, 5])
def test_a_part_of_the_original_is_noticed(strangers):
    original = rows(1000, WIDE, 1)
    held = np.concatenate([original[:, 200:300], rows(strangers, WIDE, 2)], axis=1)
    (found,) = holdout_records(original, held, WIDE)
    counted = [tuple(row) for row in original.T.tolist()]
    inside = sum(tuple(row) in set(counted) for row in held.T.tolist())
    assert found.value == inside / held.shape[1] == 100 / (100 + strangers)
    assert found.baseline == sum(counted.count(row) > 1 for row in counted) / 1000
    assert found.n == 100 + strangers


def test_rows_never_given_are_no_alarm_whatever_the_domain():
    """The bound leaves one false alarm in 3e5 at most, for any population."""
    for sizes in (WIDE, NARROW, (2, 2, 2, 2, 2, 2), (30, 30), (2,)):
        for seed in range(5):
            original, held = rows(1000, sizes, seed), rows(200, sizes, 100 + seed)
            assert holdout_records(original, held, sizes) == ()


def test_where_twins_are_common_a_part_cannot_be_told():
    original = rows(1000, NARROW, 1)
    assert holdout_records(original, original[:, :100], NARROW) == ()


@pytest.mark.parametrize("inside", [0, 50])
def test_half_of_the_rows_or_none_is_no_alarm(inside):
    original = rows(1000, WIDE, 1)
    held = np.concatenate([original[:, :inside], rows(100 - inside, WIDE, 3)], axis=1)
    assert holdout_records(original, held, WIDE) == ()


def test_a_few_rows_prove_nothing():
    original = rows(1000, WIDE, 1)
    assert holdout_records(original, original[:, :3], WIDE) == ()
    assert holdout_records(original, None, WIDE) == ()
