"""Every public choice of a release, settled before the data is read.

`make_recipe` takes the schema, the budget and what the user asked for; it fills in the
defaults, splits the budget over the parts that look at the data (order, marginals,
draws), and finds the smallest alpha the draws can afford. A recipe depends on public
quantities only, and its events are exactly what the ledger will say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.blocks.blocks import dense_limit
from pegsynth.errors import BudgetError, ParameterError, escaped
from pegsynth.hashing.order import check_head_count, detail_features, plain_features
from pegsynth.options import (
    CHAIN_METHODS,
    MOST_VISITS,
    PEGS_METHODS,
    UNBUDGETED_METHODS,
    DrawOptions,
    FitOptions,
    Order,
    PriorKind,
)
from pegsynth.perturb import SCALE, Prior, uniform_weights
from pegsynth.perturb.marginals import CAP_RESOLUTION, URN_RESOLUTION, most_prior_weight
from pegsynth.perturb.noise import noise_of
from pegsynth.perturb.prior import check_total
from pegsynth.privacy import (
    Allowance,
    Budget,
    Diversity,
    Draws,
    Event,
    NoisyCounts,
    NotPrivate,
    Selection,
    Shape,
    UnitBound,
    alpha_per_row,
    calibrate,
    stated_alpha,
)
from pegsynth.privacy.draws import DETAILS, UrnDraws
from pegsynth.sampling.capped import chain_limits
from pegsynth.sampling.conditional import check_alpha
from pegsynth.sampling.polya import MOST_URN_BYTES, urn_bytes
from pegsynth.synthesizers import loglinear
from pegsynth.synthesizers.drawn import clamped_codes, diversity_levels, drawn_features
from pegsynth.synthesizers.marginal import check_urns, default_draws
from pegsynth.synthesizers.released_blocks import ONCE, once_recipe

if TYPE_CHECKING:
    from pegsynth.privacy.budget import Route
    from pegsynth.schema import Schema

DEFAULT_HEADS = 2
CAPPED_HEADS = 1
DEFAULT_CHAINS = 4
ENTRIES_EXPONENT = 2 / 3


@dataclass(frozen=True)
class Recipe:
    """A release, settled.

    Parameters
    ----------
    heads, tail_bits, order
        m, t, and where the heads come from.
    choice
        The event of all private head choices, if they are private.
    marginals
        The event of the noisy one-way counts, if any part needs them.
    prior, seed_pool
        Where virtual rows and seed rows come from.
    draw
        The options with every gap filled.
    numerator, scale
        Smallest alpha, exact: numerator / scale; 0 for unperturbed or l-diverse draws.
    draws
        The event of all draws together, or None when they carry no price.
    details
        How many of the drawn features are details, drawn given their parent.
    around
        What the ledger says before and after the draws.
    order_rows
        About how many rows an order of the data looks at; None for all.
    """

    heads: int
    tail_bits: int
    order: Order
    choice: Selection | None
    marginals: NoisyCounts | None
    prior: PriorKind
    seed_pool: str | Path
    draw: DrawOptions
    budget: Budget
    numerator: int
    scale: int
    draws: Draws | None
    details: int
    around: tuple[tuple[Event, ...], tuple[Event, ...]]
    order_rows: int | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything the ledger will say, in order."""
        return self.events_with(self.draws)

    def events_with(self, draws: Draws | None) -> tuple[Event, ...]:
        """Return the events with these draws, those of details on a line of their own."""
        before, after = self.around
        return (*before, *split_draws(draws, self.details), *after)

    @property
    def resolution(self) -> int:
        """How finely a marginal prior follows its marginal."""
        return URN_RESOLUTION if self.draw.urn else CAP_RESOLUTION


