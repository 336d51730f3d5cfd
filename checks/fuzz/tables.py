"""Wild tables: Arrow and CSV that are well formed and hold what nobody expects.

Some cells hold `SECRET` and `SECRET_NUMBER`, which no message may repeat. Column names never
do: they are public.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import pickle
import random
import sqlite3
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from checks.fuzz.trees import NUMBERS, TEXTS

SECRET = "SECRET-4711"
SECRET_NUMBER = 47_114_711_471
CANARY = "canary"

COLUMNS = ("a", "b", "c", "n")
NAMES = ("a", "b", "c", "n", "A", "a ", "", "1", "=x", "<script>", "\n", "é", "x" * 300, "\x1b[31m")
VALID = {"a": ("x", "y", "z"), "b": ("p", "q", None), "c": ("=1+1", "k"), "n": (1.5, 20.0, 99.5)}


class Touch:
    """Runs a command when it is unpickled, which nothing here may do."""

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, (f"touch {CANARY}",)


def pickled() -> bytes:
    """Return a pickle that leaves a file behind when it is read."""
    return pickle.dumps(Touch())


def text(source: random.Random) -> str:
    """Return a cell of text, often the secret."""
    if source.random() < 0.4:
        return SECRET + source.choice(("", "é", ",", '"', "\n", " " * 40))
    found = source.choice(TEXTS)
    return found.encode("utf-8", "ignore").decode()


def number(source: random.Random) -> float | int:
    """Return a number that fits 64 bits, often the secret one."""
    if source.random() < 0.4:
        return SECRET_NUMBER
    found = source.choice(NUMBERS)
    return found if -(2**63) <= found < 2**63 else float("inf")


def _times(source: random.Random) -> list[Any]:
    return [
        source.choice((dt.datetime(2020, 1, 1), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
        for _ in range(3)
    ]


def _whole(source: random.Random, bits: int) -> list[int | None]:
    picks = (0, 1, -1, SECRET_NUMBER, (1 << bits - 1) - 1, -(1 << bits - 1), None)
    limit = 1 << bits - 1
    return [v if v is None or -limit <= v < limit else 1 for v in source.choices(picks, k=3)]


COLUMN_MAKERS: tuple[Callable[[random.Random], pa.Array], ...] = (
    lambda s: pa.array([text(s) for _ in range(3)]),
    lambda s: pa.array([text(s), None, "x"], pa.large_string()),
    lambda s: pa.array([text(s), "x", "x"], pa.string_view()),
    lambda s: pa.array([text(s), "x", None]).dictionary_encode(),
    lambda s: pa.array([[text(s)], None, []]),
    lambda s: pa.array([{"a": text(s)}] * 3),
    lambda s: pa.array([[(text(s), 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    lambda s: pa.array([text(s).encode(), b"\xff", None]),
    lambda s: pa.array([b"ab"] * 3, pa.binary(2)),
    lambda s: pa.array([float(number(s)) for _ in range(3)]),
    lambda s: pa.array([1.5, float("nan"), None], pa.float32()),
    lambda s: pa.array([1.5, 2.0, None], pa.float32()).cast(pa.float16()),
    *((lambda s, b=b: pa.array(_whole(s, b), getattr(pa, f"int{b}")())) for b in (8, 16, 32, 64)),
    lambda s: pa.array([0, (1 << 64) - 1, SECRET_NUMBER], pa.uint64()),
    lambda s: pa.array([True, None, False]),
    lambda s: pa.nulls(3),
    lambda s: pa.array([decimal.Decimal(SECRET_NUMBER), None, decimal.Decimal("1.5")]),
    lambda s: pa.array([decimal.Decimal(1)] * 3, pa.decimal256(70, 3)),
    lambda s: pa.array([1, SECRET_NUMBER % 10**6, None], pa.date32()),
    lambda s: pa.array([-(2**31), 2**31 - 1, None], pa.int32()).cast(pa.date32()),
    lambda s: pa.array([0, 86_400_000, None], pa.int64()).cast(pa.date64()),
    lambda s: pa.array(_times(s), pa.timestamp("us")),
    lambda s: pa.array([2**62, -(2**62), None], pa.int64()).cast(pa.timestamp("s")),
    lambda s: pa.array([0, 1, None], pa.timestamp("ns", tz=s.choice(("UTC", "Nowhere/City", "é")))),
    lambda s: pa.array([0, 86_399, None], pa.time32("s")),
    lambda s: pa.array([-5, 2**62, None], pa.int64()).cast(pa.time64("us")),
    lambda s: pa.array([1, SECRET_NUMBER, None], pa.duration("us")),
    lambda s: pa.array([(1, 2, 3), None, (0, 0, 0)], pa.month_day_nano_interval()),
    lambda s: pa.array([1, 2, None]).dictionary_encode(),
    lambda s: pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), [text(s), None]),
    lambda s: pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.uint64()), ["x", "x"]),
    lambda s: pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([text(s), "x"])),
    lambda s: pa.array([text(s)] * 3, pa.string()).cast(pa.large_binary()),
)


def any_column(source: random.Random) -> pa.Array:
    """Make a column of three rows of any type that Arrow can make here."""
    while True:
        try:
            return source.choice(COLUMN_MAKERS)(source)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            continue


def arrow_table(source: random.Random) -> pa.Table:
    """Make a table with wild columns among good ones, and sometimes none, or twice the same."""
    names = (
        list(COLUMNS)
        if source.random() < 0.7
        else source.choices(NAMES, k=source.choice((0, 1, 4)))
    )
    columns = []
    for name in names:
        if name in VALID and source.random() < 0.6:
            columns.append(pa.array(source.choices(VALID[name], k=3)))
        else:
            columns.append(any_column(source))
    fields = [
        pa.field(name, column.type, metadata=_field_metadata(source))
        for name, column in zip(names, columns, strict=True)
    ]
    schema = pa.schema(fields, metadata=_metadata(source))
    table = pa.Table.from_arrays(columns, schema=schema)
    return table.slice(0, source.choice((0, 1, 3, 3, 3, 3))) if columns else table


def _metadata(source: random.Random) -> dict[bytes, bytes] | None:
    if source.random() < 0.8:
        return None
    return {
        source.choice((b"pandas", b"ARROW:schema", b"pegsynth", b"org.apache.spark", b"\xff")): (
            source.choice((b"{", b"{}", b'{"columns": 1}', pickled(), b"\xff\xfe", b"[" * 9999))
        )
    }


def _field_metadata(source: random.Random) -> dict[bytes, bytes] | None:
    if source.random() < 0.95:
        return None
    names = (b"arrow.py_extension_type", b"arrow.json", b"arrow.uuid", b"arrow.fixed_shape_tensor")
    content = source.choice((pickled(), b"{}", b"", b"{"))
    return {b"ARROW:extension:name": source.choice(names), b"ARROW:extension:metadata": content}


def parquet_bytes(table: pa.Table, source: random.Random) -> bytes:
    """Write a table as Parquet, in one of the ways there are."""
    while True:
        sink = io.BytesIO()
        try:
            pq.write_table(
                table,
                sink,
                compression=source.choice(("none", "zstd", "snappy", "gzip")),
                use_dictionary=source.random() < 0.7,
                version=source.choice(("1.0", "2.4", "2.6")),
                data_page_version=source.choice(("1.0", "2.0")),
                row_group_size=source.choice((1, 2, 100)),
                store_schema=source.random() < 0.8,
            )
            return sink.getvalue()
        except (pa.ArrowException, ValueError, TypeError, OSError):
            table = pa.table({"a": ["x"], "b": [text(source)], "c": ["k"], "n": [1.5]})


def arrow_bytes(table: pa.Table, source: random.Random) -> bytes:
    """Write a table as an Arrow file or stream."""
    sink = io.BytesIO()
    options = ipc.IpcWriteOptions(compression=source.choice((None, None, "zstd", "lz4")))
    make = ipc.new_file if source.random() < 0.7 else ipc.new_stream
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def csv_bytes(source: random.Random) -> bytes:
    """Write lines that are a CSV file, or nearly one."""
    names = (
        list(COLUMNS) if source.random() < 0.7 else source.choices(NAMES, k=source.randint(1, 5))
    )
    lines = [names]
    for _ in range(source.choice((0, 1, 3, 8))):
        row = [str(source.choice(VALID.get(n, ("x",)))) for n in names]
        for place in range(len(row)):
            if source.random() < 0.15:
                row[place] = source.choice((text(source), str(number(source))))
        lines.append(row if source.random() < 0.93 else row[:-1] or ["", ""])
    end = source.choice(("\n", "\n", "\n", "\r\n", "\r"))
    separator = source.choice((",",) * 12 + (";", "\t", ", "))
    body = end.join(separator.join(_cell(cell, source) for cell in line) for line in lines)
    mark = "\ufeff" if source.random() < 0.05 else ""
    coding = source.choice(("utf-8",) * 12 + ("utf-16", "latin-1", "utf-32"))
    return (mark + body + source.choice((end, end, "", end * 2))).encode(coding, "replace")


def _cell(cell: str, source: random.Random) -> str:
    risky = any(mark in cell for mark in ',"\n\r')
    if source.random() < (0.9 if risky else 0.1):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def sqlite_bytes(source: random.Random) -> bytes:
    """Make a database of one table `t` with wild values in it, or a view instead."""
    connection = sqlite3.connect(":memory:")
    kinds = source.choices(("TEXT", "INTEGER", "REAL", "BLOB", "", "DATE", "ANY", "BOOLEAN"), k=4)
    columns = ", ".join(f"{n} {k}" for n, k in zip(COLUMNS, kinds, strict=True))
    name = source.choice(("t", "t", "t", "u"))
    connection.execute(f"CREATE TABLE {name} ({columns})")
    for _ in range(source.choice((0, 1, 3))):
        row = [_sqlite_value(n, source) for n in COLUMNS]
        connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", row)
    if name == "u":
        connection.execute(source.choice(VIEWS))
    connection.commit()
    found = connection.serialize()
    connection.close()
    return found


VIEWS = (
    "CREATE VIEW t AS SELECT * FROM u",
    "CREATE VIEW t AS SELECT a, b, c, 1/0 AS n FROM u",
    "CREATE VIEW t AS SELECT * FROM missing",
    "CREATE VIEW t AS WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r LIMIT 99) "
    "SELECT a, a AS b, a AS c, a AS n FROM r",
    "CREATE VIEW t AS SELECT load_extension('x') AS a, b, c, n FROM u",
    "CREATE VIEW t AS SELECT zeroblob(100) AS a, b, c, n FROM u",
    "CREATE VIEW t AS SELECT writefile('canary', a) AS a, b, c, n FROM u",
)


def _sqlite_value(name: str, source: random.Random) -> Any:
    if source.random() < 0.5:
        return source.choice(VALID[name])
    value = source.choice((text(source), number(source), b"\xff\0", None, SECRET_NUMBER))
    return value.replace("\0", "") if isinstance(value, str) else value
