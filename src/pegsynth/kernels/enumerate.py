"""Every next word through the sampling kernel, for exact audits."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegsynth.kernels.compiled import kernel
from pegsynth.kernels.gibbs import Scratch, needed_tables, sweep_chains
from pegsynth.kernels.polya_sweeps import sweep_polya
from pegsynth.kernels.sampling_arrays import EntryTables, KeyTables, PriorTables, RuleTables


def try_words(
    seeds: Any,
    prefix: Any,
    bits: np.uint64,
    keys: KeyTables,
    entries: EntryTables,
    prior: PriorTables,
    rules: RuleTables,
    targets: Any,
    sweeps: int,
    chain_rows: int,
    limit: int,
    urn: bool,
    visits: Any,
    drawn: Any,
    tables: Any,
    states: Any,
    done: Any,
) -> None:
    """Run the kernel on prefix + [w] for every word w of `bits` bits.

    Line w of `tables`, `states`, `visits`, `drawn` and `done` receives the rows, the state
    reached, the counters, the urns and whether all rows were complete. With `urn` the
    visits are those of `run_polya`, a single chain.
    """
    words = np.append(prefix, np.uint64(0))
    for each in (visits, drawn, tables, states):
        each[:] = 0
    scratch = Scratch.of(keys)
    if urn:
        _try_urns(
            seeds,
            words,
            bits,
            keys,
            entries,
            prior,
            rules,
            targets,
            sweeps,
            limit,
            visits,
            drawn,
            tables,
            states,
            done,
            scratch,
        )
        return
    # As in `run_chains`, so that what is tried is the code that draws rows.
    needed = needed_tables(entries, prior, rules, targets, limit, visits)
    _try_chains(
        seeds,
        words,
        bits,
        keys,
        entries,
        prior,
        needed.rules,
        targets,
        sweeps,
        chain_rows,
        limit,
        needed.visits,
        tables,
        states,
        done,
        scratch,
    )


@kernel
def _try_urns(
    seeds: Any,
    words: Any,
    bits: np.uint64,
    keys: KeyTables,
    entries: EntryTables,
    prior: PriorTables,
    rules: RuleTables,
    targets: Any,
    sweeps: int,
    limit: int,
    visits: Any,
    drawn: Any,
    tables: Any,
    states: Any,
    done: Any,
    scratch: Scratch,
) -> None:
    for word in range(tables.shape[0]):
        words[len(words) - 1] = word
        done[word] = sweep_polya(
            seeds,
            tables[word],
            states[word],
            keys,
            entries,
            prior,
            rules,
            targets,
            sweeps,
            limit,
            visits[word],
            drawn[word],
            words,
            bits,
            scratch,
        )


@kernel
def _try_chains(
    seeds: Any,
    words: Any,
    bits: np.uint64,
    keys: KeyTables,
    entries: EntryTables,
    prior: PriorTables,
    rules: RuleTables | None,
    targets: Any,
    sweeps: int,
    chain_rows: int,
    limit: int,
    visits: Any | None,
    tables: Any,
    states: Any,
    done: Any,
    scratch: Scratch,
) -> None:
    for word in range(tables.shape[0]):
        words[len(words) - 1] = word
        # One kernel or the other, by the type of `visits`.
        counters = None if visits is None else visits[word]
        done[word] = sweep_chains(
            seeds,
            tables[word],
            states[word],
            keys,
            entries,
            prior,
            rules,
            targets,
            sweeps,
            chain_rows,
            limit,
            counters,
            0,
            words,
            bits,
            scratch,
        )
