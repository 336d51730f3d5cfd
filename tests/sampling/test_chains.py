"""Rows are the same on any machine, obey the rules, and have the enumerated distribution."""

import time
from collections import defaultdict
from functools import cache
from itertools import product

import numpy as np
import pytest

from pegsynth.auditing.exact_laws import enumerate_rows, word_bits
from pegsynth.errors import ParameterError, SchemaError
from pegsynth.kernels.gibbs import WORD, Scratch, needed_tables, run_chains, sweep_chains
from pegsynth.mechanisms import rule_tables
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import CHUNK_ROWS, Machine, Schedule, Visits, sample_rows
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import Prior, dirichlet, diverse, uniform_weights
from pegsynth.methods.seed_rows import FilePool, WeightedPool
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from significance import outcomes_fit

COUNTS = (3, 70, 2, 5)
SPEC = HashSpec(("a", "b", "c", "d"), COUNTS, ((3,), (0, 2), (1,), (1, 0)), 2)
GENERATOR = np.random.default_rng(11)
DATA = (GENERATOR.random((3000, 4)) ** 2 * COUNTS).astype(np.uint8)
RULES = (
    Rule.of({0: [0], 1: range(40)}),
    Rule.of({2: [1], 3: [0, 1]}),
    Rule.of({0: [2], 2: [0], 3: [3, 4]}),
)
PEGS = Schedule()
PEGS_RS = Schedule(chain_rows=10, limit=1)


def machine(*, spec=SPEC, data=DATA, prior=None, rules=(), dense=True, levels=None):
    prior = prior or dirichlet(spec.category_counts, 1 << 19)
    blocks = disintegrate([data], spec, most_dense_cells=None if dense else 0)
    tables = diverse(blocks, prior, levels, rules) if levels else prior.tables
    targets = np.arange(len(spec.names), dtype=np.int64)
    rule_arrays = rule_tables(rules, spec.category_counts)
    return Machine(spec.tables, blocks.tables, tables, rule_arrays, targets)


def pool(own):
    """Every category equally likely: weights of 1, cumulated feature by feature."""
    running = np.concatenate([np.arange(1, n + 1) for n in np.diff(own.keys.category_start)])
    return WeightedPool(own.keys.category_start, running.astype(np.uint64), own.rules)


def sample(own, schedule, rows, *, seed: int | None = 1, threads=1, seeds=None):
    stream = RandomStream(seed)
    chunks = list(sample_rows(own, seeds or pool(own), schedule, rows, stream, threads=threads))
    whole = np.concatenate([*chunks, np.empty((0, own.features), dtype=np.uint32)])
    assert whole.shape == (rows, own.features)
    return whole


# The same rows, however they are computed


@pytest.mark.parametrize("rules", [(), RULES], ids=["free", "rules"])
@pytest.mark.parametrize("schedule", [PEGS, PEGS_RS], ids=["pegs", "pegs-rs"])
def test_rows_do_not_depend_on_threads_or_on_how_blocks_are_kept(schedule, rules):
    rows = 3 * CHUNK_ROWS + 7
    dense, sparse = (machine(rules=rules, dense=kept) for kept in (True, False))
    expected = sample(dense, schedule, rows)
    for threads in (2, 3):
        assert np.array_equal(sample(dense, schedule, rows, threads=threads), expected)
    for threads in (1, 3):
        assert np.array_equal(sample(sparse, schedule, rows, threads=threads), expected)
    assert not np.array_equal(sample(dense, schedule, rows, seed=2), expected)


@pytest.mark.parametrize("rules", [(), RULES[1:]], ids=["free", "rules"])
def test_diverse_rows_do_not_depend_on_how_blocks_are_kept(rules):
    prior = Prior(uniform_weights(COUNTS), (0,) * 4)
    both = [
        sample(machine(prior=prior, rules=rules, dense=dense, levels={1: 9.0, 3: 2.5}), PEGS, 5000)
        for dense in (True, False)
    ]
    assert np.array_equal(*both)


