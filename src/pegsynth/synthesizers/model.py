"""A fitted model: blocks, the schema they were counted under, and what fitting looked at.

A model is confidential: it holds exact counts. `fit` makes one from a table in one or two
passes, paying for what it looks at; `prepare` sets up a sampler for a recipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.blocks import BlockCounter, Blocks, DenseBlock
from pegsynth.errors import BudgetError, DataError, ModelError, ParameterError
from pegsynth.hashing import HashSpec, PairCounts, heads_by_score, public_heads
from pegsynth.hashing.order import detail_features, plain_features, with_parents
from pegsynth.hashing.private_order import heads_by_choice, pair_scores
from pegsynth.options import IMPUTATION_METHODS, FitOptions, Order
from pegsynth.perturb import Prior, diverse, rule_tables, uniform_weights
from pegsynth.perturb.marginals import Marginals, noisy_marginals, prior_weights, seed_weights
from pegsynth.perturb.noise import choose
from pegsynth.privacy import Ledger, NoisyCounts, NotPrivate, Selection, this_program
from pegsynth.privacy.assumptions import public_seed_pool, rows_in, rowwise_query
from pegsynth.random import RandomStream
from pegsynth.sampling import FilePool, Machine, Schedule, SeedPool, WeightedPool
from pegsynth.sampling.conditional import ConditionalModel
from pegsynth.schema.codec import encode, one_matrix
from pegsynth.schema.rules import conditioned
from pegsynth.synthesizers.checkpoint import Checkpoint
from pegsynth.synthesizers.counting import Counts, StreamCounts
from pegsynth.synthesizers.declarations import of_heads, of_release, of_schema, of_structure
from pegsynth.synthesizers.drawn import clamped_codes, diversity_levels, drawn_features
from pegsynth.synthesizers.imputing import fit_conditionals
from pegsynth.synthesizers.progress import Progress, quiet
from pegsynth.synthesizers.reading import CodeTable
from pegsynth.synthesizers.released_blocks import ONCE, check_drawing, fit_once

if TYPE_CHECKING:
    from pegsynth.io.reader import TableReader
    from pegsynth.once import Released
    from pegsynth.once.counted import CountedTable
    from pegsynth.once.second_round import Fit
    from pegsynth.schema import Schema
    from pegsynth.synthesizers.recipe import Recipe

Codes = NDArray[np.unsignedinteger[Any]]
Heads = tuple[tuple[int, ...], ...]

WHOLE_TABLE_METHODS = ("contingency", "bootstrap", *IMPUTATION_METHODS)


@dataclass(frozen=True)
class Model:
    """Blocks and everything needed to draw from them.

    Parameters
    ----------
    schema, blocks
        The public codebook and the confidential counts.
    ledger
        What fitting assumed and what no result covers; priced events are the recipe's.
    marginals
        Noisy marginals, if the recipe paid for them.
    originals
        All rows of the table, where the method or the seed rows need them.
    conditionals
        Fitted conditional models of an imputation method.
    recipe
        The settled release, if the model was fitted for one.
    released, ready
        Released blocks, which may be published, and the weighted pool that fitting left.
    columns, dtypes
        Column order and types of the original table, public like its header.
    """

    schema: Schema
    blocks: Blocks
    ledger: Ledger
    marginals: Marginals | None = None
    recipe: Recipe | None = None
    originals: Codes | None = field(default=None, repr=False)
    conditionals: ConditionalModel | None = field(default=None, repr=False)
    released: Released | None = field(default=None, repr=False)
    ready: Fit | None = field(default=None, repr=False)
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
    ledger: Ledger


def fit(
    reader: TableReader,
    schema: Schema,
    plan: FitOptions | Recipe,
    stream: RandomStream,
    *,
    accept_unreviewed: bool = False,
    threads: int = 1,
    progress: Progress = quiet,
    checkpoint: Checkpoint | None = None,
) -> Model:
    """Count a table into blocks.

    Parameters
    ----------
    plan
        A settled recipe, or options for a model that has no budget yet.
    accept_unreviewed
        Go on with a schema nobody has reviewed; recorded as not private.
    checkpoint
        Where to save counts on the way, and what was counted before.
    """
    from pegsynth.synthesizers.recipe import Recipe

    recipe = plan if isinstance(plan, Recipe) else None
    ledger = schema_ledger(schema, accept_unreviewed=accept_unreviewed)
    ledger = selection_ledger(ledger, reader)
    table = CodeTable(
        reader, schema, stream, kept=checkpoint.kept if checkpoint else None, progress=progress
    )
    if checkpoint:
        checkpoint.keep(table.kept)
    if recipe and recipe.draw.method == ONCE:
        if checkpoint:
            raise ParameterError("pegs-once reads the table once and cannot resume; drop --resume")
        codes = one_matrix(_watched(table, "rows read", progress))
        model = fit_released(
            codes, schema, recipe, ledger, stream, threads=threads, progress=progress
        )
        return replace(model, columns=reader.output_columns, dtypes=_written_types(reader, schema))
    counts = StreamCounts(table, threads, progress, checkpoint)
    model = fit_counts(counts, schema, plan, stream, ledger)
    originals = conditionals = None
    if recipe and (recipe.seed_pool == "original" or recipe.draw.method in WHOLE_TABLE_METHODS):
        originals = one_matrix(_watched(table, "rows read", progress))
        if recipe.draw.method in IMPUTATION_METHODS:
            conditionals = fit_conditionals(
                originals, schema, recipe.draw.method, stream, threads=threads, progress=progress
            )
            if recipe.seed_pool != "original" and not recipe.draw.proper:
                originals = None
    return replace(
        model,
        originals=originals,
        conditionals=conditionals,
        columns=reader.output_columns,
        dtypes=_written_types(reader, schema),
    )


def _written_types(reader: TableReader, schema: Schema) -> dict[str, Any]:
    """Return the declared types of the features, in the order of the schema (R30)."""
    return {name: reader.dtypes[name] for name in schema.names if name in reader.dtypes}


def fit_counts(
    counts: Counts,
    schema: Schema,
    plan: FitOptions | Recipe,
    stream: RandomStream,
    ledger: Ledger,
) -> Model:
    """Choose heads and count blocks, paying for what the choice looks at (R10).

    Parameters
    ----------
    counts
        Who counts, on this machine or on a cluster.
    ledger
        What is known so far of the schema and of how the rows were selected.
    """
    from pegsynth.synthesizers.recipe import Recipe, unpriced

    recipe = plan if isinstance(plan, Recipe) else None
    heads, tail_bits, order = (
        (recipe.heads, recipe.tail_bits, recipe.order) if recipe else unpriced(schema, plan)  # type: ignore[arg-type]
    )
    if order == "public":
        chosen, marginals = public_heads(schema, heads), None
        ledger = ledger.assume(*of_heads(schema, heads))
    else:
        pairs = counts.pairs(schema.category_counts, order_rows=plan.order_rows)
        chosen, marginals, event = _heads_of(schema, pairs, order, heads, recipe, stream)
        ledger = ledger.add(*event)
    drawn = order == "private" and not stream.seeded
    blocks = counts.blocks(hash_spec(schema, chosen, tail_bits), drawn_heads=drawn)
    if recipe and recipe.marginals and marginals is None:
        marginals = noisy_marginals(one_way_counts(blocks), recipe.marginals, stream)
    return Model(schema, blocks, ledger, marginals, recipe)


def fit_released(
    rows_of: Codes | CountedTable,
    schema: Schema,
    recipe: Recipe,
    ledger: Ledger,
    stream: RandomStream,
    *,
    threads: int = 1,
    progress: Progress = quiet,
) -> Model:
    """Release the blocks of a table; nothing of it stays in the model."""
    released, ready, spent = fit_once(
        rows_of, schema, recipe, stream, threads=threads, progress=progress
    )
    empty = empty_blocks(schema)
    # The file of the model is itself published, so its ledger is complete.
    ledger = ledger.assume(*of_release(schema, recipe))
    return Model(schema, empty, ledger, recipe=spent, released=released, ready=ready)


def empty_blocks(schema: Schema) -> Blocks:
    """Return blocks without any count, for a model that holds none."""
    spec = HashSpec(schema.names, schema.category_counts, ((),) * len(schema.features), 0)
    with BlockCounter(spec) as counter:
        return counter.blocks()


def hash_spec(schema: Schema, heads: Heads, tail_bits: int) -> HashSpec:
    """Return the keys of a schema's features, details by their parent alone."""
    details = detail_features(schema)
    return HashSpec(schema.names, schema.category_counts, heads, tail_bits, details)


