"""Load the compiled kernels ahead of their first use.

Numba takes a few tenths of a second to start and to load its cache. Commands that read a
table do that on a second thread while the table is being read.
"""

from __future__ import annotations

import threading

import numpy as np


def warm_up() -> threading.Thread:
    """Start loading on a thread of its own; nobody needs to wait for it."""
    thread = threading.Thread(target=_load, name="pegsynth-kernels", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    from pegsynth.kernels.counting import add_dense, keys_of, tail_totals
    from pegsynth.kernels.noise import NoiseTables, draw_noise
    from pegsynth.kernels.tables import KeyTables

    numbers = np.zeros(1, dtype=np.int64)
    starts = np.array([0, 1], dtype=np.int64)
    tables = KeyTables(starts, np.zeros(2, dtype=np.int64), numbers[:0], numbers, numbers, 0)
    columns = np.zeros((1, 1), dtype=np.uint8)
    tail_totals(columns, tables, numbers)
    keys_of(columns, numbers, tables, 0, numbers.copy())
    add_dense(numbers, columns[0], 1, numbers.copy())
    words, zero = np.zeros(0, dtype=np.uint64), np.uint64(0)
    bins = NoiseTables(words, np.zeros(1, dtype=np.int32), zero, words, zero, zero)
    draw_noise(numbers, np.zeros(2, dtype=np.int64), bins, words, np.uint64(64))
