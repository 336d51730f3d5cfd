"""From a table to synthetic tables in one call.

`synthesize` is the library's front door: read, fit, draw, decode, with one ledger for
everything that looked at the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.errors import BudgetError, ParameterError, SchemaError
from pegsynth.forks import check_threads
from pegsynth.io.frames import to_kind
from pegsynth.io.read import named_source, open_table, same_file, table_files
from pegsynth.io.reader import TableReader
from pegsynth.privacy import Budget, Ledger, Shares
from pegsynth.processors import usable_processors
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.codec import Decoder
from pegsynth.schema.decoding import How
from pegsynth.synthesizers.checkpoint import resuming
from pegsynth.synthesizers.model import Codes, Model, fit
from pegsynth.synthesizers.options import UNBUDGETED_METHODS, DrawOptions, FitOptions
from pegsynth.synthesizers.plan import AUTO, choose_method
from pegsynth.synthesizers.progress import Progress, quiet
from pegsynth.synthesizers.recipe import make_recipe
from pegsynth.synthesizers.session import Session


@dataclass(frozen=True)
class Release:
    """Synthetic tables of the caller's own kind, and what they cost."""

    frames: list[Any]
    ledger: Ledger = field(repr=False)


def budget_for(
    method: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    epsilon_per_row: float | None = None,
    l: float | None = None,  # noqa: E741
    alpha: float | None = None,
    shares: Shares | None = None,
    partial: bool = False,
    no_guarantee: bool = False,
) -> Budget:
    """Return the stated budget of a method; those without any proof take none."""
    stated = any(value is not None for value in (epsilon, delta, epsilon_per_row, l, alpha))
    if partial and stated and not no_guarantee:
        raise BudgetError(
            "partially synthetic tables publish their other columns as they are, so no budget can "
            "hold; leave it out, or perturb without a guarantee with --no-guarantee"
        )
    if method not in UNBUDGETED_METHODS and (stated or not partial):
        return Budget(
            epsilon=epsilon,
            delta=delta,
            epsilon_per_row=epsilon_per_row,
            l=l,
            alpha=alpha,
            shares=shares or Shares(),
            released_blocks=method == "pegs-once",
        )
    if stated:
        raise BudgetError(f"{method} has no privacy guarantee at any price; leave the budget out")
    return Budget(alpha=0.0)


def check_rows(options: DrawOptions) -> None:
    """Ask for the number of rows, except where the original rows are kept."""
    if options.synthesize and options.rows is not None:
        raise ParameterError("--synthesize keeps the original rows; leave out --rows")
    if not options.synthesize and options.rows is None:
        raise ParameterError("--rows is needed: how many synthetic rows to draw")


def honest_seed_pool(data: Any, pool: str | Path | None) -> str | Path | None:
    """Call a seed pool that is the confidential table itself by its name (R10)."""
    if pool is None or pool in ("uniform", "marginal", "original"):
        return pool
    itself = any(same_file(a, b) for a in table_files(str(pool)) for b in table_files(data))
    return "original" if itself else pool


def check_reviewed(schema: Schema, budget: Budget, *, accept: bool, source: str) -> None:
    """Refuse a differentially private run under a schema that nobody has reviewed (R10)."""
    private = budget.epsilon is not None or budget.epsilon_per_row is not None
    if private and not schema.reviewed and not accept:
        raise SchemaError(
            f"{source}: the schema is not reviewed. Check that its categories, order, bin edges "
            "and rows per unit are public knowledge, then set reviewed = true; or go on without "
            "a guarantee with --accept-unreviewed-schema"
        )


