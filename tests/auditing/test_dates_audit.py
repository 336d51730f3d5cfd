"""The exact audit of dates: calendar trees, weekdays, differences, and broken twins (R21)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from broken_filters import Looking, Skipping, split_by_true_counts
from pegsynth.auditing.measured_codecs import DATES, date_cases, difference_counts, settled_by_tree
from pegsynth.auditing.paths import audit_paths
from pegsynth.auditing.run import audit
from pegsynth.codec.measured_numbers import measure
from pegsynth.codec.tree import Level

CASES = {case.name: case for case in date_cases()}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_no_path_costs_more_than_is_claimed_and_the_claim_is_used(case):
    worst = audit_paths(case)
    assert worst.holds(case.stated)
    used = worst.loss.epsilon / worst.epsilon if case.delta is None else worst.loss.rho / worst.rho
    assert used > 0.99


def test_every_level_of_the_calendar_is_reached_and_weekdays_are_one_more():
    deepest = {
        name: max(len(next(case.paths(table, 0)).steps) for table, _ in case.pairs)
        for name, case in CASES.items()
    }
    assert deepest["dates"] == deepest["dates with a time"] == deepest["times of day"] == 4
    assert deepest["weekdays"] == 5
    assert deepest["days after another date"] == 3


def empty_years_left_out(counts, feature, budget_filter, share):
    return measure(counts, feature, Skipping(budget_filter), share)


def exact_weekdays(counts, feature, budget_filter, share):
    tree = measure(counts, feature, budget_filter, share)
    from pegsynth.codec.number_grid import grid_of

    grid = grid_of(feature)
    line = grid.weekday_totals(counts[: grid.cells])
    return replace(tree, levels=(*tree.levels[:-1], Level(np.arange(7), line, 1.0)))


class FreeWeekdays(Looking):
    """A filter that takes back what seven counts cost."""

    def measure(self, counts, share, **about):
        left = self._filter._left
        noisy, deviation = self._filter.measure(counts, share, **about)
        if len(counts) == 7:
            self._filter._left = left
            self._filter._events.pop()
        return noisy, deviation


def weekdays_not_charged(counts, feature, budget_filter, share):
    tree = measure(counts, feature, FreeWeekdays(budget_filter), share)
    # What was not charged is spent on something else.
    rest = budget_filter.left * (1 - 1e-9)
    budget_filter.measure(np.array([counts.sum()]), rest, purpose="total")
    return tree


def ended_at_the_last_day(schema, trees, counts):
    settled = settled_by_tree(schema, trees, counts)
    feature = settled.schema.columns[0]
    occupied = np.flatnonzero(counts)
    last = feature.edges[-1] + (float(occupied[-1]) if len(occupied) else 0.0)
    changed = replace(feature, edges=(*feature.edges[:-1], last))
    return replace(settled, schema=replace(settled.schema, columns=(changed,)))


@pytest.mark.parametrize("name", ["dates", "dates, approximate", "dates, two rows per unit"])
@pytest.mark.parametrize(
    "twin",
    [
        {"measure": split_by_true_counts},
        {"measure": empty_years_left_out},
        {"settle": ended_at_the_last_day},
    ],
    ids=lambda twin: next(iter(twin.values())).__name__,
)
def test_broken_twins_of_the_calendar_tree_are_found(name, twin):
    case = replace(CASES[name], **twin)
    assert not audit_paths(case).holds(case.stated)


@pytest.mark.parametrize("name", ["weekdays", "weekdays, approximate"])
@pytest.mark.parametrize("twin", [exact_weekdays, weekdays_not_charged])
def test_broken_twins_of_weekdays_are_found(name, twin):
    case = replace(CASES[name], measure=twin)
    assert not audit_paths(case).holds(case.stated)


def counted_from_the_earliest_date(feature, values):
    """Count from the earliest date of the table where a row lacks its own: others move with it."""
    known = [first for _, first in values if first is not None]
    earliest = min(known, default=None)
    return difference_counts(feature, [(own, first or earliest) for own, first in values])


def disordered_rows_get_the_longest_stay(feature, values):
    """Count a row whose order is violated as the longest difference of the table."""
    fine = [pair for pair in values if None not in pair and pair[0] >= pair[1]]
    longest = max(fine, default=None)
    swapped = [
        longest if longest and None not in pair and pair[0] < pair[1] else pair for pair in values
    ]
    return difference_counts(feature, swapped)


@pytest.mark.parametrize(
    "twin", [counted_from_the_earliest_date, disordered_rows_get_the_longest_stay]
)
def test_a_difference_that_looks_at_other_rows_is_found(twin):
    case = CASES["days after another date"]
    rows = [(place,) for place in range(len(case.values))]
    # Rows that lack the other date, or are out of order, beside rows that have both.
    tables = [(rows[4], rows[4]), (rows[1], rows[1], rows[2]), (rows[1], rows[1])]
    pairs = tuple((table, (row,)) for table in tables for row in rows)
    assert audit_paths(replace(case, pairs=pairs)).holds(case.stated)
    broken = replace(case, pairs=pairs, count=twin)
    assert not audit_paths(broken).holds(case.stated)


def test_the_command_audits_dates():
    findings = list(audit(DATES))
    assert [finding.name for finding in findings] == list(CASES)
    assert all(finding.holds for finding in findings)
