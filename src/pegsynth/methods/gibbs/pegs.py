"""The paper's samplers: `pegs` starts every row anew (R3), `pegs-rs` every block of rows (R4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pegsynth.methods.base import Model, Sampler
from pegsynth.methods.gibbs.chains import Schedule
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
from pegsynth.methods.gibbs.method import GibbsMethod
from pegsynth.methods.gibbs.samplers import ReplacingSampler, prepare
from pegsynth.methods.registry import PegsOptions, PegsRsOptions
from pegsynth.methods.seed_rows import starts_from_original, whole_rows

if TYPE_CHECKING:
    from pegsynth.privacy import Structure
    from pegsynth.privacy.assumptions import Parameters
    from pegsynth.schema import Schema


class Pegs(GibbsMethod[PegsOptions]):
    """Gibbs sweeps over perturbed blocks, a new chain for every row; every row is paid for."""

    name = "pegs"
    summary = "Gibbs sweeps over perturbed blocks, a new chain for every row (the paper's PeGS)"
    options = PegsOptions

    def filled(self, schema: Schema, options: PegsOptions, *, total: bool) -> PegsOptions:
        """Choose virtual rows and seed rows."""
        if options.synthesize:
            return starts_from_original(schema, options)
        return super().filled(schema, options, total=total)

    def sampler(self, model: Model, plan: GibbsPlan, *, threads: int) -> Sampler:
        """Draw whole rows, or replace features of the original rows."""
        if not plan.options.synthesize:
            return super().sampler(model, plan, threads=threads)
        ready = prepare(model.schema, model.content, plan)
        rows = whole_rows(model.schema, model.content.rows)
        return ReplacingSampler(ready, self.schedule(plan.options), rows)

    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Every visit is answered."""
        return 1.0

    def detail(self, plan: GibbsPlan) -> str:
        """Say how many sweeps a row has."""
        return f"{plan.options.sweeps} sweeps per row"


class PegsRs(GibbsMethod[PegsRsOptions]):
    """Chains of B rows in which an entry answers once; a block of rows costs as much as one."""

    name = "pegs-rs"
    summary = "blocks of rows in which an entry answers once, then a reset (the paper's PeGS.rs)"
    options = PegsRsOptions

    def shape(self, schema: Schema, options: PegsRsOptions) -> Structure:
        """Count S sweeps over the drawn features for a block of rows."""
        return replace(super().shape(schema, options), block_size=options.block_size)

    def schedule(self, options: PegsRsOptions) -> Schedule:
        """Let an entry answer once in a block."""
        return Schedule(options.block_size, options.sweeps, limit=1)

    def lot(self, plan: GibbsPlan) -> int:
        """Return B: a block is paid for whole."""
        size: int = plan.options.block_size
        return size

    def declared_options(self, plan: GibbsPlan) -> Parameters:
        """Return the rows of a block as well."""
        return super().declared_options(plan) | {"block_size": plan.options.block_size}

    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Within a block an entry answers once: distinct entries over visits."""
        visits = plan.options.block_size * plan.options.sweeps
        return float(entries * (1 - (1 - 1 / entries) ** visits) / visits)

    def detail(self, plan: GibbsPlan) -> str:
        """Say how large a block is."""
        return f"blocks of {plan.options.block_size}"


PEGS, PEGS_RS = Pegs(), PegsRs()
