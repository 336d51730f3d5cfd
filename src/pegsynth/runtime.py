"""What this process has to work with: version, processors, threads, warnings.

Polars keeps threads for as long as a process lives. The child of a fork inherits their
queues and not the threads, so that its first query never ends. A child that was forked
before anything had started them is as good as any process. `check_threads` tells the two
apart, once in each process, before the library asks Polars for anything.

Python tells signals to the main thread alone, and only between two of its instructions. A
long call of compiled code on the main thread would therefore keep Ctrl-C waiting, and so
would leaving a thread pool, which waits for all of its work. With `run_each` the main thread
waits and does nothing else; when it is interrupted it asks the others to stop and leaves.
"""

from __future__ import annotations

import atexit
import gc
import os
import queue
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from pegsynth.errors import EngineError

__version__ = "0.1.0"


def usable_processors() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spare_processors() -> int:
    """Return how many a step of a stream may use, whose neighbours work at the same time.

    Where there are two, each is busy with a step of its own, and more threads only get in
    each other's way.
    """
    return max(1, usable_processors() - 2)


def check_trees(what: str) -> None:
    """Refuse what grows trees, before any data is read, where scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise EngineError(
            f"{what} grows trees with scikit-learn, which is not installed; install it with "
            "pip install 'pegsynth[trees]'"
        )


@contextmanager
def loading() -> Iterator[None]:
    """Import what is large without looking for garbage, of which imports leave next to none."""
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looking:
            gc.enable()


@contextmanager
def in_silence() -> Iterator[None]:
    """Hold back warnings of Python and NumPy, also where a caller has made errors of them."""
    import numpy as np

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


ANSWER_SECONDS = 20.0
"""How long Polars may take for two rows before its threads are held to be missing."""

_MESSAGE = (
    "this process was forked from one that had used Polars, whose threads do not survive a fork: "
    'work here would never end. Start worker processes with "spawn" or "forkserver", such as '
    'multiprocessing.get_context("spawn"), or fork them before anything is read or synthesized'
)
_THREADS = re.compile(r"polars-\d+")


class _State:
    """What is known of the threads of this process.

    `lost`: they are missing. `doubtful`: they may be, because this process was forked, or
    because Polars was there before us and we do not know in which process.
    """

    lost = False
    doubtful = "polars" in sys.modules
    running_before = False


def check_threads() -> None:
    """Refuse to work in a process whose threads a fork has left behind."""
    if _State.doubtful:
        _State.lost = _State.lost or not _polars_answers()
        _State.doubtful = False
    if _State.lost:
        raise EngineError(_MESSAGE)


def _polars_answers() -> bool:
    """Say whether a small query comes to an end."""
    answered = threading.Event()

    def ask() -> None:
        import polars as pl

        pl.DataFrame({"a": [1, 2]}).group_by("a").agg(pl.len())
        answered.set()

    # A daemon: it waits for ever where there is no answer, and must not keep the process.
    threading.Thread(target=ask, name="pegsynth-fork-check", daemon=True).start()
    return answered.wait(ANSWER_SECONDS)


def _before_fork() -> None:
    _State.running_before = "polars" in sys.modules and _polars_is_running()


def _after_fork() -> None:
    # Threads that were seen to run are certainly gone; nobody has to wait for an answer.
    _State.lost = _State.lost or _State.running_before
    _State.doubtful = not _State.lost and "polars" in sys.modules


def _polars_is_running() -> bool:
    """Look for Polars' threads by their names; False also where that cannot be told."""
    names = (_text(thread / "comm") for thread in Path("/proc/self/task").glob("*"))
    return any(_THREADS.fullmatch(name) for name in names)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""  # a thread that has just ended


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


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
        import numpy as np

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
