import numpy as np
import pytest
from regression_twins import SCHEMA

from pegsynth.errors import ParameterError
from pegsynth.inference.formula import (
    Interaction,
    Term,
    cuts_a_bin,
    read_formula,
    read_response,
)
from pegsynth.inference.model_matrix import transformed, truth
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


def test_products_are_expanded_and_merged():
    a, b, c = Term("age"), Term("sev", categorical=True), Term("cat")
    formula = read_formula("charge ~ cat + age*C(sev) + cat*age + C(sev):age", SCHEMA)
    assert formula.terms == (c, a, b, Interaction((a, b)), Interaction((c, a)))
    assert formula.parts == (c, a, b)
    assert formula.features == ("charge", "cat", "age", "sev")
    assert formula.terms[3].text == "age:C(sev)"
    three = read_formula("charge ~ age*cat*los", SCHEMA)
    assert [term.text for term in three.terms] == [
        *("age", "cat", "los", "age:cat", "age:los", "cat:los", "age:cat:los"),
    ]


def test_numbers_are_transformed():
    formula = read_formula("log(charge) ~ I(age**2) + rcs(los, 1, 2, 4) + sqrt(sev)", SCHEMA)
    assert formula.kind == "linear"
    texts = [term.text for term in formula.terms]
    assert texts == ["I(age^2)", "rcs(los, 1, 2, 4)[1]", "rcs(los, 1, 2, 4)[2]", "sqrt(sev)"]
    numbers = np.array([-1.0, 0.0, 4.0, np.nan])
    power, first, second, root = formula.terms
    np.testing.assert_array_equal(transformed(power, numbers), [1, 0, 16, np.nan])
    np.testing.assert_array_equal(transformed(first, numbers), numbers)
    np.testing.assert_array_equal(transformed(root, numbers), [np.nan, 0, 2, np.nan])
    logs = transformed(formula.response, numbers)
    np.testing.assert_array_equal(logs, [np.nan, np.nan, np.log(4.0), np.nan])
    # (x - 1)^3 - (x - 2)^3 3/2 + (x - 4)^3 1/2, each from its knot on, over (4 - 1)^2.
    spline = transformed(second, np.array([0.0, 2.0, 3.0, 6.0, 7.0]))
    np.testing.assert_allclose(spline, [0, 1 / 9, 6.5 / 9, 33 / 9, 42 / 9])
    large = transformed(read_formula("charge ~ I(age^3)", SCHEMA).terms[0], np.array([1e200]))
    assert np.isnan(large).all()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("charge ~ age", "logistic", "a comparison or two categories"),
        ("I(charge > 25) ~ age", "poisson", "must be a number"),
        ("cat ~ age", "linear", "must be a number"),
    ],
)
def test_a_kind_that_the_response_does_not_allow_is_refused(text, kind, message):
    assert read_formula("los ~ age", SCHEMA, kind="poisson").kind == "poisson"
    with pytest.raises(ParameterError, match=message):
        read_formula(text, SCHEMA, kind=kind)


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
        "charge ~ age * ",
        "charge ~ age:",
        "charge ~ age ^ 2",
        "charge ~ exp(age)",
        "charge ~ I(age^4)",
        "charge ~ I(age^-2)",
        "charge ~ log(age, 2)",
        "charge ~ (age + sev) * los",
        "rcs(charge, 1, 2, 3) ~ age",
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
        ("charge ~ log(ward)", "needs a number, and 'ward' has categories"),
        ("charge ~ age:sev", r"needs its parts as terms, too; write age\*sev"),
        ("charge ~ age*sev + age:sev:los", r"write age\*sev\*los"),
        ("charge ~ age + age:age", "has a term twice"),
        ("charge ~ rcs(age, 20, 40)", "3 knots or more"),
        ("charge ~ rcs(age, 20, 60, 40)", "ascending order"),
        ("charge ~ age*sev*cat*ward*los", r"at most 4 terms are joined by \*"),
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
