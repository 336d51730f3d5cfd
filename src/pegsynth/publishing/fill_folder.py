"""Fill a release folder: synthetic tables, schema and ledger in public, the rest apart.

``public/`` holds exactly what may be published. ``internal/`` is computed from the real table
and readable by its owner only; nothing in it is covered by the guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.folding import as_one, folded_reader, joined_original
from pegsynth.errors import ParameterError
from pegsynth.options import Publication
from pegsynth.pipeline.drawn_tables import published_schema, table_schema
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.running import Draws, open_draws
from pegsynth.pipeline.settling import check_output, settle
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, quiet
from pegsynth.publishing.bought_quality import NotAcceptedError
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.folder import check_folder, is_release, new_folder
from pegsynth.publishing.papers import sign_off_page
from pegsynth.publishing.public_part import write_public
from pegsynth.publishing.publication import Content, checked_format
from pegsynth.publishing.report.wording import guarantee_fields
from pegsynth.schema import Schema
from pegsynth.storage.book.booking import Booking
from pegsynth.tables.atomic import atomic_text
from pegsynth.tables.reader import TableReader
from pegsynth.tables.table_input import open_table, read_once

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
    data: object,
    schema: Path | str | Schema,
    folder: Path,
    request: Request,
    publication: Publication,
    *,
    progress: Progress = quiet,
) -> Made:
    """Synthesize a table into a release folder, whole or not at all.

    Raises
    ------
    NotAcceptedError
        The figures that were bought do not meet the criteria. What was spent stands in
        ``FOLDER.refused-1.privacy.json``, and in the book.
    """
    if data is None:
        # There is no original to compare with: nothing but published tables was read (R36).
        publication = replace(publication, public_only=True)
    suffix = checked_format(publication.table_format)
    check_folder(folder, force=publication.force)
    settled = settle(schema, request, data=data, publication=publication)
    content = Content.of(publication, settled)
    book = settled.schema if request.wide else settled.book
    check_output(folder / f"synthetic-1.{suffix}", book, settled.request)
    if not publication.public_only and read_once(data):
        raise ParameterError(
            "the internal report reads the table once more, and this one can be read once; "
            "write it to a file first, or leave the report out (--public-only)"
        )
    replaced = folder.exists() and is_release(folder)
    refused: NotAcceptedError | None = None
    with open_draws(data, settled, run="release", progress=progress) as draws:
        try:
            with new_folder(folder, force=publication.force) as fresh:
                written, facts = write_public(fresh, draws, content, progress=progress)
                if not publication.public_only:
                    _write_internal(fresh, draws, content, written, facts)
        except NotAcceptedError as error:
            # It was spent all the same: the run ends well for the book, and badly for the caller.
            refused = error
    if refused is not None:
        refused = _refused(folder, draws.session.ledger, refused)
        draws.booking.failed(refused)
        raise refused
    session = draws.session
    book = table_schema(session.model, wide=request.wide)
    return Made(folder, session.ledger, book, replaced, settled.notes, draws.booking)


def _refused(folder: Path, ledger: Ledger, error: NotAcceptedError) -> NotAcceptedError:
    """Write down what a release cost that is not published."""
    # An earlier refusal was spent as well, and must not be forgotten.
    names = (f"{folder.name}.refused-{number}.privacy.json" for number in count(1))
    path = next(path for name in names if not (path := folder.with_name(name)).exists())
    atomic_text(path, ledger.to_json())
    return NotAcceptedError(f"{error}; nothing was published, and what it cost is in {path}")


def _write_internal(
    folder: Path, draws: Draws, content: Content, written: list[Path], facts: Facts
) -> None:
    """Write ``internal/`` of a release whose public part is there."""
    session, request = draws.session, draws.settled.request
    reader: Any = draws.reader
    judged: list[Any] = [str(path) for path in written]
    if draws.in_pairs:
        book = draws.settled.book
        reader = open_table(joined_original(draws.reader, book), confidential=True)
        judged = [
            # Units of a release may have no rows at all.
            as_one((str(units), str(rows)), book, may_be_empty=True)
            for units, rows in zip(written[::2], written[1::2], strict=True)
        ]
    if request.wide and draws.settled.long is not None:
        reader = folded_reader(reader, draws.settled.long)
    inside, counted = content.stated.weights_inside, session.model.counted
    write_internal(
        folder,
        reader,
        content.policy.codebook(published_schema(session, wide=request.wide, weights=inside)),
        session.ledger,
        judged,
        threads=request.thread_count,
        header=facts.header,
        stated=content.stated,
        counted=None if counted is None else counted.mask(0, counted.rows),
    )
    page = sign_off_page(facts, folder / "public", book=draws.booking.told())
    atomic_text(folder / "internal" / "sign-off.html", page, mode=0o600)


def write_internal(
    folder: Path,
    reader: TableReader | pl.DataFrame,
    schema: Schema,
    ledger: Ledger,
    synthetic: Sequence[Any],
    *,
    threads: int = 1,
    header: Sequence[tuple[str, str]] = (),
    stated: Publication | None = None,
    counted: NDArray[np.bool_] | None = None,
) -> None:
    """Write ``internal/``: every measure and the report, computed from the real table.

    Parameters
    ----------
    stated
        What of the report's figures was asked for; None: nothing.
    counted
        For every row of the real table whether the release counted it, where that is known.
    """
    from pegsynth.evaluation.evaluate import options_of
    from pegsynth.evaluation.evaluated_tables import read_tables
    from pegsynth.evaluation.measuring import evaluate_tables
    from pegsynth.publishing.report.html import render
    from pegsynth.publishing.report.verdict import with_verdict

    stated = stated or Publication()
    internal = folder / "internal"
    internal.mkdir(mode=0o700)
    options = options_of(
        schema,
        target=stated.target,
        formulas=stated.formulas or None,
        threads=threads,
        ledger=ledger,
        datasets=len(synthetic),
    )
    tables = read_tables(
        reader,
        list(synthetic),
        schema,
        holdout=stated.holdout,
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
