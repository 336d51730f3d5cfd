"""Kill a command, look at what is left, and let it finish.

`Campaign` holds a place with the outputs of an earlier run and a reference result of the
work. Every `case` starts from there: kill at a moment or at a step, check, run again.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from polars.exceptions import PolarsError

from checks.faults.places import Place, leaks
from checks.faults.works import (
    BrokenError,
    Work,
    whole_csv,
    whole_ledger,
    whole_record,
    whole_table,
)
from pegsynth.cli.signals import STOPPED
from pegsynth.errors import PegsynthError
from pegsynth.privacy import Ledger
from pegsynth.storage.model_file import load_model

DRIVER = (sys.executable, "-m", "checks.faults.driver")
ROOT = Path(__file__).resolve().parents[2]
LONGEST = 600.0
_CRASHES = ("Traceback", "Exception ignored", "panicked", "internal error")


@dataclass(frozen=True)
class End:
    """How a command ended that was sent a signal.

    Parameters
    ----------
    status, errors
        As the system gives them.
    ready
        Whether the command itself answered signals at that time, and not Python, which does
        before and after.
    notes
        What the command tells when nobody stops it. A stop may come after it was told.
    """

    status: int
    number: int = signal.SIGKILL
    errors: str = ""
    ready: bool = True
    notes: str = ""

    @property
    def orderly(self) -> bool:
        """Whether the command was asked to stop, and did so itself."""
        return self.status == 128 + self.number

    @property
    def faults(self) -> list[str]:
        """What is wrong with the way it ended."""
        expected = (0, 128 + self.number, -self.number)
        if not self.ready:
            return []
        found = [] if self.status in expected else [f"exit status {self.status}"]
        found += [word for word in _CRASHES if word in self.errors]
        if self.orderly and not self._says_so:
            found.append("another message than that of a stop")
        return found

    @property
    def _says_so(self) -> bool:
        """Whether the last message is that of a stop, after some of the usual notes in order."""
        before, said, after = self.errors.partition(f"pegs: {STOPPED}\n")
        return bool(said) and not after and self.notes.startswith(before)

    @property
    def cut_short(self) -> bool:
        """Whether the system ended a command that should have stopped by itself."""
        stopping = self.number != signal.SIGKILL and self.ready
        return stopping and self.status == -self.number


@dataclass(frozen=True)
class Case:
    """One kill and what came of it.

    Parameters
    ----------
    state
        ``old``, ``new`` or ``finished`` (it ended before it was killed).
    faults
        What is wrong; empty if all is well.
    """

    work: str
    moment: str
    state: str
    faults: tuple[str, ...]


def environment(place: Place, work: Work, **more: str) -> dict[str, str]:
    """Return the variables of a command: its temporary files go to the place."""
    path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    own = {"TMPDIR": str(place.temporary), "PYTHONPATH": path}
    return {**os.environ, **own, **work.environment, **more}


def finish(place: Place, work: Work, *, first: bool = False, **more: str) -> tuple[float, str]:
    """Run a command to its end; return its time and what it told."""
    started = time.monotonic()
    done = subprocess.run(
        [*DRIVER, *work.line(place, first=first)],
        env=environment(place, work, **more),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    if done.returncode != 0:
        raise BrokenError(f"{work.name}: ended with {done.returncode}: {done.stderr[-500:]}")
    return time.monotonic() - started, done.stderr


class Campaign:
    """One work in one place, to be killed many times."""

    def __init__(self, place: Place, work: Work) -> None:
        self.place, self.work = place, work
        self._kept = place.folder / "kept"
        if work.first != "":
            finish(place, work, first=True)
        shutil.copytree(place.out, self._kept)
        self._old = self._look()
        self.seconds, self._notes = finish(place, work)
        self._reference = self._contents()
        self._seen = {str(self._reference)}
        self._restore()

    def steps(self) -> int:
        """Return how many steps of the work change a name."""
        count = self.place.folder / "count"
        finish(self.place, self.work, **self._fault(0), FAULT_COUNT=str(count))
        self._restore()
        return int(count.read_text())

    def kill_at(self, seconds: float, number: int = signal.SIGKILL) -> Case:
        """Send a signal some time after the command's start."""
        child = subprocess.Popen(
            [*DRIVER, *self.work.line(self.place)],
            env=environment(self.place, self.work),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        ready = True
        try:
            _, errors = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            ready = _answers(child.pid)
            child.send_signal(number)
            _, errors = child.communicate(timeout=LONGEST)
        end = End(child.returncode, number, errors, ready, self._notes)
        return self._judge(f"{seconds:.2f} s", end)

    def kill_before(self, step: int) -> Case:
        """Let the command kill itself just before one of its steps."""
        done = subprocess.run(
            [*DRIVER, *self.work.line(self.place)],
            env=environment(self.place, self.work, **self._fault(step)),
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
        return self._judge(f"step {step}", End(done.returncode))

    def _fault(self, step: int) -> dict[str, str]:
        return {"FAULT_STEP": str(step), "FAULT_FOLDER": str(self.place.folder)}

    def _judge(self, moment: str, end: End) -> Case:
        faults = list(end.faults)
        state = "finished"
        try:
            if end.status != 0:
                state = self._state()
            faults += self._strangers()
            faults += self._after_stop(end, state)
            finish(self.place, self.work)
            faults += self._after_rerun()
        except (BrokenError, PegsynthError, OSError, ValueError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        self._restore()
        return Case(self.work.name, moment, state, tuple(faults))

    def _state(self) -> str:
        """Say whether outputs are old or new; a mixture that claims too much is broken."""
        now = self._look()
        for name, check in self.work.whole.items():
            if name in now and now[name] != self._old.get(name):
                check(self.place.out / name)
        same = [now.get(name) == self._old.get(name) for name in self.work.whole]
        if missing := [name for name in self._old if name not in now]:
            raise BrokenError(f"{missing} were there before and are gone")
        table, *ledger = self.work.whole
        if ledger and ledger[0].endswith(".privacy.json") and same[0]:
            self._check_promise(table, ledger[0])
        return "old" if same[0] else "new"

    def _check_promise(self, table: str, ledger: str) -> None:
        """See that an old table has no ledger that promises more than its own did."""
        if table not in self._old:
            return
        now, before = (
            Ledger.from_json(path.read_bytes())
            for path in (self.place.out / ledger, self._kept / ledger)
        )
        if now.epsilon is not None and (before.epsilon is None or now.epsilon < before.epsilon):
            raise BrokenError(f"{table} is old, and its ledger promises more than it did")

    def _strangers(self) -> list[str]:
        """Look into every file that nobody asked for."""
        found = [f"{path} in TMPDIR" for path in self.place.temporary.rglob("*")]
        for path in self.place.out.rglob("*"):
            top = path.relative_to(self.place.out).parts[0]
            asked = top in self.work.allowed or (top in self.work.whole and top.endswith(".pegs"))
            if not path.is_file() or asked:
                continue
            secrets = [f"{what} in {top}" for what in leaks(path, self.place)]
            if path == self.place.out / top and top.startswith(".pegs-"):
                secrets += ["a file that others may read"] * bool(path.stat().st_mode & 0o077)
                secrets = [] if _finished(path) else secrets
            found += secrets
        return found

    def _after_stop(self, end: End, state: str) -> list[str]:
        """Say what a command that was asked to stop should have done otherwise."""
        hidden = self.place.out.rglob(".pegs-*") if end.orderly else ()
        found = [f"{path.name} was left behind" for path in hidden]
        # Python stops answering in its very last moments, when all is done.
        return found + ["ended by the signal"] * (end.cut_short and state != "new")

    def _after_rerun(self) -> list[str]:
        now = self._contents()
        if self.work.seeded:
            return [] if now == self._reference else ["the rerun differs from the reference"]
        repeated = str(now) in self._seen
        self._seen.add(str(now))
        return ["an unseeded rerun repeats an earlier result"] if repeated else []

    def _look(self) -> dict[str, object]:
        names = [name for name in self.work.whole if (self.place.out / name).exists()]
        return {name: _bytes(self.place.out / name) for name in names}

    def _contents(self) -> dict[str, object]:
        return {name: self.work.compared(self.place.out / name) for name in self.work.whole}

    def _restore(self) -> None:
        shutil.rmtree(self.place.out)
        shutil.copytree(self._kept, self.place.out)


def _bytes(path: Path) -> object:
    if path.is_file():
        return path.read_bytes()
    return {str(each.relative_to(path)): _bytes(each) for each in path.rglob("*") if each.is_file()}


def _answers(process: int) -> bool:
    """Whether a process has a handler of its own for SIGTERM; Python has none."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def _finished(path: Path) -> bool:
    """Whether a hidden file is a whole output, as a kill just before its last rename leaves it.

    It was to appear beside this name in the next moment, with the same permissions.
    """
    for check in (load_model, whole_ledger, whole_table, whole_csv, whole_record):
        try:
            check(path)
        except (PegsynthError, BrokenError, OSError, ValueError, PolarsError):
            continue
        return True
    return False
