"""What a Gibbs sampler over hashed blocks settles before it sees the data.

Defaults are filled in, the budget is split over the parts that look at the data (order,
marginals, draws), and the smallest alpha is found that the draws can afford. A plan depends
on public quantities only, and its events are exactly what the ledger will say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.errors import BudgetError, ParameterError, escaped
from pegsynth.mechanisms.marginals import CAP_RESOLUTION, URN_RESOLUTION, most_prior_weight
from pegsynth.mechanisms.noise import noise_of
from pegsynth.methods.drawn_features import diversity_levels, drawn_features, replaced_features
from pegsynth.methods.gibbs.order import check_head_count, detail_features, plain_features
from pegsynth.methods.pricing import (
    AlphaPrice,
    PricedPlan,
    price_as_stated,
    price_of_total,
    rows_of_a_unit,
    unit_bound,
)
from pegsynth.methods.prior import check_total
from pegsynth.options import MOST_VISITS, KeyOptions, Order, PriorKind
from pegsynth.privacy import (
    Allowance,
    Budget,
    Diversity,
    Event,
    NoisyCounts,
    NotPrivate,
    Selection,
)

if TYPE_CHECKING:
    from pegsynth.mechanisms.marginals import Marginals
    from pegsynth.methods.gibbs.merging import Merging
    from pegsynth.methods.gibbs.method import GibbsMethod
    from pegsynth.methods.gibbs.spec import HashSpec
    from pegsynth.schema import Schema

DEFAULT_HEADS = 2
ENTRIES_EXPONENT = 2 / 3


@dataclass(frozen=True)
class Keys:
    """How a table is cut into blocks.

    Parameters
    ----------
    heads, tail_bits, order
        m, t, and where the heads come from.
    order_rows
        About how many rows an order of the data looks at; None for all.
    """

    heads: int
    tail_bits: int
    order: Order
    order_rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class GibbsPlan(PricedPlan):
    """A release of a Gibbs sampler, settled.

    Parameters
    ----------
    keys
        How the table is cut into blocks.
    choice
        The event of all private head choices, if they are private.
    marginals
        The event of the noisy one-way counts, if any part needs them.
    prior, seed_pool
        Where virtual rows and seed rows come from.
    """

    keys: Keys
    choice: Selection | None = None
    marginals: NoisyCounts | None = None
    prior: PriorKind = "uniform"
    seed_pool: str | Path = "uniform"

    @property
    def merges(self) -> bool:
        """Whether small categories are merged by the paid counts."""
        return self.prior == "levels"

    def merging(self, schema: Schema, spec: HashSpec, marginals: Marginals) -> Merging:
        """Merge small categories by paid counts (R25)."""
        from pegsynth.methods.gibbs.merging import merge

        return merge(schema, spec, marginals, numerator=self.numerator, scale=self.scale)

    @property
    def resolution(self) -> int:
        """How finely a marginal prior follows its marginal."""
        return URN_RESOLUTION if getattr(self.options, "urn", False) else CAP_RESOLUTION


def settle_gibbs(
    method: GibbsMethod, schema: Schema, budget: Budget, options: Any, *, scale: int
) -> GibbsPlan:
    """Settle a release from public quantities; the gaps of `options` are filled already."""
    total = budget.epsilon is not None
    keys = settle_keys(
        schema, options, total=total, heads=method.default_heads(options, total=total)
    )
    prior: PriorKind = options.prior or "uniform"
    pool = options.seed_pool or "uniform"
    if prior == "levels" and replaced_features(options):
        raise ParameterError(
            "--prior levels merges categories, and --synthesize keeps columns as they are; use "
            "--prior marginal or uniform"
        )
    needed = prior != "uniform" or pool == "marginal" or keys.order == "private"
    if needed and not total:
        raise BudgetError(
            "private order, prior by marginals or levels and marginal seed rows are paid out of "
            "--epsilon; "
            "state that, or leave them public and uniform"
        )
    purpose = "marginals and levels" if prior == "levels" else "marginals"
    paid = _priced(
        method, schema, budget, options, keys, marginals=purpose if needed else "", scale=scale
    )
    plan = GibbsPlan(
        method=method.name,
        options=options,
        budget=budget,
        numerator=paid.numerator,
        scale=scale,
        draws=paid.draws,
        before=paid.before,
        after=after_draws(schema, options, pool),
        details=detail_count(schema, options),
        keys=keys,
        choice=paid.paid.get("order"),
        marginals=paid.paid.get("marginals"),
        prior=prior,
        seed_pool=pool,
    )
    _check_fits(schema, plan)
    return plan


def settle_keys(schema: Schema, options: KeyOptions, *, total: bool, heads: int) -> Keys:
    """Return m, t and order.

    Parameters
    ----------
    heads
        m where the user left it open.
    """
    features = len(plain_features(schema))
    if options.heads is not None:
        heads = check_head_count(options.heads, features)
    heads = min(heads, features - 1)
    return Keys(
        heads, options.tail_bits, _order(schema, options, heads, total=total), options.order_rows
    )


def _order(schema: Schema, options: KeyOptions, heads: int, *, total: bool) -> Order:
    if heads == 0:
        return "public"
    if options.order is not None:
        return options.order
    listed = any(feature.heads for feature in schema.features)
    return "private" if total and not listed else "public"


def after_draws(schema: Schema, options: Any, pool: str | Path) -> tuple[Event, ...]:
    """Return what the ledger says of rows or columns that stay as they are."""
    if replaced := replaced_features(options):
        return (kept_columns(schema, replaced),)
    if pool == "original":
        return (NotPrivate.because("original-seed-pool"),)
    return ()


def kept_columns(schema: Schema, replaced: tuple[str, ...]) -> NotPrivate:
    """Say which columns hold original values, and which were replaced."""
    kept = [name for name in schema.names if name not in replaced]
    detail = f"kept: {', '.join(kept)}; replaced: {', '.join(replaced)}"
    return NotPrivate.because("kept-columns", detail=escaped(detail))


def detail_count(schema: Schema, options: Any) -> int:
    """Return how many drawn features are details of another."""
    return len(set(drawn_features(schema, options)) & set(detail_features(schema)))


def _priced(
    method: GibbsMethod,
    schema: Schema,
    budget: Budget,
    options: Any,
    keys: Keys,
    *,
    marginals: str,
    scale: int,
) -> AlphaPrice:
    """Return what the budget buys; `marginals` says what one-way counts are for, if any."""
    shape, unit = method.shape(schema, options), rows_of_a_unit(schema)
    if budget.kind == "l-diversity":
        return AlphaPrice(0, None, (*unit_bound(schema), _diversity(schema, budget, options)))
    if budget.kind != "total":
        return price_as_stated(
            method.name, schema, budget, shape, scale=scale, per_row=method.per_row(shape)
        )
    parts: dict[str, Any] = {}
    if marginals:
        parts["marginals"] = lambda allowed: marginal_event(
            schema, allowed, unit, purpose=marginals
        )
    if keys.order == "private":
        parts["order"] = lambda allowed: _choice_event(schema, allowed, keys.heads, unit)
    return price_of_total(schema, budget, shape, scale=scale, parts=parts)


def _diversity(schema: Schema, budget: Budget, options: Any) -> Diversity:
    if getattr(options, "urn", False):
        raise ParameterError(
            "--urn puts drawn values back into their entry, which then is no longer l-diverse; "
            "leave out --urn or --l"
        )
    levels = diversity_levels(schema, budget, options)
    names = tuple(escaped(schema.names[i]) for i in sorted(levels))
    return Diversity(l=min(levels.values()), features=names)


def _check_fits(schema: Schema, plan: GibbsPlan) -> None:
    """Refuse what might not fit in 64 bits, before any data is read.

    Bounds are public: the most rows that a table may have, the largest weights that any
    marginals can give. So no row decides whether a release is refused.
    """
    if plan.marginals is not None:
        noise_of(plan.marginals)
    if plan.prior == "marginal":
        widest = max(schema.category_counts)
        check_total(plan.numerator, most_prior_weight(widest, plan.resolution))
    if plan.prior == "levels":
        from pegsynth.methods.gibbs.merging import most_virtual

        check_total(1, most_virtual(max(schema.category_counts), plan.numerator))


def default_visits(schema: Schema, rows: int, heads: int, tail_bits: int) -> int:
    """Return the visit cap T that lets most entries answer all of their visits.

    A chain of n rows visits the entries of a feature n times in all. Visits crowd on few
    entries: on real tables about K**(2/3) of K keys take most of them, so n / K**(2/3)
    visits each are enough and a larger cap would only cost alpha.
    """
    wanted = math.ceil(rows / used_entries(schema, heads, tail_bits))
    return min(max(1, wanted), MOST_VISITS)


def used_entries(schema: Schema, heads: int, tail_bits: int) -> float:
    """Estimate how many entries of a feature take most visits: K**(2/3) of K keys."""
    counts = schema.category_counts
    mean = math.exp(sum(map(math.log, counts)) / len(counts))
    return float((mean**heads * 2**tail_bits) ** ENTRIES_EXPONENT)


def marginal_event(
    schema: Schema, allowed: Allowance, unit: int, *, purpose: str = "marginals"
) -> NoisyCounts:
    """Return the least noise on all one-way counts within an allowance (R11, R12)."""
    features = len(schema.features)
    about: dict[str, Any] = {
        "cells": features,
        "purpose": purpose,
        "features": tuple(map(escaped, schema.names)),
        "levels": schema.category_counts,
        "table_cells": sum(schema.category_counts),
    }
    if allowed.route == "pure":
        scale = Fraction(features * unit) / allowed.amount
        return NoisyCounts.laplace(_float_above(scale), **about)
    variance = Fraction(features * unit * unit) / (2 * allowed.amount)
    sigma = math.sqrt(variance)
    while Fraction(sigma) ** 2 < variance:
        sigma = math.nextafter(sigma, math.inf)
    return NoisyCounts.gaussian(sigma, **about)


def _float_above(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _choice_event(schema: Schema, allowed: Allowance, heads: int, unit: int) -> Selection:
    """Return the largest epsilon of each private choice within an allowance (R10, R12)."""
    # A detail's only head is its parent, which nobody has to choose.
    plain = plain_features(schema)
    choices = len(plain) * heads
    each = allowed.amount / (choices * unit)
    if allowed.route == "zcdp":
        square = 8 * allowed.amount / (choices * unit * unit)
        each = Fraction(math.sqrt(square))
        while each * each > square:
            each = Fraction(math.nextafter(float(each), 0.0))
    # A short fraction keeps the exact choices quick; rounding down spends less.
    epsilon = Fraction(math.floor(each * (1 << 40)), 1 << 40)
    if epsilon <= 0:
        raise BudgetError(
            "the share of order is too small to choose heads privately; raise epsilon or use "
            "--order public"
        )
    return Selection.of(
        epsilon,
        count=choices,
        purpose="order",
        features=tuple(escaped(schema.names[i]) for i in plain),
        candidates=len(plain) - 1,
        among="the other features, as heads",
    )
