"""The one way through: settle, reserve, fit, draw, decode, publish.

The command line, Python and Spark all go this way. `settle` makes every public
choice before a table is opened. A budget book, if one is named, is asked next. `fit` reads the
table and pays for what it looks at. `open_draws` is all three, and leaves a session to draw from;
`drawn_tables` draws and decodes. `publish_table` writes what was spent before rows become visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.codec.clipped_sum import without_sum
from pegsynth.codec.code_table import CodeTable, putting_back
from pegsynth.codec.codec import check_columns
from pegsynth.codec.folded_reader import folded_reader
from pegsynth.codec.measured_rows import MeasuredRows
from pegsynth.codec.paying import (
    CodecCounts,
    PaidCodec,
    check_budget,
    paid_codec,
    wants_codec,
    wants_numbers,
)
from pegsynth.codec.unfolding import check_unfolds
from pegsynth.errors import BudgetError, ParameterError, PegsynthError, SchemaError
from pegsynth.kernels.warm import warm_up
from pegsynth.mechanisms.quality_distances import MOST_CELLS, QualityPlan, settle_quality
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.checkpoint import Checkpoint, resuming
from pegsynth.methods.completion import check_completable
from pegsynth.methods.counting import ConfidentialTable, StreamedTable
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.ledgers import schema_ledger, seeded_ledger, selection_ledger
from pegsynth.methods.pricing import rows_of_a_unit
from pegsynth.methods.released.declared_plan import affordable_tables
from pegsynth.methods.seed_rows import check_seed_pool
from pegsynth.methods.session import Session
from pegsynth.options import How
from pegsynth.pipeline.drawn_tables import (
    check_completes,
    check_decoding,
    check_weight_names,
    check_weights_requested,
    completed_versions,
    drawn_frames,
    drawn_pairs,
    listed_columns,
    table_schema,
    weight_names,
)
from pegsynth.pipeline.request import Able, Request
from pegsynth.privacy import Budget, Event, Ledger, NotPrivate, Unspent
from pegsynth.privacy.recorded import total
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.declared_types import check_header
from pegsynth.schema.panel import FOLDED, POOLED
from pegsynth.schema.wide_schema import (
    at_all_positions,
    first_rows,
    measured_positions,
    wide_schema,
)
from pegsynth.storage.book.booking import NO_BOOKING, Booking, booked
from pegsynth.storage.model_file import load_model, read_manifest
from pegsynth.storage.spending import read_spent, write_spent
from pegsynth.tables.atomic import atomic_text, check_space
from pegsynth.tables.streams import held
from pegsynth.tables.table_input import open_table, opening_reads, read_once, same_file, table_files
from pegsynth.tables.table_output import check_table, open_writer

if TYPE_CHECKING:
    from pegsynth.tables.database import DatabaseTarget
    from pegsynth.tables.reader import TableReader

LEAST_ROOM = 1 << 14
"""Bytes that the smallest output takes, with its ledger."""


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
    long
        The codebook of the table where that is a panel; `schema` is then that of the folded
        one (R24).
    quality
        The distances that a part of the budget buys (R34); None: none.
    """

    schema: Schema
    request: Request
    plan: Plan | None
    notes: tuple[str, ...] = ()
    saved: bool = False
    long: Schema | None = None
    quality: QualityPlan | None = None


