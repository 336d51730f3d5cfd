"""Read a table and fit it, paying for what is looked at.

In go an open table and what was settled; out comes a model. Edges, shapes and categories that the
release measures are paid for first, and the plan is then that for the bins that were found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from pegsynth.codec.clipped_sum import without_sum
from pegsynth.codec.code_table import CodeTable
from pegsynth.codec.codec import check_columns
from pegsynth.codec.folding import folded_reader
from pegsynth.codec.measured_rows import MeasuredRows
from pegsynth.codec.paying import CodecCounts, PaidCodec, paid_codec, wants_codec
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.kernels.warm import warm_up
from pegsynth.methods import get
from pegsynth.methods.base import Fitting, Model, Plan
from pegsynth.methods.checkpoint import Checkpoint
from pegsynth.methods.counting import ConfidentialTable, StreamedTable
from pegsynth.methods.ledgers import schema_ledger, selection_ledger
from pegsynth.methods.pricing import rows_of_a_unit
from pegsynth.pipeline.settling import Settled, check_one_pass
from pegsynth.privacy import Event, Ledger, Unspent
from pegsynth.privacy.recorded import total
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.declared_types import check_header
from pegsynth.schema.wide_schema import at_all_positions, first_rows, measured_positions

if TYPE_CHECKING:
    from pegsynth.tables.reader import TableReader


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
    source, long = reader, settled.book
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
        settled, codec, paid = pay_for_codec(measured, rows.counts, stream, pooled=schema)
        schema, ledger = settled.schema, ledger.add(*paid)
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
            "--resume requires edges and categories that are listed; those that are measured cost "
            "anew each time"
        )
    if reader.once:
        check_one_pass(schema, quality=settled.quality is not None)


def pay_for_codec(
    settled: Settled,
    count: Callable[[], CodecCounts],
    stream: RandomStream,
    *,
    pooled: Schema | None = None,
) -> tuple[Settled, PaidCodec, tuple[Event, ...]]:
    """Measure edges, shapes and categories out of the budget of the release (R21, R29).

    Parameters
    ----------
    count
        Counts a table, units bounded.
    pooled
        The codebook of all positions, where `settled` has that of first rows (R24).

    Returns
    -------
    Settled, PaidCodec, tuple of Event
        What is to be done with the bins that were found, the codec, and what was charged.
    """
    request, plan = settled.request, settled.plan
    if plan is None:
        raise BudgetError("edges and categories are measured out of --epsilon; state that")
    codec = paid_codec(
        settled.schema,
        request.budget,
        count(),
        stream,
        rows_in=request.rows_in,
        private=get(plan.method).has_proof,
    )
    if pooled is not None:
        codec = _at_positions(codec, pooled)
    plan = settled.planned(codec.schema, codec.budget)
    settled = replace(settled, schema=codec.schema, plan=plan)
    return settled, codec, (*codec.events, *_left_over(plan, codec.schema))


def _at_positions(codec: PaidCodec, schema: Schema) -> PaidCodec:
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


def _left_over(plan: Plan, schema: Schema) -> tuple[Event, ...]:
    """Return what a plan leaves of a budget that a codec was paid from.

    How much the codec cost, and with that how the rest rounds, depends on the path: the whole
    counts as spent on every one (R6).
    """
    if plan.budget.paid is None:
        return ()
    rest = plan.budget.whole(plan.budget.paid.route)
    cost = total(rest.route, plan.events, rows_per_unit=rows_of_a_unit(schema))
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
    work = Fitting(table, schema, stream, ledger, request.thread_count, progress)
    if plan is None:
        content, ledger = method.count(request.options_for(method), work)
        return Model(schema, method.name, content, ledger)
    fitted = method.fit(plan, work)
    return Model(schema, method.name, fitted.content, fitted.ledger, fitted.plan)
