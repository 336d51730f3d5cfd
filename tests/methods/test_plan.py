"""The plan: every method side by side, from public quantities alone."""

from dataclasses import replace
from itertools import pairwise

import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.forecast import forecast
from pegsynth.methods.gibbs.method import LEVEL_TIMES
from pegsynth.pipeline.request import Request
from pegsynth.privacy import Ledger
from pegsynth.schema import Feature, Schema
from small_release import settled_plan

PLANNED_METHODS = ("pegs", "pegs-rs", "pegs-capped", "pegs-once")

SCHEMA = Schema(
    tuple(Feature(name, categories=("x", "y", "z")) for name in "abcdef"), reviewed=True
)
DETAILED = Schema(
    (*SCHEMA.columns[:5], Feature("f", categories=("x", "y", "z"), parent="a")), reviewed=True
)
"""A schema with a detail, which released blocks do not take."""


def planned(epsilon=1.0, delta=None, schema=SCHEMA, **draw):
    request = Request(**({"rows": 1000, "epsilon": epsilon, "delta": delta} | draw))
    return forecast(schema, request.asked(schema, lenient=True))


@pytest.mark.parametrize("delta", [None, 1e-9])
def test_numbers_are_those_of_the_recipes(delta):
    found = planned(2.0, delta, rows_in=10_000)
    assert [option.method for option in found.predictions] == list(PLANNED_METHODS)
    for option in found.predictions:
        settled = settled_plan(
            SCHEMA, method=option.method, epsilon=2.0, delta=delta, rows=1000, rows_in=10_000
        )
        assert option.plan == settled
        assert option.stated == Ledger(settled.events, (), delta or 0.0).guarantee
        assert option.pure == Ledger(settled.events).guarantee
        assert option.stated.epsilon <= 2.0
        if option.method == "pegs-once":
            assert (option.virtual_rows, option.prior_share) == (None, None)
            assert option.noise > 0
            continue
        assert 0 <= option.prior_share <= 1
        times = {"uniform": 3, "marginal": 3 * settled.resolution, "levels": LEVEL_TIMES}
        assert option.virtual_rows == pytest.approx(times[settled.prior] * settled.alpha)


def test_gaussian_noise_has_no_pure_total():
    found = planned(1.0, 1e-9)
    kinds = {option.method: option.pure.kind for option in found.predictions}
    assert "none" in kinds.values()


def test_more_epsilon_and_more_rows_mean_less_prior():
    plans = [
        planned(epsilon, rows_in=rows_in).predictions
        for epsilon, rows_in in ((0.1, 1000), (10.0, 1000), (10.0, 100_000))
    ]
    for low, more, most in zip(*plans, strict=True):
        assert low.error > more.error > most.error
        if low.method != "pegs-once":
            assert low.prior_share > more.prior_share > most.prior_share


def test_the_choice_is_the_smallest_error():
    found = planned(1.0, 1e-9, rows_in=10_000)
    assert found.best is not None
    assert found.best.error == min(o.error for o in found.predictions)
    assert found.best.method == "pegs-once"
    assert found.reason.startswith("pegs-once, for its smallest predicted error")
    few = planned(1.0, rows_in=50)
    assert few.best.method == "pegs-once"


def test_a_method_that_measured_worse_on_like_tables_is_not_taken(monkeypatch):
    """Whatever the formula says of it: here it promises that pegs makes no error."""
    found = planned(1.0, 1e-9, rows_in=10_000)
    eager = tuple(
        replace(each, error=0.0) if each.method == "pegs" else each for each in found.predictions
    )
    tempted = replace(found, predictions=eager)
    assert tempted.best.method == "pegs-once"
    assert "measured best on tables like this one" in tempted.reason
    # Among those that are left it is the smallest error again.
    without = replace(found, predictions=tuple(p for p in eager if p.method != "pegs-once"))
    assert without.best.method != "pegs-once"
    assert replace(tempted, figures=None).best.method == "pegs"


