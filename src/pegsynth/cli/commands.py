"""The commands that make something, and the list of all; each gathers its flags and does it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from pegsynth.cli import asking, flags
from pegsynth.options import Publication
from pegsynth.options.command_options import DraftOptions

if TYPE_CHECKING:
    from pegsynth.pipeline.request import Request
    from pegsynth.tables.database import DatabaseTarget


Threads = Annotated[int | None, flags.of("threads")]
_ROWS_IF_ANY = "Rows of each synthetic table; none with --synthesize."


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write; an earlier demo is replaced.")
    ] = Path("pegs-demo"),
    rows: Annotated[int, typer.Option("--rows", help="Rows of the synthetic table.")] = 5000,
) -> None:
    """Run the whole path on built-in, invented discharge data."""
    from pegsynth.cli import working

    working.demo(output, rows)


@flags.taking("table", "query", *flags.WRITTEN)
def draft_schema(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA | check|show|review SCHEMA | count SCHEMA DATA",
            help="A table to draft from, as DATA elsewhere; or what to do with a schema file: say "
            "what it assumes, print it, ask what is open, count the rows that fit it "
            "(CONFIDENTIAL). A table of that name is ./check.",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to write.")] = None,
    *,
    options: DraftOptions,
    request: Request,
) -> None:
    """Draft a schema from DATA or a codebook, or check, show, review, count or export one."""
    from pegsynth.cli import schema_commands

    schema_commands.run(what or [], output, options, request)


@flags.taking(
    "rows",
    "epsilon",
    "delta",
    "rows_in",
    "datasets",
    "heads",
    "tail_bits",
    "order",
    "sweeps",
    "block_size",
    "visits",
    "chains",
    "urn",
    "prior",
    "seed_pool",
    "shares",
    "analyses",
    rows=...,
)
def plan(
    schema: flags.SchemaFile,
    curve: Annotated[
        Path | None,
        typer.Option(
            "--curve", help="Draw predicted error against epsilon here, as .svg and .png."
        ),
    ] = None,
    pairs_off: Annotated[
        float | None,
        typer.Option(
            "--pairs-off", help="Find the smallest epsilon predicted to keep pairs this close."
        ),
    ] = None,
    risk: Annotated[
        float | None,
        typer.Option(
            "--risk",
            help="Find the largest epsilon at which a guess whether somebody is in the table is "
            "right at most this much more often than half of the time.",
        ),
    ] = None,
    *,
    request: Request,
) -> None:
    """Show what every pegs method could do with a budget; reads no data."""
    from pegsynth.errors import BudgetError
    from pegsynth.schema import Schema
    from pegsynth.schema.wide_schema import wide_schema
    from pegsynth.tables.atomic import check_target

    if curve is not None:
        check_target(curve.with_suffix(".svg"))
    book = Schema.load(schema)
    goal = request.at_goal(book, pairs_off=pairs_off, risk=risk)
    if goal is not request:
        print(f"Epsilon {goal.epsilon:g} meets the goal.\n")
    request = goal
    found = request.planned(book)
    print(*found.lines(), sep="\n")
    for note in found.notes:
        print(f"\n{note}")
    if found.best is None:
        raise BudgetError(
            "no method can meet this budget; raise epsilon, add delta or draw fewer rows"
        )
    errors = found.curve()
    print("\nPredicted for the best method at other budgets:", *errors.lines(), sep="\n")
    if curve is not None:
        errors.plot().save(curve.with_suffix(""))
    # The choice is that of --method auto: methods that do not take a flag are left out.
    _, (choice, *_) = request.settled(wide_schema(request.written(book)))
    print(f"\nChoice: {choice.removeprefix('Method: ')}")


@flags.taking(
    "rows",
    "method",
    *flags.BUDGET,
    "shares",
    *flags.KEYS,
    *flags.DRAWS,
    *flags.GIVEN,
    *flags.NOISE,
    "complete",
    *flags.of_registered_methods(),
    *flags.RUN,
    "accept_unreviewed_schema",
    *flags.SOURCE,
    "resume",
    *flags.ENGINE,
    help={"rows": _ROWS_IF_ANY},
)
def synthesize_table(
    data: flags.Data,
    schema: flags.SchemaFile,
    output: flags.TableOutput,
    ledger: flags.LedgerFile = None,
    output_table: flags.OutputTable = None,
    *,
    request: Request,
) -> None:
    """Write one synthetic table, and its ledger first."""
    source = request.source(data)
    engine, target = _engine(request, output, output_table)
    engine.synthesize(source, schema, target, ledger, request)


@flags.taking(
    "rows",
    "method",
    *flags.BUDGET,
    "shares",
    "datasets",
    *flags.KEYS,
    *flags.DRAWS,
    *flags.GIVEN,
    "from_tables",
    *flags.NOISE,
    *flags.COMPLETED,
    *flags.of_registered_methods(),
    *flags.RUN,
    "accept_unreviewed_schema",
    *flags.SOURCE,
    "resume",
    help={"rows": _ROWS_IF_ANY},
)
def release(
    schema: flags.SchemaFile,
    output: flags.Output,
    publication: Publication,
    data: flags.DataIfAny = None,
    second: flags.SecondData = None,
    *,
    request: Request,
) -> None:
    """Write a release folder: public/ may be published, internal/ may not."""
    from pegsynth.cli import working

    named = data if second is None or data is None else (data, second)
    source = request.source(named)
    working.release(source, schema, output, request, publication)


@flags.taking(
    "method",
    "rows",
    "from_tables",
    *flags.BUDGET,
    "shares",
    *flags.KEYS,
    *flags.DRAWS,
    *flags.of_registered_methods(),
    "threads",
    "seed",
    "accept_unreviewed_schema",
    *flags.SOURCE,
    "resume",
    *flags.ENGINE,
    help={
        "rows": "Rows to be drawn, at most, for --epsilon; pegs-capped is only tuned for them, "
        "and it and pegs-once give any number."
    },
)
def fit(
    schema: flags.SchemaFile,
    output: flags.Output,
    data: flags.DataIfAny = None,
    *,
    request: Request,
) -> None:
    """Count DATA into a model file (CONFIDENTIAL), with or without a budget."""
    engine = "cluster" if request.engine == "spark" else "working"
    import_module(f"pegsynth.cli.{engine}").fit(request.source(data), schema, output, request)


@flags.taking(
    "rows",
    "method",
    *flags.BUDGET,
    *flags.DRAWS,
    "where",
    "replicates",
    "weight_name",
    "complete",
    *flags.RUN,
    "accept_unreviewed_schema",
    *flags.ENGINE,
    help={"method": "For a model without a budget [default: pegs]."},
    rows=...,
    method=None,
)
def sample(
    model: flags.ModelFile,
    output: flags.TableOutput,
    ledger: flags.LedgerFile = None,
    output_table: flags.OutputTable = None,
    *,
    request: Request,
) -> None:
    """Draw a synthetic table from a model, and write its ledger first.

    A model fitted with a budget spends from it and takes no other; for one without,
    state a budget here.
    """
    engine, target = _engine(request, output, output_table)
    engine.sample(model, target, ledger, request)


def impute(
    synthetic: Annotated[
        list[str], typer.Argument(metavar="SYNTHETIC..", help="One or more synthetic tables.")
    ],
    schema: flags.SchemaFile,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Folder to write; a file, for one completed table."),
    ],
    imputations: Annotated[
        int, typer.Option("--imputations", help="Completed versions of each table.")
    ] = 3,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Reproducible draws, for tests.")
    ] = None,
    threads: Threads = None,
) -> None:
    """Impute missing values of synthetic tables from their own rows.

    Tables of a release keep what was promised for them; nothing is promised for others.
    """
    from pegsynth.cli import working

    working.impute(synthetic, schema, output, imputations=imputations, seed=seed, threads=threads)


@flags.taking(
    "epsilon_per_row",
    "l",
    "alpha",
    "book",
    "sweeps",
    "seed_pool",
    "seed",
    "accept_unreviewed_schema",
)
def trace(
    model: flags.ModelFile,
    *,
    request: Request,
) -> None:
    """Print the sampling steps of one row, which costs a row.

    For a model without a budget the row costs epsilon 1 unless stated otherwise.
    """
    from dataclasses import replace

    from pegsynth.cli import working

    working.trace(model, replace(request, rows=1))


def _engine(
    request: Request, output: str, table: str | None
) -> tuple[ModuleType, str | Path | DatabaseTarget]:
    """Return what does the work, and the file, folder or table of a database that it fills."""
    from pegsynth.errors import ParameterError
    from pegsynth.tables.table_output import named_target

    if request.engine != "spark":
        return import_module("pegsynth.cli.working"), named_target(output, table=table)
    if table is not None:
        raise ParameterError("--output-table requires --engine local; Spark writes Parquet")
    return import_module("pegsynth.cli.cluster"), output


COMMANDS: dict[str, flags.Command] = {
    "demo": demo,
    "schema": draft_schema,
    "plan": plan,
    "release": release,
    "synthesize": synthesize_table,
    "fit": fit,
    "sample": sample,
    "impute": impute,
    "evaluate": asking.evaluate,
    "compare": asking.compare,
    "combine": asking.combine,
    "verify": asking.verify,
    "inspect": asking.inspect,
    "tables": asking.tables,
    "book": asking.book,
    "trace": trace,
    "audit": asking.audit,
    "studio": asking.studio,
}
"""All of them, in the order of the user's path."""


def register(app: typer.Typer, only: str | None = None) -> None:
    """Add a command to the application, or all of them; their flags take long to look at."""
    for name in COMMANDS if only is None else (only,):
        app.command(name)(COMMANDS[name])
