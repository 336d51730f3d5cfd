"""`pegs plan` finds the epsilon that meets a goal, or says why none does."""

import math

import pytest

import pegsynth
from command import check_refused, done, pegs
from contract import contract_schema
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.forecast import Forecast
from pegsynth.methods.goals import MOST, epsilon_for
from pegsynth.privacy.guesses import gain_of

SCHEMA = contract_schema()
ROWS = {"rows": 20_000, "rows_in": 20_000}


def planned(epsilon, **options):
    return pegsynth.plan(SCHEMA, epsilon=epsilon, **ROWS, **options)


def stated(found):
    return found.best.stated


@pytest.mark.parametrize("delta", [None, 1e-9])
@pytest.mark.parametrize("risk", [0.01, 0.05, 0.2])
def test_no_guess_is_right_more_often_than_the_risk_allows(risk, delta):
    found = pegsynth.plan(SCHEMA, risk=risk, delta=delta, **ROWS)
    guarantee = stated(found)
    assert gain_of(guarantee).success <= 0.5 + risk
    # With one more of the third digit it would be, or the release has a price in epsilon alone.
    larger = stated(planned(guarantee.epsilon * 1.02, delta=delta))
    assert gain_of(larger).success > 0.5 + risk or guarantee.epsilon == pytest.approx(
        2 * math.atanh(2 * risk), rel=0.01
    )


def test_the_smallest_epsilon_keeps_pairs_as_close_as_asked():
    goal = planned(2.0, delta=1e-9).best.error
    found = pegsynth.plan(SCHEMA, pairs_off=goal, delta=1e-9, **ROWS)
    epsilon = stated(found).epsilon
    assert found.best.error <= goal
    assert epsilon == pytest.approx(2.0, rel=0.02)
    assert planned(epsilon * 0.97, delta=1e-9).best.error > goal


def test_goals_that_cannot_be_met_are_refused():
    with pytest.raises(BudgetError, match=r"cannot be reached: at epsilon 100 they are still off"):
        pegsynth.plan(SCHEMA, pairs_off=1e-6, delta=1e-9, **ROWS)
    goal = planned(2.0, delta=1e-9).best.error
    with pytest.raises(BudgetError, match=r"takes epsilon .*, and risk 0.001 allows at most"):
        pegsynth.plan(SCHEMA, pairs_off=goal, risk=0.001, delta=1e-9, **ROWS)
    with pytest.raises(BudgetError, match="remove epsilon"):
        planned(1.0, risk=0.1)
    with pytest.raises(BudgetError, match="below delta"):
        pegsynth.plan(SCHEMA, risk=0.001, delta=0.01, **ROWS)
    for goals in ({"risk": 0.5}, {"risk": 0.0}, {"pairs_off": 1.0}):
        with pytest.raises(ParameterError, match="must lie between"):
            pegsynth.plan(SCHEMA, **goals, **ROWS)
    nothing = Forecast((), (("pegs", "cannot"),))
    with pytest.raises(BudgetError, match="no method can meet epsilon 100"):
        epsilon_for(lambda _: nothing, delta=None, pairs_off=0.1)
    assert epsilon_for(lambda _: nothing, delta=None) == MOST


def test_the_command_says_what_it_found_and_what_an_attacker_gains(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    told = ("plan", "--schema", tmp_path / "schema.toml", "--rows", 20_000, "--rows-in", 20_000)
    out = done(*told, "--risk", 0.05, "--delta", 1e-9).out
    assert out.startswith("Epsilon 1.16 meets the goal.")
    assert "is right at most 55.0% of the time" in out
    assert "cannot be told from an empty one" in out
    check_refused(pegs(*told, "--risk", 0.05, "--epsilon", 1), "remove --epsilon")
