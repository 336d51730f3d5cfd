"""Fill a release folder: synthetic tables, schema and ledger in public, the rest apart.

``public/`` holds exactly what may leave. ``internal/`` is computed from the real table
and readable by its owner only; nothing in it is covered by the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pegsynth.io.atomic import atomic_text
from pegsynth.io.reader import TableReader
from pegsynth.io.write import open_writer
from pegsynth.privacy import Ledger
from pegsynth.privacy.rounding import display_up
from pegsynth.release.folder import seal
from pegsynth.release.texts import how_to_analyse, privacy_page
from pegsynth.schema import Schema
from pegsynth.schema.codec import encode, encode_table, one_matrix
from pegsynth.schema.decoding import How
from pegsynth.schema.toml import dumps
from pegsynth.synthesizers.model import Codes
from pegsynth.synthesizers.progress import Progress, quiet
from pegsynth.synthesizers.session import Session
from pegsynth.synthesizers.synthesize import decoded, decoder_of

TableFormat = Literal["csv", "parquet"]
TITLE = "Original and synthetic table side by side"


def write_public(
    folder: Path,
    session: Session,
    *,
    rows: int,
    datasets: int,
    table_format: TableFormat = "csv",
    how: How = "values",
    progress: Progress = quiet,
    kept: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
) -> list[Path]:
    """Write ``public/``: ledger first, then K synthetic tables, texts and checksums."""
    public = folder / "public"
    public.mkdir()
    tables = session.draw(rows, datasets)
    schema, originals = session.model.schema, session.model.originals
    if session.recipe.draw.synthesize and originals is not None:
        # Every original row is there, so their number is public.
        rows = len(originals)
    write_texts(
        public,
        schema,
        session.ledger,
        rows=rows,
        datasets=datasets,
        how=table_format,
        decode=how,
    )
    written = []
    for number, chunks in enumerate(tables, start=1):
        path = public / f"synthetic-{number}.{table_format}"
        decoder = decoder_of(session.model, how, listed=True)
        frames = decoded(decoder, chunks, session.stream, rows=rows, progress=progress)
        with open_writer(path, texts=decoder.listed, codebook=session.model.schema) as writer:
            for frame in frames:
                writer.write(kept(frame))
        written.append(path)
    seal(public)
    return written


def write_texts(
    public: Path,
    schema: Schema,
    ledger: Ledger,
    *,
    rows: int,
    datasets: int,
    how: TableFormat,
    decode: How = "values",
) -> None:
    """Write the schema, the ledger and the pages that explain them."""
    atomic_text(public / "privacy.json", ledger.to_json())
    atomic_text(public / "PRIVACY.md", privacy_page(ledger))
    analyse = how_to_analyse(
        schema, rows=rows, datasets=datasets, table_format=how, ledger=ledger, decode=decode
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
    from pegsynth.evaluation.judged_tables import coded_tables
    from pegsynth.evaluation.measuring import evaluate_tables
    from pegsynth.report import render

    internal = folder / "internal"
    internal.mkdir(mode=0o700)
    original = one_matrix(encode_table(reader, schema))
    tables: list[Codes] = [encode(path, schema, need_unit=False) for path in synthetic]
    options = options_of(schema, threads=threads)
    metrics = evaluate_tables(coded_tables(original, tables, schema), options)
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
