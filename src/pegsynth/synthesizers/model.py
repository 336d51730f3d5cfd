"""A fitted model: blocks, the schema they were counted under, and what fitting looked at.

A model is confidential: it holds exact counts. `fit` makes one from a table in one or two
passes; `draw` takes rows from it under a budget and says what that cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.blocks import Blocks, disintegrate
from pegsynth.errors import ParameterError
from pegsynth.hashing import HashSpec, count_pairs, heads_by_score, public_heads
from pegsynth.perturb import SCALE, Prior, diverse, rule_tables, uniform_weights
from pegsynth.privacy import (
    Budget,
    Diversity,
    Event,
    Ledger,
    NotPrivate,
    Shape,
    alpha_per_row,
    calibrate_draws,
    stated_alpha,
)
from pegsynth.privacy.assumptions import public_heads as heads_assumption
from pegsynth.privacy.assumptions import public_seed_pool, reviewed_schema
from pegsynth.random import RandomStream
from pegsynth.sampling import FilePool, Machine, Schedule, SeedPool, WeightedPool, sample_rows
from pegsynth.schema.codec import encode, encode_table
from pegsynth.synthesizers.options import DrawOptions, FitOptions, diversity_levels

if TYPE_CHECKING:
    from pegsynth.io.read import TableReader
    from pegsynth.schema import Schema

Codes = NDArray[np.unsignedinteger[Any]]
Progress = Callable[[str, int, int | None], None]


def quiet(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Model:
    """Blocks and everything needed to draw from them.

    Parameters
    ----------
    schema, blocks
        The public codebook and the confidential counts.
    columns, dtypes
        Column order and types of the original table, public like its header.
    ledger
        What fitting looked at and assumed.
    """

    schema: Schema
    blocks: Blocks
    ledger: Ledger
    columns: tuple[str, ...] = ()
    dtypes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A sampler ready to run, and the complete ledger of what it will draw.

    The ledger is complete before the first row is drawn.
    """

    machine: Machine
    pool: SeedPool
    schedule: Schedule
    prior: Prior
    ledger: Ledger


def fit(
    reader: TableReader,
    schema: Schema,
    options: FitOptions | None = None,
    *,
    accept_unreviewed: bool = False,
    threads: int = 1,
    progress: Progress = quiet,
) -> Model:
    """Count a table into blocks.

    Parameters
    ----------
    accept_unreviewed
        Go on with a schema nobody has reviewed; recorded as not private.
    """
    options = options or FitOptions()
    heads = options.head_count(schema)
    ledger = schema_ledger(schema, accept_unreviewed=accept_unreviewed)
    if options.order == "data":
        batches = _watched(encode_table(reader, schema), "pair counts", progress)
        pairs = count_pairs(batches, schema.category_counts, threads=threads)
        chosen = heads_by_score(pairs.mutual_information(), heads)
        ledger = ledger.add(NotPrivate.because("data-order"))
    else:
        chosen = public_heads(schema, heads)
        if any(feature.heads for feature in schema.features):
            ledger = ledger.assume(heads_assumption())
    spec = HashSpec(schema.names, schema.category_counts, chosen, options.tail_bits)
    batches = _watched(encode_table(reader, schema), "blocks", progress)
    blocks = disintegrate(batches, spec, threads=threads)
    return Model(schema, blocks, ledger, reader.columns, dict(reader.dtypes))


def schema_ledger(schema: Schema, *, accept_unreviewed: bool = False) -> Ledger:
    """Return the ledger that a schema starts: its review, or the lack of one (R10)."""
    if schema.reviewed:
        return Ledger().assume(reviewed_schema(drafted_from_data=schema.drafted_from_data))
    if not accept_unreviewed:
        return Ledger().add(NotPrivate.because("unreviewed-schema"))
    return Ledger().add(NotPrivate.because("unreviewed-schema", detail="accepted by the user"))


