"""A campaign: cases of all targets in processes that may crash, hang or grow, and a record.

``python -m checks.fuzz.run --cases 100000`` goes on where it stopped; ``--only csv:1234`` runs one
case again and shows what it does.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checks.fuzz.cases import MOST_SECONDS, prepare, run_case, source_of
from checks.fuzz.targets import TARGETS

LOT = 200
WORKER = ("-m", "checks.fuzz.worker")
_LEAVING_SECONDS = 5.0
_STARTING_SECONDS = 300.0
_GRACE_SECONDS = 50.0


@dataclass
class Record:
    """What a campaign has done: the next case of each target, outcomes and findings.

    `crashed` counts cases whose reader was ended by a signal, which a command must survive.
    """

    seed: int = 1
    next: dict[str, int] = field(default_factory=dict)
    codes: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)
    crashed: dict[str, int] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many cases were run in all."""
        return sum(self.next.values())

    def note(self, target: str, number: int, line: dict[str, Any]) -> None:
        """Take in the verdict on one case."""
        self.next[target] = number + 1
        self.codes.setdefault(target, Counter())[str(line.get("code", "lost"))] += 1
        self.slowest[target] = max(self.slowest.get(target, 0.0), line.get("seconds", 0.0))
        if line.get("crashed"):
            self.crashed[target] = self.crashed.get(target, 0) + 1
        for fault in line.get("faults", ()):
            self.findings.append(
                {"target": target, "case": number, "fault": fault, "detail": line.get("detail", "")}
            )

    def save(self, path: Path) -> None:
        """Write the record, whole or not at all."""
        new = path.with_suffix(".new")
        new.write_text(json.dumps(vars(self), indent=1))
        new.replace(path)

    @classmethod
    def load(cls, path: Path, seed: int) -> Record:
        """Read the record of an earlier run with the same seed, or start one."""
        if not path.exists():
            return cls(seed)
        found = cls(**json.loads(path.read_text()))
        found.codes = {name: Counter(codes) for name, codes in found.codes.items()}
        return found if found.seed == seed else cls(seed)


