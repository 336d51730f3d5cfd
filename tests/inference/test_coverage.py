"""How often 95 % intervals hold the truth: simulations at a named false-alarm rate (R16).

An interval's true coverage is near .95, and approximations (t quantiles, discrete counts)
move it by less than half a percent point. A rule passes when its share among
`REPLICATIONS` lies within [.93, .97]; with a true coverage anywhere in [.945, .955] that
fails with probability below `ALPHA` over all comparisons of this file together.
The wrong rules at the end must fail the same check.
"""

import numpy as np
import pytest
from scipy import stats

from checks.bench import coverage, declared_coverage
from checks.bench.coverage import (
    ORIGINAL_ROWS,
    QUANTITIES,
    logistic_slope,
    measure,
    newton_logistic,
    normal_mean,
    share_of_ones,
    urn_share,
)
from significance import bonferroni

REPLICATIONS = 10_000
COMPARISONS = 100
LOWEST, HIGHEST = 0.93, 0.97
ROW_COUNTS = [ORIGINAL_ROWS // 2, ORIGINAL_ROWS, 2 * ORIGINAL_ROWS]

by_quantity = pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
by_rows = pytest.mark.parametrize("rows", ROW_COUNTS, ids=lambda rows: f"n={rows}")


def found(quantity, way, rule, rows, datasets, *, replications=REPLICATIONS):
    words = np.random.default_rng([rows, datasets, len(way), len(rule), len(quantity.__name__)])
    return measure(quantity(words, way, rows, datasets, replications), rule, rows)


def passes(result):
    return LOWEST <= result.covered <= HIGHEST


def test_the_false_alarm_rate_is_as_stated():
    for true in (0.945, 0.955):
        hits = stats.binom(REPLICATIONS, true)
        outside = hits.cdf(LOWEST * REPLICATIONS - 1) + hits.sf(HIGHEST * REPLICATIONS)
        assert outside < bonferroni(COMPARISONS)
    # A rule that covers 91 % or 99 % is as surely found out.
    for true in (0.91, 0.99):
        hits = stats.binom(REPLICATIONS, true)
        inside = hits.cdf(HIGHEST * REPLICATIONS) - hits.cdf(LOWEST * REPLICATIONS - 1)
        assert inside < bonferroni(COMPARISONS)


@by_rows
@by_quantity
@pytest.mark.parametrize("way", ["plug-in", "proper"])
def test_plug_in_rule(way, quantity, rows):
    assert passes(found(quantity, way, "plug-in", rows, 5))


@pytest.mark.parametrize("datasets", [3, 20])
@pytest.mark.parametrize("way", ["plug-in", "proper"])
def test_plug_in_rule_for_other_numbers_of_datasets(way, datasets):
    assert passes(found(normal_mean, way, "plug-in", ORIGINAL_ROWS, datasets))


@pytest.mark.parametrize("quantity", [share_of_ones, logistic_slope])
@pytest.mark.parametrize("datasets", [3, 5, 20])
@pytest.mark.parametrize("way", ["partial", "partial-proper"])
def test_partial_rule(quantity, datasets, way):
    assert passes(found(quantity, way, "partial", ORIGINAL_ROWS, datasets))


@by_quantity
def test_two_datasets_cover_less(quantity):
    """One difference tells little about b: what `combine` says in a note is true."""
    result = found(quantity, "proper", "plug-in", ORIGINAL_ROWS // 2, 2)
    assert 0.89 < result.covered < LOWEST


@by_rows
@by_quantity
def test_shared_draw_rule(quantity, rows):
    assert passes(found(quantity, "shared", "shared-urn", rows, 5))


@by_rows
@pytest.mark.slow
def test_shared_draw_rule_on_values_dealt_from_an_urn(rows):
    assert passes(found(urn_share, "shared", "shared-urn", rows, 5))
    assert not passes(found(urn_share, "shared", "plug-in", rows, 5))


@by_rows
@by_quantity
@pytest.mark.parametrize("datasets", [20, 50])
@pytest.mark.slow
def test_the_papers_rule_on_proper_data(quantity, rows, datasets):
    """At least 93 %: it covers too much where its variance is often near 0."""
    assert found(quantity, "proper", "fully", rows, datasets, replications=4000).covered >= LOWEST


def test_the_papers_rule_is_wide_at_few_datasets():
    wide = found(normal_mean, "proper", "fully", ORIGINAL_ROWS, 5)
    plain = found(normal_mean, "proper", "plug-in", ORIGINAL_ROWS, 5)
    assert wide.width > 2 * plain.width
    assert wide.negative > 0.1


@by_rows
@by_quantity
def test_wrong_plug_in_rule_on_a_shared_draw(quantity, rows):
    result = found(quantity, "shared", "plug-in", rows, 5)
    assert not passes(result)
    assert 0.8 < result.covered < 0.9


@by_rows
@by_quantity
@pytest.mark.parametrize("datasets", [5, 20])
def test_wrong_papers_rule_on_plug_in_data(quantity, rows, datasets):
    """Negative variances counted as misses: half of the intervals are lost."""
    result = found(quantity, "plug-in", "fully", rows, datasets)
    assert result.covered_strictly < 0.6
    assert 0.4 < result.negative < 0.6


def test_wrong_partial_rule_on_larger_synthetic_data():
    """T_p is for n = N: with n = 2 N it takes the sampling error of N rows for half of it."""
    assert not passes(found(normal_mean, "plug-in", "partial", 2 * ORIGINAL_ROWS, 5))


def test_newton_agrees_with_the_odds_ratio():
    cells = np.random.default_rng(1).integers(20, 300, size=(3, 50, 4)).astype(float)
    slope, variance = newton_logistic(cells)
    a, b, c, d = np.moveaxis(cells, -1, 0)
    np.testing.assert_allclose(slope, np.log(a * d / (b * c)), atol=1e-9)
    np.testing.assert_allclose(variance, 1 / a + 1 / b + 1 / c + 1 / d, rtol=1e-9)


def test_the_table_is_printed(capsys):
    coverage.main(["--only", "rules", "--replications", "40"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| synthesis | rule | K | quantity | n/N | coverage |")
    assert len({line.count("|") for line in lines}) == 1


SHORT = "--rows 400 --releases 1 --replicates 3 --tables 2 --truth 20000"


def printed(capsys, *options):
    coverage.main([*options, *SHORT.split()])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| table | epsilon | method | statistic | rule | coverage |")
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def test_the_table_of_released_blocks_is_printed(capsys, tmp_path):
    """A very short form: one release of a small table; what was measured is not done again."""
    kept = ("--only", "released", "--table", "discharge", "--epsilon", "5", "--results")
    kept = (*kept, str(tmp_path / "found.jsonl"))
    lines = printed(capsys, *kept)
    assert {line[4] for line in lines} == {
        "replicate-weights", "without floor", "own-noise", "plug-in", "flag"
    }  # fmt: skip
    # What no table holds is flagged every time.
    assert {line[5] for line in lines if line[4] == "flag"} == {"1.000"}
    size = (tmp_path / "found.jsonl").stat().st_size
    assert printed(capsys, *kept) == lines
    assert (tmp_path / "found.jsonl").stat().st_size == size


def test_the_table_of_other_methods_is_printed(capsys):
    lines = printed(capsys, "--only", "methods", "--method", "pegs", "--epsilon", "5")
    assert {tuple(line[2:5:2]) for line in lines} == {("pegs", "plug-in")}


def test_the_table_of_numbers_is_printed(capsys):
    lines = printed(capsys, "--only", "values", "--epsilon", "5")
    assert {line[3] for line in lines} == {"mean of age.yrs", "mean of charge", "mean of los"}


@pytest.mark.slow(seconds=6)
def test_the_benchmark_of_declared_regressions_goes_on_where_it_stopped(tmp_path, capsys):
    told = ["--rows", "1500", "--replicates", "2", "--truth", "4000", "--epsilon", "20"]
    told += ["--results", str(tmp_path / "r.jsonl"), "--releases", "1"]
    declared_coverage.main(told)
    first = capsys.readouterr().out
    assert first.startswith("| coefficient | coverage | median width |")
    assert len(first.splitlines()) == 2 + len(declared_coverage.NAMES)
    declared_coverage.main(told)
    assert capsys.readouterr().out == first
