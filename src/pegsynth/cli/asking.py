"""The commands that ask: of tables, releases, models, books and the shipped code itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegsynth.cli import flags
from pegsynth.options.command_options import (
    CombineOptions,
    EvaluateOptions,
    LimitOptions,
    VerifyOptions,
)

if TYPE_CHECKING:
    from pegsynth.auditing.run import Finding
    from pegsynth.pipeline.request import Request
    from pegsynth.random import Streams

_AUDITED = "{:<12} {:<34} {:<12} {:>9} {:>9} {:>9} {:>9}  {}"
Threads = Annotated[int | None, flags.of("threads")]


@flags.taking("threads", "table", "query", *flags.WRITTEN)
def evaluate(
    original: Annotated[
        str, typer.Argument(metavar="ORIGINAL", help="The confidential table, as DATA elsewhere.")
    ],
    synthetic: Annotated[
        list[str], typer.Argument(metavar="SYNTHETIC", help="One or more synthetic tables.")
    ],
    schema: flags.SchemaFile,
    *,
    options: EvaluateOptions,
    request: Request,
) -> None:
    """Judge synthetic tables by their original, whoever made them; CONFIDENTIAL."""
    from pegsynth.cli import evaluating

    evaluating.run(request.source(original), synthetic, schema, options, request)


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
    from pegsynth.cli import evaluating

    evaluating.compare(releases, report)


@flags.taking()
def combine(
    estimates: Annotated[
        Path,
        typer.Argument(
            metavar="ESTIMATES",
            help="A CSV of term, estimate, and variance or std_error; a line per dataset and term. "
            "Completed tables: with columns dataset and imputation.",
        ),
    ],
    options: CombineOptions,
) -> None:
    """Combine the estimates from several synthetic tables, by the rule that fits them."""
    from pegsynth.cli import combining

    combining.run(estimates, options)


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


@flags.taking()
def book(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="create|show|add|withdraw BOOK",
            help="Make a book, print it, put ledgers of earlier releases in (add BOOK LEDGER..), "
            "or give back an entry that has read nothing (withdraw BOOK NUMBER).",
        ),
    ],
    options: LimitOptions,
) -> None:
    """Keep the budget of a table over all runs; --book BOOK then goes with every command."""
    from pegsynth.cli import book_commands

    book_commands.run(what, options)


@flags.taking()
def verify(data: flags.Data, options: VerifyOptions, *, streams: Streams) -> None:
    """Ask the original whether an analysis agrees with a release, for a budget of its own."""
    from pegsynth.cli.notes import say, say_booking, say_guarantee
    from pegsynth.cli.working import check_not_inputs
    from pegsynth.errors import escaped
    from pegsynth.publishing.verify_release import Question, answer
    from pegsynth.tables.table_input import named_source

    told = {each.name: getattr(options, each.name) for each in fields(options)}
    release, schema, book = options.release, options.schema, options.book
    folder = release.parent if release.name == "public" else release
    file = options.ledger or folder.with_name(f"{folder.resolve().name}.verification.json")
    source = named_source(
        data,
        table=told.pop("table"),
        query=told.pop("query"),
        rowwise=told.pop("query_is_rowwise"),
    )
    check_not_inputs((file,), source, *[each for each in (schema, book) if each])
    told |= {"data": source, "ledger": file, "terms": options.terms or (), "streams": streams}
    found, booking = answer(Question(**told))
    for line in str(found).splitlines():
        print(escaped(line))
    say(f"Charged to {file}, which holds all questions so far; the release comes on top.")
    say_guarantee(found.ledger)
    say_booking(booking, found.ledger)


def audit(
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="This one only; numbers: measured edges; interference: releases "
            "of different tables.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="More cases and more releases.")] = False,
    threads: Threads = None,
) -> None:
    """Check the claimed guarantee of the shipped code; exit status 1 if it is broken."""
    from pegsynth.auditing.run import audit as findings
    from pegsynth.auditing.run import audits
    from pegsynth.errors import ParameterError
    from pegsynth.runtime import usable_processors

    known = audits()
    if method is not None and method not in known:
        raise ParameterError(f"--method is one of {', '.join(known)}, not {method!r}")
    header = ("method", "release", "audit", "epsilon", "worst", "rho", "worst", "")
    print(_AUDITED.format(*header), flush=True)
    broken = 0
    threads = threads or usable_processors()
    for finding in findings(method, full=full, threads=threads, command=inside):
        print(_finding(finding), flush=True)
        broken += not finding.holds
        for text in finding.details:
            print(text, flush=True)
    print("every claim holds" if not broken else f"{broken} claims are broken")
    raise typer.Exit(1 if broken else 0)


def inside(arguments: Sequence[str], *, streams: Streams) -> None:
    """Run a command inside this one, which goes on answering signals afterwards."""
    from pegsynth.cli.main import main
    from pegsynth.cli.signals import keeping_handlers

    with keeping_handlers():
        main(arguments, streams=streams)


def _finding(finding: Finding) -> str:
    verdict = "holds" if finding.holds else "BROKEN"
    return _AUDITED.format(
        finding.method,
        finding.name,
        finding.kind,
        _figure(finding.claimed),
        _figure(finding.realised),
        _figure(finding.claimed_rho),
        _figure(finding.realised_rho),
        f"skipped: {finding.skipped}" if finding.skipped else verdict,
    )


def _figure(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.4f}"


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
    from pegsynth.cli.notes import say
    from pegsynth.studio.server import serve

    serve(folder, port=port, host=host, anyone=anyone, browser=not no_browser, say=say)
