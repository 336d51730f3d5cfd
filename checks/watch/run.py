"""``python -m checks.watch.run [--rounds 2000] [--audits 100]``: alarms and twins caught.

Ends with status 1 if a named rate does not hold or a twin got away.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from checks.watch.rounds import Line, watch_all

HEADER = (
    "| what | named rate | rounds | alarms | broken twin | caught |",
    "|---|---|---|---|---|---|",
)


def row(line: Line) -> str:
    """Return a line as a row of a Markdown table."""
    rate = f"{'at most ' if line.at_most else ''}{line.rate:.3g}"
    alarms = f"{line.alarms} ({line.alarms / line.rounds:.4f})"
    verdict = "" if line.good else " **NO**"
    return (
        f"| {line.name} | {rate} | {line.rounds:,} | {alarms} | {line.mistake} "
        f"| {line.caught} of {line.twins}{verdict} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch, print, and say whether all is well."""
    parser = argparse.ArgumentParser(prog="checks.watch.run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000, help="rounds of every check")
    parser.add_argument("--audits", type=int, default=100, help="rounds of every audit; 0: none")
    parser.add_argument("--releases", type=int, default=20_000, help="releases of one audit")
    options = parser.parse_args(arguments)
    print(*HEADER, sep="\n", flush=True)
    good = True
    lines = watch_all(options.rounds, audit_rounds=options.audits, releases=options.releases)
    for line in lines:
        print(row(line), flush=True)
        good &= line.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
