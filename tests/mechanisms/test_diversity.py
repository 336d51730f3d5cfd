"""Entropy l-diversity: the smallest sufficient multiplier, in high precision (R7)."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pegsynth.errors import BudgetError
from pegsynth.kernels.sampling_arrays import PUBLIC
from pegsynth.methods.gibbs.blocks import Blocks, DenseBlock, SparseBlock
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import SCALE, Prior, diverse, uniform_weights
from pegsynth.schema import Rule

TOLERANCE = Decimal("1e-12")


def entropy(weights):
    """Entropy of integer weights to 40 digits."""
    with localcontext() as context:
        context.prec = 45
        total = Decimal(sum(weights))
        return -sum((w / total) * (w / total).ln() for w in map(Decimal, weights) if w)


def weights_at(counts, prior, scale, multiplier):
    return [scale * n + multiplier * w for n, w in zip(counts, prior, strict=True)]


def log(level):
    with localcontext() as context:
        context.prec = 45
        return Decimal(level).ln()


def blocks_of(entries, categories, dense=True):
    """Two features: the first with one entry per line of counts, keyed by the second."""
    lines = len(entries)
    spec = HashSpec(("disease", "group"), (categories, lines), ((1,), ()), 0)
    counts = np.array(entries, dtype=np.int64).reshape(lines, categories)
    keys, codes = np.nonzero(counts)
    own = DenseBlock(counts)
    if not dense:
        own = SparseBlock.from_cells(categories, keys, codes, counts[keys, codes])
    other = DenseBlock(counts.sum(axis=1)[None, :])
    return Blocks(spec, (own, other))


def multipliers(entries, level, *, prior=None, scale=SCALE, dense=True, rules=()):
    categories = len(entries[0])
    own = np.array(prior or [1] * categories, dtype=np.uint64)
    whole = Prior((own, np.ones(len(entries), dtype=np.uint64)), (0, 0), scale)
    tables = diverse(blocks_of(entries, categories, dense), whole, {0: level}, rules)
    assert tables.multiplier_start.tolist() == [0, -1]
    return tables.entry_multiplier.tolist()


@st.composite
def cases(draw, most_count, most_weight, most_scale):
    categories = draw(st.integers(2, 5))
    line = st.lists(st.integers(0, most_count), min_size=categories, max_size=categories)
    entries = draw(st.lists(line.filter(any), min_size=1, max_size=4))
    weight = st.integers(1, most_weight)
    prior = draw(st.lists(weight, min_size=categories, max_size=categories))
    reachable = float(entropy(prior).exp())
    level = draw(st.floats(1.0, reachable))
    assume(level < 0.999 * reachable)
    return entries, prior, level, draw(st.integers(1, most_scale))


@settings(deadline=None, max_examples=60)
@given(case=cases(4, 3, 2))
def test_the_smallest_multiplier_of_all_is_found(case):
    """Every multiplier from 0 on is tried, one by one."""
    entries, prior, level, scale = case
    found = multipliers(entries, level, prior=prior, scale=scale)
    for counts, multiplier in zip(entries, found, strict=True):
        assume(multiplier < 400)
        goal = log(level) - Decimal("1e-13")
        slow = next(a for a in range(401) if entropy(weights_at(counts, prior, scale, a)) >= goal)
        assert multiplier == slow


@settings(deadline=None)
@given(case=cases(10**6, 1000, SCALE))
def test_the_multiplier_is_enough_and_one_less_is_not(case):
    entries, prior, level, scale = case
    found = multipliers(entries, level, prior=prior, scale=scale)
    assert found == multipliers(entries, level, prior=prior, scale=scale, dense=False)
    for counts, multiplier in zip(entries, found, strict=True):
        assert multiplier < PUBLIC
        assert entropy(weights_at(counts, prior, scale, multiplier)) >= log(level) - TOLERANCE
        if multiplier:
            assert entropy(weights_at(counts, prior, scale, multiplier - 1)) < log(level)


def test_a_multiplier_one_too_large_or_too_small_is_caught():
    counts, level = [9, 0, 0], 2.0
    (multiplier,) = multipliers([counts], level)
    at = [entropy(weights_at(counts, [1] * 3, SCALE, multiplier + d)) for d in (-2, -1, 0)]
    assert at[0] < at[1] < log(level) <= at[2] + TOLERANCE


@settings(deadline=None, max_examples=50)
@given(
    entries=st.lists(
        st.lists(st.integers(0, 50), min_size=4, max_size=4).filter(any), min_size=1, max_size=3
    ),
    level=st.floats(1.0, 2.9),
    banned=st.integers(0, 3),
)
def test_where_a_rule_restricts_the_draw_the_restricted_distribution_is_diverse(
    entries, level, banned
):
    rules = (Rule.of({0: [banned], 1: [0]}),)
    found = multipliers(entries, level, rules=rules)
    free, restricted = found[: len(entries)], found[len(entries) :]
    assert free == multipliers(entries, level)
    for counts, multiplier in zip(entries, restricted, strict=True):
        kept = [n for code, n in enumerate(counts) if code != banned]
        if not any(kept):
            assert multiplier == PUBLIC
            continue
        assert entropy(weights_at(kept, [1] * 3, SCALE, multiplier)) >= log(level) - TOLERANCE
        if multiplier:
            assert entropy(weights_at(kept, [1] * 3, SCALE, multiplier - 1)) < log(level)


def test_l_above_the_categories_names_the_feature():
    with pytest.raises(BudgetError, match=r"'disease'.*l = 3\.5.*at most 3"):
        multipliers([[1, 2, 3]], 3.5)


def test_l_of_all_categories_answers_with_the_uniform_distribution():
    assert multipliers([[1, 2, 3], [5, 5, 5]], 3.0) == [PUBLIC, PUBLIC]


def test_l_of_one_changes_nothing():
    assert multipliers([[1, 0, 0], [4, 5, 6]], 1.0) == [0, 0]


@pytest.mark.parametrize("level", [2.0, 3.0])
def test_ties_need_no_virtual_row(level):
    """Counts (n, n) are exactly 2-diverse, (n, n, n) exactly 3-diverse."""
    counts = [7] * int(level) + [0] * (4 - int(level))
    assert multipliers([counts], level) == [0]


def test_empty_entries_answer_with_the_public_distribution():
    assert multipliers([[0, 0, 0], [1, 0, 0]], 2.0)[0] == PUBLIC
    assert len(multipliers([[0, 0, 0], [1, 0, 0]], 2.0, dense=False)) == 1


def test_prior_weights_that_are_not_diverse_enough_are_refused():
    prior = [100, 1, 1]
    most = math.exp(entropy(prior))
    assert multipliers([[1, 2, 3]], most - 0.001, prior=prior)
    with pytest.raises(BudgetError, match=r"'disease'.*smaller l"):
        multipliers([[1, 2, 3]], most + 0.001, prior=prior)


def test_rules_that_leave_too_few_categories_are_refused():
    rules = (Rule.of({0: [0], 1: [0]}),)
    assert multipliers([[1, 2, 3], [1, 1, 1]], 2.0, rules=rules)
    with pytest.raises(BudgetError, match=r"'disease'.*only 2 categories"):
        multipliers([[1, 2, 3], [1, 1, 1]], 2.1, rules=rules)


def test_features_without_a_level_keep_the_common_multiplier():
    blocks = blocks_of([[1, 2, 3], [0, 1, 0]], 3)
    prior = Prior(uniform_weights((3, 2)), (0, 5), 8)
    tables = diverse(blocks, prior, {})
    assert tables.multiplier.tolist() == [0, 5]
    assert tables.multiplier_start.tolist() == [-1, -1]
    both = diverse(blocks, prior, {1: 1.5, 0: 2.0})
    assert both.multiplier_start.tolist() == [0, 2]
    assert both.multiplier_stride.tolist() == [2, 1]
    assert both.pattern_row.tolist() == [0, 0]
