import numpy as np
import pytest

from pegsynth.inference.value_columns import is_numeric, numeric_values
from pegsynth.schema import Feature


def test_bins_have_their_midpoints():
    feature = Feature("x", kind="numeric", edges=(0.0, 1.0, 5.0), missing=("",))
    np.testing.assert_array_equal(numeric_values(feature), [0.5, 3.0, np.nan])


def test_bins_of_whole_numbers_have_the_mean_of_the_numbers_in_them():
    feature = Feature("x", kind="numeric", edges=(0.0, 1.0, 5.0, 9.0), dtype="int64")
    # 0; 1 2 3 4; 5 6 7 8 9, the last bin being closed.
    np.testing.assert_array_equal(numeric_values(feature), [0.0, 2.5, 7.0])


def test_ordinal_numbers_are_what_they_spell():
    feature = Feature(
        "x", kind="ordinal", categories=("-1", "2.5"), unknown="category", not_applicable=("9",)
    )
    np.testing.assert_array_equal(numeric_values(feature), [-1.0, 2.5, np.nan, np.nan])


@pytest.mark.parametrize(
    "feature",
    [
        Feature("x", categories=("1", "2")),
        Feature("x", kind="ordinal", categories=("1", "two")),
        Feature("x", kind="ordinal", categories=("1", "nan")),
        Feature("x", kind="ordinal", categories=("1", "inf")),
        Feature("x", kind="ordinal", missing=("",)),
    ],
)
def test_names_have_no_numbers(feature):
    assert not is_numeric(feature)
    assert np.isnan(numeric_values(feature)).all()
    assert len(numeric_values(feature)) == feature.category_count


def test_huge_edges_do_not_overflow():
    feature = Feature("x", kind="numeric", edges=(1e308, 1.7e308))
    assert numeric_values(feature)[0] == pytest.approx(1.35e308)
