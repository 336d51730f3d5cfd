"""Whether a release is refused for its size is settled before data is read, by public figures.

A bound that looks at counts is told apart by two tables that differ by one row: the twin
of each check refuses one of them and not the other.
"""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegsynth
from pegsynth.errors import BudgetError, DataError, ParameterError
from pegsynth.mechanisms.marginals import Marginals, most_prior_weight, prior_weights
from pegsynth.mechanisms.noise import choose
from pegsynth.methods.baselines import glm_fit
from pegsynth.methods.baselines.marginal import MarginalTable, check_urns
from pegsynth.methods.baselines.target_fits import RowsToFit
from pegsynth.methods.gibbs.blocks import MOST_ROWS
from pegsynth.methods.prior import MOST_TOTAL, Prior, dirichlet
from pegsynth.methods.released._choosing import MOST_PENALTY, whole_penalty
from pegsynth.pipeline import running as front
from pegsynth.privacy import Budget, Shares
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from small_release import settled_plan

SCHEMA = Schema(tuple(Feature(name, categories=("x", "y", "z")) for name in "abc"), reviewed=True)
COUNTS = SCHEMA.category_counts
SMALL = Fraction(1, 1 << 40)
TABLE = pl.DataFrame({name: ["x", "y", "z", "x"] for name in "abc"})


@pytest.fixture
def unread(monkeypatch):
    """No table may be opened."""

    def refuse(*given, **more):
        raise AssertionError("the table was read")

    monkeypatch.setattr(front, "open_table", refuse)


# Urns of the marginal bootstrap


def as_it_was(held, prior, cap):
    """The check that once looked at the number of rows; true where it refused."""
    return any(
        prior.scale * (held + cap) + multiplier * int(weights.sum()) >= MOST_TOTAL
        for weights, multiplier in zip(prior.weights, prior.multipliers, strict=True)
    )


def urns_of(rows):
    return MarginalTable((np.array([rows, 0, 0]),) * 3)


def drawn(rows, prior, cap=2):
    try:
        urns_of(rows).draw(cap, prior=prior, words=RandomStream(1).substream())
    except BudgetError:
        return "refused"
    return "drawn"


