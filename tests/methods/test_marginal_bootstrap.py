"""Marginal Bayesian bootstrap: urns have exactly the Dirichlet-multinomial law (R9, R17).

Sequences of draws are enumerated through the compiled urn, word by word, as fractions.
"""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from pegsynth.auditing.cases import tiny_schema
from pegsynth.errors import BudgetError, ParameterError, SchemaError
from pegsynth.kernels.urns import DRAWN, draw_urn
from pegsynth.methods import get
from pegsynth.methods.base import Model
from pegsynth.methods.baselines import marginal
from pegsynth.methods.baselines.bootstrap import obeying
from pegsynth.methods.baselines.marginal import MarginalTable, allowed_rows, default_draws
from pegsynth.methods.prior import Prior, dirichlet
from pegsynth.privacy import Budget, Ledger
from pegsynth.privacy.draw_events import UrnDraws
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from significance import outcomes_fit
from word_tree import enumerate_words, largest_ratio, ratio_range


@cache
def tape(counts, draws, multiplier, scale=1, weights=None, add_back=True):
    """Exact law of the first `draws` values of the compiled urn."""
    held = np.cumsum(np.array(counts, dtype=np.uint64), dtype=np.uint64)
    virtual = np.cumsum(np.array(weights or [1] * len(counts), dtype=np.uint64), dtype=np.uint64)
    most = scale * (sum(counts) + draws) + max(multiplier, 1) * int(virtual[-1])
    bits = max(1, most.bit_length())

    def run(words):
        drawn = np.zeros(draws, dtype=np.uint32)
        state = np.zeros(2, dtype=np.int64)
        done = draw_urn(
            drawn,
            state,
            held,
            virtual,
            np.uint64(scale),
            np.uint64(multiplier),
            add_back,
            words,
            np.uint64(bits),
        )
        return bool(done), int(state[DRAWN]), tuple(drawn.tolist())

    return enumerate_words(run, bits)


def rising(start, steps):
    return math.prod((start + step for step in range(steps)), start=Fraction(1))


def dirichlet_multinomial(counts, draws, alpha):
    """Law of a sequence by the closed form: rising factorials of n_j + alpha_j."""
    start = [n + a for n, a in zip(counts, alpha, strict=True)]
    out = {}
    for values in product(range(len(counts)), repeat=draws):
        seen = Counter(values)
        share = math.prod((rising(b, seen[j]) for j, b in enumerate(start)), start=Fraction(1))
        out[values] = share / rising(sum(start), draws)
    return {values: share for values, share in out.items() if share}


@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("counts", [(0, 0), (2, 0), (1, 3), (0, 1, 2)], ids=str)
@pytest.mark.parametrize(("multiplier", "scale"), [(1, 1), (1, 2), (3, 2)])
def test_the_urn_has_the_dirichlet_multinomial_law(counts, draws, multiplier, scale):
    alpha = [Fraction(multiplier, scale)] * len(counts)
    expected = dirichlet_multinomial(counts, draws, alpha)
    assert tape(counts, draws, multiplier, scale) == expected


def test_unequal_priors_and_no_prior_at_all():
    weights = (1, 3, 2)
    alpha = [Fraction(w, 2) for w in weights]
    found = tape((0, 1, 2), 3, 1, 2, weights)
    assert found == dirichlet_multinomial((0, 1, 2), 3, alpha)
    assert tape((1, 0, 2), 3, 0, 4) == dirichlet_multinomial((1, 0, 2), 3, [Fraction(0)] * 3)


def test_an_urn_without_rows_and_prior_answers_publicly_every_time():
    assert tape((0, 0), 3, 0) == dict.fromkeys(product(range(2), repeat=3), Fraction(1, 8))


def test_an_urn_that_forgets_to_add_back_is_caught():
    forgetful = tape((1, 3), 2, 1, add_back=False)
    assert forgetful != dirichlet_multinomial((1, 3), 2, [Fraction(1)] * 2)
    one = dirichlet_multinomial((1, 3), 1, [Fraction(1)] * 2)
    assert forgetful == {(a, b): one[a,] * one[b,] for a, b in product(range(2), repeat=2)}


def neighbours(categories, most_rows):
    for counts in product(range(most_rows + 1), repeat=categories):
        if sum(counts) <= most_rows:
            for extra in range(categories):
                yield counts, tuple(n + (j == extra) for j, n in enumerate(counts))


def claimed(draws, multiplier, scale):
    """1 + T/a: exp of the price of one urn."""
    return 1 + Fraction(draws * scale, multiplier)


