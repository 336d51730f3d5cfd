"""Options are declared once: flags, arguments, checks, help and docs follow from that."""

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer

import pegsynth
from command import check_refused, pegs
from pegsynth.cli import commands
from pegsynth.errors import BudgetError, ParameterError, PegsynthError
from pegsynth.methods import get, names, taking
from pegsynth.methods.registry import method_options
from pegsynth.options import AUTO, GROUPS, PAPER_METHOD, KeyOptions, Publication
from pegsynth.options._kinds import declared, in_python, keywords, option
from pegsynth.pipeline.request import Request
from pegsynth.privacy import Shares
from small_release import small_schema, small_table

ROOT = Path(__file__).parents[1]
SCHEMA, TABLE = small_schema(), small_table(60)


def test_every_field_of_every_group_is_declared_and_no_name_twice():
    listed = [name for group in GROUPS for name in group.__annotations__]
    assert len(set(listed)) == len(listed)
    assert all(set(group.__annotations__) <= set(declared(group)) for group in GROUPS)
    assert set(Request.__dataclass_fields__) - {"own", "streams"} == set(listed)
    assert set(method_options()) <= set(listed)


def test_python_shows_the_declared_arguments():
    for function, left_out in (
        (pegsynth.synthesize, {"engine", "master"}),
        (
            pegsynth.PeGS,
            {"engine", "master", "resume", "table", "query", "query_is_rowwise"}
            | {"complete", "imputations", "from_tables"},
        ),
    ):
        shown = inspect.signature(function).parameters
        wanted = {name for group in GROUPS for name in declared(group)} - left_out
        assert wanted <= set(shown)
        assert not left_out & set(shown)


@pytest.mark.parametrize(
    "function", [pegsynth.synthesize, pegsynth.release, pegsynth.fit, pegsynth.PeGS]
)
def test_every_function_takes_the_same_method_by_default(function):
    assert inspect.signature(function).parameters["method"].default == AUTO


def test_every_command_takes_the_same_method_by_default():
    app = typer.Typer()
    commands.register(app)
    found = typer.main.get_command(app).commands
    for name in ("release", "synthesize", "fit"):
        (method,) = (each for each in found[name].params if each.name == "method")
        assert method.default == AUTO, name
    # A model knows its own method; one without a budget is drawn from by the paper's.
    (method,) = (each for each in found["sample"].params if each.name == "method")
    assert method.default is None
    assert PAPER_METHOD in method.help


def test_the_commands_have_the_declared_flags():
    app = typer.Typer()
    commands.register(app)
    found = typer.main.get_command(app).commands
    for name in ("plan", "release", "synthesize", "fit", "sample", "trace"):
        for parameter in found[name].params:
            known = {n: o for group in GROUPS for n, o in declared(group).items()}
            if parameter.name in known:
                flag = known[parameter.name].flag_of(parameter.name)
                assert flag in parameter.opts, (name, parameter.name)
    release = {parameter.name for parameter in found["release"].params}
    assert set(method_options()) <= release


