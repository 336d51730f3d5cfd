"""Quantiles, survival, hazards and rates of weighted tables, against slow twins."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from weighted_tables import PART, REPLICATES, by_hand, weighted

import pegsynth
from pegsynth import ParameterError
from pegsynth.inference import procedures
from significance import bonferroni

FRAME = weighted()


def column(name):
    return FRAME[name].to_numpy()


def quantile(values, weights, p):
    """Return the smallest value that so many rows do not exceed: every value is tried."""
    for value in np.unique(values):
        if weights[values <= value].sum() >= p * weights.sum() * (1 - 1e-12):
            return value
    return None


def survival(times, events, weights, at):
    """Return the product over all times up to one, each risk set counted again."""
    alive = 1.0
    for time in np.unique(times[times <= at]):
        dead = weights[(times == time) & (events == 1)].sum()
        alive *= 1 - dead / weights[times >= time].sum()
    return alive


def hazard(times, events, weights, at):
    return weights[(times == at) & (events == 1)].sum() / weights[times >= at].sum()


T, E, X, N, Y, G = (column(name) for name in "texnyg")
TWINS = [
    (procedures.means("y"), lambda w: [np.average(Y, weights=w)]),
    (
        procedures.shares("g"),
        lambda w: [w[each == G].sum() / w.sum() for each in "abc"],
    ),
    (
        procedures.kaplan_meier("t", "e", [0.5, 1, 4.5, 7]),
        lambda w: [survival(T, E, w, at) for at in (0.5, 1, 4.5, 7)],
    ),
    (
        procedures.kaplan_meier("t", "e", [3], by="g"),
        lambda w: [survival(T[each == G], E[each == G], w[each == G], 3) for each in "abc"],
    ),
    (
        procedures.hazards("t", "e", [1, 2, 7]),
        lambda w: [hazard(T, E, w, at) for at in (1, 2, 7)],
    ),
    (
        procedures.rates("n", "x", by=["g", "e"]),
        lambda w: [
            (w * N)[(a == G) & (b == E)].sum() / (w * X)[(a == G) & (b == E)].sum()
            for a in "abc"
            for b in (0, 1)
        ],
    ),
]


@pytest.mark.parametrize(("statistic", "twin"), TWINS)
def test_statistics_are_those_of_slow_twins(statistic, twin):
    found = pegsynth.replicated(statistic, FRAME)
    main, covariance = by_hand(twin, FRAME)
    np.testing.assert_allclose(list(found.params.values()), main, rtol=1e-12)
    np.testing.assert_allclose(found.cov_params(), covariance, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", ["t", "y"])
def test_quantiles_have_the_intervals_of_woodruff(name):
    """The share of rows up to a quantile varies; its interval is read off the table."""
    values, wanted = column(name), (0.25, 0.5, 0.9)
    found = pegsynth.replicated(procedures.quantiles(name, wanted, by="g"), FRAME)
    low, high = found.combined.interval(0.9)
    factor = stats.t.ppf(0.95, REPLICATES)
    for place, (group, p) in enumerate((group, p) for group in "abc" for p in wanted):
        inside = group == G
        main = FRAME["pegs_weight"].to_numpy()[inside]
        q = quantile(values[inside], main, p)
        below = values[inside] <= q
        _, variance = by_hand(
            lambda w, below=below, inside=inside: [w[inside][below].sum() / w[inside].sum()], FRAME
        )
        half = factor * variance[0, 0] ** 0.5
        assert list(found.params.values())[place] == q
        assert low[place] == quantile(values[inside], main, p - half)
        assert high[place] == quantile(values[inside], main, p + half)
        one = found.combined[found.names[place]]
        assert one.interval(0.9) == (low[place], high[place])
    with pytest.raises(ParameterError, match="remove names"):
        pegsynth.replicated(procedures.quantiles(name), FRAME, names=["y 0.5"])


def test_intervals_of_medians_hold_the_truth_where_their_replicates_hardly_move():
    """Whole numbers of a few values: bootstraps of simple random samples, 95 % intervals."""
    random, hits, points, runs, rows = np.random.default_rng(9), 0, 0, 300, 400
    for _ in range(runs):
        columns = {"v": random.poisson(11.3, rows), "pegs_weight": np.ones(rows)}
        for k in range(1, 21):
            times = random.multinomial(rows, np.full(rows, 1 / rows))
            columns[f"pegs_weight_{k}"] = 1 + PART * (times - 1) + 1e-9
        frame = pl.DataFrame(columns)
        low, high = pegsynth.replicated(procedures.quantiles("v"), frame).combined.interval(0.95)
        hits += low[0] <= stats.poisson.median(11.3) <= high[0]
        # Broken: replicates of the median itself.
        main, variance = by_hand(lambda w, v=columns["v"]: [quantile(v, w, 0.5)], frame)
        points += abs(main[0] - 11) <= stats.t.ppf(0.975, 20) * variance[0, 0] ** 0.5
    assert stats.binomtest(hits, runs, 0.95, alternative="less").pvalue > bonferroni(2)
    assert points < hits


def test_intervals_keep_to_the_scale_of_the_statistic():
    frame = weighted(60, seed=4)
    for statistic in (
        procedures.kaplan_meier("t", "e", [0.5, 1, 7]),
        procedures.hazards("t", "e", [1, 7]),
        procedures.rates("n", "x"),
    ):
        found = pegsynth.replicated(statistic, frame)
        low, high = found.combined.interval(0.999999)
        inside = np.asarray(found.combined.variance) > 0
        assert (np.asarray(low) >= 0).all()
        assert (np.asarray(low)[inside] < np.asarray(found.combined.estimate)[inside]).all()
        if found.combined.link == "cloglog":
            assert (np.asarray(high) <= 1).all()
            # Nobody has left before the first time.
            assert (low[0], high[0]) == (1.0, 1.0)


def test_a_hazard_regression_of_every_period_has_the_hazards_themselves():
    long = procedures.person_periods(FRAME, "t", "e")
    assert len(long) == FRAME["t"].sum()
    assert long["e"].sum() == FRAME["e"].sum()
    found = pegsynth.replicated("e ~ C(period)", long).params
    start = found.pop("Intercept")
    odds = np.array([start, *(start + each for each in found.values())])
    wanted = pegsynth.replicated(procedures.hazards("t", "e", range(1, 8)), FRAME).params
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), list(wanted.values()), rtol=1e-8)


def test_missing_values_are_left_out():
    holes = FRAME.with_columns(
        pl.when(pl.col("t") == 2).then(None).otherwise(pl.col("y")).alias("y"),
        pl.when(pl.col("t") == 3).then(pl.lit("")).otherwise(pl.col("g")).alias("g"),
    )
    kept = holes.filter(~pl.col("t").is_in([2, 3]))
    statistic = procedures.means("y", by="g")
    assert (
        pegsynth.replicated(statistic, holes).params == pegsynth.replicated(statistic, kept).params
    )
    assert pegsynth.replicated(statistic, holes.to_pandas()).params.to_dict() == pytest.approx(
        pegsynth.replicated(statistic, kept).params
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: procedures.quantiles("y", 1.5), "between 0 and 1"),
        (lambda: pegsynth.replicated(procedures.means("z"), FRAME), "no column 'z'"),
        (lambda: pegsynth.replicated(procedures.means("g"), FRAME), "no numbers"),
        (lambda: pegsynth.replicated(procedures.rates("y", "x"), FRAME), "at least 0"),
        (
            lambda: pegsynth.replicated(procedures.kaplan_meier("t", "x", [1]), FRAME),
            "1 where the event happened",
        ),
        (lambda: procedures.person_periods(FRAME, "x", "e"), "whole numbers"),
        (lambda: procedures.person_periods(FRAME, "t", "e", period="g"), "another name"),
        (lambda: procedures.rao_scott("g", "g2", FRAME), "no column 'g2'"),
    ],
)
def test_what_cannot_be_computed_is_refused(make, said):
    with pytest.raises(ParameterError, match=said):
        make()
