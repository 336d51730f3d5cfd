"""Where a signal's exception is raised: in our own code, never inside a library."""

import signal
import subprocess
import sys
import textwrap
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
    # As Polars does on Ctrl-C, and then the parser of the command line.
    "while a library interrupts and files are tidied up": """
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            for _ in range(3):
                os.kill(os.getpid(), NUMBER)
                time.sleep(0.02)
            print("tidied up", file=sys.stderr)
            raise SystemExit(130)
    """,
    # Whoever takes the lock to tidy up would wait for ever.
    "when a lock has just been taken": """
        import threading

        def enter(self):
            taken = self._lock.__enter__()
            os.kill(os.getpid(), NUMBER)
            time.sleep(0.02)
            return taken

        names = {"os": os, "time": time, "__name__": "threading"}
        threading.Condition.__enter__ = type(enter)(enter.__code__, names)
        condition = threading.Condition(threading.Lock())
        try:
            with condition:
                pass
        finally:
            if not condition.acquire(timeout=1):
                print("never given back", file=sys.stderr)
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
def run(*_):
{moment}
    stop = time.monotonic() + {seconds}
    while time.monotonic() < stop:
        time.sleep(0.001)

import pegsynth.cli.application as application
application.run = run
main.main()
"""
HARMLESS = ("twice while our code tidies up", "when all is done")
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
    expected = [*["tidied up"] * ("tid" in moment), f"pegs: {signals.STOPPED}"]
    status = 128 + number
    if moment == "when all is done":
        expected, status = ["done"], 0
    assert (run.returncode, run.stderr.splitlines()) == (status, expected)


@pytest.mark.parametrize("moment", [name for name in MOMENTS if name not in HARMLESS])
def test_the_broken_twin_raises_where_it_is(moment):
    """The test above must catch a handler that raises at once."""
    run = stopped(moment, signal.SIGTERM, BROKEN, seconds=1)
    signs = ("panicked", "Exception ignored", "never given back")
    assert any(sign in run.stderr for sign in signs) or "tidied up" not in run.stderr


@pytest.mark.parametrize(
    ("module", "function", "expected"),
    [
        ("pegsynth.tables.table_output", "write", True),
        ("__main__", "main", True),
        ("polars.series.series", "_from_pyseries", False),
        ("threading", "__enter__", False),
        ("_weakrefset", "_remove", False),
        ("pegsynth.tables.table_output", "__del__", False),
        ("pegsynthetic", "write", False),
    ],
)
def test_code_that_an_exception_may_come_up_in(module, function, expected):
    code = SimpleNamespace(co_name=function)
    frame = SimpleNamespace(f_globals={"__name__": module}, f_code=code)
    assert signals.may_raise(frame) is expected


def test_without_a_frame_nothing_stands_in_between():
    assert signals.may_raise(None)


def test_a_library_that_takes_too_long_is_left_anyway(monkeypatch):
    monkeypatch.setattr(signals, "_MOST_SECONDS", 0.0)
    monkeypatch.setattr(signals, "may_raise", lambda frame: False)
    kept = {number: signal.getsignal(number) for number in (*signals._SIGNALS, signal.SIGALRM)}
    try:
        with pytest.raises(signals.Stopped) as leaving, signals.leaving_on_signals():
            signal.raise_signal(signal.SIGTERM)
        assert leaving.value.code == 143
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
