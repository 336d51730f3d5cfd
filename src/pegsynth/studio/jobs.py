"""The one command that a project runs at a time: started, watched, stopped."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pegsynth.errors import DataError
from pegsynth.studio.runner import LOCK, LOG, PROGRESS, STATUS
from pegsynth.tables.atomic import atomic_text, lock

FOLDER, WORDS, PROCESS = ".studio", "job.words", "job.pid"
_PATIENCE = 0.5
_BEGUN_WITHIN = 20.0
_MOST_LOG = 20_000


@dataclass(frozen=True)
class Job:
    """What is known of the last command.

    Parameters
    ----------
    words
        The command without ``pegs``; empty where none was run.
    running, status
        Whether it still runs, and its exit status once it has ended; None where it was killed.
    stage, done, total
        How far it is, as it told.
    log
        What it said.
    """

    words: tuple[str, ...] = ()
    running: bool = False
    status: int | None = None
    stage: str = ""
    done: int = 0
    total: int | None = None
    log: str = ""

    @property
    def command(self) -> str:
        """Return the command line."""
        return shlex.join(("pegs", *self.words))

    @property
    def step(self) -> str:
        """Return the step whose page it was started from."""
        if self.words[:2] == ("schema", "count"):
            return "codebook"
        return {"schema": "table", "compare": "results"}.get("".join(self.words[:1]), "release")

    @property
    def outcome(self) -> str:
        """Say in a few words how it went."""
        if self.running:
            return "running"
        if self.status == 0:
            return "done"
        if self.status is None:
            return "ended without a word: the machine or the process was stopped"
        return "stopped" if self.status in (-signal.SIGTERM, 128 + signal.SIGTERM) else "refused"


def start(project: Path, words: Sequence[str]) -> None:
    """Start a command in the project's folder.

    The lock is taken here and handed on to the process that runs the command, so that two pages
    cannot start two.

    Raises
    ------
    DataError
        Another command of this project is running.
    """
    folder = own_folder(project)
    handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if not _taken(handle):
            raise DataError("another command of this project is running; wait for it or stop it")
        for name in (STATUS, PROGRESS, LOG):
            (folder / name).unlink(missing_ok=True)
        atomic_text(folder / WORDS, json.dumps(list(words)), mode=0o600)
        runner = subprocess.Popen(
            [sys.executable, "-m", "pegsynth.studio.runner", str(folder), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[handle],
        )
        atomic_text(folder / PROCESS, str(runner.pid), mode=0o600)
    finally:
        os.close(handle)
    # Somebody has to take note of its end, or it stays in the list of processes.
    threading.Thread(target=runner.wait, daemon=True).start()


def _taken(handle: int) -> bool:
    """Take the lock; a page that only looks holds it for a moment, so try for a while."""
    until = time.monotonic() + _PATIENCE
    while not (locked := lock(handle, wait=False)) and time.monotonic() < until:
        time.sleep(0.02)
    return locked


def current(project: Path) -> Job:
    """Return the last command of a project and how far it is."""
    folder = own_folder(project)
    try:
        words = tuple(json.loads((folder / WORDS).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return Job()
    running = _is_locked(folder)
    stage, done, total = _progress(folder)
    return Job(
        words, running, None if running else _status(folder), stage, done, total, _log(folder)
    )


def stop(project: Path) -> None:
    """Ask the running command to stop; it tidies up first."""
    folder = own_folder(project)
    until = time.monotonic() + _BEGUN_WITHIN
    while _is_locked(folder) and not (folder / LOG).exists() and time.monotonic() < until:
        time.sleep(0.05)
    if _is_locked(folder):
        with suppress(OSError, ValueError):
            os.kill(int((folder / PROCESS).read_text()), signal.SIGTERM)


def own_folder(project: Path) -> Path:
    """Return where the studio keeps its own files of a project; made if it is not there."""
    folder = project / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _is_locked(folder: Path) -> bool:
    handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        return not lock(handle, wait=False)
    finally:
        os.close(handle)


def _status(folder: Path) -> int | None:
    try:
        return int((folder / STATUS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _progress(folder: Path) -> tuple[str, int, int | None]:
    try:
        stage, done, total = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
        return str(stage), int(done), None if total is None else int(total)
    except (OSError, ValueError, TypeError):
        return "", 0, None


def _log(folder: Path) -> str:
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(max(0, (folder / LOG).stat().st_size - _MOST_LOG))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
