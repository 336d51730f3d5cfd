"""A method of a test's own: uniform rows, which look at nothing and promise everything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegsynth.methods.base import Fitted, Method, Plan, Prediction, Sampler
from pegsynth.methods.forecast import guarantees
from pegsynth.methods.stored_model import StoredModel
from pegsynth.options import RowOptions
from pegsynth.options._kinds import option
from pegsynth.privacy.events import Unspent


@dataclass(frozen=True)
class UniformOptions(RowOptions):
    """Options of uniform rows."""

    dice: int = option(6, "whole", "Sides of the dice that are thrown.")


@dataclass(frozen=True, kw_only=True)
class UniformPlan(Plan):
    """Uniform rows, settled: the whole budget is left."""

    left: tuple

    @property
    def events(self):
        """Return what the ledger will say."""
        return self.left


@dataclass(frozen=True)
class UniformFit:
    """Nothing of the table but how many dice there are."""

    dice: int


class UniformSampler(Sampler):
    """Draws every category as often as any other."""

    def __init__(self, schema, fit):
        super().__init__()
        self.schema, self.fit = schema, fit

    def tables(self, rows, datasets, stream):
        """Return K tables."""
        counts, dtype = self.schema.category_counts, self.schema.code_dtype
        drawn = []
        for _ in range(datasets):
            words = stream.substream().take(rows * len(counts)).reshape(rows, len(counts))
            drawn.append(iter([(words % np.array(counts, dtype=np.uint64)).astype(dtype)]))
        return drawn


class Uniform(Method):
    """Uniform rows."""

    name = "uniform-rows"
    summary = "every category as often as any other"
    options = UniformOptions

    def settle(self, schema, budget, options):
        """Reserve the budget, which nothing will spend."""
        allowance = budget.whole("pure" if budget.delta is None else "zcdp")
        left = (Unspent.of(allowance.amount, route=allowance.route),)
        return UniformPlan(method=self.name, options=options, budget=budget, left=left)

    def fit(self, plan, work):
        """Look at nothing."""
        return Fitted(UniformFit(plan.options.dice), plan, work.ledger)

    def sampler(self, model, plan, *, threads):
        """Make ready."""
        return UniformSampler(model.schema, model.content)

    def declared_options(self, plan):
        """Return the dice."""
        return {"dice": plan.options.dice}

    def store(self, content):
        """Return the dice as an array."""
        return StoredModel(arrays={"dice": np.array([content.dice], dtype=np.int64)})

    def load(self, stored, schema, plan):
        """Rebuild the dice."""
        return UniformFit(int(stored.arrays["dice"][0]))

    def load_plan(self, stored, schema, model):
        """Rebuild a plan."""
        return UniformPlan(
            method=self.name,
            options=stored.options,
            budget=stored.budget,
            left=stored.events,
        )

    def predict(self, schema, plan):
        """Predict a large error."""
        return Prediction(plan, 0.9, *guarantees(plan), f"{plan.options.dice} sides")


UNIFORM = Uniform()
