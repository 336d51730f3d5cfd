"""The command ``pegs`` with a fault built in; run as ``python -m checks.faults.driver ARGUMENTS``.

Environment variables choose the fault:

``FAULT_STEP``
    Kill this process just before its n-th step that changes a name in the folder
    ``FAULT_FOLDER``; 0 kills nothing and writes the number of steps to ``FAULT_COUNT``.
``FAULT_OFTEN``
    Write a checkpoint after every file, and take the time to be killed in between.
``FAULT_BOOK``
    Keep the budget book in a broken way, which a campaign must catch: ``late`` writes the
    reservation when all is done, ``removed`` takes the old book away before the new one is there.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_STEPS = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
_FOREIGN = "ctypes.call_function"


def main() -> None:
    """Set up the fault, then be the command."""
    if "FAULT_STEP" in os.environ:
        _count_steps(int(os.environ["FAULT_STEP"]), os.environ["FAULT_FOLDER"])
    if "FAULT_OFTEN" in os.environ:
        from pegsynth.codec import codec
        from pegsynth.methods import checkpoint

        codec._ROWS_TOGETHER = 1
        checkpoint.SECONDS_BETWEEN = 0.0
        checkpoint.Checkpoint.due = property(lambda self: time.sleep(0.05) or True)  # type: ignore[assignment]
    if "FAULT_BOOK" in os.environ:
        from checks.faults.broken_books import BROKEN

        BROKEN[os.environ["FAULT_BOOK"]]()
    from pegsynth.cli.main import main as pegs

    sys.argv[0] = "pegs"
    pegs()


def _count_steps(fatal: int, folder: str) -> None:
    """Die before step `fatal`; the system tells of every step before it is taken."""
    counted = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal counted
        ours = event in _STEPS and any(_inside(each, folder) for each in arguments)
        if not ours and event != _FOREIGN:
            return
        counted += 1
        if counted == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def tell() -> None:
        Path(os.environ["FAULT_COUNT"]).write_text(str(counted))

    if not fatal:
        import atexit

        atexit.register(tell)
    sys.addaudithook(watch)


def _inside(name: object, folder: str) -> bool:
    return isinstance(name, str | os.PathLike) and os.fspath(name).startswith(folder)


if __name__ == "__main__":
    main()
