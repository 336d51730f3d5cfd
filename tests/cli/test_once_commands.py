"""``pegs fit``, ``sample``, ``inspect`` and ``release`` with released blocks (R7, R11)."""

import json
import re
import shutil
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from command import check_refused, done, pegs, snapshot
from contract import breaks_the_rule, contract_schema, contract_table
from pegsynth.cli.inspecting import _described
from pegsynth.methods.released._stored import describe_released
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.privacy import Ledger, NoisyCounts, Selection, UnknownEvent, Unspent
from pegsynth.privacy.draw_events import PegsDraws
from pegsynth.schema import Feature, Schema


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a table, its schema and a model of released blocks."""
    folder = tmp_path_factory.mktemp("once")
    contract_schema().save(folder / "schema.toml")
    contract_table(600).write_csv(folder / "data.csv")
    outcome = done("fit", *files(folder), *ONCE, "-o", folder / "m.pegs")
    assert "SHAREABLE model of 5 features" in outcome.err
    assert "epsilon = 4" in outcome.err
    return folder


ONCE = ("--method", "pegs-once", "--epsilon", 4, "--delta", 1e-9)


def files(folder):
    return folder / "data.csv", "--schema", folder / "schema.toml"


@pytest.fixture
def alone(home, tmp_path):
    """A folder that holds nothing but the model."""
    shutil.copy(home / "m.pegs", tmp_path / "m.pegs")
    return tmp_path


def test_the_model_alone_gives_any_number_of_rows(alone):
    for rows in (1, 700):
        done("sample", alone / "m.pegs", "--rows", rows, "-o", alone / f"{rows}.csv")
        drawn = pl.read_csv(alone / f"{rows}.csv")
        assert (drawn.height, drawn.width) == (rows, 5)
        assert breaks_the_rule(drawn) == 0
    ledgers = [(alone / f"{rows}.csv.privacy.json").read_text() for rows in (1, 700)]
    assert ledgers[0] == ledgers[1]
    assert 4 * (1 - 1e-9) < Ledger.from_json(ledgers[0]).epsilon <= 4
    assert not (alone / "m.pegs.spent").exists()


def test_sampling_writes_nothing_into_the_model(alone):
    before = snapshot(alone)
    done("sample", alone / "m.pegs", "--rows", 30, "-o", alone / "o.csv")
    after = snapshot(alone)
    assert after[str(alone / "m.pegs")] == before[str(alone / "m.pegs")]
    assert set(after) - set(before) == {str(alone / "o.csv"), str(alone / "o.csv.privacy.json")}


def test_a_seed_repeats_a_sample_and_costs_no_guarantee(alone):
    for name in ("one", "two"):
        done("sample", alone / "m.pegs", "--rows", 40, "--seed", 3, "-o", alone / f"{name}.csv")
    assert (alone / "one.csv").read_bytes() == (alone / "two.csv").read_bytes()
    ledger = Ledger.from_json((alone / "one.csv.privacy.json").read_text())
    assert ledger.guarantee.kind == "approximate"


def test_given_values_may_be_asked_of_the_model(alone):
    done("sample", alone / "m.pegs", "--rows", 60, "--where", "a=x", "-o", alone / "o.csv")
    drawn = pl.read_csv(alone / "o.csv")
    assert set(drawn.get_column("a")) == {"x"}
    assert set(drawn.get_column("d")) == {"no"}
    outcome = pegs("sample", alone / "m.pegs", "--rows", 9, "--where", "a=q", "-o", alone / "p.csv")
    check_refused(outcome, "a=q")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--epsilon", 1), "budget of its own"),
        (("--method", "pegs"), "--method"),
        (("--sweeps", 2), "--sweeps"),
        (("--prior", "marginal"), "--prior"),
    ],
)
def test_other_ways_of_drawing_are_refused(alone, flags, named):
    outcome = pegs("sample", alone / "m.pegs", "--rows", 9, *flags, "-o", alone / "o.csv")
    check_refused(outcome, named)
    assert not (alone / "o.csv").exists()


def test_there_are_no_sampling_steps_to_trace(alone):
    check_refused(pegs("trace", alone / "m.pegs"), "sampling steps")


def test_counting_cannot_be_resumed(home, tmp_path):
    flags = ("--resume", tmp_path / "counts", "-o", tmp_path / "m.pegs")
    check_refused(pegs("fit", *files(home), *ONCE, *flags), "--resume")


def test_inspect_shows_what_was_paid_for(alone):
    shown = done("inspect", alone / "m.pegs").out
    assert shown.startswith("SHAREABLE: ")
    assert re.search(r"about \d+ rows \(noisy\)", shown)
    for name in "absnd":
        levels = r"\d+ levels?( of \d+ categories)?"
        assert re.search(rf"^  {name}: {levels}(, given |$)", shown, re.MULTILINE)
    block = rf"^  \w: {levels}, given \w.*, \d+ cells? \(\d[\d x]* levels\), noise [\d.]+ rows$"
    pairs = r"^residuals of \d+ pairs?, noise [\d.]+ to [\d.]+ rows"
    assert re.search(f"{block}|{pairs}", shown, re.MULTILINE)
    assert "noise is given as its standard deviation, in rows" in shown
    assert "pegs-once, any number of rows left" in shown
    assert "in total: epsilon 4" in shown
    assert "assumed: the reviewer of the schema" in shown


def test_tables_measured_again_are_told_apart():
    table = NoisyTable((0, 1), np.array([4, 1, 2, 3]), 7.0)
    one_way = NoisyTable((0,), np.array([5, 5]), 1.0)
    released = Released(
        total=(10, 1.0),
        one_ways=(one_way, one_way),
        public=(False, False),
        ordered=(False, False),
        loud=False,
        levels=(np.array([0, 1]), np.array([0, 1])),
        order=(0, 1),
        blocks=(NoisyTable((0, 1), table.counts, 3.0),),
        extra=(table, table),
    )
    schema = Schema(tuple(Feature(name, categories=("x", "y")) for name in "ab"))
    assert list(describe_released(released, schema.names))[1:] == [
        "features in the order of drawing:",
        "  a: 2 levels, given nothing",
        "  b: 2 levels, given a, 4 cells (2 x 2 levels), noise 3 rows",
        "tables of the second round, in the order of measuring:",
        "  1. a x b: 4 cells (2 x 2 levels), noise 7 rows",
        "  2. a x b, time 2: 4 cells (2 x 2 levels), noise 7 rows",
    ]


def test_merged_levels_are_told_from_categories():
    one_way = NoisyTable((0,), np.array([5, 5, 5]), 1.0)
    released = Released(
        total=(15, 1.0),
        one_ways=(one_way, one_way),
        public=(False, False),
        ordered=(False, False),
        loud=False,
        levels=(np.array([0, 1, 1]), np.array([0, 0, 0])),
        order=(0, 1),
        blocks=(NoisyTable((0, 1), np.array([4, 1]), 3.0),),
        extra=(NoisyTable((1,), np.array([4]), 3.0),),
    )
    schema = Schema(tuple(Feature(name, categories=("x", "y", "z")) for name in "ab"))
    assert list(describe_released(released, schema.names))[2:] == [
        "  a: 2 levels of 3 categories, given nothing",
        "  b: 1 level of 3 categories, given a, 2 cells (2 x 1 levels), noise 3 rows",
        "tables of the second round, in the order of measuring:",
        "  1. b: 1 cell (1 levels), noise 3 rows",
    ]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            NoisyCounts.laplace(
                2, cells=1, purpose="block", features=("a", "b"), levels=(2, 5), table_cells=10
            ),
            "noisy-counts: mechanism discrete-laplace, purpose block, cells 1, features a x b, "
            "levels 2 x 5, table cells 10, scale 2 rows",
        ),
        (
            NoisyCounts.laplace(
                2, cells=2, purpose="marginals", features=("a", "b"), levels=(2, 5), table_cells=7
            ),
            "noisy-counts: mechanism discrete-laplace, purpose marginals, cells 2, "
            "features a + b, levels 2 + 5, table cells 7, scale 2 rows",
        ),
        (
            Selection.of(
                1, count=1, purpose="heads", candidates=7, among="blocks", chosen=("a", "b")
            ),
            "selection: epsilon 1, count 1, purpose heads, candidates 7, among blocks, "
            "chosen a x b",
        ),
        (
            NoisyCounts.gaussian(Fraction(1, 3), cells=2, purpose="block", label="a"),
            "noisy-counts: label a, mechanism discrete-gaussian, purpose block, cells 2, "
            "sigma 0.333333 rows",
        ),
        (
            NoisyCounts.laplace(Fraction(10**30, 3 * 10**29), cells=1, purpose="total"),
            "noisy-counts: mechanism discrete-laplace, purpose total, cells 1, scale 3.33333 rows",
        ),
        (
            Selection.of(Fraction(1, 7), count=3, purpose="heads"),
            "selection: epsilon 0.142857, count 3, purpose heads",
        ),
        (
            Unspent.of(Fraction(1, 8), route="zcdp"),
            "unspent: route zcdp, amount 0.125",
        ),
        (
            PegsDraws(alpha_numerator=5, alpha_denominator=2, features=3, rows=20),
            "pegs: alpha 2.5 virtual rows, features 3, rows 20, sweeps 1, datasets 1",
        ),
        (
            UnknownEvent(kind="new", content={"kind": "new", "x_numerator": 7}),
            "new: x numerator 7",
        ),
    ],
)
def test_events_are_shown_in_decimal_numbers(event, line):
    assert _described(event) == line


def test_inspect_works_the_promise_out_of_the_events(alone):
    done("sample", alone / "m.pegs", "--rows", 5, "-o", alone / "o.csv")
    ledger = alone / "o.csv.privacy.json"
    shown = done("inspect", ledger).out
    assert "epsilon = 4" in shown
    assert "unspent: route zcdp" in shown
    assert re.search(r"selection: .*purpose (heads|second round)", shown)
    assert not re.search(r"numerator|denominator|\d{12}", shown)
    stated = json.loads(ledger.read_text())
    for edit in ("less was measured", "more was left"):
        content = json.loads(json.dumps(stated))
        if edit == "less was measured":
            del content["events"][3]
        else:
            content["events"][-1]["amount_numerator"] *= 10**9
        ledger.write_text(json.dumps(content))
        outcome = pegs("inspect", ledger)
        assert outcome.code == 1
        assert "epsilon is stated as" in outcome.err


def test_events_of_two_releases_add_up(alone, home):
    for name in ("one", "two"):
        done("synthesize", *files(home), *ONCE, "--rows", 20, "-o", alone / f"{name}.csv")
    paths = [alone / f"{name}.csv.privacy.json" for name in ("one", "two")]
    ledgers = [Ledger.from_json(path.read_text()) for path in paths]
    assert all(isinstance(ledger.events[-1], Unspent) for ledger in ledgers)
    assert 4 < Ledger.combine(ledgers).epsilon < 8
    assert "2 runs on the same table" in done("inspect", *paths).out


def test_a_seeded_fit_is_not_shareable(home, tmp_path):
    outcome = done("fit", *files(home), *ONCE, "--seed", 1, "-o", tmp_path / "m.pegs")
    assert "CONFIDENTIAL model" in outcome.err
    assert "Guarantee: none" in outcome.err
    shown = done("inspect", tmp_path / "m.pegs").out
    assert shown.startswith("CONFIDENTIAL: noisy counts")
    assert "not covered by any guarantee" in shown
    done("sample", tmp_path / "m.pegs", "--rows", 5, "-o", tmp_path / "o.csv")
    ledger = Ledger.from_json((tmp_path / "o.csv.privacy.json").read_text())
    assert ledger.guarantee.kind == "none"


def test_released_blocks_take_no_l(home, tmp_path):
    once = ("synthesize", *files(home), "--rows", 9, "-o", tmp_path / "x.csv")
    check_refused(pegs(*once, "--method", "pegs-once", "--l", 2), "pegs-once", "takes no --l")
    for method in (("--method", "pegs-once"), ("--method", "pegs"), ()):
        outcome = pegs(*once, *method, "--epsilon", 1, "--l", 2)
        check_refused(outcome, "--epsilon and --l cannot be stated together")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--epsilon-per-row", 1), "--epsilon"),
        (("--alpha", 1), "--epsilon"),
        (("--l", 2), "--epsilon"),
        (("--epsilon", 1, "--order", "data"), "--order"),
        (("--epsilon", 1, "--tail-bits", 3), "--tail-bits"),
        (("--epsilon", 1, "--seed-pool", "uniform"), "--seed-pool"),
        (("--epsilon", 1, "--sweeps", 2), "--sweeps"),
        (("--epsilon", 1, "--visits", 2), "--visits"),
    ],
    ids=str,
)
def test_what_released_blocks_do_not_take_is_refused(home, tmp_path, flags, named):
    outcome = pegs(
        *("synthesize", *files(home), "--method", "pegs-once", "--rows", 9, *flags),
        *("-o", tmp_path / "o.csv"),
    )
    check_refused(outcome, named)


def test_a_release_folder_says_how_its_rows_depend_on_each_other(home, tmp_path):
    done(
        *("release", *files(home), *ONCE, "--rows", 200, "--datasets", 3, "--public-only"),
        *("--shared-noise", "-o", tmp_path / "made"),
    )
    page = " ".join((tmp_path / "made" / "public" / "HOW-TO-ANALYSE.md").read_text().split())
    assert "not independent draws" in page
    assert "**plug-in**" in page
    assert "understates" in page
    assert "The noise that protects people was drawn once. It moves all estimates" in page
    assert "Virtual rows" not in page
