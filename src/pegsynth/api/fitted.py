"""Fitted models in Python: sampled as long as their budget lasts, saved, and loaded again.

`FittedModel` is what `pegsynth.fit` and `pegsynth.load` return; `PeGS` is the same as an estimator
in the manner of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from pegsynth.codec.code_table import putting_back
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.session import Session
from pegsynth.options import AUTO, WEIGHT, How
from pegsynth.options._kinds import declared, keywords, python_names, refuse_unknown
from pegsynth.pipeline.drawn_tables import check_completes, table_schema
from pegsynth.pipeline.fitting import fit as fit_table
from pegsynth.pipeline.request import Able, Request, registered_options
from pegsynth.pipeline.running import (
    booked_run,
    booked_table,
    open_saved,
    to_be_saved,
    whole_tables,
)
from pegsynth.pipeline.settling import Settled, settle
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, shown
from pegsynth.publishing.result import Release
from pegsynth.random import RandomStream
from pegsynth.runtime import check_threads
from pegsynth.schema import Schema
from pegsynth.storage.book.booking import Booking
from pegsynth.storage.model_file import load_model, save_model
from pegsynth.storage.spending import locked
from pegsynth.tables.caller_frames import frame_kind, to_kind, with_index
from pegsynth.tables.streams import held
from pegsynth.tables.table_input import named_source

if TYPE_CHECKING:
    from pegsynth.methods.released import Support


Finish = Callable[[pl.DataFrame], Any]
"""Turns the drawn rows of one table into the table that a caller gets."""
Read = Callable[[Settled, Booking], tuple[Model, Finish]]
"""Fits a table; the booking begins before the first row is read."""


class FittedModel:
    """A fitted table, to be sampled as long as its budget lasts.

    Made by `pegsynth.fit`, or of a model file by `pegsynth.load`. What is sampled of a model that
    was saved is charged to the record beside its file before rows are returned, so that nobody
    spends the same budget twice.

    Attributes
    ----------
    path
        The file; None for a model that was not saved.
    """

    def __init__(
        self,
        source: Session | Path,
        request: Request | None = None,
        finish: Finish | None = None,
    ) -> None:
        self.path = source if isinstance(source, Path) else None
        self._live = source if isinstance(source, Session) else None
        self._model = load_model(source) if isinstance(source, Path) else source.model
        self._request = request or Request()
        kind = self._model.frame
        # Tables are of the kind that was fitted, where its library is there.
        known = kind is not None and find_spec(kind) is not None
        self._finish = finish or (lambda frame: to_kind(frame, kind if known else None))

    @python_names()
    def sample(
        self,
        rows: int,
        *,
        datasets: int | None = None,
        where: Mapping[str, Any] | None = None,
        complete: bool = False,
        imputations: int | None = None,
        **options: Any,
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
        **options
            A budget and options on how to draw, for a file of a model that was counted without
            any.

        Returns
        -------
        frame or Release
        """
        if self.path is not None:
            given = {"where": where} if where else {}
            options = {"method": None, "decode": self._request.decode, **given, **options}
            options |= {"complete": complete, "imputations": imputations}
            request = Request.of(rows=rows, datasets=datasets or 1, **options)
            # What is drawn is charged to the record beside the file.
            with locked(self.path):
                saved = open_saved(self.path, request)
                with saved.booked():
                    tables = _sampled(saved.session, rows, datasets, request, self._finish)
                    saved.commit()
            return tables
        refuse_unknown(options, {"datasets", "where", "complete", "imputations"}, "sample")
        wanted = Request.of(where=where or (), complete=complete, imputations=imputations)
        if complete:
            check_completes(replace(self._model, plan=self.plan), dict(wanted.where))
        changes: dict[str, Any] = {"where": wanted.where} if where else {}
        if (datasets or 1) > 1 and self._is_released:
            changes["datasets"] = datasets
        session = self.session.changed(**changes) if changes else self.session
        own = self._request
        drawing = replace(wanted, decode=own.decode, wide=own.wide, threads=own.threads)
        return _sampled(session, rows, datasets, drawing, self._finish)

    @python_names()
    def replicates(
        self, count: int = 20, *, rows: int | None = None, weight_name: str = WEIGHT
    ) -> Any:
        """Return a table with a weight for every row, and K replicates of it (R28).

        Parameters
        ----------
        count
            K; 20 serve well.
        rows
            Rows of the table; None: as many as were stated when it was fitted.
        weight_name
            What the column of weights is called; the replicates have _1, _2, .. behind it.
        """
        asked = rows or (None if self.plan is None else self.plan.options.rows)
        if asked is None:
            raise ParameterError("--rows is needed: how many synthetic rows to draw")
        if self.path is not None:
            return self.sample(asked, replicates=count, weight_name=weight_name)
        session = self.session.changed(replicates=count, datasets=1, weight_name=weight_name)
        return _sampled(session, asked, None, self._request, self._finish)

    @python_names()
    def save(self, path: str | Path) -> None:
        """Write the model, and what was spent so far beside it.

        A budget has one record: a model that is not published is saved once.
        """
        session = self.session
        save_model(to_be_saved(session.model, session.stream), Path(path), spent=session.spent)
        self.path = Path(path)

    @property
    def ledger(self) -> Ledger:
        """What all samples from this model together promise."""
        return self._model.ledger if self.plan is None else self._current().ledger

    @property
    def rows_left(self) -> int | None:
        """Rows the budget still covers; None when there is no limit."""
        return None if self.plan is None else self._current().left()

    @property
    def schema(self) -> Schema:
        """The codebook."""
        return self._model.schema

    @property
    def plan(self) -> Plan | None:
        """Every public choice and price; None for a model without a budget."""
        return self._model.plan if self._live is None else self._live.plan

    @property
    def content(self) -> Any:
        """What was fitted, in the method's own type."""
        return self._model.content

    @property
    def session(self) -> Session:
        """The session that draws; for engines.

        Raises
        ------
        BudgetError
            If the model was saved: its budget is then spent through its file.
        """
        if self._live is None or (self.path is not None and not self._is_released):
            raise BudgetError(
                f"this model is saved at {self.path}, and its budget is spent through that file: "
                "anything else would have a second record of the same budget; sample the file, or "
                "do not save the model"
            )
        return self._live

    @property
    def _is_released(self) -> bool:
        """Whether all was paid for when the model was fitted."""
        return get(self._model.method).released

    def _current(self) -> Session:
        """Return a session that knows what was drawn so far."""
        if self._live is not None and self.path is None:
            return self._live
        path = self.path or Path()
        with locked(path):
            return open_saved(path, Request(method=None)).session  # type: ignore[arg-type]

    def __repr__(self) -> str:
        file = "" if self.path is None else f"{self.path}: "
        left = self.rows_left
        rows = "any number of rows" if left is None else f"{left:,} rows left"
        return (
            f"{file}{self._model.method} model of {len(self.schema.features)} features, {rows}, "
            f"guarantee: {self.ledger.guarantee.kind}"
        )


