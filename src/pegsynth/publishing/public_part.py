"""Write ``public/`` of a release folder: exactly what may be published.

Ledger first, then synthetic tables, texts about them, and a checksum list of all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from pegsynth.inference.choice import weights_of
from pegsynth.methods.released import asked_frame
from pegsynth.methods.session import Session
from pegsynth.options import ROW, weight_file
from pegsynth.pipeline.drawn_tables import (
    completed_versions,
    drawn_frames,
    drawn_pairs,
    listed_columns,
    published_schema,
    table_schema,
)
from pegsynth.pipeline.running import Draws
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, quiet
from pegsynth.publishing.bought_quality import buy_quality
from pegsynth.publishing.facts import (
    COMPLETED,
    Facts,
    completed_name,
    wanted_name,
)
from pegsynth.publishing.folder import check_folder, new_folder, seal
from pegsynth.publishing.papers import finish_papers, write_texts
from pegsynth.publishing.publication import Content, checked_format
from pegsynth.publishing.result import TableFormat
from pegsynth.schema import Schema
from pegsynth.tables.atomic import atomic_text
from pegsynth.tables.table_output import open_writer

Write = Callable[[pl.DataFrame], None]


@dataclass(frozen=True)
class _Tables:
    """The files of the tables, and what was written to them.

    Parameters
    ----------
    columns, sizes
        The columns of every file, and its rows.
    """

    public: Path
    facts: Facts
    codebook: Schema
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def opened(self, name: str, texts: Collection[str] = ()) -> Iterator[Write]:
        """Yield what writes the frames of one file."""
        path, marks = self.public / name, self.facts.marks
        with open_writer(path, texts=texts, codebook=self.codebook, marks=marks) as writer:

            def write(frame: pl.DataFrame) -> None:
                self.columns[name] = tuple(frame.columns)
                self.sizes[name] = self.sizes.get(name, 0) + frame.height
                writer.write(frame)

            yield write

    @contextmanager
    def with_weights(self, name: str, texts: Collection[str] = ()) -> Iterator[Write]:
        """Yield what writes the frames of a table, and their weights to the file beside it."""
        weights, beside = self.facts.weight_columns, weight_file(name)
        if not self.facts.weight_file:
            with self.opened(name, texts) as write:
                yield write
            return
        with self.opened(name, texts) as write, self.opened(beside) as write_weights:

            def write_both(frame: pl.DataFrame) -> None:
                done = self.sizes.get(name, 0)
                numbered = frame.select(weights).with_row_index(ROW, offset=done + 1)
                write_weights(numbered.cast({ROW: pl.Int64}))
                write(frame.drop(weights))

            yield write_both

    def finish(self) -> Facts:
        """Write what describes the finished tables, and the checksums."""
        facts = replace(self.facts, columns=self.columns, sizes=self.sizes)
        finish_papers(self.public, facts)
        seal(self.public)
        return facts


def write_public(
    folder: Path, draws: Draws, content: Content, *, progress: Progress = quiet
) -> tuple[list[Path], Facts]:
    """Write ``public/``: ledger first, then K synthetic tables, texts and checksums.

    Completed versions of a table (R23) change neither the tables nor the ledger.

    Returns
    -------
    list of Path, Facts
        The synthetic tables, as they were drawn, two by two where there are two; and what the
        papers say of them.
    """
    session, request, policy = draws.session, draws.settled.request, content.policy
    public = folder / "public"
    public.mkdir()
    rows, datasets, how = session.rows_of_a_table(request.rows), request.datasets, request.decode
    panel, wide, inside = session.model.schema.panel, request.wide, content.stated.weights_inside
    pairs: Sequence[Iterator[tuple[pl.DataFrame, pl.DataFrame]]] = ()
    frames: Sequence[Iterator[pl.DataFrame]] = ()
    if draws.in_pairs:
        pairs = drawn_pairs(session, rows, datasets, how=how, progress=progress)
    else:
        frames = drawn_frames(
            session, rows, datasets, how=how, listed=True, wide=wide, progress=progress
        )
    facts = Facts(
        policy.codebook(published_schema(session, wide=wide, weights=inside)),
        # What drawing costs stands in the ledger from here on.
        session.ledger,
        rows=rows,
        datasets=datasets,
        table_format=checked_format(content.stated.table_format),
        versions=request.versions,
        policy=policy,
        about=content.about,
        languages=content.languages,
        method=session.plan.method,
        seeded=session.stream.seeded,
        decode=how,
        weights_inside=inside,
        counted=None if panel is None else session.model.schema,
    )
    write_texts(public, facts)
    if draws.in_pairs:
        tables = _Tables(public, facts, facts.schema)
        written = [public / name for name in facts.tables()]
        _write_pairs(tables, pairs)
        return written, tables.finish()
    write_wanted(public, session, threads=request.thread_count)
    tables = _Tables(public, facts, table_schema(session.model, wide=wide))
    written = []
    for number, drawn in enumerate(frames, start=1):
        written.append(public / f"synthetic-{number}.{facts.table_format}")
        _write_table(tables, number, drawn, draws, content, progress)
    if content.bought is not None:
        codebook = policy.codebook(session.model.schema)
        buy_quality(draws, codebook, content.bought, public, written)
    return written, tables.finish()


def _write_table(
    tables: _Tables,
    number: int,
    drawn: Iterator[pl.DataFrame],
    draws: Draws,
    content: Content,
    progress: Progress,
) -> None:
    """Write one table, and its completed versions, which are imputed from the rows as drawn."""
    session, request = draws.session, draws.settled.request
    texts = listed_columns(session.model, request.decode, wide=request.wide)
    parts: list[pl.DataFrame] = []
    if request.versions:
        drawn = _remembered(drawn, parts)
    with tables.with_weights(f"synthetic-{number}.{tables.facts.table_format}", texts) as write:
        kept = map(draws.kept, drawn)
        for frame in content.policy.applied(kept, tables.codebook, tables.public.parent):
            write(frame)
    if request.versions:
        completed = completed_versions(
            session,
            pl.concat(parts),
            number,
            request.versions,
            threads=request.thread_count,
            progress=progress,
            wide=request.wide,
        )
        _write_completed(tables, number, completed, texts)


def _remembered(
    frames: Iterator[pl.DataFrame], parts: list[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """Yield frames as they come, and keep them for the imputer."""
    for frame in frames:
        parts.append(frame)
        yield frame


def _write_completed(
    tables: _Tables,
    number: int,
    versions: Sequence[pl.DataFrame],
    texts: Collection[str] = (),
) -> None:
    published = replace(tables, codebook=tables.facts.schema)
    for version, table in enumerate(versions, start=1):
        name = completed_name(number, version, tables.facts.table_format)
        with published.opened(name, texts) as write:
            write(table)


def _write_pairs(
    tables: _Tables, pairs: Sequence[Iterator[tuple[pl.DataFrame, pl.DataFrame]]]
) -> None:
    """Write two tables for every dataset, whose keys agree."""
    names = tables.facts.tables()
    for parts in pairs:
        with tables.opened(next(names)) as units, tables.opened(next(names)) as members:
            for first, second in parts:
                units(first)
                members(second)


def write_wanted(public: Path, session: Session, *, threads: int = 1) -> None:
    """Write the tables that the schema wants, with their noise stated."""
    model = session.model
    for number, table in enumerate(model.schema.tables_wanted, start=1):
        frame = asked_frame(
            model.content, model.schema, session.plan, table.features, threads=threads
        )
        atomic_text(public / wanted_name(number), frame.write_csv())


def save_public(
    folder: Path,
    tables: Sequence[pl.DataFrame | tuple[pl.DataFrame, pl.DataFrame]],
    schema: Schema,
    ledger: Ledger,
    *,
    completed: Sequence[Sequence[pl.DataFrame]] = (),
    table_format: TableFormat = "csv",
    force: bool = False,
) -> None:
    """Write tables, or pairs of two, that are drawn already as a folder with a public part only."""
    table_format = checked_format(table_format)
    check_folder(folder, force=force)
    files = [frame for each in tables for frame in (each if isinstance(each, tuple) else (each,))]
    with new_folder(folder, force=force) as fresh:
        public = fresh / "public"
        public.mkdir()
        weights = weights_of(ledger)
        columns_kept = tuple(each for each in schema.columns if each.name not in weights)
        schema = replace(schema, columns=columns_kept)
        facts = Facts(
            schema,
            ledger,
            rows=_units_in(files[0], schema) if files else 0,
            datasets=len(tables),
            table_format=table_format,
            versions=len(completed[0]) if completed else 0,
            seeded=any(getattr(event, "code", "") == "seeded" for event in ledger.events),
            decode="labels" if files and holds_labels(files[-1], schema) else None,
        )
        write_texts(public, facts)
        written = _Tables(public, facts, schema)
        names = [name for name in facts.tables() if not name.startswith(COMPLETED)]
        for name, table in zip(names, files, strict=True):
            with written.with_weights(name) as write:
                write(table)
        for number, versions in enumerate(completed, start=1):
            _write_completed(written, number, versions)
        written.finish()


def holds_labels(table: pl.DataFrame, schema: Schema) -> bool:
    """Whether numbers of a table are written as labels of bins."""
    columns = [
        (table.get_column(feature.name), feature.labels[: feature.bin_count])
        for feature in schema.features
        if feature.binned and feature.name in table.columns
    ]
    return any(
        column.dtype == pl.String and column.is_in(labels).any() for column, labels in columns
    )


def _units_in(table: pl.DataFrame, schema: Schema) -> int:
    """Return the number of rows, of a panel that of units."""
    return table.height if schema.panel is None else table.get_column(schema.panel.unit).n_unique()
