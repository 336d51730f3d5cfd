"""One honest claim: what it adds up to, what voids it, and how it reads."""

import math

import numpy as np
import pytest

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.privacy import (
    BlockDraws,
    CappedDraws,
    Diversity,
    ImputationDraws,
    Ledger,
    NoisyCounts,
    NotPrivate,
    PegsDraws,
    UnitBound,
    UnknownEvent,
    UrnDraws,
)
from pegsynth.privacy.assumptions import reviewed_schema, stated
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.events import REASONS

ALPHA = {"alpha_numerator": 16, "alpha_denominator": 1}
ETA = math.log1p(1 / 16)
DRAWS = PegsDraws(features=13, rows=1000, **ALPHA)
NOISE = NoisyCounts.gaussian(40, cells=78, purpose="order")


def test_pure_total_and_the_papers_figure_per_row() -> None:
    guarantee = Ledger().add(DRAWS).guarantee
    assert guarantee.kind == "pure"
    assert guarantee.epsilon == pytest.approx(13_000 * ETA)
    assert guarantee.epsilon_per_row == pytest.approx(13 * ETA)
    assert guarantee.delta == 0
    assert guarantee.rho == pytest.approx(13_000 * ETA**2 / 8)
    assert (guarantee.neighbours, guarantee.unit, guarantee.rows_per_unit) == (
        "add-remove",
        "row",
        1,
    )


def test_per_row_figure_of_each_method() -> None:
    block = BlockDraws(features=13, rows=1000, block_size=10, **ALPHA)
    imputed = ImputationDraws(features=13, rows=10, sweeps=2, **ALPHA)
    assert Ledger((block,)).guarantee.epsilon_per_row == pytest.approx(1.3 * ETA)
    assert Ledger((imputed,)).guarantee.epsilon_per_row == pytest.approx(26 * ETA)
    for undefined in (
        CappedDraws(features=13, visits=3, **ALPHA),
        UrnDraws(features=13, visits=3, **ALPHA),
        NoisyCounts.laplace(3, cells=2, purpose="blocks"),
    ):
        assert Ledger((undefined,)).guarantee.epsilon_per_row is None
    assert Ledger((DRAWS, DRAWS)).guarantee.epsilon_per_row is None


def test_with_a_delta_the_smaller_of_two_epsilons_is_stated() -> None:
    many = Ledger((DRAWS,), delta=1e-9)
    assert many.guarantee.kind == "approximate"
    assert many.epsilon == pytest.approx(epsilon_at(many.rho, delta=1e-9), rel=1e-12)
    few = Ledger((PegsDraws(features=2, rows=1, **ALPHA),), delta=1e-9)
    assert few.guarantee.kind == "approximate"
    assert few.epsilon == pytest.approx(2 * ETA, rel=1e-12)


def test_gaussian_noise_needs_a_delta() -> None:
    without = Ledger((DRAWS, NOISE))
    assert without.guarantee.kind == "none"
    assert without.epsilon is None
    assert without.not_covered == (
        "event 2 (noisy-counts, order): Gaussian noise has no pure guarantee; state a delta",
    )
    assert Ledger((DRAWS, NOISE), delta=1e-9).guarantee.kind == "approximate"


@pytest.mark.parametrize("code", sorted(REASONS))
def test_every_reason_voids_the_guarantee_and_is_named(code: str) -> None:
    ledger = Ledger((DRAWS, NotPrivate.because(code)), delta=1e-9)
    guarantee = ledger.guarantee
    assert guarantee.kind == "none"
    assert guarantee.epsilon is guarantee.rho is guarantee.l is None
    assert guarantee.delta == 1e-9  # as stated, so that the file can be read back
    assert guarantee.epsilon_per_row is None
    assert ledger.not_covered == (f"event 2 ({code}): {REASONS[code]}",)
    assert "no privacy guarantee" in ledger.statement()
    assert REASONS[code] in ledger.statement()
    assert "differentially private" not in ledger.statement()
    assert ledger.covered_part() == Ledger((DRAWS,), delta=1e-9)


def test_reasons_take_public_detail() -> None:
    event = NotPrivate.because("kept-columns", detail="age, sex")
    assert event.text.endswith("(age, sex)")
    with pytest.raises(ParameterError, match="unknown reason"):
        NotPrivate.because("bad-luck")


def test_an_unknown_event_voids_the_guarantee() -> None:
    ledger = Ledger((DRAWS, UnknownEvent("quantum", {"kind": "quantum"})))
    assert ledger.guarantee.kind == "none"
    assert ledger.not_covered[0].startswith("event 2 (quantum): this version does not know")


def test_units_multiply_rho_before_conversion() -> None:
    ledger = Ledger((UnitBound(rows_per_unit=3), DRAWS), delta=1e-9)
    row = Ledger((DRAWS,), delta=1e-9)
    assert ledger.guarantee.unit == "unit"
    assert ledger.guarantee.rows_per_unit == 3
    assert ledger.rho == pytest.approx(9 * row.rho)
    assert ledger.epsilon == pytest.approx(epsilon_at(ledger.rho, delta=1e-9), rel=1e-12)
    pure = Ledger((UnitBound(rows_per_unit=3), DRAWS))
    assert pure.epsilon == pytest.approx(3 * 13_000 * ETA)
    assert pure.guarantee.epsilon_per_row == pytest.approx(13 * ETA)
    assert "at most 3" in pure.statement()


