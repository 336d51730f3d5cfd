"""The watch over our checks: its short form, and that it notices what it is there for.

A line of the watch is wrong with probability at most `DOUBT` (1e-6), over fresh secure
randomness, and no twin escapes with more than 1e-11; a failure is therefore a finding and
is never rerun.
"""

from dataclasses import replace

import numpy as np
import pytest

from checks.watch import laws
from checks.watch.bought import bought_checks
from checks.watch.pivots import pivot_checks
from checks.watch.rounds import Line, audits, watch_audit, watch_check
from checks.watch.run import main, row


@pytest.mark.parametrize("check", laws.all_checks(), ids=lambda check: check.name)
def test_named_rates_hold_and_twins_are_caught(check):
    assert watch_check(check, rounds=20, twins=2).good


@pytest.mark.parametrize("check", bought_checks(), ids=lambda check: check.name)
def test_intervals_of_bought_distances_hold_as_often_as_they_say(check):
    assert watch_check(check, rounds=8, twins=2).good


# Released blocks take minutes; tests/auditing has a shorter form of theirs.
@pytest.mark.slow
@pytest.mark.parametrize("audit", audits()[:-1], ids=lambda audit: audit.name)
def test_audits_stay_below_their_claims_and_prove_their_twins_wrong(audit):
    assert watch_audit(audit, rounds=1, twins=1).good


@pytest.mark.slow
@pytest.mark.parametrize("check", pivot_checks(), ids=lambda check: check.name)
def test_intervals_of_replicates_hold_at_every_level(check):
    """R28: pivots have the t distribution; false alarms at most 1e-6 for each round."""
    assert watch_check(check, rounds=1, twins=1).good


def test_a_check_that_cries_wolf_or_sleeps_is_noticed():
    """Watched rates have two sides: p-values must be neither too small nor too large."""
    sound = laws.integers(2_000)
    eager = replace(sound, law={k: 0.8 / 10 if k else 0.2 for k in range(11)})
    assert not watch_check(eager, rounds=20, twins=2).rate_is_true
    assert not Line("a", "b", 0.01, 0, 5_000, 1, 1).rate_is_true
    assert Line("a", "b", 0.01, 50, 5_000, 1, 1).rate_is_true
    assert not Line("a", "b", 0.01, 50, 5_000, 1, 2).good
    assert Line("a", "b", 0.01, 0, 5_000, 1, 1, at_most=True).good


def test_a_twin_that_does_nothing_wrong_is_not_caught():
    """False alarms: the rate at which twins are caught, 1e-6, for the one twin."""
    sound = laws.integers(2_000)
    line = watch_check(replace(sound, broken=sound.sound), rounds=1, twins=1)
    assert (line.caught, line.good) == (0, False)
    assert "**NO**" in row(line)


def test_outcomes_that_cannot_be_are_impossible():
    check = laws.integers(100)
    assert check.p_value(np.array([11])) == 0.0
    assert check.p_value(np.array([-1])) == 0.0


@pytest.mark.slow
def test_the_command(capsys):
    assert main(["--rounds", "3", "--audits", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert len(lines) == len(laws.all_checks()) + len(bought_checks())
