import numpy as np
import pytest
from regression_twins import SCHEMA

from pegsynth.errors import ParameterError
from pegsynth.evaluation.formula import Term, cuts_a_bin, read_formula, read_response, truth
from pegsynth.schema import Feature, Schema

ODD = Schema(
    (
        Feature("length of stay", kind="numeric", edges=(0.0, 5.0, 10.0)),
        Feature("grade", kind="ordinal", categories=("low", "mid", "high"), missing=("",)),
        Feature("code", categories=("007", "12", "it's")),
        Feature("C", categories=("x", "y")),
    )
)


def feature(name, schema=SCHEMA):
    return schema.features[schema.index(name)]


def test_a_formula_has_a_response_and_terms():
    formula = read_formula("  charge ~ age+C(sev)  + I(los >= 2) ", SCHEMA)
    assert formula.text == "charge ~ age+C(sev) + I(los >= 2)"
    assert formula.response == Term("charge")
    assert formula.terms == (
        Term("age"),
        Term("sev", categorical=True),
        Term("los", sign=">=", operand="2"),
    )
    assert formula.kind == "linear"
    assert formula.features == ("charge", "age", "sev", "los")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I(charge > 25) ~ age", "logistic"),
        ("cat ~ age", "logistic"),
        ("sev ~ age", "linear"),
        ("charge ~ 1", "linear"),
        ("charge ~ 1 + age", "linear"),
    ],
)
def test_the_response_decides_the_kind(text, kind):
    assert read_formula(text, SCHEMA).kind == kind


def test_names_that_are_not_words_are_quoted():
    formula = read_formula('`length of stay` ~ C + C(grade) + I(code == "it\'s")', ODD)
    assert formula.features == ("length of stay", "C", "grade", "code")
    assert read_response("length of stay", ODD) == Term("length of stay")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "charge",
        "charge ~",
        "~ age",
        "charge ~ age +",
        "charge ~ age - sev",
        "charge ~ age * sev",
        "charge ~ age:sev",
        "charge ~ log(age)",
        "charge ~ I(age)",
        "charge ~ I(age > )",
        "charge ~ I(age + 1)",
        "charge ~ C(age",
        "charge ~ age age",
        "charge ~ age ~ sev",
        "charge ~ 0",
        "charge ~ __import__('os').system('true')",
        "I(charge > 25 or True) ~ age",
        "charge ~ age; import os",
    ],
)
def test_what_is_not_a_formula_is_refused(text):
    with pytest.raises(ParameterError, match="cannot be read"):
        read_formula(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("charge ~ weight", "no feature 'weight'"),
        ("charge ~ age + age", "given twice"),
        ("ward ~ age", "more than two categories"),
        ("C(charge) ~ age", "more than two categories"),
        ("charge ~ I(ward > 3)", "no category of that name"),
        ('charge ~ I(ward > "a")', "have no order"),
        ("charge ~ I(charge == 25.5)", "no category of 'charge' is that number"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        read_formula(text, SCHEMA)


def test_bins_are_compared_by_their_midpoints():
    answers = truth(Term("charge", sign=">", operand="30"), feature("charge"))
    np.testing.assert_array_equal(answers, [0, 0, 0, 1, 1])
    answers = truth(Term("age", sign="<=", operand="30"), feature("age"))
    np.testing.assert_array_equal(answers, [1, 1, 0, 0, np.nan])


def test_names_are_compared_as_text_and_by_order():
    answers = truth(Term("grade", sign=">=", operand='"mid"'), feature("grade", ODD))
    np.testing.assert_array_equal(answers, [0, 1, 1, np.nan])
    answers = truth(Term("code", sign="!=", operand="12"), feature("code", ODD))
    np.testing.assert_array_equal(answers, [1, 0, 1])


def test_a_number_inside_a_bin_is_noticed():
    assert cuts_a_bin(Term("charge", sign=">", operand="25"), feature("charge"))
    assert not cuts_a_bin(Term("charge", sign=">", operand="30"), feature("charge"))
    assert not cuts_a_bin(Term("charge", sign=">", operand="1e6"), feature("charge"))
    assert not cuts_a_bin(Term("charge"), feature("charge"))
