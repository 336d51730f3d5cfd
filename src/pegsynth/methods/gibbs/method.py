"""What the Gibbs samplers over hashed blocks have in common (PeGS, PeGS.rs, capped visits).

They differ in their options, in the shape of their draws, which sets the price, and in the
sampler.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pegsynth.errors import BudgetError, ModelError, ParameterError, escaped
from pegsynth.kernels.warm import counting_kernels
from pegsynth.mechanisms.marginals import most_prior_weight
from pegsynth.mechanisms.noise import noise_of
from pegsynth.methods.base import Fitted, Fitting, Model, Prediction, Sampler
from pegsynth.methods.drawn_features import diversity_levels, drawn_features, replaced_features
from pegsynth.methods.forecast import guarantees
from pegsynth.methods.gibbs.block_fitting import (
    GibbsFit,
    count_blocks,
    load_blocks,
    spec_of,
    store_blocks,
)
from pegsynth.methods.gibbs.chains import Schedule
from pegsynth.methods.gibbs.gibbs_plan import (
    DEFAULT_HEADS,
    GibbsPlan,
    Keys,
    choice_event,
    draws_urns,
    marginal_event,
    settle_keys,
    used_entries,
)
from pegsynth.methods.gibbs.merging import most_virtual
from pegsynth.methods.gibbs.order import detail_features, plain_features
from pegsynth.methods.gibbs.samplers import RestartedSampler, prepare
from pegsynth.methods.ledgers import of_parents
from pegsynth.methods.plan_model import expected, figures_of
from pegsynth.methods.pricing import (
    AlphaPrice,
    PricedMethod,
    kept_or_original,
    need_rows,
    rows_of_a_unit,
    unit_bound,
)
from pegsynth.methods.prior import check_total
from pegsynth.methods.registry import PegsCappedOptions, PegsOptions, PegsRsOptions
from pegsynth.methods.seed_rows import declared_pool
from pegsynth.privacy import (
    Allowance,
    Budget,
    Diversity,
    Draws,
    Event,
    Ledger,
    NotPrivate,
    PegsDraws,
)
from pegsynth.privacy.calibrate import DEFAULT_SCALE

if TYPE_CHECKING:
    from pegsynth.auditing.run import Finding
    from pegsynth.methods.stored_model import StoredModel, StoredPlan
    from pegsynth.privacy.assumptions import Assumption, Parameters
    from pegsynth.schema import Schema

LEVEL_TIMES = 64.0
"""About how many times the smallest alpha the virtual rows of merged levels are."""

G = TypeVar("G", bound=PegsOptions | PegsRsOptions | PegsCappedOptions)


class GibbsMethod(PricedMethod[G, GibbsPlan, GibbsFit]):
    """A Gibbs sampler over hashed blocks with virtual rows."""

    on_cluster: ClassVar[bool] = True
    fits_unpriced: ClassVar[bool] = True
    plan_type = GibbsPlan

    def filled(self, schema: Schema, options: G, *, total: bool) -> G:
        """Fill the gaps in the options that depend on the kind of budget."""
        need_rows(self.name, options, total=total)
        return replace(
            options,
            prior=options.prior or ("levels" if total else "uniform"),
            seed_pool=options.seed_pool or ("marginal" if total else "uniform"),
        )

    def shape(self, schema: Schema, options: G) -> Draws:
        """Every row is S sweeps over the drawn features."""
        return PegsDraws.shape(**self.drawn_size(schema, options), sweeps=options.sweeps)

    def schedule(self, options: G) -> Schedule:
        """Return how rows hang together: every row is a chain of its own."""
        return Schedule(1, options.sweeps)

    @abstractmethod
    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Predict the share of visits that entries answer.

        Parameters
        ----------
        entries
            How many entries of a feature take most visits.
        """

    @abstractmethod
    def detail(self, plan: GibbsPlan) -> str:
        """Say in a few words how rows are drawn, for ``pegs plan``."""

    def default_heads(self, options: G, *, total: bool) -> int:
        """Return m where the user left it open."""
        return DEFAULT_HEADS

    def drawn_details(self, schema: Schema, options: G) -> int:
        """Return how many drawn features are details of another."""
        return len(set(drawn_features(schema, options)) & set(detail_features(schema)))

    def settle(
        self, schema: Schema, budget: Budget, options: G, *, scale: int = DEFAULT_SCALE
    ) -> GibbsPlan:
        """Split the budget over order, marginals and draws, and find the smallest alpha."""
        total, unit = budget.epsilon is not None, rows_of_a_unit(schema)
        options = self.filled(schema, options, total=total)
        heads = self.default_heads(options, total=total)
        keys = settle_keys(schema, options, total=total, heads=heads)
        prior, pool = options.prior or "uniform", options.seed_pool or "uniform"
        if prior == "levels" and replaced_features(options):
            raise ParameterError(
                "--prior levels merges categories, and --synthesize keeps columns as they are; use "
                "--prior marginal or uniform"
            )
        parts: dict[str, Callable[[Allowance], Event]] = {}
        if prior != "uniform" or pool == "marginal" or keys.order == "private":
            purpose = "marginals and levels" if prior == "levels" else "marginals"
            parts["marginals"] = lambda allowed: marginal_event(
                schema, allowed, unit, purpose=purpose
            )
        if keys.order == "private":
            parts["order"] = lambda allowed: choice_event(schema, allowed, keys.heads, unit)
        if parts and not total:
            raise BudgetError(
                "private order, prior by marginals or levels and marginal seed rows are paid out "
                "of --epsilon; state that, or leave them public and uniform"
            )
        plan = replace(
            self.price(schema, budget, options, scale=scale, parts=parts),
            after=kept_or_original(schema, options, pool),
            keys=keys,
            prior=prior,
            seed_pool=pool,
        )
        _check_fits(schema, plan)
        return plan

    def diverse_price(self, schema: Schema, budget: Budget, options: G) -> AlphaPrice:
        """Return l-diverse draws, which carry no epsilon (R7)."""
        if draws_urns(options):
            raise ParameterError(
                "--urn puts drawn values back into their entry, which then is no longer l-diverse; "
                "leave out --urn or --l"
            )
        levels = diversity_levels(schema, budget, options)
        names = tuple(escaped(schema.names[i]) for i in sorted(levels))
        diverse = Diversity(l=min(levels.values()), features=names)
        return AlphaPrice(0, None, (*unit_bound(schema), diverse))

    def count(self, options: G, work: Fitting) -> tuple[GibbsFit, Ledger]:
        """Count blocks for which a budget is stated later, when rows are drawn."""
        keys = settle_keys(work.schema, options, total=False, heads=DEFAULT_HEADS)
        return count_blocks(work, keys)

    def fixed_keys(self, model: Model) -> dict[str, Any]:
        """Return heads and tail bits as they were counted."""
        spec = model.content.blocks.spec
        heads = max(len(spec.heads[i]) for i in plain_features(model.schema))
        return {"heads": heads, "tail_bits": spec.tail_bits, "order": "public"}

    def fit(self, plan: GibbsPlan, work: Fitting) -> Fitted[GibbsPlan, GibbsFit]:
        """Count blocks, and keep rows where seed rows or kept columns need them."""
        fit, ledger = count_blocks(work, plan.keys, plan)
        if plan.seed_pool == "original":
            fit = replace(fit, rows=work.table.rows())
        return Fitted(fit, plan, ledger)

    def sampler(self, model: Model, plan: GibbsPlan, *, threads: int) -> Sampler:
        """Make the machine ready."""
        ready = prepare(model.schema, model.content, plan)
        return RestartedSampler(ready, self.schedule(plan.options), threads=threads)

    def declared_options(self, plan: GibbsPlan) -> Parameters:
        """Return keys, virtual rows, sweeps and seed rows."""
        keys = plan.keys
        given: Parameters = {"heads": keys.heads, "tail_bits": keys.tail_bits, "prior": plan.prior}
        given |= {"order": keys.order} if keys.heads else {}
        return given | {"sweeps": plan.options.sweeps, "seed_rows": declared_pool(plan.seed_pool)}

    def declared_structure(self, schema: Schema, plan: GibbsPlan) -> tuple[Assumption, ...]:
        """Return the parents of details: a detail is drawn given its parent."""
        return of_parents(schema, plan.options)

    def store(self, content: GibbsFit) -> StoredModel:
        """Return the counts as cells."""
        return store_blocks(content)

    def load(self, stored: StoredModel, schema: Schema, plan: GibbsPlan | None) -> GibbsFit:
        """Rebuild the blocks."""
        return load_blocks(stored, schema)

    def store_plan(self, plan: GibbsPlan) -> StoredPlan:
        """Return where heads and virtual rows come from as well."""
        return replace(super().store_plan(plan), order=plan.keys.order, prior=plan.prior)

    def load_plan(self, stored: StoredPlan, schema: Schema, model: StoredModel) -> GibbsPlan:
        """Rebuild a plan; heads and tail bits are those of the counts."""
        spec = spec_of(model, schema)
        heads = max(len(spec.heads[i]) for i in plain_features(schema))
        if draws_urns(stored.options):
            raise ModelError("it asks for urns, which no model file holds")
        plan = super().load_plan(stored, schema, model)
        return replace(plan, keys=Keys(heads, spec.tail_bits, stored.order), prior=stored.prior)

    def predict(self, schema: Schema, plan: GibbsPlan) -> Prediction:
        """Predict errors by the fitted formula, and how much of a draw comes from the data."""
        options, counts = plan.options, schema.category_counts
        mean = sum(counts) / len(counts)
        times = {"uniform": mean, "marginal": plan.resolution * mean, "levels": LEVEL_TIMES}
        virtual = plan.alpha * times[plan.prior]
        rows = (options.rows or 1) * options.datasets
        entries = used_entries(schema, plan.keys.heads, plan.keys.tail_bits)
        held = (options.rows_in or rows) / entries
        answered = self.answered(plan, entries)
        from_data = answered * held / (held + virtual) if held + virtual > 0 else 0.0
        error = expected(self.name, figures_of(schema, plan))
        pure, stated = guarantees(plan)
        origins = f"order {plan.keys.order}, prior {plan.prior}, seeds {plan.seed_pool}"
        return Prediction(
            plan,
            error.pairs,
            pure,
            stated,
            f"{self.detail(plan)}; {origins}",
            heads=plan.keys.heads,
            alpha=plan.alpha,
            virtual_rows=virtual,
            prior_share=1 - from_data,
            columns_error=error.columns,
        )

    def describe(self, model: Model, *, confidential: bool) -> Iterable[str]:
        """Yield heads and key spaces."""
        spec = model.content.blocks.spec
        # Heads read off the data are not public, whatever else a model tells.
        heads_public = confidential or not any(
            isinstance(event, NotPrivate) and event.code == "data-order"
            for event in model.ledger.events
        )
        yield f"tail bits: {spec.tail_bits}"
        for target, name in enumerate(spec.names):
            heads = ", ".join(spec.names[head] for head in spec.heads[target]) or "none"
            shown = f", heads {heads}, key space {spec.key_space(target)}" if heads_public else ""
            levels = spec.category_counts[target]
            count = len(spec.levels[target]) if spec.levels else levels
            merged = f" in {levels} levels" if levels < count else ""
            yield f"  {name}: {count} categories{merged}{shown}"

    def confidential_figures(self, model: Model) -> list[str]:
        """Return how many keys and rows every block holds."""
        blocks, lines = model.content.blocks, []
        for name, block in zip(blocks.spec.names, blocks.blocks, strict=True):
            keys, _, counts = block.cells()
            lines.append(f"  {name}: {len(set(keys.tolist()))} keys seen, {int(counts.sum())} rows")
        return lines

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Enumerate tiny releases of this schedule, and sample many."""
        from pegsynth.auditing.run import audit_gibbs

        return audit_gibbs(self.name, full=full, threads=threads)

    def first_kernels(self) -> None:
        """Load what counts blocks."""
        counting_kernels()


def _check_fits(schema: Schema, plan: GibbsPlan) -> None:
    """Refuse what might not fit in 64 bits, before any data is read.

    Bounds are public: the most rows that a table may have, the largest weights that any
    marginals can give. So no row decides whether a release is refused.
    """
    widest = max(schema.category_counts)
    if plan.marginals is not None:
        noise_of(plan.marginals)
    if plan.prior == "marginal":
        check_total(plan.numerator, most_prior_weight(widest, plan.resolution))
    if plan.prior == "levels":
        check_total(1, most_virtual(widest, plan.numerator))
