"""``pegs audit``: the claimed guarantee against what the shipped code does."""

from __future__ import annotations

from collections.abc import Sequence

from pegsynth.auditing.run import Finding, audit, audits
from pegsynth.cli.main import main
from pegsynth.cli.signals import keeping_handlers
from pegsynth.errors import ParameterError
from pegsynth.random import Streams

_FORMAT = "{:<12} {:<34} {:<12} {:>9} {:>9} {:>9} {:>9}  {}"


def run(method: str | None, *, full: bool, threads: int) -> int:
    """Print a line per audit; return 1 if any claim was broken."""
    known = audits()
    if method is not None and method not in known:
        raise ParameterError(f"--method is one of {', '.join(known)}, not {method!r}")
    header = ("method", "release", "audit", "epsilon", "worst", "rho", "worst", "")
    print(_FORMAT.format(*header), flush=True)
    broken = 0
    for finding in audit(method, full=full, threads=threads, command=command):
        print(_line(finding), flush=True)
        broken += not finding.holds
        for text in finding.details:
            print(text, flush=True)
    print("every claim holds" if not broken else f"{broken} claims are broken")
    return 1 if broken else 0


def command(arguments: Sequence[str], *, streams: Streams) -> None:
    """Run a command inside this one, which goes on answering signals afterwards."""
    with keeping_handlers():
        main(arguments, streams=streams)


def _line(finding: Finding) -> str:
    verdict = "holds" if finding.holds else "BROKEN"
    return _FORMAT.format(
        finding.method,
        finding.name,
        finding.kind,
        _number(finding.claimed),
        _number(finding.realised),
        _number(finding.claimed_rho),
        _number(finding.realised_rho),
        f"skipped: {finding.skipped}" if finding.skipped else verdict,
    )


def _number(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.4f}"
