"""The Gibbs samplers: when chains start anew, and how often an entry answers.

`pegs` starts every row anew (R3), `pegs-rs` every block of rows (R4); in `pegs-capped` an entry
answers T visits in the whole release, so rows are free (R5, R17).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pegsynth.errors import ModelError, ParameterError
from pegsynth.methods.base import Model, Sampler
from pegsynth.methods.gibbs.blocks import dense_limit
from pegsynth.methods.gibbs.chains import MOST_URN_BYTES, Schedule, chain_limits, urn_bytes
from pegsynth.methods.gibbs.gibbs_plan import (
    DEFAULT_HEADS,
    GibbsPlan,
    default_visits,
    settle_keys,
)
from pegsynth.methods.gibbs.method import GibbsMethod
from pegsynth.methods.gibbs.order import detail_features
from pegsynth.methods.gibbs.samplers import (
    CappedSampler,
    ReplacingSampler,
    UrnSampler,
    prepare,
)
from pegsynth.methods.registry import PegsCappedOptions, PegsOptions, PegsRsOptions
from pegsynth.methods.seed_rows import starts_from_original, whole_rows
from pegsynth.privacy import BlockDraws, CappedDraws, UrnDraws
from pegsynth.privacy.calibrate import DEFAULT_SCALE

if TYPE_CHECKING:
    from pegsynth.methods.stored_model import StoredPlan
    from pegsynth.privacy import Budget, Draws, Event
    from pegsynth.privacy.assumptions import Parameters
    from pegsynth.schema import Schema


class Pegs(GibbsMethod[PegsOptions]):
    """Gibbs sweeps over perturbed blocks, a new chain for every row; every row is paid for."""

    name = "pegs"
    summary = "Gibbs sweeps over perturbed blocks, a new chain for every row (the paper's PeGS)"
    options = PegsOptions

    def filled(self, schema: Schema, options: PegsOptions, *, total: bool) -> PegsOptions:
        """Choose virtual rows and seed rows."""
        if options.synthesize:
            return starts_from_original(schema, options)
        return super().filled(schema, options, total=total)

    def sampler(self, model: Model, plan: GibbsPlan, *, threads: int) -> Sampler:
        """Draw whole rows, or replace features of the original rows."""
        if not plan.options.synthesize:
            return super().sampler(model, plan, threads=threads)
        ready = prepare(model.schema, model.content, plan)
        rows = whole_rows(model.schema, model.content.rows)
        return ReplacingSampler(ready, self.schedule(plan.options), rows)

    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Every visit is answered."""
        return 1.0

    def detail(self, plan: GibbsPlan) -> str:
        """Say how many sweeps a row has."""
        return f"{plan.options.sweeps} sweeps per row"


