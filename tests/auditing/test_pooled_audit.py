"""The exact audit of pooled transitions, and broken twins that it must find (R24).

Exact: probabilities are fractions, so a failure here is a defect and never chance.
"""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from pegsynth.auditing.coded_rows import folded_codes
from pegsynth.auditing.paths import audit_paths, compared
from pegsynth.auditing.released import PooledCase, pooled_case, pooled_cases
from pegsynth.methods.released import _pooled

CASES = {case.name: case for case in pooled_cases()}
FIVE = ((("1",),) * 5,)
"""A person with five rows that are alike, and with them four transitions."""


def held(case: PooledCase) -> bool:
    return audit_paths(case).holds(case.stated)


@pytest.mark.parametrize("name", CASES)
def test_a_person_costs_what_the_ledger_says(name):
    case = CASES[name]
    worst = audit_paths(case)
    assert worst.holds(case.stated)
    # The bound is not far above what happens, so that a smaller one would not hold.
    close = worst.loss.epsilon / worst.epsilon if case.delta is None else worst.loss.rho / worst.rho
    assert close > 0.6


def with_rows_per_unit(monkeypatch, rows):
    shipped = _pooled.transition_domain
    broken = lambda schema: replace(shipped(schema), rows_per_unit=rows)  # noqa: E731
    monkeypatch.setattr(_pooled, "transition_domain", broken)


@pytest.mark.parametrize(("epsilon", "delta"), [(60.0, None), (30.0, 1e-9)])
@pytest.mark.parametrize("rows", [1, 2], ids=["one", "root of most - 1"])
def test_a_smaller_sensitivity_of_transitions_is_found(monkeypatch, rows, epsilon, delta):
    case = pooled_case("five rows", epsilon=epsilon, delta=delta, most=5, people=FIVE)
    assert held(case)
    with_rows_per_unit(monkeypatch, rows)
    assert not held(case)


def cut_by_a_rank_over_all_people(schema, people):
    """Of the whole table the two earliest rows count."""
    rows = sorted((line, person) for person, history in enumerate(people) for line in history)
    kept = rows[:2]
    left = [tuple(line for line, owner in kept if owner == person) for person in range(len(people))]
    return folded_codes(schema, [history for history in left if history])


def joined_across_people(schema, people):
    """The first row of a person follows the last one of the person before."""
    lines = [line for history in people for line in history]
    return folded_codes(schema, [tuple(lines)] if lines else [])


@pytest.mark.parametrize("twin", [cut_by_a_rank_over_all_people, joined_across_people])
def test_rows_that_depend_on_other_people_are_found(twin):
    case = replace(CASES["pooled transitions, approximate"], folded=twin)
    assert any(
        compared(case, path, table + more)[1] > 0
        for table, more in case.pairs
        for path in case.paths(table, 0)
    )


class NamesKept(PooledCase):
    """The numbers of people are published with the tables."""

    def run(self, table, answer):
        path = super().run(table, answer)
        return replace(path, published=(*path.published, table))


def test_names_that_are_kept_are_found():
    case = CASES["pooled transitions, approximate"]
    kept = NamesKept(**{each.name: getattr(case, each.name) for each in fields(case)})
    table, more = kept.pairs[0]
    path = next(iter(kept.paths(table, 0)))
    assert compared(kept, path, table + more)[1] == float("inf")
    assert compared(case, next(iter(case.paths(table, 0))), table + more)[1] == 0
