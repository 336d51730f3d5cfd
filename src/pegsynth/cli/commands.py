"""The commands; each gathers its flags, calls the library and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegsynth.cli import flags
from pegsynth.cli.verify_command import verify

if TYPE_CHECKING:
    from pegsynth.pipeline.request import Request
    from pegsynth.tables.database import DatabaseTarget


Threads = Annotated[int | None, flags.of("threads")]
Table = Annotated[str | None, flags.of("table")]
Query = Annotated[str | None, flags.of("query")]
RowsIn = Annotated[int | None, flags.of("rows_in")]
Holdout = Annotated[
    str | None, typer.Option("--holdout", help="Real rows that the synthesizer never saw.")
]
Target = Annotated[
    str | None, typer.Option("--target", metavar="F", help="Feature to predict in real rows.")
]
Formulas = Annotated[
    list[str] | None,
    typer.Option("--formula", metavar="TEXT", help="Regression, such as 'charge ~ age + C(sev)'."),
]
_ROWS_IF_ANY = "Rows of each synthetic table; none with --synthesize."


def register(app: typer.Typer) -> None:
    """Add all commands to the application, in the order of the user's path."""
    app.command("demo")(demo)
    app.command("schema")(draft_schema)
    app.command("plan")(plan)
    app.command("release")(release)
    app.command("synthesize")(synthesize_table)
    app.command("fit")(fit)
    app.command("sample")(sample)
    app.command("impute")(impute)
    app.command("evaluate")(evaluate)
    app.command("compare")(compare)
    app.command("combine")(combine)
    app.command("verify")(verify)
    app.command("inspect")(inspect)
    app.command("tables")(tables)
    app.command("book")(book)
    app.command("trace")(trace)
    app.command("audit")(audit)
    app.command("studio")(studio)


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write; an earlier demo is replaced.")
    ] = Path("pegs-demo"),
    rows: Annotated[int, typer.Option("--rows", help="Rows of the synthetic table.")] = 5000,
) -> None:
    """Run the whole path on built-in, invented discharge data."""
    from pegsynth.cli import release_commands

    release_commands.demo(output, rows)


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
    codebook: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A codebook to take it from instead of a table; no row is read."
        ),
    ] = None,
    feature: Annotated[
        str | None,
        typer.Option("--feature", help="The feature of a --from list of codes and labels."),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option("--to", help="Write SCHEMA as frictionless, ddi, csvw or sdv instead."),
    ] = None,
    min_count: Annotated[
        int | None,
        typer.Option(
            "--min-count",
            help="Values with fewer rows are not listed: texts and codes become (other), numbers "
            "are measured. 10 unless stated; 1 lists every value.",
        ),
    ] = None,
    bins: Annotated[
        int | None, typer.Option("--bins", help="Bins of numeric columns; 20 if they are listed.")
    ] = None,
    binning: Annotated[
        str,
        typer.Option(
            "--binning",
            help="private: a release measures edges; equal-width or quantile: read off the data.",
        ),
    ] = "private",
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Read no row: a release finds categories and measures edges, and pays for them.",
        ),
    ] = False,
    types: Annotated[
        str | None,
        typer.Option(
            "--types",
            help="With --private: types of columns that declare none, as age=int64,pay=double.",
        ),
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Column that names whom a row belongs to.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a schema that somebody has reviewed.")
    ] = False,
    *,
    request: Request,
) -> None:
    """Draft a schema from DATA or a codebook, or check, show, review, count or export one."""
    from pegsynth.cli import schema_commands

    wishes = schema_commands.DraftWishes(min_count, bins, binning, unit, force, private, types)
    asked = schema_commands.SchemaRequest(what or [], output, codebook, feature, export, wishes)
    schema_commands.run(asked, request)


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
    *,
    request: Request,
) -> None:
    """Show what every pegs method could do with a budget; reads no data."""
    from pegsynth.cli import planning

    planning.show(schema, request, curve)


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
    from pegsynth.cli import cluster, working

    source = _source(data, request)
    if request.engine == "spark":
        cluster.synthesize(source, schema, _folder(output, output_table), ledger, request)
    else:
        working.synthesize(source, schema, _target(output, output_table), ledger, request)


