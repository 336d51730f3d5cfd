"""A method that is registered is known everywhere, and nothing else had to be changed for it."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import test_contract

import pegsynth
from contract import Entry, contract_schema, contract_table
from pegsynth.errors import ParameterError
from pegsynth.inference.choice import rule_for
from pegsynth.methods import get, methods, names, register, registered, taking
from pegsynth.storage.model_file import load_model
from uniform_method import UNIFORM

TESTS = Path(__file__).parents[1]
ASKED = {"method": "uniform-rows", "epsilon": 1.0}


@pytest.fixture
def known():
    with registered(UNIFORM):
        yield
    assert "uniform-rows" not in names()


def command(*arguments):
    """Run the command line in a process that has registered the method."""
    script = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from pegsynth.methods import register\n"
        "from uniform_method import UNIFORM\n"
        "register(UNIFORM)\n"
        "from pegsynth.cli.main import main\n"
        "sys.argv[0] = 'pegs'\n"
        "main()\n"
    )
    line = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def home(tmp_path):
    contract_schema().save(tmp_path / "schema.toml")
    contract_table().write_csv(tmp_path / "data.csv")
    return tmp_path


@pytest.mark.slow(seconds=8)
def test_the_command_line_knows_it(home):
    shown = command("synthesize", "--help")
    assert "uniform-rows" in shown
    assert "--dice" in shown
    schema = ("--schema", home / "schema.toml")
    planned = command("plan", *schema, "--rows", 50, "--epsilon", 1)
    assert "uniform-rows" in planned
    assert "6 sides" in planned
    flags = ("--method", "uniform-rows", "--epsilon", 1, "--dice", 20)
    model, table = home / "m.pegs", home / "t.csv"
    command("fit", home / "data.csv", *schema, *flags, "-o", model)
    assert "uniform-rows" in command("inspect", model)
    command("sample", model, "--rows", 30, "-o", table)
    assert pl.read_csv(table).height == 30
    assert "20" in table.with_name("t.csv.privacy.json").read_text()
    command("synthesize", home / "data.csv", *schema, *flags, "--rows", 10, "-o", home / "u.csv")
    assert command("audit", "--method", "uniform-rows").endswith("every claim holds\n")


def test_python_knows_it(known, tmp_path):
    release = pegsynth.synthesize(contract_table(), contract_schema(), rows=40, dice=8, **ASKED)
    assert release.frames[0].height == 40
    stated = {a.code: a.parameters for a in release.ledger.assumptions}["public-options"]
    assert stated["method"] == "uniform-rows"
    assert stated["dice"] == 8
    assert release.ledger.guarantee.epsilon == 1.0
    model = pegsynth.fit(contract_table(), contract_schema(), **ASKED)
    model.save(tmp_path / "m.pegs")
    again = load_model(tmp_path / "m.pegs")
    assert (again.method, again.content.dice) == ("uniform-rows", 6)
    assert pegsynth.load(tmp_path / "m.pegs").sample(5).height == 5
    lines = pegsynth.plan(contract_schema(), rows=10, epsilon=1.0).predictions
    assert "uniform-rows" in [line.method for line in lines]


def test_the_contract_suite_takes_it(known):
    """What every method has to keep, for a method that nobody here wrote."""
    entry = Entry("uniform rows", "uniform-rows", {"epsilon": 1.0})
    for check in (
        test_contract.test_columns_order_types_and_categories_are_those_of_the_schema,
        test_contract.test_identifiers_are_dropped_and_frames_are_of_the_callers_kind,
        test_contract.test_datasets_differ_from_each_other,
        test_contract.test_a_seed_reproduces_whatever_the_threads_and_nothing_else_does,
        test_contract.test_features_of_one_category,
        test_contract.test_the_ledger_states_one_total_that_stays_within_the_budget,
        test_contract.test_a_seed_leaves_no_guarantee,
        test_contract.test_a_session_yields_chunks_that_do_not_depend_on_when_they_are_read,
    ):
        check(entry)


def test_its_option_belongs_to_it_alone(known):
    assert taking("dice") == ("uniform-rows",)
    with pytest.raises(ParameterError, match="dice requires method uniform-rows"):
        pegsynth.synthesize(
            contract_table(), contract_schema(), rows=5, method="pegs", epsilon=1.0, dice=3
        )
    with pytest.raises(ParameterError, match="dice must be a whole number"):
        pegsynth.synthesize(contract_table(), contract_schema(), rows=5, dice=0, **ASKED)


def test_a_name_stands_for_one_method():
    with pytest.raises(ParameterError, match="already"):
        register(get("pegs"))
    with pytest.raises(ParameterError, match="is one of"):
        get("pegz")
    with pytest.raises(ParameterError, match="no argument 'dice'"):
        pegsynth.synthesize(contract_table(), contract_schema(), rows=5, dice=3)


@pytest.mark.parametrize("method", methods(), ids=lambda method: method.name)
def test_every_method_says_what_it_is(method):
    assert method.summary
    assert "rows" in method.options.__dataclass_fields__
    assert method.predicts or not (method.released and method.reads_table)


@pytest.mark.parametrize(
    ("method", "rule"),
    [("pegs", "plug-in"), ("pegs-once", "own-noise"), ("marginal", "plug-in"), ("mi", "plug-in")],
)
def test_the_combining_rule_follows_from_the_ledger(method, rule):
    budget = {"epsilon": 3.0} if get(method).has_proof else {}
    release = pegsynth.synthesize(
        contract_table(), contract_schema(), rows=20, datasets=3, method=method, **budget
    )
    assert rule_for(release.ledger, 3).rule == rule
