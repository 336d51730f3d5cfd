"""The one way through after `settle`: reserve, fit, draw, decode, publish.

The command line, Python and Spark all go this way. A budget book, if one is named, is asked first.
`fit` reads the table and pays for what it looks at. `open_draws` does both, and leaves a session
to draw from; `drawn_tables` draws and decodes. `publish_table` writes what was spent before rows
become visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.codec.code_table import putting_back
from pegsynth.codec.unfolding import check_unfolds
from pegsynth.errors import BudgetError, ParameterError, PegsynthError
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.checkpoint import resuming
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.ledgers import seeded_ledger
from pegsynth.methods.session import Session
from pegsynth.options._kinds import flag_of
from pegsynth.pipeline.drawn_tables import (
    check_completes,
    check_decoding,
    check_weights_requested,
    completed_versions,
    drawn_frames,
    drawn_pairs,
    listed_columns,
    table_schema,
)
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled
from pegsynth.privacy import Ledger, NotPrivate
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import polars_dtype
from pegsynth.storage.book.booking import Booking, booked
from pegsynth.storage.model_file import load_model, read_manifest
from pegsynth.storage.spending import read_spent, write_spent
from pegsynth.tables.atomic import atomic_text
from pegsynth.tables.streams import held
from pegsynth.tables.table_input import open_table, opening_reads
from pegsynth.tables.table_output import open_writer

if TYPE_CHECKING:
    from pegsynth.tables.database import DatabaseTarget
    from pegsynth.tables.reader import TableReader


_FREE = ("where", "replicates", "weight_name", "shared_noise")
"""What may be stated when rows are drawn from counts that were published."""


def _nothing() -> None:
    """Nothing is to be written down."""


@dataclass(frozen=True)
class Draws:
    """A session on a fitted table, and how its rows become values.

    Parameters
    ----------
    booking
        The entry in the budget book; it is settled when all is in its place.
    kept
        Puts back the columns that a partially synthetic table keeps.
    """

    session: Session
    settled: Settled
    reader: TableReader
    booking: Booking
    kept: Callable[[pl.DataFrame], pl.DataFrame]

    @property
    def request(self) -> Request:
        """What was asked for."""
        return self.settled.request

    def commit(self) -> None:
        """Nothing is to be written down: the model is drawn from in this session alone."""

    @property
    def in_pairs(self) -> bool:
        """Whether two tables are drawn together, units and their rows (R24)."""
        panel = self.session.model.schema.panel
        return panel is not None and panel.tables is not None and not self.settled.request.wide

    def pairs(self, *, progress: Progress = quiet) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield units and their rows of every dataset, whole."""
        session, request = self.session, self.settled.request
        rows = session.rows_of_a_table(request.rows)
        for parts in drawn_pairs(
            session, rows, request.datasets, how=request.decode, progress=progress
        ):
            units, members = zip(*parts, strict=True)
            yield pl.concat(units), pl.concat(members)

    def tables(
        self, *, progress: Progress = quiet
    ) -> Iterator[tuple[pl.DataFrame, list[pl.DataFrame]]]:
        """Yield every synthetic table, whole, with its completed versions, if any are wanted."""
        session, request = self.session, self.request
        for table, versions in whole_tables(
            session,
            request,
            session.rows_of_a_table(request.rows),
            versions=request.versions,
            progress=progress,
        ):
            yield self.kept(table), versions


@contextmanager
def open_draws(
    data: Any, settled: Settled, *, run: str = "synthesize", progress: Progress = quiet
) -> Iterator[Draws]:
    """Reserve, open the table, fit, and yield what can be drawn.

    When the block ends without an error, the checkpoint is no longer needed, and the entry in
    the budget book is settled.

    Parameters
    ----------
    run
        What the entry is called.
    """
    plan, request = settled.plan, settled.request
    if plan is None:
        raise BudgetError("rows are drawn under a budget; state one")
    with booked_run(settled, run) as booking:
        stream = request.stream()
        replaced = replaced_features(plan.options)
        if replaced:
            # Drawn values go beside kept ones row by row: all must come from one execution.
            data = held(data)
        with (
            booked_table(data, settled.schema, booking) as reader,
            resuming(request.resume, reader, settled.schema, plan, request.seed) as checkpoint,
        ):
            model = fit(reader, settled, stream, progress=progress, checkpoint=checkpoint)
            session = Session(model, model.plan or plan, stream, threads=request.thread_count)
            kept = putting_back(reader, model.schema, replaced)
            yield Draws(session, settled, reader, booking, kept)
        booking.settle(session.ledger)


