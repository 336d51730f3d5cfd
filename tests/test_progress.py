"""Progress tells rows, rows per second and a total that is never too small, to whoever listens."""

import sys
import types

import polars as pl
import pytest

import pegsynth
from pegsynth import progress
from pegsynth.errors import ParameterError
from pegsynth.schema import Feature, Schema


class Lines:
    """Remembers what a bar was told."""

    def __init__(self):
        self.drawn = []
        self.closed = False

    def draw(self, stage, done, total, speed, *, new):
        self.drawn.append((stage, done, total, speed, new))

    def close(self):
        self.closed = True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def follower(clock):
    lines = Lines()
    follow = progress.Follower(lambda: lines)
    clock[0] = 1.0
    return follow, lines, clock


def test_two_passes_and_a_guess_that_was_too_small(follower):
    follow, lines, clock = follower
    follow("pair counts", 0, 1000)
    clock[0] = 3.0
    follow("pair counts", 500, 1000)
    follow("pair counts", 1200, 1000)
    follow("blocks", 0, None)
    assert lines.drawn == [
        ("pair counts", 0, 1000, "", True),
        ("pair counts", 500, 1000, "250 rows/s", False),
        ("pair counts", 1200, 1200, "600 rows/s", False),
        ("blocks", 0, None, "", True),
    ]


def test_rows_of_an_earlier_attempt_do_not_count_for_the_speed(follower):
    follow, lines, clock = follower
    follow("blocks", 900, 1000)
    assert lines.drawn[0] == ("blocks", 900, 1000, "", True)
    clock[0] = 2.0
    follow("blocks", 1000, 1000)
    assert lines.drawn[1] == ("blocks", 1000, 1000, "100 rows/s", False)


def test_a_bar_appears_when_work_takes_long_and_not_before(clock):
    made = []
    follow = progress.Follower(lambda: made.append(Lines()) or made[-1])
    follow("rows", 0, 10)
    follow("rows", 10, 10)
    follow.close()
    assert not made
    clock[0] = 0.6
    follow("models", 3, 10)
    assert made[0].drawn == [("models", 3, 10, "", True)]
    follow.close()
    assert made[0].closed


# Who is shown a bar


def listener(asked):
    with progress.shown(asked) as told:
        return told


def test_nobody_sees_a_bar_in_a_pipe():
    assert listener(None) is progress.quiet
    assert listener(False) is progress.quiet


def test_a_bar_is_shown_on_a_terminal_unless_it_is_declined(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(listener(None), progress.Follower)
    assert listener(False) is progress.quiet
    monkeypatch.undo()
    assert isinstance(listener(True), progress.Follower)


def test_the_terminals_bar_vanishes(clock, capsys):
    with progress.shown(True) as told:
        clock[0] = 1.0
        told("rows", 5, 10)
        told("models", 1, None)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("asked", [3, "yes", object()])
def test_anything_else_is_refused(asked):
    with pytest.raises(ParameterError, match="progress is True, False, None or a function"):
        listener(asked)


class Handle:
    def __init__(self, first):
        self.pages = [first._repr_html_()]

    def update(self, page):
        self.pages.append(page._repr_html_())


@pytest.fixture
def notebook(monkeypatch):
    """A process that looks as if a notebook's kernel ran it."""
    shell, handles = types.SimpleNamespace(kernel=object()), []

    def display(page, *, display_id):
        assert display_id is True
        handles.append(Handle(page))
        return handles[-1]

    main, shows = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    main.get_ipython = lambda: shell
    shows.display = display
    monkeypatch.setitem(sys.modules, "IPython", main)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    return handles


def test_a_notebook_shows_one_line_of_html(notebook, clock):
    with progress.shown() as told:
        told("rows", 0, 10)
        clock[0] = 1.0
        told("rows", 5, 10)
        clock[0] = 1.01
        told("rows", 6, 10)
        clock[0] = 2.0
        told("<units>", 7, None)
    (handle,) = notebook
    assert handle.pages == [
        "",
        '<progress value="5" max="10"></progress> rows 5 of 10 5 rows/s',
        "<progress></progress> &lt;units&gt; 7  ",
        "",
    ]


def test_a_terminal_with_ipython_is_a_terminal(monkeypatch):
    main = types.ModuleType("IPython")
    main.get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", main)
    assert listener(None) is progress.quiet


# The library tells it


def test_calls_tell_a_function_of_the_callers_own():
    data = pl.DataFrame({"a": ["x", "y"] * 50, "b": ["0", "1"] * 50})
    features = (Feature("a", categories=("x", "y")), Feature("b", categories=("0", "1")))
    schema = Schema(features, reviewed=True)
    told = []

    def listen(stage, done, total):
        told.append((stage, done, total))

    made = pegsynth.synthesize(data, schema, method="mi", rows=7, progress=listen)
    assert ("models", 2, 2) in told
    assert ("rows", 7, 7) in told
    told.clear()
    pegsynth.PeGS(method="mi").fit(data, schema, progress=listen)
    assert ("models", 2, 2) in told
    told.clear()
    pegsynth.evaluate(data, made, schema, progress=listen)
    assert "risk" in {stage for stage, _, _ in told}
