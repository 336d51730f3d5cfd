"""`pegs-rs`: the paper's block sampler with reset; a block of rows costs as much as one (R4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pegsynth.methods.gibbs.method import GibbsMethod
from pegsynth.methods.method_options import PegsRsOptions

if TYPE_CHECKING:
    from pegsynth.methods.gibbs.chains import Schedule
    from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
    from pegsynth.privacy import Structure
    from pegsynth.schema import Schema


class PegsRs(GibbsMethod):
    """Chains of B rows in which an entry answers once, then a reset."""

    name = "pegs-rs"
    summary = "blocks of rows in which an entry answers once, then a reset (the paper's PeGS.rs)"
    options = PegsRsOptions

    def shape(self, schema: Schema, options: Any) -> Structure:
        """Count S sweeps over the drawn features for a block of rows."""
        from pegsynth.methods.drawn_features import drawn_features
        from pegsynth.privacy import Structure

        return Structure(
            method="pegs-rs",
            features=len(drawn_features(schema, options)),
            rows=options.rows or 1,
            sweeps=options.sweeps,
            datasets=options.datasets,
            block_size=options.block_size,
        )

    def schedule(self, options: Any) -> Schedule:
        """Let an entry answer once in a block."""
        from pegsynth.methods.gibbs.chains import Schedule

        return Schedule(options.block_size, options.sweeps, limit=1)

    def lot(self, plan: Any) -> int:
        """Return B: a block is paid for whole."""
        size: int = plan.options.block_size
        return size

    def declared_options(self, plan: Any) -> dict[str, Any]:
        """Return the rows of a block as well."""
        return super().declared_options(plan) | {"block_size": plan.options.block_size}

    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Within a block an entry answers once: distinct entries over visits."""
        visits = plan.options.block_size * plan.options.sweeps
        return float(entries * (1 - (1 - 1 / entries) ** visits) / visits)

    def detail(self, plan: GibbsPlan) -> str:
        """Say how large a block is."""
        return f"blocks of {plan.options.block_size}"


PEGS_RS = PegsRs()
