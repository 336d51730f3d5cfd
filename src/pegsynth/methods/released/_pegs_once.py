"""`pegs-once`: noisy blocks are released once, and any number of rows is drawn from them (R11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pegsynth.inference.choice import (
    NOISE_OPTION,
    OWN_NOISE,
    PART_OPTION,
    REPLICATES_OPTION,
    SHARED_NOISE,
    WEIGHT_OPTION,
)
from pegsynth.inference.combining_rules import PART
from pegsynth.kernels.arrays import Float64
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.base import Fitted, Fitting, Method, Model, Prediction, Sampler
from pegsynth.methods.forecast import guarantees
from pegsynth.methods.ledgers import of_parents, of_release, of_shares
from pegsynth.methods.plan_model import PublicFigures, expected, figures_of
from pegsynth.methods.registry import PegsOnceOptions
from pegsynth.methods.released._budget import Steps, block_deviation, split_budget
from pegsynth.methods.released._details import public_lines
from pegsynth.methods.released._fit import Work
from pegsynth.methods.released._pooled import (
    PooledFit,
    PooledSampler,
    check_pooled,
    describe_pooled,
    fit_pooled,
    is_pooled,
    loaded_pooled,
    parts_of,
    transition_domain,
)
from pegsynth.methods.released._release import (
    ReleasedFit,
    ReleasedPlan,
    ReleasedSampler,
    allowance_of,
    fit_released,
    price_of,
    settle_released,
)
from pegsynth.methods.released._stored import (
    describe_released,
    loaded_released,
    stored_pooled,
    stored_released,
)
from pegsynth.methods.released._values import Domain

if TYPE_CHECKING:
    from pegsynth.auditing.run import Finding
    from pegsynth.methods.stored_model import StoredModel, StoredPlan
    from pegsynth.privacy import Budget
    from pegsynth.privacy.assumptions import Assumption, Parameters
    from pegsynth.schema import Schema


class PegsOnce(Method[PegsOnceOptions, ReleasedPlan, ReleasedFit | PooledFit]):
    """Released blocks: the budget buys noisy tables, and rows cost nothing."""

    name = "pegs-once"
    summary = "noisy blocks are released once, and any number of rows is drawn from them"
    options = PegsOnceOptions
    released = True
    on_cluster = True
    resumes = False
    pools = True
    # It has no virtual rows and no chains, and it chooses its heads privately.
    harmless = MappingProxyType({"prior": (), "seed_pool": (), "order": ("private",)})

    def settle(self, schema: Schema, budget: Budget, options: PegsOnceOptions) -> ReleasedPlan:
        """Reserve the whole budget for what fitting will do."""
        if is_pooled(schema):
            check_pooled(schema, options)
        return settle_released(self.name, schema, budget, options)

    def fit(
        self, plan: ReleasedPlan, work: Fitting
    ) -> Fitted[ReleasedPlan, ReleasedFit | PooledFit]:
        """Release the blocks of a table; nothing else of it stays in the model."""
        table, schema = work.table, work.schema
        how = Work(work.stream, work.threads, work.progress)
        fit: ReleasedFit | PooledFit
        if is_pooled(schema):
            fit, spent = fit_pooled(table.rows(), schema, plan, how)
        else:
            fit, spent = fit_released(table.counted(), schema, plan, how, values=table)
        # The file of the model is itself published, so its ledger is complete.
        return Fitted(fit, spent, work.ledger.assume(*of_release(schema, plan)))

    def sampler(self, model: Model, plan: ReleasedPlan, *, threads: int) -> Sampler:
        """Draw from the released tables alone."""
        if is_pooled(model.schema):
            return PooledSampler(model.content, model.schema, plan, threads=threads)
        return ReleasedSampler(
            model.content, model.schema, plan, shapes=model.shapes, threads=threads
        )

    def looks_at_data(self, content: ReleasedFit | PooledFit) -> bool:
        """Whether it was fitted here, so that a seed tells its noise; a model file does not say."""
        return content.fresh

    def declared_options(self, plan: ReleasedPlan) -> Parameters:
        """Return the heads of a block, and whose noise the tables have (R28)."""
        given: Parameters = {"heads": plan.heads}
        if plan.options.replicates is not None:
            given[REPLICATES_OPTION] = plan.options.replicates
            given[WEIGHT_OPTION] = plan.options.weight_name
            given[PART_OPTION] = PART
        elif plan.options.datasets > 1:
            given[NOISE_OPTION] = OWN_NOISE if plan.options.own_noise else SHARED_NOISE
        return given

    def declared_structure(self, schema: Schema, plan: ReleasedPlan) -> tuple[Assumption, ...]:
        """Return the public shares, which no other method looks at, and the parents of details."""
        return (*of_shares(schema), *of_parents(schema, plan.options))

    def store(self, content: ReleasedFit | PooledFit) -> StoredModel:
        """Return the noisy tables."""
        if isinstance(content, ReleasedFit):
            return stored_released(content.released)
        return stored_pooled(content.first, content.transitions)

    def load(
        self, stored: StoredModel, schema: Schema, plan: ReleasedPlan | None
    ) -> ReleasedFit | PooledFit:
        """Rebuild the noisy tables."""
        if is_pooled(schema):
            return loaded_pooled(stored, schema, plan)
        return ReleasedFit(loaded_released(stored, schema))

    def load_plan(self, stored: StoredPlan, schema: Schema, model: StoredModel) -> ReleasedPlan:
        """Rebuild a plan, whose events say what was spent."""
        return ReleasedPlan(
            method=self.name,
            options=stored.options,
            budget=stored.budget,
            heads=stored.options.heads or Steps().heads,
            spent=stored.events,
        )

    def predict(self, schema: Schema, plan: ReleasedPlan) -> Prediction:
        """Predict the noise on a block, and how far off tables will be."""
        noise, error = (
            block_noise(schema, plan),
            expected(self.name, released_figures(schema, plan)),
        )
        pure, stated = guarantees(plan)
        pooled = " of transitions pooled over positions" if is_pooled(schema) else ""
        return Prediction(
            plan,
            error.pairs,
            pure,
            stated,
            f"noise of {noise:.4g} rows on a block{pooled}, then any number of rows",
            heads=plan.heads,
            noise=noise,
            columns_error=error.columns,
        )

    def describe(self, model: Model, *, confidential: bool) -> Iterable[str]:
        """Yield the published tables, their levels and their noise."""
        if is_pooled(model.schema):
            return describe_pooled(model.content, model.schema)
        return describe_released(model.content.released, model.schema.names)

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Enumerate every path of tiny releases, and sample many."""
        from pegsynth.auditing.run import audit_released

        return audit_released(full=full)

    def first_kernels(self) -> None:
        """Load what draws noise."""
        from pegsynth.kernels.warm import noise_kernels

        noise_kernels()


