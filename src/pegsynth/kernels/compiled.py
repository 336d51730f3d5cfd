"""How kernels are compiled.

A kernel is compiled when it is first called and kept in a cache beside its source. What that
costs the first command of a user is mostly the work of Numba itself, in proportion to what
it has to type and translate. So kernels allocate nothing: the caller hands them every array.
Then no reference is counted, and none of NumPy's array functions is compiled with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pegsynth.kernels.loading import load_numba

load_numba()

from numba import njit  # noqa: E402 (in a command it has been loaded in a way of its own)
from numba.core import event  # noqa: E402
from numba.core.registry import CPUDispatcher  # noqa: E402

from pegsynth.kernels.notice import compiling  # noqa: E402

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
