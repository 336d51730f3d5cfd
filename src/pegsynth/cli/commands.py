"""The commands; each gathers its flags, calls the library and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegsynth.cli import flags

if TYPE_CHECKING:
    from pegsynth.cli.request import Request
    from pegsynth.io.database import DatabaseTarget


def register(app: typer.Typer) -> None:
    """Add all commands to the application, in the order of the user's path."""
    app.command("demo")(demo)
    app.command("schema")(draft_schema)
    app.command("plan")(plan)
    app.command("release")(release)
    app.command("synthesize")(synthesize_table)
    app.command("fit")(fit)
    app.command("sample")(sample)
    app.command("evaluate")(evaluate)
    app.command("combine")(combine)
    app.command("inspect")(inspect)
    app.command("trace")(trace)
    app.command("study")(study)
    app.command("audit")(audit)


ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model.pegs file.")]


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write; an earlier demo is replaced.")
    ] = Path("pegs-demo"),
    rows: flags.Rows = 5000,
) -> None:
    """Run the whole path on built-in, invented discharge data."""
    from pegsynth.cli import folders

    folders.demo(output, rows)


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
    force: Annotated[
        bool, typer.Option("--force", help="Replace a schema that somebody has reviewed.")
    ] = False,
    table: flags.Table = None,
    query: flags.Query = None,
) -> None:
    """Draft a schema from DATA, to be reviewed by a person."""
    from pegsynth.cli import working

    source = _source(locals())
    working.draft(source, output, min_count=min_count, bins=bins, binning=binning, force=force)


def plan(
    schema: flags.SchemaFile,
    rows: flags.Rows,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rows_in: flags.RowsIn = None,
    datasets: flags.Datasets = 1,
    heads: flags.Heads = None,
    tail_bits: flags.TailBits = 1,
    order: flags.Order = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    visits: flags.Visits = None,
    chains: flags.Chains = None,
    urn: flags.Urn = None,
    prior: flags.Prior = None,
    seed_pool: flags.SeedPool = None,
    share: flags.Shares = None,
) -> None:
    """Show what every pegs method could do with a budget; reads no data."""
    from pegsynth.cli import planning

    planning.show(schema, _request(locals()))


def synthesize_table(
    data: flags.Data,
    schema: flags.SchemaFile,
    output: flags.TableOutput,
    rows: flags.RowsIfAny = None,
    method: flags.Method = "pegs",
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    share: flags.Shares = None,
    heads: flags.Heads = None,
    tail_bits: flags.TailBits = 1,
    order: flags.Order = None,
    order_rows: flags.OrderRows = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    visits: flags.Visits = None,
    chains: flags.Chains = None,
    urn: flags.Urn = None,
    prior: flags.Prior = None,
    seed_pool: flags.SeedPool = None,
    rows_in: flags.RowsIn = None,
    where: flags.Where = None,
    synthesize: flags.Synthesize = None,
    no_guarantee: flags.NoGuarantee = False,
    log_linear: flags.LogLinear = False,
    proper: flags.Proper = False,
    decode: flags.Decode = "values",
    threads: flags.Threads = None,
    seed: flags.Seed = None,
    ledger: flags.LedgerFile = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
    table: flags.Table = None,
    query: flags.Query = None,
    query_is_rowwise: flags.RowwiseQuery = False,
    resume: flags.Resume = None,
    output_table: flags.OutputTable = None,
    engine: flags.Engine = "local",
    master: flags.Master = None,
) -> None:
    """Write one synthetic table, and its ledger first."""
    from pegsynth.cli import cluster, working

    source, request = _source(locals()), _request(locals())
    if request.engine == "spark":
        cluster.synthesize(source, schema, _folder(output, output_table), ledger, request)
    else:
        working.synthesize(source, schema, _target(output, output_table), ledger, request)


