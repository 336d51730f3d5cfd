"""How many processors there are to work with."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spare_processors() -> int:
    """Return how many a step of a stream may use, whose neighbours work at the same time.

    Where there are two, each is busy with a step of its own, and more threads only get in
    each other's way.
    """
    return max(1, usable_processors() - 2)
