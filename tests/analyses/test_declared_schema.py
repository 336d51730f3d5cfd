"""Analyses and tables that a schema declares: read, written, refused (R26)."""

from __future__ import annotations

import pytest
from declared_tables import ANALYSES, declaring, people, schema

from command import pegs
from pegsynth import Schema, fit, plan, synthesize
from pegsynth.errors import BudgetError, ParameterError, SchemaError
from pegsynth.methods.released._declared import settle_declared
from pegsynth.methods.released._terms import design_of
from pegsynth.schema.declared import Analysis, WantedTable, load_declared
from pegsynth.schema.toml import dumps, loads


def test_declarations_are_written_and_read_again():
    assert loads(dumps(declaring())) == declaring()


def test_a_file_of_its_own_says_the_same(tmp_path):
    (tmp_path / "analyses.toml").write_text(ANALYSES)
    analyses, tables = load_declared(tmp_path / "analyses.toml")
    assert (analyses, tables) == (declaring().analyses, declaring().tables_wanted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[analyses]]\nfamily = "binomial"', "no formula"),
        ('[[analyses]]\nformula = "pay ~ age"\nfamily = "gamma"', "no family 'gamma'"),
        ('[[analyses]]\nformula = "pay ~ age"\nshare = 2.0', "above 0 and below 1"),
        ('[[analyses]]\nformula = "pay ~ age"\nfamly = "x"', "did you mean 'family'"),
        ("[[tables_wanted]]\nshare = 0.1", "names no features"),
        ('[[tables_wanted]]\nfeatures = ["a", "a"]', "named twice"),
        ("", "declares nothing"),
        ("[[analyses", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path, text, said):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(SchemaError, match=said) as caught:
        load_declared(tmp_path / "a.toml")
    assert "a.toml" in str(caught.value)


def test_unknown_features_and_shares_that_leave_nothing_are_refused():
    with pytest.raises(SchemaError, match="no feature 'zip'"):
        schema(tables_wanted=(WantedTable(("zip", "job")),))
    with pytest.raises(SchemaError, match="add up to"):
        schema(analyses=(Analysis("pay ~ age", share=0.6), Analysis("pay ~ job", share=0.6)))
    with pytest.raises(SchemaError, match="wanted twice"):
        schema(tables_wanted=(WantedTable(("area", "job")), WantedTable(("job", "area"))))


@pytest.mark.parametrize(
    ("formula", "family", "said"),
    [
        ("pay ~~ age", "gaussian", "cannot be read"),
        ("pay ~ height", "gaussian", "no feature 'height'"),
        ("area ~ age", "gaussian", "must be a number"),
        ("pay ~ age", "binomial", "must be a comparison"),
        ("pay ~ age", "multinomial", "must be a feature with categories"),
        ("pay ~ C(age)", "gaussian", "requires categories"),
        ("pay ~ 1", "gaussian", "no term"),
        ("pay ~ age:job", "gaussian", "needs its parts as terms"),
        ("pay ~ log(job)", "gaussian", "needs a number"),
        ("log(pay) ~ age", "poisson", "its link is the logarithm already"),
        ("log(pay) ~ age", "binomial", "must be a comparison"),
        ("log(pay) ~ age", "multinomial", "must be a feature with categories"),
    ],
)
def test_a_formula_that_cannot_be_measured_is_refused(formula, family, said):
    with pytest.raises(ParameterError, match=said):
        design_of(Analysis(formula, family), schema())


def test_what_is_measured_follows_from_the_schema():
    plan = settle_declared(declaring())
    assert [each.features for each in plan.tables] == [(2, 1), (0, 2), (0, 1)]
    assert [each.share for each in plan.tables[1:]] == pytest.approx([0.08, 0.04])
    assert plan.withheld == pytest.approx(0.12 + 0.06)
    assert plan.apart == {1, 2}