def synthesize(
    data: Any,
    schema: Schema | str | Path,
    *,
    rows: int | None = None,
    method: str = "pegs",
    epsilon: float | None = None,
    delta: float | None = None,
    epsilon_per_row: float | None = None,
    l: float | None = None,  # noqa: E741
    alpha: float | None = None,
    shares: Shares | None = None,
    datasets: int = 1,
    heads: int | None = None,
    tail_bits: int = 1,
    order: str | None = None,
    order_rows: int | None = None,
    sweeps: int = 1,
    block_size: int = 10,
    visits: int | None = None,
    chains: int | None = None,
    urn: bool | None = None,
    prior: str | None = None,
    seed_pool: str | Path | None = None,
    rows_in: int | None = None,
    where: Mapping[str, Any] | None = None,
    synthesize: str | Sequence[str] = (),
    no_guarantee: bool = False,
    log_linear: bool = False,
    proper: bool = False,
    decode: How = "values",
    seed: int | None = None,
    threads: int | None = None,
    accept_unreviewed_schema: bool = False,
    table: str | None = None,
    query: str | None = None,
    query_is_rowwise: bool = False,
    resume: str | Path | None = None,
) -> Release:
    """Return synthetic tables and their ledger.

    Parameters
    ----------
    data
        A pandas, Polars or PyArrow table; the name of a file, a glob or a folder, or an
        address of such (``s3://..``); or a database, ``postgresql://..`` or
        ``sqlite:///..``.
    schema
        A `Schema` or the name of its file.
    rows, datasets
        n rows in each of K datasets.
    epsilon, delta, epsilon_per_row, l, alpha
        The budget: exactly one of epsilon (with or without delta, for everything
        together), epsilon per row (the paper's convention), l, or alpha.
    shares
        How epsilon is split over order, marginals and draws.
    where
        Features and the value each keeps in every row; they are not drawn.
    synthesize
        Features to replace in the original rows, the others being kept: no guarantee.
    seed
        For tests and studies: reproducible, and without any guarantee.
    table, query, query_is_rowwise
        For a database: which table, or which SELECT, and the caller's word that the
        query selects rows one by one.
    resume
        For files: where to save counts on the way (CONFIDENTIAL) and go on from;
        deleted at the end.

    Returns
    -------
    Release
        `frames`, of the same kind as `data`, and `ledger`.
    """
    check_threads()
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    if method == AUTO and (epsilon is None or synthesize):
        method = "pegs"
    if method == AUTO:
        best, _ = choose_method(
            book,
            Budget(epsilon, delta, epsilon_per_row, l, alpha, released_blocks=True),
            FitOptions(heads, tail_bits, order),  # type: ignore[arg-type]
            DrawOptions(rows, "pegs-capped", datasets, rows_in=rows_in),
        )
        method = best.method
    budget = budget_for(
        method,
        partial=bool(synthesize),
        no_guarantee=no_guarantee,
        epsilon=epsilon,
        delta=delta,
        epsilon_per_row=epsilon_per_row,
        l=l,
        alpha=alpha,
        shares=shares,
    )
    source = "the schema" if isinstance(schema, Schema) else str(schema)
    check_reviewed(book, budget, accept=accept_unreviewed_schema, source=source)
    fit_options = FitOptions(heads, tail_bits, order, order_rows)  # type: ignore[arg-type]
    options = DrawOptions(
        rows,
        method,  # type: ignore[arg-type]
        datasets,
        sweeps,
        block_size,
        visits,
        chains,
        urn,
        prior,  # type: ignore[arg-type]
        honest_seed_pool(data, seed_pool),
        rows_in,
        tuple((name, str(value)) for name, value in (where or {}).items()),
        (synthesize,) if isinstance(synthesize, str) else tuple(synthesize),
        log_linear,
        proper,
    )
    check_rows(options)
    recipe = make_recipe(book, budget, fit_options, options)
    used = threads or usable_processors()
    stream = RandomStream(seed)
    origin = named_source(data, table=table, query=query, rowwise=query_is_rowwise)
    resume = None if resume is None else Path(resume)
    with (
        open_table(origin) as reader,
        resuming(resume, reader, book, recipe, seed) as checkpoint,
    ):
        model = fit(
            reader,
            book,
            recipe,
            stream,
            accept_unreviewed=accept_unreviewed_schema,
            threads=used,
            checkpoint=checkpoint,
        )
        original = original_columns(reader, model.schema) if options.synthesize else None
    session = Session(model, model.recipe or recipe, stream, threads=used)
    frames = []
    for chunks in session.draw(rows or 0, datasets):
        whole = pl.concat(decoded(decoder_of(model, decode), chunks, stream))
        if original is not None:
            whole = with_drawn_columns(original, whole, options.synthesize)
        frames.append(to_kind(whole, reader.frame_kind, like=data if reader.frame_kind else None))
    return Release(frames, session.ledger)


def original_columns(reader: TableReader, schema: Schema) -> pl.DataFrame:
    """Return the features of the original table, value by value."""
    names = [name for name in reader.columns if name in schema.names]
    return pl.concat(list(reader.batches(names)))


def with_drawn_columns(
    original: pl.DataFrame, drawn: pl.DataFrame, replaced: Sequence[str]
) -> pl.DataFrame:
    """Return the original table with the replaced features drawn anew."""
    return original.with_columns(drawn.get_column(name) for name in replaced)


def decoder_of(model: Model, how: How = "values", *, listed: bool = False) -> Decoder:
    """Return what turns codes into the columns and types of the original table."""
    columns = model.columns or None
    return Decoder(model.schema, how=how, columns=columns, dtypes=model.dtypes, listed=listed)


def decoded(
    decoder: Decoder,
    chunks: Iterator[Codes],
    stream: RandomStream,
    *,
    rows: int | None = None,
    progress: Progress = quiet,
) -> Iterator[pl.DataFrame]:
    """Yield code chunks as frames."""
    words = stream.substream()
    done = 0
    progress("rows", 0, rows)
    for codes in chunks:
        yield decoder.decode(codes, words.take(decoder.words_needed(len(codes))))
        done += len(codes)
        progress("rows", done, rows)