@pytest.mark.parametrize(("multiplier", "scale"), [(1, 1), (1, 2), (3, 1)])
@pytest.mark.parametrize(("categories", "draws"), [(2, 1), (2, 3), (3, 2)])
def test_all_small_neighbours_stay_within_the_price(categories, draws, multiplier, scale):
    worst = Fraction(1)
    for before, after in neighbours(categories, 2):
        left, right = tape(before, draws, multiplier, scale), tape(after, draws, multiplier, scale)
        worst = max(worst, ratio_range(left, right))
        assert largest_ratio(left, right) <= claimed(draws, multiplier, scale)
    assert worst == claimed(draws, multiplier, scale)
    event = UrnDraws(features=1, visits=draws, alpha_numerator=multiplier, alpha_denominator=scale)
    price = float(event.price("pure"))
    assert price >= math.log(worst)
    assert price == pytest.approx(math.log(worst))


def test_without_adding_back_the_price_is_exceeded():
    worst = max(
        largest_ratio(tape(before, 3, 1, add_back=False), tape(after, 3, 1, add_back=False))
        for before, after in neighbours(2, 2)
    )
    assert worst > claimed(3, 1, 1)


# Rules: rows are thrown away, the urns never hear of it

RULE = (Rule.of({0: [0], 1: [1]}),)
BREAKING = [(0, 1), (0, 1), (1, 0)]


def rows_by_tapes(data, draws, rows, *, edit=()):
    """Law of what is published: the shipped rejection on the enumerated tapes."""
    kept = [row for row in data if obeying(np.array([row], dtype=np.uint8), edit).all()]
    counts = [tuple(sum(row[f] == j for row in kept) for j in range(2)) for f in range(2)]
    out = defaultdict(Fraction)
    for (first, p), (second, q) in product(*(tape(line, draws, 1).items() for line in counts)):
        attempts = np.array([first, second], dtype=np.uint32).T
        shown = allowed_rows(attempts, RULE, rows)
        out[tuple(map(tuple, shown.tolist()))] += p * q
    return dict(out)


def rows_by_definition(data, draws, rows, *, forget_rejected=False):
    """One attempt after the other; each goes back into the urns whether it is shown or not."""
    out = defaultdict(Fraction)

    def go(step, shown, seen, mass):
        if step == draws or len(shown) == rows:
            out[shown] += mass
            return
        for row in product(range(2), repeat=2):
            share = mass
            for feature, value in enumerate(row):
                held = sum(each[feature] == value for each in (*data, *seen))
                share *= Fraction(held + 1, len(data) + len(seen) + 2)
            allowed = row != (0, 1)
            back = () if forget_rejected and not allowed else (row,)
            go(step + 1, (*shown, row) if allowed else shown, (*seen, *back), share)

    go(0, (), (), Fraction(1))
    return dict(out)


@pytest.mark.parametrize("data", [BREAKING, [(1, 1)], []], ids=["breaks the rule", "one", "none"])
@pytest.mark.parametrize(("draws", "rows"), [(1, 1), (3, 1), (3, 2)])
def test_rejected_rows_stay_in_the_urns(data, draws, rows):
    assert rows_by_tapes(data, draws, rows) == rows_by_definition(data, draws, rows)


def test_counts_edited_by_a_rule_are_caught():
    found = rows_by_tapes(BREAKING, 2, 1, edit=RULE)
    assert found != rows_by_definition(BREAKING, 2, 1)


def test_urns_that_forget_rejected_rows_are_caught():
    found = rows_by_tapes(BREAKING, 3, 2)
    assert found != rows_by_definition(BREAKING, 3, 2, forget_rejected=True)


def test_published_rows_stay_within_the_price_of_all_attempts():
    draws = 3
    for data in ([], [(0, 1)], [(1, 1)], [(0, 1), (1, 0)]):
        before = rows_by_tapes(data, draws, 2)
        for extra in product(range(2), repeat=2):
            after = rows_by_tapes([*data, extra], draws, 2)
            assert largest_ratio(before, after) <= claimed(draws, 1, 1) ** 2


# Whole draws

COUNTS = (2, 3)
DATA = np.array([(0, 0), (0, 2), (1, 2), (1, 2)], dtype=np.uint8)
RULES = (Rule.of({0: [1], 1: [2]}),)


def table(data=DATA):
    counted = zip(data.T, COUNTS, strict=True)
    return MarginalTable(tuple(np.bincount(line, minlength=count) for line, count in counted))


def first_rows(times, rows, **options):
    stream = RandomStream("urns")
    for _ in range(times):
        words = stream.substream()
        yield tuple(map(tuple, table().draw(rows, words=words, **options).tolist()))


def test_two_rows_follow_the_urns_and_not_independent_draws(monkeypatch):
    laws = [dirichlet_multinomial(c, 2, [Fraction(1)] * len(c)) for c in ((2, 2), (1, 0, 3))]
    expected = {
        ((a[0], b[0]), (a[1], b[1])): float(p * q)
        for (a, p), (b, q) in product(*(law.items() for law in laws))
    }
    assert outcomes_fit(first_rows(10_000, 2, prior=dirichlet(COUNTS, 1, 1)), expected)

    def forgetful(*given):
        return draw_urn(*given[:6], False, *given[7:])

    monkeypatch.setattr(marginal, "draw_urn", forgetful)
    plain = first_rows(10_000, 2, prior=dirichlet(COUNTS, 1, 1))
    assert not outcomes_fit(plain, expected)


