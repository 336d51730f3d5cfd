"""A law of hidden classes against finite differences, a slow solver, and tables without noise."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from pegsynth.mechanisms.residuals import residual_of
from pegsynth.methods.released import _pairs
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._estimates import Margins, ratio_weights, shrunken, with_floor
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._pair_pool import PairModel, follow
from pegsynth.methods.released._pairs import (
    PairEstimates,
    classes_to_try,
    fitted_classes,
    free_cells,
)
from pegsynth.methods.released._row_pool import Pool, pairs_at_once, rows_at_once
from pegsynth.methods.released._values import NoisyTable
from pegsynth.random import RandomStream

SIZES = (2, 3, 2, 4)
TOTAL = 10_000


def joint_of(seed, classes=2):
    """Return the joint shares of a law with hidden classes."""
    generator = np.random.default_rng(seed)
    joint = np.zeros(SIZES)
    for share in generator.dirichlet(np.full(classes, 5.0)):
        part = np.array(share)
        for size in SIZES:
            part = np.multiply.outer(part, generator.dirichlet(np.ones(size)))
        joint += part
    return joint


def measured(joint, deviation, generator=None):
    """Return one-way counts and residuals of a joint law, with noise if there is a generator."""
    counts = np.rint(joint * TOTAL).astype(np.int64)
    places = range(len(SIZES))
    whole = float(counts.sum())
    lines, precisions = [], []
    for place in places:
        lines.append(counts.sum(axis=tuple(p for p in places if p != place)) / whole)
        precisions.append(np.full(SIZES[place], deviation**-2.0))
    margins = Margins(
        SIZES, whole, [s * whole * p for s, p in zip(lines, precisions, strict=True)], precisions
    )
    margins.shares = lines
    return PairEstimates.of(residuals_of(joint, deviation, generator), SIZES), margins


def residuals_of(joint, deviation, generator=None):
    """Return the residuals of all pairs."""
    counts = np.rint(joint * TOTAL).astype(np.int64)
    places, residuals = range(len(SIZES)), []
    for pair in combinations(places, 2):
        levels = [SIZES[place] for place in pair]
        table = counts.sum(axis=tuple(p for p in places if p not in pair)).ravel()
        exact = residual_of(table, levels)
        noise = deviation * math.prod(levels)
        if generator is not None:
            exact = exact + np.rint(generator.normal(0, noise, exact.shape)).astype(np.int64)
        residuals.append(NoisyTable(pair, exact, noise))
    return residuals


def uniforms_of(seed):
    return np.random.default_rng(seed).random


def shares_of(joint, pair):
    return joint.sum(axis=tuple(p for p in range(len(SIZES)) if p not in pair)) / joint.sum()


def test_slopes_are_those_of_the_misfit():
    estimates, margins = measured(joint_of(1), 20.0)
    wanted = _pairs._Wanted.of(estimates, margins)
    levels = sum(SIZES)
    point = np.random.default_rng(2).normal(size=(3, levels + 1))

    def half_misfit(at):
        shares, laws = _pairs.law_at(at, SIZES)
        ones = wanted.ones_precision @ (shares @ laws - wanted.ones) ** 2
        return (wanted.slope(shares, laws)[1] + ones) / 2

    slope, _ = wanted.slope(*_pairs.law_at(point, SIZES))
    for place in ((0, 0), (1, 4), (2, 7), (1, levels)):
        step = np.zeros_like(point)
        step[place] = 1e-6
        found = (half_misfit(point + step) - half_misfit(point - step)) / 2e-6
        assert found == pytest.approx(slope[place], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", [3, 4])
def test_tables_without_noise_come_back(seed):
    joint = joint_of(seed)
    estimates, margins = measured(joint, 0.5)
    law = fitted_classes(estimates, margins, uniforms_of(5), most_turns=2_000)
    for pair in combinations(range(len(SIZES)), 2):
        away = 0.5 * np.abs(law.pair(pair) - shares_of(joint, pair)).sum()
        assert away < 0.005
        assert law.pair(pair).sum() == pytest.approx(1)
    # What is expected is no more than that: exact residuals decide.
    estimates.expect(law.pair, margins)
    for pair in estimates.pairs:
        found = estimates.counts(pair, margins, shrink=True) / margins.total
        assert 0.5 * np.abs(found - shares_of(joint, pair)).sum() < 0.001


def test_the_fit_is_as_close_as_that_of_a_slow_solver():
    estimates, margins = measured(joint_of(6, classes=4), 5.0)
    wanted = _pairs._Wanted.of(estimates, margins)
    levels = sum(SIZES)

    def misfit(flat):
        shares, laws = _pairs.law_at(flat.reshape(2, levels + 1), SIZES)
        slope, missed = wanted.slope(shares, laws)
        ones = wanted.ones_precision @ (shares @ laws - wanted.ones) ** 2
        return (missed + ones) / 2, slope.ravel()

    generator = np.random.default_rng(7)
    slow = min(
        minimize(misfit, generator.normal(size=2 * (levels + 1)), jac=True, method="BFGS").fun
        for _ in range(8)
    )
    law = fitted_classes(estimates, margins, uniforms_of(8), most_turns=3_000, counts=[2])
    ours = (
        wanted.slope(law.shares, law.laws)[1]
        + wanted.ones_precision @ (law.shares @ law.laws - wanted.ones) ** 2
    ) / 2
    assert ours <= 1.02 * slow + 0.5


def test_noise_is_not_fitted_and_what_pairs_share_is():
    """On average over noisy measurements the law is closer than each residual by itself.

    The seeds are fixed, so there is no false alarm.
    """
    joint = joint_of(9)
    errors = {"law": [], "alone": []}
    for seed in range(20):
        estimates, margins = measured(joint, 500.0, np.random.default_rng(seed))
        law = fitted_classes(estimates, margins, uniforms_of(seed), most_turns=300)
        for pair in estimates.pairs:
            true = shares_of(joint, pair)
            raw = estimates.noisy(pair, margins) / margins.total
            errors["law"].append(0.5 * np.abs(law.pair(pair) - true).sum())
            errors["alone"].append(0.5 * np.abs(raw - true).sum())
    assert np.mean(errors["law"]) < 0.85 * np.mean(errors["alone"])


def test_a_loud_pair_moves_the_law_less_than_a_quiet_one():
    """A twin that weighs all pairs alike is caught."""

    def false_pair(alike):
        estimates, margins = measured(joint_of(10), 5.0)
        pair = (1, 3)
        wrong = np.outer([1.0, -1.0, 0.0], [1.0, -1.0, 0.0, 0.0]).ravel() * 800
        before = estimates.sums[pair] / estimates.precisions[pair]
        precision = estimates.precisions[pair]
        estimates.precisions[pair] = precision if alike else precision / 1e4
        estimates.sums[pair] = (before + wrong) * estimates.precisions[pair]
        law = fitted_classes(
            estimates,
            margins,
            uniforms_of(11),
            most_turns=1_500,
            counts=[3],
        )
        return 0.5 * np.abs(law.pair(pair) - shares_of(joint_of(10), pair)).sum()

    assert false_pair(alike=False) < 0.02
    assert false_pair(alike=True) > 0.02


def test_numbers_of_classes_grow_and_end():
    tried = classes_to_try(32, 300)
    assert tried == sorted(set(tried))
    assert tried[0] == 2
    assert len(classes_to_try(5_000, 300)) == 1


def test_other_tables_say_what_a_small_one_cannot():
    generator = np.random.default_rng(12)
    expected = generator.uniform(50, 100, 400)
    right = expected + generator.normal(0, 10, 400)
    weights = ratio_weights(right, expected, np.full(400, 10.0))
    assert weights.sum() == pytest.approx(1)
    # Where expectations are right everywhere else, a cell that is off by its noise is noise.
    four, off = expected[:4], expected[:4] + np.array([25.0, -25.0, -25.0, 25.0])
    alone, together = shrunken(off, four, 10.0), shrunken(off, four, 10.0, weights)
    assert np.abs(together - four).sum() < 0.6 * np.abs(alone - four).sum()
    # Cells that no noise could have made stay as they are, whatever others say.
    far = expected[:4] * np.array([3.0, 0.1, 0.1, 3.0])
    assert shrunken(far, four, 1.0, weights) == pytest.approx(far, rel=0.05)
    nothing = ratio_weights(right, np.zeros(400), np.full(400, 4.0))
    assert nothing.sum() == pytest.approx(1)


def test_a_law_that_misses_by_far_more_than_noise_says_so():
    joint = np.zeros(SIZES)
    joint[0, 0, 0, 0] = joint[1, 1, 1, 1] = joint[0, 2, 1, 2] = joint[1, 0, 0, 3] = 0.25
    estimates, margins = measured(joint, 0.5)
    options = {"most_turns": 200, "counts": [2]}
    assert fitted_classes(estimates, margins, uniforms_of(13), **options).misfit > 100
    estimates, margins = measured(joint_of(14), 200.0, np.random.default_rng(14))
    assert fitted_classes(estimates, margins, uniforms_of(13), most_turns=300).misfit < 3


def crowded_pool(seed=15, rows=400):
    """Return a pool of few rows after it was drawn by all pairs of a law."""
    joint, steps = joint_of(seed, classes=3), Steps()
    _, margins = measured(joint, 5.0)
    margins.shares = [with_floor(line) for line in margins.shares]
    pool = Pool(SIZES, rows, RandomStream("crowded"))
    model = PairModel.of(residuals_of(joint, 5.0), pool, margins, steps)
    model.draw(pool, margins, steps)
    return model, JointFit(pool, margins, steps), joint


def test_a_crowded_pool_is_drawn_by_classes(monkeypatch):
    # Few rows that are asked for do not make a table crowded: a sample is drawn like a release.
    for rows in (400, 10):
        model, roomy, _ = crowded_pool(rows=rows)
        assert not model.crowded
        assert sum(map(free_cells, combinations(SIZES, 2))) < 0.5 * rows_at_once(6, 1 << 20)
        assert np.array_equal(roomy.pool.columns.shape, (len(SIZES), rows))
    monkeypatch.setattr("pegsynth.methods.released._pair_pool._MOST_CROWDED", 0.0)
    model, crowded, joint = crowded_pool()
    assert model.crowded
    for pair in combinations(range(len(SIZES)), 2):
        counted = crowded.pool.counts(pair) / crowded.pool.rows
        # 400 rows: a table of at most 12 cells is off by .05 once in 1e9, were they drawn freely.
        assert 0.5 * np.abs(counted - shares_of(joint, pair).ravel()).sum() < 0.12


def test_a_pool_follows_a_law_that_is_likelier_than_what_drew_it():
    """Independent columns are an unlikely pool for classes; their own law is a likely one."""
    model, fit, joint = crowded_pool(rows=4_000)
    for feature, line in enumerate(fit.margins.shares):
        fit.pool.draw(feature, (), line[None, :])
    fit.pool.weigh(fit.margins.total)
    assert model.explains_more_than(fit)
    follow(model.classes, model.estimates.pairs, fit)
    pair = (0, 1)
    told = fit.pool.expected(pair) / fit.pool.weights.sum()
    assert 0.5 * np.abs(told - model.classes.pair(pair).ravel()).sum() < 0.02
    assert 0.5 * np.abs(told - shares_of(joint, pair).ravel()).sum() < 0.05
    # Without shrinkage it is not followed, nor one that explains no more than the pool does.
    fit.steps = Steps(shrink=False)
    assert not model.explains_more_than(fit)
    fit.steps = Steps()
    wrong = replace(model.classes, laws=np.roll(model.classes.laws, 1, axis=0))
    assert not replace(model, classes=wrong).explains_more_than(fit)


def test_rows_are_dealt_to_classes_by_their_shares():
    pool = Pool(SIZES, 1_000, RandomStream("dealt"))
    classes = pool.deal(np.array([0.5, 0.3, 0.2]))
    assert np.bincount(classes).tolist() == [500, 300, 200]
    pool.draw_by(1, classes, np.eye(3))
    assert np.array_equal(pool.columns[1], classes)


def test_many_pairs_leave_room_for_fewer_rows():
    assert pairs_at_once(1 << 20, 600) == 600
    assert pairs_at_once(50_000, 600) > 4_950
    assert rows_at_once(600, 1 << 20) == 1 << 20
    assert 50_000 < rows_at_once(4_950, 1 << 20) < 60_000
    assert rows_at_once(1 << 28, 1 << 20) == 1 << 14


@pytest.mark.parametrize("missed", [0.5, 30.0, 400.0, 1e4, 1e6])
@pytest.mark.parametrize("bound", [2.0, 10.0, 60.0])
def test_a_search_is_hopeless_where_no_number_of_classes_comes_below_the_bound(missed, bound):
    """The closed form against all numbers of classes, within what whole numbers leave open."""
    estimates, margins = measured(joint_of(1), 20.0)
    wanted = replace(_pairs._Wanted.of(estimates, margins), free=100)
    start = _pairs._Descent.beside_independence(wanted, 12, uniforms_of(14), 300)
    start.missed = missed * wanted.free
    added = 2 * _pairs.free_figures(2, SIZES) / wanted.free
    least = min(missed * (12 / more) ** 1.5 + added * (more - 1) for more in range(12, 100_000))
    assert abs(least - bound) > 0.01  # no tie
    assert start.is_hopeless(bound) == (least > bound)


def test_few_classes_are_never_called_hopeless():
    estimates, margins = measured(joint_of(1), 20.0)
    wanted = _pairs._Wanted.of(estimates, margins)
    start = _pairs._Descent.beside_independence(wanted, 11, uniforms_of(15), 300)
    start.missed = 1e12
    assert not start.is_hopeless(1.0)


def test_a_search_without_hope_ends_early_and_says_so():
    """Pairs with no classes behind them, almost without noise: no law is near."""
    joint = np.random.default_rng(16).dirichlet(np.full(math.prod(SIZES), 0.2)).reshape(SIZES)
    estimates, margins = measured(joint, 0.01)
    drawn = {10.0: [], math.inf: []}
    laws = {}
    for bound, sizes in drawn.items():

        def uniforms(count, sizes=sizes):
            sizes.append(count // sum(SIZES))
            return np.random.default_rng(len(sizes)).random(count)

        laws[bound] = fitted_classes(
            estimates,
            margins,
            uniforms,
            most_turns=600,
            counts=[2, 6, 12, 18, 27],
            useful_below=bound,
        )
    assert drawn[10.0] == drawn[math.inf][: len(drawn[10.0])]
    assert max(drawn[10.0]) == 12
    assert max(drawn[math.inf]) > 12
    assert laws[10.0].misfit > 10
