"""What the two rounds ask of the table: candidates, scores, amounts, and the fit (R10, R11).

A privacy filter looks on and answers without noise, so that everything can be worked out by hand.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from once_tables import COUNTS, ORDERED, released_of, table_of_codes, whole_of

from pegsynth.auditing.paths import WatchedFilter
from pegsynth.codec.levels import alone
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.plan_model import margin_error, margin_weights
from pegsynth.methods.released import _budget
from pegsynth.methods.released._budget import (
    FIRST_ROUND,
    TOTAL_SHARE,
    Care,
    Steps,
    choice_error,
    split_budget,
)
from pegsynth.methods.released._choosing import (
    TRIPLE_DIVISOR,
    FirstRound,
    Room,
    Round,
    block_counts,
    block_shares,
    rounds_for,
    spread_out,
)
from pegsynth.methods.released._estimates import Margins
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._pairs import summed_noise
from pegsynth.methods.released._row_pool import Pool, cell_count
from pegsynth.methods.released._values import Domain, MergedRows, NoisyTable
from pegsynth.privacy import Allowance, NoisyCounts, NoisyResiduals, Selection, Unspent
from pegsynth.random import RandomStream

SIZES = (2, 3, 4)
ROWS = 600
WORDS = np.random.default_rng(4)
CODES = np.stack(
    [
        first := WORDS.integers(0, 2, ROWS),
        (first + WORDS.integers(0, 2, ROWS)) % 3,
        WORDS.integers(0, 4, ROWS),
    ]
).astype(np.uint16)
TABLE = MergedRows(CODES, SIZES)
MEAN = math.sqrt(2 / math.pi)


def silent(choice=0):
    """Answers without noise; choices by index, or by a function of the scores."""

    def answer(event, inputs):
        if isinstance(event, NoisyCounts | NoisyResiduals):
            return inputs
        return (choice(inputs) if callable(choice) else choice,)

    return answer


def filter_of(answer, epsilon=10.0, delta=None):
    return WatchedFilter(whole_of(epsilon, delta), RandomStream(1), answer=answer)


def true_margins(total=float(ROWS)):
    one_ways = tuple(
        NoisyTable((f,), np.bincount(CODES[f], minlength=size), 1.0) for f, size in enumerate(SIZES)
    )
    shares = tuple(table.counts / ROWS for table in one_ways)
    return Margins.of(one_ways, tuple(map(alone, SIZES)), shares, total)


def first_round(answer, steps=None, rows=1000):
    pool, margins = Pool(SIZES, rows, RandomStream(2)), true_margins()
    pool.draw(0, (), margins.shares[0][None, :])
    budget_filter = filter_of(answer)
    chooser = FirstRound(
        MergedRows(CODES, pool.sizes), pool, margins, budget_filter, steps or Steps(), 0.01, 0.4
    )
    return chooser, pool, margins, budget_filter


def table_of(features):
    shape = [SIZES[f] for f in features]
    return np.bincount(
        np.ravel_multi_index([CODES[f].astype(int) for f in features], shape),
        minlength=int(np.prod(shape)),
    )


def slow_score(pool, margins, heads, feature, penalty):
    """The score by the definition: distance to what is expected, less what noise would add."""
    expected = np.outer(
        np.bincount(pool.keys(heads), minlength=cell_count(heads, SIZES))
        * (margins.total / pool.rows),
        margins.shares[feature],
    ).ravel()
    distance = np.abs(table_of((*heads, feature)) - np.rint(expected)).sum()
    return int(distance) - round(penalty * len(expected))


# The first round


def test_candidates_and_scores_of_the_first_choice():
    chooser, pool, margins, budget_filter = first_round(silent())
    chooser.next([1, 2])
    (step,) = [step for step in budget_filter.steps if isinstance(step.event, Selection)]
    penalty = MEAN * budget_filter.deviation(0.4 / 2)
    expected = [slow_score(pool, margins, (0,), feature, penalty) for feature in (1, 2)]
    assert list(step.inputs) == [*expected, 0, 0]
    assert step.event.purpose == "heads"


def test_a_block_is_the_table_of_heads_and_feature():
    chooser, _, _, budget_filter = first_round(silent())
    feature, block = chooser.next([1, 2])
    assert (feature, block.features) == (1, (0, 1))
    assert block.counts.tolist() == table_of((0, 1)).tolist()
    assert block.deviation == pytest.approx(budget_filter.deviation(0.2))
    assert chooser.left_share == pytest.approx(0.2)


def test_heads_grow_with_the_features_that_are_placed():
    chooser, pool, margins, budget_filter = first_round(silent())
    chooser.next([1, 2])
    pool.draw(1, (0,), np.full((2, 3), 1 / 3))
    chooser.next([2])
    scores = budget_filter.steps[-2].inputs
    penalty = MEAN * budget_filter.deviation(0.2)
    sets = [(0,), (1,), (0, 1)]
    assert sorted(scores) == sorted(
        [*(slow_score(pool, margins, heads, 2, penalty) for heads in sets), 0]
    )


def test_a_feature_left_alone_leaves_its_budget_to_the_others():
    chooser, pool, _, budget_filter = first_round(silent(lambda scores: len(scores) - 1))
    feature, block = chooser.next([1, 2])
    assert (feature, block) == (2, None)
    assert chooser.left_share == 0.4
    pool.draw(2, (), np.full((1, 4), 1 / 4))
    chooser.budget_filter._answer = silent(0)
    _, block = chooser.next([1])
    assert block.deviation == pytest.approx(budget_filter.deviation(0.4))


def test_heads_are_as_many_and_as_small_as_the_steps_say(monkeypatch):
    for steps, most, cells in (
        (Steps(heads=1), 1, 40_000),
        (Steps(heads=2), 2, 40_000),
        (Steps(), 1, 9),
    ):
        monkeypatch.setattr("pegsynth.methods.released._choosing.MOST_TABLE_CELLS", cells)
        chooser, pool, _, _ = first_round(silent(), steps)
        chooser.next([1, 2])
        pool.draw(1, (0,), np.full((2, 3), 1 / 3))
        chooser.next([2])
        candidates = chooser._candidates
        found = {chooser._candidate(i, candidates, [2])[1] for i in range(len(candidates))}
        assert max(map(len, found)) == most
        assert all(cell_count((*heads, 2), SIZES) <= cells for heads in found)


def test_wide_tables_look_for_heads_along_the_blocks_there_are(monkeypatch):
    monkeypatch.setattr("pegsynth.methods.released._choosing.WIDE_TABLE", 2)
    chooser, pool, _, _ = first_round(silent(lambda scores: len(scores) - 2))
    feature, block = chooser.next([1, 2])
    assert (feature, block) == (1, None)
    pool.draw(1, (), np.full((1, 3), 1 / 3))
    # Feature 1 has no parents, so only itself is a new head.
    assert list(chooser._new_heads()) == [(1,)]


def test_shares_of_a_block_are_its_lines():
    margins = true_margins()
    block = NoisyTable((0, 1), table_of((0, 1)), 1.0)
    pool = Pool(SIZES, 100, RandomStream(1))
    counts = block_counts(block, pool, margins, Steps(care=Care(pulled=0.0)))
    assert counts == pytest.approx(table_of((0, 1)))
    lines = block_shares(block, counts, margins)
    expected = table_of((0, 1)).reshape(2, 3)
    assert lines == pytest.approx(expected / expected.sum(axis=1, keepdims=True))
    empty = block_shares(block, np.array([0, 0, 0, 1.0, 1.0, 2.0]), margins)
    assert empty[0] == pytest.approx(margins.shares[1])
    assert empty[1] == pytest.approx([0.25, 0.25, 0.5])


def test_blocks_under_loud_noise_are_pulled_towards_independence():
    margins, pool = true_margins(), Pool(SIZES, 600, RandomStream(1))
    pool.draw(0, (), margins.shares[0][None, :])
    noisy = table_of((0, 1)) + np.array([90, -80, 70, -60, 50, -40])
    loud = Steps(care=Care(pulled=1.0))
    found = block_counts(NoisyTable((0, 1), noisy, 80.0), pool, margins, loud)
    independent = np.outer(pool.counts((0,)), margins.shares[1]).ravel()
    assert np.abs(found - independent).sum() < 0.5 * np.abs(noisy - independent).sum()
    drowned = NoisyTable((0, 1), np.full(6, -9000), 80.0)
    assert block_counts(drowned, pool, margins, loud) == pytest.approx(independent)
    block = NoisyTable((0, 1), noisy, 80.0)
    ends = [
        block_counts(block, pool, margins, Steps(care=Care(pulled=part))) for part in (0.0, 1.0)
    ]
    between = block_counts(block, pool, margins, Steps(care=Care(pulled=0.25)))
    assert between == pytest.approx(0.75 * ends[0] + 0.25 * ends[1])
    assert all(end.sum() == pytest.approx(margins.total) for end in ends)


# The fit


def started(steps=None, rows=3000):
    """A pool of independent columns, weighed to the true one-way counts."""
    pool, margins = Pool(SIZES, rows, RandomStream(3)), true_margins()
    for feature in range(3):
        pool.draw(feature, (), margins.shares[feature][None, :])
    fit = JointFit(pool, margins, steps or Steps())
    fit.pool.weigh(margins.total)
    fit.start()
    return fit


def test_weights_meet_every_table_after_some_sweeps():
    fit = started()
    assert fit.pool.weights.sum() == pytest.approx(ROWS, rel=0.01)
    fit.take(NoisyTable((0, 1), table_of((0, 1)), 0.5))
    fit.take(NoisyTable((1, 2), table_of((1, 2)), 0.5))
    fit.sweep(30)
    for features in ((0, 1), (1, 2)):
        expected = fit.pool.expected(features)
        assert np.abs(expected - table_of(features)).sum() < 0.02 * ROWS


def test_the_weights_of_a_table_are_those_of_its_keys():
    fit = started()
    for features in ((0,), (2, 0), (0, 1, 2)):
        keys, cells = fit.pool.keys(features), cell_count(features, SIZES)
        assert fit.pool.expected(features) == pytest.approx(
            np.bincount(keys, fit.pool.weights, cells)
        )


def test_a_table_that_says_something_moves_and_noise_does_not():
    assert started().take(NoisyTable((0, 1), table_of((0, 1)), 1.0))
    fit = started()
    noise = np.round(fit.pool.expected((0, 2)) + WORDS.normal(0, 30, 8)).astype(int)
    assert not fit.take(NoisyTable((0, 2), noise, 30.0))


def test_a_table_below_zero_everywhere_changes_little():
    fit = started()
    before = fit.pool.expected((0, 1))
    assert not fit.take(NoisyTable((0, 1), np.full(6, -300), 300.0))
    assert np.abs(fit.pool.expected((0, 1)) - before).sum() < 0.1 * ROWS


def test_a_triple_leaves_the_pairs_that_are_known():
    fit = started()
    fit.take(NoisyTable((0, 1), table_of((0, 1)), 0.1))
    fit.sweep(20)
    known = fit.pool.expected((0, 1))
    fit.take(NoisyTable((0, 1, 2), table_of((0, 1, 2)), 4.0))
    fit.sweep(20)
    assert fit.pool.expected((0, 1)) == pytest.approx(known, rel=0.05, abs=0.5)


def residual_of(pair, deviation):
    """Return the residual of a true table, with noise of which only the size is told."""
    levels = [SIZES[each] for each in pair]
    whole = centred(table_of(pair).astype(float), levels) * np.prod(levels)
    return NoisyTable(pair, np.rint(whole).astype(np.int64), deviation)


def test_a_residual_and_one_way_counts_tell_a_pair():
    fit = started()
    assert fit.take_residual(residual_of((0, 1), 3.0))
    fit.sweep(30)
    assert np.abs(fit.pool.expected((0, 1)) - table_of((0, 1))).sum() < 0.02 * ROWS
    (measured,) = [each for each in fit.tables if each.residual is not None]
    # Measured again it counts by its precision, and a table of the same pair stands beside it.
    variance = measured.variance.copy()
    fit.take_residual(residual_of((0, 1), 3.0))
    assert measured.variance == pytest.approx(variance / 2)
    fit.take(NoisyTable((0, 1), table_of((0, 1)), 4.0))
    assert [each.features for each in fit.tables].count((0, 1)) == 2
    # What noise may have made has not moved anything.
    assert not fit.take_residual(residual_of((0, 2), 400.0))


# The second round

ALL = Steps()


def second_round(answer, steps=ALL, share=0.5, each=0.1, delta=None):
    fit = started(steps)
    budget_filter = filter_of(answer, delta=delta)
    return (
        Round(MergedRows(CODES, fit.pool.sizes), fit, budget_filter, steps, share, each),
        fit,
        budget_filter,
    )


def test_pairs_are_scored_by_how_badly_the_pool_predicts_them():
    chooser, fit, budget_filter = second_round(silent())
    expected = [
        int(np.abs(table_of(pair) - np.rint(fit.pool.expected(pair))).sum())
        for pair in combinations(range(3), 2)
    ]
    assert chooser.next()
    (chosen,) = chooser.tables
    deviation = budget_filter.deviation(0.1 * 0.9)
    cells = [len(table_of(pair)) for pair in combinations(range(3), 2)]
    scores = [e - round(MEAN * deviation * c) for e, c in zip(expected, cells, strict=True)]
    assert list(budget_filter.steps[0].inputs) == scores
    # The only dependent pair is predicted worst.
    assert scores[0] == max(scores)
    assert chosen.features == (0, 1)
    assert chosen.counts.tolist() == table_of((0, 1)).tolist()
    assert chosen.deviation == pytest.approx(deviation)
    assert chooser.left_share == pytest.approx(0.4)


def test_of_a_pair_the_residual_is_measured():
    chooser, fit, budget_filter = second_round(silent(), Steps(), delta=1e-9)
    before = {pair: fit.pool.expected(pair) for pair in combinations(range(3), 2)}
    assert chooser.next()
    price, share = budget_filter.price, 0.1 * 0.9
    scores = []
    for pair, expected in before.items():
        levels = [SIZES[each] for each in pair]
        distance = int(np.abs(table_of(pair) - np.rint(expected)).sum())
        noise = summed_noise(price.residual_deviation(share, levels), levels)
        # Margins are not paid for again: a residual has less noise than the whole table.
        assert noise < MEAN * price.deviation(share) * len(expected)
        scores.append(distance - round(noise))
    assert list(budget_filter.steps[0].inputs) == scores
    (found,) = chooser.residuals
    assert not chooser.tables
    assert found.features == (0, 1)
    whole = centred(table_of((0, 1)).astype(float), [2, 3]) * 6
    assert found.counts.tolist() == np.rint(whole).astype(int).tolist()
    assert not chooser._by_residual((0, 1, 2))


def test_laplace_noise_on_a_residual_is_no_quieter_than_on_its_table():
    levels = {(0, 1): [2, 2], (0, 2): [12, 12]}
    for delta in (None, 1e-9):
        chooser, _, _ = second_round(silent(), Steps(), delta=delta)
        chooser._levels = levels.__getitem__
        for pair in levels:
            assert chooser._by_residual(pair) == (delta is not None)


def test_triples_come_in_around_pairs_that_were_measured_at_a_quarter_of_their_score():
    chooser, fit, budget_filter = second_round(silent())
    chooser.next()
    chooser.budget_filter._answer = silent(1)
    chooser.next()
    # (0, 1) and (0, 2) are measured: the triple around feature 0 is a candidate now.
    expected = fit.pool.expected((0, 1, 2))
    share = chooser.share
    chooser.next()
    distance = int(np.abs(table_of((0, 1, 2)) - np.rint(expected)).sum())
    penalty = round(MEAN * budget_filter.deviation(share * 0.9) * 24)
    assert list(chooser.candidates) == [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert budget_filter.steps[-2].inputs[-1] == (distance - penalty) // TRIPLE_DIVISOR


def test_triples_may_be_left_out():
    chooser, _, _ = second_round(silent(), replace(Steps(), triples=False))
    for choice in (0, 1, 2):
        chooser.budget_filter._answer = silent(choice)
        chooser.next()
    assert all(len(table) == 2 for table in chooser.candidates)


def test_the_last_table_takes_what_is_left():
    chooser, _, budget_filter = second_round(silent(), Steps(), 0.21, 0.1)
    assert chooser.next()
    assert chooser.tables[-1].deviation == pytest.approx(budget_filter.deviation(0.09))
    assert chooser.next()
    assert chooser.tables[-1].deviation == pytest.approx(budget_filter.deviation(0.11 * 0.9))
    assert chooser.left_share == pytest.approx(0)
    assert not chooser.next()


def test_rounds_come_to_an_end():
    chooser, _, _ = second_round(silent(), replace(Steps(), rounds=2), share=0.9, each=0.01)
    assert chooser.next()
    # The last of the rounds takes everything.
    assert chooser.next()
    assert chooser.left_share == pytest.approx(0)
    assert not chooser.next()


@pytest.mark.parametrize(("moved", "after"), [(0, 0.2), (1, 0.1)])
def test_a_table_that_noise_has_drowned_doubles_the_next(moved, after):
    chooser, fit, _ = second_round(silent())
    fit.take = lambda _table: bool(moved)
    chooser.next()
    assert chooser.share == after


def test_distances_are_kept_but_for_what_changed():
    chooser, _, _ = second_round(silent())
    chooser.next()
    # All pairs share a feature with (0, 1) but none is without one in a table of three.
    assert not chooser.distances
    chooser.distances = {(0, 1): 5, (2, 3): 6, (0, 1, 4): 7, (0, 3, 4): 8}
    chooser._forget((0, 1))
    assert chooser.distances == {(2, 3): 6, (0, 3, 4): 8}
    chooser.measured = 10
    chooser._forget((0, 1))
    assert (chooser.distances, chooser.renewed) == ({}, 2)


def test_of_very_many_pairs_some_are_looked_at():
    """Which ones is decided without looking at anything."""
    pool, pairs = Pool(SIZES, 10, RandomStream(5)), list(combinations(range(40), 2))
    found = spread_out(pairs, pool)
    assert sorted(found) == pairs
    assert sorted(found[:400]) != pairs[:400]


def test_room_for_candidates_by_processor_and_memory():
    sizes = [10] * 400
    few, many = (list(combinations(range(count), 2)) for count in (20, 100))
    room = Room.of(len(few), 200_000)
    assert (room.tables, room.half().part(few, sizes)) == (800, few)
    room = Room.of(len(many), 200_000)
    assert room.tables == 2 * len(many)
    assert room.half().part(many, sizes) == many
    # A pool of a million rows bears 2,000 pairs; and tables of 40,000 cells fill the memory.
    assert len(Room.of(len(many), 1_000_000).half().part(many, sizes)) == 2_000
    assert len(room.half().part(many, [200] * 400)) == (1 << 23) // 40_000
    assert room.left(many, sizes).tables == len(many)
    assert room.left(many * 3, sizes).tables == 0


def test_rounds_grow_with_features():
    assert [rounds_for(count, 40) for count in (5, 20, 46, 100)] == [40, 40, 92, 200]


def test_of_many_tables_those_near_the_new_one_are_raked(monkeypatch):
    fit = JointFit(Pool(SIZES, 10, RandomStream(3)), true_margins(), Steps())
    fit.start()
    for pair in ((0, 1), (1, 2)):
        fit._add(pair, np.ones(cell_count(pair, SIZES)), np.ones(cell_count(pair, SIZES)))
    assert fit._near((0, 1)) == []
    monkeypatch.setattr("pegsynth.methods.released._joint_fit._ALL_SWEPT", 4)
    assert fit._near((0,)) == [fit.tables[3]]
    fit.tables *= 2
    assert fit._near((0,)) == []


# How the budget is split


def test_the_split_by_hand(monkeypatch):
    """Pure, 2 features of 2 categories, half of epsilon 8 each: b = 1/4, deviation sqrt(2)/4."""
    price = Price(Allowance("pure", Fraction(8)))
    weights = margin_weights((2, 2))
    assert weights.tolist() == [0.5, 0.5]
    error = margin_error(price, 10, (2, 2), weights)
    assert error == pytest.approx(MEAN * 2 * (math.sqrt(2) / 4) / 20)
    steps = Steps()
    monkeypatch.setattr(_budget, "WANTED_MARGIN_ERROR", error / 0.3)
    split = split_budget(price, 10, Domain((2, 2), (False, False)), steps)
    assert split.margins == pytest.approx(0.3)
    rest = 1 - TOTAL_SHARE - steps.care.first_choices - 0.3
    assert split.first + split.second == pytest.approx(rest)
    assert split.first == pytest.approx(rest * FIRST_ROUND)
    assert split.choice == steps.care.first_choices
    # Errors of Gaussian noise fall with the root of the budget.
    zcdp = Price(Allowance("zcdp", Fraction(8)))
    error = margin_error(zcdp, 10, (2, 2), weights)
    monkeypatch.setattr(_budget, "WANTED_MARGIN_ERROR", error / 0.5)
    assert split_budget(zcdp, 10, Domain((2, 2), (False, False)), steps).margins == pytest.approx(
        0.25
    )


@pytest.mark.parametrize("withheld", [0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("total", [1, 1000, 10**9])
@pytest.mark.parametrize("route", ["pure", "zcdp"])
def test_the_parts_never_add_up_to_more_than_the_whole(total, route, withheld):
    """What is withheld leaves something for all of them, under much noise too."""
    price = Price(Allowance(route, Fraction(1, 2)))
    steps = Steps()
    drowned = steps.under_noise(drowned=True)
    for each in (steps, steps.under_noise(), drowned):
        domain = Domain(COUNTS, ORDERED)
        split = split_budget(price, total, domain, each, withheld=withheld)
        choices = split.choice * (len(COUNTS) - 1)
        parts = TOTAL_SHARE + split.margins + choices + split.first + split.second
        assert 1 - 1e-6 < parts + withheld <= 1
        assert each.least_margins * (1 - 1.02 * withheld) <= split.margins <= each.most_margins
        assert min(split.first, split.choice) > 0
        assert split.second > 0


@pytest.mark.parametrize("route", ["pure", "zcdp"])
def test_what_stands_out_by_the_error_of_a_choice_is_chosen(route):
    """Half of the time at least; one that stands out by a tenth of it hardly ever.

    A pair that stands out by log(m) noise scales among m has the odds m : m - 1, and 1 : m^0.9 at
    a tenth. False alarms: binomial tails below 1e-9.
    """
    features, total, steps = 40, 10_000, Steps()
    price = Price(Allowance(route, Fraction(1, 100)))
    error = choice_error(price, total, features, steps)
    share = steps.under_noise().care.first_choices / (features - 1)
    pairs = features * (features - 1) // 2
    runs, found = 200, []
    for part in (1.0, 0.1):
        scores = [round(part * error * 2 * total), *[0] * (pairs - 1)]
        chosen = 0
        for seed in range(runs):
            spent = PrivacyFilter(price.allowance, RandomStream(f"choice {seed}"))
            chosen += spent.choose(scores, share, purpose="heads") == 0
        found.append(chosen)
    assert found[0] > 0.29 * runs
    assert found[1] < 0.08 * runs
    assert choice_error(price, 10 * total, features, steps) == pytest.approx(error / 10)
    assert choice_error(price, total, 2, steps) == 0.0


def test_wide_features_get_more_and_public_ones_nothing():
    weights = margin_weights((8, 1, 8))
    assert weights == pytest.approx([4 / 9, 1 / 9, 4 / 9])
    known = [None, None, np.full(8, 1 / 8)]
    assert margin_weights((8, 1, 8), known) == pytest.approx([4 / 5, 1 / 5, 0])


# Everything together


def test_without_noise_the_released_tables_are_those_of_the_table():
    codes = table_of_codes(500)
    stream = RandomStream(1)
    budget_filter = WatchedFilter(
        whole_of(10.0), stream, answer=silent(lambda s: int(np.argmax(s)))
    )
    # Residuals have tests of their own (test_residual_release.py).
    released, _ = release_blocks(
        codes,
        Domain(COUNTS, ORDERED),
        budget_filter,
        Work(stream, steps=Steps(residuals=False)),
        rows=500,
    )
    assert released.total[0] == 500
    for feature, table in enumerate(released.one_ways):
        counts = np.bincount(codes[:, feature], minlength=COUNTS[feature])
        assert table.counts.tolist() == counts.tolist()
    for table in (*released.blocks, *released.extra):
        shape = [released.sizes[f] for f in table.features]
        columns = [released.levels[f][codes[:, f]] for f in table.features]
        counts = np.bincount(np.ravel_multi_index(columns, shape), minlength=int(np.prod(shape)))
        assert table.counts.tolist() == counts.tolist()
    # Features come in the order in which their heads are there.
    place = {feature: number for number, feature in enumerate(released.order)}
    for block in released.blocks:
        assert all(place[head] < place[block.features[-1]] for head in block.features[:-1])


def test_public_shares_are_used_and_not_measured():
    codes, stream = table_of_codes(2000), RandomStream(1)
    budget_filter = WatchedFilter(whole_of(10.0), stream, answer=silent())
    known = [np.array([0.2, 0.3, 0.5]), None, None, None, None]
    released, _ = release_blocks(
        codes,
        Domain(COUNTS, ORDERED, public=tuple(known)),
        budget_filter,
        Work(stream, steps=Steps(residuals=False)),
        rows=100,
    )
    measured = [s.event.purpose for s in budget_filter.steps].count("marginals")
    assert measured == 4
    assert released.public == (True, False, False, False, False)
    assert released.one_ways[0].counts.tolist() == [400, 600, 1000]


def test_features_that_must_stay_whole_keep_their_categories():
    released, _, _ = released_of(1.0, 1e-9, apart=range(5))
    assert released.sizes == COUNTS
    merged, _, _ = released_of(1.0, 1e-9)
    assert sum(merged.sizes) < sum(COUNTS)


def test_what_was_paid_is_written_down_in_order():
    _, _, events = released_of(10.0, 1e-9)
    purposes = [getattr(event, "purpose", "") for event in events]
    assert purposes[:6] == ["total"] + ["marginals"] * 5
    # One look for features that another one tells finds none here.
    assert purposes[6:9] == ["dependence", "rows that a map explains", "heads"]
    assert isinstance(events[-1], Unspent)
    assert {type(event) for event in events[:-1]} == {NoisyCounts, NoisyResiduals, Selection}