def prepare(model: Model, budget: Budget, options: DrawOptions, *, seeded: bool) -> Prepared:
    """Calibrate a sampler for K datasets of n rows under a budget; nothing is drawn yet."""
    shape = Shape(
        method=options.method,
        features=len(model.schema.features),
        rows=options.rows,
        sweeps=options.sweeps,
        datasets=options.datasets,
        block_size=options.block_size if options.method == "pegs-rs" else None,
    )
    prior, events = perturbation(model.schema, budget, shape)
    levels = diversity_levels(model.schema, budget)
    rules = model.schema.rules
    tables = diverse(model.blocks, prior, levels, rules) if levels else prior.tables
    machine = Machine(
        model.blocks.spec.tables,
        model.blocks.tables,
        tables,
        rule_tables(rules, model.schema.category_counts),
        np.arange(len(model.schema.features), dtype=np.int64),
    )
    pool, ledger = _seed_pool(model, machine, options, model.ledger)
    ledger = Ledger(ledger.events, ledger.assumptions, budget.delta or 0.0).add(*events)
    if seeded:
        ledger = ledger.add(NotPrivate.because("seeded"))
    schedule = (
        Schedule(options.block_size, options.sweeps, limit=1)
        if options.method == "pegs-rs"
        else Schedule(1, options.sweeps)
    )
    return Prepared(machine, pool, schedule, prior, ledger)


def draw(
    prepared: Prepared, rows: int, stream: RandomStream, *, threads: int = 1
) -> Iterator[Codes]:
    """Yield one dataset of `rows` rows as chunks of codes."""
    dtype = np.min_scalar_type(int(np.diff(prepared.machine.keys.category_start).max()) - 1)
    for chunk in sample_rows(
        prepared.machine, prepared.pool, prepared.schedule, rows, stream, threads=threads
    ):
        yield chunk.astype(dtype)


def perturbation(
    schema: Schema, budget: Budget, shape: Shape, *, scale: int = SCALE
) -> tuple[Prior, tuple[Event, ...]]:
    """Turn a budget into virtual rows, and into the events they will be charged as."""
    counts = schema.category_counts
    widest = max(counts)
    if budget.kind == "l-diversity":
        levels = diversity_levels(schema, budget)
        names = tuple(schema.names[i] for i in sorted(levels))
        event: Event = Diversity(l=min(levels.values()), features=names)
        return Prior(uniform_weights(counts), (0,) * len(counts), scale), (event,)
    if budget.alpha == 0:
        unperturbed = Prior(uniform_weights(counts), (0,) * len(counts), scale)
        return unperturbed, (NotPrivate.because("unperturbed"),)
    if budget.alpha is not None:
        numerator = stated_alpha(budget.alpha, scale=scale, categories=widest)
    elif budget.epsilon_per_row is not None:
        numerator = alpha_per_row(
            budget.epsilon_per_row,
            features=shape.features,
            sweeps=shape.sweeps,
            block_size=shape.block_size,
            scale=scale,
            categories=widest,
        )
    else:
        numerator = calibrate_draws(shape, budget, scale=scale, categories=widest).numerator
    prior = Prior(uniform_weights(counts), (numerator,) * len(counts), scale)
    return prior, (shape.event(numerator, scale),)


def _seed_pool(
    model: Model, machine: Machine, options: DrawOptions, ledger: Ledger
) -> tuple[SeedPool, Ledger]:
    if options.seed_pool == "uniform":
        weights = Prior(uniform_weights(model.schema.category_counts), (0,) * machine.features)
        cumulative = weights.tables.weight_cumulative
        return WeightedPool(machine.keys.category_start, cumulative, machine.rules), ledger
    if not str(options.seed_pool):
        raise ParameterError("--seed-pool is uniform or the name of a file of public rows")
    rows = encode(options.seed_pool, model.schema, need_unit=False)
    valid = rows[~model.schema.breaks_a_rule(rows)].astype(np.uint32)
    name = str(options.seed_pool).rsplit("/", maxsplit=1)[-1]
    return FilePool(valid), ledger.assume(public_seed_pool(name))


def _watched(batches: Iterable[Codes], stage: str, progress: Progress) -> Iterator[Codes]:
    done = 0
    progress(stage, 0, None)
    for batch in batches:
        yield batch
        done += len(batch)
        progress(stage, done, None)
