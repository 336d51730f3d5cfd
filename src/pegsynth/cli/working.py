"""What the commands on tables, models and release folders do, once their flags are parsed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.cli.notes import (
    holds_ledger,
    progress_bar,
    say,
    say_booking,
    say_budget,
    say_guarantee,
    say_published,
)
from pegsynth.codec.measured_numbers import constant_numbers
from pegsynth.errors import OutputError, ParameterError, SchemaError, book_notes, escaped
from pegsynth.methods import get
from pegsynth.methods.base import Model
from pegsynth.methods.checkpoint import resuming
from pegsynth.methods.gibbs.samplers import TraceStep
from pegsynth.methods.session import Session
from pegsynth.options import Publication
from pegsynth.options._kinds import check_whole
from pegsynth.pipeline.drawn_tables import table_schema
from pegsynth.pipeline.fitting import fit as fit_table
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.running import (
    booked_run,
    booked_table,
    open_draws,
    open_saved,
    publish_table,
    to_be_saved,
)
from pegsynth.pipeline.settling import LEAST_ROOM, check_output, settle
from pegsynth.privacy import Ledger
from pegsynth.publishing.folder import check_folder, new_folder
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.storage.model_file import notice_of, read_manifest, save_model
from pegsynth.storage.spending import locked, rows_were_drawn, spent_path
from pegsynth.tables.atomic import check_space, check_target
from pegsynth.tables.database import DatabaseTarget
from pegsynth.tables.file_kinds import table_format
from pegsynth.tables.table_input import same_file, table_files
from pegsynth.tables.table_output import check_writable, open_writer
from pegsynth.views import aligned

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.publishing.fill_folder import Made


_WIDEST = 24
"""Characters of a label that are shown."""


def steps_table(schema: Schema, seed: tuple[int, ...], steps: Sequence[TraceStep]) -> str:
    """Return one line per draw, the drawn value between asterisks, and what changed."""
    lines = [["step", *schema.names], ["seed", *_texts(schema, seed)]]
    for number, step in enumerate(steps):
        texts = _texts(schema, step.row)
        texts[step.feature] = f"*{texts[step.feature]}*"
        sweep = number // len(schema.features) + 1
        name = f"x{step.feature + 1}" + (f" sweep {sweep}" if len(steps) > len(seed) else "")
        lines.append([name, *texts])
    final = steps[-1].row
    lines.append(["final", *_texts(schema, final)])
    changed = [n for n, a, b in zip(schema.names, seed, final, strict=True) if a != b]
    kept = [n for n, a, b in zip(schema.names, seed, final, strict=True) if a == b]
    body = aligned(lines)
    body.append("")
    body.append(f"differs from the seed row: {', '.join(changed) or 'nothing'}")
    body.append(f"as in the seed row: {', '.join(kept) or 'nothing'}")
    return "\n".join(body)


def _texts(schema: Schema, row: tuple[int, ...]) -> list[str]:
    labels = (feature.labels[code] for feature, code in zip(schema.features, row, strict=True))
    texts = (" ".join(label.split()) for label in labels)
    return [text if len(text) <= _WIDEST else f"{text[: _WIDEST - 2]}.." for text in texts]


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
    settled = settle(schema_file, request, data=data)
    check_output(output, settled.schema if request.wide else settled.book, settled.request)
    with (
        progress_bar() as progress,
        open_draws(data, settled, progress=progress) as draws,
    ):
        # A database that is read and written must not wait for itself.
        draws.reader.close()
        earlier = holds_ledger(ledger_path)
        publish_table(draws, output, ledger_path, progress=progress)
    say_published(draws.session, ledger_path, earlier=earlier, remembered=False)
    say_booking(draws.booking, draws.session.ledger)
    say(*settled.notes)


def fit(data: Any, schema_file: Path, output: Path, request: Request) -> None:
    """Fit and save a model, with its budget if one was stated."""
    check_target(output)
    check_space(output, LEAST_ROOM)
    check_not_inputs((output,), data, schema_file, resume=request.resume)
    settled = settle(schema_file, request, data=data, saved=True)
    if settled.plan is not None:
        # What a file cannot hold is refused before anything is read.
        get(settled.plan.method).store_plan(settled.plan)
    stream, request = request.stream(), settled.request
    kept_by = settled.plan or request.options_for(get(request.method))
    with (
        booked_run(settled, "fit") as booking,
        booked_table(data, settled.schema, booking) as reader,
        resuming(request.resume, reader, settled.schema, kept_by, request.seed) as checkpoint,
    ):
        with progress_bar() as progress:
            model = fit_table(reader, settled, stream, progress=progress, checkpoint=checkpoint)
        ledger = save_fitted(model, output, stream)
        booking.settle(ledger)
    if settled.plan is not None:
        say_booking(booking, ledger)
    say(*settled.notes)


def save_fitted(model: Model, output: Path, stream: RandomStream) -> Ledger:
    """Write a model and say what it is; return what all draws from it together promise."""
    model = to_be_saved(model, stream)
    replaced = rows_were_drawn(output)
    save_model(model, output)
    kind, _, _ = notice_of(model).partition(":")
    say(f"{output}: {kind} model of {len(model.schema.features)} features.")
    plan = model.plan
    session = None if plan is None else Session(model, plan, stream)
    if session and plan and (get(model.method).released or plan.budget.epsilon is not None):
        say_budget(session)
        say(*constant_numbers(model.schema))
    if replaced:
        say(
            f"Note: {output} replaces a model from which rows were drawn; if they were published, "
            "both budgets add up (pegs inspect LEDGER LEDGER)."
        )
    return model.ledger if session is None else session.ledger


def sample(
    model_file: Path, output: Path | DatabaseTarget, ledger_file: Path | None, request: Request
) -> None:
    """Draw from a saved model and write one table."""
    ledger_path = ledger_path_of(output, ledger_file)
    check_writable(output)
    check_not_inputs((output, ledger_path), str(model_file), spent_path(model_file))
    with locked(model_file):
        saved = open_saved(model_file, request)
        check_output(output, table_schema(saved.session.model, wide=request.wide), request)
        earlier = holds_ledger(ledger_path)
        with saved.booked() as booking, progress_bar() as progress:
            publish_table(saved, output, ledger_path, progress=progress)
        say_published(saved.session, ledger_path, earlier=earlier, remembered=saved.remembered)
        if saved.session.model.plan is None:
            say_booking(booking, saved.session.ledger)


def trace(model_file: Path, request: Request) -> None:
    """Print the paper's table of sampling steps for one row."""
    from pegsynth.methods.gibbs.samplers import BlockSampler, in_categories, trace_row

    with locked(model_file), ExitStack() as stack:
        budgeted = read_manifest(model_file).recipe is not None
        if not request.has_budget and not budgeted:
            request = replace(request, epsilon_per_row=1.0)
        # The model knows its own method.
        nothing: Any = None
        saved = open_saved(model_file, replace(request, method=nothing))
        session, sampler = saved.session, saved.session.sampler
        if not isinstance(sampler, BlockSampler):
            raise ParameterError(
                f"{model_file}: only models of the pegs family have sampling steps"
            )
        stack.enter_context(saved.booked("trace"))
        session.charge(1)
        counters, limit = sampler.first_chain()
        stream = request.stream()
        start, steps = trace_row(
            sampler.machine,
            sampler.pool,
            sampler.sweeps,
            stream,
            counters=counters,
            limit=limit,
        )
        if sampler.splitter is not None:
            start, steps = in_categories(sampler.splitter, start, steps, stream)
        saved.commit()
    print(escaped(steps_table(session.model.schema, start, steps)))
    print(escaped(f"\n{session.ledger.statement()}"))


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


