"""The codebook as people write it in Python: features by name, rules by category, a table."""

import doctest

import pytest

from pegsynth import Feature, Ledger, Rule, Schema
from pegsynth.errors import SchemaError
from pegsynth.privacy import NoisyCounts
from pegsynth.schema import rules, schema
from pegsynth.schema.toml import dumps, loads

COLUMNS = (
    Feature("id", role="identifier"),
    Feature("sex", categories=["Female", "Male"], missing=[""]),
    Feature("MDC", categories=("5", "14", "15")),
    Feature("age.yrs", "numeric", edges=[0, 18, 65, 100]),
)


def book(**more):
    return Schema(COLUMNS, reviewed=True, **more)


def test_examples_in_docstrings():
    for module in (rules, schema):
        names = {"Feature": Feature, "Schema": Schema, "Rule": Rule}
        assert doctest.testmod(module, extraglobs=names).failed == 0


def test_a_feature_by_its_name():
    assert book()["MDC"].categories == ("5", "14", "15")
    assert book()["id"].role == "identifier"
    with pytest.raises(SchemaError, match="no feature 'mdc'; it has id, sex, MDC"):
        book()["mdc"]


def test_rules_by_name_are_those_by_code():
    named = book(rules=(Rule.forbid(sex="Male", MDC=["14", "15"], label="men"),))
    assert named.rules == (Rule.of({0: [1], 1: [1, 2]}, "men"),)
    dotted = book().with_rules(Rule.forbid({"age.yrs": "[0, 18)", "MDC": "14"}))
    assert dotted.rules == (Rule.of({1: [1], 2: [0]}),)
    assert not dotted.reviewed
    assert loads(dumps(named)) == named
    for wrong in ({"sex": "male"}, {"six": "Male"}, {"id": "1"}, {}, {"sex": []}):
        with pytest.raises(SchemaError):
            book(rules=(Rule.forbid(wrong),))


def test_a_changed_feature_keeps_the_rules_by_name():
    before = book(rules=(Rule.forbid(sex="Male", MDC="14"),))
    role = before.with_feature("MDC", role="sensitive", l=2.0)
    assert role["MDC"].role == "sensitive"
    assert role.reviewed
    assert role.rules == before.rules
    turned = before.with_feature("MDC", categories=("14", "15", "5"))
    assert turned.rules == (Rule.of({0: [1], 1: [0]}),)
    assert not turned.reviewed
    dropped = before.with_feature("age.yrs", role="identifier")
    assert dropped.names == ("sex", "MDC")
    for change in ({"categories": ("5", "15")}, {"role": "identifier"}, {"colour": "red"}):
        with pytest.raises(SchemaError):
            before.with_feature("MDC", **change)
    assert before == book(rules=(Rule.forbid(sex="Male", MDC="14"),))


def test_a_schema_shows_itself_as_a_table():
    shown = repr(book(unit="id", rows_per_unit=3)).splitlines()
    assert shown[0] == "Schema: reviewed, 0 rules, at most 3 rows per unit"
    assert shown[1].split() == ["feature", "kind", "categories", "role", "missing"]
    assert shown[2].split() == ["id", "unit"]
    assert shown[3].split() == ["sex", "nominal", "2", "other", "yes"]


@pytest.mark.parametrize("name", ["categories", "missing", "not_applicable", "heads"])
@pytest.mark.parametrize("value", ["xy", 3, (1, 2), [None]])
def test_no_text_is_taken_for_a_list_of_letters(name, value):
    given = {"categories": ("a",), name: value}
    with pytest.raises(SchemaError, match=f"feature 'f': {name}"):
        Feature("f", **given)


def test_ledgers_add_up():
    one = Ledger().add(NoisyCounts.laplace(2.0, cells=1, purpose="marginals"))
    assert (one + one).epsilon == Ledger.combine([one, one]).epsilon
    assert (one + one).epsilon > one.epsilon
