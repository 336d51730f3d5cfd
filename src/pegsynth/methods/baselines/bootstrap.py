"""`bootstrap`: original rows drawn with replacement; the baseline of attacks, no guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegsynth.methods.base import Fitted, Method, Model, Plan, Sampler
from pegsynth.methods.baselines.whole_table import (
    ChunkSampler,
    RowsFit,
    load_rows,
    matching,
    store_rows,
)
from pegsynth.methods.method_options import BootstrapOptions

if TYPE_CHECKING:
    from pegsynth.methods.counting import ConfidentialTable
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.privacy import Budget, Event, Ledger
    from pegsynth.progress import Progress
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema


@dataclass(frozen=True, kw_only=True)
class BootstrapPlan(Plan):
    """A bootstrap, settled: nothing but what the ledger says of it."""

    said: tuple[Event, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """That no result covers it."""
        return self.said


class Bootstrap(Method[BootstrapPlan, RowsFit]):
    """Original rows."""

    name = "bootstrap"
    summary = "original rows drawn with replacement, the baseline of attacks; no guarantee"
    options = BootstrapOptions
    has_proof = False

    def settle(self, schema: Schema, budget: Budget, options: Any) -> BootstrapPlan:
        """Say that nothing is promised."""
        from pegsynth.methods.pricing import unit_bound
        from pegsynth.privacy import NotPrivate

        said = (*unit_bound(schema), NotPrivate.because("no-proof", detail=self.name))
        return BootstrapPlan(method=self.name, options=options, budget=budget, said=said)

    def fit(
        self,
        table: ConfidentialTable,
        schema: Schema,
        plan: BootstrapPlan,
        stream: RandomStream,
        ledger: Ledger,
        *,
        threads: int,
        progress: Progress,
    ) -> Fitted[BootstrapPlan, RowsFit]:
        """Keep the rows."""
        return Fitted(RowsFit(table.rows()), plan, ledger)

    def sampler(self, model: Model, plan: BootstrapPlan, *, threads: int) -> Sampler:
        """Draw among the rows that hold the given values."""
        from pegsynth.methods.baselines.bootstrap_rows import BootstrapRows
        from pegsynth.methods.drawn_features import clamped_codes
        from pegsynth.schema.rules import conditioned

        schema = model.schema
        clamped = clamped_codes(schema, plan.options)
        conditioned(schema.rules, clamped)  # refuses values that a rule forbids together

        def table(stream: RandomStream) -> Any:
            held = BootstrapRows(matching(model.content.rows, clamped))
            return lambda count, words: held.draw(count, words=words, rules=schema.rules)

        return ChunkSampler(schema, table)

    def store(self, content: RowsFit) -> StoredModel:
        """Return the rows."""
        return store_rows(content)

    def load(self, stored: StoredModel, schema: Schema, plan: BootstrapPlan | None) -> RowsFit:
        """Rebuild the rows."""
        return load_rows(stored, schema)

    def load_plan(
        self, stored: Mapping[str, Any], schema: Schema, model: StoredModel
    ) -> BootstrapPlan:
        """Rebuild a plan."""
        return BootstrapPlan(
            method=self.name,
            options=stored["options"],
            budget=stored["budget"],
            said=stored["events"],
        )


BOOTSTRAP = Bootstrap()
