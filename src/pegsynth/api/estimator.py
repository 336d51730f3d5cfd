"""`PeGS`: an estimator in the manner of scikit-learn; fit once, sample while the budget lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pegsynth.api.fitted import Finish, FittedModel, as_fitted, beside_kept
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods import get
from pegsynth.methods.base import Model
from pegsynth.methods.session import Session
from pegsynth.options import AUTO, How
from pegsynth.options._kinds import declared, keywords, python_names, refuse_unknown
from pegsynth.pipeline.fitting import fit as fit_table
from pegsynth.pipeline.request import Able, Request, registered_options
from pegsynth.pipeline.running import booked_run, booked_table
from pegsynth.pipeline.settling import Settled, settle
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, shown
from pegsynth.random import RandomStream
from pegsynth.runtime import check_threads
from pegsynth.schema import Schema
from pegsynth.storage.book.booking import Booking
from pegsynth.tables.streams import held
from pegsynth.tables.table_input import named_source

_NOT_HERE = (
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
        origin = named_source(data, table=table, query=query, rowwise=query_is_rowwise)

        def read(settled: Settled, stream: RandomStream, booking: Booking) -> tuple[Model, Finish]:
            replaced = self._request.synthesize
            # Drawn values go beside kept ones row by row: all must come from one execution.
            table = held(origin) if replaced else origin
            with (
                shown(progress) as told,
                booked_table(table, settled.schema, booking) as reader,
            ):
                model = fit_table(reader, settled, stream, progress=told)
                if replaced:
                    return model, beside_kept(data, reader, model.schema, replaced)
                return model, as_fitted(data, reader.frame_kind)

        return self._settled_fit(read, schema, data, saved=False)

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

        def begun(settled: Settled, stream: RandomStream, booking: Booking) -> tuple[Model, Finish]:
            return read(settled, stream, booking.begin), as_fitted(None, None)

        return self._settled_fit(begun, schema, None, saved=True, able=able)

    def _settled_fit(
        self,
        read: Callable[[Settled, RandomStream, Booking], tuple[Model, Finish]],
        schema: Schema | str | Path,
        data: Any,
        *,
        saved: bool,
        able: Able | None = None,
    ) -> Self:
        check_threads()
        request = self._request
        settled = settle(schema, request, data=data, saved=saved, rows_later=True, able=able)
        if settled.plan is None:
            raise BudgetError("rows are drawn under a budget; state one")
        # What is sampled later counts as well, so that a total is reserved.
        with booked_run(replace(settled, saved=True), "fit") as booking:
            model, finish = read(settled, self._stream, booking)
            session = Session(
                model, model.plan or settled.plan, self._stream, threads=request.thread_count
            )
            booking.settle(session.ledger)
        self._fitted = FittedModel(session, settled.request, finish)
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
