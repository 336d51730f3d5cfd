"""The readers of foreign files in this process, for audits that read thousands of small files.

They are the readers that run in a process of their own otherwise; only the pipe is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import polars as pl

from pegsynth.errors import DataError
from pegsynth.tables import foreign_read
from pegsynth.tables.arrow_read import batch_rows, sliced
from pegsynth.tables.foreign import Asked, ForeignError, serve
from pegsynth.tables.reader import Wanted


class InThisProcess(foreign_read.ForeignProcess):
    """What reads one file, called and not asked."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        try:
            self._opened = serve.opened(asked)
        except ForeignError as problem:
            raise foreign_read.refusal(asked, problem.code, problem.names) from None

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Answer a request for the header."""
        return asdict(self._opened.describe())

    def rows(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield rows."""
        columns = wanted.columns
        batches = self._opened.batches(columns, wanted.skip, batch_rows(len(columns)))
        try:
            yield from sliced(batches, columns)
        except ForeignError as problem:
            raise foreign_read.refusal(self._asked, problem.code, problem.names) from None
        except DataError as error:
            raise DataError(f"{self._asked.path}: {error}") from None

    def kill(self) -> None:
        """Do nothing: there is no process."""

    def close(self) -> None:
        """Do nothing: there is no process."""


@contextmanager
def foreign_here() -> Iterator[None]:
    """Let foreign files be read in this process."""
    before = foreign_read.START
    foreign_read.START = InThisProcess
    try:
        yield
    finally:
        foreign_read.START = before
