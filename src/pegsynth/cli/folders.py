"""The commands that write a release folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegsynth.cli.console import progress_bar, say
from pegsynth.cli.request import Request
from pegsynth.cli.working import check_not_inputs, kept_columns, opened_session, say_guarantee
from pegsynth.errors import ParameterError
from pegsynth.release.folder import check_folder, new_folder
from pegsynth.schema import Schema


def release(
    data: Any,
    schema: Path | Schema,
    output: Path,
    request: Request,
    *,
    force: bool,
    public_only: bool,
    table_format: str = "csv",
    quiet: bool = False,
) -> None:
    """Write a release folder and say where to look."""
    from pegsynth.release.write import write_internal, write_public

    if table_format not in ("csv", "parquet"):
        raise ParameterError(f"--format is csv or parquet, not {table_format!r}")
    check_folder(output, force=force)
    check_not_inputs((), data, resume=request.resume)
    with (
        opened_session(data, schema, request) as (session, reader),
        new_folder(output, force=force) as folder,
    ):
        with progress_bar() as progress:
            written = write_public(
                folder,
                session,
                rows=session.rows_of_a_table(request.rows),
                datasets=request.datasets,
                table_format="parquet" if table_format == "parquet" else "csv",
                how=request.how,
                progress=progress,
                kept=kept_columns(reader, session),
            )
        if not public_only:
            write_internal(
                folder,
                reader,
                session.model.schema,
                session.ledger,
                written,
                threads=request.thread_count,
            )
    say_guarantee(session.ledger)
    if not quiet:
        print(f"{output}/public may leave the house; {output}/internal may not.")


def demo(output: Path, rows: int) -> None:
    """Release built-in data and say where to look."""
    from pegsynth.datasets import discharge, discharge_schema

    say("Made-up hospital discharges: 50,000 stays, 13 features, no real person among them.")
    request = Request(rows=rows, method="auto", epsilon=1.0, delta=1e-9, rows_in=50_000)
    release(
        discharge(50_000),
        discharge_schema(),
        output,
        request,
        force=True,
        public_only=False,
        quiet=True,
    )
    print(
        f"Wrote {output}/\n"
        f"  public/synthetic-1.csv   {rows:,} synthetic rows\n"
        "  public/PRIVACY.md        what is promised, in words\n"
        "  internal/report.html     original and synthetic side by side: open it in a browser"
    )
