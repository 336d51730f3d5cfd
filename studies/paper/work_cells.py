"""Many independent cells of work, in parallel and resumable.

A `Cell` is one way of making rows (`arm`) at one level of its budget, repeated once. `run`
does all cells of a grid on threads and returns their values in the order of the grid,
whatever the order in which they were finished. Every cell draws from a random stream of its
own that its name fixes, so a run that was killed and continued, or ran on more threads,
gives the same values.

Threads and not processes: drawing and counting release the interpreter's lock, the fitted
models are shared without a copy, and a killed run leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegsynth.errors import ParameterError, PegsynthError
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from studies.paper.cell_file import CellFile, CellValues, open_checkpoint, plain_values

Work = Callable[["Cell", RandomStream], CellValues]

STAGE = "cells"
REASON = "reason"
"""Name under which a cell says why it has no values."""


@dataclass(frozen=True)
class Cell:
    """One piece of work.

    Parameters
    ----------
    arm
        Name of a way of making rows.
    level
        Its budget, or another quantity that the arm varies; None when there is none.
    repeat
        Number of the repeat, from 0.
    """

    arm: str
    level: float | None
    repeat: int

    @property
    def name(self) -> str:
        """The name that fixes its random stream and its line in a checkpoint."""
        return f"{self.arm} | {'' if self.level is None else repr(self.level)} | {self.repeat}"


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Keep linear algebra on the thread that asks for it.

    Its tables are small here: more threads would wait for each other, and could change the
    last digit of a sum.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def run(
    cells: Sequence[Cell],
    work: Work,
    *,
    seed: int,
    checkpoint: str | Path | None = None,
    configuration: Mapping[str, Any] | None = None,
    mode: int = 0o644,
    threads: int = 1,
    progress: Progress = quiet,
) -> dict[Cell, CellValues]:
    """Do the work of all cells that are not finished yet.

    Parameters
    ----------
    cells
        The grid; no two of the same name.
    work
        What to do for a cell, with a stream of its own; gives named values. Where it cannot
        be done (a budget that cannot be met, a model that cannot be fitted) the cell gets the
        reason instead of values.
    seed
        Fixes the streams of all cells.
    checkpoint
        File of finished cells, to continue from and to add to; None keeps them in memory.
    configuration
        What the values depend on besides the cell's name and the seed; a checkpoint of
        another configuration is refused.
    mode
        Permissions of a new checkpoint.
    threads
        Cells at a time; the values do not depend on it.
    """
    if len({cell.name for cell in cells}) < len(cells):
        raise ParameterError("two cells of the grid have the same name")
    if threads < 1:
        raise ParameterError("threads must be at least 1")
    settings = {"seed": seed, **(configuration or {})}
    with _opened(checkpoint, settings, mode) as book:
        todo = [cell for cell in cells if cell.name not in book.finished]
        done = len(cells) - len(todo)
        progress(STAGE, done, len(cells))
        pool = ThreadPoolExecutor(threads)
        try:
            futures = {pool.submit(_do, cell, work, seed): cell for cell in todo}
            for future in as_completed(futures):
                book.add(futures[future].name, future.result())
                done += 1
                progress(STAGE, done, len(cells))
        finally:
            # After an error or a signal the remaining cells are not needed.
            pool.shutdown(wait=True, cancel_futures=True)
        return {cell: book.finished[cell.name] for cell in cells}


def _opened(
    checkpoint: str | Path | None, settings: Mapping[str, Any], mode: int
) -> AbstractContextManager[CellFile | _Memory]:
    if checkpoint is None:
        return nullcontext(_Memory())
    return open_checkpoint(checkpoint, settings, mode=mode)


class _Memory:
    """Finished cells without a file."""

    def __init__(self) -> None:
        self.finished: dict[str, CellValues] = {}

    def add(self, cell: str, values: CellValues) -> None:
        self.finished[cell] = plain_values(values)


def _do(cell: Cell, work: Work, seed: int) -> CellValues:
    try:
        return work(cell, RandomStream(f"study {seed} {cell.name}"))
    except PegsynthError as error:
        return {REASON: str(error)}
