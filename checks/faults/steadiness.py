"""Judge whether a long run was steady: notes of its cycles in, a verdict on each figure out.

The first tenth of the time is a warm-up and not judged. Means of figures are compared between
the halves of the rest by a z-test; its false-alarm rate is `ALPHA` for each figure. A machine
is not always as fast, so the cost of cycles is told in units of fixed work done beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median, variance

ALPHA = 1e-6
WARM_UP = 0.1
MOST_GROWTH = 0.03
LEAST_GROWTH_BYTES = 24 << 20
MOST_SLOWDOWN = 0.05
MOST_HANDLES = 2
FEWEST = 8


@dataclass(frozen=True)
class Note:
    """What was seen of one cycle, and of the fixed work that followed it.

    Parameters
    ----------
    time
        When the cycle ended.
    seconds, processor
        What the cycle took, by the wall and by the processor.
    fixed_seconds, fixed_processor
        What the fixed work took.
    """

    time: float
    seconds: float
    processor: float
    fixed_seconds: float
    fixed_processor: float
    resident: int
    handles: int
    threads: int
    distance: float
    power: float


@dataclass(frozen=True)
class Verdict:
    """One figure of one process: what was found, what is allowed, and whether it is met."""

    what: str
    found: str
    allowed: str
    met: bool


def judge(runs: Sequence[Sequence[Note]]) -> list[Verdict]:
    """Judge the notes of each process, and the throughput of all together.

    Raises
    ------
    ValueError
        A process has made too few cycles to say anything.
    """
    fewest = min(len(_warm(run)) for run in runs)
    if fewest < FEWEST:
        raise ValueError(f"only {fewest} cycles after warming up; {FEWEST} are needed to judge")
    verdicts = []
    for number, run in enumerate(runs, start=1):
        warm = _warm(run)
        name = f"process {number}"
        verdicts.append(_memory(f"{name}: memory", warm))
        verdicts.append(_level(f"{name}: open files", [note.handles for note in warm]))
        verdicts.append(_level(f"{name}: threads", [note.threads for note in warm]))
        verdicts.append(_drift(f"{name}: distance of pairs", [note.distance for note in warm]))
        verdicts.append(_drift(f"{name}: predictive power", [note.power for note in warm]))
    return [*verdicts, *_speeds(runs)]


def _warm(run: Sequence[Note]) -> list[Note]:
    if not run:
        return []
    start = run[0].time + WARM_UP * (run[-1].time - run[0].time)
    return [note for note in run if note.time >= start]


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Return the median of the slopes between notes half a run apart (Theil and Sen's idea)."""
    half = len(times) // 2
    pairs = zip(times, times[half:], values, values[half:], strict=False)
    return median((later - sooner) / (end - start) for start, end, sooner, later in pairs)


def _memory(what: str, run: Sequence[Note]) -> Verdict:
    times = [note.time for note in run]
    sizes = [float(note.resident) for note in run]
    growth = slope(times, sizes) * (times[-1] - times[0])
    allowed = max(MOST_GROWTH * median(sizes), LEAST_GROWTH_BYTES)
    return Verdict(
        what, f"{growth / 2**20:+.1f} MiB", _most(allowed / 2**20, "MiB"), growth <= allowed
    )


def _level(what: str, values: Sequence[int]) -> Verdict:
    tenth = max(len(values) // 10, 1)
    more = median(values[-tenth:]) - median(values[:tenth])
    return Verdict(what, f"{more:+g}", _most(MOST_HANDLES, ""), more <= MOST_HANDLES)


def _drift(what: str, values: Sequence[float]) -> Verdict:
    half = len(values) // 2
    first, second = values[:half], values[half:]
    spread = math.sqrt(variance(first) / len(first) + variance(second) / len(second))
    difference = fmean(second) - fmean(first)
    z = abs(difference) / spread if spread else math.inf if difference else 0.0
    allowed = NormalDist().inv_cdf(1 - ALPHA / 2)
    return Verdict(what, f"{difference:+.2g} (z {z:.1f})", f"z at most {allowed:.1f}", z <= allowed)


def _speeds(runs: Sequence[Sequence[Note]]) -> list[Verdict]:
    """Compare the cost of cycles in the last tenth of the time with those after warming up."""
    start = max(_warm(run)[0].time for run in runs)
    end = min(run[-1].time for run in runs)
    tenth = (end - start) / 10
    notes = [note for run in runs for note in run]
    first = [note for note in notes if start <= note.time <= start + tenth]
    last = [note for note in notes if end - tenth <= note.time <= end]
    return [
        _cost("all: time of a cycle", *(_against_fixed_work(part) for part in (first, last))),
        _cost(
            "all: processor time of a cycle",
            *(_against_fixed_work(part, by_processor=True) for part in (first, last)),
        ),
    ]


def _against_fixed_work(notes: Sequence[Note], *, by_processor: bool = False) -> float:
    """Return the mean cost of cycles in units of the fixed work beside them."""
    if by_processor:
        return sum(n.processor for n in notes) / sum(n.fixed_processor for n in notes)
    return sum(n.seconds for n in notes) / sum(n.fixed_seconds for n in notes)


def _cost(what: str, first: float, last: float) -> Verdict:
    more = last / first - 1
    found = f"{first:.2f} then {last:.2f} times the fixed work ({100 * more:+.1f} %)"
    # 5 % less throughput is this much more time.
    allowed = 1 / (1 - MOST_SLOWDOWN) - 1
    return Verdict(what, found, _most(100 * allowed, "% more"), more <= allowed)


def _most(value: float, unit: str) -> str:
    return f"at most {value:.3g} {unit}".rstrip()


def told(runs: Sequence[Sequence[Note]], verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a table."""
    cycles = sum(map(len, runs))
    hours = max(run[-1].time - run[0].time for run in runs) / 3600
    lines = [f"{cycles} cycles in {len(runs)} processes, {hours:.2f} hours.", ""]
    lines += ["| figure | found | allowed | met |", "|---|---|---|---|"]
    lines += [
        f"| {v.what} | {v.found} | {v.allowed} | {'yes' if v.met else 'NO'} |" for v in verdicts
    ]
    return "\n".join(lines)
