"""Regression formulas as people write them, read by a small parser of their own.

``charge ~ age + C(sev) + I(los > 7)``: a response, then terms joined by "+". A term is the
name of a feature, in backquotes where it is not a plain word; ``C(name)`` takes a feature
by its categories although these are numbers; ``I(name > number)`` is a comparison, one of
``> >= < <= == !=``. A number can be transformed: ``log``, ``log1p``, ``sqrt``, ``I(name^2)`` or
``I(name**3)``, and ``rcs(name, 30, 45, 60)``, a restricted cubic spline with these knots, one term
for each of its columns. ``a:b`` is an interaction, and ``a*b`` stands for ``a + b + a:b``. Nothing
in a formula is ever run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal, TypeAlias

from pegsynth.errors import ParameterError
from pegsynth.inference.value_columns import is_numeric, numeric_values
from pegsynth.schema import Schema
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import parsed_number

Kind = Literal["linear", "logistic", "poisson"]

GRAMMAR = (
    "write RESPONSE ~ TERM + TERM with terms NAME, C(NAME), I(NAME > 5), log(NAME), I(NAME^2), "
    "rcs(NAME, 30, 45, 60) or a product of these, A*B or A:B; a name that is not one plain word "
    "goes in `backquotes`"
)
_TOKENS = re.compile(
    r"\s*(?:(?P<quoted>`[^`]+`)|(?P<name>[^\W\d][\w.]*)|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<sign>>=|<=|==|!=|\*\*|[><()+~:*^,]))"
)
COMPARISONS = (">", ">=", "<", "<=", "==", "!=")
FUNCTIONS = ("log", "log1p", "sqrt")
POWER, SPLINE = "power", "rcs"
_POWERS = ("2", "3")
_FEWEST_KNOTS = 3
_MOST_CROSSED = 4


@dataclass(frozen=True)
class Term:
    """One term of a formula, a part of an interaction, or the response.

    Parameters
    ----------
    feature
        Name of the feature.
    categorical
        Whether it is forced to be taken by its categories, ``C(..)``.
    sign, operand
        A comparison and what to compare with, as it was written; empty when there is none.
    function
        What is done to the number: "log", "log1p", "sqrt", "power" or "rcs"; empty for nothing.
    numbers
        The power; or the knots of a spline, as they were written.
    column
        Which column of a spline it is, from 1.
    """

    feature: str
    categorical: bool = False
    sign: str = ""
    operand: str = ""
    function: str = ""
    numbers: tuple[str, ...] = ()
    column: int = 0

    @property
    def text(self) -> str:
        """The term as it is named in results."""
        return f"{self.label}[{self.column}]" if self.column else self.label

    @property
    def label(self) -> str:
        """The same without the number of a spline's column: what was written."""
        if self.sign:
            return f"I({self.feature} {self.sign} {self.operand})"
        if self.function == POWER:
            return f"I({self.feature}^{self.numbers[0]})"
        if self.function:
            return f"{self.function}({', '.join((self.feature, *self.numbers))})"
        return f"C({self.feature})" if self.categorical else self.feature

    @property
    def parts(self) -> tuple[Term, ...]:
        """Itself, as the only part."""
        return (self,)


@dataclass(frozen=True)
class Interaction:
    """The product of several terms, each of which the formula has, too.

    Parameters
    ----------
    parts
        The terms, at least two.
    """

    parts: tuple[Term, ...]

    @property
    def text(self) -> str:
        """The interaction as it is named in results."""
        return ":".join(part.text for part in self.parts)

    @property
    def label(self) -> str:
        """What was written."""
        return ":".join(part.label for part in self.parts)


AnyTerm: TypeAlias = Term | Interaction


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
        ``logistic`` for a comparison and for a feature of two categories, else ``linear``;
        ``poisson`` where that was asked for.
    """

    text: str
    response: Term
    terms: tuple[AnyTerm, ...]
    kind: Kind

    @property
    def parts(self) -> tuple[Term, ...]:
        """The terms without interactions, whose parts are among them."""
        return tuple(term for term in self.terms if isinstance(term, Term))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that it needs, each once."""
        return tuple(dict.fromkeys(term.feature for term in (self.response, *self.parts)))


