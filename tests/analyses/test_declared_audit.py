"""R26: what declared analyses cost, by enumeration; and audits that find out broken sums."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pegsynth.analyses import design_of
from pegsynth.analyses.measuring_sums import CodedValues
from pegsynth.analyses.row_scores import Scores
from pegsynth.analyses.sum_design import SumDesign, sum_design, sums_of
from pegsynth.auditing.released import analysis_cases, audit_paths
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
    ("formula", "family"), [("y ~ z + g + n", "gaussian"), ("I(y > 0) ~ z + C(z) + n", "binomial")]
)
@pytest.mark.parametrize("steps", [4, 64])
@pytest.mark.parametrize("limit", [1, 3, 200])
def test_no_row_of_the_domain_adds_more_to_a_score_than_its_bound(formula, family, steps, limit):
    bounds = {"n": (0.5, 1.5)}
    plain = sum_design(design_of(Analysis(formula, family), TINY), TINY, bounds, steps=steps)
    coefficients = np.resize(np.array([100, -300, 900, 50, 7]), plain.columns - 1)
    design = replace(plain, scores=Scores(coefficients, limit, family == "binomial"))
    rows = np.array(list(product(*map(range, design.schema.category_counts))), dtype=np.uint8)
    added = design.products(rows)
    assert added.any()
    assert added.shape[1] == plain.columns - 1
    for power in (1, 2):
        largest = int((np.abs(added) ** power).sum(axis=1).max())
        assert largest <= design.largest(power) <= plain.largest(power)
    assert sums_of([rows[:5], rows[5:]], design).tolist() == added.sum(axis=0).tolist()
    if limit == 1 and steps > 4:
        # The bound is reached but for rounding, so the price is not larger than it must be.
        assert (added**2).sum(axis=1).max() > 0.9 * design.largest(2)
        # Broken: the residual is clipped by itself, and not by the length of its row.
        columns = plain.values(rows)
        loose = np.clip(columns[:, [1]] * steps, -steps, steps) * np.delete(columns, 1, axis=1)
        assert (loose**2).sum(axis=1).max() > design.largest(2)


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