@pytest.mark.parametrize(
    ("schedule", "rows"),
    [
        (PEGS, CHUNK_ROWS - 1),
        (PEGS, CHUNK_ROWS),
        (PEGS, CHUNK_ROWS + 1),
        (PEGS, 1),
        (PEGS, 0),
        (PEGS_RS, PEGS_RS.chunk_rows - 1),
        (PEGS_RS, PEGS_RS.chunk_rows),
        (PEGS_RS, PEGS_RS.chunk_rows + 1),
        (PEGS_RS, 37),
        (PEGS_RS, 3),
    ],
)
def test_any_number_of_rows_comes_out_in_whole(schedule, rows):
    own = machine()
    assert schedule.chunk_rows % schedule.chain_rows == 0
    expected = sample(own, schedule, rows)
    assert np.array_equal(sample(own, schedule, rows, threads=2), expected)
    assert (expected < np.array(COUNTS)).all()


def test_chunks_do_not_repeat_each_other():
    rows = sample(machine(), PEGS, 2 * CHUNK_ROWS)
    assert not np.array_equal(rows[:CHUNK_ROWS], rows[CHUNK_ROWS:])


def test_a_second_release_of_one_stream_differs():
    own, stream = machine(), RandomStream(1)
    first, second = (
        np.concatenate(list(sample_rows(own, pool(own), PEGS, 100, stream))) for _ in range(2)
    )
    assert not np.array_equal(first, second)


def run(own, schedule, seeds, count, pieces):
    """Run one chunk with its words handed over in pieces."""
    rows = np.empty((count, own.features), dtype=np.uint32)
    state = np.zeros(4, dtype=np.int64)
    visits = np.zeros(own.entry_count, dtype=np.uint32)
    used = 0
    for piece in pieces:
        done = run_chains(seeds, rows, state, own.swept(schedule), visits, 0, piece, np.uint64(64))
        used += int(state[WORD])
        if done:
            return rows, visits, used
    raise AssertionError("the words did not last")


@pytest.mark.parametrize("rules", [(), RULES], ids=["free", "rules"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "schedule", [PEGS, PEGS_RS, Schedule(sweeps=3), Schedule(chain_rows=4, sweeps=2, limit=2)]
)
def test_a_run_that_is_resumed_gives_the_same_rows(schedule, dense, rules):
    # Totals beyond 2**61 reject a good share of the words.
    prior = dirichlet(COUNTS, (1 << 55) - 12345)
    own = machine(prior=prior, rules=rules, dense=dense)
    count = 41
    chains = -(-count // schedule.chain_rows)
    words = RandomStream(9).substream(0).take(8 * count * schedule.sweeps * 4)
    seeds = pool(own).draw(chains, RandomStream(9).substream(1).take)
    expected = run(own, schedule, seeds, count, [words])
    for size in (1, 3, 50):
        pieces = [words[start : start + size] for start in range(0, len(words), size)]
        found = run(own, schedule, seeds, count, pieces)
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])
        assert found[2] == expected[2]


@pytest.mark.parametrize("sweeps", [1, 3])
def test_what_is_left_out_of_a_plain_sweep_is_not_missed(sweeps):
    """The general code, compiled with rules and counters, draws the same rows."""
    own = machine()
    assert needed(own, Schedule(sweeps=sweeps)) == (None, None)
    words = RandomStream(9).substream(0).take(20_000)
    seeds = pool(own).draw(300, RandomStream(9).substream(1).take)
    plain, _, used = run(own, Schedule(sweeps=sweeps), seeds, 300, [words])
    rows, state = np.empty_like(plain), np.zeros(4, dtype=np.int64)
    visits, tables = np.zeros(own.entry_count, dtype=np.uint32), own.swept(Schedule(sweeps=sweeps))
    bits, scratch = np.uint64(64), Scratch.of(own.keys)
    assert sweep_chains(seeds, rows, state, tables, own.rules, visits, 0, words, bits, scratch)
    assert np.array_equal(rows, plain)
    assert int(state[WORD]) == used


def needed(own, schedule):
    return needed_tables(own.swept(schedule), np.zeros(1, dtype=np.uint32))


def test_rules_and_counters_are_left_out_only_where_no_target_needs_them():
    assert needed(machine(dense=False), PEGS).visits is not None
    assert needed(machine(), PEGS_RS).visits is not None
    ruled = needed(machine(rules=RULES), PEGS)
    assert ruled.rules is not None
    assert ruled.visits is not None
    assert needed(machine(), PEGS_RS).rules is None