def settle(
    schema: Schema | str | Path,
    request: Request,
    *,
    data: Any = None,
    saved: bool = False,
    rows_later: bool = False,
    quality: tuple[float, Sequence[Sequence[str]]] | None = None,
    able: Able | None = None,
    intervals: bool = False,
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
    quality
        The share of the budget that buys distances, and tables that are named for it.
    able
        Refuses methods that ``auto`` must not take.
    intervals
        Whether rows get replicate weights where nobody said how many, and the method can.
    """
    book = request.written(schema if isinstance(schema, Schema) else Schema.load(schema))
    source = "the schema" if isinstance(schema, Schema) else str(schema)
    long = panel_book(book, request)
    check_weight_names(book, request)
    book = wide_schema(book)
    check_weight_names(book, request)
    check_decoding(request.decode, measured=wants_numbers(book))
    if request.complete:
        check_completable(book, dict(request.where))
    request = replace(request, seed_pool=honest_seed_pool(data, request.seed_pool))
    request, notes = request.settled(book, saved=saved, able=able)
    book = _with_transitions(book, request, long)
    if intervals and request.replicates is None and quality is None:
        request = request.with_replicates(book)
        check_weight_names(book, request)
    check_weights_requested(request)
    if saved and request.unpriced and get(request.method).fits_unpriced:
        if wants_codec(book):
            check_budget(book, Budget(alpha=0.0))
        return Settled(book, request, None, notes, long=long)
    if not (saved or rows_later):
        request.check_rows()
    if data is not None and read_once(data):
        _check_one_pass(book, quality=quality is not None)
    if quality is None:
        plan = request.plan(book, source=source, saved=saved)
        _check_drawing(book, request, plan)
        return Settled(book, request, plan, notes, saved, long)
    _check_quality(book, request, panel=long is not None)
    share, named = quality
    # What was declared is bought without being named once more.
    declared = affordable_tables(book, MOST_CELLS)
    bought, rest = settle_quality(book, request.budget, share, (*named, *declared))
    plan = request.plan(book, source=source, saved=saved, budget=rest)
    _check_drawing(book, request, plan)
    return Settled(book, request, plan, notes, saved, long, bought)


def check_output(output: Path | DatabaseTarget, schema: Schema, request: Request) -> None:
    """Refuse what an output cannot hold, from the schema alone and before anything is read.

    Parameters
    ----------
    output
        The file of a table, or of the first of several.
    schema
        The codebook of the table.
    """
    if schema.panel is not None and request.wide:
        schema = wide_schema(schema)
    columns = [column.name for column in schema.columns if not column.dropped]
    columns += [schema.panel.unit] if schema.panel is not None and not request.wide else []
    columns += weight_names(request)
    public = [feature for feature in schema.features if feature.name not in schema.unsettled]
    texts = [text for each in public for text in (*each.categories, *each.not_applicable)]
    # How many rows the units of a panel have is not known before they are drawn.
    rows = None if schema.panel is not None and not request.wide else request.rows
    check_table(output, columns, rows=rows, texts=texts, dialect=schema.dialect)
    if isinstance(output, Path):
        # Every cell of a text takes a byte at least; other formats may pack them.
        cells = (request.rows or 0) * request.datasets * len(columns) * (1 + request.versions)
        check_space(output, LEAST_ROOM + (cells if output.suffix == ".csv" else 0))


def _check_drawing(schema: Schema, request: Request, plan: Plan) -> None:
    """Refuse what could not be drawn or written later, whatever the table holds."""
    check_seed_pool(schema, plan)
    request.check_declared(schema)


def _check_quality(schema: Schema, request: Request, *, panel: bool) -> None:
    """Refuse distances where no result, or no expectation, would stand behind them."""
    reason = ""
    if wants_codec(schema):
        reason = (
            "edges and categories that the schema lists; these are measured by the release. List "
            "public ones, as pegs schema --binning equal-width drafts them, or leave out --quality"
        )
    elif not get(request.method).has_proof:
        reason = "methods that have a guarantee"
    elif request.replicates or request.synthesize:
        reason = "rows that count alike and are all drawn; leave out --replicates and --synthesize"
    elif panel:
        reason = "tables whose rows are counted as they are; a panel is folded"
    elif request.where:
        reason = "rows of all kinds; leave out --where"
    elif request.resume is not None:
        reason = "tables that are read in one go; leave out --resume"
    if reason:
        raise ParameterError(f"--quality goes with {reason}")


def panel_book(schema: Schema, request: Request) -> Schema | None:
    """Return the codebook of a panel, whose rows are to be folded; None for other tables (R24)."""
    if schema.panel is None:
        if request.wide:
            raise ParameterError("--wide goes with a schema that has [panel]; leave it out")
        return None
    if schema.panel.wide:
        raise SchemaError(
            "the schema is that of a folded panel (wide = true in [panel]); give the one of the "
            "long table"
        )
    if request.engine == "spark":
        raise ParameterError(
            "panels are folded on one machine, where the rows of a unit come together; use "
            "--engine local"
        )
    if request.synthesize:
        raise ParameterError(
            "--synthesize keeps the original rows, and those of a panel are folded; leave it out"
        )
    if not request.wide:
        check_unfolds(request.decode)
    if schema.panel.tables is not None and not request.wide:
        for flag, stated in (
            ("--complete", request.complete),
            ("--replicates", request.replicates),
        ):
            if stated:
                raise ParameterError(f"{flag} does not go with two tables yet; state --wide")
    return schema


def _with_transitions(schema: Schema, request: Request, long: Schema | None) -> Schema:
    """Let a method that cannot measure pooled transitions fold every position (R24)."""
    panel, method = schema.panel, get(request.method)
    if panel is None or not panel.pooled or method.pools:
        return schema
    if long is not None and long.panel is not None and long.panel.transitions:
        raise ParameterError(
            f'[panel]: transitions = "{POOLED}" goes with pegs-once, and {method.name} folds every '
            "position; leave it out"
        )
    return replace(schema, panel=replace(panel, transitions=FOLDED))


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
    written = reader.output_columns
    method = get(request.method)
    if not method.has_proof:
        # Where nothing is promised, rows are needed, and asked for by the name of the table.
        reader = replace(reader, may_be_empty=False)
    source, long = reader, settled.long or schema
    check_header(long, reader)
    if settled.long is not None:
        reader = folded_reader(reader, settled.long)
    _check_passes(reader, settled, checkpoint)
    warm_up(method.first_kernels)
    ledger = schema_ledger(schema, accept_unreviewed=request.accept_unreviewed_schema)
    ledger = selection_ledger(ledger, reader)
    if settled.quality is not None:
        # Charged before anything is read, whether or not the run gets so far (R34).
        ledger = ledger.add(*settled.quality.events)
    if checkpoint and reader.before_rows is not None:
        # Counts that were saved are counts of rows.
        reader.before_rows()
    kept = checkpoint.kept if checkpoint else None
    codec = None
    if wants_codec(schema):
        measured = replace(settled, schema=measured_positions(schema))
        first = reader if measured.schema == schema else folded_reader(source, first_rows(long))
        rows = MeasuredRows(first, measured.schema, stream, progress=progress)
        kept = rows.kept
        codec = at_positions(pay_for_codec(measured, rows.counts, stream), schema)
        schema, settled = codec.schema, with_codec(settled, codec)
        ledger = ledger.add(*codec.events, *left_over(settled))
    table = CodeTable(reader, schema, stream, kept=kept, progress=progress)
    if checkpoint:
        checkpoint.keep(table.kept)
    shapes = codec.shapes if codec else {}
    counted = StreamedTable(table, request.thread_count, progress, checkpoint, shapes)
    model = fit_counted(counted, settled, stream, ledger, progress=progress)
    # The declared types of the features, in the order of the schema (R30).
    types = {name: reader.dtypes[name] for name in schema.names if name in reader.dtypes}
    return replace(
        model,
        columns=written,
        dtypes=types,
        shapes=shapes,
        counted=table.kept,
        frame=None if source.frame_kind == "polars" else source.frame_kind,
    )


def _check_passes(reader: TableReader, settled: Settled, checkpoint: Checkpoint | None) -> None:
    """Refuse a table without the columns of the schema, or one that is to be read too often."""
    schema, method = settled.schema, get(settled.request.method)
    if not reader.folded:
        check_columns(schema, reader.columns, source=reader.source)
    if checkpoint and not method.resumes:
        raise ParameterError(f"{method.name} reads the table once and cannot resume; drop --resume")
    if checkpoint and wants_codec(schema):
        raise ParameterError(
            "--resume goes with edges and categories that are listed; those that are measured cost "
            "anew each time"
        )
    if reader.once:
        _check_one_pass(schema, quality=settled.quality is not None)


def _check_one_pass(schema: Schema, *, quality: bool) -> None:
    """Refuse what reads a table again that can be read once."""
    reason = ""
    if quality:
        reason = "--quality takes another pass over the table"
    elif schema.analyses:
        reason = "declared analyses take another pass over the table"
    elif wants_codec(schema):
        reason = "edges and categories that are measured take two passes over the table"
    if reason:
        raise ParameterError(
            f"{reason}, and this one can be read once; write it to a file first"
            + (", or list them in the schema" if wants_codec(schema) else "")
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


def at_positions(codec: PaidCodec, schema: Schema) -> PaidCodec:
    """Return what was measured of first rows for every position, where transitions are pooled."""
    panel = schema.panel
    if panel is None or not panel.pooled:
        return codec
    shapes = dict(codec.shapes)
    for name in panel.changing(codec.schema.names):
        shape = codec.shapes.get(panel.at(name, 1))
        # The time of later rows is the time since the row before, which has no shape.
        if shape is not None and name != panel.time:
            # A clipped sum is about first rows alone.
            later = without_sum(shape)
            shapes |= {panel.at(name, position): later for position in panel.positions}
            shapes[panel.at(name, 1)] = shape
    return replace(codec, schema=at_all_positions(codec.schema, schema), shapes=shapes)


def with_codec(settled: Settled, codec: PaidCodec) -> Settled:
    """Settle the release again, now that the codec is known and what is left is known."""
    request = settled.request
    method = get(request.method)
    options = request.options_for(method, saved=settled.saved)
    plan = method.settle(codec.schema, codec.budget, options)
    return replace(settled, schema=codec.schema, plan=plan)


def left_over(settled: Settled) -> tuple[Event, ...]:
    """Return what a plan leaves of a budget that a codec was paid from.

    How much the codec cost, and with that how the rest rounds, depends on the path: the whole
    counts as spent on every one (R6).
    """
    plan = settled.plan
    if plan is None or plan.budget.paid is None:
        return ()
    rest = plan.budget.whole(plan.budget.paid.route)
    cost = total(rest.route, plan.events, rows_per_unit=rows_of_a_unit(settled.schema))
    left = Fraction(0) if cost is None else rest.amount - Fraction(cost)
    return (Unspent.of(left, route=rest.route),) if left > 0 else ()


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
    method = get(request.method)
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
    booking
        The entry in the budget book; it is settled when all is in its place.
    """

    session: Session
    settled: Settled
    reader: TableReader
    kept: Callable[[pl.DataFrame], pl.DataFrame]
    booking: Booking = NO_BOOKING

    @property
    def keeps_rows(self) -> bool:
        """Whether the original rows are kept, some of their features drawn anew."""
        plan = self.settled.plan
        return plan is not None and bool(replaced_features(plan.options))

    @property
    def in_pairs(self) -> bool:
        """Whether two tables are drawn together, units and their rows (R24)."""
        panel = self.session.model.schema.panel
        return panel is not None and panel.tables is not None and not self.settled.request.wide

    def pairs(self, *, progress: Progress = quiet) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield units and their rows of every dataset, whole."""
        session, request = self.session, self.settled.request
        rows = session.rows_of_a_table(request.rows)
        told: dict[str, Any] = {"how": request.decode, "progress": progress}
        for parts in drawn_pairs(session, rows, request.datasets, **told):
            units, members = zip(*parts, strict=True)
            yield pl.concat(units), pl.concat(members)

    def frames(self, *, progress: Progress = quiet) -> Iterator[pl.DataFrame]:
        """Yield every synthetic table, whole."""
        session, request = self.session, self.settled.request
        rows = session.rows_of_a_table(request.rows)
        for frames in drawn_frames(
            session,
            rows,
            request.datasets,
            how=request.decode,
            wide=request.wide,
            progress=progress,
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
        told |= {"wide": request.wide}
        return completed_versions(self.session, frame, number, request.versions, **told)


@contextmanager
def open_draws(
    data: Any,
    schema: Schema | str | Path,
    request: Request,
    *,
    run: str = "synthesize",
    quality: tuple[float, Sequence[Sequence[str]]] | None = None,
    again: str = "",
    progress: Progress = quiet,
) -> Iterator[Draws]:
    """Settle, reserve, open the table, fit, and yield what can be drawn.

    When the block ends without an error, the checkpoint is no longer needed, and the entry in
    the budget book is settled.

    Parameters
    ----------
    run
        What the entry is called.
    again
        The flag that leaves out what reads the table once more when rows were drawn; empty:
        nothing does.
    """
    settled = settle(schema, request, data=data, quality=quality, intervals=run == "release")
    if again and read_once(data):
        raise ParameterError(
            "the internal report reads the table once more, and this one can be read once; write "
            f"it to a file first, or leave the report out ({again})"
        )
    plan, request = settled.plan, settled.request
    if plan is None:
        raise BudgetError("rows are drawn under a budget; state one")
    with booked_run(settled, run) as booking:
        yield from _drawn(data, settled, plan, booking, progress)


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
    if opening_reads(data):
        booking.begin()
    with open_table(data, dialect=schema.dialect, confidential=True) as reader:
        yield booking.watch(reader)


def _drawn(
    data: Any, settled: Settled, plan: Plan, booking: Booking, progress: Progress
) -> Iterator[Draws]:
    """Open the table, fit, and yield once what can be drawn; then settle with the book."""
    request = settled.request
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
        yield Draws(session, settled, reader, kept, booking)
    booking.settle(session.ledger)


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

    @contextmanager
    def booked(self, request: Request, run: str = "sample") -> Iterator[Booking]:
        """Reserve what is drawn in the book that was named; settle when the block ends well.

        A model with a budget of its own was paid for when it was fitted.
        """
        if request.book is not None and self.session.model.plan is not None:
            raise ParameterError(
                "--book: the model was paid for when it was fitted, whatever is drawn from it; "
                "leave it out"
            )
        session = self.session
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
        return SavedDraws(Session(model, plan, stream, threads=threads), _nothing, False)
    if request.has_budget or request.delta is not None:
        raise BudgetError(f"{model_file}: the model has a budget of its own; leave yours out")
    check_weights_requested(request)
    released = get(model.method).released
    free = {"--where", "--replicates", "--weight-name", "--shared-noise"} if released else set()
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
            replicates=request.replicates or None,
            weight_name=request.weight_name,
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
    wide: bool = False,
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
    wide
        Whether a panel is written with one row for each unit.
    """
    (frames,) = drawn_frames(session, rows, how=how, listed=True, wide=wide, progress=progress)
    if complete:
        table = pl.concat(frames)
        told: dict[str, Any] = {"threads": threads, "progress": progress, "wide": wide}
        frames = iter(completed_versions(session, table, 1, 1, **told))
    replacing = isinstance(output, Path) and output.exists()

    def before() -> None:
        commit()
        ledger = session.ledger
        meanwhile = true_of_both(ledger_path, ledger) if replacing else ledger
        atomic_text(ledger_path, meanwhile.to_json())

    texts = listed_columns(session.model, how, wide=wide)
    book = table_schema(session.model, wide=wide)
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
