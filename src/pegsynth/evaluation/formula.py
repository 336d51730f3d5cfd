"""Regression formulas as people write them, read by a small parser of their own.

``charge ~ age + C(sev) + I(los > 7)``: a response, then terms joined by "+". A term is the
name of a feature, in backquotes where it is not a plain word; ``C(name)`` takes a feature
by its categories although these are numbers; ``I(name > number)`` is a comparison, one of
``> >= < <= == !=``. Nothing in a formula is ever run.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pegsynth.arrays import Float64
from pegsynth.errors import ParameterError
from pegsynth.evaluation.numeric import is_numeric, numeric_values
from pegsynth.schema import Schema
from pegsynth.schema.encoding import parsed_number
from pegsynth.schema.feature import Feature

Kind = Literal["linear", "logistic"]

GRAMMAR = (
    "write RESPONSE ~ TERM + TERM with terms NAME, C(NAME) or I(NAME > 5); a name that is not "
    "one plain word goes in `backquotes`"
)
_TOKENS = re.compile(
    r"\s*(?:(?P<quoted>`[^`]+`)|(?P<name>[^\W\d][\w.]*)|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<sign>>=|<=|==|!=|[><()+~]))"
)
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Term:
    """One term of a formula, or its response.

    Parameters
    ----------
    feature
        Name of the feature.
    categorical
        Whether it is forced to be taken by its categories, ``C(..)``.
    sign, operand
        A comparison and what to compare with, as it was written; empty when there is none.
    """

    feature: str
    categorical: bool = False
    sign: str = ""
    operand: str = ""

    @property
    def text(self) -> str:
        """The term as it is named in results."""
        if self.sign:
            return f"I({self.feature} {self.sign} {self.operand})"
        return f"C({self.feature})" if self.categorical else self.feature


@dataclass(frozen=True)
class Formula:
    """A regression that a schema allows.

    Parameters
    ----------
    text
        As the user wrote it, with single spaces.
    response, terms
        What is explained, and by what.
    kind
        ``logistic`` for a comparison and for a feature of two categories, else ``linear``.
    """

    text: str
    response: Term
    terms: tuple[Term, ...]
    kind: Kind

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that it needs, each once."""
        return tuple(dict.fromkeys(term.feature for term in (self.response, *self.terms)))


def read_formula(text: str, schema: Schema) -> Formula:
    """Read a formula and check it against a schema.

    Raises
    ------
    ParameterError
        It is not of the form above, names a feature that the schema lacks, or has a response
        that neither regression can explain.
    """
    shown, response, terms = read_terms(text, schema)
    return Formula(shown, response, terms, _kind(shown, response, schema))


def read_terms(text: str, schema: Schema) -> tuple[str, Term, tuple[Term, ...]]:
    """Read a formula with any response; return it as it is shown, its response and its terms."""
    shown = " ".join(text.split())
    reader = _Reader(shown, _tokens(shown))
    response = reader.term()
    reader.expect("~")
    terms = list(filter(None, [reader.term_or_one()]))
    while reader.tokens:
        reader.expect("+")
        terms += filter(None, [reader.term_or_one()])
    if len(set(terms)) < len(terms):
        raise ParameterError(f"formula {shown!r}: a term is given twice")
    for term in (response, *terms):
        _check(shown, term, schema)
    return shown, response, tuple(terms)


def read_response(text: str, schema: Schema) -> Term:
    """Read a feature name or a comparison standing alone."""
    shown = " ".join(text.split())
    if shown in schema.names:
        return Term(shown)
    reader = _Reader(shown, _tokens(shown))
    term = reader.term()
    if reader.tokens:
        raise reader.error()
    _check(shown, term, schema)
    return term


def truth(term: Term, feature: Feature) -> Float64:
    """Return 1 where a code fulfils a comparison, 0 where not, NaN where it has no answer.

    A bin is judged by its midpoint. Categories that are names are compared as text, and
    those of an ordinal feature also by their order. Missing, not applicable and unknown
    have no answer.
    """
    answers = np.full(feature.category_count, np.nan)
    compare = _COMPARE[term.sign]
    number = parsed_number(term.operand)
    if is_numeric(feature) and number is not None:
        values = numeric_values(feature)
        answers[: feature.bin_count] = compare(values[: feature.bin_count], number)
        return answers
    operand = _unquoted(term.operand)
    position = feature.labels.index(operand)
    answers[: feature.bin_count] = compare(np.arange(feature.bin_count), position)
    return answers


