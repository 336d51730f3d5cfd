"""Kill or stop commands many times over: ``python -m checks.faults.run [--kills 200] [--seed 1]``.

Moments are drawn by a seed. A fifth of them fall into the start of Python, the others are
spread over the rest of the run. Then every command is killed just before steps that change a
name, the last ones above all, which no random moment would hit for sure. ``--stop`` sends
SIGTERM and Ctrl-C in turn instead of kills, and no steps: commands then have to tidy up.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from checks.faults.booking import BookCampaign
from checks.faults.kill import DRIVER, Campaign, Case
from checks.faults.places import make_place
from checks.faults.spending import SpendingCampaign
from checks.faults.works import WORKS, Work

START_SHARE = 0.2
MOST_STEPS = 20


def start_seconds() -> float:
    """Return the time in which a command does nothing but start."""
    started = time.monotonic()
    subprocess.run([*DRIVER, "fit", "--help"], capture_output=True, check=True)
    return time.monotonic() - started


def moments(count: int, start: float, whole: float, source: random.Random) -> Iterator[float]:
    """Yield moments of a run: some in its start, most in its work, a few just after."""
    for _ in range(count):
        if source.random() < START_SHARE:
            yield source.uniform(0.0, start)
        else:
            yield source.uniform(start, 1.05 * whole)


def campaigns(folder: Path, works: Iterable[Work]) -> Iterator[Campaign]:
    """Yield a campaign for each work, in a place of its own, and two that spend a budget."""
    for number, work in enumerate(works):
        yield Campaign(make_place(folder / f"place-{number}"), work)
    yield SpendingCampaign(make_place(folder / "spending"))
    yield BookCampaign(make_place(folder / "book"))


def run(
    folder: Path, *, kills: int, seed: int, stop: bool, steps: bool, book: bool = False
) -> list[Case]:
    """Kill or stop `kills` times at random moments, shared out evenly, then at every step."""
    signals = itertools.cycle((signal.SIGTERM, signal.SIGINT) if stop else (signal.SIGKILL,))
    source = random.Random(seed)
    start = start_seconds()
    cases: list[Case] = []
    share = kills if book else -(-kills // (len(WORKS) + 2))
    chosen = [BookCampaign(make_place(folder / "book"))] if book else campaigns(folder, WORKS)
    for each in chosen:
        for seconds in moments(min(share, kills), start, each.seconds, source):
            cases.append(each.kill_at(seconds, next(signals)))
            _say(cases[-1])
        kills -= share
        for step in _some(each.steps()) if steps else ():
            cases.append(each.kill_before(step))
            _say(cases[-1])
    return cases


def _some(steps: int) -> list[int]:
    """Return all steps if they are few, else the last ones and some of those before."""
    last = max(steps - MOST_STEPS // 2, 0)
    before = range(1, last + 1, max(last // (MOST_STEPS // 2), 1))
    return [*before, *range(last + 1, steps + 1)]


def _say(case: Case) -> None:
    print(f"{case.work}, {case.moment}: {case.state} {'; '.join(case.faults)}", flush=True)


def summary(cases: list[Case]) -> str:
    """Return a table of works, kills and what they left."""
    lines = ["| command | kills | old | new | finished | faults |", "|---|---|---|---|---|---|"]
    for work in dict.fromkeys(case.work for case in cases):
        own = [case for case in cases if case.work == work]
        states = Counter(case.state for case in own)
        faults = sum(bool(case.faults) for case in own)
        counts = " | ".join(str(states[state]) for state in ("old", "new", "finished"))
        lines.append(f"| {work} | {len(own)} | {counts} | {faults} |")
    return "\n".join(lines)


def main() -> None:
    """Run the campaign and say what it found; status 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stop", action="store_true", help="SIGTERM and Ctrl-C, no kills")
    parser.add_argument("--book", action="store_true", help="the budget book alone")
    parser.add_argument("--no-steps", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=None, help="JSON of all cases")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        cases = run(
            folder,
            kills=options.kills,
            seed=options.seed,
            stop=options.stop,
            steps=not (options.stop or options.no_steps),
            book=options.book,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.output:
        options.output.write_text(json.dumps([asdict(case) for case in cases], indent=1) + "\n")
    print(summary(cases))
    sys.exit(any(case.faults for case in cases))


if __name__ == "__main__":
    main()
