"""Threads do not survive a fork: code that needs them raises an error instead of waiting forever.

Polars keeps threads for as long as a process lives. The child of a fork inherits their
queues and not the threads, so that its first query never ends. A child that was forked
before anything had started them is as good as any process. `check_threads` tells the two
apart, once in each process, before the library asks Polars for anything.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path

from pegsynth.errors import EngineError

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
