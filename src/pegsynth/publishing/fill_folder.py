"""Fill a release folder: synthetic tables, schema and ledger in public, the rest apart.

``public/`` holds exactly what may be published. ``internal/`` is computed from the real table
and readable by its owner only; nothing in it is covered by the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.folded_reader import batched_pairs, folded_reader, joined_files, joined_original
from pegsynth.errors import ParameterError
from pegsynth.inference.choice import weights_of
from pegsynth.methods.base import Model
from pegsynth.methods.released.asked_counts import asked_frame
from pegsynth.methods.session import Session
from pegsynth.options import How
from pegsynth.options.weight_names import ROW, weight_file
from pegsynth.pipeline.drawn_tables import (
    completed_versions,
    drawn_frames,
    drawn_pairs,
    listed_columns,
    published_schema,
    table_schema,
)
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.running import Draws, check_output, open_draws
from pegsynth.privacy import Ledger
from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import rows_counted
from pegsynth.progress import Progress, quiet
from pegsynth.publishing.bought_quality import (
    Bought,
    NotAcceptedError,
    bought_fields,
    check_accepted,
)
from pegsynth.publishing.facts import (
    COMPLETED,
    NO_PAPERS,
    Facts,
    Papers,
    completed_name,
    wanted_name,
)
from pegsynth.publishing.folder import check_folder, is_release, new_folder, seal
from pegsynth.publishing.judging import NO_JUDGING, Judging
from pegsynth.publishing.papers import finish_papers, header_of, marks_of, write_texts
from pegsynth.publishing.policy import NO_POLICY, Policy
from pegsynth.publishing.quality import quality_fields, write_quality
from pegsynth.publishing.report.drawing import check_drawing
from pegsynth.publishing.result import TableFormat
from pegsynth.publishing.sign_off import sign_off_page
from pegsynth.schema import Schema
from pegsynth.storage.book.booking import NO_BOOKING, Booking
from pegsynth.tables.atomic import atomic_text
from pegsynth.tables.reader import TableReader
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import open_writer

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
    booking
        The entry in the budget book.
    """

    folder: Path
    ledger: Ledger
    schema: Schema
    replaced: bool
    notes: tuple[str, ...]
    booking: Booking


def make_folder(
    data: Any,
    schema: Path | str | Schema,
    folder: Path,
    request: Request,
    *,
    force: bool = False,
    public_only: bool = False,
    table_format: str = "csv",
    weights_inside: bool = False,
    policy: Policy = NO_POLICY,
    papers: Papers = NO_PAPERS,
    judging: Judging = NO_JUDGING,
    bought: Bought | None = None,
    progress: Progress = quiet,
) -> Made:
    """Synthesize a table into a release folder, whole or not at all.

    Parameters
    ----------
    policy
        What is done to synthetic rows before they are published.
    papers
        Who publishes, and in which languages the promise is stated.
    force
        Replace an earlier release or an empty folder.
    public_only
        Do not write ``internal/``.
    weights_inside
        Write replicate weights into the table, and not into a file beside it.
    judging
        What the internal report measures beside the tables.
    bought
        What of its distance to the original is bought, and what it must meet (R34).

    Raises
    ------
    NotAcceptedError
        The figures that were bought do not meet the criteria. What was spent stands in
        ``FOLDER.refused-1.privacy.json``, and in the book.
    """
    _check_format(table_format)
    check_folder(folder, force=force)
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    if judging and public_only:
        raise ParameterError(
            "--holdout, --target and --formula are for the internal report, which --public-only "
            "leaves out; drop one of them"
        )
    judging.check(book)
    policy = policy.settled(
        book, labels=request.decode == "labels", completed=bool(request.versions)
    )
    papers.about.check(has_unit=bool(book.unit))
    if bought is not None:
        bought.check(request.written(book))
    if book.panel is not None and book.panel.tables is not None and not request.wide:
        check_no_policy(policy)
    check_output(folder / f"synthetic-1.{table_format}", request.written(book), request)
    if not public_only:
        check_drawing()
    replaced = folder.exists() and is_release(folder)
    quality = None if bought is None else (bought.share, bought.tables)
    refused: NotAcceptedError | None = None
    with open_draws(
        data,
        schema,
        request,
        run="release",
        quality=quality,
        again="" if public_only else "--public-only",
        progress=progress,
    ) as draws:
        try:
            with new_folder(folder, force=force) as fresh:
                write_folder(
                    fresh,
                    draws,
                    table_format="parquet" if table_format == "parquet" else "csv",
                    weights_inside=weights_inside,
                    public_only=public_only,
                    policy=policy,
                    papers=papers,
                    judging=judging,
                    bought=bought,
                    progress=progress,
                )
        except NotAcceptedError as error:
            # It was spent all the same: the run ends well for the book, and badly for the caller.
            refused = error
    if refused is not None:
        refused = _refused(folder, draws.session.ledger, refused)
        draws.booking.failed(refused)
        raise refused
    session = draws.session
    book = table_schema(session.model, wide=request.wide)
    notes = draws.settled.notes
    return Made(folder, session.ledger, book, replaced, notes, draws.booking)


