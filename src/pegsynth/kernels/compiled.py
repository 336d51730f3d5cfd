"""Tell the user, once, that kernels are being compiled.

This module imports nothing heavy: a command says at its start what is to be done when the
first kernel is compiled, and most commands on most days compile none.

How kernels are compiled.

A kernel is compiled when it is first called and kept in a cache beside its source. What that
costs the first command of a user is mostly the work of Numba itself, in proportion to what
it has to type and translate. So kernels allocate nothing: the caller hands them every array.
Then no reference is counted, and none of NumPy's array functions is compiled with them.

Load the compiled kernels ahead of their first use.

Numba takes a few tenths of a second to start and to load its cache, and on the first run
seconds to compile. Commands that read a table do that on a second thread while the table is
being read. They name what will be used: anything else would be compiled in vain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core import event
from numba.core.registry import CPUDispatcher

_waiting: list[Callable[[], None]] = []


def when_compiling(tell: Callable[[], None]) -> None:
    """Have `tell` called when this process compiles for the first time."""
    _waiting[:] = [tell]


def compiling() -> None:
    """Print the notice once; `compiled` calls this when a compilation starts."""
    # Several threads may compile first. Only one of them gets hold of what is to be called.
    try:
        tell = _waiting.pop()
    except IndexError:
        return
    tell()


kernel = njit(cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)
"""Decorates what Python calls; it allocates nothing and returns no array."""

_inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


class _Helper(CPUDispatcher):
    """A compiled function without a way in from Python."""

    def __call__(self, *arguments: Any) -> Any:
        """Run the plain Python function: there is no compiled way in, only a crash."""
        return self.py_func(*arguments)


def helper(function: Callable[..., Any]) -> Any:
    """Decorate what kernels call.

    It is compiled into every kernel that calls it, and needs neither a cache of its own nor
    the code that unpacks Python objects. `as_kernel` makes it callable, for tests.
    """
    compiled = _inner(function)
    compiled.__class__ = _Helper
    return compiled


def as_kernel(function: Any) -> Any:
    """Return a helper as Python can call it, compiled anew."""
    return njit(function.py_func)


class _Watch(event.Listener):
    """Hears of every compilation; what is loaded from the cache is none."""

    def on_start(self, event: Any) -> None:
        """Say so."""
        compiling()

    def on_end(self, event: Any) -> None:
        """Do nothing."""


event.register("numba:compile", _Watch())


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
