"""Features with a parent: drawn given their parent alone, on a ledger line of their own."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import done
from oracle import slow_key
from pegsynth.auditing.cases import all_cases
from pegsynth.auditing.divergence import all_rows
from pegsynth.errors import SchemaError
from pegsynth.kernels import gibbs
from pegsynth.kernels.compiled import as_kernel
from pegsynth.kernels.key_counts import keys_of, tail_totals
from pegsynth.methods.gibbs.block_fitting import hash_spec
from pegsynth.methods.gibbs.order import detail_features, plain_features, public_heads
from pegsynth.methods.session import Session
from pegsynth.privacy import Budget
from pegsynth.privacy.draw_events import DETAILS
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.storage.model_file import load_model, save_model
from small_release import settled_plan, small_model, taken

# Kernels call these; here Python does, compiled all the same.
keys_of_rows = as_kernel(gibbs.keys_of_rows)
tails_of = as_kernel(gibbs.tails_of)

GROUPS, CODES = ("A", "B", "C"), tuple(f"{group}{i}" for group in "ABC" for i in range(4))
FINE = tuple(f"{code}.{i}" for code in CODES for i in range(2))
METHODS = {
    "pegs": {"method": "pegs"},
    "pegs-rs": {"method": "pegs-rs"},
    "cap": {"method": "pegs-capped", "urn": False},
    "urn": {"method": "pegs-capped", "urn": True},
}
every = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


def schema(*, parents=True, rules=()):
    """group and two plain features; code is a detail of group, fine a detail of code."""
    columns = (
        Feature("fine", categories=FINE, parent="code" if parents else None),
        Feature("group", categories=GROUPS),
        Feature("code", categories=CODES, parent="group" if parents else None),
        Feature("p", categories=("0", "1")),
        Feature("q", categories=("0", "1", "2")),
    )
    return Schema(columns, rules=rules, reviewed=True)


def table(rows=400, seed=1):
    words = np.random.default_rng(seed)
    group, code = words.integers(0, 3, rows), words.integers(0, 4, rows)
    fine = words.integers(0, 2, rows)
    p = (group > 0) ^ (words.random(rows) < 0.2)
    return pl.DataFrame(
        {
            "fine": [FINE[8 * g + 2 * c + f] for g, c, f in zip(group, code, fine, strict=True)],
            "group": [GROUPS[g] for g in group],
            "code": [CODES[4 * g + c] for g, c in zip(group, code, strict=True)],
            "p": [str(int(x)) for x in p],
            "q": [str(x) for x in words.integers(0, 3, rows)],
        }
    )


def made(method, book=None, data=None, **changes):
    data = table() if data is None else data
    options = {"rows": 500, "seed": 3, **method, **changes}
    return pegsynth.synthesize(data, book or schema(), **options)


def inconsistent(frame):
    """Rows whose code belongs to another group, or whose fine code to another code."""
    group = frame.get_column("code").str.slice(0, 1) != frame.get_column("group")
    code = frame.get_column("fine").str.slice(0, 2) != frame.get_column("code")
    return int((group | code).sum())


# Drawn given their parent


@pytest.mark.parametrize("sweeps", [1, 3])
@pytest.mark.parametrize("heads", [0, 1, 2])
def test_without_virtual_rows_a_detail_always_belongs_to_its_parent(heads, sweeps):
    options = {"alpha": 0.0, "heads": heads, "sweeps": sweeps, "rows": 2_000}
    (drawn,) = made({"method": "pegs"}, **options).frames
    assert inconsistent(drawn) == 0
    assert drawn.get_column("code").n_unique() == len(CODES)


def test_without_a_parent_the_same_table_is_inconsistent():
    """The twin: a code that is hashed like any other feature loses its group."""
    (drawn,) = made({"method": "pegs"}, schema(parents=False), alpha=0.0, rows=2_000).frames
    assert inconsistent(drawn) > 100


@every
def test_a_large_budget_keeps_details_with_their_parents(method):
    """Where an entry may answer as often as it is asked, details follow their parent."""
    often = {"pegs-rs": {"block_size": 1}, "pegs-capped": {"visits": 2_000}}
    (drawn,) = made(method, epsilon=2e5, **often.get(method["method"], {})).frames
    assert inconsistent(drawn) < 10


def test_a_clamped_parent_steers_its_details():
    (drawn,) = made({"method": "pegs"}, alpha=0.0, where={"group": "B"}).frames
    assert set(drawn.get_column("code")) == {"B0", "B1", "B2", "B3"}
    assert inconsistent(drawn) == 0


def test_details_are_replaced_given_the_kept_parent():
    data = table()
    release = pegsynth.synthesize(data, schema(), synthesize=["code", "fine"], seed=2)
    (drawn,) = release.frames
    assert drawn.drop("code", "fine").equals(data.drop("code", "fine"))
    assert inconsistent(drawn) == 0
    assert not drawn.get_column("code").equals(data.get_column("code"))


def test_rules_reach_details():
    rules = (Rule.of({1: [0], 2: [0, 1]}),)
    (drawn,) = made({"method": "pegs"}, schema(rules=rules), alpha=0.0, rows=3_000).frames
    of_first = drawn.filter(pl.col("group") == "A").get_column("code")
    assert set(of_first) == {"A2", "A3"}


# Keys

ROWS = np.array(all_rows((4, 3, 4, 2, 3)), dtype=np.uint32)
SMALL = Schema(
    (
        Feature("fine", categories=tuple("abcd"), parent="code"),
        Feature("group", categories=tuple("abc")),
        Feature("code", categories=tuple("abcd"), parent="group"),
        Feature("p", categories=tuple("ab")),
        Feature("q", categories=tuple("abc"), heads=("fine", "p")),
    ),
    reviewed=True,
)


def test_plain_features_come_first_and_parents_before_their_details():
    assert plain_features(SMALL) == (1, 3, 4)
    assert detail_features(SMALL) == (2, 0)


@pytest.mark.parametrize("heads", [0, 1, 2])
def test_details_are_nobodys_head_and_have_their_parent_alone(heads):
    chosen = public_heads(SMALL, heads)
    assert chosen[0] == (2,)
    assert chosen[2] == (1,)
    for target in (1, 3, 4):
        assert len(chosen[target]) == heads
        assert not {0, 2} & set(chosen[target])


def compiled_keys(spec):
    """Keys of all rows and targets, as counted and as swept."""
    columns, counted = np.ascontiguousarray(ROWS.T), []
    totals = np.zeros(len(ROWS), dtype=np.int64)
    tail_totals(columns, spec.tables, totals)
    swept_totals = np.zeros(len(ROWS), dtype=np.int64)
    tails_of(ROWS, spec.tables, swept_totals)
    for target in range(len(columns)):
        keys, swept = np.zeros(len(ROWS), np.int64), np.zeros(len(ROWS), np.int64)
        keys_of(columns, totals, spec.tables, target, keys)
        keys_of_rows(ROWS, swept_totals, spec.tables, target, swept)
        assert np.array_equal(keys, swept)
        counted.append(keys)
    return np.stack(counted, axis=1)


@pytest.mark.parametrize("tail_bits", [0, 1, 3])
@pytest.mark.parametrize("heads", [0, 1, 2])
def test_keys_of_other_features_do_not_change_with_a_detail(heads, tail_bits):
    spec = hash_spec(SMALL, public_heads(SMALL, heads), tail_bits)
    keys = compiled_keys(spec)
    plain = [1, 3, 4]
    by_rest = {}
    for row, line in zip(ROWS[:, plain].tolist(), keys[:, plain].tolist(), strict=True):
        assert by_rest.setdefault(tuple(row), line) == line
    if tail_bits == 3:
        assert len({tuple(line) for line in by_rest.values()}) > 1
    # A detail's key is its parent and nothing else.
    for detail, parent in ((0, 2), (2, 1)):
        pairs = set(zip(ROWS[:, parent].tolist(), keys[:, detail].tolist(), strict=True))
        assert len(pairs) == len({value for value, _ in pairs}) == len({key for _, key in pairs})


def test_without_details_the_same_features_do_enter_the_tail():
    free = Schema(tuple(replace(f, parent=None) for f in SMALL.columns), reviewed=True)
    spec = hash_spec(free, ((), (), (), (), ()), 3)
    assert slow_key(spec, 1, (0, 0, 0, 0, 0)) != slow_key(spec, 1, (0, 0, 1, 0, 0))


# The ledger


def draws_of(ledger):
    return [event for event in ledger.events if hasattr(event, "alpha_numerator")]


@every
@pytest.mark.parametrize("budget", [{"epsilon": 30.0}, {"epsilon": 30.0, "delta": 1e-9}], ids=str)
def test_details_have_a_line_of_their_own_and_the_total_is_the_same(method, budget):
    options = {"seed": None, "order": "public", "prior": "uniform", **budget}
    if method["method"] == "pegs-capped":
        options["visits"] = 40
    ledger = made(method, **options).ledger
    plain, details = draws_of(ledger)
    assert (plain.features, details.features) == (3, 2)
    assert (plain.label, details.label) == ("", DETAILS)
    assert DETAILS in ledger.to_json()
    without = made(method, schema(parents=False), **options).ledger
    (whole,) = draws_of(without)
    assert whole.features == 5
    assert ledger.epsilon == pytest.approx(without.epsilon, rel=1e-12)
    assert ledger.rho == pytest.approx(without.rho, rel=1e-12)
    assert ledger.epsilon <= 30


@pytest.mark.parametrize("method", ["pegs", "pegs-rs"])
def test_the_price_per_row_is_split_too(method):
    ledger = made({"method": method}, seed=None, epsilon_per_row=5.0, rows=40).ledger
    plain, details = draws_of(ledger)
    assert (plain.rows, details.rows) == (40, 40)
    assert ledger.epsilon <= 200
    both = [pegsynth.Ledger((event,)).epsilon for event in (plain, details)]
    assert both[0] / both[1] == pytest.approx(3 / 2)
    assert sum(both) == pytest.approx(ledger.epsilon)


def test_details_alone_are_named_as_such():
    where = {"group": "A", "p": "0", "q": "1"}
    ledger = made({"method": "pegs"}, seed=None, epsilon_per_row=1.0, where=where).ledger
    (event,) = draws_of(ledger)
    assert (event.features, event.label) == (2, DETAILS)


@pytest.mark.parametrize("method", ["contingency", "marginal", "pmi"])
def test_other_methods_draw_details_like_any_feature(method):
    few = Schema(SMALL.columns, reviewed=True)
    data = pl.DataFrame(
        [["a", "b", "c", "a", "b"], ["b", "a", "a", "b", "c"]] * 10, few.names, orient="row"
    )
    release = pegsynth.synthesize(data, few, method=method, epsilon=50.0, rows=20)
    assert len(draws_of(release.ledger)) == 1
    assert release.frames[0].height == 20


# Orders


@pytest.mark.parametrize("heads", [1, 2])
def test_a_private_order_makes_and_pays_no_choice_for_details(heads):
    budget = Budget(epsilon=50.0)
    plan = settled_plan(schema(), budget, rows=100, heads=heads, order="private")
    assert plan.choice.count == 3 * heads
    model, _ = small_model(schema(), table(), epsilon=50.0, heads=heads, order="private")
    chosen = model.content.blocks.spec.heads
    assert chosen[0] == (2,)
    assert chosen[2] == (1,)
    for target in (1, 3, 4):
        assert len(chosen[target]) == heads
        assert set(chosen[target]) <= {1, 3, 4} - {target}


def test_the_order_of_the_data_leaves_details_alone_too():
    model, _ = small_model(schema(), table(), alpha=1.0, heads=1, order="data")
    heads = model.content.blocks.spec.heads
    assert (heads[0], heads[2]) == ((2,), (1,))
    assert heads[1] == (3,)  # p was made from group
    assert not {0, 2} & {head for target in (1, 3, 4) for head in heads[target]}


# What is refused


def feature(name, parent=None):
    return Feature(name, categories=("x", "y"), parent=parent)


def test_parents_that_lead_back_to_themselves_are_refused():
    looped = Schema((feature("a", "b"), feature("b", "a"), feature("c")), reviewed=True)
    data = pl.DataFrame({"a": ["x"], "b": ["y"], "c": ["x"]})
    with pytest.raises(SchemaError, match="lead back to itself"):
        pegsynth.synthesize(data, looped, alpha=1.0, rows=1)


def test_a_parent_that_is_missing_or_the_feature_itself_is_refused():
    for parent in ("nothing", "a"):
        with pytest.raises(SchemaError, match="'a'"):
            Schema((feature("a", parent), feature("b")))
    person = Feature("person", role="identifier")
    with pytest.raises(SchemaError, match="'person'"):
        Schema((feature("a", "person"), person))


# Saved models


@pytest.mark.parametrize("budget", [{"epsilon": 50.0}, {"epsilon_per_row": 5.0}], ids=str)
def test_a_saved_model_draws_and_charges_alike(tmp_path, budget):
    model, plan = small_model(schema(), table(), heads=1, **budget)
    save_model(model, tmp_path / "m.pegs")
    again = load_model(tmp_path / "m.pegs")
    assert again.content.blocks.spec == model.content.blocks.spec
    assert again.plan.events == plan.events
    assert again.plan.keys == plan.keys
    first, second = (Session(m, m.plan, RandomStream(4)) for m in (model, again))
    assert np.array_equal(*(taken(session, 50)[0] for session in (first, second)))
    assert first.ledger == second.ledger


def test_a_model_of_one_plain_feature_and_its_detail_can_be_sampled(tmp_path):
    book = Schema((feature("a"), feature("b", "a")), reviewed=True)
    book.save(tmp_path / "schema.toml")
    pl.DataFrame({"a": ["x", "y"] * 20, "b": ["x", "y"] * 20}).write_csv(tmp_path / "data.csv")
    model, output = tmp_path / "m.pegs", tmp_path / "o.csv"
    done("fit", tmp_path / "data.csv", "--schema", tmp_path / "schema.toml", "-o", model)
    done("sample", model, "--rows", 100, "--alpha", 0, "-o", output)
    drawn = pl.read_csv(output)
    assert drawn.get_column("a").equals(drawn.get_column("b").rename("a"))


def test_the_schema_file_keeps_parents(tmp_path):
    schema().save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml") == schema()


def test_details_are_among_the_audited_cases():
    audited = [each for each in all_cases() if detail_features(each.schema)]
    assert {each.method for each in audited} == {"pegs", "pegs-rs", "pegs-capped"}
