"""``auto`` takes the same method with the same options, asked in Python or on the command line.

Both front doors run up to the settled plan, which holds the method, every option, alpha
and the events; then they are stopped. What one refuses the other refuses in the same words.
"""

from itertools import product

import polars as pl
import pytest

import pegsynth
from command import pegs
from pegsynth.errors import PegsynthError
from pegsynth.methods import forecast as forecasting
from pegsynth.methods import get, methods
from pegsynth.methods.forecast import forecast
from pegsynth.options._kinds import in_python as in_python_words
from pegsynth.pipeline.request import Request
from pegsynth.privacy import Budget, Shares
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.spark.cluster_fit import check_method
from pegsynth.spark.sampling import check_drawn

PLANNED_METHODS = ("pegs", "pegs-rs", "pegs-capped", "pegs-once")
CATEGORIES = ("x", "y", "z")
PLAIN = Schema(tuple(Feature(name, categories=CATEGORIES) for name in "abcdef"), reviewed=True)
MARKED = Schema(
    (*PLAIN.columns[:5], Feature("f", categories=CATEGORIES, role="sensitive")),
    rules=(Rule.of({0: [0], 1: [1]}),),
    reviewed=True,
)
DETAILED = Schema(
    (*PLAIN.columns[:5], Feature("f", categories=CATEGORIES, parent="a")), reviewed=True
)
SCHEMAS = {"plain": PLAIN, "marked": MARKED, "detailed": DETAILED}

BUDGETS = (
    {"epsilon": 0.5},
    {"epsilon": 2.0, "delta": 1e-9},
    {"epsilon": 1000.0},
    {"epsilon": 2.0, "delta": 1e-9, "l": 1.5},
    {"epsilon": 0.0},
    {"l": 1.5},
    {"epsilon_per_row": 1.0},
    {},
)
OPTIONS = (
    {},
    {"rows_in": 50},
    {"rows_in": 100_000},
    {"heads": 1},
    {"heads": 2, "tail_bits": 0},
    {"order": "public"},
    {"order": "data", "order_rows": 100},
    {"sweeps": 3},
    {"block_size": 4},
    {"visits": 8},
    {"visits": 8, "chains": 2},
    {"urn": True},
    {"urn": False},
    {"prior": "uniform"},
    {"prior": "marginal", "rows_in": 5000},
    {"seed_pool": "uniform"},
    {"where": {"b": "x"}},
    {"where": {"f": "y"}},
    {"shares": (0.2, 0.2, 0.6)},
    {"block_size": 4, "visits": 8},
    {"log_linear": True},
    {"synthesize": ("b",)},
    {"synthesize": ("b",), "no_guarantee": True},
    {"rows": 100_000, "rows_in": 1000},
)


class StoppedError(PegsynthError):
    """The plan is settled; nothing further is done."""


@pytest.fixture
def settled(monkeypatch):
    """Stop both front doors at their plan, and return where it is put."""
    found = []

    shipped = Request.plan

    def watched(*given, **more):
        found.append(shipped(*given, **more))
        raise StoppedError("stopped")

    monkeypatch.setattr(Request, "plan", watched)
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choice")
    pl.DataFrame({name: list(CATEGORIES) for name in "abcdef"}).write_csv(folder / "data.csv")
    for name, schema in SCHEMAS.items():
        schema.save(folder / f"{name}.toml")
    return folder


def in_python(home, name, asked, settled):
    """Return the plan that Python settles, or what it says."""
    asked = dict(asked)
    if "shares" in asked:
        asked["shares"] = Shares(*asked["shares"])
    try:
        pegsynth.synthesize(str(home / "data.csv"), home / f"{name}.toml", **asked)
    except StoppedError:
        return settled.pop()
    except PegsynthError as error:
        return str(error)
    raise AssertionError("not stopped")