def make_recipe(
    schema: Schema, budget: Budget, fit: FitOptions, draw: DrawOptions, *, scale: int = SCALE
) -> Recipe:
    """Settle a release from public quantities.

    Where the user left open whether capped visits go back into their urn (R17), both ways
    are settled, and the urn is taken when it needs at most half the virtual rows that
    the same visits would need without it.
    """
    if draw.method == ONCE:
        return once_recipe(schema, budget, fit, draw, scale=scale)
    if draw.method == "pegs-capped" and draw.urn is None:
        return _cap_or_urn(schema, budget, fit, draw, scale=scale)
    total = budget.epsilon is not None
    if draw.method not in PEGS_METHODS:
        fit = _without_keys(fit, draw.method)
    draw = _filled(schema, draw, fit, total=total)
    heads = _head_count(schema, fit, draw, total=total)
    order = _order(schema, fit, heads, total=total)
    prior: PriorKind = draw.prior or "uniform"
    pool = draw.seed_pool or "uniform"
    needed = prior == "marginal" or pool == "marginal" or order == "private"
    if needed and not total:
        raise BudgetError(
            "private order, marginal prior and marginal seed rows are paid out of --epsilon; "
            "state that, or leave them public and uniform"
        )
    parts = (*(("order",) if order == "private" else ()), *(("marginals",) if needed else ()))
    choices = [
        _priced(schema, budget, draw, heads=heads, parts=parts, route=route, scale=scale)
        for route in (budget.routes if total else ("pure",))
    ]
    paid = min(choices, key=lambda each: each.numerator)
    after: tuple[Event, ...] = ()
    if draw.synthesize:
        after = (_kept_columns(schema, draw),)
    elif pool == "original" and draw.method not in UNBUDGETED_METHODS:
        after = (NotPrivate.because("original-seed-pool"),)
    recipe = Recipe(
        heads,
        fit.tail_bits,
        order,
        paid.choice,
        paid.marginals,
        prior,
        pool,
        draw,
        budget,
        paid.numerator,
        scale,
        paid.draws,
        detail_count(schema, draw),
        (paid.before, after),
        fit.order_rows,
    )
    _check_fits(schema, recipe)
    return recipe


def _check_fits(schema: Schema, recipe: Recipe) -> None:
    """Refuse what might not fit in 64 bits or in memory, before any data is read.

    Bounds are public: the most rows that a table may have, the largest weights that any
    marginals can give. So no row decides whether a release is refused.
    """
    draw, counts = recipe.draw, schema.category_counts
    numerator, scale = recipe.numerator, recipe.scale
    if recipe.marginals is not None:
        noise_of(recipe.marginals)
    if recipe.prior == "marginal":
        check_total(numerator, most_prior_weight(max(counts), recipe.resolution))
    if draw.method == "marginal" and isinstance(recipe.draws, UrnDraws):
        alike = Prior(uniform_weights(counts), (numerator,) * len(counts), scale)
        check_urns(alike, recipe.draws.visits)
    if draw.method == "pmi":
        check_alpha(max(counts), numerator, scale)
    if draw.log_linear:
        given = clamped_codes(schema, draw)
        shape = tuple(1 if i in given else count for i, count in enumerate(counts))
        loglinear.check_size(shape)
        loglinear.check_alpha(math.prod(shape), numerator, scale)


def detail_count(schema: Schema, draw: DrawOptions) -> int:
    """Return how many drawn features are details of another; only pegs methods tell them apart."""
    if draw.method not in PEGS_METHODS:
        return 0
    return len(set(drawn_features(schema, draw)) & set(detail_features(schema)))


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


def _cap_or_urn(
    schema: Schema, budget: Budget, fit: FitOptions, draw: DrawOptions, *, scale: int
) -> Recipe:
    cap = make_recipe(schema, budget, fit, replace(draw, urn=False), scale=scale)
    if budget.epsilon is None or (draw.chains or 1) > 1:
        return cap
    urn = make_recipe(schema, budget, fit, replace(draw, urn=True), scale=scale)
    alike = replace(draw, urn=False, visits=urn.draw.visits)
    counted = make_recipe(schema, budget, replace(fit, heads=urn.heads), alike, scale=scale)
    affordable = _urns_fit(schema, urn) and 2 * urn.numerator <= counted.numerator
    return urn if affordable else cap


