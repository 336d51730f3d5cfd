"""How long work tells others how far it is, and who shows it.

Work takes a `Progress` and calls it; it never knows who listens. `shown` turns what a
caller asked for into one: a bar on a terminal or in a notebook, nothing elsewhere, or a
function of the caller's own. The command line and the library show the same bars.
"""

from __future__ import annotations

import html
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pegsynth.errors import ParameterError

Progress = Callable[[str, int, int | None], None]
"""Takes the stage, how many rows are done, and about how many there are, if known."""

_NOT_ROWS = ("models", "cells", "figures")
"""Stages that count something else than rows."""

_PATIENCE = 0.5
"""Seconds before a bar appears: work that is done by then needs none."""

_REDRAWN = 0.2

FILE = "PEGSYNTH_PROGRESS"
"""Environment variable that names a file for programs that watch a command."""


def quiet(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""


@contextmanager
def shown(asked: bool | Progress | None = None) -> Iterator[Progress]:
    """Yield a function that shows progress.

    Parameters
    ----------
    asked
        None shows a bar where somebody can see it, on a terminal or in a notebook; True
        shows one anyway, False none; a function is called with the stage, how much of it
        is done, and about how much there is (None where that is not known).
    """
    if asked is not None and not isinstance(asked, bool):
        if not callable(asked):
            raise ParameterError(
                "progress is True, False, None or a function of the stage, what is done and the "
                "total"
            )
        yield asked
        return
    if asked is None and (file := os.environ.get(FILE)):
        yield _FileProgress(file)
        return
    cell = _notebook_cell()
    if asked is False or (asked is None and cell is None and not sys.stderr.isatty()):
        yield quiet
        return
    follower = Follower(lambda: _TerminalBar() if cell is None else _NotebookBar(cell))
    try:
        yield follower
    finally:
        follower.close()


class _FileProgress:
    """Writes the stage, what is done and the total as one JSON line, a few times a second."""

    def __init__(self, path: str) -> None:
        self._path, self._written, self._stage = path, 0.0, ""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if stage == self._stage and done != total and now - self._written < _REDRAWN:
            return
        self._stage, self._written = stage, now
        # Whoever watches reads the old line or the new one, never a part.
        with open(f"{self._path}.new", "w", encoding="utf-8") as file:
            json.dump([stage, done, total], file)
        os.replace(f"{self._path}.new", self._path)


class Bar(Protocol):
    """Draws the lines of a `Follower`."""

    def draw(self, stage: str, done: int, total: int | None, speed: str, *, new: bool) -> None:
        """Show how far a stage is; a new one gets a line of its own."""

    def close(self) -> None:
        """Take the lines away."""


class Follower:
    """Turns what work reports into lines of a bar, once it takes long.

    Parameters
    ----------
    bar
        Makes the bar when it is first needed.
    """

    def __init__(self, bar: Callable[[], Bar]) -> None:
        self._make = bar
        self._bar: Bar | None = None
        self._since = time.monotonic()
        self._started: dict[str, tuple[float, int]] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Take a report; see `Progress`."""
        now = time.monotonic()
        new = stage not in self._started or done == 0
        if new:
            self._started[stage] = now, done
        if self._bar is None:
            if now - self._since < _PATIENCE:
                return
            self._bar, new = self._make(), True
        since, before = self._started[stage]
        seconds = now - since
        counted = done > before and seconds > 0 and stage not in _NOT_ROWS
        speed = f"{(done - before) / seconds:,.0f} rows/s" if counted else ""
        # A number of rows that was guessed may be too small.
        total = None if total is None else max(total, done)
        self._bar.draw(stage, done, total, speed, new=new)

    def close(self) -> None:
        """Take the bar away, if there is one."""
        if self._bar is not None:
            self._bar.close()


class _TerminalBar:
    """Lines on standard error, by Rich; they vanish at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Lines

        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True, force_jupyter=False)
        self._lines = Lines(*columns, console=console, transient=True)
        self._lines.start()
        self._tasks: dict[str, Any] = {}

    def draw(self, stage: str, done: int, total: int | None, speed: str, *, new: bool) -> None:
        if new or stage not in self._tasks:
            self._tasks[stage] = self._lines.add_task(stage, total=total, speed="")
        self._lines.update(self._tasks[stage], completed=done, total=total, speed=speed)

    def close(self) -> None:
        self._lines.stop()


class _NotebookBar:
    """One line of HTML in the output of a cell, redrawn a few times a second."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._handle = display(_Shown(""), display_id=True)
        self._drawn = 0.0

    def draw(self, stage: str, done: int, total: int | None, speed: str, *, new: bool) -> None:
        now = time.monotonic()
        finished = done == total
        if not new and not finished and now - self._drawn < _REDRAWN:
            return
        self._drawn = now
        size = "" if total is None else f' value="{done}" max="{max(total, 1)}"'
        words = " ".join((stage, f"{done:,}", "" if total is None else f"of {total:,}", speed))
        self._handle.update(_Shown(f"<progress{size}></progress> {html.escape(words)}"))

    def close(self) -> None:
        self._handle.update(_Shown(""))


class _Shown:
    """HTML as notebooks ask for it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


def _notebook_cell() -> Callable[..., Any] | None:
    """Return what displays in the cell of a notebook that runs us; None elsewhere.

    A notebook has loaded IPython long before us; nothing is imported to find out.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from importlib import import_module

    display: Callable[..., Any] = import_module("IPython.display").display
    return display
