"""The plan: recipes of every method side by side, from public quantities alone."""

from dataclasses import replace

import pytest

from command import check_refused, done, pegs
from pegsynth.errors import BudgetError
from pegsynth.options import PEGS_METHODS, DrawOptions, FitOptions
from pegsynth.privacy import Budget, Ledger
from pegsynth.schema import Feature, Schema
from pegsynth.methods.forecast import PLANNED_METHODS, plan
from pegsynth.methods.gibbs.plan import make_recipe

SCHEMA = Schema(
    tuple(Feature(name, categories=("x", "y", "z")) for name in "abcdef"), reviewed=True
)
DETAILED = Schema(
    (*SCHEMA.columns[:5], Feature("f", categories=("x", "y", "z"), parent="a")), reviewed=True
)
"""A schema with a detail, which released blocks do not take."""


def planned(epsilon=1.0, delta=None, schema=SCHEMA, **draw):
    options = DrawOptions(**({"rows": 1000, "method": "pegs-capped"} | draw))
    return plan(schema, Budget(epsilon=epsilon, delta=delta), FitOptions(), options)


@pytest.mark.parametrize("delta", [None, 1e-9])
def test_numbers_are_those_of_the_recipes(delta):
    found = planned(2.0, delta, rows_in=10_000)
    assert [option.method for option in found.options] == list(PLANNED_METHODS)
    assert set(PLANNED_METHODS) == {*PEGS_METHODS, "pegs-once"}
    for option in found.options:
        draw = DrawOptions(1000, option.method, rows_in=10_000)
        settled = make_recipe(SCHEMA, Budget(epsilon=2.0, delta=delta), FitOptions(), draw)
        assert option.recipe == settled
        assert option.stated == Ledger(settled.events, (), delta or 0.0).guarantee
        assert option.pure == Ledger(settled.events).guarantee
        assert option.stated.epsilon <= 2.0
        if option.method == "pegs-once":
            assert (option.virtual_rows, option.prior_share) == (None, None)
            assert option.noise > 0
            continue
        assert 0 <= option.prior_share <= 1
        factor = settled.resolution if settled.prior == "marginal" else 1
        assert option.virtual_rows == pytest.approx(3 * factor * settled.numerator / settled.scale)


def test_gaussian_noise_has_no_pure_total():
    found = planned(1.0, 1e-9)
    kinds = {option.method: option.pure.kind for option in found.options}
    assert "none" in kinds.values()


def test_more_epsilon_and_more_rows_mean_less_prior():
    plans = [
        planned(epsilon, rows_in=rows_in).options
        for epsilon, rows_in in ((0.1, 1000), (10.0, 1000), (10.0, 100_000))
    ]
    for low, more, most in zip(*plans, strict=True):
        assert low.predicted_error > more.predicted_error > most.predicted_error
        if low.method != "pegs-once":
            assert low.prior_share > more.prior_share > most.prior_share


def test_the_choice_is_the_smallest_predicted_error():
    found = planned(1.0, 1e-9, rows_in=10_000)
    assert found.best is not None
    assert found.best.predicted_error == min(o.predicted_error for o in found.options)
    assert found.best.method == "pegs-once"
    assert found.reason.startswith("pegs-once, for its smallest predicted error")
    few = planned(1.0, rows_in=50)
    assert few.best.method == "pegs-capped"


def test_without_rows_in_the_original_is_taken_to_be_as_long_as_the_output():
    said = planned(rows_in=1000)
    assert [o.prior_share for o in planned().options] == [o.prior_share for o in said.options]


def test_methods_that_cannot_meet_the_budget_say_why():
    found = planned(1e-8, schema=DETAILED, rows=10**8, visits=1, chains=1)
    assert found.refused[-1][0] == "pegs-once"
    assert "parent" in found.refused[-1][1]
    found = replace(found, refused=found.refused[:-1])
    assert [method for method, _ in found.refused] == ["pegs", "pegs-rs"]
    for _, why in found.refused:
        assert "larger epsilon" in why
        assert "fewer rows" in why
    assert found.best.method == "pegs-capped"
    nothing = planned(1e-9, schema=DETAILED, rows=10**8, visits=10**9)
    assert nothing.best is None
    assert len(nothing.refused) == 4


def test_a_cap_is_for_the_capped_method_alone():
    found = planned(visits=8, chains=2)
    assert len(found.options) == 4
    assert [o.recipe.draw.visits for o in found.options] == [None, None, 8, None]


@pytest.mark.parametrize("budget", [{"epsilon": 0.0}, {"epsilon": float("nan")}, {}])
def test_budgets_that_cannot_be_planned(budget):
    with pytest.raises(BudgetError):
        plan(SCHEMA, Budget(**budget), FitOptions(), DrawOptions(10))


# Through the command


@pytest.fixture
def schema_file(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    return tmp_path / "schema.toml"


def test_the_command_prints_every_method_and_the_choice(schema_file):
    flags = ("--rows", 1000, "--rows-in", 10_000, "--epsilon", 2, "--delta", 1e-9)
    out = done("plan", "--schema", schema_file, *flags).out
    found = planned(2.0, 1e-9, rows_in=10_000)
    for option in found.options:
        (line,) = [line for line in out.splitlines() if line.startswith(f"{option.method} ")]
        fields = line.split()
        assert fields[1] == str(option.recipe.heads)
        if option.method == "pegs-once":
            assert fields[2:5] == ["-", "-", "-"]
            assert f"noise of {option.noise:.4g} rows" in line
            continue
        assert float(fields[2]) == pytest.approx(option.recipe.numerator / (1 << 20), rel=1e-3)
        assert float(fields[3]) == pytest.approx(option.virtual_rows, rel=1e-3)
        assert fields[4] == f"{option.prior_share:.0%}"
    assert found.best.method in out.splitlines()[-1]
    assert "--rows-in" not in out
    assert (
        "not stated (--rows-in)"
        in done("plan", "--schema", schema_file, *flags[:2], *flags[4:]).out
    )


def test_the_command_reads_nothing_but_the_schema(schema_file, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a plan reads no data")

    monkeypatch.setattr("pegsynth.io.read.open_table", refuse)
    monkeypatch.setattr("pegsynth.methods.gibbs.fitting.fit", refuse)
    done("plan", "--schema", schema_file, "--rows", 10, "--epsilon", 1)


@pytest.mark.parametrize("flags", [(), ("--delta", 1e-9)])
def test_the_command_needs_an_epsilon(schema_file, flags):
    check_refused(pegs("plan", "--schema", schema_file, "--rows", 10, *flags), "--epsilon")


def test_the_command_says_what_would_help_when_nothing_fits(schema_file):
    DETAILED.save(schema_file)
    outcome = pegs("plan", "--schema", schema_file, "--rows", 10**9, "--epsilon", 1e-9)
    assert outcome.code == 2
    assert "no method can meet this budget" in outcome.err
    for remedy in ("raise epsilon", "delta", "fewer rows"):
        assert remedy in outcome.err