def _urns_fit(schema: Schema, recipe: Recipe) -> bool:
    """Say whether urns fit in memory whichever heads will be chosen."""
    # A detail's key is its parent, however few heads the others have.
    heads = max(recipe.heads, min(1, len(detail_features(schema))))
    largest = sorted(schema.category_counts, reverse=True)[:heads]
    keys = math.prod(largest) << recipe.tail_bits
    entries = keys * len(schema.features)
    dense = keys * max(schema.category_counts) <= dense_limit(len(schema.features))
    return dense and urn_bytes(entries, recipe.draw.visits or 1) <= MOST_URN_BYTES


def _kept_columns(schema: Schema, draw: DrawOptions) -> NotPrivate:
    """Say which columns hold original values, and which were replaced."""
    kept = [name for name in schema.names if name not in draw.synthesize]
    detail = f"kept: {', '.join(kept)}; replaced: {', '.join(draw.synthesize)}"
    return NotPrivate.because("kept-columns", detail=escaped(detail))


def _without_keys(fit: FitOptions, method: str) -> FitOptions:
    """Return the options of a method that has no keys, refusing those it would ignore."""
    if fit.heads or fit.order not in (None, "public") or fit.tail_bits not in (0, 1):
        raise ParameterError(
            f"--heads, --tail-bits and --order are for the pegs family, not for {method}"
        )
    return FitOptions(0, 0, "public")


def unpriced(schema: Schema, fit: FitOptions) -> tuple[int, int, Order]:
    """Return m, t and order of a model that is fitted without a budget."""
    features = len(plain_features(schema))
    heads = min(DEFAULT_HEADS, features - 1)
    if fit.heads is not None:
        heads = check_head_count(fit.heads, features)
    return heads, fit.tail_bits, _order(schema, fit, heads, total=False)


def shape_of(schema: Schema, draw: DrawOptions) -> Shape:
    """Return the public structure of the draws."""
    if draw.method == "marginal":
        visits = default_draws(draw.rows or 1, schema.rules)
        return Shape(
            method="urn",
            features=len(schema.features),
            rows=draw.rows or 1,
            datasets=draw.datasets,
            visits=visits,
            urns=draw.datasets,
        )
    if draw.log_linear:
        # A fitted table answers like any fitted probability vector, one draw per row (R8).
        return Shape(method="pmi", features=1, rows=draw.rows or 1, datasets=draw.datasets)
    return Shape(
        method="urn" if draw.urn else draw.method,  # type: ignore[arg-type]
        features=len(drawn_features(schema, draw)),
        rows=draw.rows or 1,
        sweeps=draw.sweeps,
        datasets=draw.datasets,
        block_size=draw.block_size if draw.method == "pegs-rs" else None,
        visits=draw.visits,
        chains=draw.chains or 1,
    )


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


def _filled(schema: Schema, draw: DrawOptions, fit: FitOptions, *, total: bool) -> DrawOptions:
    """Fill the gaps that depend on the method and the kind of budget."""
    capped = draw.method == "pegs-capped"
    if draw.method not in PEGS_METHODS and draw.prior == "marginal":
        raise ParameterError(f"--prior marginal is for the pegs family, not for {draw.method}")
    if draw.synthesize:
        if schema.unit:
            raise ParameterError("--synthesize keeps every row, which bounding units would not")
        return replace(draw, seed_pool="original")
    if draw.rows is None and (total and not capped):
        raise ParameterError(
            f"--rows is needed: the price of {draw.method} grows with the rows ever to be drawn"
        )
    if capped and draw.visits is None:
        heads = _head_count(schema, fit, draw, total=total)
        if draw.rows is None:
            raise ParameterError("--rows or --visits is needed to choose the visit cap")
        visits = default_visits(schema, draw.rows * draw.datasets, heads, fit.tail_bits)
        draw = replace(draw, visits=visits)
    if capped and draw.visits is not None:
        chains = draw.chains or (1 if draw.urn else min(DEFAULT_CHAINS, draw.visits))
        chain_limits(draw.visits, chains)
        draw = replace(draw, chains=chains)
    if draw.method not in CHAIN_METHODS:
        return draw
    if draw.method in UNBUDGETED_METHODS:
        return replace(draw, seed_pool=draw.seed_pool or "original")
    prior: PriorKind = draw.prior or ("marginal" if total and capped else "uniform")
    return replace(
        draw, prior=prior, seed_pool=draw.seed_pool or ("marginal" if total else "uniform")
    )


