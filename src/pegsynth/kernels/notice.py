"""Tell the user, once, that kernels are being compiled.

This module imports nothing heavy: a command says at its start what is to be done when the
first kernel is compiled, and most commands on most days compile none.
"""

from __future__ import annotations

from collections.abc import Callable

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
