"""What the Gibbs samplers over hashed blocks have in common (PeGS, PeGS.rs, capped visits).

They differ in their options, in the shape of their draws, which sets the price, and in the
sampler. What does the work is loaded when it is needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pegsynth.errors import ParameterError
from pegsynth.methods.base import Fitted, Model, Prediction, Sampler
from pegsynth.methods.pricing import PricedMethod
from pegsynth.privacy.calibrate import DEFAULT_SCALE

if TYPE_CHECKING:
    from pegsynth.auditing.run import Finding
    from pegsynth.methods.counting import ConfidentialTable
    from pegsynth.methods.gibbs.block_fitting import GibbsFit
    from pegsynth.methods.gibbs.chains import Schedule
    from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.privacy import Budget, Ledger
    from pegsynth.privacy.assumptions import Assumption, Parameters
    from pegsynth.progress import Progress
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema

DEFAULT_HEADS = 2
_POOLS = ("uniform", "marginal", "original")


class GibbsMethod(PricedMethod["GibbsFit"]):
    """A Gibbs sampler over hashed blocks with virtual rows."""

    on_cluster: ClassVar[bool] = True
    fits_unpriced: ClassVar[bool] = True

    def filled(self, schema: Schema, options: Any, *, total: bool) -> Any:
        """Fill the gaps in the options that depend on the kind of budget."""
        need_rows(self.name, options, total=total)
        return replace(
            options,
            prior=options.prior or ("levels" if total else "uniform"),
            seed_pool=options.seed_pool or ("marginal" if total else "uniform"),
        )

    @abstractmethod
    def schedule(self, options: Any) -> Schedule:
        """Return how rows hang together."""

    @abstractmethod
    def answered(self, plan: GibbsPlan, entries: float) -> float:
        """Predict the share of visits that entries answer.

        Parameters
        ----------
        entries
            How many entries of a feature take most visits.
        """

    @abstractmethod
    def detail(self, plan: GibbsPlan) -> str:
        """Say in a few words how rows are drawn, for ``pegs plan``."""

    def default_heads(self, options: Any, *, total: bool) -> int:
        """Return m where the user left it open."""
        return DEFAULT_HEADS

    def settle(
        self, schema: Schema, budget: Budget, options: Any, *, scale: int = DEFAULT_SCALE
    ) -> GibbsPlan:
        """Settle a release."""
        from pegsynth.methods.gibbs.gibbs_plan import settle_gibbs

        total = budget.epsilon is not None
        filled = self.filled(schema, options, total=total)
        return settle_gibbs(self, schema, budget, filled, scale=scale)

    def count(
        self,
        table: ConfidentialTable,
        schema: Schema,
        options: Any,
        stream: RandomStream,
        ledger: Ledger,
    ) -> tuple[GibbsFit, Ledger]:
        """Count blocks for which a budget is stated later, when rows are drawn."""
        from pegsynth.methods.gibbs.block_fitting import count_blocks
        from pegsynth.methods.gibbs.gibbs_plan import settle_keys

        keys = settle_keys(schema, options, total=False, heads=DEFAULT_HEADS)
        return count_blocks(table, schema, keys, stream, ledger)

    def fixed_keys(self, model: Model) -> dict[str, Any]:
        """Return heads and tail bits as they were counted."""
        from pegsynth.methods.gibbs.order import plain_features

        spec = model.content.blocks.spec
        heads = max(len(spec.heads[i]) for i in plain_features(model.schema))
        return {"heads": heads, "tail_bits": spec.tail_bits, "order": "public"}

    def fit(
        self,
        table: ConfidentialTable,
        schema: Schema,
        plan: Any,
        stream: RandomStream,
        ledger: Ledger,
        *,
        threads: int,
        progress: Progress,
    ) -> Fitted[Any, GibbsFit]:
        """Count blocks, and keep rows where seed rows or kept columns need them."""
        from pegsynth.methods.gibbs.block_fitting import count_blocks

        fit, ledger = count_blocks(table, schema, plan.keys, stream, ledger, plan)
        if plan.seed_pool == "original":
            fit = replace(fit, rows=table.rows())
        return Fitted(fit, plan, ledger)

    def sampler(self, model: Model, plan: Any, *, threads: int) -> Sampler:
        """Make the machine ready."""
        from pegsynth.methods.gibbs.samplers import RestartedSampler, prepare

        ready = prepare(model.schema, model.content, plan)
        schedule = self.schedule(plan.options)
        return RestartedSampler(ready, model.schema.code_dtype, schedule, threads=threads)

    def declared_options(self, plan: Any) -> Parameters:
        """Return keys, virtual rows, sweeps and seed rows."""
        keys = plan.keys
        given: Parameters = {
            "heads": keys.heads,
            "tail_bits": keys.tail_bits,
            "prior": plan.prior,
        }
        given |= {"order": keys.order} if keys.heads else {}
        pool = str(plan.seed_pool) if plan.seed_pool in _POOLS else "file"
        return given | {"sweeps": plan.options.sweeps, "seed_rows": pool}

    def declared_structure(self, schema: Schema, plan: Any) -> tuple[Assumption, ...]:
        """Return the parents of details: a detail is drawn given its parent."""
        from pegsynth.methods.ledgers import of_parents

        return of_parents(schema, plan.options)

    def store(self, content: GibbsFit) -> StoredModel:
        """Return the counts as cells."""
        from pegsynth.methods.gibbs.stored_blocks import store_blocks

        return store_blocks(content)

    def load(self, stored: StoredModel, schema: Schema, plan: Any) -> GibbsFit:
        """Rebuild the blocks."""
        from pegsynth.methods.gibbs.stored_blocks import load_blocks

        return load_blocks(stored, schema)

    def store_plan(self, plan: Any) -> dict[str, Any]:
        """Return alpha, and where heads, virtual rows and seed rows come from."""
        return super().store_plan(plan) | {
            "order": plan.keys.order,
            "prior": plan.prior,
            "seed_pool": str(plan.seed_pool),
        }

    def load_plan(self, stored: Mapping[str, Any], schema: Schema, model: StoredModel) -> GibbsPlan:
        """Rebuild a plan; heads and tail bits are those of the counts."""
        from pegsynth.methods.gibbs.stored_blocks import load_gibbs_plan

        return load_gibbs_plan(self, stored, schema, model)

    def predict(self, schema: Schema, plan: Any) -> Prediction:
        """Predict how much of a draw comes from the data."""
        from pegsynth.methods.gibbs.data_share import predict_gibbs

        return predict_gibbs(self, schema, plan)

    def describe(self, model: Model, *, confidential: bool) -> Iterable[str]:
        """Yield heads and key spaces."""
        from pegsynth.privacy import NotPrivate

        spec = model.content.blocks.spec
        # Heads read off the data are not public, whatever else a model tells.
        heads_public = confidential or not any(
            isinstance(event, NotPrivate) and event.code == "data-order"
            for event in model.ledger.events
        )
        yield f"tail bits: {spec.tail_bits}"
        for target, name in enumerate(spec.names):
            heads = ", ".join(spec.names[head] for head in spec.heads[target]) or "none"
            shown = f", heads {heads}, key space {spec.key_space(target)}" if heads_public else ""
            levels = spec.category_counts[target]
            count = len(spec.levels[target]) if spec.levels else levels
            merged = f" in {levels} levels" if levels < count else ""
            yield f"  {name}: {count} categories{merged}{shown}"

    def confidential_figures(self, model: Model) -> list[str]:
        """Return how many keys and rows every block holds."""
        blocks, lines = model.content.blocks, []
        for name, block in zip(blocks.spec.names, blocks.blocks, strict=True):
            keys, _, counts = block.cells()
            lines.append(f"  {name}: {len(set(keys.tolist()))} keys seen, {int(counts.sum())} rows")
        return lines

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Enumerate tiny releases of this schedule, and sample many."""
        from pegsynth.auditing.run import audit_gibbs

        return audit_gibbs(self.name, full=full, threads=threads)

    def first_kernels(self) -> None:
        """Load what counts blocks."""
        from pegsynth.kernels.warm import counting_kernels

        counting_kernels()


def need_rows(name: str, options: Any, *, total: bool) -> None:
    """Ask for the number of rows where the price grows with it."""
    if options.rows is None and total:
        raise ParameterError(
            f"--rows is needed: the price of {name} grows with the rows ever to be drawn"
        )
