"""``pegs audit``: the claimed guarantee against what the shipped code does."""

from __future__ import annotations

from pegsynth.audit.run import AUDITED_METHODS, Finding, audit
from pegsynth.errors import ParameterError

_FORMAT = "{:<12} {:<34} {:<12} {:>9} {:>9} {:>9} {:>9}  {}"


def run(method: str | None, *, full: bool, threads: int) -> int:
    """Print a line per audit; return 1 if any claim was broken."""
    if method is not None and method not in AUDITED_METHODS:
        raise ParameterError(f"--method is one of {', '.join(AUDITED_METHODS)}, not {method!r}")
    header = ("method", "release", "audit", "epsilon", "worst", "rho", "worst", "")
    print(_FORMAT.format(*header), flush=True)
    broken = 0
    for finding in audit(method, full=full, threads=threads):
        print(_line(finding), flush=True)
        broken += not finding.holds
    print("every claim holds" if not broken else f"{broken} claims are broken")
    return 1 if broken else 0


def _line(finding: Finding) -> str:
    return _FORMAT.format(
        finding.method,
        finding.name,
        finding.kind,
        f"{finding.claimed:.4f}",
        f"{finding.realised:.4f}",
        "" if finding.claimed_rho is None else f"{finding.claimed_rho:.4f}",
        "" if finding.realised_rho is None else f"{finding.realised_rho:.4f}",
        "holds" if finding.holds else "BROKEN",
    )
