"""Signals: the command leaves through an exception, which removes what is half-written.

An exception that comes up inside a library may do harm there: compiled code that calls Python
in between turns it into a panic of its own, a finaliser swallows it, and a lock that Python's
own modules have just taken is never given back, for which tidying up would wait for ever. So
it is raised in our own code; a signal that arrives elsewhere is looked at again in a moment.
"""

from __future__ import annotations

import signal
import time
from types import FrameType

STOPPED = "stopped; every output is as it was, or whole"
"""What the command says when a signal ended it."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SECONDS_BETWEEN = 0.01
_MOST_SECONDS = 5.0
_OURS = ("pegsynth", "__main__")


class Stopped(SystemExit):
    """A signal ended the command; the code is its exit status."""


def leave_on_signals() -> None:
    """Make SIGTERM, Ctrl-C and, unless somebody ignores it, SIGHUP raise `Stopped`."""
    for number in _SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def ignore_signals() -> None:
    """Let nothing come of further signals: the work is done, or being tidied up."""
    for number in _SIGNALS:
        signal.signal(number, _ignore)
    if isinstance(signal.getsignal(signal.SIGALRM), _LookAgain):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, _ignore)


def may_raise(frame: FrameType | None) -> bool:
    """Say whether it is our own code that runs, and no finaliser."""
    if frame is None:
        return True
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return root in _OURS and frame.f_code.co_name != "__del__"


class _LookAgain:
    """Raise as soon as that is safe, or has taken too long."""

    def __init__(self, number: int) -> None:
        self._status = 128 + number
        self._latest = time.monotonic() + _MOST_SECONDS

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if may_raise(frame) or time.monotonic() > self._latest:
            ignore_signals()
            raise Stopped(self._status)


def _leave(number: int, frame: FrameType | None) -> None:
    """Raise now or soon; a second signal must not stop the tidying up."""
    ignore_signals()
    look_again = _LookAgain(number)
    signal.signal(signal.SIGALRM, look_again)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN, _SECONDS_BETWEEN)
    look_again(signal.SIGALRM, frame)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing. SIG_IGN would make Python complain of a signal that is under way already."""