def mapped(schema: Schema, heads: Heads) -> Heads:
    """Turn heads that were chosen among the plain features into features of the schema."""
    plain = plain_features(schema)
    return tuple(tuple(plain[i] for i in line) for line in heads)


def _heads_of(
    schema: Schema,
    pairs: PairCounts,
    order: Order,
    heads: int,
    recipe: Recipe | None,
    stream: RandomStream,
) -> tuple[Heads, Marginals | None, tuple[NotPrivate, ...]]:
    """Choose heads by pair counts, paying for it or saying that nobody did (R10)."""
    if order == "private":
        marginals, chosen = _private_heads(schema, pairs, recipe, stream)
        return chosen, marginals, ()
    plain = np.ix_(*[plain_features(schema)] * 2)
    scores = pairs.mutual_information()[plain]
    chosen = with_parents(schema, mapped(schema, heads_by_score(scores, heads)))
    return chosen, None, (NotPrivate.because("data-order"),)


def _private_heads(
    schema: Schema, pairs: PairCounts, recipe: Recipe | None, stream: RandomStream
) -> tuple[Marginals, Heads]:
    """Pay for marginals, then for every choice of a head (R10)."""
    paid, choice = _paid_events(recipe)
    marginals = noisy_marginals(pairs.one_way_counts(), paid, stream)
    scores = pair_scores(pairs, marginals.shares, marginals.total)
    epsilon = Fraction(choice.epsilon_numerator, choice.epsilon_denominator)
    words = stream.substream()
    plain = plain_features(schema)
    scores = scores[np.ix_(plain, plain)]
    heads = choice.count // len(plain)
    chosen = heads_by_choice(scores, heads, lambda line: choose(line, epsilon, words))
    return marginals, with_parents(schema, mapped(schema, chosen))


