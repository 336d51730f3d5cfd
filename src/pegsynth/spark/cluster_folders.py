"""Folders on the cluster's file system: new ones appear whole or not at all, some are not read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pegsynth.errors import OutputError
from pegsynth.io.lakehouse import refuse_lakehouses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
