"""Rows from conditional models: sequential draws from seed rows, perturbed for `pmi` (R8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pegsynth.errors import ModelError
from pegsynth.methods.base import Model, Sampler
from pegsynth.methods.conditional_models import fit_conditionals
from pegsynth.methods.drawn_features import drawn_features
from pegsynth.methods.seed_rows import seed_pool, whole_rows
from pegsynth.progress import quiet
from pegsynth.sampling.sequential_draws import sample_conditional, sweep

if TYPE_CHECKING:
    from pegsynth.methods.base import Rows
    from pegsynth.random import RandomStream
    from pegsynth.sampling.sequential_draws import ConditionalModel


class ImputingSampler(Sampler):
    """Draws whole rows, feature after feature."""

    def __init__(self, method: str, model: Model, plan: Any) -> None:
        fit, schema = model.content, model.schema
        pool, assumptions = seed_pool(
            schema, plan.seed_pool, plan.options, marginals=fit.marginals, rows=fit.rows
        )
        super().__init__(assumptions)
        self._method, self._schema, self._plan, self._fit = method, schema, plan, fit
        self._pool = pool

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K tables."""
        dtype = self._schema.code_dtype
        return [
            (
                chunk.astype(dtype)
                for chunk in sample_conditional(
                    self.conditionals(stream), self._pool, rows, stream=stream, **self._law()
                )
            )
            for _ in range(datasets)
        ]

    def _law(self) -> dict[str, Any]:
        schema, plan = self._schema, self._plan
        return {
            "targets": drawn_features(schema, plan.options),
            "category_counts": schema.category_counts,
            "rules": schema.rules,
            "numerator": plan.numerator,
            "scale": plan.scale,
            "sweeps": plan.options.sweeps,
        }

    def conditionals(self, stream: RandomStream) -> ConditionalModel:
        """Return the fitted models, or a fresh draw of them for proper synthesis (R16)."""
        if not getattr(self._plan.options, "proper", False):
            fitted: ConditionalModel = self._fit.conditionals
            return fitted
        from pegsynth.imputation import bayesian_bootstrap

        rows = self._fit.rows
        if rows is None:
            raise ModelError("this model holds no original rows; use pegs synthesize")
        weights = bayesian_bootstrap(len(rows), stream.substream())
        return fit_conditionals(
            rows,
            self._schema,
            self._method,
            stream,
            threads=1,
            progress=quiet,
            sample_weight=weights,
        )


class ReplacingSampler(ImputingSampler):
    """Draws the chosen features of the original rows anew, in their order."""

    def __init__(self, method: str, model: Model, plan: Any) -> None:
        super().__init__(method, model, plan)
        self._rows = whole_rows(model.schema, model.content.rows)
        self.own_rows = len(self._rows)

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K copies of the table, other features in each."""
        dtype = self._schema.code_dtype
        start = self._rows.astype(np.uint32)
        return [
            iter(
                [
                    sweep(
                        self.conditionals(stream), start, words=stream.substream(), **self._law()
                    ).astype(dtype)
                ]
            )
            for _ in range(datasets)
        ]
