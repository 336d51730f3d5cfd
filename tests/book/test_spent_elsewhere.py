"""What other tools spent in a budget book, and our ledgers as events of dp_accounting (R6, R29)."""

from __future__ import annotations

from fractions import Fraction

import dp_accounting
import pytest

from command import check_refused, done, pegs
from pegsynth import Ledger
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.privacy import NoisyCounts, NotPrivate
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.events import CategoriesFound
from pegsynth.storage.book.book_file import read_book
from pegsynth.storage.book.book_policy import added, spent_elsewhere

DELTA = 1e-6


@pytest.fixture
def book(tmp_path):
    done("book", "create", tmp_path / "b.book", "--epsilon", 3, "--delta", DELTA)
    return tmp_path / "b.book"


def test_an_epsilon_and_a_rho_add_up_with_everything_else(book):
    done("book", "add", book, "--epsilon", 0.5, "--by", "OpenDP query of 3 May")
    done("book", "add", book, "--rho", 0.01, "--by", "census tool")
    entries = read_book(book).entries
    assert [entry.method for entry in entries] == ["OpenDP query of 3 May", "census tool"]
    whole = read_book(book).spent()
    exact = Fraction(0.5) ** 2 / 2 + Fraction(0.01)
    # Written with 40 digits, rounded up.
    assert exact <= Fraction(whole.rho) < exact + Fraction(1, 10**38)
    assert read_book(book).policy.epsilon_of(whole) == epsilon_at(whole.rho, delta=DELTA)
    assert "census tool" in done("book", "show", book).out


def test_spending_elsewhere_leaves_less_for_a_run(book):
    before = read_book(book)
    done("book", "add", book, "--rho", 0.05, "--by", "x")
    after = read_book(book)
    assert after.policy.epsilon_of(after.spent()) > 0
    assert not before.entries
    small, large = spent_elsewhere(rho=0.05), spent_elsewhere(rho=0.2)
    assert not after.policy.why_not(added((after.spent(), small)), after.spent())
    assert "is allowed" in after.policy.why_not(added((after.spent(), large)), after.spent())


def test_a_delta_is_taken_out_of_what_is_set_aside(tmp_path, book):
    said = pegs("book", "add", book, "--epsilon", 0.1, "--delta", 1e-8, "--by", "x")
    check_refused(said, "--rho", "--private-categories")
    aside = tmp_path / "aside.book"
    flags = ("--epsilon", 3, "--delta", DELTA, "--private-categories")
    done("book", "create", aside, *flags)
    done("book", "add", aside, "--epsilon", 0.1, "--delta", 1e-8, "--by", "x")
    whole = read_book(aside).spent()
    assert Fraction(whole.delta_taken) == Fraction(1e-8)
    assert whole.epsilon is None
    over = spent_elsewhere(epsilon=0.1, delta=1e-7)
    assert "tenth" in read_book(aside).policy.why_not(added((whole, over)), whole)


def test_a_book_of_pure_runs_takes_pure_amounts_alone(tmp_path):
    pure = tmp_path / "pure.book"
    done("book", "create", pure, "--epsilon", 3)
    done("book", "add", pure, "--epsilon", 1, "--by", "x")
    assert read_book(pure).policy.epsilon_of(read_book(pure).spent()) == 1
    check_refused(pegs("book", "add", pure, "--rho", 0.1, "--by", "x"), "no delta")


@pytest.mark.parametrize(
    "flags",
    [
        ("--epsilon", 1),
        ("--by", "x"),
        ("--epsilon", 1, "--rho", 1, "--by", "x"),
        ("--rho", 1, "--delta", 1e-6, "--by", "x"),
        ("--epsilon", -1, "--by", "x"),
        ("--epsilon", 1, "--by", "x", "--unit", "person"),
    ],
)
def test_what_is_not_whole_is_refused(book, flags):
    check_refused(pegs("book", "add", book, *flags))
    assert not read_book(book).entries


def test_ledgers_and_amounts_do_not_mix(book):
    check_refused(pegs("book", "add", book, "a.json", "--rho", 1, "--by", "x"), "without ledgers")


def test_a_ledger_as_an_event_costs_what_the_other_accountant_says():
    events = tuple(NoisyCounts.gaussian(s, cells=1, purpose="t") for s in (10, 20))
    ledger = Ledger(events, (), DELTA)
    accountant = dp_accounting.rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    accountant.compose(ledger.to_dp_event())
    assert accountant.get_epsilon(DELTA) == pytest.approx(ledger.epsilon, rel=0.02)
    # The twin: Gaussian noise itself, which is what the rho of these events is about.
    alone = dp_accounting.rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    for deviation in (10, 20):
        alone.compose(dp_accounting.GaussianDpEvent(deviation))
    assert accountant.get_epsilon(DELTA) == pytest.approx(alone.get_epsilon(DELTA), rel=1e-6)


def test_a_pure_run_is_one_item_of_its_epsilon():
    ledger = Ledger((NoisyCounts.laplace(4, cells=1, purpose="t"),) * 2)
    (event,) = ledger.to_dp_event().events
    assert event.rho == pytest.approx(0.5**2 / 2)


def test_what_has_no_guarantee_is_no_private_event():
    ledger = Ledger((NotPrivate.because("seeded"),))
    assert ledger.to_dp_event() == dp_accounting.NonPrivateDpEvent()


def test_found_categories_are_refused():
    found = CategoriesFound.of(3, threshold=60, features=("town",))
    ledger = Ledger((found,), (), DELTA)
    assert ledger.guarantee.kind == "approximate"
    with pytest.raises(ParameterError, match="budget book"):
        ledger.to_dp_event()


def test_amounts_that_are_none_are_refused():
    for amounts in ({}, {"epsilon": 1.0, "rho": 1.0}, {"rho": 1.0, "delta": 1e-6}):
        with pytest.raises(ParameterError, match="state what was spent"):
            spent_elsewhere(**amounts)
    with pytest.raises(BudgetError):
        spent_elsewhere(rho=-1.0)