@flags.taking(
    "rows",
    "method",
    *flags.BUDGET,
    "shares",
    "datasets",
    *flags.KEYS,
    *flags.DRAWS,
    *flags.GIVEN,
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
    data: flags.Data,
    schema: flags.SchemaFile,
    output: flags.Output,
    second: flags.SecondData = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier release or an empty folder.")
    ] = False,
    public_only: Annotated[
        bool, typer.Option("--public-only", help="Do not write the internal folder.")
    ] = False,
    table_format: Annotated[
        str, typer.Option("--format", help="Files of the tables: csv or parquet.")
    ] = "csv",
    weights_inside: Annotated[
        bool,
        typer.Option(
            "--weights-inside",
            help="Write replicate weights into the table, and not into a file beside it.",
        ),
    ] = False,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            help="Blank --k-features in synthetic rows whose combination fewer rows share; policy, "
            "no further protection.",
        ),
    ] = None,
    k_features: Annotated[
        str | None,
        typer.Option(
            "--k-features", metavar="F,F", help="Features for --k [default: quasi-identifiers]."
        ),
    ] = None,
    round_to: Annotated[
        list[str] | None,
        typer.Option(
            "--round", metavar="F=STEP", help="Round a synthetic number to multiples; policy too."
        ),
    ] = None,
    about: Annotated[
        Path | None,
        typer.Option("--about", help="about.toml: who publishes what, for whom and why."),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="L,L",
            help="PRIVACY.md in further languages: de, fr, es, pt.",
        ),
    ] = None,
    holdout: Holdout = None,
    target: Target = None,
    formula: Formulas = None,
    quality: Annotated[
        float | None,
        typer.Option(
            "--quality",
            metavar="SHARE",
            help="Part of --epsilon that buys noisy distances to the original, published in "
            "QUALITY.json with intervals, such as 0.1.",
        ),
    ] = None,
    quality_table: Annotated[
        list[str] | None,
        typer.Option("--quality-table", metavar="F,F", help="Another table for --quality."),
    ] = None,
    accept: Annotated[
        Path | None,
        typer.Option(
            "--accept", help="Publish only if figures of --quality meet the criteria in this file."
        ),
    ] = None,
    *,
    request: Request,
) -> None:
    """Write a release folder: public/ may be published, internal/ may not."""
    from pegsynth.cli import release_commands
    from pegsynth.publishing.about import About
    from pegsynth.publishing.bought_quality import Bought
    from pegsynth.publishing.facts import Papers
    from pegsynth.publishing.policy import Policy
    from pegsynth.publishing.privacy_pages import check_languages
    from pegsynth.publishing.publication import Judging, Publication

    release_commands.release(
        _source(data if second is None else (data, second), request),
        schema,
        output,
        request,
        Publication(
            table_format,
            weights_inside,
            public_only,
            policy=Policy.of(k, k_features, round_to),
            papers=Papers(About.of(about), check_languages(language)),
            judging=Judging(holdout, target, tuple(formula or ())),
            bought=Bought.of(quality, quality_table, accept),
        ),
        force=force,
    )


@flags.taking(
    "method",
    "rows",
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
    data: flags.Data,
    schema: flags.SchemaFile,
    output: flags.Output,
    *,
    request: Request,
) -> None:
    """Count DATA into a model file (CONFIDENTIAL), with or without a budget."""
    from pegsynth.cli import cluster, working

    engines = {"local": working, "spark": cluster}
    engines[request.engine].fit(_source(data, request), schema, output, request)


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
    from pegsynth.cli import cluster, working

    if request.engine == "spark":
        cluster.sample(model, _folder(output, output_table), ledger, request)
    else:
        working.sample(model, _target(output, output_table), ledger, request)


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
    from pegsynth.cli import imputing

    imputing.run(synthetic, schema, output, imputations=imputations, seed=seed, threads=threads)


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
    holdout: Holdout = None,
    target: Target = None,
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
    formula: Formulas = None,
    per_record: Annotated[
        bool,
        typer.Option("--per-record", help="Also a line for every row, beside the JSON; internal."),
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="The privacy.json of the release, for the page."),
    ] = None,
    threads: Threads = None,
    table: Table = None,
    query: Query = None,
    separator: Annotated[str | None, flags.of("separator")] = None,
    decimal: Annotated[str | None, flags.of("decimal")] = None,
    thousands: Annotated[str | None, flags.of("thousands")] = None,
    encoding: Annotated[str | None, flags.of("encoding")] = None,
) -> None:
    """Judge synthetic tables by their original, whoever made them; CONFIDENTIAL."""
    from pegsynth.cli import evaluating
    from pegsynth.options import SourceOptions
    from pegsynth.tables.table_input import named_source

    given = {
        name: value
        for name, value in locals().items()
        if name in evaluating.Wishes.__dataclass_fields__
    }
    source = named_source(original, table=table, query=query)
    written = SourceOptions(
        separator=separator, decimal=decimal, thousands=thousands, encoding=encoding
    )
    evaluating.run(source, synthetic, schema, evaluating.Wishes(**given, written=written))


def compare(
    releases: Annotated[
        list[Path],
        typer.Argument(
            metavar="RELEASE", help="Folders of releases with their internal/, or metrics.json."
        ),
    ],
    report: Annotated[
        Path | None,
        typer.Option("--report", help="HTML page to write; figures go in a folder beside it."),
    ] = None,
) -> None:
    """Put releases of one table side by side: promises, figures, risk and utility; CONFIDENTIAL."""
    from pegsynth.cli import comparing

    comparing.run(releases, report)


