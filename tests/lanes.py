"""Long forms of tests, which `make test-all` adds; each has a short form in `make test`."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

ALL = bool(os.environ.get("PEGSYNTH_ALL"))
"""Whether long forms run too."""

long_form = pytest.mark.long_form


def longer(*values: object, **marked: str) -> object:
    """Parameters of a long form; the others of the same test are its short form."""
    return pytest.param(*values, marks=long_form, **marked)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that `make` fills once for all workers of a run; the others wait for it."""
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = root / name, root / f"{name}.done"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