def read_formula(text: str, schema: Schema, *, kind: Kind | None = None) -> Formula:
    """Read a formula and check it against a schema.

    Parameters
    ----------
    kind
        The regression; None: by the response.

    Raises
    ------
    ParameterError
        It is not of the form above, names a feature that the schema lacks, or has a response
        that neither regression can explain.
    """
    shown, response, terms = read_terms(text, schema)
    own = _kind(shown, response, schema)
    if kind is not None and own != kind:
        own = _other_kind(shown, response, schema, kind)
    return Formula(shown, response, terms, own)


def read_terms(text: str, schema: Schema) -> tuple[str, Term, tuple[AnyTerm, ...]]:
    """Read a formula with any response; return it as it is shown, its response and its terms."""
    shown = " ".join(text.split())
    reader = _Reader(shown, _tokens(shown))
    response = reader.term()
    reader.expect("~")
    written = reader.terms()
    alone = [term for (term, *more) in written if not more]
    if len(set(alone)) < len(alone):
        raise ParameterError(f"formula {shown!r}: a term is given twice")
    every = dict.fromkeys(term for terms in written for term in terms)
    simple = [term for term in every if isinstance(term, Term)]
    for term in (response, *simple):
        _check(shown, term, schema)
    joint = _interactions(shown, [term for term in every if isinstance(term, Interaction)], simple)
    return shown, response, (*simple, *joint)


def read_response(text: str, schema: Schema) -> Term:
    """Read a feature name or a comparison standing alone."""
    shown = " ".join(text.split())
    if shown in schema.names:
        return Term(shown)
    reader = _Reader(shown, _tokens(shown))
    term = reader.term()
    if reader.tokens or term.function:
        raise reader.error()
    _check(shown, term, schema)
    return term


def is_declared(text: str, schema: Schema) -> bool:
    """Whether a schema declares an analysis with the response and the terms of a formula (R26)."""
    try:
        response, terms = _known(text, schema)
    except ParameterError:
        return False
    found = (_known(each.formula, schema) for each in schema.analyses)
    return bool(terms) and any(response == own and terms <= more for own, more in found)


def _known(text: str, schema: Schema) -> tuple[Term, set[frozenset[Term]]]:
    """Return the response and the terms, whatever their order."""
    _, response, terms = read_terms(text, schema)
    return response, {frozenset(term.parts) for term in terms}


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

    def follows(self, sign: str) -> bool:
        """Take a sign where it comes next; say whether it did."""
        found = self.tokens[:1] == [("sign", sign)]
        if found:
            self.tokens.pop(0)
        return found

    def terms(self) -> list[list[AnyTerm]]:
        """Read the terms to the end: what stands between two signs of + is a list of its own."""
        found = [self.crossed()]
        while self.tokens:
            self.expect("+")
            found.append(self.crossed())
        return [terms for terms in found if terms]

    def crossed(self) -> list[AnyTerm]:
        """Read terms joined by *, and return all their products.

        A lone 1, the intercept that is always there, adds none.
        """
        if self.tokens and self.tokens[0] == ("number", "1"):
            self.tokens.pop(0)
            return []
        sides = [self.joined()]
        while self.follows("*"):
            sides.append(self.joined())
        if len(sides) > _MOST_CROSSED:
            raise ParameterError(
                f"formula {self.shown!r}: at most {_MOST_CROSSED} terms are joined by *"
            )
        chosen = (some for size in range(1, len(sides) + 1) for some in combinations(sides, size))
        every = (sum(each, ()) for some in chosen for each in product(*some))
        return [parts[0] if len(parts) == 1 else Interaction(parts) for parts in every]

    def joined(self) -> list[tuple[Term, ...]]:
        """Read terms joined by colons: every choice of their columns."""
        sides = [self.columns()]
        while self.follows(":"):
            sides.append(self.columns())
        return list(product(*sides))

    def columns(self) -> list[Term]:
        """Read a term; of a spline all its columns."""
        term = self.term(spline=True)
        if term.function != SPLINE:
            return [term]
        return [replace(term, column=number) for number in range(1, len(term.numbers))]

    def term(self, *, spline: bool = False) -> Term:
        opens = len(self.tokens) > 1 and self.tokens[1] == ("sign", "(")
        word = self.take("name", "quoted")
        if not opens:
            return Term(unquoted(word))
        self.expect("(")
        feature = unquoted(self.take("name", "quoted"))
        if word == "C":
            term = Term(feature, categorical=True)
        elif word == "I":
            term = self.inside(feature)
        elif word in FUNCTIONS:
            term = Term(feature, function=word)
        elif word == SPLINE and spline:
            term = Term(feature, function=word, numbers=self.knots())
        else:
            raise self.error()
        self.expect(")")
        return term

    def inside(self, feature: str) -> Term:
        """Read a comparison or a power."""
        sign = self.take("sign")
        if sign in COMPARISONS:
            return Term(feature, sign=sign, operand=self.take("number", "text"))
        power = self.take("number") if sign in {"^", "**"} else ""
        if power not in _POWERS:
            raise self.error()
        return Term(feature, function=POWER, numbers=(power,))

    def knots(self) -> tuple[str, ...]:
        """Read the knots of a spline."""
        found = []
        while self.follows(","):
            found.append(self.take("number"))
        numbers = [float(each) for each in found]
        if len(found) < _FEWEST_KNOTS or sorted(set(numbers)) != numbers:
            raise ParameterError(
                f"formula {self.shown!r}: a spline needs {_FEWEST_KNOTS} knots or more, in "
                "ascending order, such as rcs(NAME, 30, 45, 60)"
            )
        return tuple(found)


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


