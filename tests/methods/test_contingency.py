"""R9 exactly, by enumeration of the one integer behind a row; log-linear fits."""

import math
import time
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.methods.baselines.bootstrap import obeying
from pegsynth.methods.baselines.contingency import ContingencyTable, decode_cells
from pegsynth.methods.baselines.loglinear import (
    MOST_CELLS,
    blocked_cells,
    cell_weights,
    draw_cells,
    fit_loglinear,
)
from pegsynth.methods.baselines.sequential_draws import in_chunks
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from significance import outcomes_fit
from word_tree import largest_ratio, ratio_range

COUNTS = (2, 3)
CELLS = list(product(*(range(c) for c in COUNTS)))
DATA = [(0, 0), (0, 2), (1, 2), (1, 2)]
ADULT = (74, 9, 100, 16, 7, 15, 6, 5, 2, 120, 99, 97, 42, 2)
RULES = (Rule.of({0: [1], 1: [2]}), Rule.of({0: [0], 1: [1]}))


def codes(rows):
    return np.array(rows, dtype=np.uint8).reshape(-1, len(COUNTS))


class RejectedError(Exception):
    """The row was thrown away and the next attempt, which is like it, began."""


class OneInteger:
    """Answers one integer below `bound`, after a valid row for the check of the rules."""

    def __init__(self, value, bound, valid_cell):
        checked = [] if valid_cell is None else [(len(CELLS), valid_cell)]
        self.answers = [*checked, (bound, value)]

    def below(self, bound):
        if not self.answers:
            raise RejectedError
        expected, value = self.answers.pop(0)
        assert bound == expected
        return value


def one_row(data, numerator, scale, rules=(), table=None):
    """Exact distribution of one row of the shipped code: every integer below its bound."""
    table = table or ContingencyTable(codes(data), COUNTS)
    held = len(data) if not rules else int(obeying(codes(data), rules).sum())
    bound = scale * held + numerator * len(CELLS) or len(CELLS)
    valid = None
    if rules:
        valid = next(n for n, row in enumerate(CELLS) if obeying(codes([row]), rules).all())
    seen = Counter()
    for value in range(bound):
        source = OneInteger(value, bound, valid)
        try:
            row = table.draw(1, numerator=numerator, scale=scale, words=source, rules=rules)
        except RejectedError:
            continue
        seen[tuple(row[0].tolist())] += 1
    return {row: Fraction(count, seen.total()) for row, count in seen.items()}


def by_definition(data, numerator, scale, rules=()):
    allowed = [row for row in CELLS if obeying(codes([row]), rules).all()]
    weight = {row: data.count(row) + Fraction(numerator, scale) for row in allowed}
    total = sum(weight.values())
    if not total:
        return {row: Fraction(1, len(allowed)) for row in allowed}
    return {row: w / total for row, w in weight.items() if w}


@pytest.mark.parametrize("rules", [(), RULES[:1], RULES], ids=["free", "one rule", "two rules"])
@pytest.mark.parametrize("data", [DATA, DATA[2:], []], ids=["four rows", "broken rows", "empty"])
@pytest.mark.parametrize(("numerator", "scale"), [(0, 1), (1, 5), (3, 5), (7, 3)])
def test_a_row_has_exactly_the_probability_of_its_cell(data, numerator, scale, rules):
    assert one_row(data, numerator, scale, rules) == by_definition(data, numerator, scale, rules)


class EditedTable(ContingencyTable):
    """A broken twin: redraws only the row and keeps the choice between data and uniform."""

    def _draw(self, valid, count, numerator, scale, words):
        rows = super()._draw(valid, count, numerator, scale, words)
        rows[~obeying(rows, RULES)] = (0, 0)
        return rows


def test_a_rule_mended_after_the_draw_is_caught():
    twin = EditedTable(codes(DATA), COUNTS)
    assert one_row(DATA, 3, 5, RULES, twin) != by_definition(DATA, 3, 5, RULES)


@pytest.mark.parametrize("rules", [(), RULES], ids=["free", "rules"])
def test_a_published_row_costs_eta_on_all_small_neighbours(rules):
    numerator, scale = 2, 3
    price = 1 + Fraction(scale, numerator)
    worst = Fraction(1)
    for size in range(3):
        for data in product(CELLS, repeat=size):
            before = one_row(list(data), numerator, scale, rules)
            for extra in CELLS:
                after = one_row([*data, extra], numerator, scale, rules)
                worst = max(worst, ratio_range(before, after))
                assert largest_ratio(before, after) <= price
    # The bound is met by an empty cell that receives its first row.
    assert worst == price


