"""Released blocks: how `pegs-once` settles, spends and draws (R11).

A plan reserves the whole budget before the data is read; fitting spends it through a
budget_filter and replaces the reservation by what was done and what was left. Rows are drawn from
the released tables alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.codec.codec import decode_values
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.mechanisms.privacy_filter import CHOICE_BITS, Price
from pegsynth.methods.base import Plan, Sampler
from pegsynth.methods.drawn_features import clamped_codes
from pegsynth.methods.gibbs.order import check_head_count
from pegsynth.methods.pricing import rows_of_a_unit, unit_bound
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._calibration import Added, Calibration
from pegsynth.methods.released._declared import (
    CodedValues,
    ValueTable,
    measure_analyses,
    settle_declared,
)
from pegsynth.methods.released._details import check_details, domain_of
from pegsynth.methods.released._draw import (
    LOT,
    choose_rows,
    draw_rows,
    level_codes,
    released_total,
)
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._replicates import MODEL_ROWS, Source, own_noise_versions
from pegsynth.methods.released._row_replicates import FITTED_ROWS, Replicates
from pegsynth.methods.released._values import Released
from pegsynth.privacy import Allowance, Budget, Event, UnitBound, Unspent
from pegsynth.random import RandomStream

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.codec.bin_shape import Shape
    from pegsynth.methods.base import Codes, Rows
    from pegsynth.methods.registry import PegsOnceOptions
    from pegsynth.methods.released._joint_fit import JointFit
    from pegsynth.methods.released._row_pool import Pool
    from pegsynth.methods.released._values import CountedTable
    from pegsynth.schema import Schema


MOST_CATEGORIES = 1 << 24
_PART_ROWS = 1 << 16
MOST_APART = (1 << 16) - 1
"""Levels are numbered by 16 bits; merging keeps other features far below that."""


@dataclass(frozen=True, kw_only=True)
class ReleasedPlan(Plan):
    """A release of blocks, settled.

    Parameters
    ----------
    heads
        Most head features of a block, m.
    spent
        What the ledger says: the reservation of the whole budget before fitting, afterwards
        what was done and what was left.
    """

    heads: int
    spent: tuple[Event, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything the ledger will say, in order."""
        return self.spent


@dataclass(frozen=True)
class ReleasedFit:
    """Released blocks, which may be published.

    Parameters
    ----------
    released
        Noisy tables and public structure.
    ready
        The weighted pool that fitting left; a model file does not hold it.
    """

    released: Released
    ready: JointFit | None = field(default=None, repr=False)

    @property
    def fresh(self) -> bool:
        """Whether it was fitted in this process and not read from a file."""
        return self.ready is not None


_LEAST_CHOICE = 1e-6
"""Less of the budget than choices get; which of them a run makes is decided by noise."""
_LOUDEST_CHOICE = 2.0 * (1 << CHOICE_BITS)
"""The scale of noise beyond which the filter cannot make a choice."""


def settle_released(
    method: str, schema: Schema, budget: Budget, options: PegsOnceOptions
) -> ReleasedPlan:
    """Settle a release of blocks: the whole budget is reserved for what fitting will do."""
    if budget.l is not None:
        raise BudgetError(
            f"{method} is differentially private and takes no --l; state --epsilon instead, or use "
            "--method pegs for l-diversity without differential privacy"
        )
    if budget.epsilon is None:
        raise BudgetError(f"{method} is paid once for the whole release; state --epsilon")
    if options.heads == 0:
        raise ParameterError(f"--heads must be at least 1 for {method}; leave it out for 3")
    check_head_count(options.heads or 0, len(schema.features))
    check_details(method, schema)
    settle_declared(schema)
    if max(schema.category_counts) > MOST_CATEGORIES:
        raise ParameterError(f"{method} takes at most {MOST_CATEGORIES} categories of a feature")
    for feature, apart in zip(schema.features, domain_of(schema, options).whole, strict=True):
        if apart and feature.category_count > MOST_APART:
            raise ParameterError(
                f"feature {feature.name!r}: with rules, details or --where {method} takes at "
                f"most {MOST_APART} categories; leave these out or use another method"
            )
    allowance = allowance_of(budget)
    rows = schema.rows_per_unit if schema.panel is None else schema.panel.most
    if Price(allowance, rows).choice_noise(_LEAST_CHOICE) > _LOUDEST_CHOICE:
        raise BudgetError("epsilon is too small to choose anything privately; raise it")
    reserved = (Unspent.of(allowance.amount, route=allowance.route),)
    return ReleasedPlan(
        method=method,
        options=options,
        budget=budget,
        heads=options.heads or Steps().heads,
        spent=(*unit_bound(schema), *reserved),
    )


def allowance_of(budget: Budget) -> Allowance:
    """Return what may be spent: rho when a delta was stated, else epsilon."""
    return budget.whole("pure" if budget.delta is None else "zcdp")


def steps_of(plan: ReleasedPlan) -> Steps:
    """Return the steps of a plan."""
    return Steps(heads=plan.heads)


