"""Make every public choice, once, before a table is opened: what is done, and what it costs.

In go a codebook and a `Request`; out comes one value, `Settled`, that everything after it reads.
What cannot be done, drawn or written is refused here, whatever the table holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.codec.paying import check_budget, wants_codec
from pegsynth.codec.unfolding import check_unfolds
from pegsynth.errors import ParameterError, SchemaError
from pegsynth.mechanisms.quality_distances import MOST_CELLS, QualityPlan, settle_quality
from pegsynth.methods import get
from pegsynth.methods.base import Plan
from pegsynth.methods.seed_rows import check_seed_pool
from pegsynth.options import Publication, RowOptions
from pegsynth.pipeline.drawn_tables import (
    check_decoding,
    check_weight_names,
    check_weights_requested,
    weight_names,
)
from pegsynth.pipeline.request import Able, Request
from pegsynth.privacy import Budget
from pegsynth.schema import Schema
from pegsynth.schema.panel import FOLDED, POOLED
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.atomic import check_space
from pegsynth.tables.table_input import read_once, same_file, table_files
from pegsynth.tables.table_output import check_table

if TYPE_CHECKING:
    from pegsynth.tables.database import DatabaseTarget

LEAST_ROOM = 1 << 14
"""Bytes that the smallest output takes, with its ledger."""


@dataclass(frozen=True)
class Settled:
    """What is to be done, from public quantities alone.

    Parameters
    ----------
    schema, request
        The codebook, and what was asked for, the method chosen.
    plan
        Every choice and price; None for a table that is counted now and priced later. Where
        the codec is itself measured, it is the plan for as many bins as there will be
        (`planned` gives that for the bins that there are).
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

    @property
    def book(self) -> Schema:
        """The codebook of the table as it is read."""
        return self.long or self.schema

    @cached_property
    def options(self) -> RowOptions:
        """The options of the method."""
        return self.request.options_for(get(self.request.method), saved=self.saved)

    def planned(self, schema: Schema, budget: Budget) -> Plan:
        """Return the plan for a codebook with so many bins, by the choices that were made."""
        plan: Plan = get(self.request.method).settle(schema, budget, self.options)
        return plan