def release(
    data: flags.Data,
    schema: flags.SchemaFile,
    output: flags.Output,
    rows: flags.RowsIfAny = None,
    method: flags.Method = "auto",
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    share: flags.Shares = None,
    datasets: flags.Datasets = 1,
    heads: flags.Heads = None,
    tail_bits: flags.TailBits = 1,
    order: flags.Order = None,
    order_rows: flags.OrderRows = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    visits: flags.Visits = None,
    chains: flags.Chains = None,
    urn: flags.Urn = None,
    prior: flags.Prior = None,
    seed_pool: flags.SeedPool = None,
    rows_in: flags.RowsIn = None,
    where: flags.Where = None,
    synthesize: flags.Synthesize = None,
    no_guarantee: flags.NoGuarantee = False,
    log_linear: flags.LogLinear = False,
    proper: flags.Proper = False,
    decode: flags.Decode = "values",
    threads: flags.Threads = None,
    seed: flags.Seed = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier release or an empty folder.")
    ] = False,
    public_only: Annotated[
        bool, typer.Option("--public-only", help="Do not write the internal folder.")
    ] = False,
    table_format: Annotated[
        str, typer.Option("--format", help="Files of the tables: csv or parquet.")
    ] = "csv",
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
    table: flags.Table = None,
    query: flags.Query = None,
    query_is_rowwise: flags.RowwiseQuery = False,
    resume: flags.Resume = None,
) -> None:
    """Write a release folder: public/ may leave, internal/ may not."""
    from pegsynth.cli import folders

    request = _request(locals())
    folders.release(
        _source(locals()),
        schema,
        output,
        request,
        force=force,
        public_only=public_only,
        table_format=table_format,
    )


def fit(
    data: flags.Data,
    schema: flags.SchemaFile,
    output: flags.Output,
    method: flags.Method = "pegs",
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Rows to be drawn, at most, for --epsilon; pegs-capped is only tuned for them, "
            "and it and pegs-once give any number.",
        ),
    ] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    share: flags.Shares = None,
    heads: flags.Heads = None,
    tail_bits: flags.TailBits = 1,
    order: flags.Order = None,
    order_rows: flags.OrderRows = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    visits: flags.Visits = None,
    chains: flags.Chains = None,
    urn: flags.Urn = None,
    prior: flags.Prior = None,
    seed_pool: flags.SeedPool = None,
    rows_in: flags.RowsIn = None,
    threads: flags.Threads = None,
    seed: flags.Seed = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
    table: flags.Table = None,
    query: flags.Query = None,
    query_is_rowwise: flags.RowwiseQuery = False,
    resume: flags.Resume = None,
    engine: flags.Engine = "local",
    master: flags.Master = None,
) -> None:
    """Count DATA into a model file (CONFIDENTIAL), with or without a budget."""
    from pegsynth.cli import cluster, working

    request = _request(locals())
    engines = {"local": working, "spark": cluster}
    engines[request.engine].fit(_source(locals()), schema, output, request)


def sample(
    model: ModelFile,
    rows: flags.Rows,
    output: flags.TableOutput,
    method: Annotated[
        str | None,
        typer.Option("--method", help="For a model without a budget [default: pegs]."),
    ] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    sweeps: flags.Sweeps = 1,
    block_size: flags.BlockSize = 10,
    visits: flags.Visits = None,
    chains: flags.Chains = None,
    urn: flags.Urn = None,
    prior: flags.Prior = None,
    seed_pool: flags.SeedPool = None,
    rows_in: flags.RowsIn = None,
    where: flags.Where = None,
    decode: flags.Decode = "values",
    threads: flags.Threads = None,
    seed: flags.Seed = None,
    ledger: flags.LedgerFile = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
    output_table: flags.OutputTable = None,
    engine: flags.Engine = "local",
    master: flags.Master = None,
) -> None:
    """Draw a synthetic table from a model, and write its ledger first.

    A model fitted with a budget spends from it and takes no other; for one without,
    state a budget here.
    """
    from pegsynth.cli import cluster, working

    request = _request(locals())
    if request.engine == "spark":
        cluster.sample(model, _folder(output, output_table), ledger, request)
    else:
        working.sample(model, _target(output, output_table), ledger, request)


