"""Measuring: figures, interleaved repeats, and programs run to their end.

Times on a shared machine are noisy, so nothing here is judged by a time alone: what we
do and what it is compared with are run in turn, the best of the repeats counts, and every
figure carries the load of the machine when it was taken.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Parameters
    ----------
    what
        What was measured, in words.
    value
        The number that is judged: a ratio, or seconds.
    asked
        The largest value that is good enough; None for a figure that is only reported.
    ours, reference
        What was measured on either side, in `unit`; no reference for plain times.
    note
        Anything a reader should know beside the number.
    """

    what: str
    value: float
    asked: float | None
    ours: float
    reference: float | None = None
    unit: str = "s"
    note: str = ""
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def met(self) -> bool | None:
        """Whether the figure is good enough; None when nothing is asked."""
        return None if self.asked is None else self.value <= self.asked


class Clock:
    """Takes the time of a block, by the wall and by the processor."""

    def __enter__(self) -> Clock:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        wall, busy = self._start
        self.seconds = time.perf_counter() - wall
        self.processor = time.process_time() - busy


@dataclass(frozen=True)
class Finished:
    """A program that ended well: its time, by the wall and by the processor, and its memory."""

    seconds: float
    peak_bytes: int
    output: str
    processor: float


def best_of(work: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Run all pieces of work in turn, `repeats` times; return the best time of each."""
    return _best_by(time.perf_counter, work, repeats)


def processor_time(work: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the least processor time of each, over all threads of this process.

    What else runs on the machine hardly changes it, so it says what an idle one would do.
    """
    return _best_by(time.process_time, work, repeats)


def _best_by(
    clock: Callable[[], float], work: Mapping[str, Callable[[], object]], repeats: int
) -> dict[str, float]:
    best = dict.fromkeys(work, float("inf"))
    for _ in range(repeats):
        for name, piece in work.items():
            start = clock()
            piece()
            best[name] = min(best[name], clock() - start)
    return best


def run_program(
    command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a program to its end; raise if it fails.

    A small program of ours starts it, so that the memory recorded for it does not begin
    with that of this process.
    """
    # Installed programs have their modules compiled; so have ours when they are timed.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", _LAUNCHER, *map(str, command)],
        capture_output=True,
        text=True,
        errors="replace",
        env={**inherited, **(environment or {})},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with status {done.returncode}:\n{done.stderr}")
    *output, seconds, processor, peak = done.stdout.rsplit("\n", 4)[:-1]
    return Finished(float(seconds), int(peak) * 1024, "\n".join(output), float(processor))


_LAUNCHER = """
import os, sys, time
start = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
busy = usage.ru_utime + usage.ru_stime
print("", time.perf_counter() - start, busy, usage.ru_maxrss, sep="\\n")
sys.exit(os.waitstatus_to_exitcode(status))
"""