def settle(
    schema: Schema | str | Path,
    request: Request,
    *,
    data: Any = None,
    saved: bool = False,
    rows_later: bool = False,
    able: Able | None = None,
    publication: Publication | None = None,
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
    able
        Refuses methods that ``auto`` must not take.
    publication
        The release folder that rows go into: it may buy distances, and otherwise rows get
        replicate weights where nobody said how many, and the method can.
    """
    source = "the schema" if isinstance(schema, Schema) else str(schema)
    written = request.written(schema if isinstance(schema, Schema) else Schema.load(schema))
    book, long = written, None
    if written.panel is None:
        if request.wide:
            raise ParameterError("--wide requires a schema that has [panel]; remove it")
    else:
        _check_panel(written, request)
        book, long = wide_schema(written), written
    measured = any(each.wants_shape and each.binned for each in book.features)
    check_decoding(request.decode, measured=measured)
    if request.complete:
        from pegsynth.methods.completion import check_completable

        check_completable(book, dict(request.where))
    request = _honest(request, book, data)
    request, notes = request.settled(book, saved=saved, able=able)
    if book.panel is not None:
        book = _with_transitions(book, request, written)
    buys = publication is not None and publication.quality is not None
    if publication is not None and not buys and request.replicates is None:
        request = request.with_replicates(book)
    for each in (written, book):
        check_weight_names(each, request)
    check_weights_requested(request)
    if saved and request.unpriced and get(request.method).fits_unpriced:
        if wants_codec(book):
            check_budget(book, Budget(alpha=0.0))
        return Settled(book, request, None, notes, long=long)
    if not (saved or rows_later):
        request.check_rows()
    if data is not None and read_once(data):
        check_one_pass(book, quality=buys)
    budget, quality = request.budget, None
    if publication is not None and publication.quality is not None:
        _check_quality(book, request, panel=long is not None)
        from pegsynth.methods.released import affordable_tables

        # What was declared is bought without being named once more.
        named = (*publication.quality_tables, *affordable_tables(book, MOST_CELLS))
        quality, budget = settle_quality(book, budget, publication.quality, named)
    plan = request.plan(book, source=source, saved=saved, budget=budget)
    check_seed_pool(book, plan)
    request.check_declared(book)
    return Settled(book, request, plan, notes, saved, long, quality)


def _honest(request: Request, schema: Schema, data: Any) -> Request:
    """Return a request that calls its seed pool by its name, with rows as published tables count.

    These are needed where nobody stated a number.
    """
    pool, rows = honest_seed_pool(data, request.seed_pool), request.rows
    if rows is None and request.from_tables is not None:
        from pegsynth.methods.evidence.pegs_tables import rows_in_tables

        rows = rows_in_tables(request.from_tables, schema)
    if (pool, rows) == (request.seed_pool, request.rows):
        return request
    return replace(request, seed_pool=pool, rows=rows)


def check_output(output: Path | DatabaseTarget, schema: Schema, request: Request) -> None:
    """Refuse what an output cannot hold, from the schema alone and before anything is read.

    Parameters
    ----------
    output
        The file of a table, or of the first of several.
    schema
        The codebook of the table that is written: of a panel the folded one with ``--wide``.
    """
    panel = None if request.wide else schema.panel
    columns = [column.name for column in schema.columns if not column.dropped]
    columns += [panel.unit] if panel is not None else []
    columns += weight_names(request)
    public = [feature for feature in schema.features if feature.name not in schema.unsettled]
    texts = [text for each in public for text in (*each.categories, *each.not_applicable)]
    # How many rows the units of a panel have is not known before they are drawn.
    rows = None if panel is not None else request.rows
    check_table(output, columns, rows=rows, texts=texts, dialect=schema.dialect)
    if isinstance(output, Path):
        # Every cell of a text takes a byte at least; other formats may pack them.
        cells = (request.rows or 0) * request.datasets * len(columns) * (1 + request.versions)
        check_space(output, LEAST_ROOM + (cells if output.suffix == ".csv" else 0))


def _check_quality(schema: Schema, request: Request, *, panel: bool) -> None:
    """Refuse distances where no result, or no expectation, would stand behind them."""
    reason = ""
    if wants_codec(schema):
        reason = (
            "needs edges and categories that the schema lists, and here the release measures them. "
            "Remove --quality, or list public ones, as pegs schema --binning equal-width drafts"
        )
    elif not get(request.method).has_proof:
        reason = f"needs a method with a guarantee; --method {request.method} has none"
    elif request.replicates or request.synthesize:
        flag = "--synthesize" if request.synthesize else "--replicates"
        reason = f"cannot be combined with {flag}; remove one of them"
    elif panel:
        reason = "cannot be combined with a panel, whose rows are folded before they are counted"
    elif request.where:
        reason = "cannot be combined with --where; remove one of them"
    elif request.resume is not None:
        reason = "cannot be combined with --resume; remove one of them"
    if reason:
        raise ParameterError(f"--quality {reason}")


def _check_panel(schema: Schema, request: Request) -> None:
    """Refuse what cannot be done with rows that are folded (R24)."""
    if schema.panel is None:
        return
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
                raise ParameterError(f"{flag} cannot be combined with two tables yet; state --wide")


def _with_transitions(schema: Schema, request: Request, long: Schema) -> Schema:
    """Let a method that cannot measure pooled transitions fold every position (R24)."""
    panel, method = schema.panel, get(request.method)
    if panel is None or not panel.pooled or method.pools:
        return schema
    if long.panel is not None and long.panel.transitions:
        raise ParameterError(
            f'[panel]: transitions = "{POOLED}" requires pegs-once, and {method.name} folds every '
            "position; leave it out"
        )
    return replace(schema, panel=replace(panel, transitions=FOLDED))


def honest_seed_pool(data: Any, pool: str | Path | None) -> str | Path | None:
    """Call a seed pool that is the confidential table itself by its name (R10)."""
    if data is None or pool is None or pool in ("uniform", "marginal", "original"):
        return pool
    itself = any(same_file(a, b) for a in table_files(str(pool)) for b in table_files(data))
    return "original" if itself else pool


def check_one_pass(schema: Schema, *, quality: bool) -> None:
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