class PegsRs(GibbsMethod[PegsRsOptions]):
    """Chains of B rows in which an entry answers once; a block of rows costs as much as one."""

    name = "pegs-rs"
    summary = "blocks of rows in which an entry answers once, then a reset (the paper's PeGS.rs)"
    options = PegsRsOptions

    def shape(self, schema: Schema, options: PegsRsOptions) -> Draws:
        """Count S sweeps over the drawn features for a block of rows."""
        size = self.drawn_size(schema, options)
        return BlockDraws.shape(**size, sweeps=options.sweeps, block_size=options.block_size)

    def schedule(self, options: PegsRsOptions) -> Schedule:
        """Let an entry answer once in a block."""
        return Schedule(options.block_size, options.sweeps, limit=1)

    def lot(self, plan: GibbsPlan) -> int:
        """Return B: a block is paid for whole."""
        size: int = plan.options.block_size
        return size

    def declared_options(self, plan: GibbsPlan) -> Parameters:
        """Return the rows of a block as well."""
        return super().declared_options(plan) | {"block_size": plan.options.block_size}

    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Within a block an entry answers once: distinct entries over visits."""
        visits = plan.options.block_size * plan.options.sweeps
        return float(entries * (1 - (1 - 1 / entries) ** visits) / visits)

    def detail(self, plan: GibbsPlan) -> str:
        """Say how large a block is."""
        return f"blocks of {plan.options.block_size}"


CAPPED_HEADS = 1
DEFAULT_CHAINS = 4


class PegsCapped(GibbsMethod[PegsCappedOptions]):
    """Chains that run on, every entry answering a capped number of visits."""

    name = "pegs-capped"
    summary = "every entry answers a capped number of visits, and rows are free after that"
    options = PegsCappedOptions

    def settle(
        self,
        schema: Schema,
        budget: Budget,
        options: PegsCappedOptions,
        *,
        scale: int = DEFAULT_SCALE,
    ) -> GibbsPlan:
        """Settle a release.

        Where the user left open whether visits go back into their urn (R17), both ways are
        settled, and the urn is taken when it needs at most half the virtual rows that the
        same visits would need without it.
        """
        if options.urn is not None:
            return super().settle(schema, budget, options, scale=scale)
        cap = super().settle(schema, budget, replace(options, urn=False), scale=scale)
        if budget.epsilon is None or (options.chains or 1) > 1:
            return cap
        urn = super().settle(schema, budget, replace(options, urn=True), scale=scale)
        alike = replace(options, urn=False, visits=urn.options.visits, heads=urn.keys.heads)
        counted = super().settle(schema, budget, alike, scale=scale)
        affordable = _urns_fit(schema, urn) and 2 * urn.numerator <= counted.numerator
        return urn if affordable else cap

    def filled(
        self, schema: Schema, options: PegsCappedOptions, *, total: bool
    ) -> PegsCappedOptions:
        """Choose visit cap, chains, virtual rows and seed rows."""
        visits = options.visits
        if visits is None:
            heads = self.default_heads(options, total=total)
            keys = settle_keys(schema, options, total=total, heads=heads)
            if options.rows is None:
                raise ParameterError("--rows or --visits is needed to choose the visit cap")
            rows = options.rows * options.datasets
            visits = default_visits(schema, rows, keys.heads, options.tail_bits)
        chains = options.chains or (1 if options.urn else min(DEFAULT_CHAINS, visits))
        chain_limits(visits, chains)
        return replace(
            options,
            visits=visits,
            chains=chains,
            prior=options.prior or ("marginal" if total else "uniform"),
            seed_pool=options.seed_pool or ("marginal" if total else "uniform"),
        )

    def default_heads(self, options: PegsCappedOptions, *, total: bool) -> int:
        """Return m: a cap leaves visits for few entries, urns for more."""
        return CAPPED_HEADS if total and not options.urn else DEFAULT_HEADS

    def shape(self, schema: Schema, options: PegsCappedOptions) -> Draws:
        """Let an entry answer T visits, dealt to G chains, or T draws of an urn."""
        size = self.drawn_size(schema, options) | {"visits": options.visits or 0}
        if options.urn:
            return UrnDraws.shape(**size)
        return CappedDraws.shape(**size, sweeps=options.sweeps, chains=options.chains or 1)

    def per_row(self, shape: Draws) -> int | None:
        """Rows cost nothing after the visits are paid for."""
        return None

    def sampler(self, model: Model, plan: GibbsPlan, *, threads: int) -> Sampler:
        """Count visits, or put drawn values back into their urn."""
        ready = prepare(model.schema, model.content, plan)
        if plan.options.urn:
            return UrnSampler(ready, plan.options)
        return CappedSampler(ready, plan.options, threads=threads)

    def limited(self, plan: GibbsPlan) -> bool:
        """Rows are free; visits are what is limited."""
        return False

    def charged(self, schema: Schema, plan: GibbsPlan, rows: int) -> tuple[Event, ...]:
        """Return the price of the visits, however many rows were drawn."""
        return plan.events

    def saved_options(self, options: PegsCappedOptions) -> PegsCappedOptions:
        """Count visits unless the user asks for urns, which no file holds."""
        return replace(options, urn=False) if options.urn is None else options

    def declared_options(self, plan: GibbsPlan) -> Parameters:
        """Return visits, chains and urn as well."""
        options = plan.options
        capped = {"visits": options.visits, "chains": options.chains or 1, "urn": bool(options.urn)}
        return super().declared_options(plan) | capped

    def store_plan(self, plan: GibbsPlan) -> StoredPlan:
        """Refuse urns, which a model file does not hold."""
        if plan.options.urn:
            raise ModelError(
                "urns are not saved with a model; fit with --no-urn, or use synthesize"
            )
        return super().store_plan(plan)

    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Visits beyond the cap are answered by the public distribution."""
        options = plan.options
        rows = (options.rows or 1) * options.datasets
        return float(min(1.0, (options.visits or 1) * entries / (rows * options.sweeps)))

    def detail(self, plan: GibbsPlan) -> str:
        """Say how many visits there are."""
        options = plan.options
        return f"{options.visits} {'urn ' if options.urn else ''}visits, {options.chains} chains"


def _urns_fit(schema: Schema, plan: GibbsPlan) -> bool:
    """Say whether urns fit in memory whichever heads will be chosen."""
    # A detail's key is its parent, however few heads the others have.
    heads = max(plan.keys.heads, min(1, len(detail_features(schema))))
    largest = sorted(schema.category_counts, reverse=True)[:heads]
    keys = math.prod(largest) << plan.keys.tail_bits
    entries = keys * len(schema.features)
    dense = keys * max(schema.category_counts) <= dense_limit(len(schema.features))
    return dense and urn_bytes(entries, plan.options.visits or 1) <= MOST_URN_BYTES


PEGS, PEGS_RS, PEGS_CAPPED = Pegs(), PegsRs(), PegsCapped()
