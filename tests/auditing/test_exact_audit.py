"""The exact audit passes on the shipped code, and catches every broken twin.

Exact: probabilities are fractions, so a failure here is a defect and never chance.
Cites R1-R6, R10, R12-R15 and R18, whose claims are what is audited.
"""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from lanes import long_form
from oracle import SlowSampler, slow_key, worst_loss
from pegsynth.auditing.cases import SCALE, all_cases, case, tiny_schema
from pegsynth.auditing.divergence import Loss, all_rows, all_tables, divergence
from pegsynth.auditing.level_cases import noise_ratio, private_case, worst_path
from pegsynth.codec.pair_counts import count_pairs
from pegsynth.methods.gibbs.chains import Schedule
from pegsynth.methods.gibbs.order import heads_by_score
from pegsynth.methods.gibbs.samplers import prepare
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.privacy import Ledger, NoisyCounts, PegsDraws, UnitBound

CASES = {each.name: each for each in all_cases()}
QUICK = [
    "one row",
    "hashed key, two tail bits",
    "rule that a real row breaks",
    "two rows per unit",
    "detail given its parent",
    "block of 2",
    "block, rule",
    "cap 1",
    "cap 2, rule",
    "cap 3 over 2 chains",
]


def loss_of(each, **changes):
    unit = each.schema.rows_per_unit if each.schema.unit else 1
    return worst_loss(
        each.distribution,
        each.schema.category_counts,
        changes.get("most_rows", each.most_rows),
        rows_per_unit=changes.get("rows_per_unit", unit),
    )


def holds(loss, ledger):
    guarantee = ledger.guarantee
    return loss.within(guarantee.epsilon, guarantee.rho)


@pytest.mark.parametrize("name", QUICK)
def test_the_shipped_code_keeps_its_claim(name):
    each = CASES[name]
    assert holds(loss_of(each), each.claim)


@long_form
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CASES) - set(QUICK)))
def test_the_shipped_code_keeps_its_claim_in_longer_cases(name):
    each = CASES[name]
    assert holds(loss_of(each), each.claim)


@long_form
@pytest.mark.slow(seconds=50)
def test_marginals_order_and_draws_together_keep_their_total():
    each = private_case()
    loss = worst_path(each)
    assert 0 < loss.epsilon <= each.claim.guarantee.epsilon


def test_two_outputs_with_different_support_are_infinitely_far_apart():
    half = Fraction(1, 2)
    assert divergence({0: half, 1: half}, {0: Fraction(1)}).epsilon == math.inf
    assert divergence({0: half, 1: half}, {0: half, 1: half}) == Loss(0.0, 0.0)


# Broken twins. Each takes the claim of a sound release and breaks what is drawn.


def test_alpha_rounded_down_is_caught():
    sound = CASES["one row"]
    broken = replace(sound, plan=replace(sound.plan, numerator=sound.plan.numerator - 1))
    assert not holds(loss_of(broken), sound.claim)


def test_a_cap_off_by_one_is_caught():
    sound = case("cap 1", rows=2, method="pegs-capped", visits=1, chains=1, heads=0, most_rows=1)
    more = replace(sound.plan, options=replace(sound.plan.options, visits=2))
    assert not holds(loss_of(replace(sound, plan=more)), sound.claim)


class Twin:
    """A case whose sampler is replaced, for one seed row."""

    def __init__(self, sound, distribution):
        self.sound, self._distribution = sound, distribution

    def loss(self, most_rows=1, **changes):
        counts = self.sound.schema.category_counts
        return worst_loss(self._distribution, counts, most_rows, **changes)


def enumerated(each, schedule, rows, seed=(0, 0)):
    def distribution(table):
        machine = prepare(each.schema, each.fitted(table), each.plan).machine
        return each._enumerated(machine, schedule, rows, (seed,))

    return distribution


def test_a_forgotten_reset_is_caught():
    sound = case("block", rows=2, heads=0, method="pegs-rs", block_size=2)
    assert not holds(Twin(sound, enumerated(sound, Schedule(2, 1, 0), 2)).loss(), sound.claim)
    assert holds(Twin(sound, enumerated(sound, Schedule(2, 1, 1), 2)).loss(), sound.claim)


class LateReset(SlowSampler):
    """Counts a visit only when the row, here two sweeps, is complete."""

    def trace(self, seed, rows_per_reset, rows):
        out = Counter()

        def go(step, row, shown, used, fresh, mass):
            if step == rows * len(seed):
                out[shown] += mass
                return
            target = step % len(seed)
            if step % (rows_per_reset * len(seed)) == 0:
                used, fresh = used | fresh, frozenset()
            entry = (target, slow_key(self.spec, target, row))
            for code, share in self.conditional(target, row, exhausted=entry in used).items():
                after = (*row[:target], code, *row[target + 1 :])
                go(step + 1, after, (*shown, code), used, fresh | {entry}, mass * share)

        go(0, tuple(seed), (), frozenset(), frozenset(), Fraction(1))
        return dict(out)


