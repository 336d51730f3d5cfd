"""The doors of this process: every kind of file, database and dataframe that is read here.

Batches, row groups and blocks are made small, so that neighbours in a table are read
together or apart.
"""

from __future__ import annotations

import csv
import io
import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl

from checks.doors.comparing import Door
from checks.doors.office import OFFICE_DOORS
from checks.doors.tables import (
    ANY,
    FOLDER,
    ROW,
    TYPED,
    WHOLE,
    Holding,
    Pair,
    is_any,
    is_apart,
    is_sql,
)
from pegsynth.tables.database import DatabaseTable

Rows = Sequence[tuple[Any, ...]]

_NO_GAP = -(1 << 62) - 1
"""What stands for a gap in columns that have none; no other value is the same."""

# Those that convert nothing come more often.
SQLITE_TYPES = (
    *("", "", "", "BLOB", "TEXT", "INTEGER", "REAL", "NUMERIC", "DATE", "BOOLEAN", "DECIMAL(10,2)"),
    *("VARCHAR(5)", "DOUBLE", "ANY"),
)
PLAIN_QUERIES = (
    "",
    "WHERE row <> '1' AND person IS NOT NULL",
    "WHERE 1 = 1",
    "AS s WHERE s.row IN ('0', '1', '2', '39')",
    "WHERE length(row) IN (1, 2)",
)
HOSTILE_QUERIES = (
    "WHERE row IN lonely",
    "WHERE row NOT IN lonely",
    'WHERE row IN "lonely"',
    "WHERE row IN main.lonely",
    "WHERE row IN(SELECT row FROM lonely)",
    "WHERE rowid < 5",
    "ORDER BY row LIMIT 3",
    "WHERE person = (SELECT max(person) FROM stays)",
    "GROUP BY person",
)
"""What a query may select rows by; the hostile ones look at other rows, and must not pass."""


def arrow_table(pair: Pair, rows: Rows, names: Sequence[str] | None = None) -> Any:
    """Return rows as an Arrow table of the types they are held in."""
    import pyarrow as pa

    held = list(pair.held)
    columns = {
        name: pa.array([row[held.index(name)] for row in rows], arrow_type(pair.held[name]))
        for name in names or held
    }
    return pa.table(columns)


def arrow_type(kind: str) -> Any:
    """Return the Arrow type of a name."""
    import pyarrow as pa

    if kind == "dictionary":
        return pa.dictionary(pa.int32(), pa.string())
    if kind.startswith("decimal"):
        digits, scale = kind[len("decimal128(") : -1].split(",")
        return pa.decimal128(int(digits), int(scale))
    if kind.startswith("timestamp"):
        unit, _, zone = kind[len("timestamp[") : -1].partition(", tz=")
        return pa.timestamp(unit, zone or None)
    return {"double": pa.float64(), "float": pa.float32(), "bool": pa.bool_()}.get(
        kind
    ) or pa.type_for_alias(kind)


def _split(pair: Pair, rows: Rows) -> Iterator[tuple[int, Rows, list[str]]]:
    """Deal rows to files: those of the table always alike, the row more to any, or to its own."""
    half = max(1, len(pair.rows) // 2)
    files: list[list[tuple[Any, ...]]] = [[], [], [], []]
    for row in rows:
        own = row is pair.extra
        files[pair.pick(2, 4) if own else 1 + int(int(row[0]) >= half)].append(row)
    for number, file in enumerate(files):
        # The file of the row more may have its columns in another order.
        turned = number in (0, 3) and pair.pick(3, 2)
        if file:
            yield number, file, list(pair.held)[:: -1 if turned else 1]


def _csv_bytes(pair: Pair, rows: Rows, names: Sequence[str]) -> bytes:
    """Return CSV text; a null is an empty field, and quotes are as the style says."""
    held = list(pair.held)
    lines = [",".join(names)]
    for row in rows:
        cells = []
        for name in names:
            value = row[held.index(name)]
            text = io.StringIO()
            plain = pair.pick(1, 2) == 0 and value
            csv.writer(text, quoting=csv.QUOTE_MINIMAL if plain else csv.QUOTE_ALL).writerow(
                [value]
            )
            cells.append("" if value is None else text.getvalue()[:-2])
        lines.append(",".join(cells))
    return ("\n".join(lines) + "\n").encode()


def _csv_file(folder: Path, pair: Pair, rows: Rows) -> str:
    path = folder / "table.csv"
    path.write_bytes(_csv_bytes(pair, rows, list(pair.held)))
    return str(path)


def _csv_folder(folder: Path, pair: Pair, rows: Rows) -> str:
    for number, part, names in _split(pair, rows):
        (folder / f"{number}.csv").write_bytes(_csv_bytes(pair, part, names))
    return str(folder)


def _by_folder(folder: Path, pair: Pair, rows: Rows, extension: str) -> Iterator[tuple[Path, Rows]]:
    index = list(pair.held).index(FOLDER)
    names: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        value = row[index]
        text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value[:60], safe=" ")
        names.setdefault(text, []).append(row)
    for name, part in names.items():
        below = folder / f"{FOLDER}={name}"
        below.mkdir(parents=True)
        yield below / f"part.{extension}", part


