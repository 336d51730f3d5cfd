"""Files of SPSS, Stata, SAS, Excel and DuckDB as streams, read by a process of their own.

What crashes there is a file that cannot be read, and no fault of this process. The process is
told what to read and answers with Arrow; `pegsynth.tables.foreign` is what it runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.errors import DataError, ParameterError
from pegsynth.tables.arrow_read import batch_rows, declared_reader, to_polars
from pegsynth.tables.file_kinds import FileKind
from pegsynth.tables.file_sets import File, TableInFile
from pegsynth.tables.foreign import Asked, Described
from pegsynth.tables.reader import TableReader, Wanted, selection_of, unreadable
from pegsynth.tables.streams import STEADY_QUERY, SameRows

COMMAND = ("-P", "-m", "pegsynth.tables.foreign.serve")
_LEAVING_SECONDS = 5.0


@dataclass(frozen=True)
class ForeignTable:
    """What is to be read; see `Asked`."""

    file: Path
    kind: FileKind
    table: str | None = None
    query: str | None = field(default=None, repr=False)
    encoding: str | None = None

    @property
    def asked(self) -> Asked:
        """What the process is told."""
        path = str(self.file.absolute())
        return Asked(self.kind.opener, path, self.kind.name, self.table, self.query, self.encoding)


def described(source: ForeignTable) -> Described:
    """Return what the header of a file declares; no row is read where the format allows that."""
    process = START(source)
    try:
        return Described(**process.ask({"ask": "describe"}))
    finally:
        process.close()


def open_foreign(file: File, kind: FileKind, chosen: TableInFile, encoding: str) -> TableReader:
    """Open a file; the process that reads it lasts as long as the reader."""
    if not isinstance(file, Path):
        raise DataError(
            f"{file}: {kind.foreign} file is read from this machine; copy it here first"
        )
    if chosen.table is not None and not kind.tables:
        raise ParameterError("--table goes with databases and Excel workbooks; leave it out")
    if chosen.query is not None and not kind.queries:
        raise ParameterError("--query goes with databases; leave it out")
    source = ForeignTable(file, kind, chosen.table, chosen.query, encoding or None)
    process = START(source)
    part = ForeignPart(source, process)
    steady = SameRows(part, str(file), STEADY_QUERY, placed=True)
    try:
        found = Described(**process.ask({"ask": "describe"}))
        rows = part if source.query is None else steady
        reader = declared_reader(found.arrow_schema, str(file), rows, untyped=found.coded)
    except BaseException:
        process.close()
        raise
    return replace(
        reader,
        expected_rows=found.count,
        selection=selection_of(found.relation, query=False, declared=chosen.declared_rowwise),
        interrupt=part.interrupt,
        finish=part.close,
    )


class ForeignPart:
    """The rows of one file."""

    def __init__(self, source: ForeignTable, process: ForeignProcess | None = None) -> None:
        self._source = source
        self._idle = process
        self._busy: ForeignProcess | None = None
        if process is not None:
            weakref.finalize(self, process.close)

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that are wanted."""
        process = self._idle or START(self._source)
        self._idle, self._busy = None, process
        try:
            yield from process.rows(wanted)
            self._idle, process = process, None  # type: ignore[assignment]
        finally:
            self._busy = None
            if process is not None:
                process.close()

    def interrupt(self) -> None:
        """Stop a stream that another thread waits for."""
        if self._busy is not None:
            self._busy.kill()

    def close(self) -> None:
        """End the process, if there is one."""
        if self._idle is not None:
            self._idle.close()
            self._idle = None


def launch() -> Any:
    """Start a process that reads a file."""
    return subprocess.Popen(
        [sys.executable, *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


LAUNCH: Callable[[], Any] = launch


class ForeignProcess:
    """A process that reads one file."""

    def __init__(self, source: ForeignTable) -> None:
        self._source = source
        try:
            self._process = LAUNCH()
        except OSError as error:
            raise unreadable(source.file, error) from None
        try:
            self.ask(asdict(source.asked))
        except BaseException:
            self.close()
            raise

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the line that answers it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise self._broken()
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._broken() from None
        return self._answer(stdout.readline())

    def _answer(self, line: bytes) -> dict[str, Any]:
        if not line:
            raise self._broken()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise refusal(self._source, answer["error"], answer["names"])
        return answer

    def rows(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that the process sends."""
        import pyarrow as pa
        from pyarrow import ipc

        most = batch_rows(len(wanted.columns))
        self.ask({"ask": "rows", "columns": wanted.columns, "skip": wanted.skip, "rows": most})
        try:
            with ipc.open_stream(pa.PythonFile(self._process.stdout, "r")) as stream:
                for batch in stream:
                    for start in range(0, batch.num_rows, most):
                        yield self._frame(batch.slice(start, most))
        except DataError:
            raise
        except (pa.ArrowException, OSError, ValueError):
            raise self._broken() from None
        stdout = self._process.stdout
        self._answer(b"" if stdout is None or stdout.closed else stdout.readline())

    def _frame(self, batch: Any) -> pl.DataFrame:
        import pyarrow as pa

        try:
            return to_polars(batch)
        except DataError as error:
            raise DataError(f"{self._source.file}: {error}") from None
        except (pa.ArrowException, pl.exceptions.PolarsError):
            raise self._broken() from None

    def _broken(self) -> DataError:
        return refusal(self._source, "broken", ())

    def kill(self) -> None:
        """Stop the process at once."""
        with suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """Let the process end, and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(_LEAVING_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()


START: Callable[[ForeignTable], ForeignProcess] = ForeignProcess
"""How a file is opened; audits read in their own process instead."""


def refusal(source: ForeignTable, code: str, names: Sequence[str]) -> DataError:
    """Say what is wrong with a file; nothing that a library said is repeated."""
    file, kind = source.file, source.kind.foreign
    if code == "missing-package":
        return DataError(
            f"{file}: reading {kind} file needs {names[0]}; install it with pip install "
            f"'pegsynth[{source.kind.extra}]'"
        )
    known = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return DataError(
        {
            "too-large": f"{file}: the file unpacks to more than can be held; save it as CSV",
            "no-sheet": f"{file}: there is no sheet {source.table!r}; its sheets are {known}",
            "no-table": f"{file}: there is no such table; there are {known or 'none'}",
            "which-table": f"{file}: say which table is meant with --table; there are {known}",
            "bad-query": f"{file}: DuckDB does not take the query; try it with duckdb",
            "in-use": f"{file}: another program has it open for writing; close that first",
        }.get(
            code,
            f"{file}: the file is truncated or is not {kind} file; write it again, or give it the "
            "extension of what it is",
        )
    )
