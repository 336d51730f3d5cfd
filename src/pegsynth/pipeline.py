"""The one way through: settle, fit, draw, decode, publish.

The command line, Python, Spark and the study all go this way. `settle` makes every public
choice before a table is opened. `fit` reads the table and pays for what it looks at. `open_draws`
is both, and leaves a session to draw from; `drawn_tables` draws and decodes. `publish_table` writes
what was spent before rows become visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.completion import check_completable
from pegsynth.drawn_tables import (
    check_completes,
    check_decoding,
    completed_versions,
    decoder_of,
    drawn_frames,
)
from pegsynth.errors import BudgetError, ParameterError, PegsynthError
from pegsynth.io.atomic import atomic_text
from pegsynth.io.streams import held
from pegsynth.io.table_input import open_table, same_file, table_files
from pegsynth.io.table_output import open_writer
from pegsynth.kernels.warm import warm_up
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.ledgers import schema_ledger, seeded_ledger, selection_ledger
from pegsynth.methods.session import Session
from pegsynth.numbers import (
    CodecCounts,
    PaidCodec,
    check_budget,
    paid_codec,
    wants_codec,
    wants_numbers,
)
from pegsynth.options import DEFAULT_METHOD, How
from pegsynth.privacy import Budget, Ledger, NotPrivate
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.request import Request
from pegsynth.schema import Schema
from pegsynth.storage.model_file import load_model, read_manifest
from pegsynth.storage.spending import read_spent, write_spent
from pegsynth.tables.checkpoint import Checkpoint
from pegsynth.tables.code_table import CodeTable
from pegsynth.tables.counting import ConfidentialTable, StreamedTable
from pegsynth.tables.kept_columns import putting_back
from pegsynth.tables.measured_rows import MeasuredRows
from pegsynth.tables.resumed_counting import resuming

if TYPE_CHECKING:
    from pegsynth.io.database import DatabaseTarget
    from pegsynth.io.reader import TableReader


# Settle


@dataclass(frozen=True)
class Settled:
    """What is to be done, from public quantities alone.

    Parameters
    ----------
    schema, request
        The codebook, and what was asked for, the method chosen.
    plan
        Every choice and price; None for a table that is counted now and priced later. Where
        the codec is itself measured, it is the plan for as many bins as there will be, and is
        settled again when they are known.
    notes
        Lines that say which method ``auto`` has taken, and why.
    saved
        Whether the model is saved and sampled later, in another session.
    """

    schema: Schema
    request: Request
    plan: Plan | None
    notes: tuple[str, ...] = ()
    saved: bool = False


def settle(
    schema: Schema | str | Path,
    request: Request,
    *,
    data: Any = None,
    saved: bool = False,
    rows_later: bool = False,
) -> Settled:
    """Make every public choice; refuse what cannot be done before any data is read.

    Parameters
    ----------
    data
        The table, which may also be named as the seed pool.
    saved
        Whether the model is saved and sampled later, in another session.
    rows_later
        Whether the number of rows is stated when they are drawn.
    """
    book = request.written(schema if isinstance(schema, Schema) else Schema.load(schema))
    source = "the schema" if isinstance(schema, Schema) else str(schema)
    check_decoding(request.decode, measured=wants_numbers(book))
    if request.complete:
        check_completable(book, dict(request.where))
    request = replace(request, seed_pool=honest_seed_pool(data, request.seed_pool))
    request, notes = request.settled(request.planned_schema(book), saved=saved)
    unpriced = not request.has_budget and request.delta is None
    if saved and unpriced and get(request.method).fits_unpriced:
        if wants_codec(book):
            check_budget(book, Budget(alpha=0.0))
        return Settled(book, request, None, notes)
    if not (saved or rows_later):
        request.check_rows()
    return Settled(book, request, request.plan(book, source=source, saved=saved), notes, saved)


def honest_seed_pool(data: Any, pool: str | Path | None) -> str | Path | None:
    """Call a seed pool that is the confidential table itself by its name (R10)."""
    if data is None or pool is None or pool in ("uniform", "marginal", "original"):
        return pool
    itself = any(same_file(a, b) for a in table_files(str(pool)) for b in table_files(data))
    return "original" if itself else pool


# Fit


def fit(
    reader: TableReader,
    settled: Settled,
    stream: RandomStream,
    *,
    progress: Progress = quiet,
    checkpoint: Checkpoint | None = None,
) -> Model:
    """Read a table and fit it, paying for what is looked at.

    Parameters
    ----------
    checkpoint
        Where to save counts on the way, and what was counted before.
    """
    schema, request = settled.schema, settled.request
    method = get(request.method or DEFAULT_METHOD)
    if checkpoint and not method.resumes:
        raise ParameterError(f"{method.name} reads the table once and cannot resume; drop --resume")
    warm_up(method.first_kernels)
    ledger = schema_ledger(schema, accept_unreviewed=request.accept_unreviewed_schema)
    ledger = selection_ledger(ledger, reader)
    kept = checkpoint.kept if checkpoint else None
    codec = None
    if wants_codec(schema):
        _check_two_passes(reader, checkpoint)
        rows = MeasuredRows(reader, schema, stream, progress=progress)
        kept = rows.kept
        codec = pay_for_codec(settled, rows.counts, stream)
        schema, settled = codec.schema, with_codec(settled, codec)
        ledger = ledger.add(*codec.events)
    table = CodeTable(reader, schema, stream, kept=kept, progress=progress)
    if checkpoint:
        checkpoint.keep(table.kept)
    counted = StreamedTable(table, request.thread_count, progress, checkpoint)
    model = fit_counted(counted, settled, stream, ledger, progress=progress)
    # The declared types of the features, in the order of the schema (R30).
    types = {name: reader.dtypes[name] for name in schema.names if name in reader.dtypes}
    shapes = codec.shapes if codec else {}
    return replace(model, columns=reader.output_columns, dtypes=types, shapes=shapes)


def _check_two_passes(reader: TableReader, checkpoint: Checkpoint | None) -> None:
    """Refuse tables that cannot be read once for their codec and once more to be counted."""
    if reader.once:
        raise ParameterError(
            f"{reader.source}: edges and categories that are measured take two passes over the "
            "table, and this one can be read once; write it to a file first, or list them in the "
            "schema"
        )
    if checkpoint:
        raise ParameterError(
            "--resume goes with edges and categories that are listed; those that are measured cost "
            "anew each time"
        )


def pay_for_codec(
    settled: Settled, count: Callable[[], CodecCounts], stream: RandomStream
) -> PaidCodec:
    """Measure edges, shapes and categories out of the budget of the release (R21, R29).

    Parameters
    ----------
    count
        Counts a table, units bounded.
    """
    request, plan = settled.request, settled.plan
    if plan is None:
        raise BudgetError("edges and categories are measured out of --epsilon; state that")
    return paid_codec(
        settled.schema,
        request.budget,
        count(),
        stream,
        rows_in=request.rows_in,
        private=get(plan.method).has_proof,
    )


def with_codec(settled: Settled, codec: PaidCodec) -> Settled:
    """Settle the release again, now that the codec is known and what is left is known."""
    request = settled.request
    method = get(request.method or DEFAULT_METHOD)
    options = request.options_for(method, saved=settled.saved)
    plan = method.settle(codec.schema, codec.budget, options)
    return replace(settled, schema=codec.schema, plan=plan)


def fit_counted(
    table: ConfidentialTable,
    settled: Settled,
    stream: RandomStream,
    ledger: Ledger,
    *,
    progress: Progress = quiet,
) -> Model:
    """Fit a table that is counted here or on a cluster.

    Parameters
    ----------
    ledger
        What is known so far of the schema and of how the rows were selected.
    """
    schema, request, plan = settled.schema, settled.request, settled.plan
    method = get(request.method or DEFAULT_METHOD)
    if plan is None:
        options = request.options_for(method)
        content, ledger = method.count(table, schema, options, stream, ledger)
        return Model(schema, method.name, content, ledger)
    fitted = method.fit(
        table,
        schema,
        plan,
        stream,
        ledger,
        threads=request.thread_count,
        progress=progress,
    )
    return Model(schema, method.name, fitted.content, fitted.ledger, fitted.plan)


def to_be_saved(model: Model, stream: RandomStream) -> Model:
    """Return a model with a ledger that says whether a seed made it."""
    return replace(model, ledger=seeded_ledger(model.ledger)) if stream.seeded else model


# Draw


@dataclass(frozen=True)
class Draws:
    """A session on a fitted table, and how its rows become values.

    Parameters
    ----------
    kept
        Puts back the columns that a partially synthetic table keeps.
    """

    session: Session
    settled: Settled
    reader: TableReader
    kept: Callable[[pl.DataFrame], pl.DataFrame]

    @property
    def keeps_rows(self) -> bool:
        """Whether the original rows are kept, some of their features drawn anew."""
        plan = self.settled.plan
        return plan is not None and bool(replaced_features(plan.options))

    def frames(self, *, progress: Progress = quiet) -> Iterator[pl.DataFrame]:
        """Yield every synthetic table, whole."""
        session, request = self.session, self.settled.request
        rows = session.rows_of_a_table(request.rows)
        for frames in drawn_frames(
            session, rows, request.datasets, how=request.decode, progress=progress
        ):
            yield self.kept(pl.concat(frames))

    def completed(
        self, frame: pl.DataFrame, number: int, *, progress: Progress = quiet
    ) -> list[pl.DataFrame]:
        """Return the completed versions of a table that were asked for; none, mostly."""
        request = self.settled.request
        if not request.complete:
            return []
        told: dict[str, Any] = {"threads": request.thread_count, "progress": progress}
        return completed_versions(self.session, frame, number, request.versions, **told)


@contextmanager
def open_draws(
    data: Any, schema: Schema | str | Path, request: Request, *, progress: Progress = quiet
) -> Iterator[Draws]:
    """Settle, open the table, fit, and yield what can be drawn.

    When the block ends without an error, the checkpoint is no longer needed.
    """
    settled = settle(schema, request, data=data)
    plan, request = settled.plan, settled.request
    if plan is None:
        raise BudgetError("rows are drawn under a budget; state one")
    stream = RandomStream(request.seed)
    replaced = replaced_features(plan.options)
    if replaced:
        # Drawn values go beside kept ones row by row: all must come from one execution.
        data = held(data)
    with (
        open_table(data, dialect=settled.schema.dialect) as reader,
        resuming(request.resume, reader, settled.schema, plan, request.seed) as checkpoint,
    ):
        model = fit(reader, settled, stream, progress=progress, checkpoint=checkpoint)
        session = Session(model, model.plan or plan, stream, threads=request.thread_count)
        yield Draws(session, settled, reader, putting_back(reader, model.schema, replaced))


@dataclass(frozen=True)
class SavedDraws:
    """A session on a saved model.

    Parameters
    ----------
    commit
        Writes down what the session has spent.
    remembered
        Whether the ledger covers earlier draws from the same model too.
    """

    session: Session
    commit: Callable[[], None]
    remembered: bool


def open_saved(model_file: Path, request: Request) -> SavedDraws:
    """Open a session on a saved model; the caller holds its lock."""
    identity = read_manifest(model_file).identity
    model = load_model(model_file)
    if request.complete:
        check_completes(model, dict(request.where))
    stream, threads = RandomStream(request.seed), request.thread_count
    if model.plan is None:
        plan = _drawing_plan(model, request, source=str(model_file))
        return SavedDraws(Session(model, plan, stream, threads=threads), _nothing, False)
    if request.has_budget or request.delta is not None:
        raise BudgetError(f"{model_file}: the model has a budget of its own; leave yours out")
    released = get(model.method).released
    free = {"--where", "--replicates", "--shared-noise"} if released else set()
    if flags := [flag for flag in request.changed() if flag not in free]:
        raise ParameterError(
            f"{model_file}: the model was fitted for one way of drawing; leave out "
            f"{', '.join(flags)}"
        )
    if released:
        # Everything was paid for when the blocks were released: drawing costs nothing.
        options = replace(
            model.plan.options,
            rows=request.rows,
            where=request.where,
            datasets=request.datasets,
            replicates=request.replicates,
            shared_noise=request.shared_noise,
        )
        drawing = replace(model.plan, options=options)
        return SavedDraws(Session(model, drawing, stream, threads=threads), _nothing, True)
    spent = read_spent(model_file, identity)
    session = Session(model, model.plan, stream, spent=spent, threads=threads)
    return SavedDraws(session, lambda: write_spent(model_file, identity, session.spent), True)


def _nothing() -> None:
    """Nothing is to be written down."""


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


# Publish


def publish_table(
    session: Session,
    output: Path | DatabaseTarget,
    ledger_path: Path,
    *,
    rows: int,
    how: How | None = None,
    commit: Callable[[], None] = _nothing,
    kept: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    complete: bool = False,
    threads: int = 1,
    progress: Progress = quiet,
) -> None:
    """Draw one table; what it cost is on disk before the table becomes visible.

    Where a table is replaced, the ledger beside it is true of both until that is done.

    Parameters
    ----------
    commit
        Writes down what was spent from a saved model.
    kept
        Puts back the columns that a partially synthetic table keeps.
    complete
        Whether missing values are imputed, once.
    """
    (frames,) = drawn_frames(session, rows, how=how, listed=True, progress=progress)
    if complete:
        table = pl.concat(frames)
        told: dict[str, Any] = {"threads": threads, "progress": progress}
        frames = iter(completed_versions(session, table, 1, 1, **told))
    replacing = isinstance(output, Path) and output.exists()

    def before() -> None:
        commit()
        ledger = session.ledger
        meanwhile = true_of_both(ledger_path, ledger) if replacing else ledger
        atomic_text(ledger_path, meanwhile.to_json())

    texts = decoder_of(session.model, how, listed=True).listed
    book = session.model.schema
    with open_writer(output, before=before, texts=texts, codebook=book) as writer:
        for frame in frames:
            writer.write(kept(frame))
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
