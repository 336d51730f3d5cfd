"""The formula of ``pegs plan``: in step with its cells, monotone, right on tables it never saw."""

import json

import numpy as np
import pytest

from checks.bench.family import CONFIRMING
from checks.bench.plan_accuracy import (
    OUTPUT,
    chosen_worse,
    fitted,
    groups,
    hit_rate,
    like_ratios,
)
from checks.bench.plan_cells import FITTING, METHODS, load_cells
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.plan_model import PublicFigures, expected, stored_model
from pegsynth.methods.registry import methods
from pegsynth.privacy import Budget

LEAST_TABLES, LEAST_COLUMNS, LEAST_PAIRS = 12, 0.84, 0.73


@pytest.fixture(scope="module")
def cells():
    return load_cells()


def test_the_stored_coefficients_are_those_of_the_stored_cells(cells):
    """Whoever measures anew has to fit anew: ``python -m checks.bench.plan_accuracy --fit``."""
    fitting = [cell for cell in cells if not cell.confirming]
    assert {cell.table for cell in cells} <= {*FITTING, *CONFIRMING}
    assert not {*FITTING} & {*CONFIRMING}
    stored = json.loads(OUTPUT.read_text())
    assert stored["cells"] == len(fitting)
    for method, lines in fitted(fitting).items():
        for name, line in lines.items():
            assert line == pytest.approx(stored["methods"][method][name], abs=2e-3)
    assert like_ratios(fitting) == stored["like"]["ratios"]


def test_every_method_that_predicts_was_measured():
    assert set(stored_model()["methods"]) == set(METHODS)
    assert {method.name for method in methods() if method.predicts} == set(METHODS)


def test_tables_that_nothing_was_fitted_on_are_predicted(cells):
    """At least as often as checks/bench/RESULTS.md says, within a factor of 1.5."""
    confirming = [cell for cell in cells if cell.confirming]
    assert len({cell.table for cell in confirming}) >= LEAST_TABLES
    columns, pairs = hit_rate(confirming)
    assert columns >= LEAST_COLUMNS
    assert pairs >= LEAST_PAIRS


def test_constants_of_one_table_would_not_do(cells):
    """A broken twin: what was predicted before, a tenth for every pair table."""
    confirming = [cell for cell in cells if cell.confirming]
    hits = [max(0.1 / cell.tvd2, cell.tvd2 / 0.1) <= 1.5 for cell in confirming]
    assert np.mean(hits) < LEAST_PAIRS - 0.2


def test_auto_never_measured_worse(cells):
    assert len(groups(cells)) > 50
    assert chosen_worse(cells) == []


@pytest.mark.parametrize("method", METHODS)
def test_more_budget_and_more_rows_never_raise_an_error(method):
    def said(epsilon, rows_in, rows):
        price = Price(Budget(epsilon=epsilon, delta=1e-6).whole("zcdp"))
        figures = PublicFigures.of((2, 5, 30, 9), price, rows_in=rows_in, rows=rows)
        found = expected(method, figures)
        return np.array([found.columns, found.pairs])

    for epsilon in (0.01, 0.1, 1, 10):
        for rows_in in (10, 1_000, 10**6):
            for rows in (10, 10_000):
                here = said(epsilon, rows_in, rows)
                assert (here > 0).all()
                assert (here < 1).all()
                assert (said(2 * epsilon, rows_in, rows) <= here).all()
                assert (said(epsilon, 2 * rows_in, rows) <= here).all()
                assert (said(epsilon, rows_in, 2 * rows) <= here).all()


def test_public_shares_and_single_columns_have_figures():
    price = Price(Budget(epsilon=1.0).whole("pure"))
    known = PublicFigures.of(
        (2, 3), price, rows_in=100, rows=100, public=(np.array([0.5, 0.5]), None)
    )
    unknown = PublicFigures.of((2, 3), price, rows_in=100, rows=100)
    assert known.noise < unknown.noise
    assert np.isfinite(PublicFigures.of((4,), price, rows_in=10, rows=10).logarithms).all()
    assert stored_model()["terms"][0] == "one"
