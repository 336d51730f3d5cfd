"""What the commands do, once their flags are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegsynth.cli.console import announce_compilation, progress_bar, say
from pegsynth.errors import ParameterError
from pegsynth.io.atomic import atomic_text, check_target
from pegsynth.io.read import open_table
from pegsynth.io.write import check_writable, open_writer
from pegsynth.privacy import Budget, Ledger
from pegsynth.random import RandomStream
from pegsynth.release.folder import check_folder, new_folder
from pegsynth.schema import Schema
from pegsynth.synthesizers import model as models
from pegsynth.synthesizers.model_file import load_model, save_model
from pegsynth.synthesizers.options import DrawOptions, FitOptions
from pegsynth.synthesizers.synthesize import check_reviewed, decoded, default_threads


def draft(data: str, output: Path, *, min_count: int, bins: int, binning: str) -> None:
    """Draft a schema and say what to do with it."""
    if binning not in ("equal-width", "quantile"):
        raise ParameterError(f"--binning is equal-width or quantile, not {binning!r}")
    check_target(output)
    schema = Schema.draft(data, min_count=min_count, bins=bins, binning=binning)
    schema.save(output)
    say(
        f"{output}: {len(schema.features)} features drafted. The file is CONFIDENTIAL until a "
        "person has checked that it holds public knowledge only and set reviewed = true."
    )


def synthesize(
    data: str,
    schema_file: Path,
    output: Path,
    *,
    budget: Budget,
    fit_options: dict[str, Any],
    draw_options: dict[str, Any],
    decode: str,
    threads: int | None,
    seed: int | None,
    ledger_file: Path | None,
    accept: bool,
) -> None:
    """Fit, draw and write one table."""
    check_writable(output)
    ledger_path = _ledger_path(output, ledger_file)
    options = DrawOptions(**draw_options)
    model = _fit(data, schema_file, FitOptions(**fit_options), budget, threads, accept)
    _write_rows(model, budget, options, output, ledger_path, decode, threads, seed)


def fit(
    data: str,
    schema_file: Path,
    output: Path,
    options: dict[str, Any],
    threads: int | None,
    accept: bool,
) -> None:
    """Fit and save a model."""
    check_target(output)
    model = _fit(data, schema_file, FitOptions(**options), None, threads, accept)
    save_model(model, output)
    say(f"{output}: CONFIDENTIAL model of {len(model.schema.features)} features.")


def sample(
    model_file: Path,
    output: Path,
    *,
    budget: Budget,
    draw_options: dict[str, Any],
    decode: str,
    threads: int | None,
    seed: int | None,
    ledger_file: Path | None,
    accept: bool,
) -> None:
    """Draw from a saved model and write one table."""
    check_writable(output)
    options = DrawOptions(**draw_options)
    model = load_model(model_file)
    check_reviewed(model.schema, budget, accept=accept, source=str(model_file))
    _write_rows(
        model, budget, options, output, _ledger_path(output, ledger_file), decode, threads, seed
    )


def trace(
    model_file: Path,
    *,
    budget: Budget,
    draw_options: dict[str, Any],
    seed: int | None,
    accept: bool,
) -> None:
    """Print the paper's table of sampling steps for one row."""
    from pegsynth.cli.tracing import steps_table
    from pegsynth.sampling import trace_row

    model = load_model(model_file)
    check_reviewed(model.schema, budget, accept=accept, source=str(model_file))
    stream = RandomStream(seed)
    announce_compilation()
    prepared = models.prepare(model, budget, DrawOptions(**draw_options), seeded=stream.seeded)
    start, steps = trace_row(prepared.machine, prepared.pool, prepared.schedule.sweeps, stream)
    print(steps_table(model.schema, start, steps))
    print(f"\n{prepared.ledger.statement()}")


