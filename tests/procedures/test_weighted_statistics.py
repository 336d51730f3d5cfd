"""Quantiles, survival, hazards and rates of weighted tables, against slow twins."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from weighted_tables import by_hand, weighted

import pegsynth
from pegsynth import ParameterError, procedures

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
        procedures.quantiles("t", [0.25, 0.5, 0.9]),
        lambda w: [quantile(T, w, p) for p in (0.25, 0.5, 0.9)],
    ),
    (
        procedures.quantiles("y", by="g"),
        lambda w: [quantile(Y[each == G], w[each == G], 0.5) for each in "abc"],
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
    assert list(statistic(FRAME, FRAME["pegs_weight"]).values()) == pytest.approx(main)


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