def evaluate(
    original: Annotated[
        str, typer.Argument(metavar="ORIGINAL", help="The confidential table, as DATA elsewhere.")
    ],
    synthetic: Annotated[
        list[str], typer.Argument(metavar="SYNTHETIC", help="One or more synthetic tables.")
    ],
    schema: flags.SchemaFile,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="HTML page to write; figures go in a folder beside it."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="metrics.json to write, every figure in it.")
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option("--holdout", help="Real rows that the synthesizer never saw."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="F", help="Feature to predict in real rows."),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            "--known",
            metavar="F,F",
            help="Features that an intruder knows [default: quasi-identifiers]; one list, or one "
            "for each --infer.",
        ),
    ] = None,
    infer: Annotated[
        list[str] | None,
        typer.Option(
            "--infer", metavar="F", help="Feature that is inferred [default: sensitive ones]."
        ),
    ] = None,
    formula: Annotated[
        list[str] | None,
        typer.Option(
            "--formula", metavar="TEXT", help="Regression, such as 'charge ~ age + C(sev)'."
        ),
    ] = None,
    per_record: Annotated[
        bool,
        typer.Option("--per-record", help="Also a line for every row, beside the JSON; internal."),
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="The privacy.json of the release, for the page."),
    ] = None,
    threads: flags.Threads = None,
    table: flags.Table = None,
    query: flags.Query = None,
) -> None:
    """Judge synthetic tables by their original, whoever made them; CONFIDENTIAL."""
    from pegsynth.cli import evaluating
    from pegsynth.io.read import named_source

    given = {
        name: value
        for name, value in locals().items()
        if name in evaluating.Wishes.__dataclass_fields__
    }
    source = named_source(original, table=table, query=query)
    evaluating.run(source, synthetic, schema, evaluating.Wishes(**given))


def combine(
    estimates: Annotated[
        Path,
        typer.Argument(
            metavar="ESTIMATES",
            help="A CSV of term, estimate, and variance or std_error; a line per dataset and term.",
        ),
    ],
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            help="plug-in, fully (the paper's), partial or shared-urn "
            "[default: by the ledger, else plug-in].",
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", help="Rows of each synthetic table.")
    ] = None,
    rows_in: flags.RowsIn = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The privacy.json of the release.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Level of the intervals.")] = 0.95,
) -> None:
    """Combine the estimates from several synthetic tables, with valid intervals."""
    from pegsynth.cli import combining

    combining.run(estimates, rule=rule, rows=rows, rows_in=rows_in, ledger_file=ledger, level=level)


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
    model: ModelFile,
    epsilon_per_row: flags.EpsilonPerRow = None,
    l: flags.Diversity = None,  # noqa: E741
    alpha: flags.Alpha = None,
    sweeps: flags.Sweeps = 1,
    seed_pool: flags.SeedPool = None,
    seed: flags.Seed = None,
    accept_unreviewed_schema: flags.AcceptUnreviewed = False,
) -> None:
    """Print the sampling steps of one row, which costs a row.

    For a model without a budget the row costs epsilon 1 unless stated otherwise.
    """
    from pegsynth.cli import working

    rows = 1
    working.trace(model, _request(locals()))


def study(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write; a stopped study goes on there.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller table and fewer repeats: minutes.")
    ] = False,
    data: Annotated[
        str | None, typer.Option("--data", help="Your own table instead of the built-in one.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="The schema.toml of that table.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Fixes every table and every draw.")] = 1,
    threads: flags.Threads = None,
) -> None:
    """Draw every table and figure of the paper, and judge its findings (internal)."""
    from pegsynth.cli import studying
    from pegsynth.processors import usable_processors

    studying.run(
        studying.StudyRequest(output, quick, data, schema, seed, threads or usable_processors())
    )


def audit(
    method: Annotated[str | None, typer.Option("--method", help="Audit this method only.")] = None,
    full: Annotated[bool, typer.Option("--full", help="More cases and more releases.")] = False,
    threads: flags.Threads = None,
) -> None:
    """Check the claimed guarantee of the shipped code; exit status 1 if it is broken."""
    from pegsynth.cli import auditing
    from pegsynth.processors import usable_processors

    raise typer.Exit(auditing.run(method, full=full, threads=threads or usable_processors()))


def _source(flags_given: dict[str, Any]) -> Any:
    """Return the table that the flags of a command name."""
    from pegsynth.io.read import named_source

    return named_source(
        flags_given["data"],
        table=flags_given["table"],
        query=flags_given["query"],
        rowwise=flags_given.get("query_is_rowwise", False),
    )


def _target(output: str, table: str | None) -> Path | DatabaseTarget:
    """Return the file, or the table of a database, that the flags of a command name."""
    from pegsynth.io.write import named_target

    return named_target(output, table=table)


def _folder(output: str, table: str | None) -> str:
    """Return the folder that a cluster is to write."""
    from pegsynth.errors import ParameterError

    if table is not None:
        raise ParameterError("--output-table goes with --engine local; Spark writes Parquet")
    return output


def _request(flags_given: dict[str, Any]) -> Request:
    """Gather the flags of a command; those it does not have keep their defaults."""
    from pegsynth.cli.request import Request

    known = Request.__dataclass_fields__
    return Request(**{name: value for name, value in flags_given.items() if name in known})
