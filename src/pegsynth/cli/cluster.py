"""``--engine spark``: `fit`, `sample` and `synthesize` on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.cli.notes import holds_ledger, say, say_booking, say_published
from pegsynth.cli.working import (
    check_not_inputs,
    ledger_path_of,
    save_fitted,
)
from pegsynth.errors import BudgetError, DataError, ParameterError
from pegsynth.methods.base import Model
from pegsynth.methods.session import Session
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.running import booked_run, open_saved
from pegsynth.pipeline.settling import Settled, settle
from pegsynth.random import RandomStream
from pegsynth.spark.cluster_files import check_free, refuse_lakehouse_files
from pegsynth.spark.cluster_fit import check_method, check_plan, count_model
from pegsynth.spark.sampling import check_drawing, check_drawn, check_sampler, write_rows
from pegsynth.spark.spark_session import configured, open_session, spark_errors, unreadable_files
from pegsynth.storage.book.booking import Booking
from pegsynth.storage.spending import locked, spent_path
from pegsynth.tables.atomic import atomic_text, check_target
from pegsynth.tables.file_kinds import KINDS, table_format
from pegsynth.tables.file_sets import refuse_secrets, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMES_ARE_TEXT = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}


def fit(data: Any, schema_file: Path, output: Path, request: Request) -> None:
    """Fit on a cluster and save the model here."""
    check_target(output)
    source = _check_source(data, request)
    check_not_inputs((output,), source, schema_file)
    settled = settle(schema_file, request, data=source, saved=True, able=check_method)
    check_plan(settled)
    stream = request.stream()
    with booked_run(settled, "fit") as booking, open_session(request.master) as spark:
        model = _counted(spark, source, settled, stream, booking)
        ledger = save_fitted(model, output, stream)
        booking.settle(ledger)
    if settled.plan is not None:
        say_booking(booking, ledger)
    say(*settled.notes)


def sample(model_file: Path, output: str, ledger_file: Path | None, request: Request) -> None:
    """Draw from a saved model on a cluster."""
    ledger_path = _ledger_path(output, ledger_file)
    check_not_inputs((ledger_path,), str(model_file), spent_path(model_file))
    with locked(model_file):
        saved = open_saved(model_file, request)
        check_sampler(saved.session)
        with open_session(request.master) as spark, saved.booked():
            _write(
                saved.session,
                spark,
                output,
                ledger_path,
                request,
                saved.commit,
                remembered=saved.remembered,
            )


def synthesize(
    data: Any, schema_file: Path, output: str, ledger_file: Path | None, request: Request
) -> None:
    """Fit and draw on a cluster, nothing being kept in between but on this machine."""
    source = _check_source(data, request)
    ledger_path = _ledger_path(output, ledger_file)
    check_not_inputs((ledger_path,), source, schema_file)
    request.check_rows()
    settled = settle(schema_file, request, data=source, saved=True, able=check_drawn)
    if settled.plan is None:
        raise BudgetError("rows are drawn under a budget; state one")
    check_plan(settled)
    check_drawing(settled.plan)
    stream = request.stream()
    # Rows are drawn at once here, so that any budget can be reserved.
    with (
        booked_run(replace(settled, saved=False), "synthesize") as booking,
        open_session(request.master) as spark,
    ):
        check_free(spark, output)
        model = _counted(spark, source, settled, stream, booking)
        session = Session(model, model.plan or settled.plan, stream)
        _write(session, spark, output, ledger_path, request)
        booking.settle(session.ledger)
    say_booking(booking, session.ledger)
    say(*settled.notes)


def _write(
    session: Session,
    spark: SparkSession,
    output: str,
    ledger_path: Path,
    request: Request,
    commit: Callable[[], None] = lambda: None,
    *,
    remembered: bool = False,
) -> None:
    """Draw one table; what it cost is on disk before the table becomes visible."""
    earlier = holds_ledger(ledger_path)

    def before() -> None:
        commit()
        atomic_text(ledger_path, session.ledger.to_json())

    write_rows(session, request.rows or 0, spark, output, how=request.decode, before=before)
    say_published(session, ledger_path, earlier=earlier, remembered=remembered)


def _check_source(data: Any, request: Request) -> str:
    """Return the name of a table that Spark can read, before Spark is started."""
    if not isinstance(data, str):
        raise ParameterError(
            "--engine spark reads Parquet files; read a database with --engine local"
        )
    if request.resume is not None:
        raise ParameterError("--resume requires --engine local; Spark goes on by itself")
    if (kind := table_format(data)) not in (None, "parquet"):
        raise DataError(
            f"{data}: --engine spark reads Parquet, and this is {kind}; write the table as "
            "Parquet first, or use --engine local"
        )
    if scheme_of(data) is not None:
        refuse_secrets(data, "let Spark find it in its configuration")
    return data


def _counted(
    spark: SparkSession, source: str, settled: Settled, stream: RandomStream, booking: Booking
) -> Model:
    """Count the rows of Parquet files."""
    table, folder = _read(spark, source), not Path(source).is_file()
    return count_model(table, settled, stream, begin=booking.begin, source=source, folder=folder)


def _read(spark: SparkSession, source: str) -> DataFrame:
    try:
        # A folder called ward=none must not change how ward=1 is read.
        with unreadable_files(), configured(spark, _NAMES_ARE_TEXT):
            table = spark.read.parquet(source)
            refuse_lakehouse_files(table)
            return table
    except spark_errors():
        known = ", ".join(KINDS["parquet"].extensions)
        raise DataError(
            f"{source}: Spark finds no Parquet files ({known}) there that it can read; check the "
            "name, and that every worker sees the same files"
        ) from None


def _ledger_path(output: str, ledger_file: Path | None) -> Path:
    if scheme_of(output) is not None:
        refuse_secrets(output, "let Spark find it in its configuration")
        if ledger_file is None:
            raise ParameterError(
                f"{output}: rows that go to another file system need --ledger FILE for their ledger"
            )
        check_target(ledger_file)
        return ledger_file
    return ledger_path_of(Path(output), ledger_file)