def impute(
    synthetic: list[str],
    schema_file: Path,
    output: Path,
    *,
    imputations: int,
    seed: int | None,
    threads: int | None,
) -> None:
    """Complete the tables and write all versions, or none."""
    from pegsynth.api.functions import impute as completed_tables
    from pegsynth.publishing.facts import completed_name

    one_file = table_format(output) is not None
    if one_file:
        check_writable(output)
        check_not_inputs((output,), synthetic[0], schema_file)
        if len(synthetic) > 1 or imputations > 1:
            raise ParameterError(
                f"{output}: {len(synthetic) * imputations} tables do not go into one file; name a "
                "folder with -o, or state --imputations 1 and one table"
            )
    else:
        check_folder(output, force=False)
    schema = Schema.load(schema_file)
    with progress_bar() as progress:
        completed = completed_tables(
            synthetic,
            schema,
            imputations=imputations,
            seed=seed,
            threads=threads,
            progress=progress,
        )
    if one_file:
        _write_completed(output, completed[0][0], schema)
        say(f"{output}: 1 completed table.")
        return
    with new_folder(output) as fresh:
        for number, versions in enumerate(completed, start=1):
            suffix = "parquet" if table_format(synthetic[number - 1]) == "parquet" else "csv"
            for version, frame in enumerate(versions, start=1):
                _write_completed(fresh / completed_name(number, version, suffix), frame, schema)
    say(f"{output}: {len(completed) * imputations} completed tables.")


