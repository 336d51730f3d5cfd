"""Signals: the command leaves through an exception, which removes what is half-written.

An exception that comes up inside a library may do harm there: compiled code that calls Python
in between turns it into a panic of its own, a finaliser swallows it, and a lock that Python's
own modules have just taken is never given back, for which tidying up would wait for ever. So
it is raised in our own code; a signal that arrives elsewhere is looked at again in a moment.
Polars answers Ctrl-C by itself, with an exception of its own, which has the same effect.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pegsynth.errors import with_notes_of

STOPPED = "stopped; every output is as it was, or whole"
"""What the command says when a signal ended it."""

# Windows has neither SIGHUP nor SIGALRM.
_HANG_UP = getattr(signal, "SIGHUP", None)
_ALARM = getattr(signal, "SIGALRM", None)
_SIGNALS = (signal.SIGTERM, signal.SIGINT, *([_HANG_UP] if _HANG_UP is not None else []))
_SECONDS_BETWEEN = 0.01
_MOST_SECONDS = 5.0
_OURS = ("pegsynth", "__main__")


class Stopped(SystemExit):
    """A signal ended the command; the code is its exit status."""


@contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Make SIGTERM, Ctrl-C and, unless somebody ignores it, SIGHUP end a block by `Stopped`.

    Once the block is done no signal can undo it: further ones are ignored.
    """
    for number in _SIGNALS:
        if number != _HANG_UP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    try:
        yield
    except BaseException as error:
        pending = _alarm_handler()
        done = isinstance(error, SystemExit) and not error.code
        if isinstance(pending, _LookAgain) and not done:
            # It ended because of the signal, whatever became of that on the way.
            raise with_notes_of(Stopped(pending.status), error) from None
        raise
    finally:
        _ignore_signals()


@contextmanager
def keeping_handlers() -> Iterator[None]:
    """Let a command inside another one leave signals as it found them."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, _ignore)
    if _ALARM is not None and isinstance(_alarm_handler(), _LookAgain):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(_ALARM, _ignore)


def _alarm_handler() -> object:
    return None if _ALARM is None else signal.getsignal(_ALARM)


def may_raise(frame: FrameType | None) -> bool:
    """Say whether it is our own code that runs, and no finaliser."""
    if frame is None:
        return True
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return root in _OURS and frame.f_code.co_name != "__del__"


def _on_the_way_out() -> bool:
    """Say whether an exception that ends the command is being handled, files tidied up."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt | Stopped):
            return True
        error = error.__context__
    return False


class _LookAgain:
    """Raise as soon as that is safe, or has taken too long; then the command is leaving."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        self._latest = time.monotonic() + _MOST_SECONDS

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _on_the_way_out():
            return
        if may_raise(frame) or time.monotonic() > self._latest:
            _ignore_signals()
            raise Stopped(self.status)


def _leave(number: int, frame: FrameType | None) -> None:
    """Raise now or soon; a second signal must not stop the tidying up."""
    _ignore_signals()
    look_again = _LookAgain(number)
    if _ALARM is None:
        # Nothing would look again, so that it is raised wherever it arrived.
        raise Stopped(look_again.status)
    signal.signal(_ALARM, look_again)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN, _SECONDS_BETWEEN)
    look_again(_ALARM, frame)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing. SIG_IGN would make Python complain of a signal that is under way already."""
