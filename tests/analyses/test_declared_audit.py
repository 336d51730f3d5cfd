"""R26: what declared analyses cost, by enumeration; and audits that find out broken sums."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pegsynth.analyses import design_of
from pegsynth.analyses.measuring_sums import CodedValues
from pegsynth.analyses.sum_design import SumDesign, sum_design, sums_of
from pegsynth.auditing.released import analysis_cases, audit_paths
from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis

CASES = {case.name: case for case in analysis_cases()}
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
    scored = replace(design, coefficients=np.resize([100, -300, 900, 50, 7], design.columns - 1))
    if family == "binomial":
        added = scored.products(rows)
        assert np.abs(added[:, scored.with_response]).any()
        for power in (1, 2):
            assert (np.abs(added) ** power).sum(axis=1).max() <= scored.largest(power)
        design = scored
    assert sums_of([rows[:5], rows[5:]], design).tolist() == added.sum(axis=0).tolist()


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


@pytest.mark.parametrize("twin", [OwnBounds, Unclipped])
def test_the_audit_finds_out_bounds_off_the_table_and_values_that_are_not_clipped(twin):
    for name in ("declared analysis", "declared analysis, approximate"):
        pairs = (*CASES[name].pairs, (((1, 0),) * 12, ((2, 0),)))
        case = replace(CASES[name], values=twin, pairs=pairs)
        assert not audit_paths(case).holds(case.stated)


def test_the_audit_finds_out_products_whose_own_maximum_was_forgotten(monkeypatch):
    def of_columns(self, power):
        """Return what the columns are at most, and not their products."""
        return sum(self._most(block) ** power for block in range(len(self.lines)))

    monkeypatch.setattr(SumDesign, "largest", of_columns)
    for name in ("declared analysis", "declared analysis, approximate"):
        case = CASES[name]
        assert not audit_paths(case).holds(case.stated)