def compared(term: Term, numbers: Float64, operand: float) -> Float64:
    """Return 1 where a number fulfils a comparison, 0 where not, NaN where there is none."""
    answers = np.asarray(_COMPARE[term.sign](numbers, operand), dtype=np.float64)
    answers[np.isnan(numbers)] = np.nan
    return answers


def cuts_a_bin(term: Term, feature: Feature) -> bool:
    """Say whether a comparison is with a number inside a bin, which then counts as a whole."""
    number = parsed_number(term.operand)
    if not term.sign or not feature.binned or number is None:
        return False
    return feature.edges[0] < number < feature.edges[-1] and number not in feature.edges


@dataclass
class _Reader:
    """The tokens of a formula that are still to be read."""

    shown: str
    tokens: list[tuple[str, str]]

    def error(self) -> ParameterError:
        return ParameterError(f"formula {self.shown!r} cannot be read; {GRAMMAR}")

    def take(self, *kinds: str) -> str:
        if not self.tokens or self.tokens[0][0] not in kinds:
            raise self.error()
        return self.tokens.pop(0)[1]

    def expect(self, sign: str) -> None:
        if self.take("sign") != sign:
            raise self.error()

    def term_or_one(self) -> Term | None:
        """Read a term; a lone 1, the intercept that is always there, adds none."""
        if self.tokens and self.tokens[0] == ("number", "1"):
            self.tokens.pop(0)
            return None
        return self.term()

    def term(self) -> Term:
        opens = len(self.tokens) > 1 and self.tokens[1] == ("sign", "(")
        word = self.take("name", "quoted")
        if not opens:
            return Term(_unquoted(word))
        self.expect("(")
        feature = _unquoted(self.take("name", "quoted"))
        if word == "C":
            term = Term(feature, categorical=True)
        elif word == "I":
            sign = self.take("sign")
            if sign not in _COMPARE:
                raise self.error()
            term = Term(feature, sign=sign, operand=self.take("number", "text"))
        else:
            raise self.error()
        self.expect(")")
        return term


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None or match.lastgroup is None:
            raise ParameterError(f"formula {text!r} cannot be read; {GRAMMAR}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in {'"', "'", "`"} else text


def _check(shown: str, term: Term, schema: Schema) -> None:
    if term.feature not in schema.names:
        raise ParameterError(
            f"formula {shown!r}: the schema has no feature {term.feature!r}; it has "
            f"{', '.join(schema.names)}"
        )
    if not term.sign:
        return
    feature = schema.features[schema.index(term.feature)]
    if is_numeric(feature) and parsed_number(term.operand) is not None:
        equality = term.sign in {"==", "!="}
        if equality and float(term.operand) not in numeric_values(feature):
            raise ParameterError(
                f"formula {shown!r}: no category of {term.feature!r} is that number; compare "
                "with > or < at an edge of its bins"
            )
        return
    if _unquoted(term.operand) not in feature.labels[: feature.bin_count]:
        raise ParameterError(
            f"formula {shown!r}: {term.feature!r} has no category of that name in the schema"
        )
    if term.sign not in {"==", "!="} and feature.kind == "nominal":
        raise ParameterError(
            f"formula {shown!r}: {term.feature!r} is nominal, its categories have no order; "
            "compare with == or !="
        )


def _kind(shown: str, response: Term, schema: Schema) -> Kind:
    feature = schema.features[schema.index(response.feature)]
    if response.sign or feature.bin_count == 2:
        return "logistic"
    if not is_numeric(feature) or response.categorical:
        raise ParameterError(
            f"formula {shown!r}: the response {response.feature!r} has more than two categories "
            f'that are no numbers; compare it, as I({response.feature} == "..")'
        )
    return "linear"
