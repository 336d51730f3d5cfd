"""The flags of ``pegs verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pegsynth.cli import flags

RowsIn = Annotated[int | None, flags.of("rows_in")]


def verify(
    context: typer.Context,
    data: flags.Data,
    release: Annotated[
        Path, typer.Option("--release", help="Folder of the release that is verified.")
    ],
    formula: Annotated[
        str,
        typer.Option(
            "--formula", metavar="TEXT", help="Regression, such as 'charge ~ age + C(sev)'."
        ),
    ],
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="What this question may cost, beside the release."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Gaussian noise, which is less for many terms.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="Schema of the original [default: that of the release]."),
    ] = None,
    term: Annotated[
        list[str] | None,
        typer.Option(
            "--term", metavar="NAME", help="Coefficient to ask for [default: all but Intercept]."
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option("--parts", help="Parts of the original [default: 10 to 50, by its rows]."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", help="How much further off a part may be and still agree."),
    ] = 0.0,
    rows_in: RowsIn = None,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Ledger to charge [default: RELEASE.verification.json]."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Reproducible, without guarantee; for tests.")
    ] = None,
    book: Annotated[Path | None, flags.of("book")] = None,
    table: Annotated[str | None, flags.of("table")] = None,
    query: Annotated[str | None, flags.of("query")] = None,
    query_is_rowwise: Annotated[bool, flags.of("query_is_rowwise")] = False,
) -> None:
    """Ask the original whether an analysis agrees with a release, for a budget of its own."""
    from pegsynth.cli import verifying

    verifying.run(
        data,
        release,
        formula=formula,
        ledger_file=ledger,
        epsilon=epsilon,
        delta=delta,
        schema=schema,
        terms=term or (),
        parts=parts,
        tolerance=tolerance,
        rows_in=rows_in,
        seed=seed,
        book=book,
        table=table,
        query=query,
        query_is_rowwise=query_is_rowwise,
        streams=flags.streams(context),
    )
