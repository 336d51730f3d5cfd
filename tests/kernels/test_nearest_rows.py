import numpy as np
import pytest

from pegsynth.kernels import nearest as kernel


def twin(columns, tags, targets, target_tags):
    found = []
    for target in range(targets.shape[1]):
        apart = [int((columns[:, r] != targets[:, target]).sum()) for r in range(columns.shape[1])]
        rows = [r for r, d in enumerate(apart) if d == min(apart)]
        hits = sum(tags[r] == target_tags[target] for r in rows)
        found.append((min(apart), len(rows), hits))
    return found


def run(columns, tags, targets, target_tags, dtype=np.uint8):
    count = targets.shape[1]
    distance = np.zeros(count, dtype)
    ties, hits = np.full(count, 9, np.int64), np.full(count, 9, np.int64)
    kernel.nearest_rows(columns, tags, targets, target_tags, distance, ties, hits)
    return list(zip(distance.tolist(), ties.tolist(), hits.tolist(), strict=True))


@pytest.mark.parametrize("codes", [np.uint8, np.uint16])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_nearest_rows_equal_their_twin(codes, rows):
    rng = np.random.default_rng(rows)
    columns, targets = (rng.integers(0, 3, (5, n)).astype(codes) for n in (rows, 30))
    tags, own = rng.integers(0, 2, rows), rng.integers(0, 2, 30)
    assert run(columns, tags, targets, own) == twin(columns, tags, targets, own)


def test_rows_beyond_one_stretch():
    # The only near row is the last of several stretches; a tie is in the first.
    rows = 2 * kernel._STRETCH + 3
    columns = np.ones((4, rows), dtype=np.uint8)
    columns[:, -1] = columns[:, 5] = (0, 0, 0, 1)
    targets = np.zeros((4, 1), dtype=np.uint8)
    tags = np.arange(rows)
    assert run(columns, tags, targets, np.array([rows - 1])) == [(1, 2, 1)]


def test_distances_beyond_one_byte():
    columns, targets = np.zeros((300, 2), np.uint8), np.ones((300, 1), np.uint8)
    tags = np.zeros(2, np.int64)
    assert run(columns, tags, targets, np.zeros(1, np.int64), np.uint16) == [(300, 2, 2)]