def _head_count(schema: Schema, fit: FitOptions, draw: DrawOptions, *, total: bool) -> int:
    features = len(plain_features(schema))
    if fit.heads is not None:
        return check_head_count(fit.heads, features)
    capped = draw.method == "pegs-capped" and total and not draw.urn
    wanted = CAPPED_HEADS if capped else DEFAULT_HEADS
    return min(wanted, features - 1)


def _order(schema: Schema, fit: FitOptions, heads: int, *, total: bool) -> Order:
    if heads == 0:
        return "public"
    if fit.order is not None:
        return fit.order
    listed = any(feature.heads for feature in schema.features)
    return "private" if total and not listed else "public"


@dataclass(frozen=True)
class _Paid:
    choice: Selection | None
    marginals: NoisyCounts | None
    numerator: int
    draws: Draws | None
    before: tuple[Event, ...]


def _priced(
    schema: Schema,
    budget: Budget,
    draw: DrawOptions,
    *,
    heads: int,
    parts: tuple[str, ...],
    route: Route,
    scale: int,
) -> _Paid:
    """Split the budget over the parts along one route, and price each."""
    unit = schema.rows_per_unit if schema.unit else 1
    bound: tuple[Event, ...] = (
        (UnitBound(rows_per_unit=unit, label=escaped(schema.unit)),) if schema.unit else ()
    )
    shape, widest = shape_of(schema, draw), max(schema.category_counts)
    if budget.kind != "total":
        numerator, draws, event = _unsplit(schema, budget, draw, shape, scale, widest)
        before = bound if draws is not None else (*bound, event)
        return _Paid(None, None, numerator, draws, before)
    allowed = budget.parts(parts, route=route)
    marginals = (
        _marginal_event(schema, allowed["marginals"], unit) if "marginals" in parts else None
    )
    choice = _choice_event(schema, allowed["order"], heads, unit) if "order" in parts else None
    found = calibrate(shape, allowed["draws"], rows_per_unit=unit, scale=scale, categories=widest)
    paid = tuple(event for event in (marginals, choice) if event is not None)
    return _Paid(choice, marginals, found.numerator, found.event, (*bound, *paid))


def _unsplit(
    schema: Schema, budget: Budget, draw: DrawOptions, shape: Shape, scale: int, widest: int
) -> tuple[int, Draws | None, Event]:
    """Return alpha, draws and event of a budget that is not a total epsilon."""
    method = draw.method
    if method in UNBUDGETED_METHODS:
        return 0, None, NotPrivate.because("no-proof", detail=method)
    if budget.kind == "l-diversity" and method not in PEGS_METHODS:
        raise BudgetError(f"--l is for the pegs family, not for {method}")
    if budget.kind == "l-diversity" and draw.urn:
        raise ParameterError(
            "--urn puts drawn values back into their entry, which then is no longer l-diverse; "
            "leave out --urn or --l"
        )
    if budget.kind == "l-diversity":
        levels = diversity_levels(schema, budget, draw)
        names = tuple(escaped(schema.names[i]) for i in sorted(levels))
        return 0, None, Diversity(l=min(levels.values()), features=names)
    if budget.alpha == 0:
        return 0, None, NotPrivate.because("unperturbed")
    if budget.alpha is not None:
        numerator = stated_alpha(budget.alpha, scale=scale, categories=widest)
    elif method in ("pegs-capped", "marginal"):
        raise BudgetError(
            f"{method} has no price per row: its price does not grow in step with the rows; "
            "state --epsilon"
        )
    else:
        numerator = alpha_per_row(
            budget.epsilon_per_row or 0.0,
            features=1 if method == "contingency" else shape.features,
            sweeps=shape.sweeps,
            block_size=shape.block_size,
            scale=scale,
            categories=widest,
        )
    event = shape.event(numerator, scale)
    return numerator, event, event


def _marginal_event(schema: Schema, allowed: Allowance, unit: int) -> NoisyCounts:
    """Return the least noise on all one-way counts within an allowance (R11, R12)."""
    features = len(schema.features)
    about: dict[str, Any] = {
        "cells": features,
        "purpose": "marginals",
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
