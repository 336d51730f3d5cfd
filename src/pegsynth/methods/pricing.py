"""Plans whose price is an alpha: the smallest one that a budget affords (R1-R5, R8, R9, R17).

Methods that mix the data with virtual rows say what their draws look like, as an event whose alpha
is open. From that and the budget follows alpha, before any data is read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pegsynth.errors import BudgetError, ParameterError, escaped
from pegsynth.methods.base import F, Method, Options, Plan
from pegsynth.methods.drawn_features import drawn_features, replaced_features
from pegsynth.methods.stored_model import StoredModel, StoredPlan
from pegsynth.options import RowOptions
from pegsynth.privacy import (
    Allowance,
    Budget,
    Draws,
    Event,
    NoisyCounts,
    NotPrivate,
    UnitBound,
    alpha_per_row,
    calibrate,
    stated_alpha,
)
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.privacy.conversion import Route
from pegsynth.privacy.draw_events import DETAILS, DRAWS

if TYPE_CHECKING:
    from pegsynth.auditing.run import Finding
    from pegsynth.schema import Schema


@dataclass(frozen=True, kw_only=True)
class PricedPlan(Plan):
    """A plan with an alpha.

    Parameters
    ----------
    numerator, scale
        Smallest alpha, exact: numerator / scale; 0 for unperturbed or l-diverse draws.
    draws
        The event of all draws together, or None when they carry no price.
    details
        How many of the drawn features are details, drawn given their parent.
    before, after
        What the ledger says around the draws.
    seed_pool
        Where seed rows come from, where there are any.
    """

    numerator: int
    scale: int
    draws: Draws | None
    before: tuple[Event, ...]
    after: tuple[Event, ...] = ()
    details: int = 0
    seed_pool: str | Path = "uniform"

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything the ledger will say, in order."""
        return self.events_with(self.draws)

    def events_with(self, draws: Draws | None) -> tuple[Event, ...]:
        """Return the events with these draws, those of details on a line of their own."""
        return (*self.before, *split_draws(draws, self.details), *self.after)

    @property
    def marginals(self) -> NoisyCounts | None:
        """The event of the noisy one-way counts, if any part needs them."""
        return next((each for each in self.before if isinstance(each, NoisyCounts)), None)

    @property
    def alpha(self) -> float:
        """Virtual rows per category."""
        return self.numerator / self.scale


@dataclass(frozen=True)
class AlphaPrice:
    """What a budget buys along one route: alpha, the draws, and what was paid for before them."""

    numerator: int
    draws: Draws | None
    before: tuple[Event, ...]


def split_draws(draws: Draws | None, details: int) -> tuple[Event, ...]:
    """Return the draws as events; prices add up over features, so details stand apart."""
    if draws is None:
        return ()
    if details == 0:
        return (draws,)
    fields = {name: getattr(draws, name) for name in draws.__struct_fields__}
    apart = type(draws)(**fields | {"features": details, "label": DETAILS})
    if details == draws.features:
        return (apart,)
    return (type(draws)(**fields | {"features": draws.features - details}), apart)


def rows_of_a_unit(schema: Schema) -> int:
    """Return how many rows one unit may change (R12)."""
    return schema.rows_per_unit if schema.unit else 1


def unit_bound(schema: Schema) -> tuple[Event, ...]:
    """Return the event that bounds the rows of a unit, if the schema names one."""
    if not schema.unit:
        return ()
    return (UnitBound(rows_per_unit=schema.rows_per_unit, label=escaped(schema.unit)),)


def price_of_total(
    schema: Schema,
    budget: Budget,
    shape: Draws,
    *,
    scale: int = DEFAULT_SCALE,
    parts: Mapping[str, Callable[[Allowance], Event]] | None = None,
) -> AlphaPrice:
    """Split a total over its parts along every route; return the cheapest.

    Parameters
    ----------
    parts
        How to make the event of every part that is paid for before the draws, by the name of
        its share, in the order of the ledger.
    """
    parts = parts or {}
    unit, widest = rows_of_a_unit(schema), max(schema.category_counts)

    def along(route: Route) -> AlphaPrice:
        allowed = budget.parts(tuple(parts), route=route)
        paid = [event(allowed[name]) for name, event in parts.items()]
        found = calibrate(
            shape, allowed["draws"], rows_per_unit=unit, scale=scale, categories=widest
        )
        return AlphaPrice(found.alpha_numerator, found, (*unit_bound(schema), *paid))

    return min(map(along, budget.routes), key=lambda each: each.numerator)


def price_as_stated(
    name: str,
    schema: Schema,
    budget: Budget,
    shape: Draws,
    *,
    scale: int = DEFAULT_SCALE,
    per_row: int | None,
) -> AlphaPrice:
    """Return the price of an alpha, or of an epsilon per row.

    Parameters
    ----------
    per_row
        Draws of one row that a row of the data influences in one sweep; None where the price
        does not grow in step with the rows.
    """
    widest, bound = max(schema.category_counts), unit_bound(schema)
    if budget.alpha == 0:
        return AlphaPrice(0, None, (*bound, NotPrivate.because("unperturbed")))
    if budget.alpha is not None:
        numerator = stated_alpha(budget.alpha, scale=scale, categories=widest)
    elif per_row is None:
        raise BudgetError(
            f"{name} has no price per row: its price does not grow in step with the rows; "
            "state --epsilon"
        )
    else:
        numerator = alpha_per_row(
            budget.epsilon_per_row or 0.0,
            features=per_row,
            sweeps=getattr(shape, "sweeps", 1),
            block_size=getattr(shape, "block_size", None),
            scale=scale,
            categories=widest,
        )
    return AlphaPrice(numerator, shape.at(numerator, scale), bound)


