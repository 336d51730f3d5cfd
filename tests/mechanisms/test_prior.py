"""Virtual rows as integers, refused where 64-bit totals could not hold them (R15)."""

import numpy as np
import pytest

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.prior import SCALE, Prior, dirichlet, uniform_weights

COUNTS = (2, 3)


def weights(*lists):
    return tuple(np.array(w, dtype=np.uint64) for w in lists)


def test_dirichlet_gives_every_category_the_same_virtual_rows():
    prior = dirichlet(COUNTS, 5, 8)
    assert [w.tolist() for w in prior.weights] == [[1, 1], [1, 1, 1]]
    assert (prior.multipliers, prior.scale) == ((5, 5), 8)
    assert dirichlet(COUNTS, 5).scale == SCALE


def test_tables_cumulate_the_weights_of_each_feature():
    tables = Prior(weights([1, 3], [2, 1, 4]), (6, 0), 4).tables
    assert tables.weight_cumulative.tolist() == [1, 4, 2, 3, 7]
    assert tables.multiplier.tolist() == [6, 0]
    assert tables.scale == 4
    assert tables.multiplier_start.tolist() == [-1, -1]


@pytest.mark.parametrize("scale", [0, -1, (1 << 30) + 1])
def test_scales_out_of_range(scale):
    with pytest.raises(ParameterError, match="scale"):
        dirichlet(COUNTS, 1, scale)


def test_weights_must_be_positive_and_multipliers_not_negative():
    with pytest.raises(ParameterError, match="positive"):
        Prior(weights([1, 0], [1, 1, 1]), (1, 1))
    with pytest.raises(ParameterError, match="not negative"):
        Prior(uniform_weights(COUNTS), (1, -1))


def test_every_feature_needs_a_multiplier():
    with pytest.raises(ValueError, match="zip"):
        Prior(uniform_weights(COUNTS), (1,))


def test_virtual_rows_beyond_64_bits_are_refused_with_the_way_out():
    assert dirichlet((4,), (1 << 60) - 1).multipliers == ((1 << 60) - 1,)
    with pytest.raises(BudgetError, match=r"raise epsilon.*pegs-rs"):
        dirichlet((4,), 1 << 60)
    with pytest.raises(BudgetError):
        dirichlet((4,), 10**40)


@pytest.mark.parametrize("multiplier", [0, 1])
def test_weights_whose_own_sum_overflows_are_refused(multiplier):
    """The public distribution draws below the sum of weights, whatever the multiplier."""
    with pytest.raises(BudgetError):
        Prior(weights([1 << 63, 1 << 63]), (multiplier,))