def block_noise(schema: Schema, plan: ReleasedPlan) -> float:
    """Return the standard deviation of the noise on a block of the first round."""
    table = _measured_table(schema, plan)
    domain = Domain(tuple(table.counts), (), public=tuple(table.public))
    split = split_budget(table.price, table.rows_in, domain, Steps(heads=plan.heads))
    return block_deviation(table.price, split, len(table.counts))


def released_figures(schema: Schema, plan: ReleasedPlan) -> PublicFigures:
    """Return what the formula of the plan needs; of a pooled panel, about its transitions (R24)."""
    if not is_pooled(schema):
        return figures_of(schema, plan)
    table = _measured_table(schema, plan)
    return PublicFigures.of(
        table.counts, table.price, rows_in=table.rows_in, rows=plan.options.rows or 1
    )


@dataclass(frozen=True)
class _MeasuredTable:
    """The table whose noise counts most: its categories, public shares, price and rows."""

    counts: Sequence[int]
    public: Sequence[Float64 | None]
    price: Price
    rows_in: int


def _measured_table(schema: Schema, plan: ReleasedPlan) -> _MeasuredTable:
    rows_in = plan.options.rows_in or (plan.options.rows or 1)
    if not is_pooled(schema):
        lines = public_lines(schema)
        return _MeasuredTable(schema.category_counts, lines, price_of(plan), rows_in)
    domain = transition_domain(schema)
    price = Price(parts_of(allowance_of(plan.budget))[1], domain.rows_per_unit)
    # How many rows units have is not known before: half of what they may.
    half = -(-domain.rows_per_unit // 2)
    return _MeasuredTable(domain.sizes, domain.public, price, rows_in * half)


PEGS_ONCE = PegsOnce()
