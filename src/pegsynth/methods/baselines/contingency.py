"""`contingency`: rows of the table or uniform ones, or cells of a log-linear fit (R8, R9).

The M-way table with alpha virtual rows in every cell is one entry, so a draw from it is a
row of the data with probability N/(N + A) and otherwise uniform in every feature, with
A = alpha C_1 .. C_M. Both the choice and the row follow from one exact integer (R15). No
cell is ever listed: the rows themselves are the table, and the number of cells, 6e17 for
the Adult census table, is only ever the bound of an integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.mechanisms.answers import drawn_from
from pegsynth.mechanisms.noise import Below
from pegsynth.methods.base import Fitted, Fitting, Model, Sampler
from pegsynth.methods.baselines.bootstrap import ChunkSampler, RowsFit, obeying
from pegsynth.methods.baselines.loglinear import check_alpha, check_size, fit_loglinear
from pegsynth.methods.drawn_features import clamped_codes
from pegsynth.methods.pricing import PricedMethod, PricedPlan, need_rows
from pegsynth.methods.registry import ContingencyOptions
from pegsynth.methods.seed_rows import Codes
from pegsynth.privacy import Budget, ContingencyDraws, Draws, ImputationDraws
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.random import RandomStream, Words
from pegsynth.schema import Schema
from pegsynth.schema.rules import Rule, conditioned

if TYPE_CHECKING:
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.privacy.assumptions import Parameters

BATCH_ROWS = 1 << 13
MOST_ATTEMPTS = 10_000
_MOST_DIGITS = 1 << 62


@dataclass(frozen=True)
class ContingencyTable:
    """The M-way table of counts, held as the rows that it counts.

    Parameters
    ----------
    codes
        All rows of the data, one line each. Confidential.
    category_counts
        C_1 .. C_M, public.
    """

    codes: AnyCodes
    category_counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.codes.shape[1] != len(self.category_counts):
            raise ParameterError("the contingency table needs one column of codes per feature")

    @property
    def cells(self) -> int:
        """Number of cells, C_1 .. C_M."""
        return math.prod(self.category_counts)

    def draw(
        self,
        rows: int,
        *,
        numerator: int,
        scale: int,
        words: Below,
        rules: Sequence[Rule] = (),
    ) -> Codes:
        """Return `rows` independent draws from the perturbed table.

        Under rules the cells that break one have weight 0 and all others keep theirs: rows
        of the data that break a rule are left out of the sum, and a uniform row that breaks
        one is thrown away together with the choice that led to it. What remains is exactly
        the distribution restricted to the allowed cells, which is one draw from one
        restricted entry (R18). A published row therefore costs eta, however many attempts
        stand behind it: no attempt that was thrown away is ever shown, and no cell that a
        neighbour could change answers more than once per row.

        Parameters
        ----------
        numerator, scale
            alpha = numerator/scale virtual rows in every cell; 0 draws from the counts
            alone, and uniformly when there are none.
        words
            Source of exact integers of any size.
        rules
            Public rules, which no row drawn breaks.

        Raises
        ------
        SchemaError
            When hardly any uniform row obeys the rules. It is decided by the rules and by
            coins of their own, never by the data.
        """
        if rows < 0 or numerator < 0 or scale < 1:
            raise ParameterError("rows and alpha must not be negative, and the scale at least 1")
        if rules:
            self.check_rules(rules, words)
        valid = self.codes[obeying(self.codes, rules)] if rules else self.codes
        out = np.zeros((rows, len(self.category_counts)), dtype=np.uint32)
        for first in range(0, rows, BATCH_ROWS):
            batch = out[first : first + BATCH_ROWS]
            missing = np.arange(len(batch))
            while len(missing):
                batch[missing] = self._draw(valid, len(missing), numerator, scale, words)
                if not rules:
                    break
                missing = missing[~obeying(batch[missing], rules)]
        return out

    def _draw(self, valid: AnyCodes, count: int, numerator: int, scale: int, words: Below) -> Codes:
        """Draw rows by one integer each below s N + p C_1 .. C_M (R9)."""
        held = scale * len(valid)
        virtual = numerator
        if not held and not numerator:
            virtual = 1  # alpha = 0 and no rows: the public distribution
        bound = held + virtual * self.cells
        values = [words.below(bound) for _ in range(count)]
        rows = np.empty((count, len(self.category_counts)), dtype=np.uint32)
        real = np.array([value < held for value in values], dtype=bool)
        chosen = [value // scale for value in values if value < held]
        rows[real] = valid[np.array(chosen, dtype=np.int64)]
        cells = [(value - held) // virtual for value in values if value >= held]
        rows[~real] = decode_cells(cells, self.category_counts)
        return rows

    def check_rules(self, rules: Sequence[Rule], words: Below) -> None:
        """Refuse rules that hardly any row obeys, by looking at uniform rows alone."""
        size = 1
        tried = 0
        while tried < MOST_ATTEMPTS:
            cells = [words.below(self.cells) for _ in range(min(size, MOST_ATTEMPTS - tried))]
            if obeying(decode_cells(cells, self.category_counts), rules).any():
                return
            tried += len(cells)
            size *= 2
        raise SchemaError(
            f"none of {MOST_ATTEMPTS} rows of independent features obeys the schema's rules, so "
            "the contingency table cannot be drawn from; use a method of the pegs family"
        )


def decode_cells(cells: Sequence[int], category_counts: Sequence[int]) -> Codes:
    """Turn cell numbers of any size into rows: the digits to the radices C_1 .. C_M.

    The last feature turns fastest. Features are taken off in groups whose product fits in
    a machine word, so that few steps handle integers of arbitrary size.
    """
    rows = np.empty((len(cells), len(category_counts)), dtype=np.uint32)
    rest = list(cells)
    end = len(category_counts)
    while end:
        start, size = end, 1
        while start and size * category_counts[start - 1] < _MOST_DIGITS:
            start -= 1
            size *= category_counts[start]
        group = np.array([cell % size for cell in rest], dtype=np.int64)
        rest = [cell // size for cell in rest]
        _decode_group(group, category_counts[start:end], rows[:, start:end])
        end = start
    return rows


def _decode_group(group: NDArray[np.int64], counts: Sequence[int], rows: Codes) -> None:
    for feature in reversed(range(len(counts))):
        group, rows[:, feature] = np.divmod(group, counts[feature])


class Contingency(PricedMethod[ContingencyOptions, PricedPlan, RowsFit]):
    """The table of all cells with virtual rows in each."""

    name = "contingency"
    summary = "the contingency table of all features with virtual rows in every cell"
    options = ContingencyOptions
    plan_type = PricedPlan

    def settle(
        self,
        schema: Schema,
        budget: Budget,
        options: ContingencyOptions,
        *,
        scale: int = DEFAULT_SCALE,
    ) -> PricedPlan:
        """Find the smallest alpha; refuse a table that could not be listed, or drawn from."""
        need_rows(self.name, options, total=budget.epsilon is not None)
        plan = self.price(schema, budget, options, scale=scale)
        given = clamped_codes(schema, options)
        counts = _left_open(schema, given)
        if options.log_linear:
            check_size(counts)
            check_alpha(math.prod(counts), plan.numerator, scale)
        elif rules := conditioned(schema.rules, given):
            table = ContingencyTable(np.empty((0, len(counts)), dtype=np.uint32), counts)
            table.check_rules(rules, RandomStream().substream())
        return plan

    def shape(self, schema: Schema, options: ContingencyOptions) -> Draws:
        """One draw per row."""
        size = self.drawn_size(schema, options)
        # A fitted table answers like any fitted probability vector, one draw per row (R8).
        if options.log_linear:
            return ImputationDraws.shape(**size | {"features": 1})
        return ContingencyDraws.shape(**size)

    def per_row(self, shape: Draws) -> int | None:
        """Return 1: a row is one draw of a cell."""
        return 1

    def fit(self, plan: PricedPlan, work: Fitting) -> Fitted[PricedPlan, RowsFit]:
        """Keep the rows."""
        return Fitted(RowsFit(work.table.rows()), plan, work.ledger)

    def sampler(self, model: Model, plan: PricedPlan, *, threads: int) -> Sampler:
        """Condition the table on the given values, exactly: only matching rows remain."""
        schema = model.schema
        clamped = clamped_codes(schema, plan.options)
        rules, counts = conditioned(schema.rules, clamped), _left_open(schema, clamped)
        kind = fit_loglinear if plan.options.log_linear else ContingencyTable

        def table(stream: RandomStream) -> Callable[[int, Words], Codes]:
            codes = model.content.matching(clamped).astype(np.uint32)
            codes[:, list(clamped)] = 0
            fitted = kind(codes, counts)

            def draw(count: int, words: Words) -> Codes:
                held = drawn_from(fitted, lambda: kind(codes[:0], counts), stream, rows=count)
                # One big integer per row decides between a row of the table and a uniform one.
                drawn = held.draw(
                    count, numerator=plan.numerator, scale=plan.scale, words=words, rules=rules
                )
                for feature, code in clamped.items():
                    drawn[:, feature] = code
                return drawn

            return draw

        return ChunkSampler(schema, table)

    def declared_options(self, plan: PricedPlan) -> Parameters:
        """Return whether the table is smoothed."""
        return {"log_linear": plan.options.log_linear}

    def store(self, content: RowsFit) -> StoredModel:
        """Return the rows."""
        return content.stored()

    def load(self, stored: StoredModel, schema: Schema, plan: PricedPlan | None) -> RowsFit:
        """Rebuild the rows."""
        return RowsFit.loaded(stored)


def _left_open(schema: Schema, given: Mapping[int, int]) -> tuple[int, ...]:
    """Return the number of categories of every feature; those that are given have one left."""
    return tuple(1 if i in given else count for i, count in enumerate(schema.category_counts))


CONTINGENCY = Contingency()
