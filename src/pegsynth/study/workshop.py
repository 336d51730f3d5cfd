"""Tables to synthesize, models fitted to them once, and any number of draws.

Every draw goes through the library's own recipe and session, so what the study shows is
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

from pegsynth.errors import ParameterError, PegsynthError
from pegsynth.evaluation.tabulation import Codes
from pegsynth.hashing import count_pairs, heads_by_score
from pegsynth.hashing.order import plain_features
from pegsynth.io.read import open_table
from pegsynth.options import IMPUTATION_METHODS, FitOptions
from pegsynth.perturb.marginals import noisy_marginals
from pegsynth.random import RandomStream
from pegsynth.sampling import Schedule, sample_rows
from pegsynth.sampling.conditional import ConditionalModel
from pegsynth.schema import Schema
from pegsynth.study.arms import Arm, plan
from pegsynth.synthesizers.imputing import fit_conditionals
from pegsynth.synthesizers.model import Model, Prepared, fit, mapped, one_way_counts, prepare
from pegsynth.synthesizers.progress import Progress, quiet
from pegsynth.synthesizers.recipe import Recipe, make_recipe
from pegsynth.synthesizers.session import Session

T = TypeVar("T")

FRESH = "fresh"
SHARED_FITS = ("pegs", "pegs-rs", "pegs-capped")
TABLE_METHODS = ("contingency", "marginal", "bootstrap")
_PUBLIC_POOL = "public-pool.parquet"


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
        recipe = self.recipe(arm, level, rows)
        model = self._model(arm, recipe, stream)
        # A fit that spends the budget itself says in its own recipe what it spent.
        recipe = model.recipe or recipe
        ready = _with_held_pool(arm, recipe)
        if arm.axis == "chain" and not arm.reset:
            codes = _chained(prepare(model, ready, seeded=True), int(level or 1), rows, stream)
        else:
            codes = np.concatenate(list(Session(model, ready, stream).draw(rows)[0]))
        alpha = recipe.numerator / recipe.scale if recipe.draws is not None else np.nan
        return Drawn(codes.astype(population.codes.dtype), self._price(model, recipe), alpha)

    def prepared(self, arm: Arm, level: float | None, rows: int, stream: RandomStream) -> Prepared:
        """Return the sampler of an arm at a level, for the trace of a row."""
        recipe = self.recipe(arm, level, rows)
        model = self._model(arm, recipe, stream)
        return prepare(model, _with_held_pool(arm, recipe), seeded=True)

    def recipe(self, arm: Arm, level: float | None, rows: int) -> Recipe:
        """Settle an arm at a level."""
        pool = {"public": _PUBLIC_POOL, "default": None}.get(arm.pool, arm.pool)
        if arm.method in TABLE_METHODS:
            pool = None
        each = plan(arm, level, rows, seed_pool=pool)
        keyed = arm.method in SHARED_FITS
        fitting = each.fit if keyed else FitOptions()
        return make_recipe(self._schema(arm), each.budget, fitting, each.draw)

    def conditionals(self, arm: Arm) -> ConditionalModel:
        """Return the imputation models of an arm, fitted when they are first asked for."""
        family = "glm" if arm.method in ("mi", "pmi") else arm.method
        population = self._population(arm)
        codes = population.codes

        def fitted() -> ConditionalModel:
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

    def blocks_model(self, arm: Arm, options: FitOptions) -> Model:
        """Return a table's blocks by a given order, counted when they are first asked for."""
        population, schema = self._population(arm), self._schema(arm)
        key = (arm.population, options, arm.order == "pool")
        return self._once(
            key,
            lambda: fit(
                open_table(population.frame),
                schema,
                options,
                RandomStream("study blocks"),
                accept_unreviewed=True,
                threads=self._threads,
            ),
        )

    def _model(self, arm: Arm, recipe: Recipe, stream: RandomStream) -> Model:
        """Return a model for one draw, sharing whatever no random number enters."""
        population = self._population(arm)
        shared = arm.method in SHARED_FITS and recipe.order != "private"
        if shared:
            options = FitOptions(recipe.heads, recipe.tail_bits, recipe.order)
        elif arm.method in (*IMPUTATION_METHODS, *TABLE_METHODS):
            options = FitOptions(0, 0, "public")
        else:
            reader = open_table(population.frame)
            fresh = fit(reader, self._schema(arm), recipe, stream, accept_unreviewed=True)
            return replace(fresh, originals=self._seed_rows(arm, fresh.originals))
        base = self.blocks_model(arm, options)
        return replace(
            base,
            recipe=recipe,
            marginals=noisy_marginals(one_way_counts(base.blocks), recipe.marginals, stream)
            if recipe.marginals
            else None,
            originals=self._seed_rows(arm, population.codes),
            conditionals=self.conditionals(arm) if arm.method in IMPUTATION_METHODS else None,
        )

    def _seed_rows(self, arm: Arm, originals: Codes | None) -> Codes | None:
        keeps_rows = arm.method in TABLE_METHODS or arm.pool != "public"
        return originals if keeps_rows else self._population(arm).pool

    def _price(self, model: Model, recipe: Recipe) -> float:
        """Return the pure or approximate epsilon of everything that a result covers."""
        ledger = replace(model.ledger, delta=recipe.budget.delta or 0.0).add(*recipe.events)
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


def _with_held_pool(arm: Arm, recipe: Recipe) -> Recipe:
    """Let a pool held in memory take the place of the original rows; the price is settled."""
    held = arm.pool == "public" and arm.method not in TABLE_METHODS
    return replace(recipe, seed_pool="original") if held else recipe


def _chosen(rows: Codes, count: int, stream: RandomStream) -> Codes:
    """Return some rows, each at most once while there are enough."""
    order = np.argsort(stream.substream().take(len(rows)), kind="stable")
    return rows[np.resize(order, count)]


def _chained(ready: Prepared, length: int, rows: int, stream: RandomStream) -> Codes:
    """Return rows of chains that run on without a reset (PeGS, iterated)."""
    schedule = Schedule(length, 1, limit=0)
    return np.concatenate(list(sample_rows(ready.machine, ready.pool, schedule, rows, stream)))
