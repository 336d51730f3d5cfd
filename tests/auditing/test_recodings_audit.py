"""The exact audit of recodings, and what looks at other rows, which it must find (R31)."""

from __future__ import annotations

from collections import Counter
from math import log

import pytest

from pegsynth.auditing.coded_rows import (
    RECODINGS,
    codes_by_row,
    recoding_case,
    recoding_cases,
)
from pegsynth.auditing.run import audit
from pegsynth.schema import Feature

CASES = recoding_cases()
CLAIMED = log(1.5)
THRESHOLD = 5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_recoding_row_by_row_holds_the_price_of_the_draw(case):
    assert case.price == pytest.approx(CLAIMED)
    loss = case.loss()
    assert loss.within(case.price, 1.0)
    assert loss.epsilon > 0.7 * case.price


def topped_at_the_median(feature, values):
    """Percentile top-coding: values above the table's own median become it."""
    if not values:
        return ()
    median = sorted(values)[(len(values) - 1) // 2]
    return codes_by_row(feature, [min(value, median) for value in values])


def suppressed_below_k(feature, values):
    """Rows of values that fewer than k rows have are left out."""
    counts = Counter(values)
    return codes_by_row(feature, [v for v in values if counts[v] >= THRESHOLD])


def grouped_below_k(feature, values):
    """Categories of fewer than k rows become the category "other"."""
    counts = Counter(values)
    return codes_by_row(feature, [v if counts[v] >= THRESHOLD else "other" for v in values])


def filled_with_the_mode(feature, values):
    """Missing values become the most frequent one."""
    counts = Counter(v for v in values if v is not None)
    if not counts:
        return codes_by_row(feature, ["a" for _ in values])
    mode = min(counts, key=lambda v: (-counts[v], v))
    return codes_by_row(feature, [mode if v is None else v for v in values])


def rare_joined_by_true_counts(feature, values):
    """Categories below a true count join the largest one."""
    counts = Counter(values)
    largest = min(counts, key=lambda v: (-counts[v], v), default=None)
    small = THRESHOLD - 2
    return codes_by_row(feature, [v if counts[v] >= small else largest for v in values])


def ordered(*categories):
    return Feature("x", kind="ordinal", categories=categories)


TWINS = [
    (topped_at_the_median, ordered("a", "b", "c"), ("a", "c"), 6),
    (suppressed_below_k, ordered("a", "b"), ("a", "b"), 12),
    (grouped_below_k, ordered("a", "b", "other"), ("a", "b"), 6),
    (filled_with_the_mode, ordered("a", "b"), ("a", "b", None), 6),
    (rare_joined_by_true_counts, ordered("a", "b", "c"), ("a", "b", "c"), 6),
]


@pytest.mark.parametrize(
    ("twin", "feature", "values", "most_rows"), TWINS, ids=[twin[0].__name__ for twin in TWINS]
)
def test_what_looks_at_other_rows_is_found(twin, feature, values, most_rows):
    case, sound = (
        recoding_case("twin", feature, values, recoded=recoded, most_rows=most_rows)
        for recoded in (twin, _as_it_is)
    )
    loss = case.loss()
    assert not loss.within(case.price, 1.0)
    assert loss.epsilon > 1.9 * case.price
    # The same feature, read row by row, holds.
    assert sound.loss().within(case.price, 1.0)


def _as_it_is(feature, values):
    return codes_by_row(feature, ["a" if value is None else value for value in values])


def test_the_audit_has_lines_for_recodings():
    findings = list(audit(RECODINGS))
    assert [finding.name for finding in findings] == [case.name for case in CASES]
    assert all(finding.holds for finding in findings)
