"""Load the compiled kernels ahead of their first use.

Numba takes a few tenths of a second to start and to load its cache, and on the first run
seconds to compile. Commands that read a table do that on a second thread while the table is
being read. They name what will be used: anything else would be compiled in vain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np


def warm_up(load: Callable[[], None]) -> threading.Thread:
    """Start loading on a separate thread; no caller waits for it."""
    thread = threading.Thread(target=load, name="pegsynth-kernels", daemon=True)
    thread.start()
    return thread


def counting_kernels() -> None:
    """Load what counts blocks."""
    from pegsynth.kernels.key_counts import add_dense, keys_of, tail_totals
    from pegsynth.kernels.sampling_arrays import KeyTables

    numbers = np.zeros(1, dtype=np.int64)
    starts = np.array([0, 1], dtype=np.int64)
    tables = KeyTables(
        starts, np.zeros(2, dtype=np.int64), numbers[:0], numbers, numbers, numbers, numbers, 0
    )
    columns = np.zeros((1, 1), dtype=np.uint8)
    tail_totals(columns, tables, numbers)
    keys_of(columns, numbers, tables, 0, numbers.copy())
    add_dense(numbers, columns[0], 1, numbers.copy())


def noise_kernels() -> None:
    """Load what draws noise."""
    from pegsynth.kernels.noise_draws import NoiseTables, draw_noise

    words, zero = np.zeros(0, dtype=np.uint64), np.uint64(0)
    bins = NoiseTables(words, np.zeros(1, dtype=np.int32), zero, words, zero, zero)
    state = np.zeros(2, dtype=np.int64)
    draw_noise(np.zeros(1, dtype=np.int64), state, bins, words, np.uint64(64))
