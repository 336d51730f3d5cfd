"""All audits, as lines of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pegsynth.auditing.agreeing_parts import VERIFICATION, verification_cases
from pegsynth.auditing.cases import Case, all_cases
from pegsynth.auditing.divergence import Loss, worst_loss
from pegsynth.auditing.found_categories import (
    CATEGORIES,
    audit_categories,
    categories_cases,
)
from pegsynth.auditing.interference import Command, compare_all
from pegsynth.auditing.interference_cases import groups
from pegsynth.auditing.level_cases import level_cases, level_private_case, private_case, worst_path
from pegsynth.auditing.numbers import (
    DATES,
    NUMBERS,
    RECODINGS,
    NumberCase,
    date_cases,
    number_cases,
    recoding_cases,
)
from pegsynth.auditing.panels import PANELS, panel_cases, pooled_cases
from pegsynth.auditing.released import audit_paths, released_cases
from pegsynth.auditing.released_trials import blocks_lower_bound, blocks_trial
from pegsynth.auditing.statistical import lower_bound, trial
from pegsynth.auditing.table_methods import TableCase, table_cases
from pegsynth.methods import methods
from pegsynth.options import PriorKind
from pegsynth.privacy.conversion import epsilon_at

RELEASES = 200_000
FULL_RELEASES = 2_000_000
BLOCK_RELEASES = 400
FULL_BLOCK_RELEASES = 10_000
INTERFERENCE = "interference"
MOST_SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """One audited claim.

    Parameters
    ----------
    method, name, kind
        What was audited, and how: "exact", "statistical" or "given".
    claimed, realised
        Pure epsilon of the ledger, and the worst that was found (statistical: proved);
        None where the claim is zCDP alone. Given answers: 1, and the largest
        change that one unit makes in a paid step, as a part of what its event prices.
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


def audit(
    method: str | None = None,
    *,
    full: bool = False,
    threads: int = 1,
    command: Command | None = None,
) -> Iterator[Finding]:
    """Yield one finding after another; those of one method, or of one part, if named.

    Parameters
    ----------
    command
        The command line, which releases are made with; None leaves these out.
    """
    for each in methods():
        if method in (None, each.name):
            yield from each.audit(full=full, threads=threads)
    if method in (None, NUMBERS):
        yield from _numbers(NUMBERS, number_cases())
    if method in (None, DATES):
        yield from _numbers(DATES, date_cases())
    if method in (None, CATEGORIES):
        yield from _categories()
    if method in (None, RECODINGS):
        yield from _recodings()
    if method in (None, VERIFICATION):
        yield from _verification()
    if method in (None, PANELS):
        yield from _panels()
    if method in (None, INTERFERENCE):
        yield from _interference(command, full=full, threads=threads)


def audits() -> tuple[str, ...]:
    """Return what can be audited by name: methods, parts of the codec, and releases."""
    codec = (NUMBERS, DATES, CATEGORIES, RECODINGS, PANELS)
    return (*audited_methods(), *codec, VERIFICATION, INTERFERENCE)


def audited_methods() -> tuple[str, ...]:
    """Return the names of the methods that claim a guarantee; each has audits of its own."""
    return tuple(method.name for method in methods() if method.has_proof)


def audit_gibbs(name: str, *, full: bool, threads: int) -> Iterator[Finding]:
    """Audit a Gibbs sampler: every outcome of tiny releases, and many real ones."""
    cases = [*all_cases(), *level_cases()]
    yield from _exact([case for case in cases if case.method == name])
    yield from _private(name, full=full)
    yield from _statistical(name, full=full, threads=threads)


def audit_table_method(name: str) -> Iterator[Finding]:
    """Audit a method that works on the table itself: every outcome of tiny releases."""
    yield from _exact([case for case in table_cases() if case.method == name])


def audit_released(*, full: bool) -> Iterator[Finding]:
    """Audit released blocks: every path of tiny releases, and many real ones."""
    yield from _released(full=full)
    yield _released_statistically(FULL_BLOCK_RELEASES if full else BLOCK_RELEASES)


def _interference(command: Command | None, *, full: bool, threads: int) -> Iterator[Finding]:
    """Release different tables with the same paid answers, and compare what is public."""
    if command is None:
        reason = "it runs commands; use pegs audit"
        yield Finding(INTERFERENCE, "releases", "given", None, None, None, None, True, reason)
        return
    named = [(name, each) for name, some in groups(full=full) for each in some]
    # Processes take longer to start than a short audit does.
    compared = compare_all([each for _, each in named], command, threads=threads if full else 1)
    for name, pairs in groupby(zip(named, compared, strict=True), key=lambda pair: pair[0][0]):
        found = [each for _, each in pairs]
        claims = sum(each.status == "claims" for each in found)
        text = f"{name}, {claims} releases of {len(found)}"
        worst = max((ratio for each in found for ratio in each.ratios.values()), default=0.0)
        broken = tuple(f"{each.name}: {line}" for each in found for line in each.broken)
        yield Finding(
            INTERFERENCE, text, "given", 1.0, worst, None, None, not broken, "", broken[:MOST_SHOWN]
        )