def test_other_methods_no_epsilon_and_an_l_are_refused():
    table = people(50)
    with pytest.raises(ParameterError, match="pegs-once only"):
        synthesize(table, declaring(), rows=5, epsilon=1.0, method="pegs")
    with pytest.raises(BudgetError, match="epsilon"):
        fit(table, declaring(), method="pegs-once")
    with pytest.raises(BudgetError, match="cannot be stated together"):
        fit(table, declaring(), method="pegs-once", epsilon=1.0, l=1.5)


def test_a_plan_says_what_is_measured_and_what_it_costs(tmp_path):
    schema().save(tmp_path / "schema.toml")
    (tmp_path / "analyses.toml").write_text(ANALYSES)
    shown = pegs(
        *("plan", "--schema", tmp_path / "schema.toml", "--rows", 100, "--epsilon", 1),
        *("--delta", 1e-9, "--analyses", tmp_path / "analyses.toml"),
    )
    assert shown.code == 0, shown.err
    assert "Table area x job: 5.0% of the budget, 6 cells" in shown.out
    assert "Analysis pay ~ age + C(area) (gaussian): 20.0% of the budget" in shown.out
    assert "Choice: pegs-once, because analyses or tables were declared" in shown.out


def test_a_plan_in_python_reads_the_file_and_prints_a_table(tmp_path):
    (tmp_path / "a.toml").write_text(ANALYSES.replace("age + C(area)", "age*C(area) + I(age^2)"))
    budget = {"epsilon": 1.0, "delta": 1e-9, "rows": 100}
    planned = plan(schema(), analyses=str(tmp_path / "a.toml"), **budget)
    shown = str(planned)
    assert shown.startswith("method ")
    assert "Prediction(" not in shown
    assert "Analysis pay ~ age*C(area) + I(age^2) (gaussian): 20.0% of the budget, 7 sums" in shown
    assert "Table area x job: 5.0% of the budget, 6 cells" in shown
    assert "Choice: pegs-once" in shown
    assert [each.method for each in planned.predictions] == ["pegs-once"]
    assert dict(planned.refused)["pegs"] == "it measures no declared analyses and tables"
    plain = plan(schema(), **budget)
    assert plain.best.method in str(plain)
    assert len(plain.predictions) > 1


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (None, {}, "there is no such file"),
        ('[[analyses]]\nformula = "pay ~ age:job"', {}, "needs its parts as terms"),
        ('[[analyses]]\nformula = "pay ~ height"', {}, "no feature 'height'"),
        ('[[analyses]]\nformula = "pay ~ age"', {"decode": "labels"}, "decode labels"),
        ('[[tables_wanted]]\nfeatures = ["zip"]', {}, "a.toml: the table of zip"),
    ],
)
def test_a_plan_refuses_what_a_fit_would(tmp_path, text, more, said):
    file = tmp_path / "a.toml"
    if text is not None:
        file.write_text(text)
    asked = {"analyses": str(file), "epsilon": 1.0, "delta": 1e-9, "rows": 100, **more}
    with pytest.raises((ParameterError, SchemaError), match=said) as planned:
        plan(schema(), **asked)
    with pytest.raises(type(planned.value)) as fitted:
        synthesize(people(50), schema(), method="pegs-once", **asked)
    assert str(fitted.value) == str(planned.value)


def test_bad_files_end_with_one_message(tmp_path):
    schema().save(tmp_path / "schema.toml")
    (tmp_path / "a.toml").write_text('[[tables_wanted]]\nfeatures = ["zip"]')
    shown = pegs(
        *("plan", "--schema", tmp_path / "schema.toml", "--rows", 100, "--epsilon", 1),
        *("--analyses", tmp_path / "a.toml"),
    )
    assert shown.code == 2
    assert "a.toml: the table of zip: the schema has no feature 'zip'" in shown.err


def test_the_published_schema_states_them():
    assert "[[analyses]]" in dumps(declaring())
    assert isinstance(loads(dumps(declaring())), Schema)
