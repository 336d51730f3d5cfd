"""Which program made a ledger: its version and, where that is known, its commit.

Somebody who learns of an error in a version can tell by it whether a release is concerned.
The commit comes from the first of these that knows it: the wheel, if its builder said
so (``PEGSYNTH_COMMIT``); the record of an installation from a repository; git, if the
program runs from a checkout. Otherwise it is left out. Nothing here runs on import.
"""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.runtime import __version__

BUILD_FILE = "_build.json"
"""Written into a wheel by ``tools/wheel_commit.py``."""

_PACKAGE = Path(__file__).resolve().parent.parent
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SHOWN = 10
_MOST_TEXT = 100
_GIT_SECONDS = 10


class Program(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One program that took part in a release.

    Parameters
    ----------
    version
        Version of pegsynth.
    commit
        The commit that its source is of; empty where that is not known.
    changed
        Whether its source differs from that commit.
    """

    version: str
    commit: str = ""
    changed: bool = False

    def __post_init__(self) -> None:
        if not 0 < len(self.version) <= _MOST_TEXT:
            raise ParameterError("a program has a version of at most 100 characters")
        if self.commit and not _COMMIT.fullmatch(self.commit):
            raise ParameterError("the commit of a program is 40 or 64 hexadecimal digits")

    def __str__(self) -> str:
        if not self.commit:
            return f"pegsynth {self.version}"
        changed = ", with changes" if self.changed else ""
        return f"pegsynth {self.version} (commit {self.commit[:_SHOWN]}{changed})"


@lru_cache(maxsize=1)
def this_program() -> Program:
    """Return the program that is running."""
    for source in (_of_build, _of_installation, _of_checkout):
        commit, changed = source(_PACKAGE)
        if _COMMIT.fullmatch(commit):
            return Program(version=__version__, commit=commit, changed=changed)
    return Program(version=__version__)


_UNKNOWN = ("", False)


def _of_build(package: Path) -> tuple[str, bool]:
    """Return the commit that the builder of the wheel stated."""
    try:
        return _text(json.loads((package / BUILD_FILE).read_text("utf-8")), "commit"), False
    except (OSError, ValueError):
        return _UNKNOWN


def _of_installation(package: Path) -> tuple[str, bool]:
    """Return the commit that pip wrote down when it installed from a repository."""
    from importlib import metadata

    try:
        installed = metadata.distribution("pegsynth")
        # Another copy may be installed than the one that runs.
        if Path(str(installed.locate_file("pegsynth"))).resolve() != package:
            return _UNKNOWN
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        return _text(origin.get("vcs_info", {}), "commit_id"), False
    except (metadata.PackageNotFoundError, OSError, ValueError, AttributeError):
        return _UNKNOWN


def _of_checkout(package: Path) -> tuple[str, bool]:
    """Ask git for the commit of the checkout that the package runs from, if it does."""
    import subprocess

    root = package.parent.parent
    if package.parent.name != "src" or not (root / ".git").exists() or not _is_ours(root):
        return _UNKNOWN
    # Git must look at this checkout and change nothing in it, whatever the caller's
    # environment says.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ("git", "-C", str(root), "status", "--porcelain=v2", "--branch", "--", "src")
    try:
        done = subprocess.run(
            command,
            env=environment | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return _UNKNOWN
    lines = done.stdout.splitlines()
    commits = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    changed = any(not line.startswith("# ") for line in lines)
    return (commits[0], changed) if commits else _UNKNOWN


def _is_ours(root: Path) -> bool:
    """Whether a folder is the root of this project and not of one that holds a copy of it."""
    try:
        text = (root / "pyproject.toml").read_text("utf-8")
    except (OSError, ValueError):
        return False
    return re.search(r'^name = "pegsynth"$', text, re.MULTILINE) is not None


def _text(content: object, name: str) -> str:
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, str) else ""