def test_virtual_rows_forgotten_in_one_cell_are_caught():
    before, after = by_definition(DATA, 0, 1), by_definition([*DATA, (1, 1)], 0, 1)
    with pytest.raises(AssertionError):
        largest_ratio(before, after)


def test_cells_of_any_size_are_decoded_digit_by_digit():
    counts = (10_000,) * 30 + (7, 1, 2)
    cell = 1
    expected = []
    for number, count in enumerate(counts):
        digit = (number * 7919) % count
        cell = cell * count + digit if number else digit
        expected.append(digit)
    assert decode_cells([cell, 0], counts).tolist() == [expected, [0] * len(counts)]
    every = decode_cells(range(len(CELLS)), COUNTS)
    assert [tuple(row) for row in every.tolist()] == CELLS


def test_adult_sized_tables_are_drawn_in_seconds_and_nothing_is_listed():
    assert math.prod(ADULT) > 6 * 10**17
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(0, c, 30_000) for c in ADULT], axis=1).astype(np.uint8)
    table = ContingencyTable(rows, ADULT)
    start = time.perf_counter()
    drawn = table.draw(100_000, numerator=1, scale=1 << 20, words=RandomStream(1).substream())
    assert time.perf_counter() - start < 20
    assert drawn.shape == (100_000, len(ADULT))
    assert (drawn < np.array(ADULT)).all()


def test_large_draws_fit_the_definition_and_obey_the_rules():
    table = ContingencyTable(codes(DATA), COUNTS)
    drawn = table.draw(
        20_000, numerator=3, scale=5, words=RandomStream("contingency").substream(), rules=RULES
    )
    outcomes = [tuple(row) for row in drawn.tolist()]
    expected = {k: float(v) for k, v in by_definition(DATA, 3, 5, RULES).items()}
    assert outcomes_fit(outcomes, expected)
    twin = {k: float(v) for k, v in by_definition(DATA, 3, 5).items()}
    assert not outcomes_fit(outcomes, twin)


def test_streamed_equals_whole_and_seeds_reproduce():
    table = ContingencyTable(codes(DATA), COUNTS)

    def draw(count, words):
        return table.draw(count, numerator=1, scale=2, words=words)

    first = np.concatenate(list(in_chunks(250, RandomStream(3), draw, chunk=100)))
    again = [list(part) for part in in_chunks(250, RandomStream(3), draw, chunk=100)]
    assert [len(part) for part in again] == [100, 100, 50]
    assert np.array_equal(first, np.array([row for part in again for row in part]))


def test_impossible_rules_are_refused_without_a_look_at_the_data():
    rules = [Rule.of({0: [0]}), Rule.of({1: [0, 1, 2], 0: [1]})]
    for data in (DATA, []):
        table = ContingencyTable(codes(data), COUNTS)
        with pytest.raises(SchemaError, match="rules"):
            table.draw(1, numerator=1, scale=1, words=RandomStream(1).substream(), rules=rules)


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError):
        ContingencyTable(codes(DATA), (2, 3, 2))
    with pytest.raises(ParameterError):
        ContingencyTable(codes(DATA), COUNTS).draw(1, numerator=-1, scale=1, words=None)


# Log-linear fits

THREE = (2, 3, 2)


def three_way(rows=500, seed=1):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, rows)
    second = (first + rng.integers(0, 2, rows)) % 3
    third = (second > 0) ^ (rng.random(rows) < 0.2)
    return np.stack([first, second, third], axis=1).astype(np.uint8)


def shares(rows, counts, features):
    table = np.zeros([counts[f] for f in features])
    np.add.at(table, tuple(rows[:, f] for f in features), 1 / len(rows))
    return table


@pytest.mark.parametrize("margins", [None, [(0,), (1,), (2,)], [(0, 1), (2,)], [(0, 1, 2)]])
def test_a_fit_meets_its_margins(margins):
    rows = three_way()
    fit = fit_loglinear(rows, THREE, margins=margins)
    table = fit.probabilities.reshape(THREE)
    assert table.sum() == pytest.approx(1)
    for features in margins or combinations(range(3), 2):
        others = tuple(f for f in range(3) if f not in features)
        assert table.sum(axis=others) == pytest.approx(shares(rows, THREE, features), abs=1e-5)


