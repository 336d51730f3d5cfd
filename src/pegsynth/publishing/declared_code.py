"""The declared analyses of a release as code for R and Stata, column by column.

Goes in: declared regressions and the schema. Comes out: for every term the column that it is, as an
expression of either program, and the model. Splines, and comparisons of what is no number, are
left out: `pegsynth.replicated` has them all. Python needs no code but the formula itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegsynth.inference.formula import FUNCTIONS, POWER, SPLINE, Term, read_terms
from pegsynth.inference.value_columns import is_numeric
from pegsynth.schema import Schema
from pegsynth.schema.declared import Analysis

FAMILIES_OF_PYTHON = ("gaussian", "binomial", "poisson")
_IN_R = {"gaussian": "gaussian", "binomial": "quasibinomial", "poisson": "quasipoisson"}
_IN_STATA = {
    "gaussian": "regress",
    "binomial": "logit",
    "poisson": "poisson",
    "multinomial": "mlogit",
}
_STATA_FUNCTIONS = {"log": "ln", "log1p": "ln1p", "sqrt": "sqrt"}


@dataclass(frozen=True)
class Part:
    """A column of a model.

    Parameters
    ----------
    label
        What it is called, as results of `pegsynth.replicated` call it.
    feature
        The column of the table that it is made of.
    categories
        Its categories in order; None: it is a number.
    in_r, in_stata
        What it is of the number ``{x}``.
    """

    label: str
    feature: str
    categories: tuple[str, ...] | None = None
    in_r: str = "{x}"
    in_stata: str = "{x}"

    @property
    def in_brackets(self) -> str:
        """Its name in R: in brackets, as that of no object that functions of R use inside."""
        return f"[{self.label}]"


@dataclass(frozen=True)
class Model:
    """A declared analysis.

    Parameters
    ----------
    response, parts
        The columns that it needs.
    terms
        The terms, each by the places of its parts: an interaction has several.
    family, command
        Family in R, empty where it has none, and command in Stata.
    """

    formula: str
    response: Part
    parts: tuple[Part, ...]
    terms: tuple[tuple[int, ...], ...]
    family: str
    command: str

    @property
    def columns(self) -> tuple[Part, ...]:
        """The response, and what explains it."""
        return self.response, *self.parts

    @property
    def in_r(self) -> str:
        """The formula, of columns that have the labels as names, in brackets."""
        terms = [
            ":".join(f"`{self.parts[place].in_brackets}`" for place in term) for term in self.terms
        ]
        return f"`{self.response.in_brackets}` ~ {' + '.join(terms)}"

    def in_stata(self, number: int) -> str:
        """Return the terms of the model with this number, whose columns are x1_1, x1_2, .."""
        return " ".join(
            "#".join(
                f"{'c' if self.parts[place].categories is None else 'i'}.x{number}_{place + 1}"
                for place in term
            )
            for term in self.terms
        )


def declared_models(analyses: Sequence[Analysis], schema: Schema) -> list[Model]:
    """Return the declared analyses that R and Stata can be told, in order."""
    found = []
    for analysis in analyses:
        shown, response, terms = read_terms(analysis.formula, schema)
        single = tuple(dict.fromkeys(part for term in terms for part in term.parts))
        explained, *parts = (_part(each, schema) for each in (response, *single))
        known = tuple(part for part in parts if part is not None)
        if explained is None or len(known) < len(single):
            continue
        places = tuple(tuple(map(single.index, term.parts)) for term in terms)
        model = (_IN_R.get(analysis.family, ""), _IN_STATA[analysis.family])
        found.append(Model(shown, explained, known, places, *model))
    return found


def _part(term: Term, schema: Schema) -> Part | None:
    """Return the column of a term; None where it has no code."""
    feature = schema[term.feature]
    number = is_numeric(feature) and not term.categorical
    if term.function == SPLINE or (not number and (term.sign or term.function)):
        return None
    if not number:
        listed = feature.labels[: feature.bin_count]
        return Part(term.label, term.feature, tuple(map(str, listed)))
    if term.sign:
        compared = f"{{x}} {term.sign} {term.operand}"
        return Part(term.label, term.feature, None, f"as.numeric({compared})", compared)
    if term.function == POWER:
        return Part(term.label, term.feature, None, *[f"{{x}}^{term.numbers[0]}"] * 2)
    if term.function in FUNCTIONS:
        stata = f"{_STATA_FUNCTIONS[term.function]}({{x}})"
        return Part(term.label, term.feature, None, f"{term.function}({{x}})", stata)
    return Part(term.label, term.feature)