def unquoted(text: str) -> str:
    """Return what stands between quotes, or a text without any."""
    return text[1:-1] if text[:1] in {'"', "'", "`"} else text


def _check(shown: str, term: Term, schema: Schema) -> None:
    if term.feature not in schema.names:
        raise ParameterError(
            f"formula {shown!r}: the schema has no feature {term.feature!r}; it has "
            f"{', '.join(schema.names)}"
        )
    feature = schema.features[schema.index(term.feature)]
    if term.function and not is_numeric(feature):
        raise ParameterError(
            f"formula {shown!r}: {term.label} needs a number, and {term.feature!r} has categories"
        )
    if not term.sign:
        return
    if is_numeric(feature) and parsed_number(term.operand) is not None:
        equality = term.sign in {"==", "!="}
        if equality and float(term.operand) not in numeric_values(feature):
            raise ParameterError(
                f"formula {shown!r}: no category of {term.feature!r} is that number; compare "
                "with > or < at an edge of its bins"
            )
        return
    if unquoted(term.operand) not in feature.labels[: feature.bin_count]:
        raise ParameterError(
            f"formula {shown!r}: {term.feature!r} has no category of that name in the schema"
        )
    if term.sign not in {"==", "!="} and feature.kind == "nominal":
        raise ParameterError(
            f"formula {shown!r}: {term.feature!r} is nominal, its categories have no order; "
            "compare with == or !="
        )


def _interactions(
    shown: str, found: list[Interaction], simple: list[Term]
) -> tuple[Interaction, ...]:
    """Return interactions, each once; refuse one without its main effects.

    Without these it would be another model, which depends on what numbers and categories are
    counted from.
    """
    place = {(term,): number for number, term in enumerate(simple)}
    ordered = []
    for each in found:
        parts = tuple(sorted(each.parts, key=lambda part: place.get((part,), len(place))))
        if len(set(parts)) < len(parts):
            raise ParameterError(
                f"formula {shown!r}: {each.label} has a term twice; a square is I(NAME^2)"
            )
        ordered.append(Interaction(parts))
    known = {*place, *(each.parts for each in ordered)}
    for each in ordered:
        for size in range(1, len(each.parts)):
            if any(some not in known for some in combinations(each.parts, size)):
                raise ParameterError(
                    f"formula {shown!r}: the interaction {each.label} needs its parts as terms, "
                    f"too; write {'*'.join(part.label for part in each.parts)}"
                )
    return tuple(dict.fromkeys(ordered))


def _kind(shown: str, response: Term, schema: Schema) -> Kind:
    feature = schema.features[schema.index(response.feature)]
    if response.sign or (feature.bin_count == 2 and not response.function):
        return "logistic"
    if not is_numeric(feature) or response.categorical:
        raise ParameterError(
            f"formula {shown!r}: the response {response.feature!r} has more than two categories "
            f'that are no numbers; compare it, as I({response.feature} == "..")'
        )
    return "linear"


def _other_kind(shown: str, response: Term, schema: Schema, kind: Kind) -> Kind:
    """Return a kind that was asked for, where the response allows it."""
    numeric = is_numeric(schema.features[schema.index(response.feature)])
    if kind == "logistic" or response.sign or response.categorical or not numeric:
        wanted = "a comparison or two categories" if kind == "logistic" else "a number"
        raise ParameterError(
            f"formula {shown!r}: the response of a {kind} regression must be {wanted}"
        )
    return kind