def _write_completed(path: Path, frame: pl.DataFrame, schema: Schema) -> None:
    with open_writer(path, codebook=schema) as writer:
        writer.write(frame)


_STAYS = 500_000
_REVIEWER = "pegs demo"


def release(
    data: Any,
    schema: Path | Schema,
    output: Path,
    request: Request,
    publication: Publication,
    *,
    quiet: bool = False,
) -> Made:
    """Write a release folder and say where to look; quiet: let the caller say it."""
    from pegsynth.publishing.bought_quality import NotAcceptedError
    from pegsynth.publishing.fill_folder import make_folder

    check_not_inputs((), data, resume=request.resume)
    try:
        with progress_bar() as progress:
            made = make_folder(data, schema, output, request, publication, progress=progress)
    except NotAcceptedError as refused:
        say("\n".join((str(refused), *book_notes(refused))))
        sys.exit(1)
    say(*made.notes, *constant_numbers(made.schema))
    if quiet:
        return made
    say_guarantee(made.ledger)
    say_booking(made.booking, made.ledger)
    if made.replaced:
        say(f"Note: {output} replaces an earlier release; if that was published, both add up.")
    print(_may_leave(output, made.schema, made.ledger, internal=not publication.public_only))
    return made


def _may_leave(output: Path, schema: Schema, ledger: Ledger, *, internal: bool) -> str:
    """Say what may be published; without a guarantee that is for a person to decide."""
    if schema.reviewed and ledger.guarantee.kind != "none":
        kept = f"; {output}/internal may not" if internal else ""
        return f"{output}/public may be published{kept}."
    kept = f" {output}/internal may not." if internal else ""
    return (
        f"{output}/public carries no guarantee; somebody has to decide whether it may be "
        f"published.{kept}"
    )


def demo(output: Path, rows: int) -> None:
    """Draft, review and release built-in data; say what was promised and how close it came."""
    from pegsynth.datasets import discharge, reviewed_discharge_draft
    from pegsynth.evaluation import Metrics

    check_whole("rows", rows)
    check_folder(output, force=True)
    if output.exists() and any(output.iterdir()) and not _is_of_demo(output):
        # Only an earlier demo may be replaced unasked.
        raise OutputError(
            f"cannot write {str(output)!r}: the folder exists and is no earlier demo; choose "
            "another with -o"
        )
    # Without the type of care: of its rare categories 5,000 rows hold a handful each.
    stays, holdout = (discharge(count).drop("typ") for count in (_STAYS, rows))
    say(
        f"Invented hospital discharges: {_STAYS:,} stays, {stays.width} features, no real person "
        "among them."
    )
    schema = reviewed_discharge_draft(Schema.draft(stays), _REVIEWER)
    request = Request(rows=rows, method="auto", epsilon=1.0, delta=1e-9, rows_in=_STAYS)
    publication = Publication(force=True, holdout=holdout)
    made = release(stays, schema, output, request, publication, quiet=True)
    metrics = Metrics.from_json((output / "internal" / "metrics.json").read_bytes())
    say_guarantee(made.ledger)
    if (pairs := metrics.record("tvd2")) is not None and pairs.value is not None:
        say(
            f"How close: for a table of two features to match the original, {pairs.value:.1%} of "
            f"its rows would have to change on average (as many real rows: {pairs.baseline:.1%})."
        )
    say(
        f"Open {output}/internal/report.html in a browser: original and synthetic side by side. "
        f"{output}/public may be published."
    )


def _is_of_demo(release_folder: Path) -> bool:
    try:
        return Schema.load(release_folder / "public" / "schema.toml").reviewer == _REVIEWER
    except (OSError, SchemaError):
        return False
