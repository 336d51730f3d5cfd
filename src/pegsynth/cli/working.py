"""What the commands on tables and models do, once their flags are parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.cli.console import progress_bar, say
from pegsynth.cli.notes import (
    holds_ledger,
    say_budget,
    say_guarantee,
    say_ledger_replaced,
    say_method,
    say_model_replaced,
)
from pegsynth.errors import BudgetError, ParameterError, PegsynthError, escaped
from pegsynth.hashing.order import plain_features
from pegsynth.io.atomic import atomic_text, check_target
from pegsynth.io.database import DatabaseTarget
from pegsynth.io.read import open_table, same_file, table_files
from pegsynth.io.reader import TableReader
from pegsynth.io.write import check_writable, open_writer
from pegsynth.kernels.warm import counting_kernels, no_kernels, noise_kernels, warm_up
from pegsynth.options import PEGS_METHODS, FitOptions
from pegsynth.privacy import Ledger, NotPrivate
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.synthesizers import model as models
from pegsynth.synthesizers.checkpoint import Checkpoint, resuming
from pegsynth.synthesizers.model_file import load_model, notice_of, read_manifest, save_model
from pegsynth.synthesizers.recipe import Recipe
from pegsynth.synthesizers.released_blocks import ONCE
from pegsynth.synthesizers.request import Request
from pegsynth.synthesizers.session import Session
from pegsynth.synthesizers.spending import (
    locked,
    read_spent,
    rows_were_drawn,
    spent_path,
    write_spent,
)
from pegsynth.synthesizers.synthesize import (
    decoded,
    decoder_of,
    honest_seed_pool,
    original_columns,
    with_drawn_columns,
)


def synthesize(
    data: Any,
    schema_file: Path,
    output: Path | DatabaseTarget,
    ledger_file: Path | None,
    request: Request,
) -> None:
    """Fit, draw and write one table."""
    ledger_path = ledger_path_of(output, ledger_file)
    check_writable(output)
    check_not_inputs((output, ledger_path), data, schema_file, resume=request.resume)
    with opened_session(data, schema_file, request) as (session, reader):
        kept = kept_columns(reader, session)
        # A database that is read and written must not wait for itself.
        reader.close()
        write_rows(session, output, ledger_path, request, kept=kept)


def kept_columns(reader: TableReader, session: Session) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return how to put back the original columns that a drawn table keeps, if any."""
    replaced = session.recipe.draw.synthesize
    if not replaced:
        return lambda frame: frame
    original = original_columns(reader, session.model.schema)
    return lambda frame: with_drawn_columns(original, frame, replaced)


def fit(data: Any, schema_file: Path, output: Path, request: Request) -> None:
    """Fit and save a model, with its budget if one was stated."""
    check_target(output)
    check_not_inputs((output,), data, schema_file, resume=request.resume)
    _, chosen = request.settled(Schema.load(schema_file), saved=True)
    schema, request, plan = planned(data, schema_file, request)
    stream = RandomStream(request.seed)
    with (
        open_table(data, dialect=schema.dialect) as reader,
        resuming(request.resume, reader, schema, plan, request.seed) as checkpoint,
    ):
        model = fit_model(reader, schema, plan, stream, request, checkpoint)
        save_fitted(model, output, stream)
    say_method(chosen)


def planned(
    data: Any, schema_file: Path, request: Request
) -> tuple[Schema, Request, Recipe | FitOptions]:
    """Return the schema, and what is to be fitted: a settled recipe if there is a budget."""
    schema = request.written(Schema.load(schema_file))
    request, _ = request.settled(schema, saved=True)
    if not request.has_budget and request.delta is None and request.method in PEGS_METHODS:
        return schema, request, request.fit_options
    request = replace(request, seed_pool=honest_seed_pool(data, request.seed_pool))
    return schema, request, request.recipe(schema, source=str(schema_file))


def save_fitted(model: models.Model, output: Path, stream: RandomStream) -> None:
    """Write a model and say what it is."""
    if stream.seeded:
        model = replace(model, ledger=models.seeded_ledger(model.ledger))
    replaced = rows_were_drawn(output)
    save_model(model, output)
    kind, _, _ = notice_of(model).partition(":")
    say(f"{output}: {kind} model of {len(model.schema.features)} features.")
    recipe = model.recipe
    if recipe is not None and (model.released is not None or recipe.budget.epsilon is not None):
        say_budget(Session(model, recipe, stream))
    if replaced:
        say_model_replaced(output)


