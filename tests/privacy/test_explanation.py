"""`Ledger.explain`: one sentence for each event, with what it cost, for every kind of event."""

import re
from fractions import Fraction
from typing import get_args

import pytest

from pegsynth.privacy import (
    AgreementCounts,
    BlockDraws,
    CappedDraws,
    CategoriesFound,
    ContingencyDraws,
    Diversity,
    ImputationDraws,
    Ledger,
    NoisyCounts,
    NoisyResiduals,
    NoisySums,
    NotPrivate,
    PegsDraws,
    PooledRows,
    Selection,
    UnitBound,
    UnknownEvent,
    Unspent,
    UrnDraws,
)
from pegsynth.privacy.events import KNOWN_KINDS, Event, KnownEvent, RunBegins
from pegsynth.privacy.noise_events import PublishedCounts
from pegsynth.privacy.rounding import display_up, float_up
from pegsynth.privacy.statement import explained

ALPHA = {"alpha_numerator": 16, "alpha_denominator": 1}
# Every kind of event, and words that its sentence must hold.
EVENTS = [
    (PegsDraws(features=3, rows=10, sweeps=2, datasets=2, **ALPHA), "2 tables of 10 rows", "120"),
    (BlockDraws(features=3, rows=10, block_size=4, **ALPHA), "3 blocks", "9 draws"),
    (CappedDraws(features=3, visits=5, **ALPHA), "answering 5 times at most", "15 draws"),
    (UrnDraws(features=3, visits=5, urns=2, **ALPHA), "put every drawn value back", "2 sets"),
    (ImputationDraws(features=3, rows=10, **ALPHA), "models fitted to all rows", "30 draws"),
    (ContingencyDraws(features=3, rows=10, **ALPHA), "full table", "10 draws"),
    (
        NoisyCounts.laplace(2, cells=1, purpose="table", features=("age", "sex"), table_cells=12),
        "by age, sex",
        "discrete Laplace noise of scale 2 was added to every count, all 12 of them",
    ),
    (
        NoisyCounts.gaussian(3, cells=2, purpose="total", label="first"),
        "discrete Gaussian noise of variance 9",
        "(first)",
    ),
    (
        NoisyResiduals.gaussian(3, purpose="pairs", features=("age", "sex"), levels=(3, 2)),
        "do not tell was taken, in whole numbers, and discrete Gaussian noise of variance 9",
        "every cell, all 6 of them",
    ),
    (
        NoisySums.gaussian(3, largest_sum=4, largest_square=8, sums=6, features=("age", "sex")),
        "6 sums of products of clipped and scaled values of age",
        "one row adds at most 4",
    ),
    (
        Selection.of(Fraction(1, 4), count=2, purpose="heads", candidates=7, chosen=("age",)),
        "chose 2 times among 7 candidates",
        "the choice was age",
    ),
    (
        CategoriesFound.of(3, threshold=30, features=("town",)),
        "every value of town",
        "noisy counts above 30 became categories",
    ),
    (
        AgreementCounts.laplace(2, formula="y ~ x", terms=("x",), parts=50),
        "dealt to 50 parts, 'y ~ x' was fitted to each",
        "a unit is in one part with all its rows",
    ),
    (
        PooledRows(rows_per_unit=3, step=Selection.of(Fraction(1, 4), count=1, purpose="heads")),
        "at most 3 of each unit: the exponential mechanism chose once",
        "all 3 rows of a unit",
    ),
    (Unspent.of(Fraction(1, 10), route="pure"), "not used", "counts as spent"),
    (
        PublishedCounts(
            file="a.csv", sha256="0" * 64, features=("age",), levels=(2,), error="exact"
        ),
        "published table a.csv was read, of age (exact; SHA-256 000",
        "no confidential table was looked at",
    ),
    (RunBegins(delta=1e-6), "which stated delta = 1e-6", "it cost nothing"),
    (UnitBound(rows_per_unit=3), "At most 3 rows of each unit", "it cost nothing"),
    (Diversity(l=2.0, features=()), "all features", "not differential privacy"),
    (NotPrivate.because("seeded"), "came from a seed", "carries no guarantee"),
    (UnknownEvent(kind="of-tomorrow", content={}), "of-tomorrow", "update pegsynth"),
]


def test_every_kind_of_event_is_here() -> None:
    assert {event.kind for event, *_ in EVENTS} == KNOWN_KINDS | {"of-tomorrow"}
    assert {type(event) for event, *_ in EVENTS} == {*get_args(KnownEvent), UnknownEvent}


@pytest.mark.parametrize(("event", "first", "second"), EVENTS, ids=lambda e: type(e).__name__)
def test_the_sentence_says_what_was_read_what_it_cost_and_what_it_means(
    event: Event, first: str, second: str
) -> None:
    text = Ledger((event,)).explain()
    assert first in text
    assert second in text
    assert text.startswith("1. ")
    assert text.endswith(".\n")
    assert text.count("\n") == 1
    assert len(re.findall(r"; (?:it cost|it has no price)", text)) == 1
    price = event.price("pure")
    if price:
        assert f"epsilon = {display_up(float_up(price))}" in text


def test_prices_are_those_of_a_unit_with_all_its_rows() -> None:
    noise = NoisyCounts.laplace(2, cells=1, purpose="total")
    ledger = Ledger((UnitBound(rows_per_unit=3), noise))
    bound, counted = explained(ledger)
    assert (bound.epsilon, bound.rho) == (0, 0)
    assert counted.epsilon == ledger.epsilon == 1.5
    assert counted.rho == ledger.rho


def test_what_is_covered_depends_on_the_stated_delta() -> None:
    noise = NoisyCounts.gaussian(3, cells=1, purpose="total")
    assert [line.covered for line in explained(Ledger((noise,)))] == [False]
    assert [line.covered for line in explained(Ledger((noise,), delta=1e-9))] == [True]
    assert "it cost rho = " in Ledger((noise,)).explain()


def test_names_cannot_pose_as_further_lines_or_fill_the_page() -> None:
    names = tuple(f"f{place}\n9. Nothing" for place in range(50))
    text = Ledger((Diversity(l=2.0, features=names),)).explain()
    assert text.count("\n") == 1
    assert "and 44 more" in text


def test_a_ledger_without_events_says_so() -> None:
    assert Ledger().explain() == "Nothing has been done with the table.\n"
