"""Work in parts on other threads that Ctrl-C ends at once.

Python tells signals to the main thread alone, and only between two of its instructions. A
long call of compiled code on the main thread would therefore keep Ctrl-C waiting, and so
would leaving a thread pool, which waits for all of its work. Here the main thread waits
and does nothing else; when it is interrupted it asks the others to stop and leaves.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

import numpy as np

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_SECONDS = 0.2
_AT_EXIT = 0.7
"""How long an exiting process waits for threads that were asked to stop."""


class Abandoned(Exception):  # noqa: N818 (it reports no error, and nobody outside sees it)
    """The work was given up because its caller no longer waits."""


class Stop:
    """Whether work is still wanted, for those who do it.

    Parameters
    ----------
    flag
        An array of one number, 1 once the work is given up, which kernels look at.
    """

    def __init__(self) -> None:
        self.flag = np.zeros(1, dtype=np.uint8)

    def ask(self) -> None:
        """Give the work up."""
        self.flag[0] = 1

    @property
    def asked(self) -> bool:
        """Whether the work was given up."""
        return bool(self.flag[0])

    def check(self) -> None:
        """Leave work that was given up."""
        if self.asked:
            raise Abandoned


def run_each(
    items: Sequence[_Item], work: Callable[[_Item, Stop], _Result], *, threads: int
) -> Generator[tuple[_Item, _Result]]:
    """Yield every item with what `work` makes of it, as they are finished.

    Parameters
    ----------
    work
        Called on another thread with an item and with a `Stop`, which it should look at
        every now and then.
    threads
        How many items are worked on at a time.

    Notes
    -----
    The first error of an item is raised here. When this generator is left early, for that
    or any other reason, no further item is begun and nobody waits for those under way.
    """
    stop, waiting = Stop(), queue.SimpleQueue[_Item]()
    finished = queue.SimpleQueue[tuple[_Item, _Result | None, BaseException | None]]()
    for item in items:
        waiting.put(item)

    def labour() -> None:
        while not stop.asked:
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                finished.put((item, work(item, stop), None))
            except BaseException as error:  # noqa: BLE001 (told to the thread that waits)
                finished.put((item, None, error))
                return

    # Daemons, because an exiting process would wait without end for others.
    labourers = [
        threading.Thread(target=labour, daemon=True) for _ in range(min(threads, len(items)))
    ]
    for each in labourers:
        each.start()
    try:
        for _ in items:
            item, result, error = _next(finished)
            if error is not None:
                raise error
            yield item, result  # type: ignore[misc]
    finally:
        stop.ask()
        if any(each.is_alive() for each in labourers):
            atexit.register(_wait, labourers)


def _next(finished: queue.SimpleQueue[_Result]) -> _Result:
    """Wait in steps: a library may have set signals up so that none ends a wait."""
    while True:
        try:
            return finished.get(timeout=_SECONDS)
        except queue.Empty:
            continue


def _wait(threads: Sequence[threading.Thread]) -> None:
    """Give threads a moment to end, so that none is cut off in compiled code."""
    latest = time.monotonic() + _AT_EXIT
    for each in threads:
        each.join(max(0.0, latest - time.monotonic()))
