"""Folders on the cluster's file system: new ones appear whole or not at all, some are not read.

Parquet files that the workers read themselves.

Spark turns Parquet into rows and rows into Arrow, which takes longer than counting them. A
table that is nothing but Parquet files, all alike, which every worker sees under the same
name, is read by the workers with the reader of the local engine.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pegsynth.errors import DataError, OutputError
from pegsynth.spark.codes import CodeSource, encoded, encoder_of
from pegsynth.tables.arrow_read import parquet_pieces, parquet_schema
from pegsynth.tables.file_sets import refuse_lakehouses
from pegsynth.tables.reader import Wanted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pegsynth.schema import Schema


def refuse_lakehouse_files(frame: DataFrame) -> None:
    """Refuse Parquet files that lie in or below the folder of a lakehouse table."""
    places = map(unquote, frame.inputFiles())
    refuse_lakehouses(places, partial(_listed, frame.sparkSession))


def _listed(spark: SparkSession, folder: str) -> list[str] | None:
    """Return the names in a folder; one above the table that may not be looked into is none."""
    from py4j.protocol import Py4JError

    jvm: Any = spark._jvm
    try:
        path = jvm.org.apache.hadoop.fs.Path(folder)
        system = path.getFileSystem(spark._jsc.hadoopConfiguration())
        return [entry.getPath().getName() for entry in system.listStatus(path)]
    except Py4JError:
        return None


def check_free(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Refuse a path where something is; return its file system and full name."""
    from py4j.protocol import Py4JError

    jvm: Any = spark._jvm
    try:
        target = jvm.org.apache.hadoop.fs.Path(path)
        system = target.getFileSystem(spark._jsc.hadoopConfiguration())
        target = system.makeQualified(target)
        _refuse_existing(system, target, path)
    except Py4JError:
        raise _unwritable(path) from None
    return system, target


@contextmanager
def new_folder(
    spark: SparkSession, path: str, *, before: Callable[[], None] | None = None
) -> Iterator[str]:
    """Yield a folder beside `path` for the owner alone; its part ``table`` becomes `path`.

    Parameters
    ----------
    path
        Where the table is to appear, as Spark spells it. Nothing may be there yet.
    before
        Called when the table is complete and before it becomes visible.

    Raises
    ------
    OutputError
        Something is there, or the folder above cannot be written to. Nothing is left
        behind.
    """
    from py4j.protocol import Py4JError

    jvm: Any = spark._jvm
    system, target = check_free(spark, path)
    try:
        hidden = jvm.org.apache.hadoop.fs.Path(
            target.getParent(), f".pegs-{secrets.token_hex(8)}.tmp"
        )
        owner_only = jvm.org.apache.hadoop.fs.permission.FsPermission("700")
        if not system.mkdirs(hidden, owner_only):
            raise _unwritable(path)
    except Py4JError:
        raise _unwritable(path) from None
    try:
        with suppress(Py4JError):  # object stores know no permissions
            system.setPermission(hidden, owner_only)
        yield hidden.toString()
        if before is not None:
            before()
        _refuse_existing(system, target, path)
        if not system.rename(jvm.org.apache.hadoop.fs.Path(hidden, "table"), target):
            raise _unwritable(path)
    except Py4JError:
        raise _unwritable(path) from None
    finally:
        with suppress(Py4JError):
            system.delete(hidden, True)


def _refuse_existing(system: Any, target: Any, path: str) -> None:
    if system.exists(target):
        raise OutputError(f"cannot write {path!r}: it exists already; choose another name")


def _unwritable(path: str) -> OutputError:
    return OutputError(
        f"cannot write {path!r}: Spark may not write there; check the folder and your rights"
    )


# What Arrow calls the types that Spark and Arrow read alike.
_ALIKE = {
    "string": ("string", "large_string", "string_view"),
    "boolean": ("bool",),
    "tinyint": ("int8",),
    "smallint": ("int16",),
    "int": ("int32",),
    "bigint": ("int64",),
    "float": ("float",),
    "double": ("double",),
}
_PLAIN_READING = ("LogicalRelation", "HadoopFsRelation", "ParquetFileFormat", "InMemoryFileIndex")
_MOST_FILES = 1000
_PARTS_PER_TASK = 2


@dataclass(frozen=True)
class Part:
    """Every n-th row group of a file, from some first one on."""

    path: Path
    groups: slice


def file_source(frame: DataFrame, schema: Schema, tasks: int) -> CodeSource | None:
    """Return how the workers read the files of a frame themselves; None if only Spark can.

    Parameters
    ----------
    frame
        The table; only what `spark.read.parquet` gave, with nothing done to it, will do.
    tasks
        The most partitions to make.
    """
    if schema.unit is not None:
        return None
    files = _bare_files(frame)
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    if not files or len(files) > _MOST_FILES or not _all_alike(files, types, schema.names):
        return None
    step = max(1, -(-_PARTS_PER_TASK * tasks // len(files)))
    parts = tuple(Part(path, slice(first, None, step)) for path in files for first in range(step))
    numbers = frame.sparkSession.range(0, len(parts), 1, min(tasks, len(parts)))
    return CodeSource(numbers, EncodeFiles(schema, parts))


def _bare_files(frame: Any) -> list[Path]:
    """Return the local files that a frame reads as they are; none if it does anything else."""
    from py4j.protocol import Py4JError

    try:
        plan = frame._jdf.queryExecution().analyzed()
        relation = plan.relation()
        parts = (plan, relation, relation.fileFormat(), relation.location())
        # Formats built upon Parquet hide rows of their files, those that were deleted above all.
        if tuple(part.getClass().getSimpleName() for part in parts) != _PLAIN_READING:
            return []
        if not relation.partitionSchema().isEmpty():
            return []
        found = [urlsplit(name) for name in relation.location().inputFiles()]
    except Py4JError:
        return []
    if any(name.scheme != "file" for name in found):
        return []
    return [Path(unquote(name.path)) for name in found]


def folder_columns(frame: Any) -> tuple[str, ...]:
    """Return the columns of a frame that the names of folders give; none if it is no file."""
    from py4j.protocol import Py4JError

    try:
        plan = frame._jdf.queryExecution().analyzed()
        return tuple(plan.relation().partitionSchema().fieldNames())
    except Py4JError:
        return ()


def _all_alike(files: Sequence[Path], types: dict[str, str], features: Sequence[str]) -> bool:
    """Say whether all files have the columns of the frame, and the features types of both."""
    try:
        schemas = [parquet_schema(path)[0] for path in files]
    except DataError:
        # Spark will say what is wrong with the file.
        return False
    return all(
        {*found.names} == {*types}
        and all(str(found.field(name).type) in _ALIKE.get(types[name], ()) for name in features)
        for found in schemas
    )


@dataclass(frozen=True)
class EncodeFiles:
    """Reads parts of files, whose numbers come in, and turns values into packed codes."""

    schema: Schema
    parts: Sequence[Part]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield cells of codes, then what was seen."""
        encoder = encoder_of(self.schema)
        wanted = Wanted(tuple(self.schema.names), hints=encoder.hints)
        parts = (self.parts[i] for batch in batches for i in batch.column(0).to_pylist())
        tables = (
            piece.frame()
            for part in parts
            for piece in parquet_pieces(part.path, wanted, groups=part.groups)
        )
        return encoded(tables, encoder)
