"""`contingency`: rows of the table or uniform ones, or cells of a log-linear fit (R8, R9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegsynth.methods.base import Fitted, Model, Sampler
from pegsynth.methods.baselines.whole_table import (
    ChunkSampler,
    RowsFit,
    load_rows,
    matching,
    store_rows,
)
from pegsynth.methods.gibbs.method import need_rows
from pegsynth.methods.method_options import ContingencyOptions
from pegsynth.methods.pricing import PricedMethod, PricedPlan
from pegsynth.privacy.calibrate import DEFAULT_SCALE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegsynth.auditing.run import Finding
    from pegsynth.methods.counting import ConfidentialTable
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.privacy import Budget, Ledger, Structure
    from pegsynth.privacy.assumptions import Parameters
    from pegsynth.progress import Progress
    from pegsynth.random import RandomStream, Words
    from pegsynth.schema import Schema


@dataclass(frozen=True, kw_only=True)
class ContingencyPlan(PricedPlan):
    """A release of the perturbed contingency table, settled."""


class Contingency(PricedMethod[RowsFit]):
    """The table of all cells with virtual rows in each."""

    name = "contingency"
    summary = "the contingency table of all features with virtual rows in every cell"
    options = ContingencyOptions
    plan_type = ContingencyPlan

    def settle(
        self, schema: Schema, budget: Budget, options: Any, *, scale: int = DEFAULT_SCALE
    ) -> ContingencyPlan:
        """Find the smallest alpha; refuse a table that could not be listed, or drawn from."""
        from pegsynth.methods.baselines import loglinear
        from pegsynth.methods.baselines.contingency_table import ContingencyTable
        from pegsynth.methods.drawn_features import clamped_codes
        from pegsynth.random import RandomStream
        from pegsynth.schema.rules import conditioned

        need_rows(self.name, options, total=budget.epsilon is not None)
        price = self.price(schema, budget, options, scale=scale)
        given = clamped_codes(schema, options)
        counts = enumerate(schema.category_counts)
        shape = tuple(1 if i in given else count for i, count in counts)
        if options.log_linear:
            import math

            loglinear.check_size(shape)
            loglinear.check_alpha(math.prod(shape), price.numerator, scale)
        elif rules := conditioned(schema.rules, given):
            import numpy as np

            table = ContingencyTable(np.empty((0, len(shape)), dtype=np.uint32), shape)
            table.check_rules(rules, RandomStream().substream())
        plan: ContingencyPlan = self.planned(budget, options, price, scale=scale)
        return plan

    def shape(self, schema: Schema, options: Any) -> Structure:
        """One draw per row."""
        from pegsynth.methods.drawn_features import drawn_features
        from pegsynth.privacy import Structure

        rows, datasets = options.rows or 1, options.datasets
        if options.log_linear:
            # A fitted table answers like any fitted probability vector, one draw per row (R8).
            return Structure(method="pmi", features=1, rows=rows, datasets=datasets)
        features = len(drawn_features(schema, options))
        return Structure(method="contingency", features=features, rows=rows, datasets=datasets)

    def per_row(self, shape: Structure) -> int | None:
        """Return 1: a row is one draw of a cell."""
        return 1

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
    ) -> Fitted[PricedPlan, RowsFit]:
        """Keep the rows."""
        return Fitted(RowsFit(table.rows()), plan, ledger)

    def sampler(self, model: Model, plan: PricedPlan, *, threads: int) -> Sampler:
        """Condition the table on the given values, exactly: only matching rows remain."""
        from pegsynth.mechanisms.answers import drawn_from
        from pegsynth.methods.baselines.contingency_table import ContingencyTable
        from pegsynth.methods.baselines.loglinear import fit_loglinear
        from pegsynth.methods.drawn_features import clamped_codes
        from pegsynth.schema.rules import conditioned

        schema = model.schema
        clamped = clamped_codes(schema, plan.options)
        rules = conditioned(schema.rules, clamped)

        def table(stream: RandomStream) -> Any:
            # The given features have one category left.
            counts = tuple(
                1 if feature in clamped else count
                for feature, count in enumerate(schema.category_counts)
            )
            codes = matching(model.content.rows, clamped).astype("uint32")
            codes[:, list(clamped)] = 0
            kind: Any = fit_loglinear if plan.options.log_linear else ContingencyTable
            fitted = kind(codes, counts)

            def draw(count: int, words: Words) -> NDArray[np.uint32]:
                held = drawn_from(fitted, lambda: kind(codes[:0], counts), stream, rows=count)
                # One big integer per row decides between a row of the table and a uniform one.
                drawn: NDArray[np.uint32] = held.draw(
                    count, numerator=plan.numerator, scale=plan.scale, words=words, rules=rules
                )
                for feature, code in clamped.items():
                    drawn[:, feature] = code
                return drawn

            return draw

        return ChunkSampler(schema, table)

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Enumerate tiny releases."""
        from pegsynth.auditing.run import audit_table_method

        return audit_table_method(self.name)

    def declared_options(self, plan: PricedPlan) -> Parameters:
        """Return whether the table is smoothed."""
        return {"log_linear": plan.options.log_linear}

    def store(self, content: RowsFit) -> StoredModel:
        """Return the rows."""
        return store_rows(content)

    def load(self, stored: StoredModel, schema: Schema, plan: PricedPlan | None) -> RowsFit:
        """Rebuild the rows."""
        return load_rows(stored, schema)


CONTINGENCY = Contingency()
