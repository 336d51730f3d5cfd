"""One contract for every method: what goes out, what it costs, what is refused."""

import copy
import math
import pickle

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import done
from contract import (
    CATEGORIES,
    EDGES,
    ENTRIES,
    breaks_the_rule,
    contract_schema,
    contract_table,
    made,
)
from pegsynth.errors import BudgetError, ParameterError, PegsynthError
from pegsynth.methods import methods, names
from pegsynth.methods.session import Session
from pegsynth.pipeline.request import Request
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from small_release import fitted_model, settled_plan

BUDGETED = [entry for entry in ENTRIES if entry.budgeted]
UNBUDGETED = [entry for entry in ENTRIES if not entry.budgeted]
DRAWN = [entry for entry in BUDGETED if entry.draws]
ONCE = [entry for entry in BUDGETED if entry.method == "pegs-once"]

every = pytest.mark.parametrize("entry", ENTRIES, ids=str)
budgeted = pytest.mark.parametrize("entry", BUDGETED, ids=str)
unbudgeted = pytest.mark.parametrize("entry", UNBUDGETED, ids=str)
drawn_and_paid = pytest.mark.parametrize("entry", DRAWN, ids=str)
released = pytest.mark.parametrize("entry", ONCE, ids=str)


def test_no_method_is_left_out():
    # tests/evidence has the contract of methods that read no table.
    reading = {each.name for each in methods() if each.reads_table}
    assert {entry.method for entry in ENTRIES} == reading
    assert set(names()) - reading == {"pegs-tables"}


# What goes out


@every
def test_columns_order_types_and_categories_are_those_of_the_schema(entry):
    original = contract_table()
    release = made(entry, original, rows=500)
    (drawn,) = release.frames
    assert drawn.schema == original.schema
    for name, levels in CATEGORIES.items():
        seen = set(drawn.get_column(name).drop_nulls().cast(pl.String))
        assert seen <= set(levels)
    assert drawn.select("a", "s", "d").null_count().sum_horizontal().item() == 0
    numbers = drawn.get_column("n").drop_nulls()
    assert EDGES[0] <= numbers.min() <= numbers.max() <= EDGES[-1]


@every
def test_columns_come_in_the_order_of_the_table_and_not_of_the_schema(entry):
    original = contract_table().select("d", "n", "a", "s", "b")
    assert made(entry, original).frames[0].columns == original.columns


@every
def test_identifiers_are_dropped_and_frames_are_of_the_callers_kind(entry):
    schema = contract_schema()
    person = Feature("person", role="identifier")
    schema = Schema((*schema.columns, person), rules=schema.rules, reviewed=True)
    data = contract_table().with_columns(person=pl.int_range(pl.len()).cast(pl.String)).to_arrow()
    (drawn,) = made(entry, data, schema).frames
    assert type(drawn) is type(data)
    assert drawn.column_names == list(schema.names)


@every
@pytest.mark.parametrize(("rows", "datasets"), [(1, 1), (37, 3)])
def test_rows_and_datasets_are_as_many_as_asked(entry, rows, datasets):
    frames = made(entry, rows=rows, datasets=datasets).frames
    assert [frame.height for frame in frames] == [rows] * datasets


@every
def test_datasets_differ_from_each_other(entry):
    first, second = made(entry, rows=300, datasets=2).frames
    assert not first.equals(second)


@every
def test_a_seed_reproduces_whatever_the_threads_and_nothing_else_does(entry):
    one, two = made(entry, threads=1), made(entry, threads=2)
    assert one.frames[0].equals(two.frames[0])
    assert one.ledger == two.ledger
    assert not one.frames[0].equals(made(entry, seed=8).frames[0])
    fresh = [made(entry, seed=None).frames[0] for _ in range(2)]
    assert not fresh[0].equals(fresh[1])


@every
def test_numpy_and_python_seeds_have_no_effect(entry):
    import random

    drawn = []
    for _ in range(2):
        np.random.seed(1)
        random.seed(1)
        drawn.append(made(entry, seed=None).frames[0])
    assert not drawn[0].equals(drawn[1])
    state = np.random.get_state()[1].copy()
    made(entry, seed=None)
    assert np.array_equal(np.random.get_state()[1], state)


ROWS_OF_TWO_CHUNKS = 9_000


