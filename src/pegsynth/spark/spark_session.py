"""Signals while a cluster works.

An exception that a signal raises inside a call to the JVM leaves the answer of that call on
its connection, and the next call reads it for its own. So a signal ends the jobs first,
from another thread; the call that waits for them then fails by itself, files are removed
when nobody writes to them any more, and the signal is passed on at the end.

Spark sessions: how the command line starts one, what is asked of any, and its errors.

PySpark is imported where it is used, so that nobody else needs it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from pegsynth import errors
from pegsynth.errors import DataError, EngineError, ParameterError, PegsynthError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pegsynth.spark.arrow_batches import Task


# Windows has no SIGHUP.
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def signals_held(end_jobs: Callable[[], object]) -> Iterator[None]:
    """Hold signals while a call to the JVM runs, and pass them on afterwards.

    Parameters
    ----------
    end_jobs
        Makes calls that wait for a job fail; runs on another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    caught: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if not in_java(frame):
            _pass_on(before[number], number, frame)
        elif not caught:
            caught.append(number)
            threading.Thread(target=end_jobs, name="pegsynth-stop", daemon=True).start()

    for number, old in before.items():
        if callable(old):
            signal.signal(number, hold)
    try:
        yield
    finally:
        for number, old in before.items():
            # Who was passed a signal may have changed what comes of the next.
            if signal.getsignal(number) is hold:
                signal.signal(number, old)
        if caught:
            _pass_on(before[caught[0]], caught[0], None)


def in_java(frame: FrameType | None) -> bool:
    """Say whether a call to the JVM, or reading its answer, is under way."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(("py4j.", "pyspark.")):
            return True
        frame = frame.f_back
    return False


def _pass_on(handler: object, number: int, frame: FrameType | None) -> None:
    if callable(handler):
        handler(number, frame)


_OUR_ERROR = re.compile(r"^pegsynth\.errors\.(\w+): (.+)$", re.MULTILINE)
_UNREADABLE = re.compile(
    r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (.+?)\.\s+[A-Z]"
)
_OF_COLUMN = re.compile(r"reading Parquet column \[(.+?)\]\. Expected")
_NO_PYSPARK = "Spark needs an extra: pip install 'pegsynth[spark]', and Java 17"


@contextmanager
def open_session(master: str | None) -> Iterator[SparkSession]:
    """Start a session for one command, and stop it.

    Parameters
    ----------
    master
        Address of the cluster; None for what Spark's own configuration says.
    """
    try:
        with _any_pandas():
            from pyspark.sql import SparkSession
    except ImportError:
        raise ParameterError(_NO_PYSPARK) from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    shown = sys.stderr.isatty()
    settings = {
        "spark.app.name": "pegsynth",
        "spark.speculation": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(shown).lower(),
        "spark.log.level": "FATAL",
        **({} if master is None else {"spark.master": master}),
    }
    with signals_held(_stop_context):
        try:
            with _any_pandas():
                _start_context(settings, quiet=not shown)
                spark = SparkSession.builder.getOrCreate()
        except spark_errors():
            raise EngineError(
                "Spark does not start; check that Java 17 is installed and JAVA_HOME right, and "
                "that --master names a cluster that answers"
            ) from None
        try:
            yield spark
        finally:
            with suppress(*spark_errors()):
                spark.stop()


def _start_context(settings: Mapping[str, str], *, quiet: bool) -> None:
    """Start Spark; its JVM is kept quiet, and shows progress on a terminal only."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setAll(list(settings.items()))
    start: Any = launch_gateway
    with _handlers_kept():
        # A session that ended in this process has left its JVM, which serves again.
        gateway = SparkContext._gateway or start(
            conf, {"stderr": subprocess.DEVNULL} if quiet else {}
        )
        SparkContext(conf=conf, gateway=gateway)


def _stop_context() -> None:
    """Stop Spark and with it all jobs, from whichever thread."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        with suppress(*spark_errors()):
            context._jsc.stop()


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep Spark from putting its own handler in place of ours."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def check_session(spark: Any) -> SparkSession:
    """Return a session that can be used, refusing all others."""
    if not type(spark).__module__.startswith("pyspark.sql"):
        raise ParameterError(
            f"spark is a {type(spark).__name__}; give the SparkSession that holds the cluster"
        )
    if ".connect." in type(spark).__module__:
        raise ParameterError(
            "this is a Spark Connect session, which reaches no worker directly; run inside a "
            "classic session, such as that of spark-submit"
        )
    return spark  # type: ignore[no-any-return]


def refuse_speculation(spark: SparkSession) -> None:
    """Refuse a cluster that would draw twice and keep what came first.

    Which of two draws is faster depends on what was drawn.
    """
    if spark.sparkContext.getConf().get("spark.speculation", "false") != "false":
        raise ParameterError(
            "this session runs tasks twice and keeps the faster result; start it with "
            "spark.speculation=false to draw rows"
        )


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def mapped(frame: DataFrame, task: Task, schema: Any) -> DataFrame:
    """Let the workers turn the Arrow batches of a frame into others."""
    with _any_pandas():
        return frame.mapInArrow(task, schema)


@contextmanager
def plain_errors(work: str) -> Iterator[None]:
    """Turn an error of Spark into a plain one; its own text may hold anything.

    Parameters
    ----------
    work
        What Spark was asked to do, for the message.
    """
    try:
        yield
    except spark_errors() as error:
        raise _plain(_text(error), work) from None


@contextmanager
def unreadable_files() -> Iterator[None]:
    """Turn an error of Spark that names a file into a plain one, and let others pass."""
    try:
        yield
    except spark_errors() as error:
        if plain := _of_file(_text(error)):
            raise plain from None
        raise


@contextmanager
def _any_pandas() -> Iterator[None]:
    """Silence a warning: no batch becomes a pandas frame here, of whichever version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


def spark_errors() -> tuple[type[Exception], ...]:
    """Return what Spark and the way to its JVM may raise."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def _text(error: Exception) -> str:
    """Return the text of an error; that of Java must be asked for, and may be gone."""
    try:
        return str(error)
    except spark_errors():
        return ""


def _plain(text: str, work: str) -> PegsynthError:
    """Return the error of ours that a worker raised, or say that Spark gave up."""
    found = _OUR_ERROR.search(text)
    kind = getattr(errors, found[1], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, PegsynthError):
        return kind(found[2])
    if plain := _of_file(text):
        return plain
    if "No module named 'pegsynth'" in text:
        return EngineError(
            "the workers' Python has no pegsynth; install it there, or set PYSPARK_PYTHON to one "
            "that has it on every worker"
        )
    return EngineError(
        f"Spark gave up while {work}: a task failed too often, or the cluster is gone. Nothing "
        "was written. The logs of the workers say which and why; mend it and run again"
    )


def _of_file(text: str) -> DataError | None:
    """Return the error of a file that a worker could not read, if that is what happened."""
    found = _UNREADABLE.search(text)
    if found is None:
        return None
    reason, file = found[1], re.sub("^file:(//)?", "", found[2])
    column = _OF_COLUMN.search(text)
    if reason == "PARQUET_COLUMN_DATA_TYPE_MISMATCH" and column:
        return DataError(
            f"{file}: column {column[1]!r} has another type than in the other files; write it "
            "again with theirs"
        )
    if reason == "FILE_NOT_EXIST":
        return DataError(
            f"{file}: a worker finds no such file; leave the table as it is while it is counted, "
            "and see that every worker reaches it"
        )
    return DataError(
        f"{file}: the file is truncated or is not a Parquet file; write it again, and see that "
        "every worker may read it"
    )
