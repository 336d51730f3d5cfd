"""The exact audit of folding, and what looks at other people, which it must find (R24)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from lanes import long_form
from pegsynth.auditing.coded_rows import (
    ALPHA,
    PANELS,
    allowed_cells,
    folded_codes,
    histories,
    panel_case,
    panel_cases,
)
from pegsynth.auditing.released import pooled_cases
from pegsynth.auditing.run import audit
from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import Panel

CASES = panel_cases()
SCHEMA = Schema(
    (
        Feature("person", role="identifier"),
        Feature("t", kind="ordinal", categories=("1", "2")),
        Feature("x", categories=("a", "b")),
    ),
    panel=Panel("person", "t", 2),
)
PEOPLE = histories((("1", "a"), ("2", "a")), 2)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_folding_holds_the_price_of_one_row(case):
    assert case.price == pytest.approx(math.log(1 + 1 / ALPHA))
    loss = case.loss()
    assert loss.within(case.price, 1.0)
    assert loss.epsilon > 0.8 * case.price


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
    case, sound = (
        panel_case("ordinal time", SCHEMA, PEOPLE, folded=folded, most_units=2)
        for folded in (twin, folded_codes)
    )
    assert case.loss().epsilon > 1.2 * case.price
    assert sound.loss().within(case.price, 1.0)


def with_names(codes):
    """Return the law of a drawn row that comes with the name of the person that it is of."""
    counts = {(code, number): 1 for number, code in enumerate(codes)}
    weights = dict.fromkeys(allowed_cells(SCHEMA), ALPHA) | counts
    total = sum(weights.values())
    return {cell: Fraction(weight, total) for cell, weight in weights.items()}


def test_names_that_are_kept_are_found():
    case = panel_case("ordinal time", SCHEMA, histories((("1", "a"), ("2", "a")), 1))
    assert case.loss().within(case.price, 1.0)
    assert replace(case, drawn=with_names).loss().epsilon == math.inf


@long_form
@pytest.mark.slow(seconds=30)
def test_the_audit_has_lines_for_panels():
    findings = list(audit(PANELS))
    cases = [*CASES, *pooled_cases()]
    assert [finding.name for finding in findings] == [case.name for case in cases]
    assert all(finding.holds for finding in findings)