def test_after_the_cap_rows_are_public_and_obey_the_rules():
    """All data break the rule and alpha is tiny: the urns never give a row that may be shown."""
    data = np.array([(1, 2)] * 50, dtype=np.uint8)
    weights = (np.array([1, 2], dtype=np.uint64), np.array([1, 1, 2], dtype=np.uint64))
    prior = Prior(weights, (1, 1), 1 << 28)
    words = RandomStream("cap").substream()
    drawn = table(data).draw(5_000, prior=prior, words=words, rules=RULES, most_draws=5_000)
    assert obeying(drawn, RULES).all()
    share = {
        (a, b): Fraction(int(weights[0][a] * weights[1][b]), 12)
        for a, b in product(range(2), range(3))
        if (a, b) != (1, 2)
    }
    total = sum(share.values())
    expected = {row: float(p / total) for row, p in share.items()}
    assert outcomes_fit(map(tuple, drawn.tolist()), expected)
    assert not outcomes_fit(map(tuple, drawn.tolist()), dict.fromkeys(expected, 1 / 5))


def test_rules_without_a_cap():
    with pytest.raises(BudgetError, match="most draws"):
        table().draw(
            1, prior=dirichlet(COUNTS, 1, 1), words=RandomStream(1).substream(), rules=RULES
        )
    unperturbed = dirichlet(COUNTS, 0, 1)
    drawn = table().draw(3_000, prior=unperturbed, words=RandomStream(2).substream(), rules=RULES)
    assert len(drawn) == 3_000
    assert obeying(drawn, RULES).all()
    assert not (drawn[:, 1] == 1).any()
    hopeless = MarginalTable((np.array([0, 4]), np.array([0, 0, 4])))
    with pytest.raises(SchemaError, match="hardly any"):
        hopeless.draw(1, prior=unperturbed, words=RandomStream(3).substream(), rules=RULES)


def test_default_draws_are_public():
    assert default_draws(100, ()) == 100
    assert default_draws(100, RULES) > 100


def drawn_tables(rows, datasets, seed, held, alpha):
    """K tables of the shipped sampler."""
    schema = tiny_schema(tuple(map(len, held.counts)))
    plan = get("marginal").settle(schema, Budget(alpha=alpha), get("marginal").options(rows=rows))
    sampler = get("marginal").sampler(Model(schema, "marginal", held, Ledger()), plan, threads=1)
    tables = sampler.tables(rows, datasets, RandomStream(seed))
    return [np.concatenate(list(chunks)) for chunks in tables]


def test_urns_restart_for_each_dataset():
    """Posterior variance 0.25/41 on top of 0.25/400: about 10 times that of shared urns."""
    big = MarginalTable((np.array([20, 20]), np.array([40])))
    sets = drawn_tables(400, 200, "datasets", big, alpha=0.0)
    assert [len(each) for each in sets] == [400] * 200
    means = np.array([each[:, 0].mean() for each in sets])
    assert means.var() / (0.25 / 400) > 5


def test_seeds_reproduce():
    first, again = (drawn_tables(7, 3, 5, table(), alpha=1.0) for _ in range(2))
    assert all(map(np.array_equal, first, again))


def test_words_that_run_out_make_no_difference():
    whole, parts = np.zeros(50, dtype=np.uint32), np.zeros(50, dtype=np.uint32)
    words = RandomStream(1).substream().take(60)
    tables = (np.array([2, 5], dtype=np.uint64), np.array([1, 2], dtype=np.uint64))
    rest = (np.uint64(3), np.uint64(2), True)
    bits = np.uint64(64)
    assert draw_urn(whole, np.zeros(2, dtype=np.int64), *tables, *rest, words, bits)
    state = np.zeros(2, dtype=np.int64)
    for start in range(0, 60, 7):
        draw_urn(parts, state, *tables, *rest, words[start : start + 7], bits)
    assert np.array_equal(whole, parts)


def test_bad_arguments_are_refused():
    words = RandomStream(1).substream()
    with pytest.raises(ParameterError, match="most_draws"):
        table().draw(5, prior=dirichlet(COUNTS, 1, 1), words=words, rules=RULES, most_draws=4)
    with pytest.raises(ParameterError, match="categories"):
        table().draw(5, prior=dirichlet((2, 2), 1, 1), words=words)
    with pytest.raises(BudgetError, match="64-bit"):
        table().draw(1 << 50, prior=dirichlet(COUNTS, 1, 1 << 20), words=words)
    assert table().draw(0, prior=dirichlet(COUNTS, 1, 1), words=words).shape == (0, 2)
