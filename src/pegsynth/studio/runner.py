"""Runs one command of ``pegs`` for the studio and notes how it ended.

``python -m pegsynth.studio.runner FOLDER WORDS..`` is a process of its own: it outlives a server
that is killed, holds the lock that it was handed, and writes the exit status when the command has
ended. A stop is passed on to the command, which tidies up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from pegsynth.tables.atomic import atomic_text

LOCK, LOG, STATUS, PROGRESS = "job.lock", "job.log", "job.status", "job.progress"


def main() -> int:
    """Run the command that the arguments name; return its exit status."""
    folder, *words = sys.argv[1:]
    job = Path(folder)
    commands: list[subprocess.Popen[bytes]] = []
    asked: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        asked.append(number)
        for command in commands:
            command.send_signal(number)

    signal.signal(signal.SIGTERM, stop)
    # Whoever wants to stop us waits for the log: from here on a stop is heard.
    with os.fdopen(os.open(job / LOG, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as log:
        command = subprocess.Popen(
            [sys.executable, "-m", "pegsynth.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=job.parent,
            env={**os.environ, "PEGSYNTH_PROGRESS": str(job / PROGRESS)},
        )
        commands.append(command)
        # A stop that came while the command was being started found nothing to pass it on to.
        # Blocking the signal would not do: another thread of a library may take it.
        for number in asked[:1]:
            command.send_signal(number)
        status = command.wait()
    atomic_text(job / STATUS, str(status), mode=0o600)
    return status


if __name__ == "__main__":
    sys.exit(main())
