"""The ledger of a release, put together from what schema, reader, fit and plan say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pegsynth.methods.declarations import of_choices, of_release, of_schema, of_structure
from pegsynth.methods.registry import get
from pegsynth.privacy import Ledger, NotPrivate, this_program
from pegsynth.privacy.assumptions import Assumption, rows_in, rowwise_query

if TYPE_CHECKING:
    from pegsynth.io.reader import TableReader
    from pegsynth.methods.base import Model, Plan
    from pegsynth.schema import Schema


def schema_ledger(schema: Schema, *, accept_unreviewed: bool = False) -> Ledger:
    """Return the ledger that a schema starts: its review, or the lack of one (R10)."""
    ledger = Ledger().assume(*of_schema(schema)).made_by(this_program())
    if schema.reviewed:
        return ledger
    detail = "accepted by the user" if accept_unreviewed else ""
    return ledger.add(NotPrivate.because("unreviewed-schema", detail=detail))


def selection_ledger(ledger: Ledger, reader: TableReader) -> Ledger:
    """Add what is known of how a query selected the rows of a database (R10).

    A guarantee for rows of the database holds only if no row of the query depends on
    other rows.
    """
    if reader.selection == "other":
        return ledger.add(NotPrivate.because("query-not-rowwise"))
    if reader.selection == "view":
        return ledger.add(NotPrivate.because("view-not-rowwise"))
    if reader.selection == "whole":
        return ledger
    return ledger.assume(rowwise_query(declared=reader.selection == "declared"))


def release_ledger(
    model: Model, plan: Plan, *, assumptions: tuple[Assumption, ...], seeded: bool
) -> Ledger:
    """Return the complete ledger of a release, before its first row is drawn.

    Parameters
    ----------
    assumptions
        What the sampler takes for public.
    seeded
        Whether a seed fixed draws that look at the data.
    """
    schema = model.schema
    # Drawing from released blocks reads no data, so its options are no part of the guarantee.
    declared = of_structure if get(plan.method).released else of_release
    ledger = model.ledger.assume(*assumptions).assume(*declared(schema, plan))
    if _replicated(plan) and not (model.plan and _replicated(model.plan)):
        # Whose noise the tables have decides how they are analysed (R28).
        ledger = ledger.assume(*of_choices(plan))
    ledger = ledger.made_by(this_program())
    if plan.options.rows_in:
        ledger = ledger.assume(rows_in(plan.options.rows_in))
    ledger = replace(ledger, delta=plan.budget.delta or 0.0).add(*plan.events)
    return seeded_ledger(ledger) if seeded else ledger


def _replicated(plan: Plan) -> bool:
    options = plan.options
    return bool(getattr(options, "replicates", None) or getattr(options, "own_noise", False))


def seeded_ledger(ledger: Ledger) -> Ledger:
    """Return a ledger that says, once, that a seed fixed the random numbers."""
    event = NotPrivate.because("seeded")
    return ledger if event in ledger.events else ledger.add(event)
