"""All audits, as lines of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from pegsynth.audit.cases import Case, all_cases
from pegsynth.audit.choices import private_case, worst_path
from pegsynth.audit.divergence import worst_loss
from pegsynth.audit.door_readers import DOORS
from pegsynth.audit.doors import failures
from pegsynth.audit.numbers import NUMBERS, number_cases
from pegsynth.audit.released import audit_paths, released_cases
from pegsynth.audit.released_trials import blocks_lower_bound, blocks_trial
from pegsynth.audit.statistical import lower_bound, trial
from pegsynth.audit.tables import TABLE_METHODS, TableCase, table_cases
from pegsynth.options import PEGS_METHODS
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.synthesizers.released_blocks import ONCE

RELEASES = 200_000
FULL_RELEASES = 2_000_000
BLOCK_RELEASES = 400
FULL_BLOCK_RELEASES = 10_000
PAIRS = 20
FULL_PAIRS = 10_000
"""Neighbouring tables that are read: at every door, and at all of them together (R30)."""
READERS = "doors"
MOST_SHOWN = 3

AUDITED_METHODS = (*PEGS_METHODS, ONCE, *TABLE_METHODS)
"""Methods that claim differential privacy."""


@dataclass(frozen=True)
class Finding:
    """One audited claim.

    Parameters
    ----------
    method, name, kind
        What was audited, and how: "exact", "statistical" or "read".
    claimed, realised
        Pure epsilon of the ledger, and the worst that was found (statistical: proved);
        None for readers, which claim that nothing differs.
    claimed_rho, realised_rho
        The same in zCDP; None where it was not computed.
    skipped
        Why nothing was audited; empty if something was.
    details
        What it takes to see again what was broken.
    """

    method: str
    name: str
    kind: str
    claimed: float | None
    realised: float | None
    claimed_rho: float | None
    realised_rho: float | None
    holds: bool
    skipped: str = ""
    details: tuple[str, ...] = ()


def audit(method: str | None = None, *, full: bool = False, threads: int = 1) -> Iterator[Finding]:
    """Yield one finding after another; those of one method, or of the readers, if named."""
    yield from _exact(method)
    yield from _private(method, full=full)
    if method in (None, ONCE):
        yield from _released(full=full)
    if method in (None, NUMBERS):
        yield from _numbers()
    yield from _statistical(method, full=full, threads=threads)
    if method in (None, ONCE):
        yield _released_statistically(FULL_BLOCK_RELEASES if full else BLOCK_RELEASES)
    if method in (None, READERS):
        yield from _doors(-(-FULL_PAIRS // len(DOORS)) if full else PAIRS)


def _doors(count: int) -> Iterator[Finding]:
    """Read neighbouring tables through every door of this process (R30)."""
    for door in DOORS:
        missing = door.needs if door.needs and find_spec(door.needs) is None else ""
        broken = () if missing else tuple(map(str, failures(door, count)))
        yield Finding(
            READERS,
            f"{door.name}, {count:,} pairs",
            "read",
            None,
            None,
            None,
            None,
            not broken,
            f"{missing} is not installed" if missing else "",
            broken[:MOST_SHOWN],
        )


def _exact(method: str | None) -> Iterator[Finding]:
    cases: list[Case | TableCase] = [*all_cases(), *table_cases()]
    for case in cases:
        if method not in (None, case.method):
            continue
        unit = case.schema.rows_per_unit if case.schema.unit else 1
        counts = case.schema.category_counts
        loss = worst_loss(case.distribution, counts, case.most_rows, rows_per_unit=unit)
        guarantee = case.claim.guarantee
        epsilon, rho = guarantee.epsilon or 0.0, guarantee.rho or 0.0
        yield Finding(
            case.method,
            case.name,
            "exact",
            epsilon,
            loss.epsilon,
            rho,
            loss.rho,
            loss.within(epsilon, rho),
        )


def _private(method: str | None, *, full: bool) -> Iterator[Finding]:
    if method not in (None, "pegs"):
        return
    for prior in ("uniform", "marginal") if full else ("uniform",):
        case = private_case(prior=prior)
        claimed = case.claim.guarantee.epsilon or 0.0
        loss = worst_path(case)
        held = loss.within(claimed, 1.0)
        yield Finding("pegs", case.name, "exact", claimed, loss.epsilon, None, None, held)


def _statistical(method: str | None, *, full: bool, threads: int) -> Iterator[Finding]:
    releases = FULL_RELEASES if full else RELEASES
    for name in PEGS_METHODS:
        if method not in (None, name):
            continue
        each = trial(name)
        bound = lower_bound(each, releases, threads=threads)
        text = f"{releases:,} releases, 99.9 % lower bound"
        holds = bound <= each.claim
        yield Finding(name, text, "statistical", each.claim, bound, None, None, holds)


def _released(*, full: bool) -> Iterator[Finding]:
    for case in released_cases(full=full):
        worst, delta = audit_paths(case), case.recipe.budget.delta
        loss, holds = worst.loss, worst.holds(case.stated)
        if delta is None:
            yield Finding(ONCE, case.name, "exact", worst.epsilon, loss.epsilon, None, None, holds)
        else:
            realised = math.inf if math.isinf(loss.rho) else epsilon_at(loss.rho, delta=delta)
            yield Finding(
                ONCE, case.name, "exact", worst.epsilon, realised, worst.rho, loss.rho, holds
            )


def _numbers() -> Iterator[Finding]:
    """Follow the measurement of numbers path by path (R21)."""
    for case in number_cases():
        worst = audit_paths(case)
        pure = case.delta is None
        yield Finding(
            NUMBERS,
            case.name,
            "exact",
            worst.epsilon if pure else None,
            worst.loss.epsilon if pure else None,
            None if pure else worst.rho,
            None if pure else worst.loss.rho,
            worst.holds(case.stated),
        )


def _released_statistically(releases: int) -> Finding:
    each = blocks_trial()
    bound = blocks_lower_bound(each, releases)
    text = f"{releases:,} releases, 99.9 % lower bound"
    return Finding(ONCE, text, "statistical", each.claim, bound, None, None, bound <= each.claim)