def sample(
    model_file: Path, output: Path | DatabaseTarget, ledger_file: Path | None, request: Request
) -> None:
    """Draw from a saved model and write one table."""
    ledger_path = ledger_path_of(output, ledger_file)
    check_writable(output)
    check_not_inputs((output, ledger_path), str(model_file), spent_path(model_file))
    with locked(model_file):
        session, commit = saved_session(model_file, request)
        remembered = session.model.recipe is not None
        write_rows(session, output, ledger_path, request, commit, remembered=remembered)


def trace(model_file: Path, request: Request) -> None:
    """Print the paper's table of sampling steps for one row."""
    from pegsynth.cli.tracing import steps_table
    from pegsynth.sampling import trace_row

    with locked(model_file):
        budgeted = read_manifest(model_file).recipe is not None
        if not request.has_budget and not budgeted:
            request = replace(request, epsilon_per_row=1.0)
        session, commit = saved_session(model_file, unnamed(request))
        ready, draw = session.prepared, session.recipe.draw
        if draw.method not in PEGS_METHODS:
            raise ParameterError(
                f"{model_file}: only models of the pegs family have sampling steps"
            )
        session.charge(1)
        counters, limit = session.first_chain()
        start, steps = trace_row(
            ready.machine,
            ready.pool,
            draw.sweeps,
            RandomStream(request.seed),
            counters=counters,
            limit=limit,
        )
        commit()
    print(escaped(steps_table(session.model.schema, start, steps)))
    print(escaped(f"\n{session.ledger.statement()}"))


def unnamed(request: Request) -> Request:
    """Return a request that names no method: the model knows its own."""
    nothing: Any = None
    return replace(request, method=nothing)


@contextmanager
def opened_session(
    data: Any, schema: Path | Schema, request: Request
) -> Iterator[tuple[Session, TableReader]]:
    """Settle the recipe, fit the model and yield a session on it, and the table.

    When the block ends well, nobody needs the checkpoint any more.
    """
    book = request.written(schema if isinstance(schema, Schema) else Schema.load(schema))
    source = "the schema" if isinstance(schema, Schema) else str(schema)
    request, chosen = request.settled(book)
    request = replace(request, seed_pool=honest_seed_pool(data, request.seed_pool))
    request.check_rows()
    recipe = request.recipe(book, source=source)
    stream = RandomStream(request.seed)
    with (
        open_table(data, dialect=book.dialect) as reader,
        resuming(request.resume, reader, book, recipe, request.seed) as checkpoint,
    ):
        model = fit_model(reader, book, recipe, stream, request, checkpoint)
        yield Session(model, model.recipe or recipe, stream, threads=request.thread_count), reader
    say_method(chosen)


def fit_model(
    reader: TableReader,
    schema: Schema,
    plan: Recipe | FitOptions,
    stream: RandomStream,
    request: Request,
    checkpoint: Checkpoint | None,
) -> models.Model:
    """Fit with a progress bar."""
    warm_up(_first_kernels(plan))
    with progress_bar() as progress:
        return models.fit(
            reader,
            schema,
            plan,
            stream,
            accept_unreviewed=request.accept_unreviewed_schema,
            threads=request.thread_count,
            progress=progress,
            checkpoint=checkpoint,
        )


def _first_kernels(plan: Recipe | FitOptions) -> Callable[[], None]:
    """Return what loads the kernels that a fit begins with."""
    if not isinstance(plan, Recipe) or plan.draw.method in PEGS_METHODS:
        return counting_kernels
    return noise_kernels if plan.draw.method == ONCE else no_kernels


def write_rows(
    session: Session,
    output: Path | DatabaseTarget,
    ledger_path: Path,
    request: Request,
    commit: Callable[[], None] = lambda: None,
    kept: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    *,
    remembered: bool = False,
) -> None:
    """Draw one table; what it cost is on disk before the table becomes visible.

    Where a table is replaced, the ledger beside it is true of both until that is done. `kept`
    puts the columns back that a partially synthetic table keeps. `remembered` says whether the
    ledger covers earlier tables of the same model too.
    """
    rows = request.rows or 0
    stream = session.stream
    (chunks,) = session.draw(rows)

    replacing = isinstance(output, Path) and output.exists()
    earlier = holds_ledger(ledger_path)

    def before() -> None:
        commit()
        ledger = session.ledger
        meanwhile = true_of_both(ledger_path, ledger) if replacing else ledger
        atomic_text(ledger_path, meanwhile.to_json())

    decoder = decoder_of(session.model, request.decode, listed=True)
    with (
        progress_bar() as progress,
        open_writer(
            output, before=before, texts=decoder.listed, codebook=session.model.schema
        ) as writer,
    ):
        frames = decoded(decoder, chunks, stream, rows=rows, progress=progress)
        for frame in frames:
            writer.write(kept(frame))
    if replacing:
        atomic_text(ledger_path, session.ledger.to_json())
    say_guarantee(session.ledger)
    if earlier:
        say_ledger_replaced(ledger_path, remembered=remembered)