def booked_run(settled: Settled, run: str) -> AbstractContextManager[Booking]:
    """Reserve what a settled run can cost in the book that was named, if one was."""
    request = settled.request
    return booked(
        request.book,
        settled.schema,
        settled.plan,
        run=run,
        seeded=request.seed is not None,
        saved=settled.saved,
    )


@contextmanager
def booked_table(data: Any, schema: Schema, booking: Booking) -> Iterator[TableReader]:
    """Open a table whose entry in the budget book begins with the first row that is read."""
    if data is None:
        # Rows are made of published tables (R36): there is no microdata to open.
        data = _no_rows(schema)
    if opening_reads(data):
        booking.begin()
    with open_table(data, dialect=schema.dialect, confidential=True) as reader:
        yield booking.watch(reader)


def _no_rows(schema: Schema) -> pl.DataFrame:
    """Return a table of no rows, with the columns and types that the schema declares."""
    usual = {True: pl.Float64(), False: pl.String()}
    types = {
        column.name: polars_dtype(column.dtype) or usual[column.kind in ("numeric", "duration")]
        for column in schema.columns
        if not column.dropped and column.label_of is None
    }
    return pl.DataFrame(schema=types)


@dataclass(frozen=True)
class SavedDraws:
    """A session on a saved model, and what it was asked for.

    Parameters
    ----------
    commit
        Writes down what the session has spent.
    remembered
        Whether the ledger covers earlier draws from the same model too.
    """

    session: Session
    request: Request
    commit: Callable[[], None] = _nothing
    remembered: bool = True

    def kept(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows as they are: a model keeps none of the original."""
        return frame

    @contextmanager
    def booked(self, run: str = "sample") -> Iterator[Booking]:
        """Reserve what is drawn in the book that was named; settle when the block ends well.

        A model with a budget of its own was paid for when it was fitted.
        """
        session, request = self.session, self.request
        if request.book is not None and session.model.plan is not None:
            raise ParameterError(
                "--book: the model was paid for when it was fitted, whatever is drawn from it; "
                "leave it out"
            )
        seeded = request.seed is not None
        schema, plan = session.model.schema, session.plan
        with booked(request.book, schema, plan, run=run, seeded=seeded) as booking:
            session.before_drawing(booking.begin)
            yield booking
            booking.settle(session.ledger)


def open_saved(model_file: Path, request: Request) -> SavedDraws:
    """Open a session on a saved model; the caller holds its lock."""
    identity = read_manifest(model_file).identity
    model = load_model(model_file)
    check_decoding(request.decode, measured=bool(model.shapes))
    if model.schema.panel is not None and not request.wide:
        check_unfolds(request.decode)
    if request.complete:
        check_completes(model, dict(request.where))
    stream, threads = request.stream(), request.thread_count
    if model.plan is None:
        plan = _drawing_plan(model, request, source=str(model_file))
        session = Session(model, plan, stream, threads=threads)
        return SavedDraws(session, request, remembered=False)
    if request.has_budget or request.delta is not None:
        raise BudgetError(f"{model_file}: the model has a budget of its own; leave yours out")
    check_weights_requested(request)
    released = get(model.method).released
    taken = model.plan.options.__dataclass_fields__
    free = {flag_of(name) for name in _FREE if released and name in taken}
    if flags := [flag for flag in request.changed() if flag not in free]:
        raise ParameterError(
            f"{model_file}: the model was fitted for one way of drawing; leave out "
            f"{', '.join(flags)}"
        )
    if released:
        # Everything was paid for when the blocks were released: drawing costs nothing.
        stated = {name: getattr(request, name) for name in _FREE if name in taken}
        stated |= {"rows": request.rows, "datasets": request.datasets}
        options = replace(model.plan.options, **stated)
        drawing = replace(model.plan, options=options)
        return SavedDraws(Session(model, drawing, stream, threads=threads), request)
    spent = read_spent(model_file, identity)
    session = Session(model, model.plan, stream, spent=spent, threads=threads)
    return SavedDraws(session, request, lambda: write_spent(model_file, identity, session.spent))


def _drawing_plan(model: Model, request: Request, *, source: str) -> Plan:
    """Settle how to draw from a model that was counted without a budget.

    Its heads are fixed and were not paid for privately, and it holds no paid marginals,
    so prior and seed rows are public.
    """
    if request.prior in ("marginal", "levels") or request.seed_pool == "marginal":
        raise BudgetError(
            f"{source}: the model holds no paid marginals; fit it with --epsilon, or use uniform "
            "prior and seed rows"
        )
    fixed = get(model.method).fixed_keys(model)
    drawing = replace(request, **fixed, prior="uniform", seed_pool=request.seed_pool or "uniform")
    return drawing.plan(model.schema, source=source)


def whole_tables(
    session: Session,
    request: Request,
    rows: int,
    *,
    versions: int = 0,
    progress: Progress = quiet,
) -> Iterator[tuple[pl.DataFrame, list[pl.DataFrame]]]:
    """Yield every table that is asked for, whole, with so many completed versions (R23)."""
    how, wide = request.decode, request.wide
    tables = drawn_frames(session, rows, request.datasets, how=how, wide=wide, progress=progress)
    for number, frames in enumerate(tables, start=1):
        table = pl.concat(frames)
        completed: list[pl.DataFrame] = []
        if versions:
            completed = completed_versions(
                session,
                table,
                number,
                versions,
                wide=wide,
                threads=request.thread_count,
                progress=progress,
            )
        yield table, completed


def to_be_saved(model: Model, stream: RandomStream) -> Model:
    """Return a model with a ledger that says whether a seed made it."""
    return replace(model, ledger=seeded_ledger(model.ledger)) if stream.seeded else model


def publish_table(
    draws: Draws | SavedDraws,
    output: Path | DatabaseTarget,
    ledger_path: Path,
    *,
    progress: Progress = quiet,
) -> None:
    """Draw one table; what it cost is on disk before the table becomes visible.

    Where a table is replaced, the ledger beside it is true of both until that is done.
    """
    session, request = draws.session, draws.request
    how, wide = request.decode, request.wide
    (frames,) = drawn_frames(
        session, request.rows or 0, how=how, listed=True, wide=wide, progress=progress
    )
    if request.complete:
        table = pl.concat(frames)
        threads = request.thread_count
        frames = iter(
            completed_versions(session, table, 1, 1, wide=wide, threads=threads, progress=progress)
        )
    replacing = isinstance(output, Path) and output.exists()

    def before() -> None:
        draws.commit()
        ledger = session.ledger
        meanwhile = true_of_both(ledger_path, ledger) if replacing else ledger
        atomic_text(ledger_path, meanwhile.to_json())

    texts = listed_columns(session.model, how, wide=wide)
    book = table_schema(session.model, wide=wide)
    with open_writer(output, before=before, texts=texts, codebook=book) as writer:
        for frame in frames:
            writer.write(draws.kept(frame))
    if replacing:
        atomic_text(ledger_path, session.ledger.to_json())


def true_of_both(path: Path, ledger: Ledger) -> Ledger:
    """Return a ledger that promises no more than a new table's and no more than the old one's.

    Two files cannot be replaced at once. A run that is killed in between must not leave a
    table beside a ledger that was made for a better protected one.
    """
    try:
        return Ledger.combine([Ledger.from_json(path.read_bytes(), source=str(path)), ledger])
    except (OSError, PegsynthError):
        return ledger.add(NotPrivate.because("unfinished"))
