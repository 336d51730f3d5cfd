"""Weights that meet all noisy tables at once, against slow solutions of the same problem."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._cells import (
    CLOSENESS,
    FittedTable,
    in_order,
    likely_closeness,
    soft_potentials,
)
from pegsynth.methods.released._estimates import AddedProducts, Margins
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._row_pool import Pool
from pegsynth.methods.released._values import NoisyTable
from pegsynth.random import RandomStream

SIZES = (2, 3, 2)
TOTAL = 120.0


def pool_of_all_rows():
    """Return a pool that has every row once, equally weighed."""
    cells = np.indices(SIZES).reshape(len(SIZES), -1)
    pool = Pool(SIZES, cells.shape[1], RandomStream("joint"))
    pool.columns[:] = cells
    pool.placed = [0, 1, 2]
    return pool


def margins_of(generator):
    tables = []
    for size in SIZES:
        counts = np.full(size, TOTAL / size) + generator.normal(0, 3, size)
        tables.append(NoisyTable((len(tables),), counts, 3.0))
    levels = tuple(np.arange(size) for size in SIZES)
    shares = tuple(np.full(size, 1 / size) for size in SIZES)
    return Margins.of(tuple(tables), levels, shares, TOTAL)


def table_of(fit, features):
    """Return the first table of some features."""
    return next(each for each in fit.tables if each.features == features)


def measured_tables(generator):
    made = []
    for features, deviation in (((1, 0), 4.0), ((0, 2), 2.0), ((0, 1, 2), 6.0)):
        cells = math.prod(SIZES[each] for each in features)
        counts = TOTAL * generator.dirichlet(np.ones(cells)) + generator.normal(0, deviation, cells)
        made.append(NoisyTable(features, np.rint(counts).astype(np.int64), deviation))
    return made


def fitted(generator, fit_class=JointFit, sweeps=400, closeness=None):
    fit = fit_class(pool_of_all_rows(), margins_of(generator), Steps())
    fit.pool.weigh(TOTAL)
    fit.start(measured_tables(generator))
    fit.closeness = closeness or fit.closeness
    fit.sweep(sweeps)
    return fit


def objective(fit):
    """Return the function of log weights to minimise, with its gradient, and its Hessian."""
    c, base = fit.closeness, np.full(fit.pool.rows, TOTAL / fit.pool.rows)

    counted = []
    for features in [table.features for table in fit.tables]:
        cell = np.ravel_multi_index(
            tuple(fit.pool.columns[each].astype(int) for each in features),
            tuple(SIZES[each] for each in features),
        )
        counted.append(np.eye(math.prod(SIZES[each] for each in features))[:, cell])
    noisy = np.concatenate([table.noisy for table in fit.tables])
    variance = np.concatenate([table.variance for table in fit.tables])
    cells = np.concatenate(counted)

    def value(logs):
        weights, apart = np.exp(logs), logs - np.log(base)
        missed = cells @ weights - noisy
        found = (missed**2 / (2 * variance)).sum() + c * (weights * (apart - 1) + base).sum()
        return found, weights * (cells.T @ (missed / variance) + c * apart)

    def hessian(logs):
        weights, (_, gradient) = np.exp(logs), value(logs)
        squares = (cells.T / variance) @ cells * np.outer(weights, weights)
        return squares + np.diag(gradient + c * weights)

    return value, hessian


class BrokenFit(JointFit):
    """A twin that forgets the noise: every table is met as if it had that of one row."""

    def _replace(self, table, noisy, variance, residual=None):
        return super()._replace(table, noisy, np.ones_like(variance), residual)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("closeness", [0.1, 2.0])
def test_sweeps_lead_to_the_minimum(seed, closeness):
    fit = fitted(np.random.default_rng(seed), closeness=closeness, sweeps=1_000)
    value, hessian = objective(fit)
    start = np.log(np.full(fit.pool.rows, TOTAL / fit.pool.rows))
    # Searches that guess the curvature stop short of the minimum where it is flat.
    known = {"jac": True, "hess": hessian, "method": "trust-exact"}
    slow = minimize(value, start, **known, options={"maxiter": 5_000, "gtol": 1e-7})
    # The last digits of the function, about 1e-13, hide gradients of its square root's size.
    assert np.abs(slow.jac).max() < 1e-5
    assert value(np.log(fit.pool.weights))[0] == pytest.approx(slow.fun, rel=1e-6, abs=1e-6)
    assert fit.pool.weights == pytest.approx(np.exp(slow.x), rel=2e-3, abs=1e-4)


def test_a_twin_that_forgets_the_noise_is_caught():
    fit, broken = (fitted(np.random.default_rng(3), each) for each in (JointFit, BrokenFit))
    value, _ = objective(fit)
    assert value(np.log(broken.pool.weights))[0] > value(np.log(fit.pool.weights))[0] + 0.1


@pytest.mark.parametrize("closeness", [1e-6, 1e-3, 0.1, 10.0])
def test_potentials_solve_the_equation_of_their_cells(closeness):
    generator = np.random.default_rng(5)
    sums = generator.uniform(0.01, 500, 40)
    before = generator.normal(0, 1, 40)
    noisy = generator.normal(100, 200, 40)
    softness = closeness * generator.uniform(1, 1e4, 40)
    found = soft_potentials(sums, before, noisy, softness, math.inf)
    for s, p, y, c, f in zip(sums, before, noisy, softness, found, strict=True):
        alone = s * math.exp(-p)
        slow = brentq(lambda x: x * c + alone * math.exp(x) - y, -1e9, 700 - math.log(alone + 1))  # noqa: B023
        assert f == pytest.approx(slow, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("raked", [False, True])
def test_another_pool_has_the_weights_that_potentials_give(raked):
    """On the same rows, in any order and without sweeps, they are the weights of the fit."""
    fit = fitted(np.random.default_rng(4), sweeps=30)
    if raked:
        fit.meet([((0, 1), np.arange(5.0, 35.0, 5.0)), ((2,), np.array([90.0, 30.0]))], 5)
    else:
        said = JointFit(fit.pool, fit.margins, fit.steps)
        said.meet([((1, 2), TOTAL * np.array([1, 2, 3, 1, 1, 2]) / 10)], 5)
        fit = JointFit(fit.pool, fit.margins, fit.steps, followed=said.tables)
        fit.start(measured_tables(np.random.default_rng(4)))
        fit.finish([np.arange(size) for size in SIZES], [True] * len(SIZES))
    order = np.random.default_rng(5).permutation(fit.pool.rows)
    other = pool_of_all_rows()
    other.columns[:] = other.columns[:, order]
    found = fit.on(other, 0)
    assert found.pool.weights == pytest.approx(fit.pool.weights[order], rel=1e-9)
    assert len(set(np.round(found.pool.weights, 6))) > len(SIZES)
    # Sweeps over the same rows go on where the fit has stopped.
    if not raked:
        later = fit.on(pool_of_all_rows(), 3)
        fit.sweep(3)
        assert later.pool.weights == pytest.approx(fit.pool.weights, rel=1e-9)


def test_tables_of_the_same_cells_have_their_turns_in_one_pass():
    """Cells that are numbered apart, as a slow twin has them, lead to the same weights."""
    weights = []
    for apart in (False, True):
        fit = fitted(np.random.default_rng(7), sweeps=3)
        fit._add_products({each: np.linspace(-1, 1, SIZES[each]) for each in range(3)})
        shared = [id(each.keys) for each in fit.tables]
        assert len(set(shared)) < len(shared)
        if apart:
            for table in fit.tables:
                table.keys = table.keys.copy()
        fit.sweep(4)
        weights.append(fit.pool.weights)
    assert weights[0] == pytest.approx(weights[1], rel=1e-9)


def test_potentials_stay_finite_and_within_reach():
    none = soft_potentials(np.zeros(2), np.array([0.5, -1.0]), np.ones(2), np.ones(2), math.inf)
    assert none.tolist() == [0.5, -1.0]  # no weight to scale
    far = np.array([1e12, -1e12, 0.0])
    found = soft_potentials(np.ones(3), np.zeros(3), far, np.full(3, 1e-9), math.log(3))
    assert found == pytest.approx([math.log(3), -math.log(3), -math.log(3)])
    free = soft_potentials(np.ones(3), np.zeros(3), far, np.full(3, 1e-9), math.inf)
    assert np.isfinite(free).all()
    assert free[0] == pytest.approx(math.log(1e12), rel=1e-3)


@dataclass(frozen=True)
class Truth:
    closeness: float
    cells: int = 4_000


@pytest.mark.parametrize("truth", [Truth(0.002), Truth(0.05), Truth(1.0)])
def test_the_closeness_of_a_pool_is_found(truth):
    """Its logarithm has a standard error of about .03 here; a factor of 2 is 20 of these."""
    generator = np.random.default_rng(8)
    expected = generator.uniform(20, 400, truth.cells)
    variance = np.full(truth.cells, 50.0)
    exact = expected + generator.normal(0, np.sqrt(expected / truth.closeness))
    noisy = exact + generator.normal(0, np.sqrt(variance))
    found = CLOSENESS[np.argmax(likely_closeness(noisy, expected, variance))]
    assert truth.closeness / 2 <= found <= truth.closeness * 2
    # Nothing but noise: as close as can be told.
    alone = expected + generator.normal(0, np.sqrt(variance))
    assert CLOSENESS[np.argmax(likely_closeness(alone, expected, variance))] > 5 * truth.closeness


def test_the_closer_a_pool_the_less_tables_move_it():
    moves = []
    for closeness in (0.01, 0.1, 1.0, 100.0):
        fit = fitted(np.random.default_rng(1), closeness=closeness)
        weights, base = fit.pool.weights, TOTAL / fit.pool.rows
        moves.append(float((weights * np.log(weights / base) - weights + base).sum()))
    assert moves == sorted(moves, reverse=True)
    assert moves[-1] < 0.05 * moves[0]


def test_a_table_measured_twice_counts_by_its_precision():
    fit = fitted(np.random.default_rng(2), sweeps=1)
    table = table_of(fit, (0, 1))
    first, variance = table.noisy.copy(), table.variance.copy()
    again = NoisyTable((0, 1), np.arange(6) * 7, 2.0)
    fit.take(again)
    assert [each.features for each in fit.tables].count((0, 1)) == 1
    precision = 1 / variance + 1 / 4.0
    assert table.variance == pytest.approx(1 / precision)
    # What it has more rows than there are is noise on all cells alike.
    counts = again.counts - (again.counts.sum() - fit.margins.total) / 6
    assert table.noisy == pytest.approx((first / variance + counts / 4.0) / precision)


def test_a_table_that_says_what_is_known_has_not_moved():
    fit = fitted(np.random.default_rng(4))
    features = (1, 2)
    expected = fit.pool.expected(features)
    quiet = NoisyTable(features, np.rint(expected).astype(np.int64), 1.0)
    assert not fit.take(quiet)
    loud = NoisyTable((1, 2), np.array([100, 0, 0, 0, 0, 20]), 1.0)
    assert fit.take(loud)


def test_features_are_put_in_the_order_of_the_schema():
    cells = np.arange(12).reshape(2, 3, 2)  # of features 2, 1, 0
    features, counts = in_order(NoisyTable((2, 1, 0), cells.ravel(), 1.0), SIZES)
    assert features == (0, 1, 2)
    assert counts.reshape(SIZES)[1, 2, 0] == cells[0, 2, 1]


def test_rows_should_meet_what_tables_and_weights_agree_on():
    fit = fitted(np.random.default_rng(6), sweeps=1_000, closeness=1.0)
    aims = fit.aims()
    # The pair that nobody measured is among them.
    features = [*(table.features for table in fit.tables), (1, 2)]
    assert len(aims) == len(features)
    for each, (keys, target) in zip(features, aims, strict=True):
        assert np.array_equal(keys, fit.pool.keys(each))
        assert target == pytest.approx(fit.pool.expected(each), abs=1e-3)


def test_rows_get_nearer_to_tables_than_weights_that_have_not_come_to_rest():
    fit = fitted(np.random.default_rng(6), sweeps=1, closeness=1e-4)
    table = table_of(fit, (0, 2))
    (_, aim), weighed = fit.aims()[fit.tables.index(table)], fit.pool.expected((0, 2))
    noisy = np.maximum(table.noisy, 0.0)
    assert np.abs(aim - noisy).sum() < np.abs(weighed - noisy).sum()


def test_noise_below_zero_everywhere_says_nothing():
    fit = JointFit(pool_of_all_rows(), margins_of(np.random.default_rng(7)), Steps())
    fit.pool.weigh(TOTAL)
    fit.start()
    for table, size in zip(fit.tables, SIZES, strict=True):
        table.noisy, table.variance = np.full(size, -9e4), np.full(size, 4.0)
    fit.sweep(40)
    fit.finish([np.arange(size) for size in SIZES], [False] * len(SIZES))
    assert fit.pool.weights == pytest.approx(np.full(fit.pool.rows, TOTAL / fit.pool.rows))
    assert all(target.sum() == pytest.approx(TOTAL) for _, target in fit.aims())


def test_a_sum_of_products_under_loud_noise_leaves_rows_where_they_are():
    """Met as it was measured it would put all rows on one diagonal."""
    sums = {}
    for deviation in (0.5, 5e4):
        fit = JointFit(pool_of_all_rows(), margins_of(np.random.default_rng(8)), Steps())
        fit.pool.weigh(TOTAL)
        fit.start()
        fit.closeness = 1.0
        fit.take(NoisyTable((0, 2), np.array([50, 10, 10, 50]), deviation))
        fit.finish([np.arange(size) for size in SIZES], [True] * len(SIZES))
        fit.sweep(50)
        place = fit.tables.index(table_of(fit, (0, 2)))
        (_, aim), weighed = fit.aims()[place], fit.pool.expected((0, 2))
        assert aim == pytest.approx(weighed, abs=1.0)
        sums[deviation] = aim[[0, 3]].sum()
    assert sums[0.5] == pytest.approx(100, abs=5)
    assert sums[5e4] == pytest.approx(TOTAL / 2, abs=5)


def test_a_product_with_a_feature_of_two_levels_is_left_to_the_fit():
    """Its own noisy table would undo what other tables say of it."""
    fit = fitted(np.random.default_rng(6), sweeps=1_000, closeness=1.0)
    fit.aims()
    fit.products = AddedProducts({each: np.linspace(-1, 1, SIZES[each]) for each in range(3)})
    pairs = ((0, 2), (0, 1))
    for pair in pairs:
        table = fit.pool.expected(pair)
        wanted = fit.products.by_cell(pair) @ table + 100
        fit.tables.append(
            FittedTable(
                pair,
                fit.pool.keys(pair),
                np.array([wanted]),
                np.ones(1),
                np.zeros(1),
                np.zeros(len(CLOSENESS)),
                products=fit.products.by_cell(pair),
            )
        )
    for pair in pairs:
        table = fit.pool.expected(pair)
        assert np.array_equal(fit._tilted(pair, table, fit._products()), table)