@pytest.mark.parametrize(("rows_per_reset", "sound_one"), [(1, True), (2, False)])
def test_a_reset_at_the_end_of_the_row_is_caught(rows_per_reset, sound_one):
    """R5's proof covers the full trace, hidden sweeps included, so the trace is audited.

    With one sweep per row, a reset at the end of the row is a reset at the visit.
    """
    each = case("block", rows=1, sweeps=2, heads=0, method="pegs-rs", block_size=1)
    spec = HashSpec(each.schema.names, (2, 2), ((), ()), 0)
    alpha = [[Fraction(each.plan.numerator, SCALE)] * 2] * 2

    def distribution(table):
        return LateReset(table, spec, alpha).trace((0, 0), rows_per_reset, 2)

    assert holds(Twin(each, distribution).loss(), each.claim) == sound_one


class EmptyApart(SlowSampler):
    """Answers an empty entry with the first category instead of the virtual rows."""

    def conditional(self, target, row, *, exhausted=False):
        key = slow_key(self.spec, target, row)
        if not exhausted and key not in self.counts[target]:
            return {0: Fraction(9, 10), 1: Fraction(1, 10)}
        return super().conditional(target, row, exhausted=exhausted)


class UnequalPublic(SlowSampler):
    """After the cap answers uniformly while its prior is not uniform; counts seen entries only."""

    def conditional(self, target, row, *, exhausted=False):
        if exhausted and slow_key(self.spec, target, row) in self.counts[target]:
            return {0: Fraction(1, 2), 1: Fraction(1, 2)}
        return super().conditional(target, row)


@pytest.mark.parametrize("sampler", [EmptyApart, UnequalPublic])
def test_empty_entries_answered_apart_or_visits_to_them_not_counted_are_caught(sampler):
    sound = case("cap", rows=4, heads=0, method="pegs-capped", visits=1, chains=1)
    spec = HashSpec(sound.schema.names, (2, 2), ((), ()), 0)
    low, high = Fraction(sound.plan.numerator, SCALE), Fraction(8 * sound.plan.numerator, SCALE)
    weights = [[1, 8], [1, 8]]

    def of(kind):
        def distribution(table):
            chosen = kind(table, spec, [[low, high]] * 2, weights=weights)
            return chosen.table([(0, 0)], 4, chain_rows=4, limit=1)

        return Twin(sound, distribution).loss(most_rows=0)

    assert holds(of(SlowSampler), sound.claim)
    assert not holds(of(sampler), sound.claim)


def test_racing_or_lost_counters_are_caught():
    """Two chains, or two loads of one model, that each spend the whole cap."""
    sound = case("cap 2", rows=4, method="pegs-capped", visits=2, chains=2, heads=0)
    one = enumerated(sound, Schedule(2, 1, 2), 2)

    def twice(table):
        first = one(table)
        return {(a, b): p * q for a, p in first.items() for b, q in first.items()}

    assert not holds(Twin(sound, twice).loss(), sound.claim)


def test_a_fresh_hash_for_every_dataset_under_one_cap_is_caught():
    sound = case(
        "cap 1", (2, 2), rows=1, datasets=2, method="pegs-capped", visits=1, chains=1, heads=0
    )

    def hashed(heads):
        def distribution(table):
            machine = prepare(sound.schema, sound.fitted(table, heads), sound.plan).machine
            return sound._enumerated(machine, Schedule(1, 1, 1), 1, ((0, 0),))

        return distribution

    def both(table):
        first, second = hashed(((), ()))(table), hashed(((1,), (0,)))(table)
        return {(a, b): p * q for a, p in first.items() for b, q in second.items()}

    assert not holds(Twin(sound, both).loss(), sound.claim)


def test_blocks_rounded_down_are_caught():
    sound = case("a last block", rows=3, method="pegs-rs", block_size=2, heads=0)
    floored = Ledger((sound.plan.draws.__class__(**_fields(sound.plan.draws, rows=2)),))
    loss = Twin(sound, enumerated_blocks(sound)).loss()
    assert holds(loss, sound.claim)
    assert not holds(loss, floored)


def enumerated_blocks(each):
    def distribution(table):
        machine = prepare(each.schema, each.fitted(table), each.plan).machine
        return each._enumerated(machine, Schedule(2, 1, 1), 3, ((0, 0), (0, 0)))

    return distribution


