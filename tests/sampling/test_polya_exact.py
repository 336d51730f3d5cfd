"""Polya visits (R17): the kernel against a slow twin, and against what R17 says they cost."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from oracle import SlowSampler, forbidden, slow_key, worst_loss
from pegsynth.auditing.cases import RULES, SCALE, case
from pegsynth.auditing.exact_laws import enumerate_rows, word_bits
from pegsynth.errors import ParameterError
from pegsynth.mechanisms import rule_tables
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import Machine, Schedule, Urns, new_urns, sample_polya
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import Prior
from pegsynth.methods.seed_rows import WeightedPool
from pegsynth.random import RandomStream
from pegsynth.schema import Rule

COUNTS = (2, 3)
DATA = [(0, 0), (0, 2), (1, 2)]
WEIGHTS = ([1, 2], [1, 1, 3])
NUMERATORS = (2, 1)


class SlowUrn(SlowSampler):
    """The definition, row by row: a value that was drawn counts as one row more."""

    def chain(self, seed, rows, limit):
        out = Counter()
        steps = [target for _ in range(rows) for target in range(len(seed))]

        def answers(target, row, urn):
            counts = self.counts[target].get(slow_key(self.spec, target, row), Counter())
            inside = Counter(urn)
            weights = {
                j: counts[j] + self.alpha[target][j] + inside[j]
                for j in range(self.spec.category_counts[target])
            }
            total = sum(weights.values())
            return {j: w / total for j, w in weights.items()}

        def go(step, row, shown, urns, mass):
            if step == len(steps):
                out[shown] += mass
                return
            target = steps[step]
            entry = (target, slow_key(self.spec, target, row))
            urn = urns.get(entry, ())
            spent = len(urn) >= limit
            found = (
                self.conditional(target, row, exhausted=True)
                if spent
                else answers(target, row, urn)
            )
            for code, share in found.items():
                after = urns if spent else urns | {entry: (*urn, code)}
                if forbidden(self.rules, target, row, code):
                    go(step, row, shown, after, mass * share)
                    continue
                moved = (*row[:target], code, *row[target + 1 :])
                table = (*shown, moved) if target == len(seed) - 1 else shown
                go(step + 1, moved, table, after, mass * share)

        go(0, tuple(seed), (), {}, Fraction(1))
        return {table: share for table, share in out.items() if share}


def machine(spec, rules):
    blocks = disintegrate([np.array(DATA, dtype=np.uint8)], spec)
    weights = tuple(np.array(line, dtype=np.uint64) for line in WEIGHTS)
    prior = Prior(weights, NUMERATORS, SCALE)
    targets = np.arange(2, dtype=np.int64)
    return Machine(spec.tables, blocks.tables, prior.tables, rule_tables(rules, COUNTS), targets)


@pytest.mark.parametrize("rules", [(), (Rule.of({0: [0], 1: [2]}),)], ids=["free", "rule"])
@pytest.mark.parametrize("heads", [((), ()), ((1,), (0,))], ids=["no heads", "heads"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_kernel_gives_exactly_the_urn_of_the_definition(limit, heads, rules):
    spec = HashSpec(("a", "b"), COUNTS, heads, 0)
    shipped = machine(spec, rules)
    alpha = [
        [Fraction(m * w, SCALE) for w in line] for m, line in zip(NUMERATORS, WEIGHTS, strict=True)
    ]
    slow = SlowUrn(DATA, spec, alpha, rules=rules, weights=WEIGHTS)
    seed = (1, 0)
    found = enumerate_rows(
        shipped,
        np.array([seed], np.uint32),
        Schedule(2, 1, limit),
        2,
        word_bits(shipped, len(DATA) + limit),
        urn=True,
    )
    assert sum(found.values()) == 1
    assert found == slow.chain(seed, 2, limit)


def test_rejected_draws_keep_the_price_of_the_urn():
    """Rules are kept by rejecting; the price stays M log(1 + T/a) (R17, R18)."""
    rules = (Rule.of({0: [0], 1: [1]}),)
    spec = HashSpec(("a", "b"), (2, 3), ((), ()), 0)
    alpha = [[Fraction(1)] * 2, [Fraction(1)] * 3]

    def distribution(table):
        return SlowUrn(table, spec, alpha, rules=rules).chain((0, 0), 3, 3)

    assert worst_loss(distribution, (2, 3), 1).epsilon <= 2 * math.log(1 + 3)


def test_an_urn_that_forgets_to_add_back_costs_more_than_it_says():
    """Visits without putting back cost T eta; the urn's price is below that (R17)."""
    urn = case("urn", (6,), epsilon=2.6, rows=3, method="pegs-capped", visits=3, urn=True, heads=0)
    guarantee = urn.claim.guarantee
    sound = worst_loss(urn.distribution, (6,), 1)
    forgetful = worst_loss(lambda table: _without_urn(urn, table), (6,), 1)
    assert sound.epsilon <= guarantee.epsilon < forgetful.epsilon


def _without_urn(each, table):
    spec = HashSpec(each.schema.names, (6,), ((),), 0)
    alpha = [[Fraction(each.plan.numerator, SCALE)] * 6]
    return SlowSampler(table, spec, alpha).table([(0,)], 3, chain_rows=3, limit=3)


def test_urns_run_on_and_stop_at_their_cap():
    rules = rule_tables(RULES, (2, 2))
    spec = HashSpec(("a", "b"), (2, 2), ((1,), (0,)), 1)
    blocks = disintegrate([np.array([[0, 0], [1, 1]], dtype=np.uint8)], spec)
    prior = Prior(tuple(np.ones(2, dtype=np.uint64) for _ in range(2)), (1, 1), 4)
    ready = Machine(spec.tables, blocks.tables, prior.tables, rules, np.arange(2))
    pool = WeightedPool(spec.tables.category_start, prior.tables.weight_cumulative, rules)
    urns = new_urns(ready, 5)
    first = np.concatenate(list(sample_polya(ready, pool, 100, urns, RandomStream(1))))
    before = urns.drawn.copy()
    again = np.concatenate(list(sample_polya(ready, pool, 20_000, urns, RandomStream(2))))
    assert urns.visits.max() == 5
    kept = np.arange(5) < 1
    assert np.array_equal(urns.drawn[:, kept][urns.visits > 0], before[:, kept][urns.visits > 0])
    rows = np.concatenate([first, again])
    assert not ((rows[:, 0] == 0) & (rows[:, 1] == 1)).any()
    same = Urns(np.zeros_like(urns.visits), np.zeros_like(urns.drawn))
    repeat = np.concatenate(list(sample_polya(ready, pool, 100, same, RandomStream(1))))
    assert np.array_equal(first, repeat)


def test_sparse_blocks_have_no_urns():
    spec = HashSpec(("a", "b"), (2, 2), ((1,), (0,)), 1)
    blocks = disintegrate([np.zeros((1, 2), np.uint8)], spec, most_dense_cells=0)
    prior = Prior(tuple(np.ones(2, dtype=np.uint64) for _ in range(2)), (1, 1), 4)
    ready = Machine(spec.tables, blocks.tables, prior.tables, rule_tables((), (2, 2)), np.arange(2))
    with pytest.raises(ParameterError, match="tabulated"):
        new_urns(ready, 3)
