"""What a case is, and how one is run and judged."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from checks.fuzz import corpus, oracle
from checks.fuzz.forked import Readers

MOST_SECONDS = 10.0
MOST_MEMORY = 2 << 30
REVIEW = "review"

Command = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """Files for the folder ``in`` and the commands that read them, until one fails.

    Parameters
    ----------
    files
        Names, with ``out/`` before those that a command may replace, and bytes.
    commands
        Arguments of ``pegs``; ``review FILE`` does what a reviewer does. Paths are relative
        to the folder that holds ``good``, ``in`` and ``out``.
    calls
        Functions of the library to call instead, for readers that no command has.
    """

    files: Mapping[str, bytes]
    commands: tuple[Command, ...] = ()
    calls: tuple[Callable[[], object], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Verdict:
    """What came of a case; `crashed` counts processes of readers that a signal ended."""

    faults: tuple[str, ...]
    code: int
    seconds: float
    memory: int
    detail: str = ""
    crashed: int = 0


Make = Callable[[random.Random, Path], Case]
NO_READERS = Readers(0.0, 0, 0, 0)


def source_of(seed: int, target: str, number: int) -> random.Random:
    """Return the random numbers of one case."""
    return random.Random(f"{seed} {target} {number}")


def prepare(root: Path) -> None:
    """Make the folders of a worker and its corpus, and go there."""
    root.mkdir(parents=True, exist_ok=True)
    os.chdir(root)
    for name in ("in", "out"):
        (root / name).mkdir(exist_ok=True)
    if not (root / "good" / "counts.resume").exists():
        corpus.build(Path("good"))


def run_case(
    case: Case, root: Path, seen: list[str], readers: Callable[[], Readers] = lambda: NO_READERS
) -> Verdict:
    """Put a case's files in place, run its commands and judge them.

    Parameters
    ----------
    seen
        What the watch over this process fills, see `oracle.watch`.
    readers
        Says what processes that read for this one took since it was last asked.
    """
    for name in ("in", "out"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
    for name, content in case.files.items():
        (root / (name if name.startswith("out/") else f"in/{name}")).write_bytes(content)
    before = oracle.surroundings(root)
    seen.clear()
    _forget_peak()
    resting = _memory("VmRSS")
    started = time.process_time()
    with _captured() as spoken:
        found, code, detail = _run_commands(case)
    read = readers()
    seconds = time.process_time() - started + read.seconds
    memory = max(_memory("VmHWM") - resting, read.memory)
    found += seen
    if read.stuck:
        found.append("hang: a reader went on when the command had ended")
    native = spoken.pop() if spoken else ""
    if native:
        found.append("output that bypasses Python: " + native.splitlines()[0][:80])
    if any(secret in native for secret in oracle.SECRETS):
        found.append("secret: a value of the data is on standard error")
    if oracle.surroundings(root) != before:
        found.append("write outside of the output folder")
    if oracle.canary(root):
        found.append("execution: the canary is there")
    if code == 0:
        found += oracle.output_faults(root / "out")
    if seconds > MOST_SECONDS:
        found.append("hang: more than 10 s")
    if memory > MOST_MEMORY:
        found.append("memory: more than 2 GiB")
    return Verdict(tuple(found), code, seconds, memory, detail + native, read.crashed)


def _run_commands(case: Case) -> tuple[list[str], int, str]:
    found: list[str] = []
    code, detail = 0, ""
    for command in case.commands:
        if command[0] == REVIEW:
            corpus.review(Path(command[1]))
            continue
        before = oracle.files_below(Path("out"))
        outcome = oracle.run(command)
        found += oracle.faults(command, outcome)
        found += oracle.written_faults(Path("out"), before, outcome)
        code, detail = outcome.code, outcome.error + outcome.err
        if code or outcome.error:
            break
    for call in case.calls:
        outcome = oracle.call(call)
        found += oracle.faults(("call",), outcome)
        code, detail = outcome.code, outcome.error + outcome.err
    return found, code, detail


@contextlib.contextmanager
def _captured() -> Iterator[list[str]]:
    """Yield a list that gets what compiled code wrote to standard error."""
    spoken: list[str] = []
    kept = os.dup(2)
    handle = os.memfd_create("native")
    os.dup2(handle, 2)
    try:
        yield spoken
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        size = os.lseek(handle, 0, os.SEEK_END)
        spoken.append(os.pread(handle, size, 0).decode(errors="replace"))
        os.close(handle)


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _memory(name: str) -> int:
    """Return a figure of this process in bytes; 0 where the system does not tell."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as handle:
        for line in handle:
            if line.startswith(name):
                return int(line.split()[1]) << 10
    return 0
