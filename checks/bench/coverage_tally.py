"""Counts of intervals that held the truth, written release by release.

A run can be stopped and gone on with: releases that stand in the file are not made again.
Intervals of one release share its noise, so the standard error of a coverage is that of a
mean over releases.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median, stdev

HEADER = (
    "table", "epsilon", "method", "statistic", "rule", "coverage", "s.e.", "median width",
    "releases", "intervals",
)  # fmt: skip


@dataclass(frozen=True)
class Interval:
    """One interval: what it is about, whether it held the truth, and how wide it was.

    Parameters
    ----------
    width
        Multiple of the width of the original's own interval.
    """

    group: str
    rule: str
    covered: bool
    width: float


@dataclass(frozen=True)
class Release:
    """Which release of which run: everything that decides it."""

    table: str
    rows: int
    epsilon: float
    method: str
    seed: int


@dataclass(frozen=True)
class Tally:
    """What one release gave for one kind of statistic under one rule."""

    release: Release
    group: str
    rule: str
    hits: int
    intervals: int
    width: float


def tallied(release: Release, found: Iterable[Interval]) -> list[Tally]:
    """Count the intervals of one release."""
    groups: dict[tuple[str, str], list[Interval]] = {}
    for each in found:
        groups.setdefault((each.group, each.rule), []).append(each)
    return [
        Tally(
            release,
            group,
            rule,
            sum(each.covered for each in own),
            len(own),
            median(each.width for each in own),
        )
        for (group, rule), own in groups.items()
    ]


def read(path: Path) -> list[Tally]:
    """Return what a file holds; a last line that was cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return [Tally(**{**record, "release": Release(**record["release"])}) for record in records]


Measure = Callable[[Release], Iterable[Interval]]


def run(
    releases: Iterable[Release],
    measure: Measure,
    path: Path | None = None,
) -> list[Tally]:
    """Measure all releases, and write each as soon as it is there."""
    wanted = list(releases)
    found = [tally for tally in read(path) if tally.release in set(wanted)] if path else []
    done = {tally.release for tally in found}
    for release in wanted:
        if release in done:
            continue
        own = tallied(release, measure(release))
        found += own
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(tally)) + "\n" for tally in own)
    return found


def lines(tallies: Iterable[Tally]) -> Iterator[tuple[str, ...]]:
    """Yield one line for each kind of statistic, rule, method and budget."""
    groups: dict[tuple[object, ...], list[Tally]] = {}
    for each in tallies:
        at = each.release
        key = (at.table, at.rows, at.epsilon, at.method, each.group, each.rule)
        groups.setdefault(key, []).append(each)
    for (table, rows, epsilon, method, group, rule), own in sorted(groups.items(), key=_place):
        number = sum(each.intervals for each in own)
        coverage = sum(each.hits for each in own) / number
        yield (
            f"{table} {rows:,}", f"{epsilon:g}", str(method), str(group), str(rule),
            f"{coverage:.3f}", _error(own, coverage), f"{median(t.width for t in own):.2f}",
            str(len(own)), str(number),
        )  # fmt: skip


def _place(item: tuple[tuple[object, ...], list[Tally]]) -> tuple[object, ...]:
    return item[0]


def _error(own: list[Tally], coverage: float) -> str:
    """Return the standard error of a ratio of sums over releases."""
    if len(own) < 2:
        return ""
    mean = fmean(each.intervals for each in own)
    left = [(each.hits - coverage * each.intervals) / mean for each in own]
    return f"{stdev(left) / len(own) ** 0.5:.3f}"


def table(tallies: Iterable[Tally]) -> str:
    """Return a table in Markdown."""
    rows = [HEADER, ("---",) * len(HEADER), *lines(tallies)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
