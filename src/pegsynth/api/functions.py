"""The functions that callers in Python use: `synthesize`, `fit`, `release` and so on.

Each turns its keyword arguments into a `Request` and calls the pipeline, as the command line
does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.api.fitted import FittedModel, fitted_model, reading
from pegsynth.errors import ParameterError
from pegsynth.inference.release_views import tables_of
from pegsynth.methods.completion import check_completable, completed_frames
from pegsynth.methods.forecast import Forecast
from pegsynth.options import DEFAULT_IMPUTATIONS, Publication
from pegsynth.options._kinds import check_whole, keywords, made_of, python_names
from pegsynth.pipeline.drawn_tables import table_schema
from pegsynth.pipeline.request import Request, registered_options
from pegsynth.pipeline.running import open_draws
from pegsynth.pipeline.settling import settle
from pegsynth.progress import Progress, shown
from pegsynth.publishing.result import Release
from pegsynth.random import RandomStream
from pegsynth.runtime import check_threads, usable_processors
from pegsynth.schema import Schema
from pegsynth.tables.caller_frames import to_kind, with_index
from pegsynth.tables.table_input import open_table

if TYPE_CHECKING:
    from pegsynth.auditing.run import Finding
    from pegsynth.evaluation.records import Metrics
    from pegsynth.privacy import Ledger


_ELSEWHERE = ("engine", "master")
_LATER = ("complete", "imputations")


@keywords(Request, without=_ELSEWHERE, more=registered_options)
def synthesize(
    data: Any,
    schema: Schema | str | Path,
    *,
    progress: bool | Progress | None = None,
    **options: Any,
) -> Release:
    """Return synthetic tables and their ledger.

    Parameters
    ----------
    data
        A pandas, Polars or PyArrow table, an Arrow stream, a PyArrow dataset or an iterator
        of tables; the name of a file, a glob or a folder, or an
        address of such (``s3://..``); or a database, ``postgresql://..`` or
        ``sqlite:///..``.
    schema
        A `Schema` or the name of its file.
    rows, datasets
        n rows in each of K datasets.
    method
        ``auto`` takes the method with the smallest predicted error, and ``pegs`` where no
        total epsilon is stated; or the name of one.
    epsilon, delta, epsilon_per_row, l, alpha
        The budget: exactly one of epsilon (with or without delta, for everything
        together), epsilon per row (the paper's convention), l, or alpha.
    shares
        How epsilon is split over order, marginals and draws.
    where
        Features and the value each keeps in every row; they are not drawn.
    synthesize
        Features to replace in the original rows, the others being kept: no guarantee.
    complete, imputations
        Impute missing values from synthetic rows, r times for each table; it costs nothing.
    book
        A budget book, as ``pegs book create`` makes it: what the run can cost is reserved
        there before the table is read; a run that it does not cover is refused.
    seed
        For tests and studies: reproducible, and without any guarantee.
    table, query, query_is_rowwise
        For a database: which table, or which SELECT, and the caller's word that the
        query selects rows one by one.
    resume
        For files: where to save counts on the way (CONFIDENTIAL) and go on from;
        deleted at the end.
    progress
        By default a bar on a terminal and in a notebook; False shows none, and a function is
        called with the stage, what is done of it and the total.
    **options
        All others are the flags of ``pegs synthesize`` with underscores; docs/options.md
        lists them.

    Returns
    -------
    Release
        `frames`, of the same kind as `data`, and `ledger`; with `complete` also `completed`,
        the r completed versions of every table.
    """
    check_threads()
    request = Request.of(**options)
    source = request.source(data)
    settled = settle(schema, request, data=source)
    with shown(progress) as told, open_draws(source, settled, progress=told) as draws:
        kind = draws.reader.frame_kind
        if draws.in_pairs:
            pairs = [
                tuple(to_kind(each, kind, like=None) for each in pair)
                for pair in draws.pairs(progress=told)
            ]
            return Release(pairs, draws.session.ledger, table_schema(draws.session.model))
        like = data if kind else None
        frames: list[Any] = []
        completed: list[list[Any]] = []
        for frame, versions in draws.tables(progress=told):
            frames.append(to_kind(frame, kind, like=like))
            completed.append([to_kind(each, kind, like=like) for each in versions])
        if request.synthesize:
            # Rows that are kept keep their names; drawn rows have none.
            frames = [with_index(frame, data) for frame in frames]
        return Release(
            frames,
            draws.session.ledger,
            table_schema(draws.session.model, wide=request.wide),
            completed=completed if request.complete else [],
        )


@keywords(
    Request,
    without=(*_ELSEWHERE, "datasets", "synthesize", "no_guarantee", *_LATER),
    more=registered_options,
)
def fit(
    data: Any,
    schema: Schema | str | Path,
    *,
    progress: bool | Progress | None = None,
    **options: Any,
) -> FittedModel:
    """Fit a table once, to sample as long as the budget lasts.

    Parameters are those of `synthesize`; `rows` is the most rows ever to be sampled, for
    methods whose price grows with them. With `from_tables`, the name of a ``tables.toml``, rows are
    made of published tables, and `data` is None.

    Returns
    -------
    FittedModel
        `sample`, `save`, `ledger`, `rows_left`.
    """
    check_threads()
    request = Request.of(**options)
    source = request.source(data)
    settled = settle(schema, request, data=source, saved=True)
    if request.resume is not None:
        raise ParameterError("--resume requires synthesize or the command line")
    stream = request.stream()
    return fitted_model(settled, stream, reading(data, source, stream, progress))


@python_names()
def load(path: str | Path) -> FittedModel:
    """Open a model file; what is sampled is charged to the record beside it."""
    return FittedModel(Path(path))


@keywords(
    Request,
    without=(*_ELSEWHERE, "method", "seed", "resume", "synthesize", "book", *_LATER),
    more=registered_options,
)
def plan(
    schema: Schema | str | Path,
    *,
    pairs_off: float | None = None,
    risk: float | None = None,
    **options: Any,
) -> Forecast:
    """Show what every method could do with a budget; no data is read.

    Instead of ``epsilon`` a goal finds it: `pairs_off`, the share of rows out of place in pair
    tables that is predicted for the smallest such epsilon, or `risk`, how much more often than
    half of the time a guess whether somebody is in the table may be right, at the largest one.

    Options that only some methods take are left out for the others. Printing it shows a table,
    and what every declared analysis or table measures and costs; what a fit would refuse of
    them is refused here.
    """
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    request = Request.of(**options).at_goal(book, pairs_off=pairs_off, risk=risk)
    return request.planned(book)


@keywords(Publication, Request, without=_ELSEWHERE, more=registered_options)
def release(
    data: Any,
    schema: Schema | str | Path,
    *,
    folder: str | Path,
    progress: bool | Progress | None = None,
    **options: Any,
) -> Release:
    """Write a release folder, as ``pegs release`` does, and return what is in it.

    Parameters
    ----------
    folder
        Where to write; ``public/`` may be published, ``internal/`` may not.
    force
        Replace an earlier release or an empty folder.
    public_only
        Do not write ``internal/``.
    table_format
        ``csv`` or ``parquet``.
    weights_inside
        Write replicate weights into the table, and not into a file beside it.
    k, k_features
        Blank these features, by default the quasi-identifiers, in synthetic rows whose
        combination fewer than k rows share; policy, and no further protection.
    round_to
        Numeric features and the multiples that their synthetic values are rounded to.
    about
        Who publishes what and why: the name of an ``about.toml``, or its content as a mapping.
    languages
        Languages of PRIVACY.md beside English: de, fr, es, pt.
    holdout, target, formulas
        For the internal report: real rows that the synthesizer never saw, a feature to predict
        in real rows, and regressions to compare.
    quality, quality_tables
        The part of epsilon that buys noisy distances to the original, published in
        QUALITY.json, and tables that are named for it beside single features and pairs.
    accept
        A file of criteria: publish only if the figures of `quality` meet them.
    **options
        Those of `synthesize`; of `pegs-once`, rows have 20 replicate weights unless `replicates`
        is another number, or 0.
    """
    from pegsynth.publishing.fill_folder import make_folder

    check_threads()
    publication = made_of(Publication, options)
    request = Request.of(**options)
    source = request.source(data)
    with shown(progress) as told:
        made = make_folder(source, schema, Path(folder), request, publication, progress=told)
    return Release.load(made.folder)


@python_names()
def audit(
    method: str | None = None, *, full: bool = False, threads: int | None = None
) -> list[Finding]:
    """Check the claimed guarantee of the shipped code, as ``pegs audit`` does.

    Parameters
    ----------
    method
        The method to check, ``numbers`` for edges, shapes and rare categories, ``recodings``, or
        ``doors`` for the readers; None for all. ``interference`` runs commands and is left to
        ``pegs audit``.
    full
        More cases and more releases.

    Returns
    -------
    list of Finding
        Each with `holds`.
    """
    from pegsynth.auditing.run import audit as findings
    from pegsynth.auditing.run import audits

    known = audits()
    if method is not None and method not in known:
        raise ParameterError(f"--method is one of {', '.join(known)}, not {method!r}")
    return list(findings(method, full=full, threads=threads or usable_processors()))


@python_names()
def report(metrics: Metrics, path: str | Path, *, ledger: Ledger | None = None) -> Path:
    """Write the page of an evaluation; CONFIDENTIAL, as it shows the original's figures.

    Parameters
    ----------
    metrics
        What `evaluate` returned.
    path
        The HTML file to write, readable by its owner only.
    ledger
        What the tables promise, for the page.
    """
    from pegsynth.publishing.report.html import render
    from pegsynth.publishing.report.wording import guarantee_fields
    from pegsynth.tables.atomic import atomic_text, check_target

    target = Path(path)
    check_target(target)
    page = render(
        metrics,
        statement="" if ledger is None else ledger.statement(),
        guarantee=None if ledger is None else guarantee_fields(ledger),
    )
    atomic_text(target, page, mode=0o600)
    return target


@python_names()
def impute(
    synthetic: Any,
    schema: Schema | str | Path | None = None,
    *,
    imputations: int = DEFAULT_IMPUTATIONS,
    seed: int | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> list[list[Any]]:
    """Impute the missing values of synthetic tables, each from its own rows (R23).

    It reads nothing else, so that tables of a release keep what was promised for them. It
    promises nothing for other tables.

    Parameters
    ----------
    synthetic
        A `Release`, a table, or a list of tables; each a dataframe or the name of a file.
    schema
        The codebook of the tables, or the name of its file; that of a release by default.
    imputations
        r, how many completed versions of each table.
    seed
        Fixes what is drawn.

    Returns
    -------
    list of lists
        For every table its r completed versions, of the same kind as the table.
    """
    check_threads()
    check_whole("imputations", imputations)
    found = getattr(synthetic, "schema", None) if schema is None else schema
    if not isinstance(found, Schema | str | Path):
        raise ParameterError("state the schema of the tables")
    book = found if isinstance(found, Schema) else Schema.load(found)
    check_completable(book)
    tables = tables_of(synthetic)
    if not tables:
        raise ParameterError("there is no table to complete")
    stream = RandomStream(seed)
    with shown(progress) as told:
        return [
            _completed(
                table,
                book,
                stream.aside(f"table {number}"),
                imputations=imputations,
                threads=threads or usable_processors(),
                progress=told,
            )
            for number, table in enumerate(tables, start=1)
        ]


def _completed(
    table: Any,
    schema: Schema,
    stream: RandomStream,
    *,
    imputations: int,
    threads: int,
    progress: Progress,
) -> list[Any]:
    with open_table(table, dialect=schema.dialect) as reader:
        frame = pl.concat(list(reader.batches(reader.columns)))
        found = completed_frames(
            frame,
            schema,
            stream,
            imputations=imputations,
            source=reader.source,
            strict=True,
            threads=threads,
            progress=progress,
        )
        kind = reader.frame_kind
        return [to_kind(each, kind, like=table if kind else None) for each in found]
