"""`marginal`: independent features by urns, the marginal Bayesian bootstrap (R9, R17)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pegsynth.methods.base import Fitted, Model, Sampler
from pegsynth.methods.gibbs.method import need_rows
from pegsynth.methods.method_options import MarginalOptions
from pegsynth.methods.pricing import PricedMethod, PricedPlan
from pegsynth.privacy.calibrate import DEFAULT_SCALE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegsynth.auditing.run import Finding
    from pegsynth.methods.base import Rows
    from pegsynth.methods.counting import ConfidentialTable
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.privacy import Budget, Ledger, Structure
    from pegsynth.progress import Progress
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MarginalPlan(PricedPlan):
    """A release of independent features, settled."""


@dataclass(frozen=True)
class MarginalFit:
    """Exact one-way counts; confidential."""

    one_ways: tuple[NDArray[np.int64], ...] = field(repr=False)


class Marginal(PricedMethod[MarginalFit]):
    """Urns of one-way counts, new ones for every dataset."""

    name = "marginal"
    summary = "independent features, each drawn from an urn of its own counts"
    options = MarginalOptions
    plan_type = MarginalPlan

    def settle(
        self, schema: Schema, budget: Budget, options: Any, *, scale: int = DEFAULT_SCALE
    ) -> MarginalPlan:
        """Find the smallest alpha; refuse urns that might not fit in 64 bits."""
        from pegsynth.methods.baselines.marginal_urns import check_urns
        from pegsynth.methods.prior import Prior, uniform_weights
        from pegsynth.privacy.draw_events import UrnDraws

        need_rows(self.name, options, total=budget.epsilon is not None)
        price = self.price(schema, budget, options, scale=scale)
        if isinstance(price.draws, UrnDraws):
            counts = schema.category_counts
            alike = Prior(uniform_weights(counts), (price.numerator,) * len(counts), scale)
            check_urns(alike, price.draws.visits)
        plan: MarginalPlan = self.planned(budget, options, price, scale=scale)
        return plan

    def shape(self, schema: Schema, options: Any) -> Structure:
        """T draws from each of M urns, for every dataset."""
        from pegsynth.methods.baselines.marginal_urns import default_draws
        from pegsynth.privacy import Structure

        rows = options.rows or 1
        return Structure(
            method="urn",
            features=len(schema.features),
            rows=rows,
            datasets=options.datasets,
            visits=default_draws(rows, schema.rules),
            urns=options.datasets,
        )

    def per_row(self, shape: Structure) -> int | None:
        """Urns are priced by their cap."""
        return None

    def lot(self, plan: PricedPlan) -> int:
        """Return n: every dataset has urns of its own, paid for whole."""
        return plan.options.rows or 0

    def limited(self, plan: PricedPlan) -> bool:
        """Urns are priced by their cap, so they are limited whatever the budget's kind (R17)."""
        total = plan.budget.epsilon is not None
        return bool(plan.options.rows) and (total or plan.draws is not None)

    def fit(
        self,
        table: ConfidentialTable,
        schema: Schema,
        plan: PricedPlan,
        stream: RandomStream,
        ledger: Ledger,
        *,
        threads: int,
        progress: Progress,
    ) -> Fitted[PricedPlan, MarginalFit]:
        """Count every feature by itself: blocks without heads or tail are one-way counts."""
        from pegsynth.methods.gibbs.block_fitting import hash_spec, one_way_counts

        spec = hash_spec(schema, ((),) * len(schema.features), 0)
        blocks = table.blocks(spec, drawn_heads=False)
        return Fitted(MarginalFit(tuple(one_way_counts(blocks))), plan, ledger)

    def sampler(self, model: Model, plan: PricedPlan, *, threads: int) -> Sampler:
        """Make the urns ready."""
        return _UrnTables(self, model, plan)

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Enumerate tiny releases."""
        from pegsynth.auditing.run import audit_table_method

        return audit_table_method(self.name)

    def store(self, content: MarginalFit) -> StoredModel:
        """Return the counts as cells without a key."""
        import numpy as np

        from pegsynth.methods.stored_model import StoredModel

        cells = []
        for counts in content.one_ways:
            held = np.flatnonzero(counts)
            cells.append((np.zeros(len(held), dtype=np.int64), held, counts[held]))
        return StoredModel(heads=((),) * len(cells), cells=cells)

    def load(self, stored: StoredModel, schema: Schema, plan: PricedPlan | None) -> MarginalFit:
        """Rebuild the counts."""
        from pegsynth.methods.gibbs.block_fitting import one_way_counts
        from pegsynth.methods.gibbs.stored_blocks import load_blocks

        return MarginalFit(tuple(one_way_counts(load_blocks(stored, schema).blocks)))


class _UrnTables(Sampler):
    """Urns that start anew for every dataset (R17); T was settled with the price."""

    def __init__(self, method: Marginal, model: Model, plan: PricedPlan) -> None:
        super().__init__()
        self._schema, self._plan, self._fit = model.schema, plan, model.content
        shape = method.shape(model.schema, plan.options)
        self._most = shape.visits if plan.draws is not None else None

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K tables, each from urns of its own."""
        from pegsynth.methods.baselines.marginal_urns import MarginalTable
        from pegsynth.methods.prior import Prior, uniform_weights

        schema, plan = self._schema, self._plan
        counts, dtype = schema.category_counts, schema.code_dtype
        prior = Prior(uniform_weights(counts), (plan.numerator,) * len(counts), plan.scale)
        tables = MarginalTable(self._fit.one_ways).draw_datasets(
            rows, datasets, prior=prior, stream=stream, rules=schema.rules, most_draws=self._most
        )
        return [iter([table.astype(dtype)]) for table in tables]


MARGINAL = Marginal()