def test_independent_margins_give_the_product_and_the_full_margin_the_table():
    rows = three_way()
    product_fit = fit_loglinear(rows, THREE, margins=[(0,), (1,), (2,)])
    one = [shares(rows, THREE, (f,)) for f in range(3)]
    expected = one[0][:, None, None] * one[1][None, :, None] * one[2][None, None, :]
    assert product_fit.probabilities == pytest.approx(expected.ravel())
    full = fit_loglinear(rows, THREE, margins=[(0, 1, 2)])
    assert full.probabilities == pytest.approx(shares(rows, THREE, (0, 1, 2)).ravel())


def test_large_tables_are_refused_with_their_number_of_cells():
    with pytest.raises(ParameterError, match=str(math.prod(ADULT))):
        fit_loglinear(np.zeros((1, len(ADULT)), dtype=np.uint8), ADULT)
    assert math.prod(ADULT) > MOST_CELLS


def test_an_empty_table_is_uniform():
    fit = fit_loglinear(np.zeros((0, 3), dtype=np.uint8), THREE)
    assert np.all(fit.probabilities == 1 / 12)


@pytest.mark.parametrize(("numerator", "scale"), [(0, 1 << 20), (1, 1 << 20), (5, 3), (1 << 30, 1)])
def test_cell_weights_keep_the_price_of_r8(numerator, scale):
    """(w + p)/(W + C p) stays within 1 + s/p of that of any other fit, in exact integers."""
    rng = np.random.default_rng(4)
    fits = [np.eye(12)[0], np.full(12, 1 / 12), *rng.dirichlet(np.full(12, 0.2), 20)]
    fits.append(np.nextafter(np.full(12, 1 / 12), 1))  # sums to a little above 1
    everything = []
    for fitted in fits:
        weights = [int(w) for w in cell_weights(fitted, numerator, scale)]
        total = sum(weights)
        everything.append({j: Fraction(w, total) for j, w in enumerate(weights)})
        if numerator == 0:
            assert max(abs(float(everything[-1][j]) - fitted[j]) for j in range(12)) < 1e-5
    if numerator:
        price = 1 + Fraction(scale, numerator)
        for left, right in product(everything, repeat=2):
            assert largest_ratio(left, right) <= price


def test_cells_are_drawn_exactly_in_proportion_to_their_weights():
    cumulative = np.cumsum(np.array([2, 0, 3, 1], dtype=np.uint64))
    every_word = np.arange(256, dtype=np.uint64)
    accepted = 256 - 256 % 6
    drawn = draw_cells(cumulative, accepted, lambda _: every_word, np.uint64(8))
    assert Counter(drawn.tolist()) == {0: accepted // 3, 2: accepted // 2, 3: accepted // 6}


@pytest.mark.parametrize("numerator", [0, 1 << 18])
def test_draws_follow_the_fit_and_the_rules(numerator):
    rules = (Rule.of({0: [1], 2: [0]}),)
    fit = fit_loglinear(three_way(), THREE)
    words = RandomStream("log-linear").substream()
    drawn = fit.draw(20_000, numerator=numerator, scale=1 << 20, words=words, rules=rules)
    blocked = blocked_cells(rules, THREE)
    alpha = numerator / (1 << 20)
    wanted = np.where(blocked, 0, fit.probabilities + alpha)
    cells = product(*(range(c) for c in THREE))
    expected = {row: float(p) for row, p in zip(cells, wanted / wanted.sum(), strict=True) if p}
    assert obeying(drawn, rules).all()
    outcomes = [tuple(row) for row in drawn.tolist()]
    assert outcomes_fit(outcomes, expected)
    twin = np.where(blocked, 0, fit.probabilities + alpha + 0.2)
    cells = product(*(range(c) for c in THREE))
    broken = {row: float(p) for row, p in zip(cells, twin / twin.sum(), strict=True) if p}
    assert not outcomes_fit(outcomes, broken)


def test_a_fit_that_only_holds_forbidden_cells_draws_allowed_ones_alike():
    rows = np.zeros((3, 2), dtype=np.uint8)
    fit = fit_loglinear(rows, COUNTS, margins=[(0, 1)])
    words = RandomStream(1).substream()
    rules = (Rule.of({0: [0], 1: [0]}),)
    drawn = fit.draw(2_000, numerator=0, scale=1, words=words, rules=rules)
    assert outcomes_fit(map(tuple, drawn.tolist()), dict.fromkeys(CELLS[1:], 1 / 5))