def _refused(folder: Path, ledger: Ledger, error: NotAcceptedError) -> NotAcceptedError:
    """Write down what a release cost that is not published."""
    # An earlier refusal was spent as well, and must not be forgotten.
    names = (f"{folder.name}.refused-{number}.privacy.json" for number in count(1))
    path = next(path for name in names if not (path := folder.with_name(name)).exists())
    atomic_text(path, ledger.to_json())
    return NotAcceptedError(f"{error}; nothing was published, and what it cost is in {path}")


def write_folder(
    folder: Path,
    draws: Draws,
    *,
    table_format: TableFormat = "csv",
    weights_inside: bool = False,
    public_only: bool = False,
    policy: Policy = NO_POLICY,
    papers: Papers = NO_PAPERS,
    judging: Judging = NO_JUDGING,
    bought: Bought | None = None,
    progress: Progress = quiet,
) -> None:
    """Fill an empty folder: ``public/`` and, unless only that is wanted, ``internal/``."""
    session, request = draws.session, draws.settled.request
    written, facts = write_public(
        folder,
        session,
        rows=session.rows_of_a_table(request.rows),
        datasets=request.datasets,
        table_format=table_format,
        weights_inside=weights_inside,
        how=request.decode,
        versions=request.versions,
        threads=request.thread_count,
        progress=progress,
        kept=draws.kept,
        policy=policy,
        papers=papers,
        wide=request.wide,
        measured=None if bought is None else partial(_write_bought, draws, policy, bought),
    )
    if not public_only:
        reader: Any = draws.reader
        judged: list[Any] = [str(path) for path in written]
        if draws.in_pairs:
            book = draws.settled.long or session.model.schema
            reader = open_table(joined_original(draws.reader, book), confidential=True)
            judged = [joined_files(*paths, book) for paths in batched_pairs(written)]
        if request.wide and draws.settled.long is not None:
            reader = folded_reader(reader, draws.settled.long)
        write_internal(
            folder,
            reader,
            policy.codebook(published_schema(session, wide=request.wide, weights=weights_inside)),
            session.ledger,
            judged,
            threads=request.thread_count,
            header=header_of(facts),
            judging=judging,
            counted=_counted(session.model),
        )
        page = sign_off_page(facts, folder / "public", book=_booked(draws.booking))
        atomic_text(folder / "internal" / "sign-off.html", page, mode=0o600)


def _write_bought(
    draws: Draws, policy: Policy, bought: Bought, public: Path, written: Sequence[Path]
) -> None:
    """Buy the distances, judge by them, and put them into the quality statement."""
    session = draws.session
    schema = policy.codebook(session.model.schema)
    fields = bought_fields(draws, schema, written)
    check_accepted(fields, bought.criteria)
    stated = {
        **quality_fields(schema, session.ledger),
        "computed_from": "schema and ledger; the fields of bought from the original, paid for",
        "bought": fields,
    }
    if bought.criteria:
        stated["accepted_by"] = dict(bought.criteria)
    write_quality(public, stated)


def _counted(model: Model) -> NDArray[np.bool_] | None:
    """Return for every row of a table whose units are bounded whether it was counted."""
    return None if model.counted is None else model.counted.mask(0, model.counted.rows)


def _booked(booking: Booking) -> str:
    """Say where a run is written down; nothing where it is not."""
    if booking is NO_BOOKING:
        return ""
    return f"{booking.path.name}, entry {booking.number} (settled when the folder is in its place)"


