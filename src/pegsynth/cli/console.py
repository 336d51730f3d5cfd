"""What the user sees while work goes on: messages and progress, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pegsynth.errors import escaped
from pegsynth.progress import Progress, quiet

_NOT_ROWS = ("models", "cells", "figures")
"""Stages that count something else than rows."""


def say(text: str) -> None:
    """Print one line for people on standard error."""
    print(escaped(text), file=sys.stderr)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a progress function: a bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield quiet
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Follower(bar)


class _Follower:
    """Turns stage reports into one bar per stage."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._tasks: dict[str, Any] = {}
        self._started: dict[str, tuple[float, int]] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage not in self._tasks or done == 0:
            self._started[stage] = time.monotonic(), done
            self._tasks[stage] = self._bar.add_task(stage, total=total, completed=done, speed="")
        since, before = self._started[stage]
        seconds = time.monotonic() - since
        counted = done > before and seconds > 0 and stage not in _NOT_ROWS
        speed = f"{(done - before) / seconds:,.0f} rows/s" if counted else ""
        # A number of rows that was guessed may be too small.
        total = None if total is None else max(total, done)
        self._bar.update(self._tasks[stage], completed=done, total=total, speed=speed)
