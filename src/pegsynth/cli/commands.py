"""The commands; each checks its arguments, calls the library and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegsynth.cli import flags

if TYPE_CHECKING:
    from pegsynth.privacy import Budget


def register(app: typer.Typer) -> None:
    """Add all commands to the application, in the order of the user's path."""
    app.command("demo")(demo)
    app.command("schema")(draft_schema)
    app.command("synthesize")(synthesize)
    app.command("release")(release)
    app.command("fit")(fit)
    app.command("sample")(sample)
    app.command("inspect")(inspect)
    app.command("trace")(trace)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write.")] = Path(
        "pegs-demo"
    ),
    rows: flags.Rows = 5000,
) -> None:
    """Run the whole path on built-in, invented discharge data."""
    from pegsynth.cli import working

    working.demo(output, rows)


def draft_schema(
    data: flags.Data,
    output: flags.Output,
    min_count: Annotated[
        int, typer.Option("--min-count", help="Categories with fewer rows become (other).")
    ] = 1,
    bins: Annotated[int, typer.Option("--bins", help="Bins of numeric columns.")] = 20,
    binning: Annotated[
        str, typer.Option("--binning", help="equal-width, or quantile (read off the data).")
    ] = "equal-width",
) -> None:
    """Draft a schema from DATA, to be reviewed by a person."""
    from pegsynth.cli import working

    working.draft(data, output, min_count=min_count, bins=bins, binning=binning)


def synthesize(
    data: flags.Data,
    schema: flags.SchemaFile,
    rows: flags.Rows,
    output: flags.Output,
    method: flags.Method = "pegs",
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    heads: flags.Heads = None,
    tail_bits: flags.TailBits = 1,
    order: flags.Order = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    seed_pool: flags.SeedPool = "uniform",
    decode: flags.Decode = "values",
    threads: flags.Threads = None,
    seed: flags.Seed = None,
    ledger: flags.LedgerFile = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
) -> None:
    """Write one synthetic table, and its ledger first."""
    from pegsynth.cli import working

    working.synthesize(
        data,
        schema,
        output,
        budget=_budget(epsilon, delta, epsilon_per_row, l, alpha),
        fit_options={"heads": heads, "tail_bits": tail_bits, "order": order},
        draw_options=_draw_options(rows, method, 1, sweeps, block_size, seed_pool),
        decode=decode,
        threads=threads,
        seed=seed,
        ledger_file=ledger,
        accept=accept_unreviewed_schema,
    )


def release(
    data: flags.Data,
    schema: flags.SchemaFile,
    rows: flags.Rows,
    output: flags.Output,
    method: flags.Method = "pegs",
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    datasets: flags.Datasets = 1,
    heads: flags.Heads = None,
    tail_bits: flags.TailBits = 1,
    order: flags.Order = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    seed_pool: flags.SeedPool = "uniform",
    decode: flags.Decode = "values",
    threads: flags.Threads = None,
    seed: flags.Seed = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing folder.")] = False,
    public_only: Annotated[
        bool, typer.Option("--public-only", help="Do not write the internal folder.")
    ] = False,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
) -> None:
    """Write a release folder: public/ may leave, internal/ may not."""
    from pegsynth.cli import working

    folder = working.release(
        data,
        schema,
        output,
        budget=_budget(epsilon, delta, epsilon_per_row, l, alpha),
        fit_options={"heads": heads, "tail_bits": tail_bits, "order": order},
        draw_options=_draw_options(rows, method, datasets, sweeps, block_size, seed_pool),
        decode=decode,
        threads=threads,
        seed=seed,
        force=force,
        public_only=public_only,
        accept=accept_unreviewed_schema,
    )
    print(f"{folder}/public may leave; read {folder}/internal/report.html first, here only.")


def fit(
    data: flags.Data,
    schema: flags.SchemaFile,
    output: flags.Output,
    heads: flags.Heads = None,
    tail_bits: flags.TailBits = 1,
    order: flags.Order = None,
    threads: flags.Threads = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
) -> None:
    """Count DATA into a model file (CONFIDENTIAL) to sample from later."""
    from pegsynth.cli import working

    options = {"heads": heads, "tail_bits": tail_bits, "order": order}
    working.fit(data, schema, output, options, threads, accept_unreviewed_schema)


def sample(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model.pegs file.")],
    rows: flags.Rows,
    output: flags.Output,
    method: flags.Method = "pegs",
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    seed_pool: flags.SeedPool = "uniform",
    decode: flags.Decode = "values",
    threads: flags.Threads = None,
    seed: flags.Seed = None,
    ledger: flags.LedgerFile = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
) -> None:
    """Draw a synthetic table from a model, and write its ledger first."""
    from pegsynth.cli import working

    working.sample(
        model,
        output,
        budget=_budget(epsilon, delta, epsilon_per_row, l, alpha),
        draw_options=_draw_options(rows, method, 1, sweeps, block_size, seed_pool),
        decode=decode,
        threads=threads,
        seed=seed,
        ledger_file=ledger,
        accept=accept_unreviewed_schema,
    )


def inspect(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE..", help="Models, ledgers or a schema.")
    ],
    confidential: Annotated[
        bool, typer.Option("--confidential", help="Also print figures read off the counts.")
    ] = False,
) -> None:
    """Say what a model, ledger or schema holds; several ledgers are added up."""
    from pegsynth.cli import inspecting

    raise typer.Exit(inspecting.inspect(files, confidential=confidential))


def trace(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model.pegs file.")],
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    sweeps: flags.Sweeps = 1,
    seed_pool: flags.SeedPool = "uniform",
    seed: flags.Seed = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
) -> None:
    """Print the sampling steps of one row, which costs a row."""
    from pegsynth.cli import working

    if epsilon_per_row is None and l is None and alpha is None:
        epsilon_per_row = 1.0
    working.trace(
        model,
        budget=_budget(None, None, epsilon_per_row, l, alpha),
        draw_options=_draw_options(1, "pegs", 1, sweeps, 1, seed_pool),
        seed=seed,
        accept=accept_unreviewed_schema,
    )


def _budget(
    epsilon: float | None,
    delta: float | None,
    epsilon_per_row: float | None,
    l: float | None,  # noqa: E741
    alpha: float | None,
) -> Budget:
    from pegsynth.privacy import Budget

    return Budget(epsilon=epsilon, delta=delta, epsilon_per_row=epsilon_per_row, l=l, alpha=alpha)


def _draw_options(
    rows: int, method: str, datasets: int, sweeps: int, block_size: int, seed_pool: str
) -> dict[str, Any]:
    return {
        "rows": rows,
        "method": method,
        "datasets": datasets,
        "sweeps": sweeps,
        "block_size": block_size,
        "seed_pool": seed_pool,
    }