def _exact(cases: Sequence[Case | TableCase]) -> Iterator[Finding]:
    for case in cases:
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


def _private(name: str, *, full: bool) -> Iterator[Finding]:
    kinds: tuple[PriorKind, ...] = ("uniform", "marginal") if full else ("uniform",)
    for case in (level_private_case(), *(private_case(prior=prior) for prior in kinds)):
        if case.method != name:
            return
        claimed = case.claim.guarantee.epsilon or 0.0
        loss = worst_path(case)
        held = loss.within(claimed, 1.0)
        yield Finding(name, case.name, "exact", claimed, loss.epsilon, None, None, held)


def _statistical(name: str, *, full: bool, threads: int) -> Iterator[Finding]:
    releases = FULL_RELEASES if full else RELEASES
    each = trial(name)
    bound = lower_bound(each, releases, threads=threads)
    text = f"{releases:,} releases, 99.9 % lower bound"
    yield Finding(name, text, "statistical", each.claim, bound, None, None, bound <= each.claim)


def _released(*, full: bool) -> Iterator[Finding]:
    for case in released_cases(full=full):
        worst, delta = audit_paths(case), case.plan.budget.delta
        loss, holds = worst.loss, worst.holds(case.stated)
        if delta is None:
            yield Finding(
                case.method, case.name, "exact", worst.epsilon, loss.epsilon, None, None, holds
            )
        else:
            realised = math.inf if math.isinf(loss.rho) else epsilon_at(loss.rho, delta=delta)
            yield Finding(
                case.method, case.name, "exact", worst.epsilon, realised, worst.rho, loss.rho, holds
            )


def _numbers(name: str, cases: Sequence[NumberCase]) -> Iterator[Finding]:
    """Follow the measurement of numbers or dates path by path (R21)."""
    for case in cases:
        worst = audit_paths(case)
        pure = case.delta is None
        yield Finding(
            name,
            case.name,
            "exact",
            worst.epsilon if pure else None,
            worst.loss.epsilon if pure else None,
            None if pure else worst.rho,
            None if pure else worst.loss.rho,
            worst.holds(case.stated),
        )


def _categories() -> Iterator[Finding]:
    """Compare the exact laws of searches for categories (R29)."""
    for case in categories_cases():
        worst = audit_categories(case)
        taken = f"{case.name}; delta' {worst.lost:.3g} of {worst.claim.delta_taken:.3g}"
        yield Finding(
            CATEGORIES, taken, "exact", None, None, worst.claim.rho, worst.loss.rho, worst.holds
        )


def _recodings() -> Iterator[Finding]:
    """Enumerate one draw from every small table of raw values (R31)."""
    for case in recoding_cases():
        claimed, realised = case.claimed, case.loss().epsilon
        held = Loss(realised).within(claimed, 1.0)
        yield Finding(RECODINGS, case.name, "exact", claimed, realised, None, None, held)


def _verification() -> Iterator[Finding]:
    """Deal every small table in every way, and compare the laws of what is counted (R32)."""
    for case in verification_cases():
        claimed, loss = case.claimed, case.loss()
        pure = not math.isinf(claimed.epsilon)
        yield Finding(
            VERIFICATION,
            case.name,
            "exact",
            claimed.epsilon if pure else None,
            loss.epsilon if pure else None,
            claimed.rho,
            loss.rho,
            loss.within(claimed.epsilon, claimed.rho),
        )


def _panels() -> Iterator[Finding]:
    """Enumerate one draw from every small folded panel, and paths of pooled transitions (R24)."""
    for case in panel_cases():
        claimed, realised = case.claimed, case.loss().epsilon
        held = Loss(realised).within(claimed, 1.0)
        yield Finding(PANELS, case.name, "exact", claimed, realised, None, None, held)
    for pooled in pooled_cases():
        worst, pure = audit_paths(pooled), pooled.delta is None
        yield Finding(
            PANELS,
            pooled.name,
            "exact",
            worst.epsilon if pure else None,
            worst.loss.epsilon if pure else None,
            None if pure else worst.rho,
            None if pure else worst.loss.rho,
            worst.holds(pooled.stated),
        )


def _released_statistically(releases: int) -> Finding:
    each = blocks_trial()
    bound = blocks_lower_bound(each, releases)
    text = f"{releases:,} releases, 99.9 % lower bound"
    return Finding(
        each.plan.method, text, "statistical", each.claim, bound, None, None, bound <= each.claim
    )
