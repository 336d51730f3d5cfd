"""The exact audit of verification, and broken twins that it must catch (R32)."""

from dataclasses import replace

import numpy as np
import pytest

from pegsynth.auditing.agreeing_parts import verification_cases
from pegsynth.auditing.run import audit
from pegsynth.inference import regression_fit
from pegsynth.publishing import agreement
from pegsynth.publishing.agreement import dealt
from pegsynth.runtime import in_silence

ONE, APPROXIMATE, TWO, UNITS, FAILING = verification_cases()


def holds(case):
    claimed = case.claimed
    return case.loss().within(claimed.epsilon, claimed.rho)


@pytest.mark.parametrize("case", verification_cases(), ids=lambda case: case.name)
def test_no_table_tells_more_than_is_claimed(case):
    assert holds(case)


def test_the_claim_is_not_larger_than_it_must_be():
    """Some table comes near the price: the audit looks where the loss is."""
    assert ONE.loss().epsilon > 0.5 * ONE.claimed.epsilon


def in_equal_parts(units, rows, parts, words):
    """Deal by rank, so that parts are of equal size: one row more moves the others."""
    del units, words
    return np.arange(rows) * parts // max(rows, 1)


def one_by_one(units, rows, parts, words):
    """Deal the rows of a unit apart."""
    del units
    return dealt(None, rows, parts, words)


def test_parts_of_equal_size_are_found_out():
    assert not holds(replace(ONE, deal=in_equal_parts, most_rows=4))


def test_rows_of_a_unit_that_are_dealt_apart_are_found_out():
    assert not holds(replace(UNITS, deal=one_by_one))


def test_counts_without_noise_are_found_out():
    assert not holds(replace(ONE, noise={0: 1}))


def fails_aloud(monkeypatch):
    """Let an error of a decomposition through, as if a part that cannot be fitted were a fault."""
    monkeypatch.setattr(regression_fit, "_solved", in_silence()(regression_fit._solve))
    monkeypatch.setattr(agreement, "agrees", agreement.part_answers)


def test_fits_that_raise_are_found_out(monkeypatch):
    fails_aloud(monkeypatch)
    assert FAILING.loss().epsilon == float("inf")


def test_the_audit_of_verification():
    found = list(audit("verification"))
    assert [each.holds for each in found] == [True] * 5
    assert {each.kind for each in found} == {"exact"}