def test_python_releases_with_every_option_of_the_command():
    app = typer.Typer()
    commands.register(app)
    command = typer.main.get_command(app).commands["release"]
    typed = {each.name: each for each in command.params if each.name != "context"}
    taken = inspect.signature(pegsynth.release).parameters
    # The folder is -o, and what two tables are is one argument; `progress` is no flag.
    assert set(typed) - {"output", "second", "help"} == set(taken) - {"folder", "progress"}
    for name, each in declared(Publication).items():
        assert typed[name].opts == [each.flag_of(name)]
        assert taken[name].default == each.default
        assert (typed[name].default or ()) == (each.default or ())


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        (["--quality", "0.2"], {"quality": 0.2}),
        (
            ["--quality", "0.2", "--quality-table", "a,b,c", "--accept", "{}/strict.toml"],
            {"quality": 0.2, "quality_tables": [["a", "b", "c"]], "accept": "{}/strict.toml"},
        ),
        (["--accept", "{}/strict.toml"], {"accept": "{}/strict.toml"}),
        (
            ["--holdout", "{}/t.csv", "--target", "a", "--formula", "a ~ b"],
            {"holdout": TABLE, "target": "a", "formulas": ["a ~ b"]},
        ),
        (["--public-only", "--target", "a"], {"public_only": True, "target": "a"}),
        (
            ["--k", "3", "--k-features", "a,b", "--format", "parquet", "--language", "de"],
            {"k": 3, "k_features": ["a", "b"], "table_format": "parquet", "languages": ["de"]},
        ),
        (["--k-features", "a"], {"k_features": ["a"]}),
        (["--round", "a=5"], {"round_to": {"a": 5.0}}),
        (["--format", "ods"], {"table_format": "ods"}),
    ],
)
def test_the_command_and_python_publish_the_same(tmp_path, flags, arguments):
    SCHEMA.save(tmp_path / "s.toml")
    TABLE.write_csv(tmp_path / "t.csv")
    (tmp_path / "strict.toml").write_text("pair = 0.001\n")

    def placed(given):
        return given.format(tmp_path) if isinstance(given, str) else given

    told = pegs(
        *("release", tmp_path / "t.csv", "--schema", tmp_path / "s.toml", "-o", tmp_path / "typed"),
        *("--method", "marginal", "--rows", 60, "--epsilon", 2, "--delta", 1e-6, "--seed", 3),
        *map(placed, flags),
    )
    budget = {"method": "marginal", "rows": 60, "epsilon": 2.0, "delta": 1e-6, "seed": 3}
    given = {name: placed(value) for name, value in arguments.items()}
    said = ""
    try:
        pegsynth.release(
            tmp_path / "t.csv", tmp_path / "s.toml", folder=tmp_path / "typed-2", **budget, **given
        )
    except PegsynthError as error:
        said = str(error).replace(f"{tmp_path}/typed-2", f"{tmp_path}/typed")
    if said:
        renamed = {each.flag: name for name, each in declared(Publication).items() if each.flag}
        assert told.code in (1, 2)
        assert said in in_python(told.err, renamed)
        return
    assert told.code == 0, told.err
    written = [
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name).glob("*/*")
            if path.is_file()
        }
        for name in ("typed", "typed-2")
    ]
    assert written[0].keys() == written[1].keys()
    public = [name for name in written[0] if name.startswith("public/")]
    assert {name: written[0][name] for name in public} == {n: written[1][n] for n in public}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"formulas": 3}, "--formula takes a list of values; it was 3"),
        ({"quality_tables": [3], "quality": 0.1}, "--quality-table takes a list of values"),
        ({"quality_tables": [["a", 3]], "quality": 0.1}, "--quality-table must be a text"),
        ({"round_to": 5}, "--round takes a list of values"),
        ({"round_to": ["=5"]}, "--round is written FEATURE=STEP"),
        ({"quality": "much"}, "--quality must be a number"),
        ({"k": 0}, "--k must be a whole number of at least 1"),
        ({"languages": [3]}, "--language takes names"),
    ],
)
def test_wrong_values_of_a_publication_get_our_message(given, words):
    with pytest.raises(PegsynthError) as refused:
        Publication(**given)
    assert words in str(refused.value)


def test_the_page_of_options_is_written_by_its_tool():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import option_table
    finally:
        sys.path.pop(0)
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == option_table.page()


# What values are taken


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"rows": np.int64(5)}, {"rows": 5}),
        ({"epsilon": np.float32(0.5)}, {"epsilon": 0.5}),
        ({"epsilon": 1}, {"epsilon": 1.0}),
        ({"urn": np.True_}, {"urn": True}),
        ({"where": {"a": True, "b": 3}}, {"where": (("a", "true"), ("b", "3"))}),
        ({"where": ["a=x=y"]}, {"where": (("a", "x=y"),)}),
        ({"where": [("a", "x")]}, {"where": (("a", "x"),)}),
        ({"synthesize": "a, b,,a"}, {"synthesize": ("a", "b")}),
        ({"synthesize": ["b", "a"]}, {"synthesize": ("b", "a")}),
        ({"shares": {"order": 0.2}}, {"shares": Shares(order=0.2, draws=0.7)}),
        ({"resume": "file"}, {"resume": Path("file")}),
        ({"seed": -3}, {"seed": -3}),
        ({"where": None, "synthesize": None}, {"where": (), "synthesize": ()}),
    ],
)
def test_values_in_their_plain_form(given, plain):
    request = Request(**given)
    assert {name: getattr(request, name) for name in plain} == plain


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": "a"}, "--seed must be a whole number"),
        ({"threads": 2.5}, "--threads must be a whole number of at least 1; it was 2.5"),
        ({"rows": True}, "--rows must be a whole number"),
        ({"rows": 10**13}, "--rows must be at most"),
        ({"epsilon": "1"}, "--epsilon must be a number; it was '1'"),
        ({"epsilon": True}, "--epsilon must be a number"),
        ({"urn": "yes"}, "--urn is true or false"),
        ({"method": "pegz"}, "--method is one of auto, pegs, "),
        ({"method": 3}, "--method is one of"),
        ({"order": "none"}, "--order is one of public, private, data"),
        ({"decode": "bins"}, "--decode is one of model, values, labels"),
        ({"where": "a=x"}, "--where takes features with their values"),
        ({"where": ["a"]}, "write it as FEATURE=VALUE"),
        ({"synthesize": [3]}, "--synthesize takes names"),
        ({"shares": {"noise": 1}}, "--share noise=1: the shares are"),
        ({"shares": {"order": "x"}}, "write it as NAME=SHARE"),
        ({"seed_pool": ""}, "--seed-pool is empty"),
        ({"seed_pool": 3}, "--seed-pool must be the name of a file"),
        ({"table": 3}, "--table must be a text"),
        ({"master": "local"}, "--master requires --engine spark"),
    ],
)
def test_wrong_values_get_our_message(given, words):
    with pytest.raises(PegsynthError) as refused:
        Request(**given)
    assert words in str(refused.value)