def _csv_partitions(folder: Path, pair: Pair, rows: Rows) -> str:
    inside = [name for name in pair.held if name != FOLDER]
    for path, part in _by_folder(folder, pair, rows, "csv"):
        path.write_bytes(_csv_bytes(pair, part, inside))
    return str(folder)


def _write_parquet(path: Path, table: Any, pair: Pair) -> None:
    import pyarrow.parquet as pq

    pq.write_table(
        table,
        path,
        row_group_size=(1, 2, 1000)[pair.pick(1, 3)],
        use_dictionary=bool(pair.pick(4, 2)),
    )


def _parquet_file(folder: Path, pair: Pair, rows: Rows) -> str:
    _write_parquet(folder / "table.parquet", arrow_table(pair, rows), pair)
    return str(folder / "table.parquet")


def _parquet_folder(folder: Path, pair: Pair, rows: Rows) -> str:
    for number, part, names in _split(pair, rows):
        _write_parquet(folder / f"{number}.parquet", arrow_table(pair, part, names), pair)
    return str(folder)


def _parquet_partitions(folder: Path, pair: Pair, rows: Rows) -> str:
    inside = [name for name in pair.held if name != FOLDER]
    for path, part in _by_folder(folder, pair, rows, "parquet"):
        _write_parquet(path, arrow_table(pair, part, inside), pair)
    return str(folder)


def _arrow_file(folder: Path, pair: Pair, rows: Rows) -> str:
    from pyarrow import ipc

    path = folder / "table.arrow"
    table = arrow_table(pair, rows)
    new = ipc.new_file if pair.pick(4, 2) else ipc.new_stream
    with path.open("wb") as file, new(file, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=(1, 3, 1000)[pair.pick(1, 3)]):
            writer.write_batch(batch)
    return str(path)


def sqlite_file(folder: Path, pair: Pair, rows: Rows) -> str:
    """Write rows into a table of a new database; return its address."""
    path = folder / "table.db"
    described = ", ".join(f'"{name}" {_declared(kind)}' for name, kind in pair.held.items())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute(f"CREATE TABLE stays ({described})")
        marks = ", ".join("?" * len(pair.held))
        connection.executemany(f"INSERT INTO stays VALUES ({marks})", rows)
        connection.execute(
            "CREATE VIEW lonely AS SELECT row FROM stays GROUP BY person HAVING count(*) = 1"
        )
    return f"sqlite:///{path}"


def _declared(kind: str) -> str:
    return kind.partition(" ")[2] if is_any(kind) else "TEXT"


def _sqlite_table(folder: Path, pair: Pair, rows: Rows) -> DatabaseTable:
    return DatabaseTable(sqlite_file(folder, pair, rows), table="stays")


def _sqlite_query(folder: Path, pair: Pair, rows: Rows) -> DatabaseTable:
    names = ", ".join(f'"{name}"' for name in pair.held)
    ends = (*PLAIN_QUERIES, *HOSTILE_QUERIES)
    query = f"SELECT {names} FROM stays {ends[pair.pick(2, len(ends))]}"
    return DatabaseTable(sqlite_file(folder, pair, rows), query=query)


