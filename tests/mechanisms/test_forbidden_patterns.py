"""Rules as arrays, and the sets of rules that can be active at once (R18)."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import forbidden
from pegsynth.errors import SchemaError
from pegsynth.kernels import gibbs
from pegsynth.kernels.compiled import as_kernel
from pegsynth.mechanisms import rule_tables
from pegsynth.mechanisms.rule_patterns import MOST_PATTERN_RULES, forbidden_patterns
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import Prior, diverse, uniform_weights
from pegsynth.schema import Rule

# Kernels call these; here Python does, compiled all the same.
active_rules = as_kernel(gibbs.active_rules)
breaks_rule = as_kernel(gibbs.breaks_rule)

COUNTS = (2, 3, 4)
ROWS = [list(row) for row in product(*map(range, COUNTS))]


@st.composite
def rule(draw):
    features = draw(st.sets(st.integers(0, 2), min_size=1))
    return Rule.of(
        {
            f: draw(st.sets(st.integers(0, COUNTS[f] - 1), min_size=1, max_size=COUNTS[f]))
            for f in features
        }
    )


rules_lists = st.lists(rule(), max_size=4)


def conditions_hold(rule, target, row):
    """Whether all of the rule but its demand on the target is met."""
    return all(row[f] in codes for f, codes in rule.forbidden if f != target)


def pattern_of(own, target, row):
    return sum(conditions_hold(r, target, row) << bit for bit, r in enumerate(own))


@settings(deadline=None)
@given(rules=rules_lists, target=st.integers(0, 2))
def test_patterns_are_the_satisfiable_sets(rules, target):
    own = [r for r in rules if target in dict(r.forbidden)]
    found = forbidden_patterns(rules, target, COUNTS[target], "x")
    for pattern in range(1 << len(own)):
        chosen = [r for bit, r in enumerate(own) if pattern >> bit & 1]
        union = set().union(*(dict(r.forbidden)[target] for r in chosen))
        satisfiable = any(all(conditions_hold(r, target, row) for r in chosen) for row in ROWS)
        # A set that leaves no category is met by no row that obeys the rules.
        assert (pattern in found) == (satisfiable and len(union) < COUNTS[target])
        if pattern in found:
            assert set(np.flatnonzero(found[pattern])) == union


@settings(deadline=None)
@given(rules=rules_lists, target=st.integers(0, 2))
def test_every_valid_row_meets_a_listed_pattern_and_what_the_kernel_forbids(rules, target):
    own = [r for r in rules if target in dict(r.forbidden)]
    found = forbidden_patterns(rules, target, COUNTS[target], "x")
    tables = rule_tables(rules, COUNTS)
    for row in ROWS:
        codes = np.array(row, dtype=np.uint32)
        broken = any(conditions_hold(r, None, row) for r in rules)
        assert breaks_rule(codes, tables) == broken
        marked = np.ones(COUNTS[target], dtype=bool)
        pattern = active_rules(codes, tables, target, COUNTS[target], marked)
        assert pattern == pattern_of(own, target, row)
        if pattern:
            union = set().union(
                *(dict(r.forbidden)[target] for i, r in enumerate(own) if pattern >> i & 1)
            )
            assert set(np.flatnonzero(marked)) == union
        if not broken:
            allowed = [c for c in range(COUNTS[target]) if not forbidden(own, target, row, c)]
            assert np.flatnonzero(~found[pattern]).tolist() == allowed


def many_rules(count):
    return [Rule.of({0: [0], 1: [n % 3]}) for n in range(count)]


def test_more_rules_than_patterns_can_tell_apart_are_refused():
    assert forbidden_patterns(many_rules(MOST_PATTERN_RULES), 0, 2, "sex")
    with pytest.raises(SchemaError, match=r"'sex'.*at most 12 rules.*13 mention"):
        forbidden_patterns(many_rules(MOST_PATTERN_RULES + 1), 0, 2, "sex")


def test_rules_on_other_features_do_not_count():
    others = [Rule.of({1: [0], 2: [n % 4]}) for n in range(20)]
    assert list(forbidden_patterns(others, 0, 2, "sex")) == [0]


def test_a_combination_that_no_row_can_meet_does_not_spoil_diversity():
    """x = 0 is ruled out whatever the target holds, so l is never asked for there."""
    spec = HashSpec(("target", "x", "y"), COUNTS, ((), (), ()), 0)
    blocks = disintegrate([np.array([[0, 1, 1], [0, 2, 3]], dtype=np.uint8)], spec)
    prior = Prior(uniform_weights(COUNTS), (0, 0, 0), 4)
    rules = (Rule.of({0: [0, 1], 1: [0]}),)
    tables = diverse(blocks, prior, {0: 1.5}, rules)
    assert len(tables.entry_multiplier) == 1


def test_no_rules_give_empty_tables():
    tables = rule_tables((), COUNTS)
    assert tables.target_start.tolist() == [0, 0, 0, 0]
    assert len(tables.member) == 0
    assert not breaks_rule(np.zeros(3, dtype=np.uint32), tables)
