"""The shipped kernel gives exactly the probabilities of R1, R4, R5, R7 and R18."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from oracle import SlowSampler
from pegsynth.auditing.exact_laws import enumerate_rows, word_bits
from pegsynth.mechanisms import rule_tables
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import Machine, Schedule
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import Prior, dirichlet, diverse, uniform_weights
from pegsynth.schema import Rule

COUNTS = (2, 3, 2)
NAMES = ("a", "b", "c")
DATA = [(0, 0, 0), (0, 2, 1), (1, 2, 1), (1, 2, 0)]
SPECS = {
    "no heads, no tail": HashSpec(NAMES, COUNTS, ((), (), ()), 0),
    "no heads, tail": HashSpec(NAMES, COUNTS, ((), (), ()), 2),
    "one head, tail": HashSpec(NAMES, COUNTS, ((1,), (2,), (0,)), 1),
    "full conditionals": HashSpec(NAMES, COUNTS, ((1, 2), (0, 2), (1, 0)), 0),
}
SCALE = 2


def machine(data, spec, prior, *, rules=(), dense=True, levels=None, targets=(0, 1, 2)):
    codes = np.array(data, dtype=np.uint8).reshape(-1, len(spec.category_counts))
    blocks = disintegrate([codes], spec, most_dense_cells=None if dense else 0)
    tables = diverse(blocks, prior, levels, rules) if levels else prior.tables
    return Machine(
        spec.tables,
        blocks.tables,
        tables,
        rule_tables(rules, spec.category_counts),
        np.array(targets, dtype=np.int64),
    )


def check(shipped, slow, seeds, rows, schedule, targets=None):
    bits = word_bits(shipped, len(DATA))
    found = enumerate_rows(shipped, np.array(seeds, dtype=np.uint32), schedule, rows, bits)
    expected = slow.table(
        seeds,
        rows,
        chain_rows=schedule.chain_rows,
        sweeps=schedule.sweeps,
        limit=schedule.limit,
        targets=targets,
    )
    assert sum(found.values()) == 1
    assert found == {k: v for k, v in expected.items() if v}


def alphas(numerator, scale=SCALE):
    return [[Fraction(numerator, scale)] * c for c in COUNTS]


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize(
    ("rows", "schedule"),
    [
        (1, Schedule()),
        (2, Schedule()),
        (1, Schedule(sweeps=2)),
        (2, Schedule(chain_rows=2, limit=1)),
        (2, Schedule(chain_rows=2, sweeps=1, limit=0)),
    ],
    ids=["pegs", "two rows", "two sweeps", "block with reset", "chain without reset"],
)
def test_rows_have_exactly_the_stated_probabilities(spec, rows, schedule, dense):
    shipped = machine(DATA, spec, dirichlet(COUNTS, 1, SCALE), dense=dense)
    slow = SlowSampler(DATA, spec, alphas(1))
    seeds = [(1, 1, 0), (0, 0, 1)][: -(-rows // schedule.chain_rows)]
    check(shipped, slow, seeds, rows, schedule)


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_visit_cap_acts_at_the_visit(limit, dense):
    spec = HashSpec(NAMES[:2], (2, 3), ((), ()), 0)
    data = [row[:2] for row in DATA]
    shipped = machine(data, spec, dirichlet((2, 3), 1, SCALE), dense=dense, targets=(0, 1))
    slow = SlowSampler(data, spec, alphas(1)[:2])
    check(shipped, slow, [(1, 1)], 3, Schedule(chain_rows=3, limit=limit))


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_a_cap_that_acts_at_the_end_of_the_row_is_caught(dense):
    """The oracle has power: two sweeps of one row visit an entry twice."""
    spec = SPECS["no heads, no tail"]
    shipped = machine(DATA, spec, dirichlet(COUNTS, 1, SCALE), dense=dense)
    bits = word_bits(shipped, len(DATA))
    schedule = Schedule(chain_rows=1, sweeps=2, limit=1)
    found = enumerate_rows(shipped, np.array([(1, 1, 0)], np.uint32), schedule, 1, bits)
    slow = SlowSampler(DATA, spec, alphas(1))
    assert found == slow.table([(1, 1, 0)], 1, sweeps=2, limit=1)
    assert found != slow.table([(1, 1, 0)], 1, sweeps=2, limit=0)


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_unequal_priors(dense):
    weights = ([1, 3], [2, 1, 1], [1, 1])
    spec = SPECS["one head, tail"]
    prior = Prior(tuple(np.array(w, dtype=np.uint64) for w in weights), (1, 2, 1), SCALE)
    alpha = [[Fraction(m * w, SCALE) for w in ws] for m, ws in zip((1, 2, 1), weights, strict=True)]
    slow = SlowSampler(DATA, spec, alpha, weights=weights)
    shipped = machine(DATA, spec, prior, dense=dense)
    check(shipped, slow, [(1, 1, 0)], 2, Schedule(chain_rows=2, limit=1))


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("data", [DATA, [], DATA[:1]], ids=["four rows", "no rows", "one row"])
def test_no_perturbation_and_empty_entries(data, dense):
    """alpha = 0: an empty key answers with the public distribution."""
    spec = SPECS["full conditionals"]
    shipped = machine(data, spec, dirichlet(COUNTS, 0, SCALE), dense=dense)
    slow = SlowSampler(data, spec, alphas(0))
    check(shipped, slow, [(1, 1, 0), (0, 1, 1)], 2, Schedule())


RULES = (Rule.of({0: [0], 1: [0]}), Rule.of({1: [0, 2], 2: [1]}), Rule.of({0: [1], 1: [2]}))


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("numerator", [0, 1])
def test_rules_restrict_the_draw_and_real_rows_may_break_them(spec, dense, numerator):
    shipped = machine(DATA, spec, dirichlet(COUNTS, numerator, SCALE), rules=RULES, dense=dense)
    slow = SlowSampler(DATA, spec, alphas(numerator), rules=RULES)
    check(shipped, slow, [(1, 1, 0)], 2, Schedule(chain_rows=2, limit=1))


def test_clamped_features_are_not_drawn():
    spec = SPECS["one head, tail"]
    shipped = machine(DATA, spec, dirichlet(COUNTS, 1, SCALE), targets=(1,))
    slow = SlowSampler(DATA, spec, alphas(1))
    check(shipped, slow, [(1, 1, 0), (0, 0, 0)], 2, Schedule(), targets=(1,))


@pytest.mark.parametrize("rules", [(), (Rule.of({0: [1], 1: [1]}),)], ids=["free", "rule"])
@pytest.mark.parametrize("level", [1.0, 1.5, 1.9, 2.0])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_diversity_uses_the_smallest_alpha(level, dense, rules):
    spec = SPECS["one head, tail"]
    prior = Prior(uniform_weights(COUNTS), (0, 0, 0), 4)
    levels = {1: level}
    shipped = machine(DATA, spec, prior, dense=dense, levels=levels, rules=rules)
    slow = SlowSampler(DATA, spec, alphas(0), diversity=levels, scale=4, rules=rules)
    check(shipped, slow, [(1, 0, 0), (0, 1, 1)], 2, Schedule())


def test_every_seed_row_and_every_entry_once():
    """All seed rows of the domain, so that every key of the key space is visited."""
    spec = SPECS["one head, tail"]
    shipped = machine(DATA, spec, dirichlet(COUNTS, 3, SCALE))
    slow = SlowSampler(DATA, spec, alphas(3))
    for seed in product(*(range(c) for c in COUNTS)):
        check(shipped, slow, [seed], 1, Schedule())
