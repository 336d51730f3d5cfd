"""Debian packages that some tests need: skip where they are missing, fail under CI.

The list of packages and how each is found stands in ``tools/system-packages.sh``, which
``make test`` runs first.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "tools" / "system-packages.sh"


def require(package: str) -> None:
    """Go on if a package is there; else skip the test, or fail it under CI."""
    if is_installed(package):
        return
    reason = f"the Debian package {package} is missing; {SCRIPT.name} installs it"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@cache
def is_installed(package: str) -> bool:
    """Ask the script whether a package is there.

    Raises
    ------
    LookupError
        The script does not list the package.
    """
    done = subprocess.run(
        [SCRIPT, "--has", package], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode == 2:
        raise LookupError(done.stderr.strip())
    return done.returncode == 0
