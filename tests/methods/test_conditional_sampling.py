"""``--where``: clamped features, what their draws cost, and how far a clamped chain is off.

Laws of chains are exact: the transition of one sweep is enumerated through the compiled
sampler as fractions, and applied as often as there are sweeps.
"""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from contract import EDGES, ENTRIES, breaks_the_rule, contract_schema, contract_table, made
from oracle import SlowSampler
from pegsynth.auditing.cases import Case, case, tiny_schema
from pegsynth.auditing.divergence import all_rows
from pegsynth.auditing.exact_laws import enumerate_integers, enumerate_rows, word_bits
from pegsynth.errors import ParameterError, PegsynthError, SchemaError
from pegsynth.methods.base import Model
from pegsynth.methods.baselines.bootstrap import RowsFit
from pegsynth.methods.baselines.contingency import CONTINGENCY
from pegsynth.methods.gibbs.chains import Schedule
from pegsynth.methods.gibbs.samplers import prepare
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.privacy import Ledger
from pegsynth.schema import Rule
from significance import outcomes_fit
from small_release import settled_plan

CLAMPING = [entry for entry in ENTRIES if entry.method != "marginal"]
clamping = pytest.mark.parametrize("entry", CLAMPING, ids=str)


# What goes out


@clamping
def test_clamped_features_keep_their_value_in_every_row(entry):
    frames = made(entry, rows=300, datasets=2, where={"a": "y", "s": 2}).frames
    for drawn in frames:
        assert drawn.height == 300
        assert set(drawn.get_column("a")) == {"y"}
        assert set(drawn.get_column("s")) == {2}
        assert drawn.get_column("d").n_unique() == 2


@clamping
@pytest.mark.parametrize("value", [12.5, "12.5", "[10, 20)"], ids=str)
def test_numbers_are_given_by_value_or_by_the_label_of_their_bin(entry, value):
    (drawn,) = made(entry, where={"n": value}).frames
    numbers = drawn.get_column("n")
    assert numbers.null_count() == 0
    assert EDGES[1] <= numbers.min() <= numbers.max() < EDGES[2]


@clamping
def test_missing_is_a_value_like_any_other(entry):
    (drawn,) = made(entry, where={"b": ""}).frames
    assert drawn.get_column("b").null_count() == drawn.height


@clamping
def test_rules_are_obeyed_given_the_clamped_values(entry):
    (drawn,) = made(entry, rows=1_000, where={"a": "x"}).frames
    assert set(drawn.get_column("d")) == {"no"}
    assert breaks_the_rule(drawn) == 0


# What it costs


def draws_of(ledger):
    return next(event for event in ledger.events if hasattr(event, "alpha_numerator"))


@pytest.mark.parametrize("entry", [e for e in CLAMPING if e.draws], ids=str)
def test_only_draws_that_are_made_are_charged(entry):
    options = {"rows": 200, "seed": None}
    whole = draws_of(made(entry, **options).ledger)
    where = draws_of(made(entry, **options, where={"a": "y", "s": 2}).ledger)
    if entry.method == "contingency":
        # One draw per row, however many features it shows (R9).
        assert pegsynth.Ledger((where,)).epsilon == pegsynth.Ledger((whole,)).epsilon
        return
    assert (whole.features, where.features) == (5, 3)
    # The same money buys fewer virtual rows.
    alpha = [Fraction(e.alpha_numerator, e.alpha_denominator) for e in (whole, where)]
    assert alpha[1] < alpha[0]


@pytest.mark.parametrize("method", ["pegs", "pegs-rs", "pmi"])
def test_at_a_stated_alpha_the_total_falls_with_every_clamped_feature(method):
    def total(**where):
        release = pegsynth.synthesize(
            contract_table(), contract_schema(), method=method, alpha=1.0, rows=20, where=where
        )
        assert release.ledger.guarantee.kind == "pure"
        return release.ledger.epsilon

    lots = 2 if method == "pegs-rs" else 20
    assert total() == pytest.approx(lots * 5 * math.log(2))
    assert total(a="y") == pytest.approx(lots * 4 * math.log(2))
    assert total(a="y", s=2, b="p", n=3.0) == pytest.approx(lots * 1 * math.log(2))


