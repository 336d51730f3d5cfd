"""R26: what declared analyses cost, by enumeration; and audits that find out broken sums."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pegsynth.auditing.paths import audit_paths
from pegsynth.auditing.released import analysis_cases
from pegsynth.methods.released._declared import CodedValues
from pegsynth.methods.released._sum_design import SumDesign, sum_design, sums_of
from pegsynth.methods.released._terms import UNITS, Scores, bound, design_of, fitted_scores
from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis

CASES = {case.name: case for case in analysis_cases()}
PRODUCTS = ("declared products", "declared products, approximate")
TINY = Schema(
    (
        Feature("y", kind="ordinal", categories=("0", "1", "4"), missing=("",)),
        Feature("z", kind="ordinal", categories=("0", "3"), unknown="category"),
        Feature("g", categories=("a", "b", "c"), missing=("",)),
        Feature("n", kind="numeric", edges=(0.0, 1.0, 3.0), dtype="int64", missing=("",)),
    ),
    reviewed=True,
)


@pytest.mark.parametrize("name", CASES)
def test_every_path_of_a_declared_analysis_costs_what_the_ledger_says(name):
    case = CASES[name]
    worst = audit_paths(case)
    assert worst.holds(case.stated), worst


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("y ~ z + g + n", "gaussian"),
        ("I(y > 0) ~ z + C(z) + n", "binomial"),
        ("n ~ y + I(n > 1)", "poisson"),
        ("g ~ y + n", "multinomial"),
        ("y ~ z*g*n", "gaussian"),
        ("n ~ y*z + y*g + I(y^2)", "poisson"),
        ("g ~ y*n + log1p(n) + rcs(n, 0, 1, 2)", "multinomial"),
        ("log(y) ~ log(n)*z + sqrt(n)", "gaussian"),
    ],
)
@pytest.mark.parametrize("bounds", [(0.0, 3.0), (0.5, 1.5)])
def test_the_price_is_the_largest_over_every_row_of_the_domain(formula, family, bounds):
    design = sum_design(design_of(Analysis(formula, family), TINY), TINY, {"n": bounds}, steps=4)
    rows = np.array(list(product(*map(range, design.schema.category_counts))), dtype=np.uint8)
    added = design.products(rows)
    largest = [int((np.abs(added) ** power).sum(axis=1).max()) for power in (1, 2)]
    claimed = [design.largest(power) for power in (1, 2)]
    distinct = len(set(design.design.features)) == len(design.design.blocks)
    assert all(most <= claim for most, claim in zip(largest, claimed, strict=True))
    if distinct and bounds == (0.0, 3.0):
        assert largest == claimed
    assert sums_of([rows[:5], rows[5:]], design).tolist() == added.sum(axis=0).tolist()


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("y ~ z + g + n", "gaussian"),
        ("I(y > 0) ~ z + C(z) + n", "binomial"),
        ("I(y > 0) ~ n*g + z*n + I(n^2)", "binomial"),
    ],
)
@pytest.mark.parametrize("steps", [4, 64])
@pytest.mark.parametrize("limit", [1, 3, 200])
@pytest.mark.parametrize("turning", [None, 0.3, 4.0, 4000.0])
def test_no_row_of_the_domain_adds_more_to_a_score_than_its_bound(
    formula, family, steps, limit, turning
):
    bounds = {"n": (0.5, 1.5)}
    plain = sum_design(design_of(Analysis(formula, family), TINY), TINY, bounds, steps=steps)
    coefficients = np.resize(np.array([100, -300, 900, 50, 7]), plain.columns - 1)
    lines = turning and turned_lines(len(coefficients), turning)
    design = replace(plain, scores=Scores(coefficients, limit, family == "binomial", lines))
    rows = np.array(list(product(*map(range, design.schema.category_counts))), dtype=np.uint8)
    added = design.products(rows)
    # Turned columns that are longer than the bound leave no residual: such rows add nothing.
    assert added.any() or (turning or 0) > 1
    assert added.shape[1] == plain.columns - 1
    for power in (1, 2):
        largest = int((np.abs(added) ** power).sum(axis=1).max())
        assert largest <= design.largest(power)
        assert turning or design.largest(power) <= plain.largest(power)
    assert sums_of([rows[:5], rows[5:]], design).tolist() == added.sum(axis=0).tolist()
    if turning == 4.0 and limit == 1 and steps > 4:
        # Broken: the residual is clipped by the length of the columns before they are turned.
        straight = replace(design, scores=replace(design.scores, turned=None))
        loose = straight.values(rows)[:, [1]] * np.delete(design.values(rows), 1, axis=1)
        assert (loose**2).sum(axis=1).max() > design.largest(2)
    if turning is None and limit == 1 and steps > 4:
        # The bound is reached but for rounding, so the price is not larger than it must be.
        assert (added**2).sum(axis=1).max() > 0.9 * design.largest(2)
        # Broken: the residual is clipped by itself, and not by the length of its row.
        columns = plain.values(rows)
        loose = np.clip(columns[:, [1]] * steps, -steps, steps) * np.delete(columns, 1, axis=1)
        assert (loose**2).sum(axis=1).max() > design.largest(2)


def test_products_of_columns_that_are_not_scaled_cost_more_than_is_paid_for():
    design = sum_design(design_of(Analysis("n ~ y*z", "poisson"), TINY), TINY, {}, steps=4)
    rows = np.array(list(product(*map(range, design.schema.category_counts))), dtype=np.uint8)
    assert (design.products(rows) ** 2).sum(axis=1).max() <= design.largest(2)
    # Broken: the interaction, which is the last column, is left in units of its parts.
    columns = design.values(rows)
    columns[:, -1] = columns[:, -2] * columns[:, -3]
    loose = design.multiplied(columns) * design.factors
    assert (loose**2).sum(axis=1).max() > design.largest(2)


def test_transformed_numbers_are_those_of_clipped_values():
    bounds = {"n": (1.0, 2.0)}
    design = sum_design(design_of(Analysis("y ~ n + log(n)"), TINY), TINY, bounds, steps=64)
    numbers, logs = design.lines[1][:, 0], design.lines[2][:, 0]
    # The grid of whole numbers 0, 1, 2, and missing: 0 has no logarithm, whatever it is clipped to.
    assert numbers.tolist()[:3] == [-64, -64, 64]
    assert design.usable[1].tolist() == [True, True, True, False]
    assert design.usable[2].tolist() == [False, True, True, False]
    assert logs.tolist()[1:3] == [-64, 64]


def turned_lines(size, scale):
    """Return lines that mix all columns."""
    mixed = np.cos(np.arange(size * size).reshape(size, size)) + np.eye(size)
    return np.rint(mixed * scale * UNITS).astype(np.int64)


@pytest.mark.parametrize("logistic", [False, True])
def test_scores_of_turned_columns_spread_alike_and_few_rows_are_too_long(logistic):
    random, steps, parts = np.random.default_rng(3), 1024, 3
    numbers = np.column_stack([random.normal(size=5000) ** 2, random.random(5000) < 0.2])
    scaled = np.rint(np.clip(numbers / [4.0, 1.0], -1, 1) * steps).astype(np.int64)
    noise = random.standard_t(3, size=5000) * 90
    response = scaled @ [0.2, -0.1] + noise
    response = np.where(response > 0, steps, 0) if logistic else np.clip(response, -steps, steps)
    columns = np.column_stack([np.full(5000, steps), response.astype(np.int64), scaled])
    scores = fitted_scores(columns, steps, parts, tail=1e-3, long_tail=0.02, logistic=logistic)
    found = scores.scored(columns, steps, parts)
    added = found[:, [1]] * np.delete(found, 1, axis=1)
    spread = np.linalg.eigvalsh(added.T @ added)
    assert spread[-1] < 1.2 * spread[0]
    lengths = (added**2).sum(axis=1)
    assert lengths.max() <= bound(steps, parts)
    assert np.mean(lengths > 0.98 * bound(steps, parts)) == pytest.approx(0.02, abs=0.01)


def test_a_table_without_residuals_has_columns_in_their_own_directions():
    columns = np.zeros((4, 3), dtype=np.int64)
    scores = fitted_scores(columns, 64, 2, tail=0.1, long_tail=0.1, logistic=False)
    assert (scores.turned == np.eye(2) * scores.turned[0, 0]).all()
    assert scores.turned[0, 0] > 0


def test_scores_are_residuals_times_columns():
    """Where nothing is clipped the score is that of the regression itself."""
    schema = Schema((Feature("y", kind="ordinal", categories=("0", "1", "2")), TINY["z"]))
    plain = sum_design(design_of(Analysis("y ~ z"), schema), schema, {}, steps=64)
    design = replace(plain, scores=Scores(np.array([128, 64]), 1 << 12, logistic=False))
    codes = np.array([[0, 0], [2, 1], [1, 1]], dtype=np.uint8)
    columns = plain.values(codes)
    residuals = (columns[:, 1] - (columns[:, [0, 2]] @ [128, 64]) // 256) * 64 // (1 << 12)
    assert design.products(codes).tolist() == (residuals[:, None] * columns[:, [0, 2]]).tolist()


class OwnBounds(CodedValues):
    """Broken: numbers are scaled by the largest one of the table."""

    def sums(self, design):
        lines = []
        for line, place in zip(design.lines, design.places, strict=True):
            most = int(self.codes[:, place].max(initial=0))
            lines.append(np.where(np.arange(len(line))[:, None] == most, design.steps, line))
        return super().sums(replace(design, lines=tuple(lines)))


class Unclipped(CodedValues):
    """Broken: values beyond the bounds add as much as they are."""

    def sums(self, design):
        return super().sums(replace(design, lines=tuple(3 * line for line in design.lines)))


class OwnLimit(CodedValues):
    """Broken: residuals are scaled by the largest one of the table."""

    def sums(self, design):
        most = int(np.abs(self.codes[:, 0].astype(np.int64) - 1).max(initial=1))
        return super().sums(design) * most * len(self.codes)


class OwnTurning(CodedValues):
    """Broken: columns are turned by what the table holds."""

    def sums(self, design):
        most = int(self.codes[:, 0].max(initial=0))
        scores = replace(design.scores, turned=design.scores.turned * (most - 1))
        return super().sums(replace(design, scores=scores))


def test_the_audit_finds_out_columns_that_are_turned_by_the_table():
    for name in ("declared analysis", "declared analysis, approximate"):
        pairs = (*CASES[name].pairs, (((0, 0), (1, 0)) * 20, ((2, 0),)))
        case = replace(CASES[name], pairs=pairs)
        assert audit_paths(case).holds(case.stated)
        broken = replace(case, values=OwnTurning)
        assert not audit_paths(broken).holds(broken.stated)


def test_the_audit_finds_out_a_score_that_is_scaled_by_the_table():
    for name in ("declared analysis", "declared logistic analysis, approximate"):
        case = replace(CASES[name], values=OwnLimit)
        assert not audit_paths(case).holds(case.stated)


@pytest.mark.parametrize("twin", [OwnBounds, Unclipped])
def test_the_audit_finds_out_bounds_off_the_table_and_values_that_are_not_clipped(twin):
    for name in PRODUCTS:
        pairs = (*CASES[name].pairs, (((1, 0),) * 12, ((2, 0),)))
        case = replace(CASES[name], values=twin, pairs=pairs)
        assert not audit_paths(case).holds(case.stated)


def test_the_audit_finds_out_products_whose_own_maximum_was_forgotten(monkeypatch):
    def of_columns(self, power):
        """Return what the columns are at most, and not their products."""
        return sum(self._most(block) ** power for block in range(len(self.lines)))

    monkeypatch.setattr(SumDesign, "largest", of_columns)
    for name in PRODUCTS:
        case = CASES[name]
        assert not audit_paths(case).holds(case.stated)
