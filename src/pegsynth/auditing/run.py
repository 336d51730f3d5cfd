"""All audits, as lines of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Protocol

from pegsynth.auditing.agreeing_parts import VERIFICATION, verification_cases
from pegsynth.auditing.cases import all_cases
from pegsynth.auditing.coded_rows import PANELS, RECODINGS, panel_cases, recoding_cases
from pegsynth.auditing.divergence import Finding, Loss, exactly
from pegsynth.auditing.guess_cases import GUESSES, guess_cases
from pegsynth.auditing.interference import Command, compare_all
from pegsynth.auditing.interference_cases import groups
from pegsynth.auditing.level_cases import level_cases, level_private_case, private_case, worst_path
from pegsynth.auditing.measured_codecs import (
    CATEGORIES,
    DATES,
    NUMBERS,
    categories_cases,
    date_cases,
    number_cases,
)
from pegsynth.auditing.released import pooled_cases, released_cases
from pegsynth.auditing.statistical import Drawn, blocks_trial, lower_bound, trial
from pegsynth.auditing.table_methods import table_cases
from pegsynth.methods import methods
from pegsynth.options import PriorKind

__all__ = ["Finding", "audit", "audits"]

RELEASES = 200_000
FULL_RELEASES = 2_000_000
BLOCK_RELEASES = 400
FULL_BLOCK_RELEASES = 10_000
INTERFERENCE = "interference"
MOST_SHOWN = 3


class AuditCase(Protocol):
    """One exact audit."""

    def finding(self, part: str) -> Finding:
        """Return what it found."""
        ...


def _panels_and_pools() -> Sequence[AuditCase]:
    return (*panel_cases(), *pooled_cases())


PARTS: Final[Mapping[str, Callable[[], Sequence[AuditCase]]]] = {
    NUMBERS: number_cases,
    DATES: date_cases,
    CATEGORIES: categories_cases,
    RECODINGS: recoding_cases,
    PANELS: _panels_and_pools,
    VERIFICATION: verification_cases,
    GUESSES: guess_cases,
}
"""Parts of the program that have exact audits of their own."""


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
    for part, cases in PARTS.items():
        if method in (None, part):
            yield from (case.finding(part) for case in cases())
    if method in (None, INTERFERENCE):
        yield from _interference(command, full=full, threads=threads)


def audits() -> tuple[str, ...]:
    """Return what can be audited by name: methods, parts of the program, and releases."""
    return (*audited_methods(), *PARTS, INTERFERENCE)


def audited_methods() -> tuple[str, ...]:
    """Return the names of the methods that claim a guarantee; each has audits of its own."""
    return tuple(method.name for method in methods() if method.has_proof)


def audit_gibbs(name: str, *, full: bool, threads: int) -> Iterator[Finding]:
    """Audit a Gibbs sampler: every outcome of tiny releases, and many real ones."""
    cases = [*all_cases(), *level_cases()]
    yield from (case.finding(name) for case in cases if case.method == name)
    priors: tuple[PriorKind, ...] = ("uniform", "marginal") if full else ("uniform",)
    for case in (level_private_case(), *(private_case(prior=prior) for prior in priors)):
        if case.method == name:
            # The loss of a path is a log-ratio; nothing is said of its rho.
            claimed = Loss(case.claimed.epsilon, float("inf"))
            yield exactly(name, case.name, claimed, worst_path(case))
    releases = FULL_RELEASES if full else RELEASES
    yield _statistical(name, trial(name), releases, threads=threads)


def audit_table_method(name: str) -> Iterator[Finding]:
    """Audit a method that works on the table itself: every outcome of tiny releases."""
    yield from (case.finding(name) for case in table_cases() if case.method == name)


def audit_released(*, full: bool) -> Iterator[Finding]:
    """Audit released blocks: every path of tiny releases, and many real ones."""
    releases, drawn = FULL_BLOCK_RELEASES if full else BLOCK_RELEASES, blocks_trial()
    name = drawn.plan.method
    yield from (case.finding(name) for case in released_cases(full=full))
    yield _statistical(name, drawn, releases)


def _statistical(name: str, drawn: Drawn, releases: int, *, threads: int = 1) -> Finding:
    claim, bound = drawn.claim, lower_bound(drawn, releases, threads=threads)
    text = f"{releases:,} releases, 99.9 % lower bound"
    return Finding(name, text, "statistical", claim, bound, None, None, bound <= claim)


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