def test_a_budget_that_cannot_carry_the_table_is_told_before_anything_is_read():
    assert planned(1.0, 1e-9, rows_in=100_000, rows=10_000).warning == ""
    poor = planned(0.05, rows_in=200, rows=200)
    assert poor.best.columns_error > 0.1
    assert poor.warning.startswith(
        f"This budget cannot carry this table: expect columns off by {poor.best.columns_error:.0%}"
    )
    assert poor.warning in poor._repr_html_()


def test_the_curve_falls_and_is_text_and_a_picture(tmp_path):
    found = pegsynth.plan(SCHEMA, rows=1000, rows_in=5000, epsilon=1.0, delta=1e-9)
    curve = found.curve((0.1, 1.0, 10.0))
    assert [point.epsilon for point in curve.points] == [0.1, 1.0, 10.0]
    for first, second in pairwise(curve.points):
        assert first.columns > second.columns
        assert first.pairs > second.pairs
    assert curve.points[1].pairs == found.best.error
    head, *lines = curve.lines()
    assert head.split() == ["epsilon", "columns", "off", "pairs", "off"]
    assert [len(line.split("#")) > len(lines[-1].split("#")) for line in lines[:-1]] == [True] * 2
    svg, _ = curve.plot().save(tmp_path / "curve")
    assert "epsilon" in svg.read_text()
    with pytest.raises(ParameterError, match=r"pegsynth\.plan"):
        replace(found, at=None).curve()


def test_without_rows_in_the_original_is_taken_to_be_as_long_as_the_output():
    said = planned(rows_in=1000)
    assert [o.prior_share for o in planned().predictions] == [
        o.prior_share for o in said.predictions
    ]


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
    assert len(found.predictions) == 4
    assert [getattr(o.plan.options, "visits", None) for o in found.predictions] == [
        None,
        None,
        8,
        None,
    ]


@pytest.mark.parametrize("budget", [{"epsilon": 0.0}, {"epsilon": float("nan")}, {}])
def test_budgets_that_cannot_be_planned(budget):
    with pytest.raises(BudgetError):
        pegsynth.plan(SCHEMA, rows=10, **budget)


# Through the command


@pytest.fixture
def schema_file(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    return tmp_path / "schema.toml"


def test_the_command_prints_every_method_and_the_choice(schema_file):
    flags = ("--rows", 1000, "--rows-in", 10_000, "--epsilon", 2, "--delta", 1e-9)
    out = done("plan", "--schema", schema_file, *flags).out
    found = planned(2.0, 1e-9, rows_in=10_000)
    for option in found.predictions:
        (line,) = [line for line in out.splitlines() if line.startswith(f"{option.method} ")]
        fields = line.split()
        assert fields[1] == str(option.heads)
        if option.method == "pegs-once":
            assert fields[2:5] == ["-", "-", "-"]
            assert f"noise of {option.noise:.4g} rows" in line
            continue
        assert float(fields[2]) == pytest.approx(option.alpha, rel=1e-3)
        assert float(fields[3]) == pytest.approx(option.virtual_rows, rel=1e-3)
        assert fields[4] == f"{option.prior_share:.0%}"
    assert found.best.method in out.splitlines()[-1]
    assert "--rows-in" not in out
    assert (
        "not stated (--rows-in)"
        in done("plan", "--schema", schema_file, *flags[:2], *flags[4:]).out
    )


def test_the_command_draws_the_curve_warns_and_says_that_it_guesses(schema_file, tmp_path):
    flags = ("--rows", 100, "--epsilon", 0.05, "--curve", tmp_path / "errors.svg")
    out = done("plan", "--schema", schema_file, *flags).out
    assert "so predicted errors are a guess: taken to be 100, as --rows." in out
    assert "This budget cannot carry this table: expect columns off by" in out
    assert "Predicted for the best method at other budgets:" in out
    assert (tmp_path / "errors.svg").read_text().startswith("<svg")
    assert (tmp_path / "errors.png").is_file()
    check_refused(
        pegs("plan", "--schema", schema_file, *flags[:4], "--curve", tmp_path / "no" / "x.svg"),
        "no",
    )


def test_the_command_reads_nothing_but_the_schema(schema_file, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a plan reads no data")

    monkeypatch.setattr("pegsynth.tables.table_input.open_table", refuse)
    monkeypatch.setattr("pegsynth.pipeline.running.fit", refuse)
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
