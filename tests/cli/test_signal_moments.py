"""Where a signal's exception is raised: in our own code, never inside a library."""

import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from pegsynth.cli import signals

MOMENTS = {
    # Compiled code calls this Python function, and panics when it raises.
    "in a callback of Polars": """
        import polars as pl

        def callback(cls, series):
            os.kill(os.getpid(), NUMBER)
            for _ in range(5):
                time.sleep(0.02)  # alarms come meanwhile
            return kept(cls, series)

        frame = pl.DataFrame({"a": ["x"]}, schema={"a": pl.Enum(["x"])})
        names = {"os": os, "time": time, "__name__": "polars.series.series"}
        names["kept"] = pl.Series._from_pyseries.__func__
        pl.Series._from_pyseries = classmethod(type(callback)(callback.__code__, names))
        frame.dtypes
    """,
    "in a finaliser": """
        class Finalised:
            def __del__(self):
                os.kill(os.getpid(), NUMBER)
                time.sleep(0.02)

        Finalised()
    """,
    "when a weak reference dies": """
        import weakref

        def callback(reference):
            os.kill(os.getpid(), NUMBER)
            time.sleep(0.02)

        class Thing: pass
        thing = Thing()
        names = {"os": os, "time": time, "__name__": "weakref"}
        reference = weakref.ref(thing, type(callback)(callback.__code__, names))
        del thing
    """,
    "twice while our code tidies up": """
        try:
            os.kill(os.getpid(), NUMBER)
        finally:
            for _ in range(3):
                os.kill(os.getpid(), NUMBER)
                time.sleep(0.02)
            print("tidied up", file=sys.stderr)
    """,
    "when all is done": """
        import atexit

        def late():
            os.kill(os.getpid(), NUMBER)
            time.sleep(0.02)
            print("done", file=sys.stderr)

        atexit.register(late)
        return
    """,
}
SCRIPT = """
import os, signal, sys, time
from pegsynth.cli import main, signals
{twin}
def run():
{moment}
    stop = time.monotonic() + {seconds}
    while time.monotonic() < stop:
        time.sleep(0.001)

import pegsynth.cli.application as application
application.run = run
main.main()
"""
BROKEN = """
def raise_at_once(number, frame):
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise signals.Stopped(128 + number)
signals._leave = raise_at_once
"""


def stopped(moment, number, twin="", seconds=60):
    body = textwrap.indent(textwrap.dedent(MOMENTS[moment]), "    ")
    body = body.replace("NUMBER", str(int(number)))
    script = SCRIPT.format(moment=body, twin=twin, seconds=seconds)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=120, text=True, check=False
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_at_an_awkward_moment(moment, number):
    run = stopped(moment, number)
    expected = [*["tidied up"] * ("tidies" in moment), f"pegs: {signals.STOPPED}"]
    status = 128 + number
    if moment == "when all is done":
        expected, status = ["done"], 0
    assert (run.returncode, run.stderr.splitlines()) == (status, expected)


@pytest.mark.parametrize("moment", list(MOMENTS)[:3])
def test_the_broken_twin_raises_where_it_is(moment):
    """The test above must catch a handler that raises at once."""
    run = stopped(moment, signal.SIGTERM, BROKEN, seconds=1)
    assert "panicked" in run.stderr or "Exception ignored" in run.stderr


@dataclass
class Frame:
    """As much of a frame as is looked at."""

    module: str
    name: str = "function"
    f_back: "Frame | None" = None

    @property
    def f_globals(self):
        return {"__name__": self.module}

    @property
    def f_code(self):
        return SimpleNamespace(co_name=self.name)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("pegsynth.io", Frame("threading"), True),
        ("typer.main", Frame("pegsynth.schema"), True),
        ("__main__", Frame("importlib._bootstrap"), True),
        ("pegsynth.io", Frame("polars.series"), False),
        ("polars.series", Frame("contextlib"), False),
        ("numba.core", Frame("importlib._bootstrap"), False),
        ("pegsynth.random", Frame("_weakrefset"), False),
        ("pegsynth.io", Frame("tempfile", "__del__"), False),
        ("pegsynth.io", Frame("pegsynth.io", "__del__"), False),
    ],
)
def test_frames_that_an_exception_would_meet(outer, inner, expected):
    inner.f_back = Frame(outer)
    assert signals.may_raise(inner) is expected


def test_without_a_frame_nothing_stands_in_between():
    assert signals.may_raise(None)


def test_a_library_that_takes_too_long_is_left_anyway(monkeypatch):
    monkeypatch.setattr(signals, "_MOST_SECONDS", 0.0)
    monkeypatch.setattr(signals, "may_raise", lambda frame: False)
    kept = {number: signal.getsignal(number) for number in (*signals._SIGNALS, signal.SIGALRM)}
    try:
        signals.leave_on_signals()
        with pytest.raises(signals.Stopped) as leaving:
            signal.raise_signal(signal.SIGTERM)
        assert leaving.value.code == 143
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
