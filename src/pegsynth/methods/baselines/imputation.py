"""Sequential draws from fitted conditional models: `mi`, `pmi`, `cart`, `forest` (R8, R16).

Only `pmi` perturbs what it draws, and only it has a price. The others are what synthpop and
multiple imputation do, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from pegsynth.errors import BudgetError, ModelError
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.mechanisms.marginals import Marginals
from pegsynth.mechanisms.noise import noise_of
from pegsynth.methods.base import Fitted, Fitting, Model, Rows, Sampler
from pegsynth.methods.baselines.glm import GlmModel
from pegsynth.methods.baselines.glm_fit import fit_glm, most_rows
from pegsynth.methods.baselines.sequential_draws import Sweeps, check_alpha
from pegsynth.methods.baselines.target_fits import RowsToFit, bayesian_bootstrap
from pegsynth.methods.baselines.trees import CART_TREE, FOREST_TREES, TreeModel, fit_trees
from pegsynth.methods.drawn_features import drawn_features
from pegsynth.methods.gibbs.block_fitting import paid_marginals
from pegsynth.methods.gibbs.gibbs_plan import marginal_event
from pegsynth.methods.ledgers import of_parents
from pegsynth.methods.pricing import (
    AlphaPrice,
    PricedMethod,
    PricedPlan,
    kept_or_original,
    need_rows,
    rows_of_a_unit,
    unit_bound,
)
from pegsynth.methods.registry import MiOptions, PmiOptions
from pegsynth.methods.seed_rows import declared_pool, seed_pool, starts_from_original, whole_rows
from pegsynth.methods.stored_model import StoredModel, missing_part
from pegsynth.privacy import Allowance, Budget, Draws, Event, ImputationDraws, NotPrivate
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.runtime import check_trees
from pegsynth.schema import Schema

if TYPE_CHECKING:
    from pegsynth.privacy.assumptions import Assumption, Parameters

FittedModels: TypeAlias = GlmModel | TreeModel

PREFIX = "conditionals: "


@dataclass(frozen=True)
class ImputationFit:
    """Fitted conditional models, and the rows where draws need them; confidential.

    Parameters
    ----------
    marginals
        Noisy marginals, if they were paid for.
    """

    conditionals: FittedModels = field(repr=False)
    rows: Codes | None = field(default=None, repr=False)
    marginals: Marginals | None = None


def fit_conditionals(
    codes: Codes,
    schema: Schema,
    method: str,
    stream: RandomStream,
    *,
    threads: int = 1,
    progress: Progress = quiet,
    sample_weight: Float64 | None = None,
) -> FittedModels:
    """Fit every feature given the others: regressions (mi, pmi) or trees (cart, forest).

    Regressions of long tables are fitted to as many rows as the schema allows, and those of a
    table without rows by `pmi` to a public one. A refusal would depend on the number of rows,
    which `pmi` must not; any fit will do (R8).
    """
    if method == "pmi" and not len(codes):
        codes = np.zeros((1, len(schema.features)), dtype=codes.dtype)
    words, growth = stream.substream(), _GROWTH.get(method)
    most = None if growth else most_rows(schema)
    rows = RowsToFit.of(codes, schema, sample_weight=sample_weight, max_rows=most)
    rows = replace(rows, threads=threads, progress=progress)
    return fit_trees(rows, growth, words=words) if growth else fit_glm(rows)


_GROWTH = {"cart": CART_TREE, "forest": FOREST_TREES}

SweptOptions = TypeVar("SweptOptions", bound=MiOptions | PmiOptions)


class Imputation(PricedMethod[SweptOptions, PricedPlan, ImputationFit]):
    """A method that draws feature after feature given the others."""

    plan_type = PricedPlan

    def settle(
        self, schema: Schema, budget: Budget, options: SweptOptions, *, scale: int = DEFAULT_SCALE
    ) -> PricedPlan:
        """Choose seed rows and find the smallest alpha."""
        total = budget.epsilon is not None
        options = self.filled(schema, options, total=total)
        pool = options.seed_pool or "original"
        if pool == "marginal" and not total:
            raise BudgetError(
                "marginal seed rows are paid out of --epsilon; state that, or start from others"
            )
        covered = self.has_proof or options.synthesize
        return replace(
            self.priced(schema, budget, options, scale=scale),
            after=kept_or_original(schema, options, pool) if covered else (),
            seed_pool=pool,
        )

    def filled(self, schema: Schema, options: SweptOptions, *, total: bool) -> SweptOptions:
        """Choose seed rows: the original ones where nothing is promised anyway."""
        if options.synthesize:
            return starts_from_original(schema, options)
        need_rows(self.name, options, total=total)
        return replace(options, seed_pool=options.seed_pool or "original")

    def priced(
        self, schema: Schema, budget: Budget, options: SweptOptions, *, scale: int
    ) -> PricedPlan:
        """Say that no result covers the draws."""
        said = (*unit_bound(schema), NotPrivate.because("no-proof", detail=self.name))
        return self.plan_at(AlphaPrice(0, None, said), schema, budget, options, scale=scale)

    def shape(self, schema: Schema, options: SweptOptions) -> Draws:
        """Every row is S sweeps over the drawn features."""
        return ImputationDraws.shape(**self.drawn_size(schema, options), sweeps=options.sweeps)

    def fit(self, plan: PricedPlan, work: Fitting) -> Fitted[PricedPlan, ImputationFit]:
        """Pay for marginals if seed rows need them; fit every feature given the others."""
        marginals = paid_marginals(work, plan.marginals) if plan.marginals else None
        rows = work.table.rows()
        conditionals = fit_conditionals(
            rows,
            work.schema,
            self.name,
            work.stream,
            threads=work.threads,
            progress=work.progress,
        )
        needed = plan.seed_pool == "original" or is_proper(plan)
        fit = ImputationFit(conditionals, rows if needed else None, marginals)
        return Fitted(fit, plan, work.ledger)

    def sampler(self, model: Model, plan: PricedPlan, *, threads: int) -> Sampler:
        """Draw whole rows from seed rows, or replace features of the original rows."""
        kind = ReplacingSampler if plan.options.synthesize else ImputingSampler
        return kind(model, plan)

    def declared_options(self, plan: PricedPlan) -> Parameters:
        """Return sweeps and seed rows."""
        return {"sweeps": plan.options.sweeps, "seed_rows": declared_pool(plan.seed_pool)}

    def declared_structure(self, schema: Schema, plan: PricedPlan) -> tuple[Assumption, ...]:
        """Return the parents of details, which are drawn after all others."""
        return of_parents(schema, plan.options)

    def store(self, content: ImputationFit) -> StoredModel:
        """Return the fitted models as arrays, and the rows."""
        arrays = {PREFIX + name: each for name, each in content.conditionals.arrays().items()}
        return StoredModel(marginals=content.marginals, rows=content.rows, arrays=arrays)

    def load(self, stored: StoredModel, schema: Schema, plan: PricedPlan | None) -> ImputationFit:
        """Rebuild the fitted models."""
        arrays = stored.under(PREFIX)
        if not arrays:
            raise missing_part()
        held = TreeModel if self.name in _GROWTH else GlmModel
        return ImputationFit(held.from_arrays(arrays, schema), stored.rows, stored.marginals)


class Mi(Imputation[MiOptions]):
    """Regressions without perturbation."""

    name = "mi"
    summary = "regressions of every feature on the others (multiple imputation); no guarantee"
    options = MiOptions
    has_proof = False


class Cart(Mi):
    """Classification trees, as in synthpop."""

    name = "cart"
    summary = "classification trees (as in synthpop); no guarantee"

    def filled(self, schema: Schema, options: MiOptions, *, total: bool) -> MiOptions:
        """Refuse to grow trees where nothing is installed that can."""
        check_trees(f"--method {self.name}")
        return super().filled(schema, options, total=total)


class Forest(Cart):
    """Random forests."""

    name = "forest"
    summary = "random forests; no guarantee"


class Pmi(Imputation[PmiOptions]):
    """Regressions with virtual rows: the paper's perturbed multiple imputation."""

    name = "pmi"
    summary = "regressions with virtual rows (the paper's perturbed multiple imputation)"
    options = PmiOptions

    def filled(self, schema: Schema, options: PmiOptions, *, total: bool) -> PmiOptions:
        """Choose seed rows: paid marginals, or public uniform ones."""
        if not options.synthesize:
            pool = options.seed_pool or ("marginal" if total else "uniform")
            options = replace(options, seed_pool=pool)
        return super().filled(schema, options, total=total)

    def priced(
        self, schema: Schema, budget: Budget, options: PmiOptions, *, scale: int
    ) -> PricedPlan:
        """Find the smallest alpha of draws and paid seed rows."""
        parts: dict[str, Callable[[Allowance], Event]] = {}
        if options.seed_pool == "marginal":
            unit = rows_of_a_unit(schema)
            parts["marginals"] = lambda allowed: marginal_event(schema, allowed, unit)
        plan = self.price(schema, budget, options, scale=scale, parts=parts)
        if plan.marginals is not None:
            noise_of(plan.marginals)
        # Bounds are public, so that no row decides whether a release is refused.
        check_alpha(max(schema.category_counts), plan.numerator, scale)
        return plan


