"""Where the time of a command goes, stage by stage: ``python -m checks.bench.stages``.

Runs ``pegs synthesize`` and ``pegs release`` by ``pegs-once`` at a total epsilon of 1, each in a
process of its own. A thread looks at the stack of the main thread every few milliseconds; the
wall and processor time since its last look belong to the stage that it finds there. Names of
files say what the stage is, those of earlier code, too::

    python -m checks.bench.stages --tables adult 200k --commands synthesize --against main

Adult is measured where ``PEGSYNTH_BENCH_DATA`` names its folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

EPSILON, DELTA = "1", "1e-9"
COMMANDS = ("synthesize", "release")
TABLES = ("adult", "200k", "1m", "50-columns", "100-columns")
LOOK = 0.003
ROOT = Path(__file__).parent.parent.parent

STAGES = (
    *("import", "read", "encode", "count", "choose", "fit", "draw", "decode", "write"),
    *("evaluate", "report", "other"),
)
_PLACES: tuple[tuple[str, str], ...] = (
    ("importlib", "import"),
    ("kernels/warm", "import"),
    ("numba/core", "import"),
    ("pegsynth/publishing/", "report"),
    ("pegsynth/evaluation/", "evaluate"),
    ("pegsynth/tables/table_output", "write"),
    ("pegsynth/tables/atomic", "write"),
    ("pegsynth/tables/", "read"),
    ("drawn_tables.py:decoded", "decode"),
    ("codec.py:decode", "decode"),
    ("shape", "decode"),
    ("released/counted", "count"),
    ("released/_values", "count"),
    ("pegsynth/codec/pair_counts", "count"),
    ("pegsynth/codec/", "encode"),
    ("released/first_round", "choose"),
    ("released/rounds", "choose"),
    ("released/_choosing", "choose"),
    ("released/joint_fit", "fit"),
    ("released/_joint_fit", "fit"),
    ("released/pair_", "fit"),
    ("released/_pair_pool", "fit"),
    ("released/_pairs", "fit"),
    ("released/hidden_classes", "fit"),
    ("released/_latent_classes", "fit"),
    ("released/fit", "fit"),
    ("released/_fit", "fit"),
    ("released/draw", "draw"),
    ("released/_draw", "draw"),
    ("replicates", "draw"),
)
"""Parts of file and function, and their stage; the innermost frame with a stage decides."""
_WHOLE = ("draw", "evaluate")
"""Whatever is called by these belongs to them, but for imports."""


def stage_of(frame: FrameType | None) -> str:
    """Return the stage that a stack is in."""
    names = []
    while frame is not None:
        names.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}".replace(os.sep, "/"))
        frame = frame.f_back
    found = [stage for name in reversed(names) if (stage := _stage_of_name(name))]
    if "import" in found:
        return "import"
    return next((each for each in found if each in _WHOLE), found[-1] if found else "other")


def _stage_of_name(name: str) -> str | None:
    return next((stage for part, stage in _PLACES if part in name), None)


class Looking(threading.Thread):
    """Adds up the time of every stage of the main thread until it is told to end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.wall: Counter[str] = Counter()
        self.processor: Counter[str] = Counter()
        self._main, self._end = threading.get_ident(), threading.Event()

    def run(self) -> None:
        """Look until the end."""
        before = time.perf_counter(), time.process_time()
        while True:
            done = self._end.wait(LOOK)
            stage = stage_of(sys._current_frames().get(self._main))
            now = time.perf_counter(), time.process_time()
            self.wall[stage] += now[0] - before[0]
            self.processor[stage] += now[1] - before[1]
            before = now
            if done:
                return

    def end(self) -> dict[str, dict[str, float]]:
        """Stop looking; return seconds by stage."""
        self._end.set()
        self.join()
        return {"processor": dict(self.processor), "wall": dict(self.wall)}


def watched(arguments: list[str]) -> dict[str, dict[str, float]]:
    """Run a command in this process; return the time of its stages."""
    looking = Looking()
    looking.start()
    from pegsynth.cli.main import main

    try:
        main(arguments)
    except SystemExit as left:
        if left.code:
            raise
    return looking.end()


def measured(source: Path, arguments: list[str]) -> dict[str, dict[str, float]]:
    """Run a command by the code of some tree in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--watch", *arguments],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def trees(against: str | None) -> Iterator[dict[str, Path]]:
    """Yield the sources to measure: ours, and those of another commit in a tree of its own."""
    ours = {"now": ROOT / "src"}
    if against is None:
        yield ours
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--detach", str(tree), against], check=True, stdout=sys.stderr)
        try:
            yield {against: tree / "src", **ours}
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def made(name: str, folder: Path, scale: float) -> tuple[Path, Path, int]:
    """Write a table and its schema; return both and the number of rows."""
    import numpy as np

    from checks.bench.foundation import SEED, Setting, invented
    from checks.bench.released import adult
    from pegsynth import Schema
    from pegsynth.datasets import discharge

    setting = Setting(folder)
    if name == "adult":
        return adult(setting)
    if name.endswith("columns"):
        rows, columns = int(100_000 * scale), int(name.partition("-")[0])
        generator = np.random.default_rng(SEED)
        return *invented(setting, name, rows, [5] * columns, generator), rows
    rows = int({"200k": 200_000, "1m": 1_000_000}[name] * scale)
    table, schema = folder / f"{name}.parquet", folder / f"{name}.toml"
    frame = discharge(rows, seed=SEED)
    frame.write_parquet(table)
    Schema.draft(frame).reviewed_by("nobody").save(schema)
    return table, schema, rows


def lines(command: str, name: str, found: dict[str, dict[str, dict[str, float]]]) -> Iterator[str]:
    """Yield the lines of one table: stages, and processor and wall time by every code."""
    yield f"\npegs {command}, {name}\n"
    yield "| stage |" + "".join(f" {code}: processor | wall |" for code in found)
    yield "|---|" + "---|---|" * len(found)
    kinds = [each[kind] for each in found.values() for kind in ("processor", "wall")]
    for stage in STAGES:
        if any(each.get(stage, 0.0) >= 0.005 for each in kinds):
            yield f"| {stage} |" + "".join(f" {each.get(stage, 0.0):.2f} |" for each in kinds)
    yield "| all |" + "".join(f" {sum(each.values()):.2f} |" for each in kinds)


def main(say: Callable[[str], None] = print) -> None:
    """Print a table of stages for every command and table."""
    parser = argparse.ArgumentParser(prog="checks.bench.stages", description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=COMMANDS)
    parser.add_argument("--against", metavar="COMMIT", help="also measure the code of a commit")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the rows of tables")
    asked = parser.parse_args()
    say(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as place, trees(asked.against) as sources:
        folder = Path(place)
        for name in asked.tables:
            table, schema, rows = made(name, folder, asked.scale)
            for command in asked.commands:
                found = {}
                for number, (code, source) in enumerate(sources.items()):
                    output = folder / f"{command}-{name}-{number}"
                    output = output.with_suffix(".csv") if command == "synthesize" else output
                    told = [command, str(table), "--schema", str(schema), "--method", "pegs-once"]
                    told += ["--epsilon", EPSILON, "--delta", DELTA, "--rows", str(rows)]
                    found[code] = measured(source, [*told, "-o", str(output)])
                for each in lines(command, name, found):
                    say(each)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--watch"]:
        sys.stdout.write("\n" + json.dumps(watched(sys.argv[2:])) + "\n")
    else:
        main()
