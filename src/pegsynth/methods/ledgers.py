"""What a run takes for public: every assumption that it uses, and none that it does not.

Each public input of a release has a line in the ledger: parts of the schema that the
method used, options, given values. Whatever is not listed here was not used, is an event,
or comes from who knows it: the seed pool from the sampler, the number of rows from the
session, a query from the reader.

The ledger of a release, put together from what schema, reader, fit and plan say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pegsynth.errors import escaped
from pegsynth.methods.drawn_features import (
    drawn_features,
    given_values,
    promised_levels,
    replaced_features,
)
from pegsynth.methods.gibbs.order import detail_features, plain_features
from pegsynth.methods.registry import ReplicatedOptions, get
from pegsynth.options import MethodOptions
from pegsynth.privacy import Ledger, NotPrivate, assumptions, this_program
from pegsynth.privacy.assumptions import Assumption, Parameters, rowwise_query, stated

if TYPE_CHECKING:
    from pegsynth.methods.base import Model, Plan
    from pegsynth.schema import Schema
    from pegsynth.tables.reader import TableReader


def of_schema(schema: Schema) -> tuple[Assumption, ...]:
    """Return what every run takes from its schema: the codebook, and whose a row is."""
    features = schema.features
    refused = named(f.name for f in features if f.unknown == "error")
    category = named(f.name for f in features if f.unknown == "category")
    return (
        *_codebook(schema),
        *_recodings(schema),
        assumptions.unlisted_values(refused=refused, category=category),
        *_order(schema),
        *_unit(schema),
    )


def _codebook(schema: Schema) -> Iterator[Assumption]:
    if schema.reviewed:
        features = schema.features
        yield assumptions.reviewed_schema(
            drafted_from_data=named(schema.drafted_from_data),
            # Those that are found are paid for.
            categories=named(f.name for f in features if not f.binned and not f.private_categories),
            # Edges that are measured are paid for; where they end may have been stated.
            edges=named(f.name for f in features if f.binned and not f.private_edges),
            bounds=named(
                f.name
                for f in features
                if f.private_edges and (f.lowest, f.highest) != (None, None)
            ),
            # What a panel says of its units has a line of its own.
            rows_per_unit=schema.rows_per_unit if schema.unit and not schema.panel else None,
            drafted_rules=named(
                rule.label or f"rule {number}"
                for number, rule in enumerate(schema.rules, start=1)
                if rule.drafted_from_data
            ),
        )


def _recodings(schema: Schema) -> Iterator[Assumption]:
    # What is merged by noisy counts is an event, and no assumption.
    public = {f.name: f.recoding.public() for f in schema.features if f.recoding}
    recoded = {escaped(name): rules.said() for name, rules in public.items() if rules.said()}
    if recoded:
        yield assumptions.public_recodings(recoded)
    described = named(c.name for c in schema.columns if c.label_of is not None)
    if described:
        yield stated("public-descriptions", {"features": described})


def _order(schema: Schema) -> Iterator[Assumption]:
    panel = schema.panel
    # From the second row on the time of a panel is counted from the row before (R24).
    gaps = {panel.at(panel.time, position) for position in panel.positions[1:]} if panel else set()
    counted = named(f.name for f in schema.features if f.after is not None and f.name not in gaps)
    if counted:
        yield stated("dates-in-order", {"features": counted})


def _unit(schema: Schema) -> Iterator[Assumption]:
    if schema.unit:
        yield stated(
            "unit-column", {"column": escaped(schema.unit), "rows_per_unit": schema.rows_per_unit}
        )
    if schema.panel:
        panel = schema.panel
        fixed = named(panel.fixed)
        unit, time = escaped(panel.unit), escaped(panel.time)
        pooled = panel.wide and panel.pooled
        yield assumptions.panel(unit, time=time, most=panel.most, fixed=fixed, pooled=pooled)


def of_heads(schema: Schema, heads: int) -> tuple[Assumption, ...]:
    """Return where public heads come from: listed ones first, then features in their order."""
    plain = plain_features(schema)
    others = {schema.names[i] for i in plain}
    listed = {schema.names[i]: len(others & set(schema.features[i].heads)) for i in plain}
    listing = named(name for name, count in listed.items() if count and heads)
    return (
        *((stated("public-heads", {"features": listing}),) if listing else ()),
        *((stated("feature-order"),) if min(listed.values()) < heads else ()),
    )


def of_release(schema: Schema, plan: Plan) -> tuple[Assumption, ...]:
    """Return what a settled release takes for public."""
    return (*of_structure(schema, plan), *of_choices(plan))


def of_structure(schema: Schema, plan: Plan) -> tuple[Assumption, ...]:
    """Return what it takes from the schema, which a saved model knows as well."""
    return (
        *get(plan.method).declared_structure(schema, plan),
        *_rules(schema),
        *_diversity(schema, plan),
    )


def of_shares(schema: Schema) -> tuple[Assumption, ...]:
    """Return the public shares of features, for a method that looks at them."""
    names = named(feature.name for feature in schema.features if feature.shares)
    return (stated("public-shares", {"features": names}),) if names else ()


def of_parents(schema: Schema, options: MethodOptions) -> tuple[Assumption, ...]:
    """Return the parents of drawn details, for a method that looks at them."""
    drawn = set(drawn_features(schema, options)) & set(detail_features(schema))
    if not drawn:
        return ()
    return (stated("public-parents", {"features": named(schema.names[i] for i in sorted(drawn))}),)


def _rules(schema: Schema) -> Iterator[Assumption]:
    # Rules that follow from a panel are no statement about people.
    declared = [rule for rule in schema.rules if not rule.structural]
    ruled = {feature for rule in declared for feature, _ in rule.forbidden}
    if ruled:
        names = named(schema.names[i] for i in sorted(ruled))
        drafted = any(rule.drafted_from_data for rule in declared)
        yield assumptions.public_rules(names, count=len(declared), drafted=drafted)


def _diversity(schema: Schema, plan: Plan) -> Iterator[Assumption]:
    levels = promised_levels(schema, plan)
    if levels:
        yield assumptions.public_diversity(
            {escaped(schema.names[i]): levels[i] for i in sorted(levels)}
        )


def of_choices(plan: Plan) -> Iterator[Assumption]:
    """Yield what the user chose for this run."""
    if given := given_values(plan.options):
        yield stated("given-values", {"features": named(name for name, _ in given)})
    about: Parameters = {"method": plan.method, "datasets": plan.options.datasets}
    if plan.options.rows is not None:
        about["rows"] = plan.options.rows
    if replaced := replaced_features(plan.options):
        about["synthesize"] = named(replaced)
    yield stated("public-options", about | get(plan.method).declared_options(plan))


def named(names: Iterable[str]) -> list[str]:
    """Return names as a ledger can hold them: without what steers a terminal."""
    return [escaped(name) for name in names]


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
        ledger = ledger.assume(stated("rows-in", {"rows_in": plan.options.rows_in}))
    ledger = replace(ledger, delta=plan.budget.delta or 0.0).add(*plan.events)
    return seeded_ledger(ledger) if seeded else ledger


def _replicated(plan: Plan) -> bool:
    options = plan.options
    return isinstance(options, ReplicatedOptions) and bool(options.replicates or options.own_noise)


def seeded_ledger(ledger: Ledger) -> Ledger:
    """Return a ledger that says, once, that a seed fixed the random numbers."""
    event = NotPrivate.because("seeded")
    return ledger if event in ledger.events else ledger.add(event)