@every
def test_the_file_that_is_streamed_equals_the_whole_table(entry, tmp_path):
    schema, data = tmp_path / "schema.toml", tmp_path / "data.parquet"
    contract_schema().save(schema)
    contract_table().write_parquet(data)
    output = tmp_path / "drawn.parquet"
    rows = ROWS_OF_TWO_CHUNKS
    options = ["--rows", rows, "--seed", 7, "--threads", 2]
    done("synthesize", data, "--schema", schema, *entry.flags, *options, "-o", output)
    (whole,) = made(entry, str(data), schema, rows=rows).frames
    assert pl.read_parquet(output).equals(pl.DataFrame(whole))


@every
def test_no_broken_rule_shows_although_real_rows_break_it(entry):
    original = contract_table()
    assert breaks_the_rule(original) > 10
    (drawn,) = made(entry, original, rows=5_000).frames
    assert breaks_the_rule(drawn) == 0
    free = made(entry, original, contract_schema(rules=()), rows=5_000)
    assert breaks_the_rule(free.frames[0]) > 0


# Awkward tables


@every
def test_a_single_row_is_enough(entry):
    # The bootstrap has nothing else to show, so the row must obey the rule.
    one = contract_table().filter(pl.col("a") == "y").head(1)
    (drawn,) = made(entry, one).frames
    assert drawn.height == 200
    assert drawn.schema == one.schema


@every
def test_features_of_one_category(entry):
    columns = (
        Feature("only", categories=("x",)),
        Feature("a", categories=("p", "q")),
        Feature("b", categories=("0", "1", "2")),
        Feature("also", categories=("y",)),
    )
    schema = Schema(columns, reviewed=True)
    words = np.random.default_rng(2)
    data = pl.DataFrame(
        {
            "only": ["x"] * 60,
            "a": [("p", "q")[i] for i in words.integers(0, 2, 60)],
            "b": [str(i) for i in words.integers(0, 2, 60)],
            "also": ["y"] * 60,
        }
    )
    (drawn,) = made(entry, data, schema).frames
    assert set(drawn.get_column("only")) == {"x"}
    assert set(drawn.get_column("also")) == {"y"}
    assert set(drawn.get_column("a")) == {"p", "q"}


@every
def test_one_feature_alone(entry):
    schema = Schema((Feature("a", categories=("p", "q", "r")),), reviewed=True)
    data = pl.DataFrame({"a": ["p", "q", "q"] * 20})
    (drawn,) = made(entry, data, schema).frames
    assert set(drawn.get_column("a")) >= {"p", "q"}


@every
def test_columns_that_are_missing_throughout(entry):
    data = contract_table().with_columns(b=pl.lit(None, pl.String), n=pl.lit(None, pl.Float64))
    (drawn,) = made(entry, data).frames
    assert drawn.schema == data.schema
    assert drawn.get_column("b").null_count() > 0


@every
def test_missing_values_are_drawn_as_often_as_a_category_may_be(entry):
    (drawn,) = made(entry, rows=2_000).frames
    assert 0 < drawn.get_column("b").null_count() < 2_000
    assert 0 < drawn.get_column("n").null_count() < 2_000


# What is refused


@every
@pytest.mark.parametrize("rows", [0, -1, 1.5, True, None], ids=str)
def test_rows_that_are_no_whole_number_are_refused(entry, rows):
    with pytest.raises(ParameterError, match="rows"):
        made(entry, rows=rows)


@every
def test_datasets_that_are_no_whole_number_are_refused(entry):
    with pytest.raises(ParameterError, match="datasets"):
        made(entry, datasets=0)


def test_an_unknown_method_is_refused_by_name():
    with pytest.raises(ParameterError, match="'gibbs'"):
        pegsynth.synthesize(contract_table(), contract_schema(), rows=1, method="gibbs", alpha=0.0)


@unbudgeted
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"alpha": 0.0}, {"l": 2.0}], ids=str)
def test_a_budget_for_a_method_without_a_proof_is_refused(entry, budget):
    with pytest.raises(BudgetError, match=entry.method):
        made(entry, **budget)


@budgeted
def test_a_missing_budget_is_refused(entry):
    with pytest.raises(BudgetError, match="budget is missing"):
        made(entry, **dict.fromkeys(entry.budget))


@budgeted
@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_that_is_no_positive_number_is_refused(entry, wrong):
    with pytest.raises(BudgetError):
        made(entry, **dict.fromkeys(entry.budget, wrong))


