"""Releases at full load: ``python -m checks.faults.soak [--seconds 3600] [--processes 2]``.

Every process runs the commands ``release`` and ``evaluate`` again and again, unseeded, in one
interpreter, and notes after each cycle its cost, its memory, its open files, its threads, and
two figures of the release. `checks.faults.steadiness` judges the notes.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from unittest import mock

from checks.bench.timing import Clock
from checks.faults.places import make_place
from checks.faults.steadiness import Note, judge, told

SIZES = {"long": 5_000, "short": 300}
"""Rows of the original and of each synthetic table; the short one has few features."""

_LEAKS: list[object] = []
# Seeded: the z-test keeps its rate only for many cycles, and an idle run makes few.
_STEADY = random.Random(1)
_FEWEST_CYCLES = 20
_LEAKED_BYTES = 4 << 20
_FIXED_TIMES = 8


def cycle(folder: Path, rows: int) -> tuple[float, float]:
    """Release and evaluate once; return two figures: pair distance and predictive power."""
    where = ("--schema", folder / "schema.toml")
    budget = ("--epsilon", 3, "--rows", rows, "--rows-in", rows, "--threads", 1)
    _pegs("release", folder / "data.csv", *where, *budget, "--force", "-o", folder / "run")
    synthetic = folder / "run" / "public" / "synthetic-1.csv"
    measures = ("--json", folder / "metrics.json", "--report", folder / "report.html")
    target = ("--target", (folder / "target").read_text(), "--threads", 1)
    _pegs("evaluate", folder / "data.csv", synthetic, *where, *target, *measures)
    summary = json.loads((folder / "metrics.json").read_text())["summary"]
    return summary["tvd2"], summary["auc_synthetic"]


def idle_cycle(folder: Path, rows: int) -> tuple[float, float]:
    """Do next to nothing, steadily: what the machinery itself costs."""
    time.sleep(0.05)
    return _STEADY.gauss(0.1, 0.01), _STEADY.gauss(0.7, 0.01)


def leaking_cycle(folder: Path, rows: int) -> tuple[float, float]:
    """Do the same, and keep memory, a file and a thread each time: the twin to be caught."""
    _LEAKS.append(b"x" * _LEAKED_BYTES)
    _LEAKS.append((folder / "data.csv").open("rb"))
    waiting = threading.Thread(target=threading.Event().wait, daemon=True)
    waiting.start()
    return idle_cycle(folder, rows)


CYCLES: dict[str, Callable[[Path, int], tuple[float, float]]] = {
    "release": cycle,
    "idle": idle_cycle,
    "leaking": leaking_cycle,
}


def _pegs(*arguments: object) -> None:
    """Run the command in this process."""
    from pegsynth.cli.main import main

    errors = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["pegs", *map(str, arguments)]),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                raise RuntimeError(f"pegs ended with {leaving.code}: {errors.getvalue()}") from None


def work(folder: Path, seconds: float, *, size: str, kind: str) -> None:
    """Run cycles for some time, enough to judge; append a note of each to ``notes.jsonl``."""
    rows = SIZES[size]
    _write_table(folder, size)
    end = time.monotonic() + seconds
    made = 0
    with (folder / "notes.jsonl").open("w") as notes:
        while time.monotonic() < end or (made < _FEWEST_CYCLES and kind != "release"):
            made += 1
            with Clock() as cycle_clock:
                distance, power = CYCLES[kind](folder, rows)
            with Clock() as fixed_clock:
                fixed_work()
            gc.collect()
            note = Note(
                time.time(),
                cycle_clock.seconds,
                cycle_clock.processor,
                fixed_clock.seconds,
                fixed_clock.processor,
                _resident_bytes(),
                len(os.listdir("/proc/self/fd")),
                threading.active_count(),
                distance,
                power,
            )
            notes.write(json.dumps(asdict(note)) + "\n")
            notes.flush()


def fixed_work() -> int:
    """Do the same every time, in Python and in memory: what the machine can do at the moment."""
    import numpy as np

    found = 0
    for _ in range(_FIXED_TIMES):
        numbers = (np.arange(1 << 20, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> 44
        places = np.sort(numbers).astype(np.int64)
        found += int(np.bincount(numbers.astype(np.int64), minlength=1 << 20)[places].sum())
        found += len({str(number) for number in range(100_000)})
    return found


def _write_table(folder: Path, size: str) -> None:
    """Write the table, its schema, and what is to be predicted."""
    if size == "short":
        make_place(folder, rows=SIZES[size], parts=1)
        (folder / "target").write_text("I(amount > 500)")
        return
    from pegsynth.datasets import discharge, discharge_schema

    discharge(SIZES[size], seed=1).write_csv(folder / "data.csv")
    discharge_schema().save(folder / "schema.toml")
    (folder / "target").write_text("I(charge > 25000)")


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def soak(
    folder: Path, seconds: float, *, processes: int = 2, size: str = "long", kind: str = "release"
) -> list[list[Note]]:
    """Run several processes side by side; return the notes of each."""
    children = []
    for number in range(processes):
        own = folder / str(number)
        own.mkdir(parents=True)
        line = ["--worker", str(own), "--seconds", str(seconds), "--size", size, "--kind", kind]
        one = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "checks.faults.soak", *line]
        children.append(subprocess.Popen(command, env={**os.environ, **one}))
    codes = [child.wait() for child in children]
    if any(codes):
        raise RuntimeError(f"a process ended with {codes}")
    return [_notes(folder / str(number) / "notes.jsonl") for number in range(processes)]


def _notes(path: Path) -> list[Note]:
    return [Note(**json.loads(line)) for line in path.read_text().splitlines()]


def main() -> None:
    """Run the soak, or one process of it; status 1 if anything is not steady."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--size", choices=SIZES, default="long")
    parser.add_argument("--kind", choices=CYCLES, default="release")
    parser.add_argument("--worker", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, default=None, help="JSON of all notes")
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.seconds, size=options.size, kind=options.kind)
        return
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        runs = soak(
            Path(folder),
            options.seconds,
            processes=options.processes,
            size=options.size,
            kind=options.kind,
        )
    if options.output:
        content = [[asdict(note) for note in run] for run in runs]
        options.output.write_text(json.dumps(content) + "\n")
    try:
        verdicts = judge(runs)
    except ValueError as error:
        sys.exit(f"soak: {error}; run it for longer")
    print(told(runs, verdicts))
    sys.exit(not all(each.met for each in verdicts))


if __name__ == "__main__":
    main()
