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
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.errors import DataError, ParameterError
from pegsynth.tables.arrow_read import batch_rows, declared_reader, sliced
from pegsynth.tables.file_kinds import KINDS, FileKind
from pegsynth.tables.file_sets import File, TableInFile
from pegsynth.tables.foreign import Asked, Described
from pegsynth.tables.reader import TableReader, Wanted, selection_of, unreadable
from pegsynth.tables.streams import STEADY_QUERY, SameRows

COMMAND = ("-P", "-m", "pegsynth.tables.foreign.serve")
_LEAVING_SECONDS = 5.0


def described(file: Path, kind: FileKind) -> Described:
    """Return what the header of a file declares; no row is read where the format allows that."""
    part = ForeignPart(Asked(kind.opener, str(file), kind.name))
    try:
        return part.described()
    finally:
        part.close()


def open_foreign(file: File, kind: FileKind, chosen: TableInFile, encoding: str) -> TableReader:
    """Open a file; the process that reads it lasts as long as the reader."""
    if not isinstance(file, Path):
        raise DataError(
            f"{file}: {kind.foreign} file is read from this machine; copy it here first"
        )
    if chosen.table is not None and not kind.tables:
        raise ParameterError("--table requires a database or an Excel workbook; remove it")
    if chosen.query is not None and not kind.queries:
        raise ParameterError("--query requires a database; remove it")
    asked = Asked(kind.opener, str(file), kind.name, chosen.table, chosen.query, encoding or None)
    part = ForeignPart(asked)
    try:
        found = part.described()
        steady = SameRows(part, str(file), STEADY_QUERY, placed=True)
        rows = part if asked.query is None else steady
        reader = declared_reader(found.arrow_schema, str(file), rows, untyped=found.coded)
    except BaseException:
        part.close()
        raise
    return replace(
        reader,
        expected_rows=found.count,
        selection=selection_of(found.relation, query=False, declared=chosen.declared_rowwise),
        interrupt=part.interrupt,
        finish=part.close,
    )


class ForeignPart:
    """The rows of one file, and the process that waits to read them once more."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        process = START(asked)
        self._idle: ForeignProcess | None = process
        self._busy: ForeignProcess | None = None
        weakref.finalize(self, process.close)

    def described(self) -> Described:
        """Return what the header of the file declares."""
        self._idle = self._idle or START(self._asked)
        return Described(**self._idle.ask({"ask": "describe"}))

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that are wanted; the process of a stream that was left is not used again.

        A second stream at the same time gets a process of its own.
        """
        process = self._busy = self._idle or START(self._asked)
        self._idle = None
        whole = False
        try:
            yield from process.rows(wanted)
            whole = True
        finally:
            self._busy = None
            if whole:
                self._idle = process
            else:
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


def launch() -> subprocess.Popen[bytes]:
    """Start a process that reads a file."""
    return subprocess.Popen(
        [sys.executable, *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


LAUNCH: Callable[[], subprocess.Popen[bytes]] = launch


class ForeignProcess:
    """A process that reads one file."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        try:
            self._process = LAUNCH()
        except OSError as error:
            raise unreadable(asked.path, error) from None
        try:
            self.ask(asdict(replace(asked, path=str(Path(asked.path).absolute()))))
        except BaseException:
            self.close()
            raise

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Send a request and return the line that answers it."""
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except (AttributeError, BrokenPipeError, ValueError):
            raise refusal(self._asked, "broken") from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        stdout = self._process.stdout
        line = b"" if stdout is None or stdout.closed else stdout.readline()
        if not line:
            raise refusal(self._asked, "broken")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise refusal(self._asked, answer["error"], answer["names"])
        return answer

    def rows(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that the process sends."""
        import pyarrow as pa
        from pyarrow import ipc

        most = batch_rows(len(wanted.columns))
        self.ask({"ask": "rows", "columns": wanted.columns, "skip": wanted.skip, "rows": most})
        try:
            with ipc.open_stream(pa.PythonFile(self._process.stdout, "r")) as stream:
                yield from sliced(stream, wanted.columns)
        except DataError as error:
            raise DataError(f"{self._asked.path}: {error}") from None
        except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError):
            raise refusal(self._asked, "broken") from None
        self._answer()

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


START: Callable[[Asked], ForeignProcess] = ForeignProcess
"""How a file is opened; audits read in their own process instead."""


def refusal(asked: Asked, code: str, names: Sequence[str] = ()) -> DataError:
    """Say what is wrong with a file; nothing that a library said is repeated."""
    kind = KINDS[asked.kind]
    known = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    said = {
        "missing-package": f"reading {kind.foreign} file needs {known}; install it with pip "
        f"install 'pegsynth[{kind.extra}]'",
        "too-large": "the file unpacks to more than can be held; save it as CSV",
        "no-sheet": f"there is no sheet {asked.table!r}; its sheets are {known}",
        "no-table": f"there is no such table; there are {known or 'none'}",
        "which-table": f"say which table is meant with --table; there are {known}",
        "bad-query": "DuckDB does not take the query; try it with duckdb",
        "in-use": "another program has it open for writing; close that first",
        "broken": f"the file is truncated or is not {kind.foreign} file; write it again, or give "
        "it the extension of what it is",
    }
    return DataError(f"{asked.path}: {said.get(code, said['broken'])}")
