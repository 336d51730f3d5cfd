"""``--synthesize``: some columns drawn anew, all others kept value by value, no guarantee."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs, snapshot
from contract import CATEGORIES, EDGES, RULE, contract_schema, contract_table
from pegsynth.errors import BudgetError, DataError, ParameterError, PegsynthError
from pegsynth.methods import names, taking
from pegsynth.schema import Feature, Schema

SHOWN = ("pegs", "mi", "cart")
shown = pytest.mark.parametrize("method", SHOWN)
partial = pytest.mark.parametrize("method", taking("synthesize"))


def valid_table(rows=300):
    """A table without the rows that break the rule."""
    table = contract_table(rows)
    return table.filter(~((pl.col("a") == "x") & (pl.col("d") == "yes")))


def replaced(method, names, data=None, **changes):
    data = valid_table() if data is None else data
    schema = changes.pop("schema", contract_schema())
    return pegsynth.synthesize(
        data, schema, method=method, synthesize=names, **{"seed": 7} | changes
    )


@partial
@pytest.mark.parametrize("names", [("b",), ("n", "s"), ("d", "a", "b")], ids=str)
def test_kept_columns_are_the_input_value_by_value_and_row_by_row(method, names):
    original = valid_table()
    release = replaced(method, names, datasets=2)
    assert len(release.frames) == 2
    for drawn in release.frames:
        assert drawn.schema == original.schema
        kept = [name for name in original.columns if name not in names]
        assert drawn.select(kept).equals(original.select(kept))
        for name in names:
            assert not drawn.get_column(name).equals(original.get_column(name))
    assert not release.frames[0].equals(release.frames[1])


@partial
def test_replaced_columns_come_from_the_schema_and_obey_its_rules(method):
    (drawn,) = replaced(method, ("a", "n")).frames
    assert set(drawn.get_column("a")) <= set(CATEGORIES["a"])
    numbers = drawn.get_column("n").drop_nulls()
    assert EDGES[0] <= numbers.min() <= numbers.max() <= EDGES[-1]
    assert drawn.filter((pl.col("a") == "x") & (pl.col("d") == "yes")).height == 0


@partial
def test_replaced_values_depend_on_the_kept_ones(method):
    """d is almost a function of a: the drawn column must follow the kept one."""
    original = valid_table()
    (drawn,) = replaced(method, ("d",)).frames
    agree = ((drawn.get_column("a") != "x") == (drawn.get_column("d") == "yes")).mean()
    shuffled = original.get_column("d").shuffle(seed=1)
    apart = ((original.get_column("a") != "x") == (shuffled == "yes")).mean()
    assert agree > apart + 0.15


@shown
def test_every_feature_may_be_replaced_and_identifiers_never_show(method):
    original = valid_table().with_columns(person=pl.int_range(pl.len()).cast(pl.String))
    columns = (*contract_schema().columns, Feature("person", role="identifier"))
    schema = Schema(columns, rules=(RULE,), reviewed=True)
    (drawn,) = replaced(method, schema.names, original, schema=schema).frames
    assert drawn.columns == list(schema.names)
    assert drawn.height == original.height


@shown
def test_values_beyond_the_edges_and_codes_of_missing_are_kept_as_they_are(method):
    original = valid_table().with_columns(
        n=pl.when(pl.int_range(pl.len()) % 7 == 0).then(1234.5678).otherwise(pl.col("n"))
    )
    (drawn,) = replaced(method, ("b",), original).frames
    assert drawn.get_column("n").equals(original.get_column("n"))


@shown
def test_seeds_reproduce_whatever_the_threads(method):
    first, second = (replaced(method, ("a", "n"), threads=t).frames[0] for t in (1, 2))
    assert first.equals(second)
    fresh = [replaced(method, ("a", "n"), seed=None).frames[0] for _ in range(2)]
    assert not fresh[0].equals(fresh[1])


@shown
def test_frames_are_of_the_callers_kind(method):
    original = valid_table()
    (table,) = replaced(method, ("b",), original.to_arrow()).frames
    assert type(table) is type(original.to_arrow())
    (frame,) = replaced(method, ("b",), original.to_pandas()).frames
    assert type(frame) is type(original.to_pandas())


@shown
def test_pandas_keeps_its_index_and_other_rows_have_none(method):
    names = pd.Index([f"patient {number}" for number in range(valid_table().height)], name="who")
    original = valid_table().to_pandas().set_axis(names)
    for frame in replaced(method, ("b",), original, datasets=2).frames:
        assert frame.index.equals(names)
        assert frame.index.name == "who"
        assert frame.drop(columns="b").equals(original.drop(columns="b"))
    given = {"alpha": 1.0} if method == "pegs" else {}
    drawn = pegsynth.synthesize(original, contract_schema(), method=method, rows=9, **given)
    assert drawn.frames[0].index.equals(pd.RangeIndex(9))


@shown
def test_the_number_of_rows_asked_of_an_estimator_is_honoured_or_refused(method):
    original = valid_table()
    fitted = pegsynth.PeGS(method=method, synthesize=["b"], seed=1).fit(original, contract_schema())
    for rows in (5, original.height + 1):
        with pytest.raises(ParameterError, match="synthesize keeps the original rows") as refused:
            fitted.sample(rows)
        assert "--" not in str(refused.value)
    assert fitted.sample(original.height).height == original.height


@shown
def test_an_estimator_keeps_the_other_columns_as_they_are(method):
    names = pd.Index([f"patient {number}" for number in range(valid_table().height)], name="who")
    original = valid_table().to_pandas().set_axis(names)
    fitted = pegsynth.PeGS(method=method, synthesize=["b"], seed=1).fit(original, contract_schema())
    frame = fitted.sample(len(original))
    assert frame.index.equals(names)
    assert frame.drop(columns="b").equals(original.drop(columns="b"))


# The ledger


def not_private(ledger):
    return [event for event in ledger.events if getattr(event, "code", "") == "kept-columns"]


@partial
def test_the_guarantee_is_none_and_the_ledger_lists_the_columns(method):
    ledger = replaced(method, ("b", "n"), seed=None).ledger
    assert ledger.guarantee.kind == "none"
    (event,) = not_private(ledger)
    assert "kept: a, s, d; replaced: b, n" in event.text
    assert event.text in json.dumps(json.loads(ledger.to_json()))
    assert "kept: a, s, d" in ledger.statement()


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1.0}, {"epsilon_per_row": 1.0}, {"alpha": 1.0}, {"l": 1.2}], ids=str
)
def test_a_budget_is_refused_unless_no_guarantee_is_asked_for(budget):
    schema = contract_schema(rules=())
    with pytest.raises(BudgetError, match="no_guarantee"):
        replaced("pegs", ("b",), schema=schema, **budget)
    release = replaced("pegs", "b", schema=schema, no_guarantee=True, seed=None, **budget)
    assert release.ledger.guarantee.kind == "none"
    assert len(not_private(release.ledger)) == 1


def test_virtual_rows_without_a_guarantee_perturb():
    plain = replaced("pegs", ("d",)).frames[0]
    (flat,) = replaced("pegs", ("d",), alpha=1e4, no_guarantee=True).frames
    free = flat.filter(pl.col("a") != "x").get_column("d")
    assert 0.35 < (free == "yes").mean() < 0.65
    assert not plain.equals(flat)


@pytest.mark.parametrize("method", ["pegs", "pmi"])
@pytest.mark.parametrize("budget", [{"epsilon": 50.0}, {"alpha": 1.0}], ids=str)
def test_draws_are_recorded_with_the_rows_that_were_really_drawn(method, budget):
    original = valid_table()
    release = replaced(method, ("b",), original, datasets=2, no_guarantee=True, **budget)
    (event,) = [e for e in release.ledger.events if hasattr(e, "alpha_numerator")]
    assert (event.rows * event.datasets, event.features) == (2 * original.height, 1)


@pytest.mark.parametrize("method", ["mi", "cart", "forest"])
def test_methods_without_a_proof_take_no_budget_even_so(method):
    with pytest.raises(BudgetError):
        replaced(method, ("b",), alpha=1.0, no_guarantee=True)


# What is refused


@shown
def test_rows_that_break_a_rule_are_refused_with_their_number(method):
    table = contract_table()
    broken = table.height - valid_table().height
    with pytest.raises(DataError, match=f"{broken} rows break a rule"):
        replaced(method, ("b",), table)


@shown
def test_rows_units_and_other_starts_are_refused(method):
    with pytest.raises(ParameterError, match="rows"):
        replaced(method, ("b",), rows=10)
    with pytest.raises(ParameterError, match="where"):
        replaced(method, ("b",), where={"a": "y"})
    with pytest.raises(ParameterError, match="seed_pool"):
        replaced(method, ("b",), seed_pool="uniform")
    person = Feature("person", role="identifier")
    unit = Schema((*contract_schema().columns, person), "person", 2, reviewed=True)
    data = valid_table().with_columns(person=pl.lit("p"))
    with pytest.raises(ParameterError, match="units"):
        replaced(method, ("b",), data, schema=unit)


@pytest.mark.parametrize("method", sorted(set(names()) - set(taking("synthesize"))))
def test_methods_that_cannot_keep_rows_are_refused(method):
    with pytest.raises(ParameterError, match="synthesize requires"):
        replaced(method, ("b",))


@shown
def test_unknown_features_are_refused(method):
    with pytest.raises(PegsynthError, match="'nothing'"):
        replaced(method, ("b", "nothing"))


@shown
def test_a_feature_named_twice_is_replaced_once(method):
    once, twice = (replaced(method, names).frames[0] for names in (("b",), ("b", "b")))
    assert once.equals(twice)


# The commands


@pytest.fixture
def folder(tmp_path):
    contract_schema().save(tmp_path / "schema.toml")
    valid_table().write_csv(tmp_path / "data.csv")
    return tmp_path


def files(folder):
    return [folder / "data.csv", "--schema", folder / "schema.toml"]


def texts(path):
    """The cells of a CSV file as they are written."""
    return pl.read_csv(path, infer_schema=False)


@shown
def test_the_command_writes_kept_columns_as_they_were(folder, method):
    output = folder / "o.csv"
    done("synthesize", *files(folder), "--method", method, "--synthesize", "b,n", "-o", output)
    original, drawn = texts(folder / "data.csv"), texts(output)
    assert drawn.columns == original.columns
    kept = ["a", "s", "d"]
    assert drawn.select(kept).equals(original.select(kept))
    written = json.loads((folder / "o.csv.privacy.json").read_text())
    assert written["guarantee"]["kind"] == "none"
    assert any("kept: a, s, d; replaced: b, n" in line for line in written["not_covered"])


@shown
def test_a_release_holds_k_tables_with_the_same_kept_columns(folder, method):
    output = folder / "release"
    flags = ["--method", method, "--synthesize", "a", "--datasets", 3]
    done("release", *files(folder), *flags, "-o", output)
    original = texts(folder / "data.csv")
    tables = [texts(output / "public" / f"synthetic-{k}.csv") for k in (1, 2, 3)]
    for table in tables:
        assert table.drop("a").equals(original.drop("a"))
    assert not tables[0].equals(tables[1])
    assert "kept: b, s, n, d; replaced: a" in (output / "public" / "privacy.json").read_text()
    assert "kept: b, s, n, d" in (output / "public" / "PRIVACY.md").read_text()
    how = (output / "public" / "HOW-TO-ANALYSE.md").read_text()
    assert f"3 partly synthetic tables of {original.height} rows" in how
    assert "**partial**" in how
    assert (output / "internal" / "report.html").is_file()


def test_numbers_are_kept_to_the_last_digit(folder):
    original = valid_table()
    lines = np.random.default_rng(4).random(original.height) * 50
    original.with_columns(n=pl.Series(lines)).write_csv(folder / "data.csv")
    output = folder / "o.csv"
    done("synthesize", *files(folder), "--synthesize", "a", "-o", output)
    assert pl.read_csv(output).get_column("n").to_list() == lines.tolist()


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--synthesize", "b", "--epsilon", 1], "--no-guarantee"),
        (["--synthesize", "b", "--rows", 5], "--rows"),
        (["--synthesize", "b", "--where", "a=x"], "--where"),
        (["--synthesize", "nothing"], "'nothing'"),
        (["--synthesize", "b", "--method", "pegs-rs"], "--synthesize requires"),
        (["--synthesize", ",", "--rows", 5], "budget"),
        ([], "--rows"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["synthesize", "release"])
def test_the_commands_refuse(folder, command, flags, named):
    before = snapshot(folder)
    check_refused(pegs(command, *files(folder), *flags, "-o", folder / "o.csv"), named)
    assert snapshot(folder) == before


def test_the_command_counts_rows_that_break_a_rule(folder):
    contract_table().write_csv(folder / "data.csv")
    broken = contract_table().height - valid_table().height
    refused = pegs("synthesize", *files(folder), "--synthesize", "b", "-o", folder / "o.csv")
    check_refused(refused, f"{broken} rows break a rule")
