"""A fitted model in Python: sample it as long as its budget lasts, save it, load it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.codec.code_table import putting_back
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods import get
from pegsynth.methods.base import Plan
from pegsynth.methods.session import Session
from pegsynth.options._kinds import python_names
from pegsynth.options.weight_names import WEIGHT
from pegsynth.pipeline.drawn_tables import (
    check_completes,
    table_schema,
)
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.running import open_saved, to_be_saved, whole_tables
from pegsynth.privacy import Ledger
from pegsynth.publishing.result import Release
from pegsynth.schema import Schema
from pegsynth.storage.model_file import load_model, save_model
from pegsynth.storage.spending import locked
from pegsynth.tables.caller_frames import FrameKind, frame_kind, to_kind, with_index
from pegsynth.tables.reader import TableReader

if TYPE_CHECKING:
    from pegsynth.methods.released.supported import Support


Finish = Callable[[pl.DataFrame], Any]
"""Turns the drawn rows of one table into the table that a caller gets."""


class FittedModel:
    """A fitted table, to be sampled as long as its budget lasts.

    Made by `pegsynth.fit`. Once it is saved, everything that is sampled is charged to the
    record beside the file, so that nobody spends the same budget twice.
    """

    def __init__(self, session: Session, request: Request, finish: Finish) -> None:
        self._session, self._request = session, request
        self._finish = finish
        self._saved: SavedModel | None = None

    @python_names()
    def sample(
        self,
        rows: int,
        *,
        datasets: int | None = None,
        where: Mapping[str, Any] | None = None,
        complete: bool = False,
        imputations: int | None = None,
    ) -> Any:
        """Return synthetic rows of the kind that was fitted.

        Parameters
        ----------
        rows
            Rows of each table.
        datasets
            How many tables, as a `Release` with their ledger; None for one table by itself.
        where
            Features and the value each keeps, for models whose rows cost nothing more
            (`pegs-once`); others fix them when they are fitted.
        complete
            Impute missing values from synthetic rows (R23): one table comes back completed, a
            `Release` with completed versions of its tables.
        imputations
            How many versions of each table of a release.

        Returns
        -------
        frame or Release
        """
        if self._saved is not None:
            return self._saved.sample(
                rows,
                datasets=datasets,
                where=where,
                decode=self._request.decode,
                complete=complete,
                imputations=imputations,
            )
        wanted = Request.of(where=where or (), complete=complete, imputations=imputations)
        if complete:
            check_completes(replace(self._session.model, plan=self.plan), dict(wanted.where))
        changes: dict[str, Any] = {}
        if where:
            changes["where"] = wanted.where
        if (datasets or 1) > 1 and get(self.plan.method).released:
            changes["datasets"] = datasets
        session = self._session.changed(**changes) if changes else self._session
        own = self._request
        drawing = replace(wanted, decode=own.decode, wide=own.wide, threads=own.threads)
        return _sampled(session, rows, datasets, drawing, self._finish)

    @python_names()
    def replicates(
        self, count: int = 20, *, rows: int | None = None, weight_name: str | None = None
    ) -> Any:
        """Return a table with a weight for every row, and K replicates of it (R28).

        Parameters
        ----------
        count
            K; 20 serve well.
        rows
            Rows of the table; None: as many as were stated when it was fitted.
        weight_name
            What the column of weights is called, `pegs_weight` by default; the replicates have
            _1, _2, .. behind it.
        """
        named: dict[str, Any] = {} if weight_name is None else {"weight_name": weight_name}
        asked = rows or self.plan.options.rows
        if asked is None:
            raise ParameterError("--rows is needed: how many synthetic rows to draw")
        if self._saved is not None:
            how = self._request.decode
            return self._saved.sample(asked, replicates=count, decode=how, **named)
        session = self._session.changed(replicates=count, datasets=1, **named)
        return _sampled(session, asked, None, self._request, self._finish)

    @python_names()
    def save(self, path: str | Path) -> None:
        """Write the model, and what was spent so far beside it.

        A budget has one record: a model that is not published is saved once.
        """
        if self._saved is not None and not get(self.plan.method).released:
            raise BudgetError(
                f"this model is saved at {self._saved.path}: a second file would have a second "
                "record of the same budget; move that file together with its record"
            )
        session, path = self._session, Path(path)
        model = to_be_saved(session.model, session.stream)
        save_model(model, path, spent=session.spent)
        self._saved = SavedModel(path, self._finish)

    @property
    def ledger(self) -> Ledger:
        """What all samples from this model together promise."""
        return self._session.ledger if self._saved is None else self._saved.ledger

    @property
    def rows_left(self) -> int | None:
        """Rows the budget still covers; None when there is no limit."""
        return self._session.left() if self._saved is None else self._saved.rows_left

    @property
    def schema(self) -> Schema:
        """The codebook."""
        return self._session.model.schema

    @property
    def plan(self) -> Plan:
        """Every public choice and price."""
        return self._session.plan

    @property
    def content(self) -> Any:
        """What was fitted, in the method's own type."""
        return self._session.model.content

    @property
    def session(self) -> Session:
        """The session that draws; for engines.

        Raises
        ------
        BudgetError
            If the model was saved: its budget is then spent through its file.
        """
        if self._saved is not None and not get(self.plan.method).released:
            raise BudgetError(
                f"this model is saved at {self._saved.path}, and its budget is spent through that "
                "file: sample the file, or do not save the model"
            )
        return self._session

    def __repr__(self) -> str:
        return _shown(self.plan.method, self.schema, self.ledger, self.rows_left)