def test_l_diversity() -> None:
    of_counts = Diversity(l=3, features=("diagnosis",))
    alone = Ledger((of_counts, Diversity(l=2, features=("cost",))))
    assert alone.guarantee.kind == "l-diversity"
    assert alone.guarantee.l == 2
    assert alone.epsilon is None
    assert "not differentially private" in alone.statement()
    assert "l = 3 for diagnosis" in alone.statement()
    assert len(alone.not_covered) == 2
    assert Ledger((of_counts, NotPrivate.because("seeded"))).guarantee.kind == "none"
    assert Ledger((DRAWS, of_counts)).guarantee.kind == "l-diversity"


def test_combining_runs_adds_them() -> None:
    pure = Ledger((DRAWS,), (reviewed_schema(),))
    twice = Ledger.combine([pure, pure])
    assert twice.epsilon == pytest.approx(2 * pure.epsilon)
    assert twice.assumptions == (reviewed_schema(),)
    mixed = Ledger.combine([pure, Ledger((NOISE,), delta=1e-9), Ledger((NOISE,), delta=1e-7)])
    assert mixed.delta == 1e-7
    assert mixed.rho == pytest.approx(pure.rho + 2 * 78 / 3200)
    assert mixed.epsilon == pytest.approx(epsilon_at(mixed.rho, delta=1e-7), rel=1e-12)
    assert Ledger.combine([pure]) is pure
    with pytest.raises(ParameterError, match="no ledger"):
        Ledger.combine([])


def test_runs_that_do_not_add_up() -> None:
    bounded = Ledger((UnitBound(rows_per_unit=2), DRAWS))
    assert Ledger.combine([bounded, bounded]).epsilon == pytest.approx(2 * bounded.epsilon)
    mixed = Ledger.combine([bounded, Ledger((DRAWS,))])
    assert mixed.guarantee.kind == "none"
    assert "mixed-units" in mixed.not_covered[0]
    diverse = Ledger((Diversity(l=2, features=("a",)),))
    assert Ledger.combine([diverse, diverse]).guarantee.kind == "none"
    other = Ledger((NotPrivate.because("seeded"),))
    assert Ledger.combine([bounded, other]).guarantee.kind == "none"


def test_statement_of_a_pure_release() -> None:
    small = PegsDraws(features=2, rows=5, alpha_numerator=10, alpha_denominator=1)
    ledger = Ledger(
        (small,),
        (reviewed_schema(drafted_from_data=("age",)), stated("rows-in", {"rows_in": 5000})),
    )
    text = ledger.statement()
    assert "epsilon = 0.953102 (delta = 0)" in text
    assert "exp(epsilon) = 2.59375" in text
    assert "0.190621 per synthetic row" in text
    assert "one row of the original table" in text
    assert "the reviewer of the schema declared" in text
    assert "stated to be 5000" in text
    assert "Not covered" not in text
    assert "weak promise" not in text


def test_statement_of_an_approximate_release_warns_of_a_large_delta() -> None:
    text = Ledger((DRAWS,), delta=1e-3).statement()
    assert "at delta = 0.001" in text
    assert "larger than 1e-06" in text
    assert "weak promise" in text
    assert not Ledger((DRAWS,), delta=1e-6).warnings
    assert "1e130 or more" in Ledger((DRAWS,)).statement()


def test_a_line_cannot_pose_as_a_paragraph() -> None:
    event = NotPrivate(code="x", text="broken\n\nThis release is safe.")
    assert "\n\nThis release is safe" not in Ledger((event,)).statement()


def test_assumptions_are_kept_once() -> None:
    ledger = (
        Ledger()
        .assume(stated("public-heads"), stated("public-seed-pool", {"file": "pool.csv"}))
        .assume(stated("public-heads"))
    )
    assert [a.code for a in ledger.assumptions] == ["public-heads", "public-seed-pool"]
    assert ledger.epsilon == 0


def test_a_ledger_is_a_value() -> None:
    empty = Ledger()
    assert empty.add(DRAWS) is not empty
    assert empty.events == ()
    with pytest.raises(AttributeError):
        empty.delta = 1.0  # type: ignore[misc]
    with pytest.raises(BudgetError):
        Ledger(delta=1.0)
    assert Ledger(delta=None) == Ledger() == Ledger(delta=0.0)
    assert empty.delta == 0


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, None, "3", 2**300])
def test_events_refuse_what_is_no_whole_number(bad: object) -> None:
    with pytest.raises(ParameterError, match="rows must be a whole number"):
        PegsDraws(features=2, rows=bad, **ALPHA)


def test_events_accept_the_integers_of_numpy() -> None:
    event = PegsDraws(features=np.int64(2), rows=3, **ALPHA)
    assert type(event.features) is int


def test_events_check_their_own_fields() -> None:
    with pytest.raises(ParameterError, match="restricted"):
        UrnDraws(features=2, visits=1, restricted=3, **ALPHA)
    with pytest.raises(ParameterError, match="mechanism"):
        NoisyCounts(
            mechanism="rounding", purpose="x", scale_numerator=1, scale_denominator=1, cells=1
        )
    with pytest.raises(ParameterError, match="l must be"):
        Diversity(l=0.5, features=())
    with pytest.raises(ParameterError, match="source"):
        Diversity(l=2, features=(), source="released")
    for scale in (0.0, -1, math.inf, math.nan):
        with pytest.raises(ParameterError):
            NoisyCounts.laplace(scale, cells=1, purpose="x")


def test_many_events_are_added_quickly() -> None:
    events = tuple(NoisyCounts.gaussian(40 + i / 7, cells=1, purpose="blocks") for i in range(2000))
    ledger = Ledger(events, delta=1e-9)
    expected = math.fsum(1 / (2 * (40 + i / 7) ** 2) for i in range(2000))
    assert ledger.rho == pytest.approx(expected, rel=1e-12)
    assert ledger.rho >= expected * (1 - 1e-15)
