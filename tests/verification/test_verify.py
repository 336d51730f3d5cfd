"""`verify` as users get it: a verdict for every coefficient, and a ledger of its own (R32)."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.errors import BudgetError, DataError, ParameterError
from pegsynth.inference import regression_fit
from pegsynth.inference.formula import read_formula
from pegsynth.mechanisms import answers
from pegsynth.privacy import AgreementCounts, Ledger
from pegsynth.publishing import agreement, verify_release
from pegsynth.publishing.agreement import dealt, read_rows, regions_of
from pegsynth.runtime import in_silence
from pegsynth.schema import Feature, Schema
from pegsynth.storage.book.book_file import create_book, read_book
from pegsynth.storage.book.book_policy import BookPolicy
from pegsynth.tables.table_input import open_table
from significance import ALPHA, fit_p_value

ROWS = 4000
LEVELS = tuple(map(str, range(5)))
SCHEMA = Schema(
    (
        Feature("x", kind="ordinal", categories=LEVELS),
        Feature("y", kind="ordinal", categories=LEVELS),
        Feature("z", categories=("a", "b")),
    ),
    reviewed=True,
)
FORMULA = "y ~ x"


def table(slope, *, rows=ROWS, seed=1):
    words = np.random.default_rng(seed)
    x = words.integers(0, 5, rows)
    y = np.clip(np.rint(2 + slope * (x - 2) + words.normal(0, 0.8, rows)), 0, 4).astype(int)
    columns = {"x": x.astype(str), "y": y.astype(str), "z": np.where(x > 2, "a", "b")}
    return pl.DataFrame(columns)


def released(slope, seed=2, copies=1):
    """Stand in for a release: tables that somebody published."""
    frames = [table(slope, seed=seed + k) for k in range(copies)]
    return pegsynth.Release(frames, Ledger(), SCHEMA)


DATA = table(0.5)


def test_a_release_that_is_right_agrees_and_a_wrong_one_does_not():
    """Binomial(50, .95) is below 38, or (50, .05) above 12, with less than 1e-6."""
    right = pegsynth.verify(DATA, released(0.5, copies=3), FORMULA, epsilon=5.0).terms
    wrong = pegsynth.verify(DATA, released(0.0, copies=3), FORMULA, epsilon=5.0).terms
    assert [each.verdict for each in right] == ["agrees"] or right[0].agreeing > 37
    assert [each.verdict for each in wrong] == ["does not agree"]
    assert wrong[0].agreeing < 13


def test_replicate_weights_widen_the_region():
    frame = table(0.5, seed=3)
    words = np.random.default_rng(1)
    weights = {f"pegs_weight_{k}": words.gamma(5.0, 0.2, ROWS) for k in range(1, 6)}
    weighted = frame.with_columns(pegs_weight=1.0, **weights)
    plain, wide = (
        pegsynth.verify(DATA, pegsynth.Release([each], Ledger(), SCHEMA), FORMULA, epsilon=1.0)
        for each in (frame, weighted)
    )
    assert plain.terms[0].estimate == pytest.approx(wide.terms[0].estimate)
    assert wide.terms[0].high - wide.terms[0].low > plain.terms[0].high - plain.terms[0].low


def test_the_answer_is_paid_for():
    found = pegsynth.verify(DATA, released(0.5), FORMULA, epsilon=2.0)
    assert found.ledger.guarantee.kind == "pure"
    assert found.ledger.epsilon == pytest.approx(2.0, rel=1e-9)
    assert found.ledger.epsilon <= 2.0
    approximate = pegsynth.verify(DATA, released(0.5), "y ~ x + z", epsilon=2.0, delta=1e-9)
    assert approximate.ledger.epsilon == pytest.approx(2.0, rel=1e-6)
    assert approximate.ledger.epsilon <= 2.0
    (event,) = approximate.ledger.events
    assert (event.mechanism, event.parts) == ("discrete-gaussian", 50)
    assert event.terms == ("x", "z[b]")
    again = pegsynth.verify(DATA, released(0.5), FORMULA, epsilon=1.0, ledger=found.ledger)
    assert again.ledger.epsilon == pytest.approx(3.0, rel=1e-9)
    assert Ledger.from_json(again.ledger.to_json()) == again.ledger
    assert "dealt to 50 parts" in again.ledger.explain()


def test_a_unit_of_any_size_costs_the_same():
    """All its rows are in one part, so R12 adds no factor."""
    for made in (AgreementCounts.laplace, AgreementCounts.gaussian):
        event = made(3, formula="y ~ x", terms=("x",), parts=9)
        for route in ("pure", "zcdp"):
            one, many = (event.price(route, rows_per_unit=k) for k in (1, 7))
            assert one == many
            assert (one is None) == (event.mechanism == "discrete-gaussian" and route == "pure")


def test_units_are_bounded_and_go_together():
    schema = replace(SCHEMA, unit="who", rows_per_unit=3)
    data = DATA.with_columns(who=pl.Series(np.arange(ROWS) // 5))
    found = pegsynth.verify(data, released(0.5), FORMULA, epsilon=2.0, schema=schema)
    assert found.ledger.guarantee.rows_per_unit == 3
    assert found.ledger.epsilon == pytest.approx(2.0, rel=1e-9)
    blank = data.with_columns(who=pl.when(pl.col("who") == 3).then(None).otherwise("who"))
    with pytest.raises(DataError, match="must name its unit"):
        pegsynth.verify(blank, released(0.5), FORMULA, epsilon=2.0, schema=schema)


class _Words:
    def __init__(self, seed):
        self._words = np.random.default_rng(seed)

    def below(self, bound):
        return int(self._words.integers(bound))


def test_units_are_dealt_independently():
    units = np.repeat(np.arange(4000), 2)
    parts = dealt(units, len(units), 5, _Words(1))
    assert (parts[::2] == parts[1::2]).all()
    assert fit_p_value(np.bincount(parts[::2], minlength=5), [0.2] * 5) >= ALPHA
    alone = dealt(None, 7, 3, _Words(2))
    assert alone.shape == (7,)
    assert dealt(np.empty(0, dtype=np.int64), 0, 3, _Words(2)).shape == (0,)


def test_parts_without_a_fit_do_not_agree():
    """Three rows in fifty parts: hardly any part has a regression."""
    few = table(0.5, rows=3)
    found = pegsynth.verify(few, released(0.5), FORMULA, epsilon=200.0, parts=50)
    assert found.terms[0].agreeing <= 3


# A fit that fails is an answer

LARGEST = float(np.finfo(np.float64).max)
NUMBERS = Schema(
    (
        Feature("x", kind="numeric", edges=(0.0, 0.3, 0.6, 1.0)),
        Feature("y", kind="numeric", edges=(0.0, 0.5, 1.0, 2.0)),
    ),
    reviewed=True,
)


def numbers(extreme=0, *, rows=400, seed=1):
    words = np.random.default_rng(seed)
    x = words.random(rows)
    y = np.clip(x + words.normal(0, 0.1, rows), 0, 2)
    x, y = np.append(x, [-LARGEST] * extreme), np.append(y, [0.5] * extreme)
    return pl.DataFrame({"x": x, "y": y})


def fails_aloud(monkeypatch):
    """Let an error of a decomposition through, as if a part that cannot be fitted were a fault."""
    monkeypatch.setattr(regression_fit, "_solved", in_silence()(regression_fit._solve))
    monkeypatch.setattr(agreement, "agrees", agreement.part_answers)


def outcomes(place, extreme, times=24):
    """Return all that anybody sees of a question, asked so often, but for the noisy counts."""
    place = place / str(extreme)
    place.mkdir()
    numbers(extreme).write_csv(place / "data.csv")
    pegsynth.Release([numbers(seed=2)], Ledger(), NUMBERS).save(place / "run")
    asked = ("verify", place / "data.csv", "--release", place / "run", "--formula", "y ~ x")
    seen = set()
    for _ in range(times):
        told = pegs(*asked, "--epsilon", 0.2, "--parts", 2)
        ledger = place / "run.verification.json"
        written = ledger.read_bytes() if ledger.exists() else b""
        ledger.unlink(missing_ok=True)
        said = (text.replace(str(place), "") for text in (told.out, told.err))
        seen.add((told.code, *said, written))
    return seen


@pytest.fixture
def without_noise(monkeypatch):
    """Put a number that does not look at the counts in the place of a noisy one."""
    monkeypatch.setattr(answers, "noisy", lambda counts, *_: np.full_like(counts, 1))


def test_nothing_but_the_noisy_counts_depends_on_the_rows(tmp_path, without_noise):
    one, two = (outcomes(tmp_path, extreme) for extreme in (1, 2))
    assert one == two
    ((code, out, _, ledger),) = one
    assert code == 0
    assert "x: " in out
    assert Ledger.from_json(ledger).epsilon == pytest.approx(0.2)


def test_a_question_that_fails_is_found_out(tmp_path, without_noise, monkeypatch):
    """Two rows in one of two parts: 24 questions miss that with a chance of 2^-24."""
    fails_aloud(monkeypatch)
    assert {code for code, *_ in outcomes(tmp_path, 1)} == {0}
    assert 3 in {code for code, *_ in outcomes(tmp_path, 2)}


@pytest.mark.parametrize("formula", ["y ~ x", "x ~ y", "I(y > 0.5) ~ x", "y ~ C(x)"])
def test_no_part_says_anything_but_yes_or_no(formula, capfd):
    """Too few rows, one value, a category that is not there, terms that separate, and overflow."""
    words = np.random.default_rng(3)
    release = [verify_release._read_released(numbers(seed=2), NUMBERS)]
    asked = regions_of(read_formula(formula, NUMBERS), release, NUMBERS)
    extreme = [LARGEST, -LARGEST, 1e200, 1e154, 5e-324, 0.0, 1.0]
    for _ in range(60):
        rows = int(words.integers(0, 12))
        columns = {name: words.random(rows) for name in ("x", "y")}
        for column in columns.values():
            chosen = words.random(rows) < words.choice([0.0, 0.3, 1.0])
            column[chosen] = words.choice(extreme, int(chosen.sum()))
        part = read_rows(
            open_table(pl.DataFrame(columns), confidential=True), NUMBERS, need_unit=True
        )
        found = agreement.agrees(asked, part, NUMBERS)
        assert found.shape == (len(asked.regions),)
        assert set(found.tolist()) <= {0, 1}
    assert capfd.readouterr() == ("", "")


def test_warnings_that_are_errors_change_no_answer():
    release = pegsynth.Release([numbers(seed=2)], Ledger(), NUMBERS)
    with np.errstate(all="raise"):
        found = pegsynth.verify(numbers(2), release, "y ~ x", epsilon=1e6, parts=2, seed=1)
    assert found.terms[0].agreeing <= 1


def test_a_question_is_charged_before_a_part_is_asked(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(verify_release, "measured", stopped)
    book, ledger = tmp_path / "b.book", tmp_path / "questions.json"
    create_book(book, BookPolicy(epsilon=1.0))
    with pytest.raises(KeyboardInterrupt):
        pegsynth.verify(DATA, released(0.5), FORMULA, epsilon=0.5, ledger=ledger, book=book)
    assert Ledger.from_json(ledger.read_bytes()).epsilon == pytest.approx(0.5)
    (entry,) = read_book(book).entries
    assert (entry.state, float(entry.cost.epsilon)) == ("reading", pytest.approx(0.5))


def test_the_reading_of_a_row_does_not_depend_on_others():
    """One label of a bin among the numbers of a column must not make codes of all of them."""
    schema = Schema(
        (Feature("v", kind="numeric", edges=(0.0, 3.0, 6.0, 10.0)), SCHEMA["x"]), reviewed=True
    )
    words = np.random.default_rng(5)
    x = words.integers(0, 5, ROWS)
    frame = pl.DataFrame(
        {"v": (x * 2 + words.random(ROWS)).round(3).astype(str), "x": x.astype(str)}
    )
    odd = frame.with_columns(
        v=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("[0, 3)")).otherwise("v")
    )
    release = pegsynth.Release([frame], Ledger(), schema)
    first, second = (
        pegsynth.verify(each, release, "v ~ x", epsilon=1e6, seed=1).terms[0].agreeing
        for each in (frame, odd)
    )
    assert abs(first - second) <= 1


# What is refused


def test_no_budget_no_answer():
    with pytest.raises(BudgetError, match="has to be paid for: state epsilon"):
        pegsynth.verify(DATA, released(0.5), FORMULA)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"formula": "y ~ w"}, "no feature 'w'"),
        ({"terms": ["q"]}, "no coefficient of the formula"),
        ({"parts": 1}, "at least 2"),
        ({"parts": 10**12}, "at most 1000000"),
        ({"tolerance": -1.0}, "at least 0"),
    ],
)
def test_questions_that_cannot_be_asked(options, reason):
    asked = {"formula": FORMULA, "epsilon": 1.0, **options}
    with pytest.raises(ParameterError, match=reason):
        pegsynth.verify(DATA, released(0.5), asked.pop("formula"), **asked)


def test_a_seeded_answer_protects_nobody():
    found = pegsynth.verify(DATA, released(0.5), FORMULA, epsilon=1.0, seed=3)
    assert found.ledger.guarantee.kind == "none"
    assert found.to_frame().columns[0] == "term"


# Through the command


@pytest.fixture
def home(tmp_path):
    released(0.5, copies=2).save(tmp_path / "run")
    DATA.write_csv(tmp_path / "data.csv")
    return tmp_path


def test_the_command_charges_before_it_answers(home):
    asked = ("verify", home / "data.csv", "--release", home / "run", "--formula", FORMULA)
    check_refused(pegs(*asked), "state --epsilon")
    ledger = home / "run.verification.json"
    assert not ledger.exists()
    told = done(*asked, "--epsilon", 4)
    assert "x: " in told.out
    assert "run.verification.json" in told.err
    done(*asked, "--epsilon", 1, "--term", "x", "--parts", 20)
    found = Ledger.from_json(ledger.read_bytes())
    assert found.epsilon == pytest.approx(5.0, rel=1e-9)
    kinds = [event["kind"] for event in json.loads(ledger.read_text())["events"]]
    assert kinds.count("verification") == 2
    # The ledger of the release is not touched, and is no place to charge a question to.
    (other,) = (home / "run").rglob("privacy.json")
    before = other.read_bytes()
    check_refused(pegs(*asked, "--epsilon", 1, "--ledger", other), "ledger of their own")
    assert other.read_bytes() == before


def ask(place, *flags, epsilon=0.5):
    told = ("verify", place / "data.csv", "--release", place / "run", "--formula", FORMULA)
    return pegs(*told, "--epsilon", epsilon, "--book", place / "b.book", *flags)


@pytest.fixture
def booked_place(tmp_path):
    DATA.write_csv(tmp_path / "data.csv")
    released(0.5).save(tmp_path / "run")
    create_book(tmp_path / "b.book", BookPolicy(epsilon=1.2))
    return tmp_path


def test_a_question_is_reserved_and_settled_in_a_book(booked_place):
    place = booked_place
    first = ask(place)
    assert first.code == 0, first.err
    assert "entry 1; epsilon = 0.5 of 1.2 is spent in all." in first.err
    assert ask(place).code == 0
    refused = ask(place)
    check_refused(refused, "does not cover this run")
    entries = read_book(place / "b.book").entries
    assert [(entry.state, entry.run) for entry in entries] == [("settled", "verify")] * 2
    assert all(entry.settled.within(entry.reserved) for entry in entries)
    ledger = json.loads((place / "run.verification.json").read_text())
    assert [event["kind"] for event in ledger["events"]] == ["run", "verification"] * 2


@pytest.mark.parametrize("header", [None, "x,y\n", "x,y,z,w\n"])
def test_a_question_that_reads_nothing_is_given_back(booked_place, header):
    place = booked_place
    (place / "data.csv").unlink()
    if header:
        (place / "data.csv").write_text(header + "0,0,a,1\n")
    assert ask(place).code == 2
    assert [entry.state for entry in read_book(place / "b.book").entries] == ["withdrawn"]
    assert not (place / "run.verification.json").exists()


def test_a_seed_and_another_unit_cannot_be_booked(booked_place):
    place = booked_place
    check_refused(ask(place, "--seed", 1), "without differential privacy")
    create_book(place / "units.book", BookPolicy(epsilon=1.2, unit="who"))
    with pytest.raises(BudgetError, match="protects units of 'who'"):
        pegsynth.verify(DATA, released(0.5), FORMULA, epsilon=0.5, book=place / "units.book")
    assert not read_book(place / "units.book").entries