@pytest.mark.parametrize("method", names())
def test_an_option_that_the_method_does_not_take_is_refused(method):
    values = {
        "heads": 2,
        "tail_bits": 3,
        "order": "data",
        "order_rows": 9,
        "sweeps": 2,
        "block_size": 3,
        "visits": 4,
        "chains": 2,
        "urn": True,
        "prior": "marginal",
        "seed_pool": "marginal",
        "where": {"a": "x"},
        "synthesize": ("a",),
        "log_linear": True,
        "proper": True,
        "replicates": 5,
        "weight_name": "w",
        "shared_noise": True,
        "from_tables": "tables.toml",
    }
    needed = {"order_rows": {"order": "data"}, "weight_name": {"replicates": 5}}
    assert set(values) == set(method_options()) - {"rows", "datasets", "rows_in"}
    for name, value in values.items():
        more = needed.get(name, {}) if method in taking(name) else {}
        asked = Request(method=method, rows=5, **{name: value}, **more)
        if method in taking(name):
            assert getattr(asked.options_for(get(method)), name)
        else:
            with pytest.raises(ParameterError, match=r"requires --method .*"):
                asked.options_for(get(method))


# Whose names messages use


def test_messages_name_arguments_in_python_and_flags_on_the_command_line(tmp_path):
    with pytest.raises(ParameterError, match=r"^rows is needed"):
        pegsynth.synthesize(TABLE, SCHEMA, epsilon=1.0)
    with pytest.raises(BudgetError, match=r"^delta requires epsilon"):
        pegsynth.synthesize(TABLE, SCHEMA, rows=5, epsilon_per_row=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match=r"^block_size requires method pegs-rs$"):
        pegsynth.PeGS(method="pegs", alpha=1.0, block_size=3)
    assert in_python("state --epsilon-per-row or --l") == "state epsilon_per_row or l"
    assert in_python("a-b --x-1 -- x") == "a-b --x-1 -- x"
    SCHEMA.save(tmp_path / "s.toml")
    TABLE.write_csv(tmp_path / "t.csv")
    told = pegs(
        "synthesize", tmp_path / "t.csv", "--schema", tmp_path / "s.toml", "-o", tmp_path / "o.csv"
    )
    check_refused(told, "--rows is needed")


def test_an_unknown_argument_is_refused_with_what_was_meant():
    with pytest.raises(ParameterError, match=r"no argument 'epsilom'; did you mean epsilon\?"):
        pegsynth.synthesize(TABLE, SCHEMA, rows=5, epsilom=1.0)
    with pytest.raises(ParameterError, match=r"has no argument 'zzz'$"):
        pegsynth.PeGS(zzz=1)

    @keywords(KeyOptions)
    def function(**options):
        return options

    assert function(heads=2) == {"heads": 2}
    assert "order" in inspect.signature(function).parameters


def test_a_new_option_needs_one_declaration():
    @dataclass(frozen=True)
    class More(KeyOptions):
        depth: int = option(3, "whole", "How deep.")

    @keywords(More)
    def function(**options):
        return More(**options).depth

    assert function() == 3
    assert function(depth=np.int8(4)) == 4
    with pytest.raises(ParameterError, match=r"^depth must be a whole number"):
        function(depth="x")


# PeGS as an estimator


def test_an_estimator_tells_and_takes_its_options():
    where = {"a": "x"}
    sampler = pegsynth.PeGS(method="pegs-rs", epsilon=2.0, rows=50, block_size=5, where=where)
    told = sampler.get_params()
    assert told["where"] is where
    assert (told["method"], told["block_size"], told["sweeps"]) == ("pegs-rs", 5, 1)
    assert repr(sampler).startswith("PeGS(method='pegs-rs', epsilon=2.0")
    assert sampler.set_params(block_size=7) is sampler
    assert sampler.get_params()["block_size"] == 7
    with pytest.raises(ParameterError, match="no argument 'blocks'"):
        sampler.set_params(blocks=7)


def test_an_estimator_can_be_cloned():
    from sklearn.base import clone

    sampler = pegsynth.PeGS(method="pegs-rs", epsilon=2.0, rows=50, seed=3)
    fitted = sampler.fit(TABLE, SCHEMA)
    again = clone(fitted)
    assert again is not fitted
    assert again.get_params() == fitted.get_params()
    assert "fitted" in repr(fitted)
    assert "fitted" not in repr(again)
    assert again.fit(TABLE, SCHEMA).sample(20).equals(fitted.sample(20))