def _paid_events(recipe: Recipe | None) -> tuple[NoisyCounts, Selection]:
    if recipe is None or recipe.marginals is None or recipe.choice is None:
        raise BudgetError("a private order is paid out of --epsilon; state that when fitting")
    return recipe.marginals, recipe.choice


def one_way_counts(blocks: Blocks) -> list[NDArray[np.int64]]:
    """Return the exact one-way counts, which the blocks hold already."""
    counts = []
    for block, categories in zip(blocks.blocks, blocks.spec.category_counts, strict=True):
        if isinstance(block, DenseBlock):
            counts.append(block.counts.sum(axis=0))
        else:
            summed = np.bincount(block.codes, weights=block.counts, minlength=categories)
            counts.append(summed.astype(np.int64))
    return counts


def schema_ledger(schema: Schema, *, accept_unreviewed: bool = False) -> Ledger:
    """Return the ledger that a schema starts: its review, or the lack of one (R10)."""
    ledger = Ledger().assume(*of_schema(schema)).made_by(this_program())
    if schema.reviewed:
        return ledger
    detail = "accepted by the user" if accept_unreviewed else ""
    return ledger.add(NotPrivate.because("unreviewed-schema", detail=detail))


def selection_ledger(ledger: Ledger, reader: TableReader) -> Ledger:
    """Add what is known of how a query selected the rows of a database (R10).

    A guarantee for rows of the database holds only if no row of the query depends on
    other rows.
    """
    if reader.selection == "other":
        return ledger.add(NotPrivate.because("query-not-rowwise"))
    if reader.selection == "view":
        return ledger.add(NotPrivate.because("view-not-rowwise"))
    if reader.selection == "whole":
        return ledger
    return ledger.assume(rowwise_query(declared=reader.selection == "declared"))