@every
def test_values_outside_the_schema_are_refused_without_showing_them(entry):
    data = contract_table().with_columns(a=pl.lit("SECRET-4711"))
    with pytest.raises(PegsynthError, match="'a'") as caught:
        made(entry, data)
    assert "SECRET" not in str(caught.value)


@every
def test_options_of_other_methods_are_refused(entry):
    if entry.method != "pegs-capped":
        with pytest.raises(ParameterError, match="pegs-capped"):
            made(entry, visits=3)
    if entry.method != "contingency":
        with pytest.raises(ParameterError, match="contingency"):
            made(entry, log_linear=True)
    if not entry.method.startswith("pegs"):
        with pytest.raises(ParameterError, match="heads requires method pegs, pegs-rs"):
            made(entry, heads=2)
        with pytest.raises(ParameterError, match="prior requires method pegs, pegs-rs"):
            made(entry, prior="marginal")


@every
def test_impossible_rules_are_refused(entry):
    from pegsynth.schema import Rule

    nothing = (Rule.of({0: [0, 1, 2], 4: [1]}), Rule.of({0: [0, 1, 2], 4: [0]}))
    with pytest.raises(PegsynthError, match="rule"):
        made(entry, schema=contract_schema(rules=nothing))


# What it costs


def draws_of(ledger):
    return [event for event in ledger.events if hasattr(event, "alpha_numerator")]


def eta(event):
    return math.log1p(event.alpha_denominator / event.alpha_numerator)


@unbudgeted
def test_methods_without_a_proof_say_none_and_why(entry):
    release = made(entry, seed=None)
    assert release.ledger.guarantee.kind == "none"
    assert release.ledger.epsilon is None
    (line,) = release.ledger.not_covered
    assert entry.method in line
    assert [event.code for event in release.ledger.events] == ["no-proof"]


@budgeted
def test_the_ledger_states_one_total_that_stays_within_the_budget(entry):
    rows, datasets = 40, 2
    release = made(entry, rows=rows, datasets=datasets, seed=None)
    guarantee = release.ledger.guarantee
    assert guarantee.kind == ("approximate" if "delta" in entry.budget else "pure")
    assert release.ledger.not_covered == ()
    kinds = [type(event).__struct_config__.tag for event in draws_of(release.ledger)]
    assert kinds == ([entry.draws] if entry.draws else [])
    allowed = entry.budget.get("epsilon") or entry.budget["epsilon_per_row"] * rows * datasets
    assert 0.9 * allowed < release.ledger.epsilon <= allowed


@budgeted
def test_a_seed_leaves_no_guarantee(entry):
    ledger = made(entry).ledger
    assert ledger.guarantee.kind == "none"
    assert any("seed" in line for line in ledger.not_covered)
    assert "7" not in ledger.not_covered[0]


def total_of(entry, event, rows, datasets):
    """The formulas of docs/maths.md, written out."""
    schema = contract_schema()
    features, each = len(schema.features), eta(event)
    visits = event.visits if hasattr(event, "visits") else 0
    urn = math.log1p(visits * event.alpha_denominator / event.alpha_numerator)
    return {
        "pegs": datasets * rows * features * each,  # R3
        "pegs-rs": datasets * math.ceil(rows / 10) * features * each,  # R4
        "pegs-capped": features * visits * each,  # R5
        "pegs-capped, urn": features * urn,  # R17
        "contingency": datasets * rows * each,  # R9
        "log-linear": datasets * rows * each,  # R8 on the cells, R9
        "marginal": datasets * features * urn,  # R9, R17
        "pmi": datasets * rows * features * each,  # R8
    }[entry.name.removesuffix(", total")]


@drawn_and_paid
@pytest.mark.parametrize(("rows", "datasets"), [(25, 1), (25, 3)])
def test_draws_cost_what_the_maths_say(entry, rows, datasets):
    ledger = made(entry, rows=rows, datasets=datasets, seed=None).ledger
    (event,) = draws_of(ledger)
    price = pegsynth.Ledger((event,)).epsilon
    assert price == pytest.approx(total_of(entry, event, rows, datasets), rel=1e-9)


def test_the_urns_of_marginal_pay_for_attempts_that_a_rule_rejects():
    entry = next(each for each in ENTRIES if each.name == "marginal")
    with_rule = draws_of(made(entry, rows=50, datasets=2).ledger)[0]
    free = draws_of(made(entry, schema=contract_schema(rules=()), rows=50, datasets=2).ledger)[0]
    assert (free.visits, free.urns) == (50, 2)
    assert (with_rule.visits, with_rule.urns) == (200, 2)


