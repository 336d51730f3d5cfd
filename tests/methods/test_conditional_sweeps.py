"""Sweeps over fitted conditionals: R8 exactly, and eta per draw whatever the model."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pegsynth.errors import ModelError, ParameterError, SchemaError
from pegsynth.kernels.fitted_draws import LANE, STUCK, draw_categories, floor_weights
from pegsynth.mechanisms.rule_patterns import rule_tables
from pegsynth.methods.baselines.bootstrap import obeying
from pegsynth.methods.baselines.sequential_draws import Sweeps
from pegsynth.methods.seed_rows import FilePool
from pegsynth.privacy.draw_events import ImputationDraws
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from significance import outcomes_fit
from word_tree import enumerate_words, largest_ratio

COUNTS = (2, 3)
RULES = (Rule.of({0: [0], 1: [0, 2]}), Rule.of({0: [1], 1: [1]}))
NEXT = math.nextafter(1 / 3, 1)
FITS = [
    (1.0, 0.0, 0.0),
    (0.5, 0.25, 0.25),
    (1 / 3, 1 / 3, 1 / 3),
    (NEXT, NEXT, NEXT),
    (0.0, 0.7, 0.3),
    (0.1, 0.1, 0.8),
    (0.125, 0.375, 0.5),
]


def floored(fitted, scale):
    """The definition: exact floors, and what exceeds s taken off the largest weight."""
    weights = [math.floor(Fraction(g) * scale) for g in fitted]
    excess = max(0, sum(weights) - scale)
    weights[weights.index(max(weights))] -= excess
    return weights


def one_draw(fitted, numerator, scale, rules=(), row=(1, 0)):
    """Exact law of one draw of feature 1 by the compiled kernel."""
    tables = rule_tables(rules, COUNTS)
    bits = (scale + len(fitted) * max(numerator, 1)).bit_length()
    line = np.array([fitted])

    def run(words):
        rows = np.array([row], dtype=np.uint32)
        state = np.zeros(3, dtype=np.int64)
        rest = (np.uint64(scale), np.uint64(numerator), tables, words, np.uint64(bits))
        done = draw_categories(rows, 1, line, state, *rest)
        return bool(done), int(state[LANE]), int(rows[0, 1])

    return enumerate_words(run, bits)


def by_definition(fitted, numerator, scale, allowed=(0, 1, 2)):
    weights = floored(fitted, scale)
    wanted = {j: Fraction(weights[j] + numerator) for j in allowed}
    if not any(wanted.values()):
        wanted = dict.fromkeys(allowed, Fraction(1))
    return {j: w / sum(wanted.values()) for j, w in wanted.items() if w}


@pytest.mark.parametrize("fitted", FITS, ids=str)
@pytest.mark.parametrize(("numerator", "scale"), [(0, 8), (1, 8), (3, 4), (5, 7)])
def test_a_draw_has_exactly_the_probabilities_of_r8(fitted, numerator, scale):
    expected = by_definition(fitted, numerator, scale)
    assert one_draw(fitted, numerator, scale) == expected
    for first, allowed in ((0, (1,)), (1, (0, 2))):
        restricted = by_definition(fitted, numerator, scale, allowed)
        assert one_draw(fitted, numerator, scale, RULES, (first, 0)) == restricted


@pytest.mark.parametrize("rules", [(), RULES], ids=["free", "rules"])
@pytest.mark.parametrize(("numerator", "scale"), [(1, 8), (3, 4), (5, 7)])
def test_any_two_fits_are_within_eta_of_each_other(numerator, scale, rules):
    price = 1 + Fraction(scale, numerator)
    laws = [one_draw(fitted, numerator, scale, rules) for fitted in FITS]
    worst = max(largest_ratio(left, right) for left, right in product(laws, repeat=2))
    assert worst <= price
    event = ImputationDraws(features=1, rows=1, alpha_numerator=numerator, alpha_denominator=scale)
    assert float(event.price("pure")) >= math.log(worst)


def rounded(fitted, numerator, scale):
    """A broken twin: weights rounded to nearest."""
    weights = [math.floor(g * scale + 0.5) + numerator for g in fitted]
    return {j: Fraction(w, sum(weights)) for j, w in enumerate(weights)}


def test_rounding_to_nearest_breaks_the_claim():
    """Rounded up, the weights of `spread` sum to 3 > s = 2."""
    numerator, scale = 1, 2
    price = 1 + Fraction(scale, numerator)
    single, spread = (1.0, 0.0, 0.0, 0.0), (0.0, 0.3, 0.3, 0.4)
    sound = [one_draw(fitted, numerator, scale) for fitted in (single, spread)]
    assert largest_ratio(*sound) <= price
    broken = [rounded(fitted, numerator, scale) for fitted in (single, spread)]
    assert largest_ratio(*broken) > price


class Table:
    """A model made of tables: feature given the other one."""

    def __init__(self, joint):
        self.joint = np.array(joint, dtype=np.float64)

    def probabilities(self, target, rows):
        lines = self.joint[:, rows[:, 1]].T if target == 0 else self.joint[rows[:, 0]]
        return lines / lines.sum(axis=1, keepdims=True)


MODEL = Table([[1, 2, 1], [4, 1, 3]])


def law_of_sweeps(start, sweeps, numerator, scale, rules=()):
    law = {start: Fraction(1)}
    for _ in range(sweeps):
        for target in (0, 1):
            after = defaultdict(Fraction)
            for row, mass in law.items():
                fitted = MODEL.probabilities(target, np.array([row]))[0]
                trials = [(*row[:target], j, *row[target + 1 :]) for j in range(COUNTS[target])]
                ok = obeying(np.array(trials, dtype=np.uint32), rules)
                allowed = tuple(j for j in range(COUNTS[target]) if ok[j])
                for j, share in by_definition(fitted, numerator, scale, allowed).items():
                    after[trials[j]] += mass * share
            law = after
    return {row: float(p) for row, p in law.items()}


@pytest.mark.parametrize("rules", [(), RULES[:1]], ids=["free", "rule"])
@pytest.mark.parametrize(("numerator", "sweeps"), [(0, 1), (3, 1), (1, 3)])
def test_sweeps_follow_the_chain_of_conditionals(numerator, sweeps, rules):
    start = np.tile(np.array([(1, 1)], dtype=np.uint32), (8_000, 1))
    told = Sweeps((0, 1), COUNTS, numerator, 16, rules, sweeps)
    drawn = told.swept(MODEL, start, RandomStream("sweeps").substream())
    outcomes = [tuple(row) for row in drawn.tolist()]
    assert outcomes_fit(outcomes, law_of_sweeps((1, 1), sweeps, numerator, 16, rules))
    assert not outcomes_fit(outcomes, law_of_sweeps((1, 1), sweeps, numerator + 8, 16, rules))
    assert obeying(drawn, rules).all()
    assert (start == (1, 1)).all()


def sweeps_of(targets=(0, 1), **changes):
    return Sweeps(targets, COUNTS, **{"numerator": 1, "scale": 1 << 20} | changes)


def test_without_virtual_rows_the_model_itself_is_drawn():
    weights = np.zeros(3, dtype=np.uint64)
    for fitted in FITS:
        floor_weights(np.array(fitted), np.uint64(1 << 20), weights)
        assert weights.sum() <= 1 << 20
        assert weights / weights.sum() == pytest.approx(fitted, abs=1e-5)


def test_features_that_are_no_target_keep_their_value():
    start = np.array([(0, 1), (1, 2)] * 50, dtype=np.uint32)
    words = RandomStream(1).substream()
    drawn = sweeps_of((1,)).swept(MODEL, start, words)
    assert np.array_equal(drawn[:, 0], start[:, 0])
    assert not np.array_equal(drawn[:, 1], start[:, 1])


def test_streamed_equals_whole_and_seeds_reproduce():
    pool = FilePool(np.array([(0, 1), (1, 2)], dtype=np.uint32))

    def parts(seed):
        return sweeps_of().sampled(MODEL, pool, 250, RandomStream(seed), chunk=100)

    whole = np.concatenate(list(parts(3)))
    one_by_one = [row for part in parts(3) for row in part]
    assert [len(part) for part in parts(3)] == [100, 100, 50]
    assert np.array_equal(whole, one_by_one)
    assert not np.array_equal(whole, np.concatenate(list(parts(4))))


def test_words_that_run_out_make_no_difference():
    tables, fitted = rule_tables(RULES, COUNTS), np.tile(FITS[5], (50, 1))
    words = RandomStream(1).substream().take(60)
    start = np.tile(np.array([(1, 0)], dtype=np.uint32), (50, 1))
    rest = (np.uint64(10), np.uint64(1), tables)
    whole, parts = start.copy(), start.copy()
    state = np.zeros(3, dtype=np.int64)
    assert draw_categories(whole, 1, fitted, state, *rest, words, np.uint64(64))
    state[:] = 0
    for first in range(0, 60, 7):
        draw_categories(parts, 1, fitted, state, *rest, words[first : first + 7], np.uint64(64))
    assert state[STUCK] == 0
    assert np.array_equal(whole, parts)


def test_rules_that_leave_nothing_are_named():
    start = np.array([(0, 0)], dtype=np.uint32)
    rules = (Rule.of({0: [0], 1: [0, 1, 2]}),)
    words = RandomStream(1).substream()
    with pytest.raises(SchemaError, match="feature 1"):
        sweeps_of((1,), rules=rules).swept(MODEL, start, words)


class Given:
    def __init__(self, line):
        self.line = line

    def probabilities(self, target, rows):
        return np.tile(np.array(self.line), (len(rows), 1))


@pytest.mark.parametrize(
    "line", [(0.5, 0.5), (0.6, 0.6, 0.0), (-0.1, 0.6, 0.5), (math.nan, 0.5, 0.5)], ids=str
)
def test_what_is_no_probability_is_refused(line):
    start = np.zeros((2, 2), dtype=np.uint32)
    with pytest.raises(ModelError, match="probabilities"):
        sweeps_of((1,)).swept(Given(line), start, RandomStream(1).substream())


def test_virtual_rows_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError):
        sweeps_of(numerator=1 << 61)


def test_no_rows_at_all():
    empty = np.zeros((0, 2), dtype=np.uint32)
    drawn = sweeps_of().swept(MODEL, empty, RandomStream(1).substream())
    assert drawn.shape == (0, 2)
