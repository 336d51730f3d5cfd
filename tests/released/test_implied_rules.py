"""What rules imply: the same rows forbidden, and no way into a dead end (R18), by brute force."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.methods.released import _next_rows as implied_rules
from pegsynth.methods.released._next_rows import with_implied
from pegsynth.schema import Rule


@st.composite
def ruled(draw):
    """Categories of up to four features, and up to six rules about them."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    rules = []
    for _ in range(draw(st.integers(0, 6))):
        named = draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3))
        rules.append(
            Rule.of(
                {
                    feature: sorted(
                        draw(st.sets(st.integers(0, sizes[feature] - 1), min_size=1, max_size=3))
                    )
                    for feature in sorted(named)
                }
            )
        )
    return tuple(sizes), tuple(rules)


def all_rows(sizes):
    return np.array(list(product(*map(range, sizes))))


def obeying(rows, rules):
    broken = np.zeros(len(rows), dtype=bool)
    for rule in rules:
        broken |= rule.broken_by(rows)
    return rows[~broken]


def dead_ends(sizes, rules, valid):
    """Yield partial rows that break no rule about their features and have no completion."""
    for count in range(1, len(sizes)):
        for features in combinations(range(len(sizes)), count):
            own = [rule for rule in rules if set(dict(rule.forbidden)) <= set(features)]
            for values in product(*(range(sizes[f]) for f in features)):
                row = np.zeros((1, len(sizes)), dtype=np.int64)
                row[0, list(features)] = values
                if any(rule.broken_by(row).any() for rule in own):
                    continue
                if not (valid[:, list(features)] == values).all(axis=1).any():
                    yield features, values


@given(ruled())
def test_the_same_rows_are_forbidden_and_nothing_leads_astray(case):
    sizes, rules = case
    rows = all_rows(sizes)
    valid = obeying(rows, rules)
    if not len(valid):
        with pytest.raises(SchemaError, match="forbid every row"):
            with_implied(rules, sizes)
        return
    closed = with_implied(rules, sizes)
    assert np.array_equal(obeying(rows, closed), valid)
    assert not list(dead_ends(sizes, closed, valid))


def test_the_rules_alone_lead_astray():
    """The twin: a partial row breaks none of the rules and has no completion."""
    sizes = (2, 2, 2)
    rules = (Rule.of({0: [0], 2: [0]}), Rule.of({1: [1], 2: [1]}))
    valid = obeying(all_rows(sizes), rules)
    assert list(dead_ends(sizes, rules, valid)) == [((0, 1), (0, 1))]
    (implied,) = set(with_implied(rules, sizes)) - set(rules)
    assert implied == Rule.of({0: [0], 1: [1]})


def test_rules_that_imply_nothing_stay_as_they_are():
    rules = (Rule.of({0: [0], 1: [2]}), Rule.of({0: [3, 4], 2: [0]}))
    assert with_implied(rules, (5, 3, 2)) == rules
    assert with_implied((), (5, 3)) == ()


def test_what_another_rule_says_already_is_dropped():
    wide, narrow = Rule.of({0: [0, 1]}), Rule.of({0: [1], 1: [0]})
    assert with_implied((narrow, wide), (3, 2)) == (wide,)


def test_too_many_rules_are_refused(monkeypatch):
    rules = tuple(Rule.of({0: [i], 1 + i: [0]}) for i in range(12))
    sizes = (20, *(2,) * 12)
    monkeypatch.setattr(implied_rules, "MOST_RULES", 11)
    with pytest.raises(ParameterError, match="too many ways; state fewer rules"):
        with_implied(rules, sizes)


def test_a_search_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(implied_rules, "_MOST_STEPS", 20)
    rules = tuple(Rule.of({0: [code], 1 + other: [0]}) for code in range(3) for other in range(4))
    with pytest.raises(ParameterError, match="too many ways; state fewer rules"):
        with_implied(rules, (3, 2, 2, 2, 2))