def need_rows(name: str, options: RowOptions, *, total: bool) -> None:
    """Ask for the number of rows where the price grows with it."""
    if options.rows is None and total:
        raise ParameterError(
            f"--rows is needed: the price of {name} grows with the rows ever to be drawn"
        )


def kept_or_original(
    schema: Schema, options: RowOptions, pool: str | Path = "uniform"
) -> tuple[Event, ...]:
    """Return what the ledger says of rows or columns that stay as they are."""
    if replaced := replaced_features(options):
        kept = [name for name in schema.names if name not in replaced]
        detail = f"kept: {', '.join(kept)}; replaced: {', '.join(replaced)}"
        return (NotPrivate.because("kept-columns", detail=escaped(detail)),)
    return (NotPrivate.because("original-seed-pool"),) if pool == "original" else ()


Q = TypeVar("Q", bound=PricedPlan)


class PricedMethod(Method[Options, Q, F]):
    """A method whose draws mix the data with virtual rows."""

    plan_type: type[Q]

    @abstractmethod
    def shape(self, schema: Schema, options: Options) -> Draws:
        """Return the public structure of the draws, which decides their price."""

    def drawn_size(self, schema: Schema, options: Options) -> dict[str, int]:
        """Return what all draws state: the drawn features, the rows and the datasets."""
        return {
            "features": len(drawn_features(schema, options)),
            "rows": options.rows or 1,
            "datasets": options.datasets,
        }

    def per_row(self, shape: Draws) -> int | None:
        """Return the draws of one row and sweep that a row of the data influences."""
        return shape.features

    def drawn_details(self, schema: Schema, options: Options) -> int:
        """Return how many drawn features are details of another, whose draws are told apart."""
        return 0

    def price(
        self,
        schema: Schema,
        budget: Budget,
        options: Options,
        *,
        scale: int,
        parts: Mapping[str, Callable[[Allowance], Event]] | None = None,
    ) -> Q:
        """Return the plan of draws at the smallest alpha that the budget affords.

        Parameters
        ----------
        parts
            Makes the events that are paid for before the draws out of a total.
        """
        shape = self.shape(schema, options)
        if budget.kind == "total":
            price = price_of_total(schema, budget, shape, scale=scale, parts=parts)
        elif budget.kind == "l-diversity":
            price = self.diverse_price(schema, budget, options)
        else:
            price = price_as_stated(
                self.name, schema, budget, shape, scale=scale, per_row=self.per_row(shape)
            )
        return self.plan_at(price, schema, budget, options, scale=scale)

    def diverse_price(self, schema: Schema, budget: Budget, options: Options) -> AlphaPrice:
        """Return what l-diverse draws cost, for methods that have them (R7)."""
        raise BudgetError(f"--l is for the pegs family, not for {self.name}")

    def plan_at(
        self, price: AlphaPrice, schema: Schema, budget: Budget, options: Options, *, scale: int
    ) -> Q:
        """Return the plan of this method at a price."""
        return self.plan_type(
            method=self.name,
            options=options,
            budget=budget,
            numerator=price.numerator,
            scale=scale,
            draws=price.draws,
            before=price.before,
            details=self.drawn_details(schema, options),
        )

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Enumerate tiny releases, where anything is claimed."""
        from pegsynth.auditing.run import audit_table_method

        return audit_table_method(self.name) if self.has_proof else iter(())

    def limited(self, plan: Q) -> bool:
        """Whether the plan covers a number of rows and no more."""
        return plan.budget.epsilon is not None and bool(plan.options.rows)

    def charged(self, schema: Schema, plan: Q, rows: int) -> tuple[Event, ...]:
        """Without a total there is no limit: the price follows the rows drawn so far."""
        partial = bool(replaced_features(plan.options))
        total = plan.budget.epsilon is not None and not partial
        if total or plan.draws is None or not rows:
            return plan.events
        shape = self.shape(schema, plan.options).at(plan.numerator, plan.scale)
        return plan.events_with(msgspec.structs.replace(shape, rows=rows, datasets=1))

    def store_plan(self, plan: Q) -> StoredPlan:
        """Return alpha and where seed rows come from as well."""
        return replace(
            super().store_plan(plan),
            numerator=plan.numerator,
            scale=plan.scale,
            seed_pool=str(plan.seed_pool),
        )

    def load_plan(self, stored: StoredPlan, schema: Schema, model: StoredModel) -> Q:
        """Rebuild a plan; raise ValueError if its price is not that of its draws.

        What is drawn must be what is charged.
        """
        events, options = stored.events, stored.options
        details = self.drawn_details(schema, options)
        places = [i for i, event in enumerate(events) if isinstance(event, DRAWS)]
        charges = tuple(events[i] for i in places)
        first: Any = charges[0] if charges else None
        price = (first.alpha_numerator, first.alpha_denominator) if first else (0, stored.scale)
        draws = self.shape(schema, options).at(*price) if first else None
        if (stored.numerator, stored.scale) != price:
            raise ValueError("another alpha than that of the events")
        if split_draws(draws, details) != charges:
            raise ValueError("other draws than those of the events")
        cut = (places[0], places[-1] + 1) if places else (len(events), len(events))
        return self.plan_type(
            method=self.name,
            options=options,
            budget=stored.budget,
            numerator=stored.numerator,
            scale=stored.scale,
            draws=draws,
            details=details,
            before=events[: cut[0]],
            after=events[cut[1] :],
            seed_pool=stored.seed_pool,
        )
