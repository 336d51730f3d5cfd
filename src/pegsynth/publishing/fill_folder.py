"""Fill a release folder: synthetic tables, schema and ledger in public, the rest apart.

``public/`` holds exactly what may be published. ``internal/`` is computed from the real table
and readable by its owner only; nothing in it is covered by the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import polars as pl

from pegsynth.drawn_tables import completed_versions, decoder_of, drawn_frames, published_schema
from pegsynth.errors import ParameterError
from pegsynth.io.atomic import atomic_text
from pegsynth.io.reader import TableReader
from pegsynth.io.table_output import open_writer
from pegsynth.methods.session import Session
from pegsynth.options import How
from pegsynth.pipeline import Draws, open_draws
from pegsynth.privacy import Ledger
from pegsynth.privacy.rounding import display_up
from pegsynth.progress import Progress, quiet
from pegsynth.publishing.completed_texts import completed_name
from pegsynth.publishing.folder import check_folder, is_release, new_folder, seal
from pegsynth.publishing.policy import NO_POLICY, Policy
from pegsynth.publishing.result import TableFormat
from pegsynth.publishing.texts import how_to_analyse, privacy_page
from pegsynth.request import Request
from pegsynth.schema import Schema
from pegsynth.schema.toml import dumps

TITLE = "Original and synthetic table side by side"


@dataclass(frozen=True)
class Made:
    """A release folder that was written.

    Parameters
    ----------
    replaced
        Whether an earlier release stood there.
    notes
        Lines that say which method ``auto`` has taken, and why.
    """

    folder: Path
    ledger: Ledger
    schema: Schema
    replaced: bool
    notes: tuple[str, ...]


def make_folder(
    data: Any,
    schema: Path | str | Schema,
    folder: Path,
    request: Request,
    *,
    force: bool = False,
    public_only: bool = False,
    table_format: str = "csv",
    policy: Policy = NO_POLICY,
    progress: Progress = quiet,
) -> Made:
    """Synthesize a table into a release folder, whole or not at all.

    Parameters
    ----------
    policy
        What is done to synthetic rows before they are published.
    force
        Replace an earlier release or an empty folder.
    public_only
        Do not write ``internal/``.
    """
    _check_format(table_format)
    check_folder(folder, force=force)
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    policy = policy.settled(
        book, labels=request.decode == "labels", completed=bool(request.versions)
    )
    replaced = folder.exists() and is_release(folder)
    with (
        open_draws(data, schema, request, progress=progress) as draws,
        new_folder(folder, force=force) as fresh,
    ):
        write_folder(
            fresh,
            draws,
            table_format="parquet" if table_format == "parquet" else "csv",
            public_only=public_only,
            policy=policy,
            progress=progress,
        )
    session = draws.session
    return Made(folder, session.ledger, session.model.schema, replaced, draws.settled.notes)


def write_folder(
    folder: Path,
    draws: Draws,
    *,
    table_format: TableFormat = "csv",
    public_only: bool = False,
    policy: Policy = NO_POLICY,
    progress: Progress = quiet,
) -> list[Path]:
    """Fill an empty folder: ``public/`` and, unless only that is wanted, ``internal/``."""
    session, request = draws.session, draws.settled.request
    written = write_public(
        folder,
        session,
        rows=session.rows_of_a_table(request.rows),
        datasets=request.datasets,
        table_format=table_format,
        how=request.decode,
        versions=request.versions,
        threads=request.thread_count,
        progress=progress,
        kept=draws.kept,
        policy=policy,
    )
    if not public_only:
        write_internal(
            folder,
            draws.reader,
            policy.codebook(published_schema(session)),
            session.ledger,
            written,
            threads=request.thread_count,
        )
    return written


def write_public(
    folder: Path,
    session: Session,
    *,
    rows: int,
    datasets: int,
    table_format: TableFormat = "csv",
    how: How | None = None,
    versions: int = 0,
    threads: int = 1,
    progress: Progress = quiet,
    kept: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    policy: Policy = NO_POLICY,
) -> list[Path]:
    """Write ``public/``: ledger first, then K synthetic tables, texts and checksums.

    Parameters
    ----------
    versions
        Completed versions of each table (R23); the tables and the ledger do not change by them.

    Returns
    -------
    list of Path
        The synthetic tables, as they were drawn.
    """
    public = folder / "public"
    public.mkdir()
    tables = drawn_frames(session, rows, datasets, how=how, listed=True, progress=progress)
    schema = policy.codebook(published_schema(session))
    write_texts(
        public,
        schema,
        session.ledger,
        rows=rows,
        datasets=datasets,
        how=table_format,
        decode=how,
        versions=versions,
        policy=policy,
    )
    written = []
    texts = decoder_of(session.model, how, listed=True).listed
    for number, frames in enumerate(tables, start=1):
        path = public / f"synthetic-{number}.{table_format}"
        with open_writer(path, texts=texts, codebook=session.model.schema) as writer:
            parts: list[pl.DataFrame] = []
            drawn = _remembered(frames, parts) if versions else frames
            for frame in policy.applied(map(kept, drawn), session.model.schema, folder):
                writer.write(frame)
        written.append(path)
        if versions:
            completed = completed_versions(
                session, pl.concat(parts), number, versions, threads=threads, progress=progress
            )
            write_completed(public, number, completed, table_format, schema, texts)
    seal(public)
    return written


def _remembered(
    frames: Iterator[pl.DataFrame], parts: list[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """Yield frames as they come, and keep them for the imputer."""
    for frame in frames:
        parts.append(frame)
        yield frame


def write_completed(
    public: Path,
    number: int,
    versions: Sequence[pl.DataFrame],
    table_format: TableFormat,
    schema: Schema,
    texts: Collection[str] = (),
) -> None:
    """Write the completed versions of one table."""
    for version, table in enumerate(versions, start=1):
        path = public / completed_name(number, version, table_format)
        with open_writer(path, texts=texts, codebook=schema) as writer:
            writer.write(table)


def save_public(
    folder: Path,
    tables: Sequence[pl.DataFrame],
    schema: Schema,
    ledger: Ledger,
    *,
    completed: Sequence[Sequence[pl.DataFrame]] = (),
    table_format: TableFormat = "csv",
    force: bool = False,
) -> None:
    """Write tables that are drawn already as a release folder with a public part only."""
    _check_format(table_format)
    check_folder(folder, force=force)
    with new_folder(folder, force=force) as fresh:
        public = fresh / "public"
        public.mkdir()
        rows = tables[0].height if tables else 0
        write_texts(
            public,
            schema,
            ledger,
            rows=rows,
            datasets=len(tables),
            how=table_format,
            versions=len(completed[0]) if completed else 0,
        )
        for number, table in enumerate(tables, start=1):
            path = public / f"synthetic-{number}.{table_format}"
            with open_writer(path, codebook=schema) as writer:
                writer.write(table)
        for number, versions in enumerate(completed, start=1):
            write_completed(public, number, versions, table_format, schema)
        seal(public)


def _check_format(table_format: str) -> None:
    if table_format not in get_args(TableFormat):
        raise ParameterError(f"--format is csv or parquet, not {table_format!r}")


def write_texts(
    public: Path,
    schema: Schema,
    ledger: Ledger,
    *,
    rows: int,
    datasets: int,
    how: TableFormat,
    decode: How | None = None,
    versions: int = 0,
    policy: Policy = NO_POLICY,
) -> None:
    """Write the schema, the ledger and the pages that explain them."""
    atomic_text(public / "privacy.json", ledger.to_json())
    atomic_text(public / "PRIVACY.md", privacy_page(ledger, done=policy.page() if policy else ""))
    analyse = how_to_analyse(
        schema,
        rows=rows,
        datasets=datasets,
        table_format=how,
        ledger=ledger,
        decode="labels" if decode == "labels" else "values",
        versions=versions,
        blanked=policy.k_features if policy.k is not None else (),
    )
    atomic_text(public / "HOW-TO-ANALYSE.md", analyse)
    atomic_text(public / "schema.toml", dumps(schema))


def write_internal(
    folder: Path,
    reader: TableReader,
    schema: Schema,
    ledger: Ledger,
    synthetic: list[Path],
    *,
    threads: int = 1,
) -> None:
    """Write ``internal/``: every measure and the report, computed from the real table."""
    from pegsynth.evaluation.evaluate_options import options_of
    from pegsynth.evaluation.judged_tables import read_tables
    from pegsynth.evaluation.measuring import evaluate_tables
    from pegsynth.inference.choice import rule_for
    from pegsynth.reporting import render

    internal = folder / "internal"
    internal.mkdir(mode=0o700)
    rule = rule_for(ledger, len(synthetic)).rule
    options = options_of(schema, threads=threads, rule=rule)
    tables = read_tables(reader, [str(path) for path in synthetic], schema, threads=threads)
    metrics = evaluate_tables(tables, options)
    atomic_text(internal / "metrics.json", metrics.to_json(), mode=0o600)
    page = render(
        metrics, statement=ledger.statement(), guarantee=guarantee_fields(ledger), title=TITLE
    )
    atomic_text(internal / "report.html", page, mode=0o600)


def guarantee_fields(ledger: Ledger) -> dict[str, Any]:
    """Return the guarantee as plain fields for the report, rounded up for reading."""
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(ledger.guarantee)
    for name in ("epsilon", "rho", "epsilon_per_row"):
        if fields[name] is not None:
            fields[name] = float(display_up(fields[name]))
    return fields