# How far a clamped chain is off

COUNTS = (2, 2, 2)
DATA = (
    *[(0, 0, 0)] * 7,
    *[(0, 1, 1)] * 3,
    (0, 0, 1),
    (0, 1, 0),
    *[(1, 1, 1)] * 6,
    *[(1, 0, 1)] * 2,
)
WHERE = (("x0", "a"),)
SWEEPS = (1, 2, 4, 8)


def clamped_case(heads, tail_bits, *, sweeps=1, alpha=0.25):
    schema = tiny_schema(COUNTS)
    plan = settled_plan(
        schema,
        alpha=alpha,
        rows=1,
        sweeps=sweeps,
        where=WHERE,
        heads=heads,
        tail_bits=tail_bits,
        order="public",
        scale=4,
    )
    return Case("clamped", schema, plan, most_rows=len(DATA))


def transition(each):
    """Law of the row after the sweeps of a case, from every row that holds the given value."""
    machine = prepare(each.schema, each.fitted(DATA), each.plan).machine
    assert machine.targets.tolist() == [1, 2]
    schedule, bits = Schedule(1, each.plan.options.sweeps), word_bits(machine, len(DATA))
    out = {}
    for start in all_rows(COUNTS):
        if start[0] == 0:
            seeds = np.array([start], dtype=np.uint32)
            found = enumerate_rows(machine, seeds, schedule, 1, bits)
            out[start] = {table[0]: share for table, share in found.items()}
    return out


def after(step, sweeps):
    """Law after some sweeps from uniform seed rows."""
    law = dict.fromkeys(step, Fraction(1, len(step)))
    for _ in range(sweeps):
        moved = defaultdict(Fraction)
        for row, mass in law.items():
            for reached, share in step[row].items():
                moved[reached] += mass * share
        law = moved
    return dict(law)


def exact_conditional(alpha):
    """The fitted joint, counts plus alpha in every cell, restricted to the given value."""
    weight = {row: DATA.count(row) + Fraction(alpha) for row in all_rows(COUNTS) if row[0] == 0}
    return {row: w / sum(weight.values()) for row, w in weight.items()}


def variation(first, second):
    """Total variation distance."""
    return sum(abs(first.get(k, 0) - second.get(k, 0)) for k in {*first, *second}) / 2


def test_a_clamped_chain_over_full_keys_comes_to_exact_conditioning():
    step, goal = transition(clamped_case(2, 0)), exact_conditional(0.25)
    distances = [variation(after(step, sweeps), goal) for sweeps in SWEEPS]
    assert all(later < earlier for earlier, later in pairwise(distances))
    assert distances[0] > Fraction(1, 20)
    assert distances[-1] < distances[0] / 5
    assert variation(after(step, 60), goal) < Fraction(1, 10**6)


@pytest.mark.parametrize(("heads", "tail_bits"), [(0, 1), (1, 0), (1, 1)])
def test_a_clamped_chain_over_hashed_keys_comes_near_and_stays_there(heads, tail_bits):
    """Keys that leave something out are not the conditionals of one joint: a gap remains."""
    step, goal = transition(clamped_case(heads, tail_bits)), exact_conditional(0.25)
    rest = after(step, 60)
    own = [variation(after(step, sweeps), rest) for sweeps in SWEEPS]
    assert all(later <= earlier for earlier, later in pairwise(own))
    assert own[-1] < Fraction(1, 100)
    distances = [variation(after(step, sweeps), goal) for sweeps in SWEEPS]
    assert all(distance < Fraction(1, 3) for distance in distances)
    # The distance to the goal settles at that of the resting law, by the triangle inequality.
    assert abs(distances[-1] - variation(rest, goal)) <= own[-1]


def test_two_sweeps_of_the_sampler_are_one_sweep_twice():
    once, twice = (transition(clamped_case(2, 0, sweeps=sweeps)) for sweeps in (1, 2))
    assert after(twice, 1) == after(once, 2)


