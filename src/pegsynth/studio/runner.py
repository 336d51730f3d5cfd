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

from pegsynth.io.atomic import atomic_text

LOCK, LOG, STATUS, PROGRESS = "job.lock", "job.log", "job.status", "job.progress"


def main() -> int:
    """Run the command that the arguments name; return its exit status."""
    folder, *words = sys.argv[1:]
    job = Path(folder)
    commands: list[subprocess.Popen[bytes]] = []

    def stop(number: int, _: FrameType | None) -> None:
        for command in commands:
            command.send_signal(number)

    signal.signal(signal.SIGTERM, stop)
    # Whoever wants to stop us waits for the log: from here on a stop is heard.
    with os.fdopen(os.open(job / LOG, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as log:
        # A stop waits while the command is being started, and reaches it then.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        command = subprocess.Popen(
            [sys.executable, "-m", "pegsynth.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=job.parent,
            env={**os.environ, "PEGSYNTH_PROGRESS": str(job / PROGRESS)},
            preexec_fn=_unblocked,  # noqa: PLW1509 (this process has no threads)
        )
        commands.append(command)
        _unblocked()
        status = command.wait()
    atomic_text(job / STATUS, str(status), mode=0o600)
    return status


def _unblocked() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


if __name__ == "__main__":
    sys.exit(main())