def true_of_both(path: Path, ledger: Ledger) -> Ledger:
    """Return a ledger that promises no more than a new table's and no more than the old one's.

    Two files cannot be replaced at once. A run that is killed in between must not leave a
    table beside a ledger that was made for a better protected one.
    """
    try:
        return Ledger.combine([Ledger.from_json(path.read_bytes(), source=str(path)), ledger])
    except (OSError, PegsynthError):
        return ledger.add(NotPrivate.because("unfinished"))


def check_not_inputs(
    outputs: Sequence[Path | DatabaseTarget], data: Any, *others: Path, resume: Path | None = None
) -> None:
    """Refuse to write over a file that is read, and to write two things into one file."""
    inputs = [*table_files(data), *others]
    files = [output for output in outputs if isinstance(output, Path)]
    if resume is not None:
        check_target(resume)
        if any(resume.resolve() == each.resolve() for each in files):
            raise ParameterError("--resume names a file that is written; choose another")
        files.append(resume)
    for output in files:
        if any(same_file(output, each) for each in inputs):
            raise ParameterError(f"{output}: this file is read as input; choose another output")


def saved_session(model_file: Path, request: Request) -> tuple[Session, Callable[[], None]]:
    """Open a session on a saved model, and how to write down what it spends."""
    identity = read_manifest(model_file).identity
    model = load_model(model_file)
    stream = RandomStream(request.seed)
    if model.recipe is None:
        recipe = _drawing_recipe(model, request, source=str(model_file))
        session = Session(model, recipe, stream, threads=request.thread_count)
        return session, lambda: None
    if request.has_budget or request.delta is not None:
        raise BudgetError(f"{model_file}: the model has a budget of its own; leave yours out")
    free = {"where"} if model.released is not None else set()
    if flags := [flag for flag in request.changed() if flag.strip("-") not in free]:
        raise ParameterError(
            f"{model_file}: the model was fitted for one way of drawing; leave out "
            f"{', '.join(flags)}"
        )
    if model.released is not None:
        # Everything was paid for when the blocks were released: drawing costs nothing.
        drawing = replace(
            model.recipe,
            draw=replace(model.recipe.draw, rows=request.rows, where=request.draw_options.where),
        )
        return Session(model, drawing, stream, threads=request.thread_count), lambda: None
    spent = read_spent(model_file, identity)
    session = Session(model, model.recipe, stream, spent=spent, threads=request.thread_count)
    return session, lambda: write_spent(model_file, identity, session.spent)


def _drawing_recipe(model: models.Model, request: Request, *, source: str) -> Recipe:
    """Settle how to draw from a model that was fitted without a budget.

    Its heads are fixed and were not paid for privately, and it holds no paid marginals,
    so prior and seed rows are public.
    """
    if request.prior == "marginal" or request.seed_pool == "marginal":
        raise BudgetError(
            f"{source}: the model holds no paid marginals; fit it with --epsilon, or use uniform "
            "prior and seed rows"
        )
    spec = model.blocks.spec
    fixed = replace(
        request,
        heads=max(len(spec.heads[i]) for i in plain_features(model.schema)),
        tail_bits=spec.tail_bits,
        order="public",
        prior="uniform",
        seed_pool=request.seed_pool or "uniform",
    )
    return fixed.recipe(model.schema, source=source)


def ledger_path_of(output: Path | DatabaseTarget, ledger_file: Path | None) -> Path:
    """Return where the ledger goes: as asked for, or beside the output."""
    if isinstance(output, DatabaseTarget):
        if ledger_file is None:
            raise ParameterError("rows that go into a database need --ledger FILE for their ledger")
        check_target(ledger_file)
        return ledger_file
    path = ledger_file or output.with_name(output.name + ".privacy.json")
    check_target(path)
    if path.resolve() == output.resolve():
        raise ParameterError("--ledger and --output name the same file; choose another")
    return path