@drawn_and_paid
def test_the_price_never_depends_on_the_table(entry):
    options = {"rows": 30, "seed": None}
    small = made(entry, contract_table(20, seed=5), **options).ledger
    large = made(entry, contract_table(400, seed=6), **options).ledger
    assert small == large
    assert small.to_json() == large.to_json()


@released
def test_the_price_of_released_blocks_is_the_budget_whatever_was_measured(entry):
    """Which tables are measured follows paid output; what is unspent still counts (R11)."""
    options = {"rows": 30, "seed": None}
    for rows in (20, 400):
        ledger = made(entry, contract_table(rows, seed=rows), **options).ledger
        assert entry.budget["epsilon"] * (1 - 1e-9) < ledger.epsilon <= entry.budget["epsilon"]


# Sessions


def session_of(entry, rows, datasets=1, **changes):
    settings = {**entry.budget, **changes}
    budget = Request(method=entry.method, **settings).budget
    schema, stream = contract_schema(), RandomStream(3)
    plan = settled_plan(schema, budget, entry.method, rows=rows, datasets=datasets, **entry.options)
    model = fitted_model(contract_table(), schema, plan, stream)
    return Session(model, model.plan, stream)


def taken(session, rows, datasets=1):
    return [np.concatenate(list(chunks)) for chunks in session.draw(rows, datasets)]


@every
def test_a_session_yields_chunks_that_do_not_depend_on_when_they_are_read(entry):
    rows = ROWS_OF_TWO_CHUNKS
    first = session_of(entry, rows, 2).draw(rows, 2)
    in_turn = [np.concatenate(list(chunks)) for chunks in first]
    second = session_of(entry, rows, 2).draw(rows, 2)
    backwards = [np.concatenate(list(chunks)) for chunks in reversed(second)][::-1]
    assert all(map(np.array_equal, in_turn, backwards))


LIMITED = [e for e in DRAWN if "epsilon" in e.budget and e.method != "pegs-capped"]


@pytest.mark.parametrize("entry", LIMITED, ids=str)
def test_a_session_cannot_overspend(entry):
    session = session_of(entry, 40, 2)
    before = session.ledger
    taken(session, 40)
    assert session.left() == 40
    with pytest.raises(BudgetError, match="40 more rows"):
        session.draw(41)
    with pytest.raises(BudgetError, match="40 more rows"):
        session.draw(40, 2)
    taken(session, 40)
    assert session.left() == 0
    with pytest.raises(BudgetError, match="0 more rows"):
        session.draw(1)
    assert session.ledger == before


@pytest.mark.parametrize("entry", [e for e in BUDGETED if "epsilon_per_row" in e.budget], ids=str)
def test_without_a_total_the_price_follows_the_rows(entry):
    session = session_of(entry, 40)
    taken(session, 40)
    once = draws_of(session.ledger)[0]
    taken(session, 40, 2)
    thrice = draws_of(session.ledger)[0]
    assert (once.rows, thrice.rows) == (40, 120)
    price = [pegsynth.Ledger((event,)).epsilon for event in (once, thrice)]
    assert price[1] == pytest.approx(3 * price[0])


FREE = [e for e in BUDGETED if e.method in ("pegs-capped", "pegs-once")]


@pytest.mark.parametrize("entry", FREE, ids=str)
def test_rows_are_free_where_visits_are_counted_or_blocks_released(entry):
    session = session_of(entry, 40)
    before = session.ledger
    for _ in range(3):
        taken(session, 40)
    assert session.left() is None
    assert session.ledger == before


@every
def test_a_session_cannot_be_copied(entry):
    session = session_of(entry, 10)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            attempt(session)


# Methods that must agree


def test_pmi_without_virtual_rows_is_mi():
    data, schema = contract_table(), contract_schema()
    settings = {"rows": 400, "datasets": 2, "seed": 11, "seed_pool": "original"}
    plain = pegsynth.synthesize(data, schema, method="mi", **settings)
    perturbed = pegsynth.synthesize(data, schema, method="pmi", alpha=0.0, **settings)
    for first, second in zip(plain.frames, perturbed.frames, strict=True):
        assert first.equals(second)
    codes = [event.code for event in perturbed.ledger.events]
    assert codes == ["unperturbed", "original-seed-pool", "seeded"]
    other = pegsynth.synthesize(data, schema, method="pmi", alpha=0.5, **settings)
    assert not other.frames[0].equals(plain.frames[0])