def _fields(event, **changes):
    return {name: getattr(event, name) for name in event.__struct_fields__} | changes


def test_one_feature_forgotten_is_caught():
    sound = case("no heads", rows=1, heads=0)
    forgotten = Ledger((PegsDraws(**_fields(sound.plan.draws, features=1)),))
    loss = loss_of(sound)
    assert holds(loss, sound.claim)
    assert not holds(loss, forgotten)


def test_a_price_per_row_reported_as_the_total_is_caught():
    sound = case("two rows", rows=2, heads=0)
    per_row = Ledger((PegsDraws(**_fields(sound.plan.draws, rows=1)),))
    loss = loss_of(sound, most_rows=1)
    assert holds(loss, sound.claim)
    assert not holds(loss, per_row)


def test_a_unit_of_two_rows_counted_once_is_caught():
    sound = case("unit", rows=1, heads=0, unit=2, most_rows=1)
    once = Ledger((UnitBound(rows_per_unit=1), sound.plan.draws))
    loss = loss_of(sound)
    assert holds(loss, sound.claim)
    assert not holds(loss, once)


def test_an_order_from_the_data_called_private_is_caught():
    """Heads are shown by `inspect`, so they are part of the output."""
    sound = case("order", (2, 2, 2), rows=1, heads=1)

    def distribution(table):
        codes = np.array(table, dtype=np.uint8).reshape(-1, 3)
        scores = count_pairs([codes], (2, 2, 2)).mutual_information()
        heads = heads_by_score(scores, 1)
        machine = prepare(sound.schema, sound.fitted(table, heads), sound.plan).machine
        found = sound._enumerated(machine, Schedule(), 1, ((0, 0, 0),))
        return {(heads, outcome): share for outcome, share in found.items()}

    assert Twin(sound, distribution).loss(most_rows=1).epsilon == math.inf


def test_a_seed_pool_from_the_data_is_caught():
    """`trace` shows the seed row, so it is part of the output."""
    sound = case("seeds", rows=1)

    def distribution(table):
        machine = prepare(sound.schema, sound.fitted(table), sound.plan).machine
        starts = table or ((0, 0),)
        mixed = Counter()
        for seed in starts:
            found = sound._enumerated(machine, Schedule(), 1, (seed,))
            for outcome, share in found.items():
                mixed[outcome] += share / len(starts)
        return dict(mixed)

    assert Twin(sound, distribution).loss(most_rows=1).epsilon == math.inf


@pytest.mark.parametrize(("factor", "sound_one"), [(1.0, True), (0.7, False)])
def test_noise_of_a_smaller_scale_is_caught(factor, sound_one):
    counts = (2, 2, 2)
    claimed = NoisyCounts.laplace(2.0, cells=3, purpose="marginals")
    drawn = NoisyCounts.laplace(2.0 * factor, cells=3, purpose="marginals")

    def one_way(table):
        lines = [np.zeros(count, dtype=np.int64) for count in counts]
        for row in table:
            for feature, code in enumerate(row):
                lines[feature][code] += 1
        return lines

    worst = max(
        abs(noise_ratio(drawn, one_way(t), one_way((*t, row)), [n + 5 for n in one_way(t)]))
        for t in all_tables(counts, 1)
        for row in all_rows(counts)
    )
    assert (worst <= Ledger((claimed,)).guarantee.epsilon * (1 + 1e-12)) == sound_one


def test_private_choices_with_a_larger_epsilon_are_caught():
    """The scores of three tiny features move together, so only a gross error shows (R10)."""
    from pegsynth.auditing.level_cases import choice_probability
    from pegsynth.privacy import Selection

    counts = (2, 2, 2)
    claimed = Selection.of(1.0, count=3, purpose="order")
    drawn = Selection.of(8.0, count=3, purpose="order")
    noisy = [np.array([4, 4])] * 3
    heads = ((1,), (2,), (0,))

    def worst(event):
        return max(
            abs(
                math.log(
                    choice_probability(event, t, counts, noisy, heads)
                    / choice_probability(event, (*t, row), counts, noisy, heads)
                )
            )
            for t in all_tables(counts, 2)
            for row in all_rows(counts)
        )

    claim = Ledger((claimed,)).guarantee.epsilon
    assert worst(claimed) <= claim
    assert worst(drawn) > claim


def test_tiny_schemas_are_reviewed_and_have_no_unit_unless_asked():
    assert tiny_schema((2, 2)).reviewed
    assert tiny_schema((2, 2), unit=3).rows_per_unit == 3
