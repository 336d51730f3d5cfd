import numpy as np
import pytest

from pegsynth.kernels import nearest as kernel


def twin(columns, targets):
    return [int((columns != target[:, np.newaxis]).sum(axis=0).min()) for target in targets.T]


def run(columns, targets, dtype=np.uint8):
    distance = np.zeros(targets.shape[1], dtype)
    kernel.nearest_rows(columns, targets, distance)
    return distance.tolist()


@pytest.mark.parametrize("codes", [np.uint8, np.uint16])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_nearest_rows_equal_their_twin(codes, rows):
    rng = np.random.default_rng(rows)
    columns, targets = (rng.integers(0, 3, (5, n)).astype(codes) for n in (rows, 30))
    assert run(columns, targets) == twin(columns, targets)


@pytest.mark.parametrize("near", [5, -1])
def test_rows_beyond_one_stretch(near):
    columns = np.ones((4, 2 * kernel._STRETCH + 3), dtype=np.uint8)
    columns[:, near] = (0, 0, 0, 1)
    assert run(columns, np.zeros((4, 1), dtype=np.uint8)) == [1]


def test_distances_beyond_one_byte():
    columns, targets = np.zeros((300, 2), np.uint8), np.ones((300, 1), np.uint8)
    assert run(columns, targets, np.uint16) == [300]