def write_public(
    folder: Path,
    session: Session,
    *,
    rows: int,
    datasets: int,
    table_format: TableFormat = "csv",
    weights_inside: bool = False,
    how: How | None = None,
    versions: int = 0,
    threads: int = 1,
    progress: Progress = quiet,
    kept: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    policy: Policy = NO_POLICY,
    papers: Papers = NO_PAPERS,
    wide: bool = False,
    measured: Callable[[Path, Sequence[Path]], None] | None = None,
) -> tuple[list[Path], Facts]:
    """Write ``public/``: ledger first, then K synthetic tables, texts and checksums.

    Parameters
    ----------
    versions
        Completed versions of each table (R23); the tables and the ledger do not change by them.
    wide
        Whether a panel is written with one row for each unit.
    measured
        Called with the folder and its tables before papers and checksums are made of them.

    Returns
    -------
    list of Path, Facts
        The synthetic tables, as they were drawn, and what the papers say of them.
    """
    public = folder / "public"
    public.mkdir()
    panel = session.model.schema.panel
    if panel is not None and panel.tables is not None and not wide:
        check_no_policy(policy)
        facts = Facts(
            published_schema(session),
            session.ledger,
            rows=rows,
            datasets=datasets,
            table_format=table_format,
            papers=papers,
            method=session.plan.method,
            seeded=session.stream.seeded,
            decode=how,
            counted=session.model.schema,
        )
        return write_pairs(public, session, facts, progress=progress)
    tables = drawn_frames(
        session, rows, datasets, how=how, listed=True, wide=wide, progress=progress
    )
    book = table_schema(session.model, wide=wide)
    schema = policy.codebook(published_schema(session, wide=wide, weights=weights_inside))
    facts = Facts(
        schema,
        session.ledger,
        rows=rows,
        datasets=datasets,
        table_format=table_format,
        versions=versions,
        policy=policy,
        papers=papers,
        method=session.plan.method,
        seeded=session.stream.seeded,
        decode=how,
        weights_inside=weights_inside,
        counted=None if panel is None else session.model.schema,
    )
    write_texts(public, facts)
    write_wanted(public, session, threads=threads)
    written = []
    columns: dict[str, tuple[str, ...]] = {}
    sizes: dict[str, int] = {}
    texts = listed_columns(session.model, how, wide=wide)
    for number, frames in enumerate(tables, start=1):
        path = public / f"synthetic-{number}.{table_format}"
        with _writer(path, facts, columns, texts=texts, codebook=book) as write:
            parts: list[pl.DataFrame] = []
            drawn = _remembered(frames, parts) if versions else frames
            for frame in policy.applied(map(kept, drawn), book, folder):
                write(frame)
                sizes[path.name] = sizes.get(path.name, 0) + frame.height
        written.append(path)
        if versions:
            told: dict[str, Any] = {"threads": threads, "progress": progress, "wide": wide}
            completed = completed_versions(session, pl.concat(parts), number, versions, **told)
            columns |= write_completed(public, number, completed, facts, texts)
    if measured is not None:
        measured(public, written)
    facts = replace(facts, columns=columns, sizes=sizes)
    finish_papers(public, facts)
    seal(public)
    return written, facts


@contextmanager
def _writer(
    path: Path, facts: Facts, columns: dict[str, tuple[str, ...]], **told: Any
) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Yield what writes the frames of a table, and their weights to the file beside it, if any.

    Parameters
    ----------
    columns
        Gets the columns of every file.
    told
        As for `open_writer`.
    """
    rows = 0
    with ExitStack() as stack:
        table = stack.enter_context(open_writer(path, marks=marks_of(facts), **told))
        beside = None
        if facts.weight_file:
            file = path.with_name(weight_file(path))
            told = {"codebook": told["codebook"], "marks": marks_of(facts)}
            beside = stack.enter_context(open_writer(file, **told))

        def write(frame: pl.DataFrame) -> None:
            nonlocal rows
            if beside is not None:
                weights = frame.select(facts.weight_columns).with_row_index(ROW, offset=rows + 1)
                beside.write(weights.cast({ROW: pl.Int64}))
                columns[weight_file(path)] = tuple(weights.columns)
                frame = frame.drop(facts.weight_columns)
            columns[path.name] = tuple(frame.columns)
            table.write(frame)
            rows += frame.height

        yield write


def check_no_policy(policy: Policy) -> None:
    """Refuse what is done to the rows of one table where there are two."""
    if policy:
        raise ParameterError("--k and --round do not go with two tables; state --wide for one")


def write_pairs(
    public: Path, session: Session, facts: Facts, *, progress: Progress
) -> tuple[list[Path], Facts]:
    """Write two tables for every dataset, whose keys agree; return the paths, two by two."""
    told: dict[str, Any] = {"how": facts.decode, "progress": progress}
    pairs = drawn_pairs(session, facts.rows, facts.datasets, **told)
    write_texts(public, facts)
    written = [public / name for name in facts.tables()]
    columns: dict[str, tuple[str, ...]] = {}
    marks = marks_of(facts)
    sizes = {path.name: 0 for path in written}
    for parts, paths in zip(pairs, batched_pairs(written), strict=True):
        with (
            open_writer(paths[0], codebook=facts.schema, marks=marks) as units,
            open_writer(paths[1], codebook=facts.schema, marks=marks) as members,
        ):
            for first, second in parts:
                columns |= {
                    paths[0].name: tuple(first.columns),
                    paths[1].name: tuple(second.columns),
                }
                units.write(first)
                members.write(second)
                sizes[paths[0].name] += first.height
                sizes[paths[1].name] += second.height
    facts = replace(facts, columns=columns, sizes=sizes)
    finish_papers(public, facts)
    seal(public)
    return written, facts


def write_wanted(public: Path, session: Session, *, threads: int = 1) -> None:
    """Write the tables that the schema wants, with their noise stated."""
    model = session.model
    for number, table in enumerate(model.schema.tables_wanted, start=1):
        frame = asked_frame(
            model.content, model.schema, session.plan, table.features, threads=threads
        )
        atomic_text(public / wanted_name(number), frame.write_csv())


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
    facts: Facts,
    texts: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Write the completed versions of one table; return the columns of each file."""
    marks = marks_of(facts)
    columns = {}
    for version, table in enumerate(versions, start=1):
        path = public / completed_name(number, version, facts.table_format)
        columns[path.name] = tuple(table.columns)
        with open_writer(path, texts=texts, codebook=facts.schema, marks=marks) as writer:
            writer.write(table)
    return columns


