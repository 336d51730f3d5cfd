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
from pegsynth.privacy import Ledger
from pegsynth.processors import usable_processors
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.decoding import How
from pegsynth.synthesizers.model import Model, fit
from pegsynth.synthesizers.options import DrawOptions, FitOptions
from pegsynth.synthesizers.recipe import Recipe, make_recipe
from pegsynth.synthesizers.session import Session
from pegsynth.synthesizers.synthesize import (
    budget_for,
    check_reviewed,
    decoded,
    decoder_of,
    honest_seed_pool,
)

_FIT_OPTIONS = ("heads", "tail_bits", "order", "order_rows")
_BUDGET = ("epsilon", "delta", "epsilon_per_row", "l", "alpha", "shares")


class PeGS:
    """A perturbed Gibbs sampler of the PeGS family.

    Parameters
    ----------
    method
        ``pegs``, ``pegs-rs`` or ``pegs-capped``.
    rows
        The most rows ever to be sampled; needed with `epsilon` for methods whose price
        grows with rows.
    seed
        For tests and studies: reproducible, and without any guarantee.
    **options
        The budget and the options of `pegsynth.synthesize`.
    """

    def __init__(
        self,
        *,
        method: str = "pegs",
        rows: int | None = None,
        seed: int | None = None,
        threads: int | None = None,
        decode: How = "values",
        accept_unreviewed_schema: bool = False,
        **options: Any,
    ) -> None:
        stated = {name: options.pop(name) for name in _BUDGET if name in options}
        budget = {name: value for name, value in stated.items() if value is not None}
        fitting = {name: options.pop(name) for name in _FIT_OPTIONS if name in options}
        self._budget = budget_for(method, **budget)
        self._fit_options = FitOptions(**fitting)
        try:
            self._draw_options = DrawOptions(rows, method, **options)  # type: ignore[arg-type]
        except TypeError:
            unknown = sorted(set(options) - set(DrawOptions.__dataclass_fields__))
            raise ParameterError(f"PeGS has no option {', '.join(unknown)}") from None
        self.how: How = decode
        self._threads = threads or usable_processors()
        self.accept_unreviewed = accept_unreviewed_schema
        self._stream = RandomStream(seed)
        self._session: Session | None = None
        self._kind: Any = None
        self._like: Any = None

    def fit(
        self,
        data: Any,
        schema: Schema | str | Path,
        *,
        table: str | None = None,
        query: str | None = None,
        query_is_rowwise: bool = False,
    ) -> Self:
        """Count a table; return this estimator.

        `table`, `query` and `query_is_rowwise` go with the address of a database.
        """
        origin = named_source(data, table=table, query=query, rowwise=query_is_rowwise)
        self._kind = frame_kind(data)
        # An empty table keeps the caller's types without keeping the caller's data.
        self._like = data[:0] if self._kind in ("pandas", "polars") else None

        def count(book: Schema, recipe: Recipe, stream: RandomStream) -> Model:
            with open_table(origin) as reader:
                return fit(
                    reader,
                    book,
                    recipe,
                    stream,
                    accept_unreviewed=self.accept_unreviewed,
                    threads=self._threads,
                )

        return self.fit_with(count, schema, data=data)

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
        check_reviewed(book, self._budget, accept=self.accept_unreviewed, source="the schema")
        pool = honest_seed_pool(data, self._draw_options.seed_pool)
        draw = replace(self._draw_options, seed_pool=pool)
        recipe = make_recipe(book, self._budget, self._fit_options, draw)
        model = count(book, recipe, self._stream)
        self._session = Session(model, model.recipe or recipe, self._stream, threads=self._threads)
        return self

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
