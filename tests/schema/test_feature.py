"""Features, rules and schemas refuse what is not consistent, and number their codes."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pegsynth.errors import SchemaError
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.feature import number_text
from pegsynth.schema.keys import MISSING_LABEL, UNKNOWN_LABEL
from pegsynth.schema.recoding import Recoding

SEX = Feature("sex", categories=("Male", "Female"), missing=("", "NA"))
AGE = Feature("age", kind="numeric", dtype="int64", edges=(0, 1, 18, 65, 120))


def test_codes_run_categories_unknown_not_applicable_missing():
    feature = Feature(
        "x",
        categories=("b", "a"),
        unknown="category",
        not_applicable=("NAP", "n.a."),
        missing=("", "NA"),
    )
    assert feature.labels == ("b", "a", UNKNOWN_LABEL, "NAP", MISSING_LABEL)
    assert feature.category_count == len(feature.labels) == 5
    assert (feature.unknown_code, feature.not_applicable_code, feature.missing_code) == (2, 3, 4)


def test_codes_of_absent_special_categories_are_none():
    feature = Feature("x", categories=("a",))
    assert (feature.unknown_code, feature.not_applicable_code, feature.missing_code) == (None,) * 3
    assert feature.category_count == 1


def test_bin_labels_name_single_integers_and_close_the_last_bin():
    assert AGE.labels == ("0", "[1, 18)", "[18, 65)", "[65, 120]")
    assert AGE.bin_count == 4


def test_a_feature_of_missing_values_only_is_valid():
    assert Feature("x", missing=("",)).labels == (MISSING_LABEL,)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (-3.0, "-3"), (0.1, "0.1"), (1e300, "1e+300"), (12345678.0, "12345678")],
)
def test_number_text_is_short_and_exact(value, text):
    assert number_text(value) == text
    assert float(number_text(value)) == value


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"name": ""}, "name"),
        ({"kind": "binary", "categories": ("a",)}, "kind"),
        ({"role": "secret", "categories": ("a",)}, "role"),
        ({"unknown": "ignore", "categories": ("a",)}, "unknown"),
        ({"l": 0.5, "categories": ("a",)}, "l must"),
        ({"l": math.inf, "categories": ("a",)}, "l must"),
        ({"l": math.nan, "categories": ("a",)}, "l must"),
        ({}, "no categories"),
        ({"categories": ("a", "a")}, "twice"),
        ({"categories": ("a",), "not_applicable": ("a",)}, "twice"),
        ({"categories": ("a",), "missing": ("a",)}, "missing"),
        ({"categories": ("a",), "edges": (0.0, 1.0)}, "edges"),
        ({"categories": (MISSING_LABEL,), "missing": ("",)}, "rename"),
        ({"categories": (UNKNOWN_LABEL,), "unknown": "category"}, "rename"),
        ({"kind": "numeric"}, "two edges"),
        ({"kind": "numeric", "edges": (0.0,)}, "two edges"),
        ({"kind": "numeric", "edges": (0.0, 1.0), "private_edges": True}, "not both"),
        ({"kind": "numeric", "edges": (0.0, 1.0), "bins": 8}, "require edges"),
        ({"kind": "numeric", "edges": (0.0, 1.0), "lowest": 0.0}, "require edges"),
        ({"kind": "numeric", "edges": "private", "bins": 1}, "from 2"),
        ({"kind": "numeric", "edges": "private", "bins": 1001}, "from 2"),
        ({"kind": "numeric", "edges": "private", "lowest": math.nan}, "finite"),
        ({"kind": "numeric", "edges": "private", "highest": math.inf}, "finite"),
        ({"kind": "numeric", "edges": "private", "lowest": 2, "highest": 2}, "less than"),
        ({"kind": "numeric", "edges": "private", "lowest": 0.5, "dtype": "int8"}, "whole"),
        ({"kind": "numeric", "edges": "private", "shares": (1.0,)}, "shares"),
        ({"kind": "numeric", "edges": "private", "categories": ("a",)}, "not categories"),
        ({"kind": "numeric", "edges": "private", "inside": "normal"}, "inside"),
        ({"kind": "numeric", "edges": "private", "decimals": 16}, "decimals"),
        ({"kind": "numeric", "edges": "private", "decimals": 1, "dtype": "int8"}, "decimals"),
        ({"kind": "numeric", "edges": "secret"}, "list of values"),
        ({"categories": ("a",), "edges": "private"}, "categories, not edges"),
        ({"categories": ("a",), "decimals": 2}, "numeric"),
        ({"kind": "numeric", "edges": (0.0, 0.0)}, "increase"),
        ({"kind": "numeric", "edges": (1.0, 0.0)}, "increase"),
        ({"kind": "numeric", "edges": (0.0, math.inf)}, "finite"),
        ({"kind": "numeric", "edges": (math.nan, 1.0)}, "finite"),
        ({"kind": "numeric", "edges": (0.0, 1.5), "dtype": "int32"}, "whole"),
        ({"kind": "numeric", "edges": (0.0, 1.0), "categories": ("a",)}, "categories"),
        ({"kind": "numeric", "edges": (0.0, 1.0), "not_applicable": ("[0, 1]",)}, "rename"),
        ({"kind": "numeric", "edges": (0, 1), "missing": ("9",), "not_applicable": ("9",)}, "both"),
    ],
)
def test_inconsistent_features_are_refused(arguments, word):
    with pytest.raises(SchemaError, match=word) as caught:
        Feature(**{"name": "f1", **arguments})
    if arguments.get("name", "f1"):
        assert "'f1'" in str(caught.value)


def test_an_identifier_needs_no_categories():
    assert Feature("id", role="identifier").categories == ()


def test_nothing_is_kept_of_an_identifier_but_its_name_and_role():
    said = {
        "categories": ("Ada", "Bob", "Bob"),
        "edges": (3.0, 1.0),
        "missing": ("Cy",),
        "not_applicable": ("Di",),
        "dtype": "int64",
        "heads": ("x",),
        "l": 2.0,
        "parent": "y",
        "shares": (0.5,),
        "unknown": "category",
        "drafted_from_data": True,
        "label": "such as Eve",
        "value_labels": (("1", "Eve"),),
        "private_edges": True,
        "private_categories": True,
        "lowest": 3.0,
        "highest": 1.0,
        "bins": 1,
        "inside": "measured",
        "decimals": 2,
        "format": "%d.%m.%Y",
        "resolution": "day",
        "weekday": True,
        "after": "z",
        "keep_missing_codes": True,
        "recoding": Recoding(groups={"Fay": ("Gus",)}),
        "label_of": "z",
    }
    assert {*said, "name", "kind", "role", "notes"} == set(Feature.__dataclass_fields__)
    plain = Feature("id", role="identifier")
    for kind in ("nominal", "ordinal", "numeric", "date"):
        made = Feature("id", kind=kind, role="identifier", **said)
        assert (made, repr(made)) == (plain, repr(plain))
    assert replace(SEX, role="identifier") == Feature("sex", role="identifier")
    with pytest.raises(SchemaError, match="l must"):
        Feature("id", role="identifier", l=0.5)


def test_the_unit_column_is_an_identifier_whatever_it_is_said_to_be():
    person = Feature("person", categories=("Ada", "Bob"), role="quasi-identifier", label="Eve")
    schema = Schema((person, SEX, AGE), unit="person")
    assert schema.columns == (Feature("person", role="identifier"), SEX, AGE)
    assert replace(schema, unit="sex").columns[1] == Feature("sex", role="identifier")


def test_a_rule_marks_the_rows_that_hold_all_its_parts():
    rule = Rule.of({1: [0], 0: [2, 3]})
    codes = np.array([[2, 0], [3, 0], [2, 1], [0, 0]], dtype=np.uint8)
    assert rule.broken_by(codes).tolist() == [True, True, False, False]


def test_rules_are_equal_whatever_the_order_they_are_given_in():
    assert Rule.of({1: [0], 0: [3, 2]}) == Rule.of({0: [2, 3], 1: [0, 0]})
    assert Rule(((1, frozenset({0})), (0, frozenset({1})))) == Rule.of({0: [1], 1: [0]})


@pytest.mark.parametrize(
    "forbid", [(), ((0, frozenset()),), ((0, frozenset({1})), (0, frozenset({2})))]
)
def test_empty_and_repeated_parts_of_a_rule_are_refused(forbid):
    with pytest.raises(SchemaError, match="rule"):
        Rule(forbid)


def test_breaks_a_rule_is_the_union_of_the_rules():
    schema = Schema((SEX, AGE), rules=(Rule.of({0: [0], 1: [0]}), Rule.of({0: [2]})))
    codes = np.array([[0, 0], [0, 1], [2, 3]], dtype=np.uint8)
    assert schema.breaks_a_rule(codes).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        (Rule.of({2: [0]}, "far"), "far"),
        (Rule.of({-1: [0]}), "rule 1"),
        (Rule.of({0: [3]}), "lacks"),
        (Rule.of({0: [0, 1, 2]}), "every row"),
        (Rule.of({0: [0, 1, 2], 1: [0, 1, 2, 3]}), "every row"),
    ],
)
def test_rules_beyond_the_schema_or_against_every_row_are_refused(rule, word):
    with pytest.raises(SchemaError, match=word):
        Schema((SEX, AGE), rules=(rule,))


def test_features_leave_out_identifiers_and_the_unit():
    person = Feature("person", categories=("p",))
    schema = Schema((Feature("id", role="identifier"), person, SEX, AGE), unit="person")
    assert schema.names == ("sex", "age")
    assert schema.category_counts == (3, 4)
    assert schema.index("age") == 1
    assert schema.code_dtype == np.uint8


@pytest.mark.parametrize(
    ("columns", "options", "word"),
    [
        ((SEX, SEX), {}, "twice"),
        ((), {}, "no feature left"),
        ((Feature("id", role="identifier"),), {}, "no feature left"),
        ((SEX,), {"rows_per_unit": 0}, "rows_per_unit"),
        ((SEX, Feature("y", categories=("a",), heads=("z",))), {}, "'z'"),
        ((SEX, Feature("y", categories=("a",), heads=("y",))), {}, "'y'"),
        ((SEX, Feature("y", categories=("a",), parent="z")), {}, "'z'"),
        ((SEX, Feature("y", categories=("a",), heads=("sex", "sex"))), {}, "twice"),
    ],
)
def test_inconsistent_schemas_are_refused(columns, options, word):
    with pytest.raises(SchemaError, match=word):
        Schema(columns, **options)


def test_an_unknown_feature_name_is_answered_with_the_known_ones():
    with pytest.raises(SchemaError, match="sex, age"):
        Schema((SEX, AGE)).index("seks")