def test_the_transition_is_that_of_the_definitions():
    each = clamped_case(1, 1)
    spec = HashSpec(each.schema.names, COUNTS, ((1,), (0,), (0,)), 1)
    slow = SlowSampler(DATA, spec, [[Fraction(1, 4)] * 2] * 3)
    for start, law in transition(each).items():
        expected = slow.table([start], 1, targets=(1, 2))
        assert law == {table[0]: share for table, share in expected.items()}


def test_full_keys_and_no_tail_are_the_full_conditionals():
    """PeGS with m = M-1 heads: every draw is given all other features, exactly (R1)."""
    each = case("full", COUNTS, rows=1, heads=2, tail_bits=0, most_rows=len(DATA))
    alpha = Fraction(each.plan.numerator, each.plan.scale)
    machine = prepare(each.schema, each.fitted(DATA), each.plan).machine
    bits = word_bits(machine, len(DATA))
    for start in all_rows(COUNTS):
        seeds = np.array([start], dtype=np.uint32)
        found = enumerate_rows(machine, seeds, Schedule(), 1, bits)
        expected = {start: Fraction(1)}
        for target in range(3):
            moved = defaultdict(Fraction)
            for row, mass in expected.items():
                trials = [(*row[:target], j, *row[target + 1 :]) for j in range(2)]
                weights = [DATA.count(trial) + alpha for trial in trials]
                for trial, weight in zip(trials, weights, strict=True):
                    moved[trial] += mass * weight / sum(weights)
            expected = moved
        assert {table[0]: share for table, share in found.items()} == expected


@pytest.mark.parametrize("sweeps", [1, 8])
def test_drawn_rows_follow_the_law_of_the_clamped_chain(sweeps):
    data = pl.DataFrame(
        [["ab"[code] for code in row] for row in DATA], ["x0", "x1", "x2"], orient="row"
    )
    (drawn,) = pegsynth.synthesize(
        data,
        tiny_schema(COUNTS),
        alpha=0.25,
        heads=2,
        tail_bits=0,
        rows=20_000,
        sweeps=sweeps,
        where={"x0": "a"},
        seed=sweeps,
    ).frames
    outcomes = [tuple("ab".index(text) for text in row) for row in drawn.iter_rows()]
    step, goal = transition(clamped_case(2, 0)), exact_conditional(0.25)
    law = {row: float(share) for row, share in after(step, sweeps).items()}
    assert outcomes_fit(outcomes, law)
    if sweeps == 1:
        assert not outcomes_fit(outcomes, {row: float(share) for row, share in goal.items()})


# Contingency conditions exactly


class OneSource:
    """A stream whose only keystream gives integers that are enumerated."""

    def __init__(self, source):
        self.source = source

    def substreams(self, count):
        return 0

    def substream(self, number=None):
        return self.source


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("where", [WHERE, (("x0", "a"), ("x2", "b"))], ids=["one", "two"])
def test_contingency_conditions_exactly(alpha, where):
    schema = tiny_schema(COUNTS)
    plan = settled_plan(schema, method="contingency", alpha=alpha, rows=1, where=where, scale=2)
    rows = RowsFit(np.array(DATA, dtype=np.uint8))
    model = Model(schema, "contingency", rows, Ledger(), plan)
    sampler = CONTINGENCY.sampler(model, plan, threads=1)
    fixed = {schema.index(name): "ab".index(text) for name, text in where}

    def run(source):
        (chunks,) = sampler.tables(1, 1, OneSource(source))
        return tuple(np.concatenate(list(chunks))[0].tolist())

    weight = {
        row: DATA.count(row) + Fraction(alpha)
        for row in all_rows(COUNTS)
        if all(row[feature] == code for feature, code in fixed.items())
    }
    total = sum(weight.values())
    assert enumerate_integers(run, 1) == {r: w / total for r, w in weight.items() if w}


def test_contingency_under_a_rule_conditions_on_what_the_rule_leaves():
    release = pegsynth.synthesize(
        contract_table(),
        contract_schema(),
        method="contingency",
        alpha=0.0,
        rows=4_000,
        where={"d": "yes"},
        seed=5,
    )
    original = contract_table().filter((pl.col("d") == "yes") & (pl.col("a") != "x"))
    shares = dict(original.get_column("a").value_counts(normalize=True).iter_rows())
    assert outcomes_fit(release.frames[0].get_column("a"), shares)