class Worker:
    """A process that runs cases, watched from here."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._report = -1
        self._rest = b""

    def run(self, target: str, first: int, end: int, record: Record) -> None:
        """Run cases; one that ends or stops the process is noted, and the rest go on."""
        number = first
        while number < end:
            self._start()
            if self._process is None or self._process.stdin is None:
                raise RuntimeError("the worker did not start")
            self._process.stdin.write(f"{target} {number} {end} {record.seed}\n".encode())
            self._process.stdin.flush()
            number = self._follow(target, number, end, record)

    def _follow(self, target: str, number: int, end: int, record: Record) -> int:
        # Seconds of the clock here, on a machine that may be busy; a worker counts its own.
        seconds = MOST_SECONDS + _GRACE_SECONDS
        while True:
            line = self._line(seconds)
            if line is None:
                record.note(target, number, {"faults": [self._buried()]})
                return number + 1
            if "done" in line:
                record.note(target, line["done"], line)
                number = line["done"] + 1
            elif "end" in line:
                return end

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        ours, theirs = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, *WORKER, str(theirs), str(self._root)],
            stdin=subprocess.PIPE,
            pass_fds=(theirs,),
            cwd=Path(__file__).parents[2],
            env={**os.environ, "RUST_BACKTRACE": "0", "PEGSYNTH_TRACEBACK": ""},
        )
        os.close(theirs)
        self._report, self._rest = ours, b""
        if self._line(_STARTING_SECONDS) is None:
            raise RuntimeError("the worker did not start")

    def _line(self, seconds: float) -> dict[str, Any] | None:
        """Return the next line of the worker; None when it has died or hangs."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._report], [], [], seconds)
            piece = os.read(self._report, 1 << 16) if ready else b""
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _buried(self) -> str:
        """End a process that hangs, and say what became of it."""
        if self._process is None:
            return "crash"
        hangs = False
        try:
            self._process.wait(_LEAVING_SECONDS)
        except subprocess.TimeoutExpired:
            hangs = True
            self._process.kill()
            self._process.wait()
        self.close()
        return (
            "hang: had to be stopped" if hangs else f"crash: exit status {self._process.returncode}"
        )

    def close(self) -> None:
        """Let the process end."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
        if self._report >= 0:
            os.close(self._report)
            self._report = -1


def campaign(
    record: Record,
    root: Path,
    *,
    cases: int,
    seconds: float,
    targets: tuple[str, ...] = tuple(TARGETS),
    equal: bool = False,
    lot: int = LOT,
    saved: Path | None = None,
) -> None:
    """Run cases of all targets in turn until there are `cases` in all, or time is up.

    Targets have the shares of `TARGETS`, or the same share each.
    """
    worker = Worker(root)
    shares = {name: 1 if equal else TARGETS[name][0] for name in targets}
    until = time.monotonic() + seconds
    try:
        while (left := cases - record.cases) > 0 and time.monotonic() < until:
            behind = min(shares, key=lambda name: record.next.get(name, 0) / shares[name])
            first = record.next.get(behind, 0)
            worker.run(behind, first, first + min(lot, left), record)
            if saved is not None:
                record.save(saved)
    finally:
        worker.close()


def summary(record: Record) -> str:
    """Return a table of what was run and a list of what was found, each kind once."""
    titles = ("cases", "read", "refused", "crashed", "slowest", "findings")
    lines = [f"{'target':<10}" + "".join(f"{title:>9}" for title in titles)]
    for name in record.next:
        codes = record.codes.get(name, Counter())
        faulty = len({each["case"] for each in record.findings if each["target"] == name})
        lines.append(
            f"{name:<10}{record.next[name]:>9,}{codes['0'] + codes['1']:>9,}{codes['2']:>9,}"
            f"{record.crashed.get(name, 0):>9,}{record.slowest.get(name, 0):>8.2f}s{faulty:>9}"
        )
    lines.append(f"{'in all':<10}{record.cases:>9,}")
    kinds = Counter((each["target"], each["fault"]) for each in record.findings)
    firsts = {(e["target"], e["fault"]): e["case"] for e in reversed(record.findings)}
    lines += [
        f"{count:>6} x {target}:{firsts[target, fault]} {fault}"
        for (target, fault), count in kinds.most_common()
    ]
    return "\n".join(lines)


def again(name: str, number: int, seed: int, root: Path) -> int:
    """Run one case in this process and show what it does."""
    root = root.resolve()
    prepare(root)
    case = TARGETS[name][1](source_of(seed, name, number), root)
    verdict = run_case(case, root, [])
    print(*case.commands, sep="\n")
    print(verdict.detail)
    print(f"exit {verdict.code}, {verdict.seconds:.2f} s, {verdict.memory >> 20} MiB")
    print("\n".join(verdict.faults) or "nothing is wrong")
    print(f"its files are in {root}")
    return 1 if verdict.faults else 0


def main() -> int:
    """Run a campaign, or one case of it."""
    parser = argparse.ArgumentParser(prog="python -m checks.fuzz.run", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="cases in all")
    parser.add_argument("--seconds", type=float, default=7200.0, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", default=",".join(TARGETS), help="names with commas")
    parser.add_argument("--equal", action="store_true", help="as many cases of every target")
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"), help="folder of the record")
    parser.add_argument("--only", metavar="TARGET:CASE", help="run one case again")
    flags = parser.parse_args()
    flags.out.mkdir(parents=True, exist_ok=True)
    if flags.only:
        name, _, number = flags.only.partition(":")
        return again(name, int(number), flags.seed, flags.out / "again")
    saved = flags.out / "record.json"
    record = Record.load(saved, flags.seed)
    with tempfile.TemporaryDirectory(prefix="pegs-fuzz-", dir=_quick_folder()) as folder:
        campaign(
            record,
            Path(folder, "work"),
            cases=flags.cases,
            seconds=flags.seconds,
            targets=tuple(flags.targets.split(",")),
            equal=flags.equal,
            saved=saved,
        )
    print(summary(record))
    return 1 if record.findings else 0


def _quick_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    sys.exit(main())