def release(
    data: Any,
    schema: Path | Schema,
    output: Path,
    *,
    budget: Budget,
    fit_options: dict[str, Any],
    draw_options: dict[str, Any],
    decode: str = "values",
    threads: int | None = None,
    seed: int | None = None,
    force: bool = False,
    public_only: bool = False,
    accept: bool = False,
) -> Path:
    """Write a release folder and return its path."""
    from pegsynth.release.write import write_internal, write_public

    check_folder(output, force=force)
    options = DrawOptions(**draw_options)
    model = _fit(data, schema, FitOptions(**fit_options), budget, threads, accept)
    stream = RandomStream(seed)
    prepared = models.prepare(model, budget, options, seeded=stream.seeded)
    used = threads or default_threads()
    with new_folder(output, force=force) as folder, progress_bar() as progress:
        written = write_public(
            folder,
            model,
            prepared,
            stream,
            rows=options.rows,
            datasets=options.datasets,
            how=_decoding(decode),
            threads=used,
            progress=progress,
        )
        if not public_only:
            write_internal(folder, open_table(data), model, prepared.ledger, written, threads=used)
    _warn(prepared.ledger)
    return output


def demo(output: Path, rows: int) -> None:
    """Release built-in data and say where to look."""
    from pegsynth.datasets import discharge, discharge_schema

    say("Made-up hospital discharges: 50,000 stays, 13 features, no real person among them.")
    release(
        discharge(50_000),
        discharge_schema(heads=True),
        output,
        budget=Budget(epsilon_per_row=1.0),
        fit_options={},
        draw_options={"rows": rows, "method": "pegs-rs"},
        force=True,
    )
    print(
        f"Wrote {output}/\n"
        f"  public/synthetic-1.csv   {rows:,} synthetic rows\n"
        "  public/PRIVACY.md        what is promised, in words\n"
        "  internal/report.html     original and synthetic side by side: open it in a browser"
    )


def _fit(
    data: Any,
    schema: Path | Schema,
    options: FitOptions,
    budget: Budget | None,
    threads: int | None,
    accept: bool,
) -> models.Model:
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    source = "the schema" if isinstance(schema, Schema) else str(schema)
    if budget is not None:
        check_reviewed(book, budget, accept=accept, source=source)
    reader = open_table(data)
    announce_compilation()
    with progress_bar() as progress:
        return models.fit(
            reader,
            book,
            options,
            accept_unreviewed=accept,
            threads=threads or default_threads(),
            progress=progress,
        )


def _write_rows(
    model: models.Model,
    budget: Budget,
    options: DrawOptions,
    output: Path,
    ledger_path: Path,
    decode: str,
    threads: int | None,
    seed: int | None,
) -> None:
    """Draw one table; its ledger becomes visible before it does."""
    stream = RandomStream(seed)
    how = _decoding(decode)
    announce_compilation()
    prepared = models.prepare(model, budget, options, seeded=stream.seeded)
    with (
        progress_bar() as progress,
        open_writer(
            output, before=lambda: atomic_text(ledger_path, prepared.ledger.to_json())
        ) as writer,
    ):
        chunks = models.draw(prepared, options.rows, stream, threads=threads or default_threads())
        for frame in decoded(
            model, chunks, stream, how=how, rows=options.rows, progress=progress
        ):
            writer.write(frame)
    _warn(prepared.ledger)


def _decoding(decode: str) -> Any:
    if decode not in ("values", "labels"):
        raise ParameterError(f"--decode is values or labels, not {decode!r}")
    return decode


def _ledger_path(output: Path, ledger_file: Path | None) -> Path:
    path = ledger_file or output.with_name(output.name + ".privacy.json")
    check_target(path)
    if path.resolve() == output.resolve():
        raise ParameterError("--ledger and --output name the same file; choose another")
    return path


def _warn(ledger: Ledger) -> None:
    """Say in a line what was promised, and every reason why it is not."""
    guarantee = ledger.guarantee
    if guarantee.kind == "none":
        say("Guarantee: none.")
    elif guarantee.kind == "l-diversity":
        say(f"Guarantee: entropy l-diversity, l = {guarantee.l:g}; no differential privacy.")
    else:
        say(f"Guarantee: epsilon = {guarantee.epsilon:.6g}, delta = {guarantee.delta:g} in total.")
    for line in (*ledger.not_covered, *ledger.warnings):
        say(f"  {line}")
