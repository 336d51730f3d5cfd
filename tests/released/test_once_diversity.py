"""Entropy l-diversity of released distributions, under every rule that may hold (R7, R18)."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegsynth
from contract import contract_schema, contract_table
from pegsynth.errors import ParameterError
from pegsynth.released import Diverse
from pegsynth.released.diverse_shares import entropy
from pegsynth.released.row_pool import Pool
from pegsynth.schema import Rule


def restricted(line, gone):
    kept = np.array([share for code, share in enumerate(line) if code not in gone])
    return kept / kept.sum()


def slow_entropy(line):
    return -sum(p * math.log(p) for p in line if p > 0)


def slow_sets(rules, feature):
    """What each set of rules takes away from a feature, unless it takes everything."""
    named = [dict(rule.forbidden)[feature] for rule in rules if feature in dict(rule.forbidden)]
    for chosen in product([False, True], repeat=len(named)):
        yield frozenset().union(*(codes for codes, on in zip(named, chosen, strict=True) if on))


RULES = (Rule.of({0: [0], 1: [2]}), Rule.of({0: [3, 4], 2: [0]}), Rule.of({1: [0], 2: [1]}))


@given(st.integers(0, 2**32 - 1), st.floats(1.0, 2.0), st.booleans())
def test_every_restricted_line_reaches_its_entropy_with_the_smallest_part(seed, level, ruled):
    words = np.random.default_rng(seed)
    shares = words.dirichlet(np.full(5, 0.2), 6)
    rules = RULES if ruled else ()
    diverse = Diverse({0: level}, rules)
    found = diverse.applied(shares, 0)
    assert found.sum(axis=1) == pytest.approx(np.ones(6))
    for line, mixed in zip(shares, found, strict=True):
        entropies = [slow_entropy(restricted(mixed, gone)) for gone in slow_sets(rules, 0)]
        assert min(entropies) >= math.log(level) - 1e-12
        # The uniform part, from the smallest share; a little less of it is not enough.
        part = (mixed - line)[line.argmin()] / (1 / 5 - line.min())
        assert -1e-9 <= part <= 1 + 1e-9
        if part <= 1e-6:
            assert mixed == pytest.approx(line, abs=1e-6)
        elif level < 1.999:  # entropy is flat at its peak, log 2 where two categories remain
            less = (1 - part * 0.999) * line + part * 0.999 / 5
            smaller = [slow_entropy(restricted(less, gone)) for gone in slow_sets(rules, 0)]
            assert min(smaller) < math.log(level)


def test_a_line_by_hand():
    """From (1, 0), the l of (0.89, 0.11) is reached at that line: a uniform part of 0.22."""
    level = math.exp(slow_entropy([0.89, 0.11]))
    (found,) = Diverse({0: level}).applied(np.array([[1.0, 0.0]]), 0)
    assert found == pytest.approx([0.89, 0.11], abs=1e-9)


def test_features_without_an_l_stay_as_they_are():
    shares = np.array([[1.0, 0.0]])
    assert Diverse({1: 2.0}).applied(shares, 0) is shares


def test_l_of_all_categories_is_uniform():
    found = Diverse({0: 3.0}).applied(np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]]), 0)
    assert found == pytest.approx(np.full((2, 3), 1 / 3))


def test_entropies_in_nats():
    found = entropy(np.array([[0.5, 0.5], [1.0, 0.0]]))
    assert found == pytest.approx([math.log(2), 0.0])


def test_an_l_out_of_reach_is_refused_by_name():
    Diverse({0: 2.0}, RULES).check(("x", "y", "z"), (5, 3, 2))
    with pytest.raises(ParameterError, match=r"'x'.*only 2 of its categories"):
        Diverse({0: 2.5}, RULES).check(("x", "y", "z"), (5, 3, 2))
    Diverse({0: 5.0}).check(("x",), (5,))


def test_many_rules_that_exclude_each_other_are_no_trouble():
    rules = tuple(Rule.of({0: [0], 1: [i]}) for i in range(20))
    Diverse.under({0: 4.0}, rules, (5, 30)).check(("x", "y"), (5, 30))
    with pytest.raises(ParameterError, match="only 4 of its categories"):
        Diverse.under({0: 4.5}, rules, (5, 30)).check(("x", "y"), (5, 30))


def test_without_an_l_rules_stay_as_they_are():
    rules = tuple(Rule.of({0: [0], 1: [code]}) for code in range(2))
    assert Diverse.under({}, rules, (3, 2)).rules is rules
    assert Diverse.under({0: 2.0}, rules, (3, 2)).rules == (Rule.of({0: [0]}),)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("epsilon", [20.0, 1000.0])
def test_every_distribution_that_is_drawn_from_is_diverse(monkeypatch, epsilon, shared):
    """The whole method: blocks and features without heads, in fitting and in drawing anew.

    What is published is drawn row by row, from a pool of its own. Tables with noise of their own
    take one more pool, which stands for the population and of which no row is published (R28).
    """
    seen = []

    def watch(name):
        shipped = getattr(Pool, name)

        def watched(self, feature, heads, shares):
            seen.append((name, feature, shares))
            shipped(self, feature, heads, shares)

        monkeypatch.setattr(Pool, name, watched)

    watch("draw")
    watch("draw_alone")
    release = pegsynth.synthesize(
        contract_table(),
        contract_schema(rules=()),
        method="pegs-once",
        epsilon=epsilon,
        l=1.8,
        rows=300,
        datasets=2,
        shared_noise=shared,
    )
    assert release.ledger.guarantee.l == 1.8
    assert release.ledger.guarantee.kind == "pure"
    if not shared:
        assert [name for name, _, _ in seen[5:10]] == ["draw"] * 5
        del seen[5:10]
    assert [name for name, _, _ in seen] == ["draw"] * 5 + ["draw_alone"] * 10
    for part in (seen[:5], seen[5:10], seen[10:]):
        assert {feature for _, feature, _ in part} == set(range(5))
    for _, _, shares in seen:
        assert entropy(shares).min() >= math.log(1.8) - 1e-12


def test_without_l_some_distribution_is_not_diverse(monkeypatch):
    """The twin: what is released is not diverse by itself.

    Of the rows with `a` = z, nine numbers in ten lie in one bin: an l of 1.4. At epsilon 1000
    a false alarm would need a wrong choice of heads or noise of tens of rows, each far below
    1e-6. At 20 the choice alone can hide it.
    """
    seen = []
    shipped = Pool.draw
    monkeypatch.setattr(
        Pool, "draw", lambda self, *given: seen.append(given[2]) or shipped(self, *given)
    )
    pegsynth.synthesize(
        contract_table(), contract_schema(rules=()), method="pegs-once", epsilon=1000.0, rows=300
    )
    assert min(entropy(shares).min() for shares in seen) < math.log(1.8)