@pytest.mark.parametrize("rows", [1, 10, 1_000_000])
def test_one_row_more_does_not_decide_whether_urns_are_refused(rows):
    scale, cap = 1 << 20, 2
    # The largest alpha that fitted beside so many rows, and not beside one more.
    prior = dirichlet(COUNTS, (MOST_TOTAL - scale * (rows + cap) - 1) // 3, scale)
    assert [as_it_was(held, prior, cap) for held in (rows, rows + 1)] == [False, True]
    assert [drawn(held, prior) for held in (rows, rows + 1)] == ["refused", "refused"]


def test_the_public_bound_is_where_it_should_be():
    scale, cap = 1 << 20, 2
    largest = (MOST_TOTAL - scale * (MOST_ROWS + cap) - 1) // 3
    check_urns(dirichlet(COUNTS, largest, scale), cap)
    for rows in (0, 1, 10**9, MOST_ROWS):
        assert drawn(rows, dirichlet(COUNTS, largest, scale)) == "drawn"
    with pytest.raises(BudgetError, match=r"64-bit totals; raise epsilon"):
        check_urns(dirichlet(COUNTS, largest + 1, scale), cap)
    with pytest.raises(DataError, match="more than 4294967295 rows"):
        drawn(MOST_ROWS + 1, dirichlet(COUNTS, 1, scale))


LARGEST_ALPHA = math.nextafter(((1 << 62) - 1) // 3 / (1 << 20), 0)
"""The most virtual rows of three categories that fit in 64 bits beside nothing else."""


def test_urns_that_do_not_fit_are_refused_before_the_table_is_read(unread):
    with pytest.raises(BudgetError, match="the urns of this release do not fit"):
        pegsynth.synthesize(TABLE, SCHEMA, method="marginal", rows=10, alpha=LARGEST_ALPHA)


# Virtual rows in proportion to marginals


@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_prior_weights_never_exceed_their_bound(categories, resolution, seed):
    words = np.random.default_rng(seed)
    for spread in (0.01, 1.0, 100.0):
        shares = words.dirichlet(np.full(categories, spread))
        (weights,) = prior_weights(Marginals((shares,), 1.0), resolution)
        assert int(weights.sum()) <= most_prior_weight(categories, resolution)


def smallest_epsilon(**options):
    """Return a budget that is just large enough, and one that is too small by a thousandth."""
    asked = {"rows": 10**12, "method": "pegs", "prior": "marginal"} | options

    def fits(epsilon):
        try:
            return settled_plan(SCHEMA, Budget(epsilon=epsilon), **asked)
        except BudgetError:
            return None

    low, high = 1e-9, 1e3
    assert fits(low) is None
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fits(middle) else (middle, high)
    return asked, fits(high), low


@pytest.mark.parametrize("seed", range(5))
def test_what_a_plan_accepts_fits_whatever_the_marginals_are(seed):
    """The twin: at the smallest budget that calibration alone allows, it depends on them."""
    _, plan, _ = smallest_epsilon()
    words = np.random.default_rng(seed)
    shares = tuple(words.dirichlet(np.full(3, 0.3)) for _ in COUNTS)
    weights = prior_weights(Marginals(shares, 1.0), plan.resolution)
    Prior(weights, (plan.numerator,) * 3, plan.scale)
    sums = {
        int(prior_weights(Marginals((np.array(line),), 1.0), plan.resolution)[0].sum())
        for line in ([1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3])
    }
    between = MOST_TOTAL // max(sums)
    assert len(sums) > 1
    assert between * min(sums) < MOST_TOTAL <= (between + 1) * max(sums)


def test_a_marginal_prior_that_might_not_fit_is_refused_before_the_table_is_read(unread):
    asked, _, too_small = smallest_epsilon()
    with pytest.raises(BudgetError, match="more virtual rows than fit in 64 bits"):
        pegsynth.synthesize(TABLE, SCHEMA, epsilon=too_small, **asked)


# Fits


def test_fits_that_do_not_fit_are_refused_before_the_table_is_read(unread):
    with pytest.raises(ParameterError, match=r"alpha = \d+/1048576 does not fit in 64 bits"):
        pegsynth.synthesize(TABLE, SCHEMA, method="pmi", rows=10, alpha=LARGEST_ALPHA)
    asked = {"method": "contingency", "log_linear": True, "rows": 10}
    with pytest.raises(ParameterError, match="over 27 cells does not fit in 64 bits"):
        pegsynth.synthesize(TABLE, SCHEMA, alpha=2.0**38, **asked)
    wide = Schema(
        tuple(Feature(name, categories=tuple(map(str, range(50)))) for name in "abcde"),
        reviewed=True,
    )
    with pytest.raises(ParameterError, match="312500000 cells over 5 features"):
        pegsynth.synthesize(TABLE, wide, alpha=1.0, **asked)


def test_regressions_of_long_tables_are_fitted_to_some_of_their_rows(monkeypatch):
    """The number of rows once decided whether `pmi` was refused; here the bound is tiny."""
    monkeypatch.setattr(glm_fit, "MOST_CELLS", 3 * TABLE.height)
    longer = pl.concat([TABLE, TABLE[:1]])
    for table in (TABLE, longer):
        pegsynth.synthesize(table, SCHEMA, method="pmi", rows=5, epsilon_per_row=1.0)
    codes = np.zeros((len(longer), 3), dtype=np.uint8)
    glm_fit.fit_glm(RowsToFit.of(codes[:-1], SCHEMA))
    with pytest.raises(ParameterError, match="too many for a regression on all rows"):
        glm_fit.fit_glm(RowsToFit.of(codes, SCHEMA))


def test_noise_that_does_not_fit_is_refused_before_the_table_is_read(unread):
    asked = {"method": "pegs", "rows": 1, "epsilon": 1e-6, "order": "public"}
    with pytest.raises(ParameterError, match="noise of this scale would not fit into 64 bits"):
        pegsynth.synthesize(TABLE, SCHEMA, shares=Shares(0.1, 1e-15, 0.8), **asked)


# Scores of private choices


def test_scores_leave_room_for_any_distance():
    """Penalties are public, and so is their bound: no distance decides what is refused."""
    penalties = whole_penalty(np.array([0.4, 1.5, 2.5, 1e18, 1e19, 1e300]))
    assert penalties[:3].tolist() == [0, 2, 2]
    assert penalties.max() == int(MOST_PENALTY)
    for distance in (0, 1, 2 * MOST_ROWS):
        scores = [distance - int(each) for each in penalties]
        assert choose(scores, SMALL, RandomStream(1).substream()) in range(6)


def test_penalties_without_a_bound_are_refused_by_what_the_table_holds():
    """The twin: of two distances, one leaves the scores too far apart for 64 bits."""
    outcomes = []
    for distance in (0, 2):
        scores = [distance, 1 - (1 << 63) + 1]
        try:
            choose(scores, SMALL, RandomStream(1).substream())
            outcomes.append("chosen")
        except ParameterError:
            outcomes.append("refused")
    assert outcomes == ["chosen", "refused"]
