"""A budget is refused, in words, before anything is spent."""

import math
from fractions import Fraction

import pytest

from pegsynth.errors import BudgetError
from pegsynth.privacy import Budget, Shares
from pegsynth.privacy.conversion import epsilon_at


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"epsilon": 1.0}, "total"),
        ({"epsilon": 1.0, "delta": 1e-9}, "total"),
        ({"epsilon_per_row": 1.0}, "per-row"),
        ({"l": 2.0}, "l-diversity"),
        ({"alpha": 0}, "alpha"),
    ],
)
def test_ways_to_state_a_budget(fields: dict, kind: str) -> None:
    assert Budget(**fields).kind == kind


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "missing"),
        ({"delta": 1e-9}, "missing"),
        ({"epsilon": 1, "alpha": 1}, "cannot be stated together"),
        ({"epsilon": 1, "l": 2}, "epsilon and l cannot be stated together"),
        ({"epsilon_per_row": 1, "l": 2}, "together"),
        ({"epsilon_per_row": 1, "delta": 1e-9}, "delta requires epsilon"),
        ({"l": 2, "delta": 1e-9}, "delta requires epsilon"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": -1}, "above 0"),
        ({"epsilon": math.nan}, "above 0"),
        ({"epsilon": math.inf}, "above 0"),
        ({"epsilon_per_row": 0}, "epsilon per row must be"),
        ({"epsilon": 1, "delta": 0}, "between 0 and 1"),
        ({"epsilon": 1, "delta": 1}, "between 0 and 1"),
        ({"l": 0.5}, "l must be"),
        ({"l": math.nan}, "l must be"),
        ({"alpha": -0.1}, "alpha must be"),
        ({"alpha": math.inf}, "alpha must be"),
    ],
)
def test_refused(fields: dict, message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        Budget(**fields)


def test_shares_default_and_idle_parts_go_to_the_draws() -> None:
    tenth = Fraction(1, 10)
    assert Shares().used(("order", "marginals")) == {
        "order": tenth, "marginals": tenth, "draws": 8 * tenth,
    }  # fmt: skip
    assert Shares().used(("order",)) == {"order": tenth, "draws": 9 * tenth}
    assert Shares().used(()) == {"draws": 1}
    assert Shares(order=0.2, marginals=0.2, draws=0.3).used(()) == {"draws": Fraction(7, 10)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"order": -0.1}, "between 0 and 1"),
        ({"order": 1.1}, "between 0 and 1"),
        ({"order": math.nan}, "between 0 and 1"),
        ({"order": 0.5, "draws": 0.5}, "more than 1"),
    ],
)
def test_bad_shares(fields: dict, message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        Shares(**fields)


def test_a_part_that_is_needed_needs_a_share() -> None:
    with pytest.raises(BudgetError, match="pays for order"):
        Shares(order=0).used(("order",))
    with pytest.raises(BudgetError, match="no share named"):
        Shares().used(("noise",))


def test_parts_sum_to_the_whole_exactly() -> None:
    for epsilon in (0.1, 0.3, 1.0, 7.7):
        parts = Budget(epsilon=epsilon).parts(("order", "marginals"), route="pure")
        assert sum(part.amount for part in parts.values()) == Fraction(epsilon)
        approximate = Budget(epsilon=epsilon, delta=1e-9)
        parts = approximate.parts(("order", "marginals"), route="zcdp")
        rho = float(sum(part.amount for part in parts.values()))
        assert epsilon_at(rho, delta=1e-9) <= epsilon


def test_routes() -> None:
    assert Budget(epsilon=1).routes == ("pure",)
    assert Budget(epsilon=1, delta=1e-9).routes == ("pure", "zcdp")
    with pytest.raises(BudgetError, match="state a delta"):
        Budget(epsilon=1).whole("zcdp")
    with pytest.raises(BudgetError, match="whole release"):
        Budget(alpha=1).whole("pure")
