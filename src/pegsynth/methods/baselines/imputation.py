"""Sequential draws from fitted conditional models: `mi`, `pmi`, `cart`, `forest` (R8, R16).

Only `pmi` perturbs what it draws, and only it has a price. The others are what synthpop and
multiple imputation do, for comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.base import Fitted, Model, Sampler
from pegsynth.methods.gibbs.method import need_rows
from pegsynth.methods.method_options import MiOptions, PmiOptions
from pegsynth.methods.pricing import (
    AlphaPrice,
    PricedMethod,
    PricedPlan,
    price_of_total,
    rows_of_a_unit,
    unit_bound,
)
from pegsynth.privacy.calibrate import DEFAULT_SCALE

if TYPE_CHECKING:
    from pegsynth.auditing.run import Finding
    from pegsynth.mechanisms.marginals import Marginals
    from pegsynth.methods.base import Codes
    from pegsynth.methods.baselines.sequential_draws import ConditionalModel
    from pegsynth.methods.counting import ConfidentialTable
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.privacy import Budget, Ledger, NoisyCounts, Structure
    from pegsynth.privacy.assumptions import Assumption, Parameters
    from pegsynth.progress import Progress
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema

PREFIX = "conditionals: "
_POOLS = ("uniform", "marginal", "original")


@dataclass(frozen=True, kw_only=True)
class ImputationPlan(PricedPlan):
    """A release from conditional models, settled.

    Parameters
    ----------
    seed_pool
        Where seed rows come from.
    marginals
        The event of the noisy one-way counts, if seed rows need them.
    """

    seed_pool: str | Path
    marginals: NoisyCounts | None = None


@dataclass(frozen=True)
class ImputationFit:
    """Fitted conditional models, and the rows where draws need them; confidential.

    Parameters
    ----------
    marginals
        Noisy marginals, if they were paid for.
    """

    conditionals: ConditionalModel = field(repr=False)
    rows: Codes | None = field(default=None, repr=False)
    marginals: Marginals | None = None


class Imputation(PricedMethod[ImputationFit]):
    """A method that draws feature after feature given the others."""

    plan_type = ImputationPlan

    def settle(
        self, schema: Schema, budget: Budget, options: Any, *, scale: int = DEFAULT_SCALE
    ) -> ImputationPlan:
        """Choose seed rows and find the smallest alpha."""
        from pegsynth.methods.gibbs.gibbs_plan import after_draws

        total = budget.epsilon is not None
        options = self.filled(schema, options, total=total)
        pool = options.seed_pool
        if pool == "marginal" and not total:
            raise BudgetError(
                "marginal seed rows are paid out of --epsilon; state that, or start from others"
            )
        price = self._priced(schema, budget, options, scale=scale)
        after = after_draws(schema, options, pool) if self.has_proof or options.synthesize else ()
        plan: ImputationPlan = self.planned(
            budget,
            options,
            price,
            scale=scale,
            after=after,
            seed_pool=pool,
            marginals=price.paid.get("marginals"),
        )
        return plan

    def filled(self, schema: Schema, options: Any, *, total: bool) -> Any:
        """Choose seed rows: the original ones where nothing is promised anyway."""
        if options.synthesize:
            if schema.unit:
                raise ParameterError("--synthesize keeps every row, which bounding units would not")
            return replace(options, seed_pool="original")
        need_rows(self.name, options, total=total)
        return replace(options, seed_pool=options.seed_pool or "original")

    def _priced(self, schema: Schema, budget: Budget, options: Any, *, scale: int) -> AlphaPrice:
        from pegsynth.privacy import NotPrivate

        return AlphaPrice(
            0, None, (*unit_bound(schema), NotPrivate.because("no-proof", detail=self.name))
        )

    def shape(self, schema: Schema, options: Any) -> Structure:
        """Every row is S sweeps over the drawn features."""
        from pegsynth.methods.drawn_features import drawn_features
        from pegsynth.privacy import Structure

        return Structure(
            method="pmi",
            features=len(drawn_features(schema, options)),
            rows=options.rows or 1,
            sweeps=options.sweeps,
            datasets=options.datasets,
        )

    def fit(
        self,
        table: ConfidentialTable,
        schema: Schema,
        plan: Any,
        stream: RandomStream,
        ledger: Ledger,
        *,
        threads: int,
        progress: Progress,
    ) -> Fitted[Any, ImputationFit]:
        """Pay for marginals if seed rows need them; fit every feature given the others."""
        from pegsynth.methods.baselines.conditional_models import fit_conditionals

        marginals = _paid_marginals(table, schema, plan.marginals, stream)
        rows = table.rows()
        conditionals = fit_conditionals(
            rows, schema, self.name, stream, threads=threads, progress=progress
        )
        needed = plan.seed_pool == "original" or _proper(plan.options)
        fit = ImputationFit(conditionals, rows if needed else None, marginals)
        return Fitted(fit, plan, ledger)

    def sampler(self, model: Model, plan: Any, *, threads: int) -> Sampler:
        """Draw whole rows from seed rows, or replace features of the original rows."""
        from pegsynth.methods.baselines.sequential_draws import ImputingSampler, ReplacingSampler

        kind = ReplacingSampler if plan.options.synthesize else ImputingSampler
        return kind(self.name, model, plan)

    def declared_options(self, plan: Any) -> Parameters:
        """Return sweeps and seed rows."""
        pool = str(plan.seed_pool) if plan.seed_pool in _POOLS else "file"
        return {"sweeps": plan.options.sweeps, "seed_rows": pool}

    def declared_structure(self, schema: Schema, plan: Any) -> tuple[Assumption, ...]:
        """Return the parents of details, which are drawn after all others."""
        from pegsynth.methods.ledgers import of_parents

        return of_parents(schema, plan.options)

    def store(self, content: ImputationFit) -> StoredModel:
        """Return the fitted models as arrays, and the rows."""
        from pegsynth.methods.stored_model import StoredModel, with_rows

        held = content.conditionals.arrays()  # type: ignore[attr-defined]
        marginals = content.marginals
        return StoredModel(
            shares=[line.tolist() for line in marginals.shares] if marginals else [],
            total=marginals.total if marginals else 1.0,
            arrays=with_rows({PREFIX + name: a for name, a in held.items()}, content.rows),
        )

    def load(self, stored: StoredModel, schema: Schema, plan: Any) -> ImputationFit:
        """Rebuild the fitted models."""
        from pegsynth.mechanisms.marginals import stored_marginals
        from pegsynth.methods.baselines.conditional_models import load_conditionals
        from pegsynth.methods.stored_model import stored_rows

        return ImputationFit(
            load_conditionals(stored.under(PREFIX), self.name, schema),
            stored_rows(stored.arrays, schema),
            stored_marginals(stored.shares, stored.total, schema.category_counts),
        )

    def store_plan(self, plan: Any) -> dict[str, Any]:
        """Return alpha and where seed rows come from."""
        return super().store_plan(plan) | {"seed_pool": str(plan.seed_pool)}

    def load_plan(
        self, stored: Mapping[str, Any], schema: Schema, model: StoredModel
    ) -> ImputationPlan:
        """Rebuild a plan."""
        from pegsynth.privacy import NoisyCounts

        options, events = stored["options"], stored["events"]
        return ImputationPlan(
            method=self.name,
            options=options,
            budget=stored["budget"],
            seed_pool=stored["seed_pool"],
            marginals=next((e for e in events if isinstance(e, NoisyCounts)), None),
            **self.restored_price(schema, options, stored),
        )


class Mi(Imputation):
    """Regressions without perturbation."""

    name = "mi"
    summary = "regressions of every feature on the others (multiple imputation); no guarantee"
    options = MiOptions
    has_proof = False


class Cart(Imputation):
    """Classification trees, as in synthpop."""

    name = "cart"
    summary = "classification trees (as in synthpop); no guarantee"
    options = MiOptions
    has_proof = False


class Forest(Imputation):
    """Random forests."""

    name = "forest"
    summary = "random forests; no guarantee"
    options = MiOptions
    has_proof = False


class Pmi(Imputation):
    """Regressions with virtual rows: the paper's perturbed multiple imputation."""

    name = "pmi"
    summary = "regressions with virtual rows (the paper's perturbed multiple imputation)"
    options = PmiOptions

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Enumerate tiny releases."""
        from pegsynth.auditing.run import audit_table_method

        return audit_table_method(self.name)

    def filled(self, schema: Schema, options: Any, *, total: bool) -> Any:
        """Choose seed rows: paid marginals, or public uniform ones."""
        if options.synthesize:
            return super().filled(schema, options, total=total)
        pool = options.seed_pool or ("marginal" if total else "uniform")
        return super().filled(schema, replace(options, seed_pool=pool), total=total)

    def _priced(self, schema: Schema, budget: Budget, options: Any, *, scale: int) -> AlphaPrice:
        from pegsynth.mechanisms.noise import noise_of
        from pegsynth.methods.baselines.sequential_draws import check_alpha
        from pegsynth.methods.gibbs.gibbs_plan import marginal_event

        unit = rows_of_a_unit(schema)
        if budget.kind == "total" and options.seed_pool == "marginal":
            parts = {"marginals": lambda allowed: marginal_event(schema, allowed, unit)}
            shape = self.shape(schema, options)
            price = price_of_total(schema, budget, shape, scale=scale, parts=parts)
            noise_of(price.paid["marginals"])
        else:
            price = self.price(schema, budget, options, scale=scale)
        # Bounds are public, so that no row decides whether a release is refused.
        check_alpha(max(schema.category_counts), price.numerator, scale)
        return price


def _proper(options: Any) -> bool:
    """Whether parameters are redrawn for every dataset; `pmi` does not."""
    return bool(getattr(options, "proper", False))


def _paid_marginals(
    table: ConfidentialTable, schema: Schema, event: NoisyCounts | None, stream: RandomStream
) -> Marginals | None:
    if event is None:
        return None
    from pegsynth.mechanisms.marginals import noisy_marginals
    from pegsynth.methods.gibbs.block_fitting import hash_spec, one_way_counts

    spec = hash_spec(schema, ((),) * len(schema.features), 0)
    counts = one_way_counts(table.blocks(spec, drawn_heads=False))
    return noisy_marginals(counts, event, stream)


MI, PMI, CART, FOREST = Mi(), Pmi(), Cart(), Forest()