def test_visit_counters_start_over_before_they_overflow():
    visits = Visits(3)
    visits.counts[:] = 7
    first = visits.open(1000, 1)
    assert (first, visits.open(5, 2)) == (0, 1000)
    visits._epoch = (1 << 32) - 4
    visits.counts[:] = 7
    assert visits.open(4, 1) == 0
    assert not visits.counts.any()


@pytest.mark.parametrize("options", [{"chain_rows": 0}, {"sweeps": 0}, {"limit": -1}])
def test_schedules_out_of_range(options):
    with pytest.raises(ParameterError):
        Schedule(**options)


# Rules and seed rows


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("schedule", [PEGS, PEGS_RS], ids=["pegs", "pegs-rs"])
def test_no_row_breaks_a_rule(schedule, dense):
    """50,000 rows per case; the data themselves break every rule."""
    rows = sample(machine(rules=RULES, dense=dense), schedule, 50_000, seed=None)
    for rule in RULES:
        assert rule.broken_by(DATA).any()
        assert not rule.broken_by(rows).any()


def test_without_the_rules_the_same_check_finds_broken_rows():
    rows = sample(machine(), PEGS, 50_000, seed=None)
    assert all(rule.broken_by(rows).any() for rule in RULES)


def test_a_file_pool_hands_out_its_own_rows_only():
    rows = np.array([[0, 69, 0, 4], [1, 3, 1, 2], [2, 0, 0, 0]], dtype=np.uint32)
    drawn = FilePool(rows).draw(5000, RandomStream(3).substream().take)
    assert {tuple(row) for row in drawn.tolist()} == {tuple(row) for row in rows.tolist()}
    one = FilePool(rows[1:2]).draw(10, RandomStream(3).substream().take)
    assert (one == rows[1]).all()


def test_chains_start_from_the_pool():
    """With nothing to draw every row is a seed row."""
    own = machine()
    idle = Machine(own.keys, own.entries, own.prior, own.rules, np.empty(0, dtype=np.int64))
    rows = np.array([[0, 69, 0, 4], [1, 3, 1, 2]], dtype=np.uint32)
    found = sample(idle, PEGS_RS, 200, seeds=FilePool(rows))
    assert {tuple(row) for row in found.tolist()} == {tuple(row) for row in rows.tolist()}
    assert (found.reshape(20, 10, 4) == found[::10, None]).all()


def test_an_empty_file_pool_is_refused():
    with pytest.raises(ParameterError, match="seed pool"):
        FilePool(np.empty((0, 4), dtype=np.uint32))


def test_a_weighted_pool_obeys_the_rules():
    rows = pool(machine(rules=RULES)).draw(20_000, RandomStream(4).substream().take)
    assert not any(rule.broken_by(rows).any() for rule in RULES)
    free = pool(machine()).draw(20_000, RandomStream(4).substream().take)
    assert all(rule.broken_by(free).any() for rule in RULES)


IMPOSSIBLE = (Rule.of({2: [0]}), Rule.of({2: [1]}))


@pytest.mark.parametrize("count", [1, 100, CHUNK_ROWS])
def test_a_weighted_pool_gives_up_on_rules_that_no_row_obeys(count):
    impossible = pool(machine(rules=IMPOSSIBLE))
    words = RandomStream(4).substream().take
    with pytest.raises(SchemaError, match="--seed-pool"):
        impossible.draw(1, words)
    start = time.perf_counter()
    with pytest.raises(SchemaError, match="--seed-pool"):
        impossible.draw(count, words)
    assert time.perf_counter() - start < 5