def polars_frame(pair: Pair, rows: Rows) -> pl.DataFrame:
    """Return rows as a Polars frame of the types they are held in."""
    frame = pl.from_arrow(arrow_table(pair, rows))
    if not isinstance(frame, pl.DataFrame):
        raise TypeError
    return frame


def _lazy(folder: Path, pair: Pair, rows: Rows) -> pl.LazyFrame:
    if pair.pick(4, 2):
        path = folder / "table.parquet"
        _write_parquet(path, arrow_table(pair, rows), pair)
        return pl.scan_parquet(path)
    return polars_frame(pair, rows).lazy()


def _lazy_reordered(folder: Path, pair: Pair, rows: Rows) -> pl.LazyFrame:
    """Return a lazy frame whose rows come in any order, another one every time."""
    frame = polars_frame(pair, rows)
    names = frame.columns
    middle = max(2, len(names) // 2)
    match pair.pick(2, 4):
        case 0:
            return frame.lazy().unique(maintain_order=False)
        case 1:
            return frame.lazy().group_by(names).agg(pl.len()).drop("len")
        case 2:
            left, right = frame.select(names[:middle]), frame.select(ROW, *names[middle:])
            return left.lazy().join(right.lazy(), on=ROW).select(names)
        case _:
            return frame.lazy().map_batches(lambda each: each.sample(fraction=1.0, shuffle=True))


def _pandas(backend: str) -> Any:
    def build(folder: Path, pair: Pair, rows: Rows) -> Any:
        import pandas as pd

        columns = {}
        for index, (name, kind) in enumerate(pair.held.items()):
            values = [row[index] for row in rows]
            columns[name] = pandas_column(values, kind, backend)
        return pd.DataFrame(columns)

    return build


def pandas_column(values: list[Any], kind: str, backend: str) -> Any:
    """Return values as a pandas column of one backend."""
    import pandas as pd

    if backend == "pyarrow":
        return pd.Series(values, dtype=pd.ArrowDtype(arrow_type(kind)))
    if backend == "category":
        return _categories(values, kind)
    if backend in ("nullable", "numpy") and kind in WHOLE:
        return _whole_numbers(values, kind, nullable=backend == "nullable")
    zone = kind.partition("tz=")[2].rstrip("]")
    dtypes = {
        "object": {},
        "nullable": {"double": "Float64", "float": "Float32", "bool": "boolean"},
        "numpy": {
            **{"double": "float64", "float": "float32", "string": "str"},
            **{"timestamp[us]": "datetime64[us]", "timestamp[ns]": "datetime64[ns]"},
            kind if zone else "": f"datetime64[us, {zone}]",
        },
    }[backend]
    return pd.Series(values, dtype=object if backend == "object" else dtypes.get(kind, kind))


def _categories(values: list[Any], kind: str) -> Any:
    """Return a column of categories whose own type is declared."""
    import pandas as pd

    kinds = {"string": "str", "int64": "int64", "double": "float64"}
    listed = [each for each in dict.fromkeys(values) if not _is_gap(each)]
    codes = [-1 if _is_gap(each) else listed.index(each) for each in values]
    index = pd.Index(listed, dtype=kinds.get(kind, object))
    return pd.Series(pd.Categorical.from_codes(codes, categories=index))


def _whole_numbers(values: list[Any], kind: str, *, nullable: bool) -> Any:
    """Return a column of whole numbers; a list would be taken for floats if one is large."""
    import pandas as pd

    if not nullable:
        return pd.Series(np.array([_NO_GAP if v is None else v for v in values], dtype=kind))
    numbers = np.array([value or 0 for value in values], dtype=kind)
    return pd.Series(
        pd.arrays.IntegerArray(numbers, np.array([v is None for v in values], dtype=bool))
    )


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _pyarrow(folder: Path, pair: Pair, rows: Rows) -> Any:
    import pyarrow as pa

    table = arrow_table(pair, rows)
    batches = table.to_batches(max_chunksize=(1, 3, 1000)[pair.pick(1, 3)])
    match pair.pick(2, 4):
        case 0:
            return table
        case 1:
            return pa.Table.from_batches(batches, schema=table.schema)
        case 2:
            return pa.RecordBatchReader.from_batches(table.schema, batches)
        case _:
            return next(iter(table.combine_chunks().to_batches()), table)


class Exported:
    """A table that gives nothing but its Arrow stream, as other libraries' tables do."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the stream of the table, a new one every time."""
        return self._table.__arrow_c_stream__(requested_schema)


def _arrow_stream(folder: Path, pair: Pair, rows: Rows) -> Exported:
    import pyarrow as pa

    table = arrow_table(pair, rows)
    batches = table.to_batches(max_chunksize=(1, 3, 1000)[pair.pick(1, 3)])
    return Exported(pa.Table.from_batches(batches, schema=table.schema))


def _dataset(folder: Path, pair: Pair, rows: Rows) -> Any:
    from pyarrow import dataset

    if pair.pick(4, 2):
        return dataset.dataset(arrow_table(pair, rows))
    half = max(1, len(rows) // 2)
    for number, part in enumerate((rows[:half], rows[half:])):
        if part:
            _write_parquet(folder / f"{number}.parquet", arrow_table(pair, part), pair)
    return dataset.dataset(folder)


def _chunks(folder: Path, pair: Pair, rows: Rows) -> Any:
    """Return what makes a stream of chunks; the row more stands in a chunk of others, or alone."""
    size = (1, 2, 5)[pair.pick(1, 3)]
    as_arrow = pair.pick(2, 2)

    def stream() -> Iterator[Any]:
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            yield arrow_table(pair, part) if as_arrow else polars_frame(pair, part)

    return stream


def _pandas_chunks(folder: Path, pair: Pair, rows: Rows) -> Any:
    size = (1, 2, 5)[pair.pick(1, 3)]
    build = _pandas("object")
    return lambda: (
        build(folder, pair, rows[first : first + size]) for first in range(0, len(rows), size)
    )


_NULLABLE = ("string", "int64", "int8", "uint64", "double", "float", "bool")
_NUMPY = ("string", "int64", "double", "float", "timestamp[us]", "timestamp[ns]")
_ZONED = ("timestamp[us, tz=Europe/Berlin]",)
_ANY = Holding((ANY,))
_SQL = Holding(tuple(f"{ANY} {kind}" for kind in SQLITE_TYPES), among=is_sql)
_LISTED = Holding((ANY, "string", "int64", "double"), among=is_apart)

DOORS: tuple[Door, ...] = (
    Door("CSV", Holding(("string",)), _csv_file),
    Door("CSV folder", Holding(("string",)), _csv_folder),
    Door("CSV partitions", Holding(("string",), folder=True), _csv_partitions),
    Door("Parquet", Holding(TYPED), _parquet_file),
    Door("Parquet folder", Holding(TYPED), _parquet_folder),
    Door("Parquet partitions", Holding(TYPED, folder=True), _parquet_partitions),
    Door("Arrow", Holding(TYPED), _arrow_file),
    Door("SQLite table", _SQL, _sqlite_table, needs="adbc_driver_sqlite"),
    Door("SQLite query", _SQL, _sqlite_query, needs="adbc_driver_sqlite"),
    Door("pandas, NumPy", Holding((*_NUMPY, *_ZONED)), _pandas("numpy"), needs="pandas"),
    Door("pandas, nullable", Holding(_NULLABLE), _pandas("nullable"), needs="pandas"),
    Door("pandas, PyArrow", Holding(TYPED), _pandas("pyarrow"), needs="pandas"),
    Door("pandas, objects", _ANY, _pandas("object"), needs="pandas"),
    Door("pandas, categories", _LISTED, _pandas("category"), needs="pandas"),
    Door("Polars", Holding(TYPED), lambda _, pair, rows: polars_frame(pair, rows)),
    Door("Polars, lazy", Holding(TYPED), _lazy),
    Door("Polars, reordered", Holding(TYPED), _lazy_reordered, ordered=False),
    Door("PyArrow", Holding(TYPED), _pyarrow),
    *OFFICE_DOORS,
    Door("Arrow stream", Holding(TYPED), _arrow_stream),
    Door("PyArrow dataset", Holding(TYPED), _dataset),
    Door("chunks", Holding(TYPED), _chunks),
    Door("chunks, pandas objects", _ANY, _pandas_chunks, needs="pandas"),
)