def fitted_model(settled: Settled, stream: RandomStream, read: Read) -> FittedModel:
    """Reserve what a model can cost, fit it, and note what it has cost.

    Parameters
    ----------
    read
        Fits the table.
    """
    if settled.plan is None:
        raise BudgetError(f"--method {settled.request.method} is fitted under a budget; state one")
    # What is sampled later counts as well, so that a total is reserved.
    with booked_run(replace(settled, saved=True), "fit") as booking:
        model, finish = read(settled, booking)
        plan, threads = model.plan or settled.plan, settled.request.thread_count
        session = Session(model, plan, stream, threads=threads)
        booking.settle(session.ledger)
    return FittedModel(session, settled.request, finish)


def reading(data: Any, source: Any, stream: RandomStream, progress: bool | Progress | None) -> Read:
    """Return what fits a table of this machine.

    Parameters
    ----------
    data
        The table as the caller has it; rows that are kept keep their names.
    source
        The same with what is said of a database.
    """

    def read(settled: Settled, booking: Booking) -> tuple[Model, Finish]:
        replaced = settled.request.synthesize
        # Drawn values go beside kept ones row by row: all must come from one execution.
        table = held(source) if replaced else source
        with shown(progress) as told, booked_table(table, settled.schema, booking) as reader:
            model = fit_table(reader, settled, stream, progress=told)
            kind = reader.frame_kind
            if not replaced:
                # Of the fitted table only the types are kept, and none of its rows.
                like = data[:0] if frame_kind(data) in ("pandas", "polars") else None
                return model, lambda frame: to_kind(frame, kind, like=like)
            put_back = putting_back(reader, model.schema, replaced)
            kept = data if kind else None
            return model, lambda frame: with_index(to_kind(put_back(frame), kind, like=kept), data)

    return read


def _sampled(
    session: Session, rows: int, datasets: int | None, request: Request, finish: Finish
) -> Any:
    """Draw tables as the caller has them; a single one comes completed, if that was asked for."""
    if datasets is None and request.imputations is not None:
        raise ParameterError("--imputations requires --datasets; one table is completed once")
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


