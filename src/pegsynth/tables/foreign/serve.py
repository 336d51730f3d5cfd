"""The process that reads one file: requests in on standard input, answers out.

A request is a line of JSON. ``describe`` is answered with a line of JSON; ``rows`` with a line, an
Arrow stream, and a line. An answer that begins with an error is the last one. What a library
raises ends the process, which is answer enough. Whatever is printed goes nowhere: it may hold
values of the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from pegsynth.tables.foreign import Asked, Described, ForeignError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_MEMORY = 16 << 30


class Source(Protocol):
    """A table in a file."""

    def describe(self) -> Described:
        """Return what is declared of it."""

    def batches(self, columns: Sequence[str], skip: int, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches of some columns after the first `skip` rows."""

    def row_schema(self, columns: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema of some columns."""


def main() -> int:
    """Serve one client until it goes away."""
    # No core file, which would hold the table; and the machine is not taken down. Windows has no
    # such limits.
    with contextlib.suppress(ImportError):
        import resource

        for what, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, MOST_MEMORY)):
            _, hard = resource.getrlimit(what)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(what, (most, hard))
    output = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    with contextlib.suppress(BrokenPipeError):
        try:
            source = opened(Asked(**json.loads(sys.stdin.buffer.readline())))
            _say(output, {"ready": True})
            for line in sys.stdin.buffer:
                _answer(source, json.loads(line), output)
        except ForeignError as problem:
            _say(output, {"error": problem.code, "names": problem.names})
            return 1
        except MemoryError:
            _say(output, {"error": "too-large", "names": []})
            return 1
        return 0
    # The client went away; Python would complain again at exit.
    os._exit(0)


def opened(asked: Asked) -> Source:
    """Open the file that a request names."""
    module, name = asked.reader.split(":")
    reader: Source = getattr(import_module(f"{__package__}.{module}"), name)(asked)
    return reader


def _answer(source: Source, request: Mapping[str, Any], output: BinaryIO) -> None:
    from pyarrow import ipc

    if request["ask"] == "describe":
        _say(output, asdict(source.describe()))
        return
    columns = request["columns"]
    schema = source.row_schema(columns)
    chosen = source.batches(columns, request["skip"], request["rows"])
    # The first rows are made before the answer begins: what is wrong with them can still be said.
    first = next(chosen, None)
    _say(output, {"rows": True})
    with ipc.new_stream(output, schema) as writer:
        if first is not None:
            writer.write_batch(first)
        for batch in chosen:
            writer.write_batch(batch)
            output.flush()
    _say(output, {"end": True})


def _say(output: BinaryIO, answer: Mapping[str, object]) -> None:
    output.write(json.dumps(answer).encode() + b"\n")
    output.flush()


if __name__ == "__main__":
    sys.exit(main())
