"""A declared analysis as blocks of columns, and what one row adds to its score (R26).

Columns are the intercept, the response, and a block a term. Products of the response, or of its
residual, with the other columns are measured. They are sufficient once the joint law of the
explanatory features is known, so tables of pairs of these are measured as well. A number may be
transformed, and a block may be the product of several features' columns: what a row adds is
bounded in the same way.

A linear or logistic regression is scored at coefficients that were paid for: a row adds its
residual times each of its explanatory columns, in integers. Columns are turned first, by whole
numbers that were paid for as well, so that noise of one size on all sums is about as large, next to
what rows spread, in one direction as in another. The residual is clipped, and clipped further in a
row whose turned columns are large together, so that no row adds a longer vector than a public
bound. Most rows are nowhere near it, and the noise is as small as the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.formula import Term, read_terms
from pegsynth.inference.value_columns import is_numeric
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis

Kind: TypeAlias = Literal["number", "truth", "categories"]

MOST_COLUMNS = 32
_TWO = 2


@dataclass(frozen=True)
class Part:
    """The columns of one feature; a row has at most one of them that is not 0.

    Parameters
    ----------
    feature
        Name of its feature.
    kind
        "number": the value itself, or what a public function makes of it. "truth": 1 where a
        comparison holds. "categories": 1 in the column of the row's category; the first category
        has none.
    term
        As the formula has it.
    """

    feature: str
    kind: Kind
    term: Term

    def columns(self, feature: Feature) -> int:
        """Return how many columns it has."""
        return feature.category_count - 1 if self.kind == "categories" else 1


@dataclass(frozen=True)
class Block:
    """The columns of a response or a term; a row has at most one of them that is not 0.

    Parameters
    ----------
    parts
        Several for an interaction, whose columns are all products of one column of each.
    """

    parts: tuple[Part, ...]

    @property
    def numeric(self) -> bool:
        """Whether its columns have other values than 0 and the largest step."""
        return any(part.kind == "number" for part in self.parts)

    def columns(self, schema: Schema) -> int:
        """Return how many columns it has."""
        return math.prod(part.columns(schema[part.feature]) for part in self.parts)


@dataclass(frozen=True)
class Design:
    """A declared analysis that a schema allows.

    Parameters
    ----------
    analysis
        What was declared.
    formula
        Its formula, with single spaces.
    response, terms
        Its blocks, the intercept aside.
    """

    analysis: Analysis
    formula: str
    response: Block
    terms: tuple[Block, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The response, then the terms."""
        return (self.response, *self.terms)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of its features, each once."""
        return tuple(dict.fromkeys(part.feature for part in self.parts))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all blocks, in order."""
        return tuple(part for block in self.blocks for part in block.parts)

    @property
    def explanatory(self) -> tuple[str, ...]:
        """Names of the features of its terms, each once."""
        return tuple(dict.fromkeys(p.feature for block in self.terms for p in block.parts))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of explanatory features whose tables are measured."""
        return tuple(combinations(self.explanatory, 2))

    def columns(self, schema: Schema) -> int:
        """Return how many columns there are, the intercept included."""
        return 1 + sum(block.columns(schema) for block in self.blocks)

    def sums(self, schema: Schema) -> int:
        """Return how many sums are measured at most."""
        columns = self.columns(schema)
        scored = self.analysis.family in SCORED
        return columns - 1 if scored else columns * (columns + 1) // 2


def design_of(analysis: Analysis, schema: Schema) -> Design:
    """Read a declared analysis.

    Raises
    ------
    ParameterError
        The formula cannot be read, names a feature that the schema lacks, has a response that its
        family does not explain, or needs numbers that are dates.
    """
    formula, response, terms = read_terms(analysis.formula, schema)
    if not terms:
        raise ParameterError(f"analysis {formula!r}: it has no term; a mean needs no declaration")
    design = Design(
        analysis,
        formula,
        Block((_response(analysis, formula, response, schema[response.feature]),)),
        tuple(
            Block(tuple(_part(formula, part, schema[part.feature]) for part in term.parts))
            for term in terms
        ),
    )
    if not schema.unsettled and design.columns(schema) > MOST_COLUMNS:
        raise ParameterError(
            f"analysis {formula!r}: it has {design.columns(schema)} columns, and at most "
            f"{MOST_COLUMNS} are measured; compare with single categories, as I(NAME == ..)"
        )
    return design


def _response(analysis: Analysis, formula: str, term: Term, feature: Feature) -> Part:
    family, two = analysis.family, feature.bin_count == _TWO and not feature.binned
    if family in ("gaussian", "poisson"):
        plain = not term.function or family == "gaussian"
        if term.sign or term.categorical or not (is_numeric(feature) and plain):
            raise ParameterError(
                f"analysis {formula!r}: the response of family {family} must be a number"
                f"{'' if plain else ' as it is: its link is the logarithm already'}"
            )
        return Part(term.feature, "number", _number(formula, term, feature))
    if family == "binomial":
        if term.function or not (term.sign or two):
            raise ParameterError(
                f"analysis {formula!r}: the response of family binomial must be a comparison, such "
                f"as I({term.feature} > 5), or a feature of two categories"
            )
        return Part(term.feature, "truth", term)
    if term.sign or term.function or feature.binned:
        raise ParameterError(
            f"analysis {formula!r}: the response of family multinomial must be a feature with "
            "categories"
        )
    return Part(term.feature, "categories", term)


def _part(formula: str, term: Term, feature: Feature) -> Part:
    if term.sign:
        return Part(term.feature, "truth", term)
    if is_numeric(feature) and not term.categorical:
        return Part(term.feature, "number", _number(formula, term, feature))
    if feature.binned:
        raise ParameterError(
            f"analysis {formula!r}: {term.feature!r} is a number; C(..) requires categories, and "
            f"I({term.feature} > 5) compares"
        )
    return Part(term.feature, "categories", term)


def _number(formula: str, term: Term, feature: Feature) -> Term:
    if feature.calendar or feature.after is not None:
        raise ParameterError(
            f"analysis {formula!r}: {term.feature!r} is a date or time; declared analyses take "
            "numbers and categories"
        )
    return term


SCORED = ("gaussian", "binomial")
"""Families whose regressions are scored."""
REACH, PLACES, UNITS = 8, 32, 256
"""Linear predictors of a logistic regression are told apart up to `REACH` either way, by
`PLACES` to a unit; coefficients are whole numbers of 1/`UNITS`."""
_SHORTER = 9
"""The squared bound is this part of what the largest columns and residual would come to."""
_RIDGE, _NEWTON, _MOST_ODDS = 1.0, 25, 100.0
_ROUNDS, _SHORTEST = 4, 1e-6
_LEAST_SPREAD = 1e-3
"""Spread that a direction has at least, next to that of residuals: rare categories have less."""
_MOST_TURNED = (1 << 20) - 1
"""No line has larger numbers, so that squares of turned columns fit into 64 bits."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What a regression is scored at, from paid output alone.

    Parameters
    ----------
    coefficients
        What the linear predictor takes of every column but that of the response, in `UNITS`.
    limit
        The residual, in steps of the response, that counts as the largest step.
    logistic
        Whether the linear predictor gives a chance.
    turned
        What a turned column takes of every column but that of the response, in `UNITS`, a line
        each. None: columns stay as they are.
    """

    coefficients: Int64
    limit: int
    logistic: bool
    turned: Int64 | None = None

    @classmethod
    def stored(cls, numbers: Int64, family: str, columns: int) -> Scores | None:
        """Return the scores that a model file holds; None where there are none.

        Parameters
        ----------
        columns
            How many columns there are but that of the response.
        """
        if not len(numbers):
            return None
        whole, limit, lines = numbers[:columns], int(numbers[columns]), numbers[columns + 1 :]
        turned = lines.reshape(columns, columns) if len(lines) else None
        return cls(whole, limit, family == "binomial", turned)

    def numbers(self) -> Int64:
        """Return the coefficients, after them the limit, and the lines that turn columns."""
        lines = np.zeros(0, dtype=np.int64) if self.turned is None else self.turned.ravel()
        return np.concatenate([self.coefficients, [np.int64(self.limit)], lines])

    def scored(self, columns: Int64, steps: int, parts: int) -> Int64:
        """Return turned columns, and in the place of the response the clipped residual.

        Parameters
        ----------
        columns
            The columns of rows, that of the response being the second.
        parts
            The most columns but the response's that are not 0 in one row.
        """
        others = np.delete(columns, 1, axis=1)
        residuals = self.residuals(columns[:, 1], others, steps)
        turned = others if self.turned is None else others @ self.turned.T // UNITS
        square = np.maximum((turned * turned).sum(axis=1), 1)
        # Whole numbers below 2^52 have exact floors of their square roots.
        most = np.sqrt(bound(steps, parts) // square).astype(np.int64)
        clipped = np.where(others[:, 0] != 0, np.clip(residuals, -most, most), 0)
        return np.insert(turned, 1, clipped, axis=1)

    def residuals(self, response: Int64, others: Int64, steps: int) -> Int64:
        """Return residuals, at most `steps` either way, clipped by themselves alone."""
        found = _raw(response, others @ self.coefficients, steps, logistic=self.logistic)
        return np.clip(found, -self.limit, self.limit) * steps // self.limit

    def largest(self, most: Sequence[int], steps: int, parts: int, power: int) -> int:
        """Return the most that a row adds, each sum to a power (1 or 2).

        Parameters
        ----------
        most
            The largest size of a column of the intercept and of every term.
        """
        squared = bound(steps, parts)
        if self.turned is not None:
            # Any of the turned columns may be other than 0.
            return squared if power > 1 else math.isqrt(squared * len(self.turned))
        unbounded: int = sum((steps * each) ** power for each in most)
        # A vector of `parts` numbers is at most sqrt(parts) times as long by its sum.
        return min(unbounded, squared if power > 1 else math.isqrt(squared * parts))


def bound(steps: int, parts: int) -> int:
    """Return the largest square of what a row adds to a score; a residual of a step always fits."""
    return max(parts * steps**4 // _SHORTER, parts * steps**2)


def _raw(response: Int64, predictor: Int64, steps: int, *, logistic: bool) -> Int64:
    """Return residuals in steps of the response."""
    if not logistic:
        return response - predictor // UNITS
    chances = _chances(steps)
    place = predictor * PLACES // (UNITS * steps) + len(chances) // 2
    return response - chances[np.clip(place, 0, len(chances) - 1)]


@lru_cache(maxsize=8)
def _chances(steps: int) -> Int64:
    """Return the chance by the linear predictor, in whole steps."""
    places = (np.arange(-REACH * PLACES, REACH * PLACES) + 0.5) / PLACES
    return np.rint(steps / (1 + np.exp(-places))).astype(np.int64)


def fitted_scores(
    columns: Int64, steps: int, parts: int, *, tail: float, long_tail: float, logistic: bool
) -> Scores:
    """Fit a regression to synthetic rows, and say how columns are turned and what is clipped.

    Parameters
    ----------
    columns
        The columns of rows that come from paid output alone, that of the response being the
        second.
    parts
        The most columns but the response's that are not 0 in one row.
    tail
        Part of the residuals of these rows that is to be clipped; of chances none is.
    long_tail
        Part of these rows that is to be clipped because of their length.
    """
    kept = columns[columns[:, 0] != 0]
    response, others = kept[:, 1] / steps, np.delete(kept, 1, axis=1)
    fit = _logistic if logistic else _least_squares
    whole = np.rint(np.clip(fit(others / steps, response), -_MOST_ODDS, _MOST_ODDS) * UNITS)
    coefficients = whole.astype(np.int64)
    limit = steps
    if not logistic and len(kept):
        sizes = np.abs(_raw(kept[:, 1], others @ coefficients, steps, logistic=False))
        limit = min(max(int(np.quantile(sizes, 1 - tail)), 1), 2 * steps)
    plain = Scores(coefficients, limit, logistic)
    residuals = plain.residuals(kept[:, 1], others, steps) / steps
    longest = math.sqrt(bound(steps, parts))
    lines = _turning(residuals, others / steps, long_tail) * (longest / steps**2)
    # A residual of a step is to fit into the bound, which matters where there are few steps.
    reached = float(np.linalg.norm(others @ lines, axis=1).max(initial=0.0))
    lines *= min(1.0, longest / max(reached, 1.0))
    whole = np.rint(np.clip(lines * UNITS, -_MOST_TURNED, _MOST_TURNED))
    return replace(plain, turned=whole.astype(np.int64))


def _turning(residuals: Float64, others: Float64, tail: float) -> Float64:
    """Return lines that turn columns so that scores spread alike in all directions.

    All but a part of the rows then have scores that are at most 1 long.
    """
    size = others.shape[1]
    if not residuals.any():
        return np.eye(size)
    scores, lengths, lines = residuals[:, None] * others, np.ones(len(others)), np.eye(size)
    least = np.eye(size) * (_LEAST_SPREAD * float((residuals**2).mean()))
    for _ in range(_ROUNDS):
        # Rows that are too long count as they are clipped.
        short = scores / np.maximum(lengths, 1.0)[:, None]
        values, axes = np.linalg.eigh(short.T @ short / len(short) + least)
        lines = (axes / np.sqrt(values)) @ axes.T
        lengths = np.linalg.norm(scores @ lines, axis=1)
        reached = max(float(np.quantile(lengths, 1 - tail)), _SHORTEST)
        lines, lengths = lines / reached, lengths / reached
    return lines.astype(np.float64)


def _least_squares(columns: Float64, response: Float64) -> Float64:
    ridge = np.eye(columns.shape[1]) * _RIDGE
    solved = np.linalg.solve(columns.T @ columns + ridge, columns.T @ response)
    return solved.astype(np.float64)


def _logistic(columns: Float64, response: Float64) -> Float64:
    odds = np.zeros(columns.shape[1])
    ridge = np.eye(len(odds)) * _RIDGE
    for _ in range(_NEWTON):
        chance = 1 / (1 + np.exp(-np.clip(columns @ odds, -REACH, REACH)))
        slope = columns.T @ (response - chance) - ridge @ odds
        curve = (columns * (chance * (1 - chance))[:, None]).T @ columns + ridge
        odds = np.clip(odds + np.linalg.solve(curve, slope), -_MOST_ODDS, _MOST_ODDS)
    return odds