_NOT_HERE = (
    "from_tables",
    *("engine", "master", "resume", "table", "query", "query_is_rowwise"),
    *("complete", "imputations"),
)


class PeGS:
    """Fit once, sample as long as the budget lasts; any method of `pegsynth.synthesize`.

    Parameters
    ----------
    method
        ``auto`` takes the method with the smallest predicted error, and ``pegs`` where no
        total epsilon is stated; or the name of one.
    rows
        The most rows ever to be sampled; needed with `epsilon` for methods whose price
        grows with rows.
    seed
        For tests and studies: reproducible, and without any guarantee.
    **options
        The budget and the options of `pegsynth.synthesize`; docs/options.md lists them.
    """

    @keywords(Request, without=_NOT_HERE, more=registered_options)
    def __init__(self, **options: Any) -> None:
        self._given = options
        self._request = Request.of(**options)
        # Whatever does not need the schema is refused at once.
        self._request.budget  # noqa: B018
        if self._request.method != AUTO:
            self._request.options_for(get(self._request.method))
        self._stream = self._request.stream()
        self._fitted: FittedModel | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return every option as it was given, or its default."""
        plain = Request()
        names = [name for name in declared(Request) if name not in _NOT_HERE]
        return {name: self._given.get(name, getattr(plain, name)) for name in names}

    def set_params(self, **options: Any) -> Self:
        """Change options; what was fitted before is forgotten."""
        refuse_unknown(options, set(self.get_params()), "PeGS")
        self.__init__(**{**self._given, **options})  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given.items())
        fitted = "" if self._fitted is None else f", fitted: {self.ledger.guarantee.kind}"
        return f"PeGS({given}){fitted}"

    @property
    def how(self) -> How | None:
        """How codes become values."""
        return self._request.decode

    @python_names()
    def fit(
        self,
        data: Any,
        schema: Schema | str | Path,
        *,
        table: str | None = None,
        query: str | None = None,
        query_is_rowwise: bool = False,
        progress: bool | Progress | None = None,
    ) -> Self:
        """Fit a table; return this estimator.

        `table`, `query` and `query_is_rowwise` go with the address of a database; `progress`
        is as for `pegsynth.synthesize`.
        """
        source = named_source(data, table=table, query=query, rowwise=query_is_rowwise)
        check_threads()
        settled = settle(schema, self._request, data=data, rows_later=True)
        read = reading(data, source, self._stream, progress)
        self._fitted = fitted_model(settled, self._stream, read)
        return self

    @python_names()
    def fit_with(
        self,
        read: Callable[[Settled, RandomStream, Callable[[], None]], Model],
        schema: Schema | str | Path,
        *,
        able: Able | None = None,
    ) -> Self:
        """Settle a plan and let an engine read the table; return this estimator.

        Parameters
        ----------
        read
            Fits the table, and calls its third argument before the first row is read.
        able
            Refuses methods that ``auto`` must not take.
        """
        check_threads()
        settled = settle(schema, self._request, saved=True, rows_later=True, able=able)
        self._fitted = fitted_model(
            settled,
            self._stream,
            lambda settled, booking: (
                read(settled, self._stream, booking.begin),
                lambda frame: to_kind(frame, None),
            ),
        )
        return self

    @python_names()
    def sample(self, rows: int) -> Any:
        """Return a synthetic table of the kind that was fitted."""
        return self.model.sample(rows)

    @property
    def model(self) -> FittedModel:
        """The fitted model."""
        if self._fitted is None:
            raise ParameterError("this PeGS has not been fitted; call fit(data, schema) first")
        return self._fitted

    @property
    def ledger(self) -> Ledger:
        """What all samples from this model together promise."""
        return self.model.ledger

    @property
    def rows_left(self) -> int | None:
        """Rows the budget still covers; None when there is no limit."""
        return self.model.rows_left

    @property
    def session(self) -> Session:
        """The model, its plan and what was drawn so far."""
        return self.model.session


@python_names()
def supported(model: FittedModel | str | Path, formula: str) -> Support:
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
    from pegsynth.methods.released import supported as answer

    model = _opened(model)
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
    model: FittedModel | str | Path,
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
    from pegsynth.methods.released import asked_frame

    model = _opened(model)
    return asked_frame(model.content, model.schema, model.plan, of, level=level, threads=threads)


def _opened(model: FittedModel | str | Path) -> FittedModel:
    return FittedModel(Path(model)) if isinstance(model, str | Path) else model
