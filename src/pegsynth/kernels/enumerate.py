"""Every next word through the sampling kernel, for exact audits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pegsynth.kernels.gibbs import run_chains
from pegsynth.kernels.polya import run_polya
from pegsynth.kernels.tables import EntryTables, KeyTables, PriorTables, RuleTables


@njit(cache=True, nogil=True)
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
    words = np.empty(len(prefix) + 1, dtype=np.uint64)
    words[: len(prefix)] = prefix
    for word in range(tables.shape[0]):
        words[len(prefix)] = word
        visits[word] = 0
        drawn[word] = 0
        tables[word] = 0
        states[word] = 0
        if urn:
            done[word] = run_polya(
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
            )
            continue
        done[word] = run_chains(
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
            visits[word],
            0,
            words,
            bits,
        )
