"""Signals while a cluster works.

An exception that a signal raises inside a call to the JVM leaves the answer of that call on
its connection, and the next call reads it for its own. So a signal ends the jobs first,
from another thread; the call that waits for them then fails by itself, files are removed
when nobody writes to them any more, and the signal is passed on at the end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Windows has no SIGHUP.
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def signals_held(end_jobs: Callable[[], object]) -> Iterator[None]:
    """Hold signals while a call to the JVM runs, and pass them on afterwards.

    Parameters
    ----------
    end_jobs
        Makes calls that wait for a job fail; runs on another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    caught: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if not in_java(frame):
            _pass_on(before[number], number, frame)
        elif not caught:
            caught.append(number)
            threading.Thread(target=end_jobs, name="pegsynth-stop", daemon=True).start()

    for number, old in before.items():
        if callable(old):
            signal.signal(number, hold)
    try:
        yield
    finally:
        for number, old in before.items():
            # Who was passed a signal may have changed what comes of the next.
            if signal.getsignal(number) is hold:
                signal.signal(number, old)
        if caught:
            _pass_on(before[caught[0]], caught[0], None)


def in_java(frame: FrameType | None) -> bool:
    """Say whether a call to the JVM, or reading its answer, is under way."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(("py4j.", "pyspark.")):
            return True
        frame = frame.f_back
    return False


def _pass_on(handler: object, number: int, frame: FrameType | None) -> None:
    if callable(handler):
        handler(number, frame)
