"""`PeGS`: fit once, sample as long as the budget lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.forks import check_threads
from pegsynth.io.frames import frame_kind, to_kind
from pegsynth.io.read import named_source, open_table
from pegsynth.option_kinds import keywords, python_names, refuse_unknown
from pegsynth.options import How
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, shown
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.synthesizers.model import Model, fit
from pegsynth.synthesizers.recipe import Recipe
from pegsynth.synthesizers.request import Request
from pegsynth.synthesizers.session import Session
from pegsynth.synthesizers.synthesize import decoded, decoder_of, honest_seed_pool

_NOT_HERE = ("engine", "master", "resume", "table", "query", "query_is_rowwise")


class PeGS:
    """Fit once, sample as long as the budget lasts; any method of `pegsynth.synthesize`.

    Parameters
    ----------
    method
        ``pegs`` unless another one is named.
    rows
        The most rows ever to be sampled; needed with `epsilon` for methods whose price
        grows with rows.
    seed
        For tests and studies: reproducible, and without any guarantee.
    **options
        The budget and the options of `pegsynth.synthesize`; docs/options.md lists them.
    """

    @keywords(Request, without=_NOT_HERE)
    def __init__(self, **options: Any) -> None:
        self._given = options
        self._request = Request(**options)
        # Whatever does not need the schema is refused at once.
        self._request.draw_options, self._request.fit_options, self._request.budget  # noqa: B018
        self._stream = RandomStream(self._request.seed)
        self._session: Session | None = None
        self._kind: Any = None
        self._like: Any = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return every option as it was given, or its default."""
        plain = Request()
        names = [name for name in plain.__dataclass_fields__ if name not in _NOT_HERE]
        return {name: self._given.get(name, getattr(plain, name)) for name in names}

    def set_params(self, **options: Any) -> Self:
        """Change options; what was fitted before is forgotten."""
        refuse_unknown(options, set(self.get_params()), "PeGS")
        self.__init__(**{**self._given, **options})  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given.items())
        fitted = "" if self._session is None else f", fitted: {self.ledger.guarantee.kind}"
        return f"PeGS({given}){fitted}"

    @property
    def how(self) -> How:
        """How codes become values."""
        return self._request.decode

    @property
    def accept_unreviewed(self) -> bool:
        """Whether a schema that nobody reviewed is taken."""
        return self._request.accept_unreviewed_schema

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
        """Count a table; return this estimator.

        `table`, `query` and `query_is_rowwise` go with the address of a database; `progress`
        is as for `pegsynth.synthesize`.
        """
        origin = named_source(data, table=table, query=query, rowwise=query_is_rowwise)
        self._kind = frame_kind(data)
        # An empty table keeps the caller's types without keeping the caller's data.
        self._like = data[:0] if self._kind in ("pandas", "polars") else None

        def count(book: Schema, recipe: Recipe, stream: RandomStream) -> Model:
            with shown(progress) as told, open_table(origin) as reader:
                self._kind = reader.frame_kind
                return fit(
                    reader,
                    book,
                    recipe,
                    stream,
                    accept_unreviewed=self.accept_unreviewed,
                    threads=self._request.thread_count,
                    progress=told,
                )

        return self.fit_with(count, schema, data=data)

    @python_names()
    def fit_with(
        self,
        count: Callable[[Schema, Recipe, RandomStream], Model],
        schema: Schema | str | Path,
        *,
        data: Any = None,
    ) -> Self:
        """Settle the recipe and let an engine count; return this estimator.

        Parameters
        ----------
        data
            The table, if it may be a file that is also named as the seed pool.
        """
        check_threads()
        book = schema if isinstance(schema, Schema) else Schema.load(schema)
        pool = honest_seed_pool(data, self._request.seed_pool)
        recipe = replace(self._request, seed_pool=pool).recipe(book, source="the schema")
        model = count(book, recipe, self._stream)
        self._session = Session(
            model, model.recipe or recipe, self._stream, threads=self._request.thread_count
        )
        return self

    @python_names()
    def sample(self, rows: int) -> Any:
        """Return a synthetic table of the kind that was fitted."""
        session = self.session
        (chunks,) = session.draw(rows)
        decoder = decoder_of(session.model, self.how)
        frame = pl.concat(decoded(decoder, chunks, self._stream))
        return to_kind(frame, self._kind, like=self._like)

    @property
    def ledger(self) -> Ledger:
        """What all samples from this model together promise."""
        return self.session.ledger

    @property
    def rows_left(self) -> int | None:
        """Rows the budget still covers; None when there is no limit."""
        return self.session.left()

    @property
    def session(self) -> Session:
        """The model, its recipe and what was drawn so far."""
        if self._session is None:
            raise ParameterError("this PeGS has not been fitted; call fit(data, schema) first")
        return self._session
