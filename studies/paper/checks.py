"""From checks to verdicts: reproduced, partly, not reproduced.

A finding of the paper has parts, each part is a list of checks, and a check is one figure
with its interval and whether it agrees with the paper. A part holds when nearly all of its
checks do. The verdict follows from the parts and from nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pegsynth.inference.statistics import Estimate

Verdict = Literal["reproduced", "partly reproduced", "not reproduced", "not assessed"]

NEARLY_ALL = 0.95
"""Share of a part's checks that must agree: each check may be wrong one time in twenty."""

MOST = 0.5
RULE = (
    f"A part holds when at least {NEARLY_ALL:.0%} of its checks agree with the paper. The finding "
    "is reproduced when all its parts hold, not reproduced when in no part more than "
    f"{MOST:.0%} of the checks agree, partly reproduced otherwise."
)


@dataclass(frozen=True)
class Check:
    """One comparison.

    Parameters
    ----------
    what
        What is compared, in a few words.
    estimate
        The difference or ratio with its interval.
    agrees
        Whether it is as the paper says.
    """

    what: str
    estimate: Estimate
    agrees: bool


@dataclass(frozen=True)
class FindingPart:
    """A part of a finding.

    Parameters
    ----------
    claim
        What the paper says, in our words, and how it is checked.
    checks
        The comparisons; a part without any was not assessed.
    """

    claim: str
    checks: tuple[Check, ...]

    @property
    def agreeing(self) -> int:
        """Number of checks that agree with the paper."""
        return sum(check.agrees for check in self.checks)

    @property
    def share(self) -> float:
        """Share of the checks that agree."""
        return self.agreeing / len(self.checks)

    @property
    def holds(self) -> bool:
        """Whether nearly all checks agree."""
        return self.share >= NEARLY_ALL


def part(claim: str, checks: Sequence[Check]) -> FindingPart:
    """Make a part of the checks whose figure is known."""
    return FindingPart(claim, tuple(check for check in checks if check.estimate.known))


def verdict(parts: Sequence[FindingPart]) -> Verdict:
    """Return what the parts amount to; see `RULE`."""
    assessed = [part for part in parts if part.checks]
    if not assessed:
        return "not assessed"
    if all(part.holds for part in assessed):
        return "reproduced"
    if all(part.share <= MOST for part in assessed):
        return "not reproduced"
    return "partly reproduced"