def fit_released(
    rows_of: Codes | CountedTable,
    schema: Schema,
    plan: ReleasedPlan,
    work: Work,
    *,
    values: ValueTable | None = None,
) -> tuple[ReleasedFit, ReleasedPlan]:
    """Spend the budget on a table; return what may be published and what it cost.

    Parameters
    ----------
    rows_of
        A code matrix, or an object that counts the table.
    values
        Gives sums of values for declared analyses; without it a code matrix gives those of
        features without bins.
    """
    rows, stream = plan.options.rows, work.stream
    declared = settle_declared(schema)
    budget_filter = work.filter_of(
        allowance_of(plan.budget),
        stream,
        rows_per_unit=rows_of_a_unit(schema),
        threads=work.threads,
        names=schema.names,
        rest=plan.budget.paid is not None,
    )
    released, ready = release_blocks(
        rows_of,
        domain_of(schema, plan.options),
        budget_filter,
        replace(work, steps=work.steps or steps_of(plan)),
        rows=min(rows, LOT) if rows else None,
        declared=declared,
    )
    if declared.sums:
        source = values or CodedValues(rows_of, schema)
        released = measure_analyses(
            released,
            declared,
            schema,
            source,
            budget_filter,
            model_rows=partial(
                _model_rows, released, ready, schema, source.shapes, stream.aside("model rows")
            ),
            steps=work.sum_steps,
        )
    spent = (*unit_bound(schema), *budget_filter.events)
    return ReleasedFit(released, ready), replace(plan, spent=spent)


def _model_rows(
    released: Released,
    fit: JointFit,
    schema: Schema,
    shapes: Mapping[str, Shape],
    stream: RandomStream,
) -> pl.DataFrame:
    """Return values of rows that were drawn from what was released so far."""
    chosen = choose_rows(fit, min(fit.pool.rows, MODEL_ROWS))
    codes = level_codes(released, fit.pool.columns[:, chosen], stream)
    return decode_values(codes.astype(schema.code_dtype), schema, shapes, stream)


class ReleasedSampler(Sampler):
    """Draws rows from the released tables, which costs nothing."""

    def __init__(
        self,
        fit: ReleasedFit,
        schema: Schema,
        plan: ReleasedPlan,
        *,
        shapes: Mapping[str, Shape] | None = None,
        threads: int,
    ) -> None:
        super().__init__()
        self._fit, self._schema, self._plan, self._threads = fit, schema, plan, threads
        self._shapes = shapes or {}
        # Sums are about all rows, so they say nothing of those with given values.
        given = clamped_codes(schema, plan.options)
        self.calibration = None if given else Calibration.of(schema, fit.released)

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K datasets, each with noise of its own unless it is to be shared (R28)."""
        return [table for _, table in self.versions(rows, datasets, stream)]

    def versions(
        self, rows: int, datasets: int, stream: RandomStream
    ) -> list[tuple[Released, Rows]]:
        """Return K datasets, each with the counts that it was drawn from.

        Where noise is shared, the pool that fitting left serves the first.
        """
        if datasets > 1 and not self._plan.options.shared_noise:
            found = own_noise_versions(
                self.source(), rows, stream, count=datasets, threads=self._threads
            )
            return [(released, self._in_parts(lots)) for released, lots in found]
        return [
            (self._fit.released, self._in_parts(self._table(rows, stream, first=number == 0)))
            for number in range(datasets)
        ]

    def _in_parts(self, lots: Iterator[Codes]) -> Rows:
        """Yield lots in parts, so that decoding holds little at a time."""
        for lot in lots:
            for start in range(0, max(len(lot), 1), _PART_ROWS):
                yield lot[start : start + _PART_ROWS].astype(self._schema.code_dtype)

    def replicates(self, codes: Codes, rows: int, count: int, stream: RandomStream) -> Replicates:
        """Return what makes K replicate weights of rows (R28).

        Parameters
        ----------
        codes
            The first of them.
        rows
            How many there are.
        """
        source = self.source()
        fitted = partial(
            Replicates.fitted, stream=stream, count=count, rows=rows, threads=self._threads
        )
        if not source.given:
            return fitted(source, codes)
        # The tables are about all rows, so rows of all kinds tell what noise does to them.
        size = min(max(round(released_total(source.released)), 1), FITTED_ROWS)
        lots = draw_rows(
            source.released,
            size,
            stream,
            steps=source.steps,
            rules=source.rules,
            threads=self._threads,
        )
        drawn = np.concatenate(list(lots))
        matching = np.all([drawn[:, place] == code for place, code in source.given.items()], axis=0)
        part = max(float(matching.mean()), 0.5 / size)
        found = fitted(source, drawn)
        return replace(found, total=found.total * part, moved=found.moved / math.sqrt(part))

    def source(self) -> Source:
        """Return the published model as replicates want it."""
        schema, plan = self._schema, self._plan
        # Rows of one unit may all be alike: a safe bound on what that does to the variance.
        alike = float(schema.rows_per_unit) if schema.unit else 1.0
        return Source(
            self._fit.released,
            plan.events,
            steps_of(plan),
            schema.rules,
            clamped_codes(schema, plan.options),
            alike,
            self._added if self.calibration else None,
        )

    def _added(self, pool: Pool, stream: RandomStream) -> Added:
        """Return what the rows of a pool add to declared sums, once they have values."""
        if self.calibration is None:
            raise ParameterError("the model declares no analysis")
        codes = level_codes(self._fit.released, pool.columns, stream)
        frame = decode_values(
            codes.astype(self._schema.code_dtype), self._schema, self._shapes, stream
        )
        return self.calibration.added(frame)

    def _table(self, rows: int, stream: RandomStream, *, first: bool) -> Iterator[Codes]:
        schema, plan, fit = self._schema, self._plan, self._fit
        given = clamped_codes(schema, plan.options)
        ready = fit.ready if first and plan.options.rows == rows and not given else None
        return draw_rows(
            fit.released,
            rows,
            stream,
            steps=steps_of(plan),
            rules=schema.rules,
            given=given,
            threads=self._threads,
            ready=ready,
        )


def price_of(plan: ReleasedPlan) -> Price:
    """Return what parts of a plan's budget buy, for a prediction."""
    units = [event.rows_per_unit for event in plan.events if isinstance(event, UnitBound)]
    return Price(allowance_of(plan.budget), max(units, default=1))
