"""Sequential draws from fitted conditional models, perturbed or not (R8).

A model gives, for a batch of rows as they stand, the probabilities of one feature given
all others. A sweep draws the targets in order, each for all rows of a chunk at once. With
alpha = numerator/scale every draw is eta-DP whatever the model and however it was fitted,
so n rows of S sweeps over M targets cost n S M eta (R8); with numerator 0 they cost what the
model is worth, and the ledger says "none".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError, ParameterError, SchemaError
from pegsynth.kernels.fitted_draws import LANE, STUCK, draw_categories
from pegsynth.kernels.sampling_arrays import RuleTables
from pegsynth.mechanisms.answers import drawn_from
from pegsynth.mechanisms.rule_patterns import rule_tables
from pegsynth.methods.gibbs.chains import CHUNK_ROWS
from pegsynth.methods.prior import MOST_TOTAL
from pegsynth.methods.seed_rows import WORD_BITS, Codes, SeedPool
from pegsynth.random import RandomStream, Words
from pegsynth.schema.rules import Rule

_SLACK = 64
_TOLERANCE = 1e-5

Probabilities = NDArray[np.float64]


class ConditionalModel(Protocol):
    """A fitted model of every feature given the others."""

    def probabilities(self, target: int, rows: Codes) -> Probabilities:
        """Return P(target = j | the other features of the row): one line per row.

        The value that a row holds in column `target` must not matter.
        """
        ...


@dataclass(frozen=True)
class FlatModel:
    """Every category is as likely as any other, as a table without rows would have it."""

    category_counts: Sequence[int]

    def probabilities(self, target: int, rows: Codes) -> Probabilities:
        """Return the same line for every row."""
        count = self.category_counts[target]
        return np.full((len(rows), count), 1.0 / count)


def check_alpha(categories: int, numerator: int, scale: int) -> None:
    """Refuse virtual rows that do not fit in 64 bits over all categories of a feature."""
    if scale + categories * numerator >= MOST_TOTAL:
        raise ParameterError(
            f"alpha = {numerator}/{scale} does not fit in 64 bits; raise epsilon or draw fewer rows"
        )


@dataclass(frozen=True)
class Sweeps:
    """How rows are drawn: which features, in which order, how often, and with how much noise.

    Parameters
    ----------
    targets
        Features to draw, in sweep order; all others keep their value.
    numerator, scale
        alpha = numerator/scale. Weights are floor(scale g_j) + numerator, never rounded to
        nearest (R8); where all are 0 the allowed categories are equally likely.
    rules
        Public rules: a category that the rest of the row forbids has weight 0 (R18).
    sweeps
        Sweeps per row, S; only the rows after the last one are returned.
    """

    targets: tuple[int, ...]
    category_counts: tuple[int, ...]
    numerator: int
    scale: int
    rules: Sequence[Rule] = ()
    sweeps: int = 1
    tables: RuleTables = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_alpha(max(self.category_counts), self.numerator, self.scale)
        object.__setattr__(self, "tables", rule_tables(self.rules, self.category_counts))

    def swept(self, model: ConditionalModel, start_rows: Codes, words: Words) -> Codes:
        """Draw the targets of every row in order, given the other features as they stand.

        Parameters
        ----------
        start_rows
            Where the rows start. Under a guarantee never rows of the data (R10).
        """
        rows = np.array(start_rows, dtype=np.uint32, order="C")
        if not len(rows):
            return rows
        for _ in range(self.sweeps):
            for target in self.targets:
                self._draw(model, rows, target, words)
        return rows

    def sampled(
        self,
        model: ConditionalModel,
        seeds: SeedPool,
        rows: int,
        stream: RandomStream,
        *,
        chunk: int = CHUNK_ROWS,
    ) -> Iterator[Codes]:
        """Yield `rows` rows as chunks: seed rows, then sweeps."""
        held = drawn_from(model, lambda: FlatModel(self.category_counts), stream, rows=rows)
        return in_chunks(
            rows,
            stream,
            lambda count, words: self.swept(held, seeds.draw(count, words.take), words),
            chunk=chunk,
        )

    def _draw(self, model: ConditionalModel, rows: Codes, target: int, words: Words) -> None:
        """Draw one feature of all rows (R8, R18)."""
        shape = (len(rows), self.category_counts[target])
        fitted = _checked(model.probabilities(target, rows), shape)
        state = np.zeros(3, dtype=np.int64)
        while not draw_categories(
            rows,
            target,
            fitted,
            state,
            np.uint64(self.scale),
            np.uint64(self.numerator),
            self.tables,
            words.take(len(rows) - int(state[LANE]) + _SLACK),
            WORD_BITS,
        ):
            if state[STUCK]:
                raise SchemaError(
                    f"the schema's rules leave feature {target} no category in a row; start from "
                    "rows that obey the rules"
                )


def in_chunks(
    rows: int,
    stream: RandomStream,
    draw: Callable[[int, Words], Codes],
    *,
    chunk: int = CHUNK_ROWS,
) -> Iterator[Codes]:
    """Yield `rows` independent rows in chunks, each from a numbered keystream of its own.

    The keystreams are reserved at once, so the rows do not depend on when they are read.
    """
    if rows < 0 or chunk < 1:
        raise ParameterError("rows must not be negative, and a chunk holds at least one")
    chunks = -(-rows // chunk)
    first = stream.substreams(chunks)
    return (
        draw(min(chunk, rows - number * chunk), stream.substream(first + number))
        for number in range(chunks)
    )


def _checked(probabilities: Probabilities, shape: tuple[int, int]) -> Probabilities:
    """Refuse what is no line of probabilities per row."""
    fitted = np.ascontiguousarray(probabilities, dtype=np.float64)
    # A sum that is not a number fails the comparison, too.
    if (
        fitted.shape != shape
        or fitted.min() < 0
        or not (np.abs(fitted.sum(axis=1) - 1) <= _TOLERANCE).all()
    ):
        raise ModelError("a fitted model gave no probabilities for some row; fit it again")
    return fitted
