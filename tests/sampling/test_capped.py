"""A visit cap for the whole release: who owns visits, who counts them, what follows (R5)."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import slow_key
from pegsynth.errors import ParameterError
from pegsynth.mechanisms import rule_tables
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import (
    CHUNK_ROWS,
    Machine,
    chain_limits,
    new_counters,
    sample_capped,
)
from pegsynth.methods.gibbs.samplers import trace_row
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import Prior
from pegsynth.methods.seed_rows import FilePool
from pegsynth.random import RandomStream
from significance import outcomes_fit

COUNTS = (3, 4, 2)
SPEC = HashSpec(("a", "b", "c"), COUNTS, ((1,), (2,), (0,)), 1)
DATA = (np.random.default_rng(3).random((60, 3)) ** 2 * COUNTS).astype(np.uint8)
WEIGHTS = ([1, 2, 3], [4, 1, 1, 2], [1, 5])
SEED_ROW = FilePool(np.array([[2, 3, 1]], dtype=np.uint32))


def machine(*, dense=True, data=DATA, numerator=1):
    prior = Prior(tuple(np.array(w, dtype=np.uint64) for w in WEIGHTS), (numerator,) * 3, 1 << 20)
    blocks = disintegrate([data], SPEC, most_dense_cells=None if dense else 0)
    targets = np.arange(3, dtype=np.int64)
    return Machine(SPEC.tables, blocks.tables, prior.tables, rule_tables((), COUNTS), targets)


def sample(own, rows, counters, visits, *, seed: int | None = 1, sweeps=1, threads=1):
    chunks = sample_capped(
        own, SEED_ROW, rows, counters, visits, RandomStream(seed), sweeps=sweeps, threads=threads
    )
    return list(chunks)


def slow_visits(rows):
    """Replay one chain from the seed row: which entry every draw asked."""
    seen: Counter = Counter()
    row = SEED_ROW.rows[0].tolist()
    for after in rows.tolist():
        for target in range(3):
            seen[target, slow_key(SPEC, target, row)] += 1
            row[target] = after[target]
    return seen


def entry_numbers(own, dense):
    """The counter of every (target, key), by the definition of a key."""
    numbers = {}
    for target, (head,) in enumerate(SPEC.heads):
        base = int(own.entries.entry_base[target])
        for value, tail in product(range(COUNTS[head]), range(2)):
            key = 2 * value + tail
            if not dense:
                first, last = own.entries.key_base[target : target + 2]
                seen = own.entries.keys[first:last].tolist()
                if key not in seen:
                    continue
                key = seen.index(key)
            numbers[target, ((value,), tail)] = base + key
    return numbers


# Who owns how many visits


@given(st.integers(1, 10**6), st.integers(1, 200))
def test_the_chains_own_all_visits_and_no_more(visits, chains):
    if chains > visits:
        with pytest.raises(ParameterError, match=f"--chains {chains}.*{visits}"):
            chain_limits(visits, chains)
        return
    limits = chain_limits(visits, chains)
    assert sum(limits) == visits
    assert min(limits) >= 1
    assert limits == tuple(visits // chains + (g < visits % chains) for g in range(chains))


@pytest.mark.parametrize(("visits", "chains"), [(0, 1), (0, 0), (3, 0), (3, 4), (-1, 1)])
def test_caps_and_chains_that_cannot_be(visits, chains):
    with pytest.raises(ParameterError, match="chain"):
        chain_limits(visits, chains)


# Counting


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize(("visits", "chains"), [(1, 1), (3, 1), (7, 3), (40, 4)])
def test_counters_agree_with_a_slow_replay(visits, chains, dense):
    """Two draws from the same counters: each replayed, each entry within the cap."""
    own = machine(dense=dense)
    numbers = entry_numbers(own, dense)
    counters = new_counters(own, chains)
    limits = chain_limits(visits, chains)
    visited = [Counter() for _ in range(chains)]
    for seed in (1, 2):
        parts = sample(own, 50, counters, visits, seed=seed)
        assert sum(map(len, parts)) == 50
        for chain, part in enumerate(parts):
            visited[chain] += slow_visits(part)
        for chain, line in enumerate(counters):
            for entry, number in numbers.items():
                assert line[number] == min(visited[chain][entry], limits[chain])
    assert np.sum(counters, axis=0).max() <= visits
    assert any(sum(v.values()) > limit for v, limit in zip(visited, limits, strict=True))


@settings(deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
def test_no_entry_ever_answers_more_than_its_visits(visits, chains, sweeps, draws):
    own = machine()
    chains = min(chains, visits)
    counters = new_counters(own, chains)
    before = np.zeros(own.entry_count, dtype=np.int64)
    for number, rows in enumerate(draws):
        sample(own, rows, counters, visits, seed=number, sweeps=sweeps)
        spent = np.sum(counters, axis=0, dtype=np.int64)
        assert (spent >= before).all()
        assert spent.max() <= visits
        before = spent


def test_a_trace_counts_against_the_first_chain():
    own = machine()
    counters = new_counters(own, 2)
    limit = chain_limits(5, 2)[0]
    for _ in range(20):
        trace_row(own, SEED_ROW, 2, RandomStream(1), counters=counters[0], limit=limit)
    assert counters[0].max() == limit == 3
    assert not counters[1].any()


# The same rows, however they are computed


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_equal_chains_give_equal_rows_on_any_number_of_threads(dense):
    rows = 2 * CHUNK_ROWS * 3 + 7
    results = []
    for kept, threads in ((True, 1), (dense, 2), (dense, 5)):
        own = machine(dense=kept)
        counters = new_counters(own, 3)
        results.append((np.concatenate(sample(own, rows, counters, 900, threads=threads)), own))
    for found, _ in results[1:]:
        assert np.array_equal(found, results[0][0])
    other = machine()
    again = np.concatenate(sample(other, rows, new_counters(other, 2), 900))
    assert not np.array_equal(again, results[0][0])


def test_a_chain_runs_on_over_chunks():
    """Rows depend on the row before, also across the border of a chunk."""
    own = machine(data=DATA[:0])
    parts = sample(own, CHUNK_ROWS + 5, new_counters(own, 1), 1)
    assert [len(part) for part in parts] == [CHUNK_ROWS, 5]
    whole = np.concatenate(parts)
    assert (whole < np.array(COUNTS)).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 11])
def test_any_number_of_rows_is_dealt_to_the_chains(rows):
    own = machine()
    parts = sample(own, rows, new_counters(own, 3), 6)
    assert sorted(map(len, parts), reverse=True) == [len(part) for part in parts]
    assert sum(map(len, parts)) == rows
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


# After the cap


def public():
    shares = [np.array(w) / sum(w) for w in WEIGHTS]
    return {
        row: float(np.prod([share[code] for share, code in zip(shares, row, strict=True)]))
        for row in product(*map(range, COUNTS))
    }


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_after_the_cap_rows_follow_the_public_distribution(dense):
    own = machine(dense=dense)

    def rows(spent):
        counters = [np.full(own.entry_count, spent, dtype=np.uint32) for _ in range(2)]
        return map(tuple, np.concatenate(sample(own, 6000, counters, 10**6)).tolist())

    assert outcomes_fit(rows(500_000), public())
    assert not outcomes_fit(rows(0), public())
    assert not outcomes_fit(rows(500_000 - 2000), public())


def test_empty_entries_answer_alike_before_and_after():
    own = machine(data=DATA[:0])
    rows = np.concatenate(sample(own, 6000, new_counters(own, 1), 10))
    assert outcomes_fit(map(tuple, rows.tolist()), public())