def on_the_command_line(home, name, asked, settled):
    """Return the plan that the command settles, or what it says."""
    flags = []
    for option, value in asked.items():
        flag = "--" + option.replace("_", "-")
        if option == "where":
            flags += [part for pair in value.items() for part in ("--where", "=".join(pair))]
        elif option == "shares":
            parts = ("order", "marginals", "draws")
            flags += [
                part
                for pair in zip(parts, value, strict=True)
                for part in ("--share", f"{pair[0]}={pair[1]}")
            ]
        elif option == "synthesize":
            flags += [flag, ",".join(value)]
        elif isinstance(value, bool):
            flags += [flag if value else "--no-" + flag[2:]]
        else:
            flags += [flag, value]
    files = (home / "data.csv", "--schema", home / f"{name}.toml")
    outcome = pegs("synthesize", *files, *flags, "-o", home / "o.csv")
    assert outcome.code == 2, outcome
    if outcome.err == "pegs: stopped\n":
        return settled.pop()
    return in_python_words(outcome.err.removeprefix("pegs: ").removesuffix("\n"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_both_front_doors_settle_alike(home, name, settled):
    taken = set()
    for budget, options in product(BUDGETS, OPTIONS):
        asked = {"rows": 500} | budget | options
        if "synthesize" in asked:
            del asked["rows"]
        first = in_python(home, name, asked, settled)
        second = on_the_command_line(home, name, asked, settled)
        if isinstance(first, str):
            assert second == first, asked
        else:
            assert first == second, asked
            taken.add(first.method)
            check_kept(first, asked)
    wanted = {"plain": set(PLANNED_METHODS), "marked": set(PLANNED_METHODS)}
    assert taken == wanted.get(name, set(PLANNED_METHODS) - {"pegs-once"})


def test_these_methods_are_planned():
    assert tuple(each.name for each in methods() if each.predicts) == PLANNED_METHODS


HARMLESS = {"urn": False}
"""What changes nothing of a method that does not have the option."""


def check_kept(plan, asked):
    """Nothing that was asked for is left out by the choice."""
    options = plan.options
    for option in ("rows", "sweeps", "block_size", "visits", "chains", "urn", "prior", "rows_in"):
        if option in asked:
            kept = getattr(options, option, HARMLESS.get(option))
            assert kept == asked[option], asked
    assert dict(options.where) == asked.get("where", {})
    assert plan.budget.l == asked.get("l")
    if "shares" in asked and "epsilon" in asked:
        assert (plan.budget.shares.order, plan.budget.shares.draws) == (0.2, 0.6)


@pytest.mark.parametrize("budget", BUDGETS[:3], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"visits": 8}, {"block_size": 4}, {"rows_in": 50}], ids=str
)
def test_a_plan_makes_the_same_choice(home, settled, budget, options):
    asked = {"rows": 500} | budget | options
    plan = in_python(home, "plain", asked, settled)
    flags = [
        part for name, value in asked.items() for part in ("--" + name.replace("_", "-"), value)
    ]
    outcome = pegs("plan", "--schema", home / "plain.toml", *flags)
    assert outcome.code == 0, outcome.err
    choice = outcome.out.splitlines()[-1]
    assert choice.startswith(f"Choice: {plan.method}, for its smallest predicted error")


def test_a_model_that_is_saved_is_planned_without_urns(home, settled):
    """`fit` counts visits, so that the choice must not rest on urns."""
    asked = {"rows": 500, "epsilon": 100.0, "visits": 8}
    assert in_python(home, "plain", asked, settled).options.urn is True
    files = (home / "data.csv", "--schema", home / "plain.toml")
    flags = ("--rows", 500, "--epsilon", 100, "--visits", 8)
    pegs("fit", *files, *flags, "-o", home / "m.pegs")
    (plan,) = settled
    assert (plan.method, plan.options.urn) == ("pegs-capped", False)


def test_a_fit_without_a_budget_says_what_it_takes_and_why(home):
    files = (home / "data.csv", "--schema", home / "plain.toml")
    outcome = pegs("fit", *files, "-o", home / "free.pegs")
    assert outcome.code == 0, outcome.err
    assert (
        "Method: pegs, because no budget was stated: only pegs, pegs-rs, pegs-capped can be counted"
        in outcome.err
    )
    assert "Method" not in pegs("fit", *files, "--method", "pegs", "-o", home / "free.pegs").err


def test_a_cluster_is_given_what_it_can_do(home):
    """`pegs-once` is fitted on Spark and drawn from here: `fit` may take it, `synthesize` not."""
    request = Request(rows=500, epsilon=2.0, engine="spark")
    fitted, _ = request.settled(PLAIN, saved=True, able=check_method)
    drawn, (said, *_) = request.settled(PLAIN, saved=True, able=check_drawn)
    assert (fitted.method, request.settled(PLAIN, saved=True)[0].method) == ("pegs-once",) * 2
    assert drawn.method in ("pegs", "pegs-rs", "pegs-capped")
    assert "pegs-once" not in said


def test_options_that_no_method_takes_are_said_once(home, settled):
    said = in_python(home, "plain", {"rows": 5, "epsilon": 1.0, "log_linear": True}, settled)
    assert said == "log_linear requires method contingency"
    asked = {"rows": 5, "epsilon": 1.0, "block_size": 4, "visits": 8}
    said = in_python(home, "plain", asked, settled)
    assert said.startswith("no method can do this (pegs")
    assert "block_size requires method pegs-rs" in said


def test_a_choice_by_other_options_would_be_told_apart(home, settled, monkeypatch):
    """The twin: planned as it was once in Python, without most of what was asked for."""

    def little(name):
        method = get(name)
        return Budget(epsilon), method.options(rows=500)

    def earlier(method, schema, asked, *, epsilon, partial, unpriced):
        found = forecast(schema, little)
        return found.best.method, found.reason

    epsilon = 2.0
    asked = {"rows": 500, "epsilon": epsilon, "block_size": 4}
    second = on_the_command_line(home, "plain", asked, settled)
    assert second.method == "pegs-rs"
    monkeypatch.setattr(forecasting, "settle_method", earlier)
    assert in_python(home, "plain", asked, settled) != second
