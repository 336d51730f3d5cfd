"""Fill a release folder: synthetic tables, schema and ledger in public, the rest apart.

``public/`` holds exactly what may leave. ``internal/`` is computed from the real table
and readable by its owner only; nothing in it is covered by the guarantee.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from pegsynth.io.atomic import atomic_text
from pegsynth.io.read import TableReader
from pegsynth.io.write import open_writer
from pegsynth.privacy import Ledger
from pegsynth.random import RandomStream
from pegsynth.release.folder import seal
from pegsynth.release.texts import how_to_analyse, privacy_page
from pegsynth.schema.codec import encode, encode_table
from pegsynth.schema.decoding import How
from pegsynth.synthesizers.model import Codes, Model, Prepared, Progress, draw, quiet
from pegsynth.synthesizers.synthesize import decoded

TableFormat = Literal["csv", "parquet"]


def write_public(
    folder: Path,
    model: Model,
    prepared: Prepared,
    stream: RandomStream,
    *,
    rows: int,
    datasets: int,
    table_format: TableFormat = "csv",
    how: How = "values",
    threads: int = 1,
    progress: Progress = quiet,
) -> list[Path]:
    """Write ``public/``: ledger first, then K synthetic tables, texts and checksums."""
    public = folder / "public"
    public.mkdir()
    write_texts(public, model, prepared.ledger, rows=rows, datasets=datasets, how=table_format)
    written = []
    for number in range(1, datasets + 1):
        path = public / f"synthetic-{number}.{table_format}"
        chunks = draw(prepared, rows, stream, threads=threads)
        with open_writer(path) as writer:
            for frame in decoded(model, chunks, stream, how=how, rows=rows, progress=progress):
                writer.write(frame)
        written.append(path)
    seal(public)
    return written


def write_texts(
    public: Path, model: Model, ledger: Ledger, *, rows: int, datasets: int, how: TableFormat
) -> None:
    """Write the schema, the ledger and the pages that explain them."""
    atomic_text(public / "privacy.json", ledger.to_json())
    atomic_text(public / "PRIVACY.md", privacy_page(ledger))
    analyse = how_to_analyse(model.schema, rows=rows, datasets=datasets, table_format=how)
    atomic_text(public / "HOW-TO-ANALYSE.md", analyse)
    model.schema.save(public / "schema.toml")
    (public / "schema.toml").chmod((public / "privacy.json").stat().st_mode)


def write_internal(
    folder: Path,
    reader: TableReader,
    model: Model,
    ledger: Ledger,
    synthetic: list[Path],
    *,
    threads: int = 1,
) -> None:
    """Write ``internal/``: the report, computed from the real table."""
    from pegsynth.evaluate import evaluate_codes
    from pegsynth.report import render

    internal = folder / "internal"
    internal.mkdir(mode=0o700)
    original = np.concatenate(list(encode_table(reader, model.schema)))
    tables: list[Codes] = [encode(path, model.schema, need_unit=False) for path in synthetic]
    metrics = evaluate_codes(original, tables, model.schema, threads=threads)
    atomic_text(internal / "metrics.json", metrics.to_json(), mode=0o600)
    page = render(metrics, statement=ledger.statement(), guarantee=guarantee_fields(ledger))
    atomic_text(internal / "report.html", page, mode=0o600)


def guarantee_fields(ledger: Ledger) -> dict[str, Any]:
    """Return the guarantee as plain fields for the report."""
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(ledger.guarantee)
    return fields
