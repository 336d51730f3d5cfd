"""The exact audit of folding, and what looks at other people, which it must find (R24)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from pegsynth.auditing.panels import (
    ALPHA,
    PANELS,
    PanelCase,
    folded_codes,
    panel_cases,
    pooled_cases,
)
from pegsynth.auditing.run import audit

CASES = panel_cases()
PAIR = CASES[-1]
ORDINAL = replace(CASES[0], values=(("1", "a"), ("2", "a")), most_rows=2, most_units=2, _known={})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_folding_holds_the_price_of_one_row(case):
    assert case.claimed == pytest.approx(math.log(1 + 1 / ALPHA))
    loss = case.loss()
    assert loss.within(case.claimed, 1.0)
    assert loss.epsilon > 0.8 * case.claimed


def cut_by_a_rank_over_all_people(schema, people):
    """Of the whole table the two earliest rows count."""
    rows = sorted((line, person) for person, history in enumerate(people) for line in history)
    kept = rows[:2]
    left = [tuple(line for line, owner in kept if owner == person) for person in range(len(people))]
    return folded_codes(schema, [history for history in left if history])


def times_by_a_rank_over_all_people(schema, people):
    """The earliest time of the table becomes 1, whatever it was."""
    times = sorted({line[0] for history in people for line in history})
    first = times[0] if times else "1"
    moved = [
        tuple(("1" if line[0] == first else "2", line[1]) for line in history) for history in people
    ]
    return folded_codes(schema, moved)


def left_long(schema, people):
    """Every row is a row of its own, at the price of one."""
    return folded_codes(schema, [(line,) for history in people for line in history[:2]])


TWINS = [cut_by_a_rank_over_all_people, times_by_a_rank_over_all_people, left_long]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_what_looks_at_other_people_is_found(twin):
    case = replace(ORDINAL, folded=twin, _known={})
    assert case.loss().epsilon > 1.2 * case.claimed
    assert replace(ORDINAL, _known={}).loss().within(case.claimed, 1.0)


class NamesKept(PanelCase):
    """A drawn row comes with the name of the person that it is of."""

    def _law(self, codes):
        counts = {(code, number): 1 for number, code in enumerate(codes)}
        weights = dict.fromkeys(self.cells, ALPHA) | counts
        total = sum(weights.values())
        return {cell: Fraction(weight, total) for cell, weight in weights.items()}


def test_names_that_are_kept_are_found():
    case = NamesKept(ORDINAL.name, ORDINAL.schema, ORDINAL.values, most_rows=1)
    assert case.loss().epsilon == math.inf


@pytest.mark.slow(seconds=30)
def test_the_audit_has_lines_for_panels():
    findings = list(audit(PANELS))
    cases = [*CASES, *pooled_cases()]
    assert [finding.name for finding in findings] == [case.name for case in cases]
    assert all(finding.holds for finding in findings)