def test_many_features_whose_weights_reject_many_words_still_give_a_seed_row():
    """A total of 2**64 / 5 rejects every fifth word, more than a fixed reserve makes up."""
    features, total = 600, 2**64 // 5 + 1
    category_start = 2 * np.arange(features + 1, dtype=np.int64)
    running = np.tile(np.array([total // 2, total], dtype=np.uint64), features)
    large = WeightedPool(category_start, running, rule_tables((), (2,) * features))
    words, calls = RandomStream(6).substream(), iter(range(200))

    def limited(count):
        next(calls)
        return words.take(count)

    rows = large.draw(1, limited)
    assert 200 < rows.sum() < 400


# Distribution


SMALL = HashSpec(("a", "b", "c"), (2, 3, 2), ((1,), (2,), (0,)), 1)
SMALL_DATA = np.array([(0, 0, 0), (0, 2, 1), (1, 2, 1), (1, 2, 0)], dtype=np.uint8)
SMALL_RULES = (Rule.of({0: [1], 1: [2]}),)
CASES = {
    "pegs": (PEGS, ()),
    "pegs-rs": (Schedule(chain_rows=2, limit=1), ()),
    "rules": (Schedule(chain_rows=2, limit=1), SMALL_RULES),
}


def small(numerator, rules, dense):
    prior = dirichlet(SMALL.category_counts, numerator, 2)
    return machine(spec=SMALL, data=SMALL_DATA, prior=prior, rules=rules, dense=dense)


@cache
def exact(case):
    """Distribution of one chain from a uniform valid seed row."""
    schedule, rules = CASES[case]
    own = small(1, rules, dense=True)
    seeds = np.array(list(product(*map(range, SMALL.category_counts))), dtype=np.uint32)
    broken = np.any([rule.broken_by(seeds) for rule in rules] or [[False] * 12], axis=0)
    valid = seeds[~broken]
    share = defaultdict(float)
    bits = word_bits(own, len(SMALL_DATA))
    for seed in valid:
        found = enumerate_rows(own, seed[None], schedule, schedule.chain_rows, bits)
        for table, probability in found.items():
            share[table] += float(probability) / len(valid)
    return dict(share)


def chains(own, schedule, count):
    rows = sample(own, schedule, count * schedule.chain_rows, seed=None)
    grouped = rows.reshape(count, schedule.chain_rows, -1).tolist()
    return [tuple(map(tuple, chain)) for chain in grouped]


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", CASES)
def test_64_bit_sampling_has_the_enumerated_distribution(case, dense):
    """False alarms: ALPHA in each case. The twin draws with twice the virtual rows."""
    schedule, rules = CASES[case]
    assert outcomes_fit(chains(small(1, rules, dense), schedule, 40_000), exact(case))
    assert not outcomes_fit(chains(small(2, rules, dense), schedule, 40_000), exact(case))


def test_a_reset_that_is_forgotten_is_rejected_by_the_same_check():
    forgotten = Schedule(chain_rows=2, limit=0)
    assert not outcomes_fit(chains(small(1, (), True), forgotten, 40_000), exact("pegs-rs"))


WEIGHTS = ([1, 3], [2, 5, 1], [1, 1])


def drawn_seeds(weights, rules):
    running = np.concatenate([np.cumsum(w) for w in weights]).astype(np.uint64)
    own = WeightedPool(SMALL.tables.category_start, running, rule_tables(rules, (2, 3, 2)))
    rows = own.draw(40_000, RandomStream().substream().take)
    return [tuple(row) for row in rows.tolist()]


@pytest.mark.parametrize("rules", [(), SMALL_RULES], ids=["free", "rules"])
def test_seed_rows_follow_their_weights(rules):
    """False alarms: ALPHA in each case. The twin forgets the weights of one feature."""
    shares = {}
    for row in product(*map(range, SMALL.category_counts)):
        if not any(rule.broken_by(np.array([row])).any() for rule in rules):
            shares[row] = np.prod([w[code] for w, code in zip(WEIGHTS, row, strict=True)])
    expected = {row: share / sum(shares.values()) for row, share in shares.items()}
    assert outcomes_fit(drawn_seeds(WEIGHTS, rules), expected)
    assert not outcomes_fit(drawn_seeds((*WEIGHTS[:2], [1, 2]), rules), expected)


def test_seed_rows_of_a_file_are_equally_likely():
    """False alarms: ALPHA. The twin holds one row twice."""
    rows = np.arange(21, dtype=np.uint32).reshape(7, 3)
    expected = {tuple(row): 1 / 7 for row in rows.tolist()}

    def draw(own):
        return map(tuple, FilePool(own).draw(20_000, RandomStream().substream().take).tolist())

    assert outcomes_fit(draw(rows), expected)
    assert not outcomes_fit(draw(np.concatenate([rows, rows[:1]])), expected)
