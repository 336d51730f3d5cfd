"""The benchmark of released values runs, and its measures are what they say."""

from __future__ import annotations

import polars as pl
import pytest

from checks.bench import released_numbers
from lanes import long_form
from pegsynth.datasets import discharge


def test_a_table_is_no_distance_from_itself():
    table = discharge(2000, seed=1)
    line = released_numbers.Line.of(table, table)
    parts = (line.distances, line.means, line.deviations, line.slopes)
    assert all((part == 0).all() for part in parts)
    assert line.nominal == 0
    assert released_numbers.kolmogorov(pl.Series([1, 2]), pl.Series([2, 3])) == 0.5


@long_form
@pytest.mark.slow(seconds=20)
def test_the_benchmark_prints_its_lines(capsys):
    released_numbers.main(["--rows", "2000", "--runs", "1", "--epsilon", "10"])
    assert len(capsys.readouterr().out.splitlines()) == 5
    released_numbers.main(["--decode", "2000"])
    assert "by a model" in capsys.readouterr().out