def combine(
    estimates: Annotated[
        Path,
        typer.Argument(
            metavar="ESTIMATES",
            help="A CSV of term, estimate, and variance or std_error; a line per dataset and term. "
            "Completed tables: with columns dataset and imputation.",
        ),
    ],
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            help="plug-in, fully (the paper's), partial, shared-urn, own-noise, or nested for "
            "completed tables [default: by the ledger, else plug-in].",
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", help="Rows of each synthetic table.")
    ] = None,
    rows_in: RowsIn = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The privacy.json of the release.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Level of the intervals.")] = 0.95,
    analysis: Annotated[
        str | None,
        typer.Option(
            "--analysis",
            metavar="TEXT",
            help="What was estimated, such as 'los ~ age + sev': says whether published tables "
            "hold it, by the ledger.",
        ),
    ] = None,
) -> None:
    """Combine the estimates from several synthetic tables, by the rule that fits them."""
    from pegsynth.cli import combining

    combining.run(
        estimates,
        rule=rule,
        rows=rows,
        rows_in=rows_in,
        ledger_file=ledger,
        level=level,
        analysis=analysis,
    )


def inspect(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE..", help="Models, ledgers or a schema.")
    ],
    confidential: Annotated[
        bool, typer.Option("--confidential", help="Also print figures read off the counts.")
    ] = False,
    analysis: Annotated[
        list[str] | None,
        typer.Option(
            "--analysis",
            metavar="TEXT",
            help="Whether a model of pegs-once can answer this, such as 'charge ~ age + C(sev)'.",
        ),
    ] = None,
) -> None:
    """Say what a model, ledger or schema holds; several ledgers are added up."""
    from pegsynth.cli import inspecting

    raise typer.Exit(inspecting.inspect(files, confidential=confidential, analyses=analysis or ()))


def tables(
    model: flags.ModelFile,
    of: Annotated[
        str, typer.Option("--of", metavar="NAMES", help="Features of the table, as zip,MDC.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="CSV file to write [default: print it].")
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="How often intervals hold the original's count.")
    ] = 0.95,
) -> None:
    """Print counts that a model of pegs-once holds, with intervals that include the noise."""
    from pegsynth.cli import inspecting as asking

    asking.tables(model, of, output, level=level)


def book(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="create|show|add|withdraw BOOK",
            help="Make a book, print it, put ledgers of earlier releases in (add BOOK LEDGER..), "
            "or give back an entry that has read nothing (withdraw BOOK NUMBER).",
        ),
    ],
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="Limit for everything together.")
    ] = None,
    epsilon_per_year: Annotated[
        float | None,
        typer.Option("--epsilon-per-year", help="Limit for every calendar year (UTC)."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="Delta of the limits [default: none, pure runs only]."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", help="Unit column that every run protects [default: single rows]."),
    ] = None,
    private_categories: Annotated[
        bool,
        typer.Option(
            "--private-categories", help="Set a tenth of delta aside for categories that are found."
        ),
    ] = False,
    spender: Annotated[
        list[str] | None,
        typer.Option(
            "--spender", metavar="NAME", help="Account that may spend [default: anybody]."
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", help="What the table is called, for readers.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the book as JSON.")] = False,
) -> None:
    """Keep the budget of a table over all runs; --book BOOK then goes with every command."""
    from pegsynth.cli import book_commands

    policy = book_commands.stated_policy(
        epsilon=epsilon,
        epsilon_per_year=epsilon_per_year,
        delta=delta,
        unit=unit,
        private_categories=private_categories,
        spenders=spender,
    )
    book_commands.run(what, policy, table=table or "", as_json=json)


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


def audit(
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="This one only; numbers: measured edges; doors: readers; interference: releases "
            "of different tables.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="More cases and more releases.")] = False,
    threads: Threads = None,
) -> None:
    """Check the claimed guarantee of the shipped code; exit status 1 if it is broken."""
    from pegsynth.cli import auditing
    from pegsynth.runtime import usable_processors

    raise typer.Exit(auditing.run(method, full=full, threads=threads or usable_processors()))


def studio(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The project; made if it is not there.")
    ] = Path("pegs-studio"),
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0: a free one.")] = 0,
    no_browser: Annotated[
        bool,
        typer.Option("--no-browser", help="Print the address, which works once, and open nothing."),
    ] = False,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; this machine only.")
    ] = "127.0.0.1",
    anyone: Annotated[
        bool,
        typer.Option(
            "--anyone-on-the-network",
            help="With another --host: whoever reaches it and has the address may see the table.",
        ),
    ] = False,
) -> None:
    """Open a local page that leads from a table to a release; nothing leaves this machine."""
    from pegsynth.cli.console import say
    from pegsynth.studio.server import serve

    serve(folder, port=port, host=host, anyone=anyone, browser=not no_browser, say=say)


def _source(data: str | tuple[str, str], request: Request) -> Any:
    """Return the table, or the two tables, that the flags of a command name."""
    from pegsynth.tables.table_input import named_source

    return named_source(
        data, table=request.table, query=request.query, rowwise=request.query_is_rowwise
    )


def _target(output: str, table: str | None) -> Path | DatabaseTarget:
    """Return the file, or the table of a database, that the flags of a command name."""
    from pegsynth.tables.table_output import named_target

    return named_target(output, table=table)


def _folder(output: str, table: str | None) -> str:
    """Return the folder that a cluster is to write."""
    from pegsynth.errors import ParameterError

    if table is not None:
        raise ParameterError("--output-table goes with --engine local; Spark writes Parquet")
    return output
