"""Tables to synthesize, models fitted to them once, and any number of draws.

Every draw goes through the library's own plan and session, so what the study shows is
what a user would get. Fits that no random number enters (blocks by a given order, imputation
models) are made once and shared by all budgets and repeats; where a fit is itself noisy
(heads chosen privately, released blocks) every draw gets a fit of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from pegsynth.codec.pair_counts import count_pairs
from pegsynth.errors import ParameterError, PegsynthError
from pegsynth.kernels.arrays import Codes
from pegsynth.mechanisms.marginals import noisy_marginals
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.baselines.imputation import (
    FittedModels,
    Imputation,
    ImputationFit,
    fit_conditionals,
)
from pegsynth.methods.gibbs.block_fitting import GibbsFit, mapped, one_way_counts
from pegsynth.methods.gibbs.chains import Schedule, sample_rows
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan, Keys
from pegsynth.methods.gibbs.order import heads_by_score, plain_features
from pegsynth.methods.gibbs.samplers import Prepared, prepare
from pegsynth.methods.ledgers import schema_ledger
from pegsynth.methods.pricing import PricedPlan
from pegsynth.methods.session import Session
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled, settle
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.tables.table_input import open_table
from studies.paper.arms import Arm, request_of

T = TypeVar("T")

FRESH = "fresh"
NO_KEYS = Keys(0, 0, "public")


@dataclass(frozen=True)
class Population:
    """A table and the rows around it.

    Parameters
    ----------
    schema
        The public codebook.
    frame, codes
        The table to synthesize, as a frame and as codes.
    pool
        Seed rows that were drawn independently of the table.
    fresh
        Rows of the same population that no synthesizer sees: the hold-out.
    """

    schema: Schema
    frame: pl.DataFrame
    codes: Codes
    pool: Codes
    fresh: Codes


@dataclass(frozen=True)
class Drawn:
    """Synthetic rows and what they cost.

    Parameters
    ----------
    codes
        The rows.
    epsilon
        Price of the whole release by the ledger, leaving aside what no result covers (seeds
        of a study, heads by the data, original seed rows); NaN when there is none.
    alpha
        Virtual rows per category; NaN where the method has none.
    """

    codes: Codes
    epsilon: float
    alpha: float


class Workshop:
    """Draws of all arms over some populations.

    Parameters
    ----------
    populations
        Tables by name.
    model_rows
        Most rows that imputation models are fitted to, evenly spaced.
    threads
        For fits.
    """

    def __init__(
        self,
        populations: Mapping[str, Population],
        *,
        model_rows: int,
        threads: int = 1,
        progress: Progress = quiet,
    ) -> None:
        self.populations = populations
        self._model_rows = model_rows
        self._threads = threads
        self._progress = progress
        self._lock = threading.RLock()
        self._kept: dict[Hashable, Any] = {}

    def draw(self, arm: Arm, level: float | None, rows: int, stream: RandomStream) -> Drawn:
        """Draw a synthetic table of an arm at a level."""
        population = self._population(arm)
        if arm.method == FRESH:
            return Drawn(_chosen(population.fresh, rows, stream), np.nan, np.nan)
        settled = self.settled(arm, level, rows)
        model = self._model(arm, settled, stream)
        # A fit that spends the budget itself says in its own plan what it spent.
        plan = model.plan or self._plan(settled)
        ready = _with_held_pool(arm, plan)
        if arm.axis == "chain" and not arm.reset:
            machine = prepare(model.schema, model.content, ready)  # type: ignore[arg-type]
            codes = _chained(machine, int(level or 1), rows, stream)
        else:
            codes = np.concatenate(list(Session(model, ready, stream).draw(rows)[0]))
        alpha = plan.alpha if isinstance(plan, PricedPlan) and plan.draws is not None else np.nan
        return Drawn(codes.astype(population.codes.dtype), self._price(model, plan), alpha)

    def prepared(self, arm: Arm, level: float | None, rows: int, stream: RandomStream) -> Prepared:
        """Return the sampler of an arm at a level, for the trace of a row."""
        settled = self.settled(arm, level, rows)
        model = self._model(arm, settled, stream)
        plan: Any = _with_held_pool(arm, self._plan(settled))
        return prepare(model.schema, model.content, plan)

    def plan(self, arm: Arm, level: float | None, rows: int) -> Any:
        """Settle an arm at a level; return its plan."""
        return self._plan(self.settled(arm, level, rows))

    def settled(self, arm: Arm, level: float | None, rows: int) -> Settled:
        """Settle an arm at a level."""
        # Public rows are held in memory, and cost what uniform ones do.
        pool = {"public": "uniform", "default": None}.get(arm.pool, arm.pool)
        seeded = "seed_pool" in get(arm.method).options.__dataclass_fields__
        request = request_of(arm, level, rows, seed_pool=pool if seeded else None)
        return settle(self._schema(arm), request)

    def _plan(self, settled: Settled) -> Plan:
        if settled.plan is None:
            raise ParameterError("an arm is drawn under a budget")
        return settled.plan

    def conditionals(self, arm: Arm) -> FittedModels:
        """Return the imputation models of an arm, fitted when they are first asked for."""
        family = "glm" if arm.method in ("mi", "pmi") else arm.method
        population = self._population(arm)
        codes = population.codes

        def fitted() -> FittedModels:
            rows = np.linspace(0, len(codes) - 1, min(len(codes), self._model_rows)).astype(int)
            return fit_conditionals(
                codes[rows],
                population.schema,
                arm.method,
                RandomStream(f"study models {family}"),
                threads=self._threads,
                progress=self._progress,
            )

        return self._once((arm.population, family), fitted)

    def blocks_model(self, arm: Arm, keys: Keys) -> Model:
        """Return a table's blocks by a given order, counted when they are first asked for."""
        population, schema = self._population(arm), self._schema(arm)
        request = Request(
            method="pegs",
            heads=keys.heads,
            tail_bits=keys.tail_bits,
            order=keys.order,
            threads=self._threads,
            accept_unreviewed_schema=True,
        )
        return self._once(
            (arm.population, keys, arm.order == "pool"),
            lambda: fit(
                open_table(population.frame),
                Settled(schema, request, None),
                RandomStream("study blocks"),
            ),
        )

    def _model(self, arm: Arm, settled: Settled, stream: RandomStream) -> Model:
        """Return a model for one draw, sharing whatever no random number enters."""
        population, plan = self._population(arm), settled.plan
        if isinstance(plan, GibbsPlan) and plan.keys.order != "private":
            base = self.blocks_model(arm, plan.keys)
            blocks = base.content.blocks
            marginals = (
                noisy_marginals(one_way_counts(blocks), plan.marginals, stream)
                if plan.marginals
                else None
            )
            content = GibbsFit(blocks, marginals, self._seed_rows(arm, population.codes))
            return replace(base, method=plan.method, content=content, plan=plan)
        if isinstance(plan, PricedPlan) and isinstance(get(plan.method), Imputation):
            marginals = None
            if plan.marginals:
                one_ways = one_way_counts(self.blocks_model(arm, NO_KEYS).content.blocks)
                marginals = noisy_marginals(one_ways, plan.marginals, stream)
            rows = self._seed_rows(arm, population.codes)
            imputed = ImputationFit(self.conditionals(arm), rows, marginals)
            ledger = schema_ledger(population.schema, accept_unreviewed=True)
            return Model(self._schema(arm), plan.method, imputed, ledger, plan)
        fresh = fit(open_table(population.frame), settled, stream)
        if isinstance(fresh.content, GibbsFit):
            rows = self._seed_rows(arm, fresh.content.rows)
            return replace(fresh, content=replace(fresh.content, rows=rows))
        return fresh

    def _seed_rows(self, arm: Arm, originals: Codes | None) -> Codes | None:
        return self._population(arm).pool if arm.pool == "public" else originals

    def _price(self, model: Model, plan: Plan) -> float:
        """Return the pure or approximate epsilon of everything that a result covers."""
        ledger = replace(model.ledger, delta=plan.budget.delta or 0.0).add(*plan.events)
        epsilon = ledger.covered_part().epsilon
        return epsilon or np.nan

    def _schema(self, arm: Arm) -> Schema:
        population = self._population(arm)
        if arm.order != "pool":
            return population.schema
        return self._once(
            (arm.population, "pool heads"),
            lambda: with_heads(population.schema, population.pool),
        )

    def _population(self, arm: Arm) -> Population:
        try:
            return self.populations[arm.population]
        except KeyError:
            raise ParameterError(f"arm {arm.name!r}: there is no such population") from None

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Make something once; what failed fails again with the same error."""
        with self._lock:
            if key not in self._kept:
                try:
                    self._kept[key] = make()
                except PegsynthError as error:
                    self._kept[key] = error
            kept = self._kept[key]
        if isinstance(kept, PegsynthError):
            raise kept
        made: T = kept
        return made


def with_heads(schema: Schema, rows: Codes) -> Schema:
    """Return a schema whose heads are ordered by the mutual information in some public rows."""
    plain = plain_features(schema)
    scores = count_pairs([rows], schema.category_counts).mutual_information()
    chosen = mapped(schema, heads_by_score(scores[np.ix_(plain, plain)], len(plain) - 1))
    heads = {
        schema.names[target]: tuple(schema.names[i] for i in line)
        for target, line in zip(plain, chosen, strict=True)
    }
    columns = tuple(
        replace(column, heads=heads.get(column.name, column.heads)) for column in schema.columns
    )
    return replace(schema, columns=columns)


def _with_held_pool(arm: Arm, plan: Plan) -> Plan:
    """Let a pool held in memory take the place of the original rows; the price is settled."""
    if arm.pool == "public" and isinstance(plan, PricedPlan):
        return replace(plan, seed_pool="original")
    return plan


def _chosen(rows: Codes, count: int, stream: RandomStream) -> Codes:
    """Return some rows, each at most once while there are enough."""
    order = np.argsort(stream.substream().take(len(rows)), kind="stable")
    return rows[np.resize(order, count)]


def _chained(ready: Prepared, length: int, rows: int, stream: RandomStream) -> Codes:
    """Return rows of chains that run on without a reset (PeGS, iterated)."""
    schedule = Schedule(length, 1, limit=0)
    return np.concatenate(list(sample_rows(ready.machine, ready.pool, schedule, rows, stream)))