class SavedModel:
    """A model file. Every sample is charged to the record beside it before rows are handed out.

    Parameters
    ----------
    path
        A file that `FittedModel.save` or ``pegs fit`` wrote.
    """

    def __init__(self, path: Path, finish: Finish | None = None) -> None:
        self.path = path
        self._model = load_model(path)
        self._finish: Finish = finish or _as_loaded(self._model.frame)

    @python_names()
    def sample(
        self,
        rows: int,
        *,
        datasets: int | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Return synthetic rows; see `FittedModel.sample`.

        Parameters
        ----------
        **options
            A budget and options on how to draw, for a model that was counted without any.
        """
        given = {"where": where} if where else {}
        options = {"method": None, **options}
        request = Request.of(rows=rows, datasets=datasets or 1, **given, **options)
        with locked(self.path):
            saved = open_saved(self.path, request)
            with saved.booked():
                tables = _sampled(saved.session, rows, datasets, request, self._finish)
                saved.commit()
        return tables

    @python_names()
    def replicates(self, count: int = 20, *, rows: int, weight_name: str = WEIGHT) -> Any:
        """Return a table with a weight for every row, and K replicates of it (R28)."""
        return self.sample(rows, replicates=count, weight_name=weight_name)

    @property
    def schema(self) -> Schema:
        """The codebook."""
        return self._model.schema

    @property
    def ledger(self) -> Ledger:
        """What all samples from this model together promise."""
        if self._model.plan is None:
            return self._model.ledger
        return self._opened().ledger

    @property
    def rows_left(self) -> int | None:
        """Rows the budget still covers; None when there is no limit."""
        return None if self._model.plan is None else self._opened().left()

    @property
    def plan(self) -> Plan | None:
        """Every public choice and price; None for a model without a budget."""
        return self._model.plan

    @property
    def content(self) -> Any:
        """What was fitted, in the method's own type."""
        return self._model.content

    def _opened(self) -> Session:
        with locked(self.path):
            return open_saved(self.path, Request(method=None)).session  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return (
            f"{self.path}: {_shown(self._model.method, self.schema, self.ledger, self.rows_left)}"
        )


def as_fitted(data: Any, kind: Any) -> Finish:
    """Return what turns drawn rows into a table of the kind that was fitted.

    Of the fitted table only the types are kept, and none of its rows.
    """
    like = data[:0] if frame_kind(data) in ("pandas", "polars") else None
    return lambda frame: to_kind(frame, kind, like=like)


def _as_loaded(kind: FrameKind | None) -> Finish:
    """Return the same for a model file, which may be read where that library is not."""
    there = kind is not None and find_spec(kind) is not None
    return lambda frame: to_kind(frame, kind if there else None)


def beside_kept(data: Any, reader: TableReader, schema: Schema, replaced: Sequence[str]) -> Finish:
    """Return what puts drawn columns beside the columns of `data` that are kept."""
    kind, put_back = reader.frame_kind, putting_back(reader, schema, replaced)

    def finish(frame: pl.DataFrame) -> Any:
        # Rows that are kept keep their names; drawn rows have none.
        return with_index(to_kind(put_back(frame), kind, like=data if kind else None), data)

    return finish


def _sampled(
    session: Session,
    rows: int,
    datasets: int | None,
    request: Request,
    finish: Finish,
) -> Any:
    """Draw tables as the caller has them; a single one comes completed, if that was asked for."""
    if datasets is None and request.imputations is not None:
        raise ParameterError("--imputations goes with --datasets; one table is completed once")
    versions = 1 if datasets is None and request.complete else request.versions
    frames, completed = [], []
    asked = replace(request, datasets=datasets or 1)
    for table, found in whole_tables(session, asked, rows, versions=versions):
        frames.append(finish(table))
        if versions:
            completed.append([finish(each) for each in found])
    if datasets is None:
        return completed[0][0] if completed else frames[0]
    book = table_schema(session.model, wide=request.wide)
    return Release(frames, session.ledger, book, completed=completed)


def _shown(method: str, schema: Schema, ledger: Ledger, left: int | None) -> str:
    rows = "any number of rows" if left is None else f"{left:,} rows left"
    return (
        f"{method} model of {len(schema.features)} features, {rows}, "
        f"guarantee: {ledger.guarantee.kind}"
    )


@python_names()
def supported(model: FittedModel | SavedModel | str | Path, formula: str) -> Support:
    """Say whether a published model can answer an analysis, by its structure alone (R28).

    Parameters
    ----------
    model
        A model of `pegs-once`, fitted, loaded, or the name of its file.
    formula
        Such as ``charge ~ age + C(sev)``.

    Returns
    -------
    Support
        *supported*, *supported by bins only*, *merged* or *not supported*, with the features that
        this is about, and categories below the noise.
    """
    from pegsynth.methods.released.supported import supported as answer

    if isinstance(model, str | Path):
        model = SavedModel(Path(model))
    released = getattr(model.content, "released", None)
    if getattr(model.content, "transitions", None) is not None:
        raise ParameterError(
            "the model pools transitions over positions, so whether it holds an analysis of rows "
            'cannot be told; fit one with transitions = "folded" in [panel]'
        )
    if released is None:
        raise ParameterError("only models of pegs-once publish tables that could hold an analysis")
    return answer(released, model.schema, formula)


@python_names()
def published_counts(
    model: FittedModel | SavedModel | str | Path,
    of: Sequence[str],
    *,
    level: float = 0.95,
    threads: int = 1,
) -> pl.DataFrame:
    """Return the counts of a table that a published model holds, with intervals (R11).

    Parameters
    ----------
    model
        A model of `pegs-once`, fitted, loaded, or the name of its file.
    of
        Names of the features of the table, such as ``["zip", "MDC"]``.
    level
        How often the intervals are to hold the count of the original table.

    Returns
    -------
    polars.DataFrame
        A line for each cell: its categories, the raw count with standard error and interval,
        which are about the noise, and a count that is shrunk towards the model.
    """
    from pegsynth.methods.released.asked_counts import asked_frame

    if isinstance(model, str | Path):
        model = SavedModel(Path(model))
    return asked_frame(model.content, model.schema, model.plan, of, level=level, threads=threads)
