"""Sequential draws from fitted conditional models, perturbed or not (R8).

A model gives, for a batch of rows as they stand, the probabilities of one feature given
all others. A sweep draws the targets in order, each for all rows of a chunk at once. With
alpha = numerator/scale every draw is eta-DP whatever the model and however it was fitted,
so n rows of S sweeps over M targets cost n S M eta (R8); with numerator 0 they cost what the
model is worth, and the ledger says "none".

Rows from conditional models: sequential draws from seed rows, perturbed for `pmi` (R8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError, ParameterError, SchemaError
from pegsynth.kernels.fitted_draws import LANE, STUCK, draw_categories
from pegsynth.kernels.sampling_arrays import RuleTables
from pegsynth.mechanisms.answers import drawn_from
from pegsynth.mechanisms.rule_patterns import rule_tables
from pegsynth.methods.base import Model, Sampler
from pegsynth.methods.baselines.conditional_models import fit_conditionals
from pegsynth.methods.drawn_features import drawn_features
from pegsynth.methods.gibbs.chains import CHUNK_ROWS
from pegsynth.methods.gibbs.seeds import WORD_BITS, Codes, SeedPool
from pegsynth.methods.seed_rows import seed_pool, whole_rows
from pegsynth.progress import quiet
from pegsynth.random import RandomStream, Words
from pegsynth.schema.rules import Rule

if TYPE_CHECKING:
    from pegsynth.methods.base import Rows


MOST_TOTAL = 1 << 62
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
class _Draw:
    """What every draw of a sweep shares."""

    model: ConditionalModel
    targets: tuple[int, ...]
    category_counts: tuple[int, ...]
    rules: RuleTables
    numerator: int
    scale: int
    sweeps: int

    def __post_init__(self) -> None:
        if self.numerator < 0 or self.scale < 1 or self.sweeps < 1:
            raise ParameterError("alpha must not be negative; scale and sweeps at least 1")
        if not all(0 <= target < len(self.category_counts) for target in self.targets):
            raise ParameterError("a target of the sweep is no feature of the schema")
        check_alpha(max(self.category_counts), self.numerator, self.scale)

    def sweep(self, start_rows: Codes, words: Words) -> Codes:
        rows = np.array(start_rows, dtype=np.uint32, order="C")
        if not len(rows):
            return rows
        for _ in range(self.sweeps):
            for target in self.targets:
                self._draw(rows, target, words)
        return rows

    def _draw(self, rows: Codes, target: int, words: Words) -> None:
        """Draw one feature of all rows (R8, R18)."""
        fitted = _checked(
            self.model.probabilities(target, rows), (len(rows), self.category_counts[target])
        )
        state = np.zeros(3, dtype=np.int64)
        while not draw_categories(
            rows,
            target,
            fitted,
            state,
            np.uint64(self.scale),
            np.uint64(self.numerator),
            self.rules,
            words.take(len(rows) - int(state[LANE]) + _SLACK),
            WORD_BITS,
        ):
            if state[STUCK]:
                raise SchemaError(
                    f"the schema's rules leave feature {target} no category in a row; start from "
                    "rows that obey the rules"
                )


def sweep(
    model: ConditionalModel,
    start_rows: Codes,
    *,
    targets: Sequence[int],
    category_counts: Sequence[int],
    rules: Sequence[Rule] = (),
    numerator: int,
    scale: int,
    words: Words,
    sweeps: int = 1,
) -> Codes:
    """Draw the targets of every row in order, given the other features as they stand.

    Parameters
    ----------
    start_rows
        Where the rows start; features that are no target keep their value. Under a
        guarantee never rows of the data (R10).
    targets
        Features to draw, in sweep order.
    rules
        Public rules: a category that the rest of the row forbids has weight 0 (R18).
    numerator, scale
        alpha = numerator/scale. Weights are floor(scale g_j) + numerator, never rounded to
        nearest (R8); where all are 0 the allowed categories are equally likely.
    sweeps
        Sweeps per row, S; only the rows after the last one are returned.
    """
    tables = rule_tables(rules, category_counts)
    draw = _Draw(model, tuple(targets), tuple(category_counts), tables, numerator, scale, sweeps)
    return draw.sweep(start_rows, words)


def sample_conditional(
    model: ConditionalModel,
    seeds: SeedPool,
    rows: int,
    *,
    targets: Sequence[int],
    category_counts: Sequence[int],
    rules: Sequence[Rule] = (),
    numerator: int,
    scale: int,
    stream: RandomStream,
    sweeps: int = 1,
    chunk: int = CHUNK_ROWS,
) -> Iterator[Codes]:
    """Yield `rows` rows as chunks: seed rows, then sweeps as in `sweep`."""
    model = drawn_from(model, lambda: FlatModel(category_counts), stream, rows=rows)
    tables = rule_tables(rules, category_counts)
    draw = _Draw(model, tuple(targets), tuple(category_counts), tables, numerator, scale, sweeps)
    return in_chunks(
        rows,
        stream,
        lambda count, words: draw.sweep(seeds.draw(count, words.take), words),
        chunk=chunk,
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


class ImputingSampler(Sampler):
    """Draws whole rows, feature after feature."""

    def __init__(self, method: str, model: Model, plan: Any) -> None:
        fit, schema = model.content, model.schema
        pool, assumptions = seed_pool(
            schema, plan.seed_pool, plan.options, marginals=fit.marginals, rows=fit.rows
        )
        super().__init__(assumptions)
        self._method, self._schema, self._plan, self._fit = method, schema, plan, fit
        self._pool = pool

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K tables."""
        dtype = self._schema.code_dtype
        return [
            (
                chunk.astype(dtype)
                for chunk in sample_conditional(
                    self.conditionals(stream), self._pool, rows, stream=stream, **self._law()
                )
            )
            for _ in range(datasets)
        ]

    def _law(self) -> dict[str, Any]:
        schema, plan = self._schema, self._plan
        return {
            "targets": drawn_features(schema, plan.options),
            "category_counts": schema.category_counts,
            "rules": schema.rules,
            "numerator": plan.numerator,
            "scale": plan.scale,
            "sweeps": plan.options.sweeps,
        }

    def conditionals(self, stream: RandomStream) -> ConditionalModel:
        """Return the fitted models, or a fresh draw of them for proper synthesis (R16)."""
        if not getattr(self._plan.options, "proper", False):
            fitted: ConditionalModel = self._fit.conditionals
            return fitted
        from pegsynth.methods.baselines.target_fits import bayesian_bootstrap

        rows = self._fit.rows
        if rows is None:
            raise ModelError("this model holds no original rows; use pegs synthesize")
        weights = bayesian_bootstrap(len(rows), stream.substream())
        return fit_conditionals(
            rows,
            self._schema,
            self._method,
            stream,
            threads=1,
            progress=quiet,
            sample_weight=weights,
        )


class ReplacingSampler(ImputingSampler):
    """Draws the chosen features of the original rows anew, in their order."""

    def __init__(self, method: str, model: Model, plan: Any) -> None:
        super().__init__(method, model, plan)
        self._rows = whole_rows(model.schema, model.content.rows)
        self.own_rows = len(self._rows)

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K copies of the table, other features in each."""
        dtype = self._schema.code_dtype
        start = self._rows.astype(np.uint32)
        return [
            iter(
                [
                    sweep(
                        self.conditionals(stream), start, words=stream.substream(), **self._law()
                    ).astype(dtype)
                ]
            )
            for _ in range(datasets)
        ]
