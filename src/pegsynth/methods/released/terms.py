"""A declared analysis as blocks of columns: the intercept, the response, and a block a term (R26).

Products of the response, or of its residual, with the other columns are measured. They are
sufficient once the joint law of the explanatory features is known, so tables of pairs of these
are measured as well. A number may be transformed, and a block may be the product of several
features' columns: what a row adds is bounded in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

from pegsynth.errors import ParameterError
from pegsynth.inference.formula import Term, read_terms
from pegsynth.inference.value_columns import is_numeric
from pegsynth.methods.released.row_scores import SCORED
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
            f"analysis {formula!r}: {term.feature!r} is a number; C(..) goes with categories, and "
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
