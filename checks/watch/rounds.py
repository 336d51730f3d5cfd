"""Many rounds of checks and audits, and what their alarms say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from checks.watch.bought import bought_checks
from checks.watch.laws import Check, all_checks
from checks.watch.pivots import pivot_checks
from pegsynth.auditing.statistical import (
    CONFIDENCE,
    Trial,
    blocks_trial,
    lower_bound,
    trial,
)

NAMED_RATE = 0.01
"""False-alarm rate at which sound draws are counted."""
ALPHA = 1e-6
"""The rate of the tests; twins must be caught at this one."""
LEAST_FOR_PIVOTS = 20
"""Rounds of a check for one round of the intervals of replicates."""
DOUBT = 1e-6
"""Chance that this watch itself cries wolf, for each line."""


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Parameters
    ----------
    rate
        The named rate of false alarms; for an audit, its upper bound.
    alarms, rounds
        Alarms on sound draws.
    caught, twins
        Rounds in which the twin was caught.
    """

    name: str
    mistake: str
    rate: float
    alarms: int
    rounds: int
    caught: int
    twins: int
    at_most: bool = False

    @property
    def rate_is_true(self) -> bool:
        """Whether the alarms are as many as the named rate says (or fewer, for a bound)."""
        from scipy.stats import binom

        high = binom.sf(self.alarms - 1, self.rounds, self.rate) if self.alarms else 1.0
        low = binom.cdf(self.alarms, self.rounds, self.rate)
        return bool(high > DOUBT / 2 and (self.at_most or low > DOUBT / 2))

    @property
    def good(self) -> bool:
        """Whether the rate is true and the twin was caught every time."""
        return self.rate_is_true and self.caught == self.twins


def watch_check(check: Check, rounds: int, twins: int) -> Line:
    """Run a check many times, and its twin."""
    alarms = sum(check.p_value(check.sound()) < NAMED_RATE for _ in range(rounds))
    caught = sum(check.p_value(check.broken()) < ALPHA for _ in range(twins))
    return Line(check.name, check.mistake, NAMED_RATE, alarms, rounds, caught, twins)


@dataclass(frozen=True)
class Audit:
    """A statistical audit of a method and a broken twin of it; both return proof minus claim.

    Parameters
    ----------
    slow
        How many rounds of other audits take as long as one of this.
    """

    name: str
    mistake: str
    sound: Callable[[], float]
    broken: Callable[[], float]
    slow: int = 1


def audits(releases: int = 20_000) -> tuple[Audit, ...]:
    """Return the audits of the sampling methods and of released blocks."""

    def beyond(claimed: Trial, drawn: Trial) -> float:
        return lower_bound(drawn, releases) - claimed.claim

    rows, reset = trial("pegs", rows=3), trial("pegs-rs", rows=6, numerator=1, scale=8)
    capped = trial("pegs-capped", rows=8, visits=1, numerator=1, scale=8)
    small = trial("pegs", rows=1, numerator=8, scale=4)
    blocks = blocks_trial()
    dear = blocks_trial(8 * blocks.claim)
    few = max(releases // 25, 400)
    return (
        Audit(
            "pegs",
            "alpha 16 times too small",
            lambda: beyond(rows, rows),
            lambda: beyond(small, replace(small, numerator=1, scale=8)),
        ),
        Audit(
            "pegs-rs",
            "reset forgotten",
            lambda: beyond(reset, reset),
            lambda: beyond(reset, replace(reset, limit=0)),
        ),
        Audit(
            "pegs-capped",
            "cap forgotten",
            lambda: beyond(capped, capped),
            lambda: beyond(capped, replace(capped, limit=0)),
        ),
        Audit(
            "pegs-once",
            "eight times the budget spent",
            lambda: lower_bound(blocks, few) - blocks.claim,
            lambda: lower_bound(dear, few) - blocks.claim,
            slow=10,
        ),
    )


def watch_audit(audit: Audit, rounds: int, twins: int) -> Line:
    """Run an audit many times; a bound beyond the claim is an alarm."""
    alarms = sum(audit.sound() > 0 for _ in range(rounds))
    caught = sum(audit.broken() > 0 for _ in range(twins))
    name, rate = f"audit of {audit.name}", 1 - CONFIDENCE
    return Line(name, audit.mistake, rate, alarms, rounds, caught, twins, at_most=True)


def watch_all(rounds: int, *, audit_rounds: int, releases: int) -> Iterator[Line]:
    """Yield the lines of the table as they come."""
    for check in (*all_checks(), *bought_checks()):
        yield watch_check(check, rounds, max(rounds // 10, 10))
    for check in pivot_checks() if rounds >= LEAST_FOR_PIVOTS else ():
        # A release and its replicates take a thousand times as long as a draw.
        yield watch_check(check, rounds // LEAST_FOR_PIVOTS, max(rounds // 200, 3))
    for audit in audits(releases) if audit_rounds else ():
        own = max(audit_rounds // audit.slow, 3)
        yield watch_audit(audit, own, max(own // 2, 3))
