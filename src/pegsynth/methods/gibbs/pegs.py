"""`pegs`: the paper's perturbed Gibbs sampler; every row starts anew and is paid for (R3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pegsynth.errors import ParameterError
from pegsynth.methods.base import Model, Sampler
from pegsynth.methods.gibbs.method import GibbsMethod
from pegsynth.methods.method_options import PegsOptions

if TYPE_CHECKING:
    from pegsynth.methods.gibbs.chains import Schedule
    from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
    from pegsynth.privacy import Structure
    from pegsynth.schema import Schema


class Pegs(GibbsMethod):
    """Gibbs sweeps over perturbed blocks, a new chain for every row."""

    name = "pegs"
    summary = "Gibbs sweeps over perturbed blocks, a new chain for every row (the paper's PeGS)"
    options = PegsOptions

    def filled(self, schema: Schema, options: PegsOptions, *, total: bool) -> PegsOptions:
        """Choose virtual rows and seed rows."""
        if options.synthesize:
            if schema.unit:
                raise ParameterError("--synthesize keeps every row, which bounding units would not")
            return replace(options, seed_pool="original")
        settled: PegsOptions = super().filled(schema, options, total=total)
        return settled

    def shape(self, schema: Schema, options: Any) -> Structure:
        """Every row is S sweeps over the drawn features."""
        from pegsynth.methods.drawn_features import drawn_features
        from pegsynth.privacy import Structure

        return Structure(
            method="pegs",
            features=len(drawn_features(schema, options)),
            rows=options.rows or 1,
            sweeps=options.sweeps,
            datasets=options.datasets,
        )

    def schedule(self, options: Any) -> Schedule:
        """Every row is a chain of its own."""
        from pegsynth.methods.gibbs.chains import Schedule

        return Schedule(1, options.sweeps)

    def sampler(self, model: Model, plan: Any, *, threads: int) -> Sampler:
        """Draw whole rows, or replace features of the original rows."""
        if not plan.options.synthesize:
            return super().sampler(model, plan, threads=threads)
        from pegsynth.methods.gibbs.samplers import prepare, replacing

        ready = prepare(model.schema, model.content, plan)
        return replacing(ready, model.schema, model.content, self.schedule(plan.options))

    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Every visit is answered."""
        return 1.0

    def detail(self, plan: GibbsPlan) -> str:
        """Say how many sweeps a row has."""
        return f"{plan.options.sweeps} sweeps per row"


PEGS = Pegs()
