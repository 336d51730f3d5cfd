"""``python -m checks.doors.run [--pairs 10000] [--door NAME]``: a line for every door (R30).

Ends with status 1 if a row changed how others are read; the smallest pair that shows it is
printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from checks.doors.comparing import Door, failures
from checks.doors.readers import DOORS

PAIRS = 10_000
MOST_SHOWN = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Try doors, print what was found, and say whether all is well."""
    parser = argparse.ArgumentParser(prog="checks.doors.run", description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs at all doors together")
    names = [door.name for door in DOORS]
    parser.add_argument("--door", choices=names, help="one door, which all pairs go through")
    options = parser.parse_args(arguments)
    chosen = [door for door in DOORS if options.door in (None, door.name)]
    count = -(-options.pairs // len(chosen))
    broken = sum(not sound(door, count) for door in chosen)
    print("every door is sound" if not broken else f"{broken} doors are broken")
    return 1 if broken else 0


def sound(door: Door, count: int) -> bool:
    """Try so many pairs at a door, print the result, and return whether nothing differed."""
    line = f"{door.name}, {count:,} pairs"
    if door.needs and find_spec(door.needs) is None:
        print(f"{line:<40} skipped: {door.needs} is not installed", flush=True)
        return True
    found = list(map(str, failures(door, count)))
    print(f"{line:<40} {'BROKEN' if found else 'holds'}", flush=True)
    for text in found[:MOST_SHOWN]:
        print(text, flush=True)
    return not found


if __name__ == "__main__":
    sys.exit(main())