def save_public(
    folder: Path,
    tables: Sequence[pl.DataFrame | tuple[pl.DataFrame, pl.DataFrame]],
    schema: Schema,
    ledger: Ledger,
    *,
    completed: Sequence[Sequence[pl.DataFrame]] = (),
    table_format: TableFormat = "csv",
    force: bool = False,
    papers: Papers = NO_PAPERS,
) -> None:
    """Write tables, or pairs of two, that are drawn already as a folder with a public part only."""
    _check_format(table_format)
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
            papers=papers,
            seeded=any(getattr(event, "code", "") == "seeded" for event in ledger.events),
            decode="labels" if files and holds_labels(files[-1], schema) else None,
        )
        names = [name for name in facts.tables() if not name.startswith(COMPLETED)]
        sizes = {name: table.height for name, table in zip(names, files, strict=True)}
        facts = replace(facts, sizes=sizes)
        write_texts(public, facts)
        columns: dict[str, tuple[str, ...]] = {}
        for name, table in zip(names, files, strict=True):
            with _writer(public / name, facts, columns, codebook=schema) as write:
                write(table)
        for number, versions in enumerate(completed, start=1):
            columns |= write_completed(public, number, versions, facts)
        facts = replace(facts, columns=columns)
        finish_papers(public, facts)
        seal(public)


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


def _check_format(table_format: str) -> None:
    if table_format not in get_args(TableFormat):
        raise ParameterError(f"--format is csv or parquet, not {table_format!r}")


def write_internal(
    folder: Path,
    reader: TableReader | pl.DataFrame,
    schema: Schema,
    ledger: Ledger,
    synthetic: Sequence[Any],
    *,
    threads: int = 1,
    header: Sequence[tuple[str, str]] = (),
    judging: Judging = NO_JUDGING,
    counted: NDArray[np.bool_] | None = None,
) -> None:
    """Write ``internal/``: every measure and the report, computed from the real table.

    Parameters
    ----------
    counted
        For every row of the real table whether the release counted it, where that is known.
    """
    from pegsynth.evaluation.evaluate_options import options_of
    from pegsynth.evaluation.judged_tables import read_tables
    from pegsynth.evaluation.measuring import evaluate_tables
    from pegsynth.evaluation.utility.pooling import published_noise
    from pegsynth.inference.choice import rule_for
    from pegsynth.publishing.report.html import render
    from pegsynth.publishing.report.verdict import with_verdict

    internal = folder / "internal"
    internal.mkdir(mode=0o700)
    rule = rule_for(ledger, len(synthetic)).rule
    noise = published_noise(ledger, schema)
    options = options_of(
        schema,
        target=judging.target,
        formulas=judging.formulas or None,
        threads=threads,
        rule=rule,
        noise=noise,
        ledger=ledger,
    )
    tables = read_tables(
        reader,
        list(synthetic),
        schema,
        holdout=judging.holdout,
        threads=threads,
        counted=counted,
        lenient=True,
    )
    metrics = with_verdict(evaluate_tables(tables, options))
    atomic_text(internal / "metrics.json", metrics.to_json(), mode=0o600)
    page = render(
        metrics,
        statement=ledger.statement(),
        guarantee=guarantee_fields(ledger),
        title=TITLE,
        header=header,
    )
    atomic_text(internal / "report.html", page, mode=0o600)


def guarantee_fields(ledger: Ledger) -> dict[str, Any]:
    """Return the guarantee as plain fields for the report, rounded up for reading."""
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(ledger.guarantee)
    fields["rows_per_unit"] = rows_counted(ledger)
    for name in ("epsilon", "rho", "epsilon_per_row"):
        if fields[name] is not None:
            fields[name] = float(display_up(fields[name]))
    return fields
