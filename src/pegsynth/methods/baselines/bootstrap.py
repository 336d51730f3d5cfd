"""`bootstrap`: original rows drawn with replacement; the baseline of attacks, no guarantee.

Every synthetic row is a row of the data. Indices are exact uniform integers (R15), so that
nothing but the method itself separates it from the others. What methods that keep the rows of the
table have in common stands here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.methods.base import Fitted, Fitting, Method, Model, Plan, Rows, Sampler
from pegsynth.methods.baselines.sequential_draws import in_chunks
from pegsynth.methods.drawn_features import clamped_codes
from pegsynth.methods.pricing import unit_bound
from pegsynth.methods.registry import BootstrapOptions
from pegsynth.methods.seed_rows import Codes, FilePool
from pegsynth.methods.stored_model import StoredModel, StoredPlan, missing_part
from pegsynth.privacy import Budget, Event, NotPrivate
from pegsynth.random import RandomStream, Words
from pegsynth.schema import Schema
from pegsynth.schema.rules import Rule, conditioned

if TYPE_CHECKING:
    DrawChunk = Callable[[int, Words], Codes]

TABLE_CHUNK = 1 << 17


@dataclass(frozen=True)
class RowsFit:
    """All rows of the table; confidential."""

    rows: AnyCodes = field(repr=False)

    def matching(self, clamped: Mapping[int, int]) -> AnyCodes:
        """Return the rows that hold the given values."""
        held = [self.rows[:, feature] == code for feature, code in clamped.items()]
        return self.rows[np.logical_and.reduce(held)] if held else self.rows

    def stored(self) -> StoredModel:
        """Return what a model file holds of the rows."""
        return StoredModel(rows=self.rows)

    @classmethod
    def loaded(cls, stored: StoredModel) -> RowsFit:
        """Rebuild the rows."""
        if stored.rows is None:
            raise missing_part()
        return cls(stored.rows)


class ChunkSampler(Sampler):
    """Draws every table chunk by chunk, each chunk from random words of its own.

    Parameters
    ----------
    table
        Makes what draws the chunks of one table.
    """

    def __init__(self, schema: Schema, table: Callable[[RandomStream], DrawChunk]) -> None:
        super().__init__()
        self._dtype, self._drawing = schema.code_dtype, table

    def table(self, rows: int, stream: RandomStream) -> Rows:
        """Return one table."""
        chunks = in_chunks(rows, stream, self._drawing(stream), chunk=TABLE_CHUNK)
        return (chunk.astype(self._dtype) for chunk in chunks)


def obeying(codes: AnyCodes, rules: Sequence[Rule]) -> NDArray[np.bool_]:
    """Say for every row whether it obeys all rules (R18)."""
    obeyed = np.ones(len(codes), dtype=bool)
    for rule in rules:
        obeyed &= ~rule.broken_by(codes)
    return obeyed


@dataclass(frozen=True)
class BootstrapRows:
    """The rows of the data.

    Parameters
    ----------
    codes
        All rows, one line each. Confidential.
    """

    codes: AnyCodes

    def draw(self, rows: int, *, words: Words, rules: Sequence[Rule] = ()) -> Codes:
        """Return `rows` original rows, drawn with replacement among those that obey the rules."""
        valid = self.codes[obeying(self.codes, rules)] if rules else self.codes
        if not len(valid):
            raise SchemaError(
                "the table holds no row that obeys the schema's rules and the values of --where, "
                "so there is none to draw; check both"
            )
        return FilePool(valid.astype(np.uint32)).draw(rows, words.take)


@dataclass(frozen=True, kw_only=True)
class BootstrapPlan(Plan):
    """A bootstrap, settled: nothing but what the ledger says of it."""

    said: tuple[Event, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """That no result covers it."""
        return self.said


class Bootstrap(Method[BootstrapOptions, BootstrapPlan, RowsFit]):
    """Original rows."""

    name = "bootstrap"
    summary = "original rows drawn with replacement, the baseline of attacks; no guarantee"
    options = BootstrapOptions
    has_proof = False

    def settle(self, schema: Schema, budget: Budget, options: BootstrapOptions) -> BootstrapPlan:
        """Say that nothing is promised."""
        said = (*unit_bound(schema), NotPrivate.because("no-proof", detail=self.name))
        return BootstrapPlan(method=self.name, options=options, budget=budget, said=said)

    def fit(self, plan: BootstrapPlan, work: Fitting) -> Fitted[BootstrapPlan, RowsFit]:
        """Keep the rows."""
        return Fitted(RowsFit(work.table.rows()), plan, work.ledger)

    def sampler(self, model: Model, plan: BootstrapPlan, *, threads: int) -> Sampler:
        """Draw among the rows that hold the given values."""
        schema = model.schema
        clamped = clamped_codes(schema, plan.options)
        conditioned(schema.rules, clamped)  # refuses values that a rule forbids together
        held = BootstrapRows(model.content.matching(clamped))
        return ChunkSampler(
            schema, lambda _: lambda count, words: held.draw(count, words=words, rules=schema.rules)
        )

    def store(self, content: RowsFit) -> StoredModel:
        """Return the rows."""
        return content.stored()

    def load(self, stored: StoredModel, schema: Schema, plan: BootstrapPlan | None) -> RowsFit:
        """Rebuild the rows."""
        return RowsFit.loaded(stored)

    def load_plan(self, stored: StoredPlan, schema: Schema, model: StoredModel) -> BootstrapPlan:
        """Rebuild a plan."""
        return BootstrapPlan(
            method=self.name, options=stored.options, budget=stored.budget, said=stored.events
        )


BOOTSTRAP = Bootstrap()
