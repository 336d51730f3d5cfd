"""The command ``pegs`` for tests: in this process for speed, or in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from checks.fuzz.oracle import Outcome, run

SECRET = "SECRET-4711"
PEGS = (sys.executable, "-m", "pegsynth.cli.main")


def pegs(*arguments: object) -> Outcome:
    """Run the command in this process."""
    outcome = run([str(argument) for argument in arguments])
    assert not outcome.error, outcome.error
    return outcome


def pegs_process(*arguments: object, **options: object) -> Outcome:
    """Run the command as a user does."""
    done = subprocess.run(
        [*PEGS, *map(str, arguments)],
        capture_output=True,
        timeout=600,
        check=False,
        **options,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def done(*arguments: object) -> Outcome:
    """Run the command in this process; it must succeed."""
    outcome = pegs(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def check_refused(outcome: Outcome, *names: object) -> None:
    """One readable message that names `names`, exit status 2, and no value of the data.

    `release` may have said before which method it takes.
    """
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert SECRET not in outcome.err
    if outcome.err.startswith("Usage: "):
        assert outcome.err.count("\nError: ") == 1
    else:
        message = re.sub(r"\AMethod: .*\n", "", outcome.err)
        assert message.startswith("pegs: ")
        assert "\npegs: " not in message
    assert outcome.err.endswith("\n")
    for name in names:
        assert str(name) in outcome.err, outcome.err


def bytes_written(process: subprocess.Popen[bytes]) -> int:
    """Return how much a running process has written to files and pipes; Linux only."""
    try:
        lines = Path(f"/proc/{process.pid}/io").read_text().splitlines()
    except (OSError, ValueError):
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes; folders with None."""
    found = {}
    for root, folders, files in os.walk(folder):
        found |= {os.path.join(root, name): None for name in folders}
        for name in files:
            path = Path(root, name)
            found[str(path)] = path.read_bytes() if path.is_file() else None
    return found


def review(schema: Path) -> Path:
    """Do what a reviewer does: declare a drafted schema public."""
    text = schema.read_text()
    assert re.search(r"^reviewed = false$", text, re.MULTILINE)
    schema.write_text(text.replace("reviewed = false", "reviewed = true"))
    return schema