def is_proper(plan: PricedPlan) -> bool:
    """Whether parameters are redrawn for every dataset (R16); `pmi` does not."""
    return isinstance(plan.options, MiOptions) and plan.options.proper


class ImputingSampler(Sampler):
    """Draws whole rows, feature after feature."""

    def __init__(self, model: Model, plan: PricedPlan) -> None:
        self._fit, self._schema, self._plan = model.content, model.schema, plan
        self._pool, assumptions = seed_pool(
            self._schema,
            plan.seed_pool,
            plan.options,
            marginals=self._fit.marginals,
            rows=self._fit.rows,
        )
        super().__init__(assumptions)
        self._sweeps = Sweeps(
            drawn_features(self._schema, plan.options),
            self._schema.category_counts,
            plan.numerator,
            plan.scale,
            self._schema.rules,
            plan.options.sweeps,
        )

    def table(self, rows: int, stream: RandomStream) -> Rows:
        """Return one table, drawn from seed rows."""
        drawn = self._sweeps.sampled(self.conditionals(stream), self._pool, rows, stream)
        return (chunk.astype(self._schema.code_dtype) for chunk in drawn)

    def conditionals(self, stream: RandomStream) -> FittedModels:
        """Return the fitted models, or a fresh draw of them for proper synthesis (R16)."""
        fitted: FittedModels = self._fit.conditionals
        if not is_proper(self._plan):
            return fitted
        rows = self._fit.rows
        if rows is None:
            raise ModelError("this model holds no original rows; use pegs synthesize")
        weights = bayesian_bootstrap(len(rows), stream.substream())
        return fit_conditionals(
            rows, self._schema, self._plan.method, stream, sample_weight=weights
        )


class ReplacingSampler(ImputingSampler):
    """Draws the chosen features of the original rows anew, in their order."""

    def __init__(self, model: Model, plan: PricedPlan) -> None:
        super().__init__(model, plan)
        self._start = whole_rows(model.schema, model.content.rows).astype(np.uint32)
        self.own_rows = len(self._start)

    def table(self, rows: int, stream: RandomStream) -> Rows:
        """Return a copy of the table with other features."""
        fitted = self.conditionals(stream)
        drawn = self._sweeps.swept(fitted, self._start, stream.substream())
        return iter([drawn.astype(self._schema.code_dtype)])


MI, PMI, CART, FOREST = Mi(), Pmi(), Cart(), Forest()
