"""Every next word through the sampling kernel, for exact audits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegsynth.kernels.arrays import Codes, UInt64
from pegsynth.kernels.compiled import kernel
from pegsynth.kernels.gibbs import Scratch, needed_tables, sweep_chains
from pegsynth.kernels.sampling_arrays import RuleTables, SweepTables
from pegsynth.kernels.urns import sweep_polya


class Tried(NamedTuple):
    """What each word leads to, line by line.

    `rows` and `states` are the rows and the place reached, `visits` and `drawn` the counters and
    the urns; `done` says whether all rows were complete.
    """

    rows: Any
    states: Any
    visits: Any
    drawn: Any
    done: Any


def try_words(
    seeds: Codes, prefix: UInt64, bits: np.uint64, tables: SweepTables, tried: Tried, *, urn: bool
) -> None:
    """Run the kernel on prefix + [w] for every word w of `bits` bits.

    With `urn` the visits are those of `run_polya`, a single chain. The arrays of `tried` are
    zeros at the start.
    """
    words = np.append(prefix, np.uint64(0))
    scratch = Scratch.of(tables.keys)
    if urn:
        _try_urns(seeds, words, bits, tables, tried, scratch)
        return
    # As in `run_chains`, so that what is tried is the code that draws rows.
    needed = needed_tables(tables, tried.visits)
    _try_chains(seeds, words, bits, tables, *needed, tried, scratch)


@kernel
def _try_urns(
    seeds: Codes,
    words: UInt64,
    bits: np.uint64,
    tables: SweepTables,
    tried: Tried,
    scratch: Scratch,
) -> None:
    for word in range(len(tried.done)):
        words[len(words) - 1] = word
        tried.done[word] = sweep_polya(
            seeds,
            tried.rows[word],
            tried.states[word],
            tables,
            tried.visits[word],
            tried.drawn[word],
            words,
            bits,
            scratch,
        )


@kernel
def _try_chains(
    seeds: Codes,
    words: UInt64,
    bits: np.uint64,
    tables: SweepTables,
    rules: RuleTables | None,
    visits: Codes | None,
    tried: Tried,
    scratch: Scratch,
) -> None:
    for word in range(len(tried.done)):
        words[len(words) - 1] = word
        # One kernel or the other, by the type of `visits`.
        counters = None if visits is None else visits[word]
        tried.done[word] = sweep_chains(
            seeds,
            tried.rows[word],
            tried.states[word],
            tables,
            rules,
            counters,
            0,
            words,
            bits,
            scratch,
        )