def prepare(model: Model, recipe: Recipe, *, seeded: bool) -> Prepared:
    """Set up the sampler of a recipe; nothing is drawn yet."""
    schema, blocks = model.schema, model.blocks
    counts = schema.category_counts
    weights = (
        prior_weights(model.marginals, recipe.resolution)
        if recipe.prior == "marginal" and model.marginals
        else uniform_weights(counts)
    )
    prior = Prior(weights, (recipe.numerator,) * len(counts), recipe.scale)
    levels = {}
    if recipe.draw.method != ONCE:
        levels = diversity_levels(schema, recipe.budget, recipe.draw)
    elif model.released is not None:
        check_drawing(model.released, schema, recipe)
    machine = Machine(
        blocks.spec.tables,
        blocks.tables,
        diverse(blocks, prior, levels, schema.rules) if levels else prior.tables,
        rule_tables(schema.rules, counts),
        np.array(drawn_features(schema, recipe.draw), dtype=np.int64),
    )
    pool, ledger = _seed_pool(model, machine, recipe)
    # How rows are drawn from released blocks is nobody's choice but the drawer's.
    declared = of_structure if recipe.draw.method == ONCE else of_release
    ledger = ledger.assume(*declared(schema, recipe)).made_by(this_program())
    if recipe.draw.rows_in:
        ledger = ledger.assume(rows_in(recipe.draw.rows_in))
    ledger = replace(ledger, delta=recipe.budget.delta or 0.0).add(*recipe.events)
    if seeded:
        ledger = seeded_ledger(ledger)
    return Prepared(machine, pool, schedule_of(recipe), ledger)


def seeded_ledger(ledger: Ledger) -> Ledger:
    """Return a ledger that says, once, that a seed fixed the random numbers."""
    event = NotPrivate.because("seeded")
    return ledger if event in ledger.events else ledger.add(event)


def schedule_of(recipe: Recipe) -> Schedule:
    """Return how rows of a recipe hang together."""
    if recipe.draw.method == "pegs-rs":
        return Schedule(recipe.draw.block_size, recipe.draw.sweeps, limit=1)
    return Schedule(1, recipe.draw.sweeps)


def _seed_pool(model: Model, machine: Machine, recipe: Recipe) -> tuple[SeedPool, Ledger]:
    start = machine.keys.category_start
    clamped = clamped_codes(model.schema, recipe.draw)
    conditioned(model.schema.rules, clamped)  # refuses values that a rule forbids together
    if recipe.seed_pool in ("uniform", "marginal"):
        weights = (
            seed_weights(model.marginals)
            if recipe.seed_pool == "marginal" and model.marginals
            else uniform_weights(model.schema.category_counts)
        )
        # A clamped feature has all its weight on one category.
        for feature, code in clamped.items():
            alone = np.zeros_like(weights[feature])
            alone[code] = 1
            weights = (*weights[:feature], alone, *weights[feature + 1 :])
        cumulative = np.concatenate([np.cumsum(w, dtype=np.uint64) for w in weights])
        return WeightedPool(start, cumulative, machine.rules), model.ledger
    if recipe.seed_pool == "original":
        if recipe.draw.synthesize:
            return FilePool(_whole(model).astype(np.uint32)), model.ledger
        return FilePool(_valid(model, model.originals, clamped)), model.ledger
    valid = _valid(model, encode(recipe.seed_pool, model.schema, need_unit=False), clamped)
    name = str(recipe.seed_pool).rsplit("/", maxsplit=1)[-1]
    return FilePool(valid), model.ledger.assume(public_seed_pool(name))


def _whole(model: Model) -> Codes:
    """Return the original rows whose features are to be replaced; all must obey the rules."""
    rows = model.originals
    if rows is None:
        raise ModelError("this model holds no original rows to start from; use pegs synthesize")
    if broken := int(model.schema.breaks_a_rule(rows).sum()):
        raise DataError(
            f"{broken} rows break a rule of the schema, and --synthesize keeps what is wrong with "
            "them; mend or drop these rows"
        )
    return rows


def _valid(model: Model, rows: Codes | None, clamped: dict[int, int]) -> NDArray[np.uint32]:
    """Return the rows that obey the schema's rules, as seed rows with clamped values."""
    if rows is None:
        raise ModelError("this model holds no original rows to start from; use pegs synthesize")
    rows = rows.copy()
    for feature, code in clamped.items():
        rows[:, feature] = code
    return rows[~model.schema.breaks_a_rule(rows)].astype(np.uint32)


def _watched(table: CodeTable, stage: str, progress: Progress) -> Iterator[Codes]:
    total = table.reader.expected_rows
    progress(stage, 0, total)
    for batch in table.batches():
        yield batch
        progress(stage, table.place.rows, total)