def test_the_bootstrap_draws_from_the_rows_that_match():
    entry = next(each for each in ENTRIES if each.method == "bootstrap")
    (drawn,) = made(entry, rows=500, where={"a": "y", "b": "q"}, decode="labels").frames
    labelled = set(drawn.select("s", "d").iter_rows())
    matching = contract_table().filter((pl.col("a") == "y") & (pl.col("b") == "q"))
    assert {(int(s), d) for s, d in labelled} == set(matching.select("s", "d").iter_rows())


# What is refused


@clamping
@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"a": "nobody"}, "a=nobody"),
        ({"nothing": "x"}, "'nothing'"),
        ({"a": ""}, "a="),
        ({"s": 7}, "s=7"),
        ({"a": "y", "b": "p", "s": 1, "n": 1.0, "d": "no"}, "every feature"),
    ],
    ids=["category", "feature", "missing", "number", "all"],
)
def test_values_and_features_that_the_schema_lacks_are_refused(entry, where, named):
    with pytest.raises(PegsynthError, match=named):
        made(entry, where=where)


@clamping
def test_values_that_a_rule_forbids_together_are_refused(entry):
    with pytest.raises(PegsynthError, match=r"rule|no row"):
        made(entry, where={"a": "x", "d": "yes"})


@clamping
def test_a_value_that_leaves_a_feature_no_category_is_refused(entry):
    rules = (Rule.of({0: [0], 4: [1]}), Rule.of({0: [0], 4: [0]}))
    with pytest.raises(PegsynthError, match=r"rule|no row"):
        made(entry, schema=contract_schema(rules=rules), where={"a": "x"})


def test_the_same_feature_twice_is_refused():
    with pytest.raises(ParameterError, match="twice"):
        settled_plan(contract_schema(), alpha=1.0, rows=1, where=(("a", "y"), ("a", "z")))


def test_independent_columns_have_nothing_to_condition():
    entry = next(each for each in ENTRIES if each.method == "marginal")
    with pytest.raises(ParameterError, match=r"where requires method .*"):
        made(entry, where={"a": "y"})


def test_an_impossible_value_is_refused_before_the_table_is_read():
    """The refusal is the schema's; it must not depend on the rows."""
    for data in (contract_table(), contract_table().filter(pl.col("a") == "y")):
        with pytest.raises(SchemaError):
            pegsynth.synthesize(
                data,
                contract_schema(),
                method="contingency",
                alpha=1.0,
                rows=1,
                where={"a": "x", "d": "yes"},
            )


# The command


@pytest.fixture
def folder(tmp_path):
    contract_schema().save(tmp_path / "schema.toml")
    contract_table().write_csv(tmp_path / "data.csv")
    return tmp_path


def command(folder, *more):
    files = [folder / "data.csv", "--schema", folder / "schema.toml", "-o", folder / "o.csv"]
    return ["synthesize", *files, "--rows", 50, "--epsilon-per-row", 1, *more]


def test_the_command_takes_several_and_charges_what_is_drawn(folder):
    done(*command(folder, "--where", "a=y", "--where", "n=[10, 20)"))
    drawn = pl.read_csv(folder / "o.csv")
    assert set(drawn.get_column("a")) == {"y"}
    assert drawn.get_column("n").is_between(10, 20).all()
    ledger = pegsynth.Ledger.from_json((folder / "o.csv.privacy.json").read_text())
    assert draws_of(ledger).features == 3
    assert ledger.epsilon <= 50


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["a"], "FEATURE=VALUE"),
        (["a=nobody"], "no such category"),
        (["a=x", "a=y"], "twice"),
        (["a=x", "d=yes"], "rule"),
    ],
    ids=str,
)
def test_the_command_refuses(folder, given, named):
    flags = [flag for text in given for flag in ("--where", text)]
    check_refused(pegs(*command(folder, *flags)), named)
    assert not (folder / "o.csv").exists()
