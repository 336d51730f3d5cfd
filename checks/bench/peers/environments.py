"""One virtual environment for each peer: their requirements contradict each other and ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = "PEGSYNTH_BENCH_ENVS"
DEFAULT_FOLDER = ".bench-envs"

# torch is only imported, not used, by what is measured; naming it keeps pip from choosing
# a build of many gigabytes where a smaller one of the same version is at hand.
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "dpmm": ("dpmm==0.1.9", "numpy==1.26.4", "pandas==2.1.0"),
    "smartnoise": ("smartnoise-synth==1.0.8", "mbi==1.1.0", "torch==2.13.0"),
    "opendp": ("opendp[mbi,polars]==0.16.0", "pandas==2.3.3"),
    "datasynthesizer": ("DataSynthesizer==0.1.13",),
    "sdv": ("sdv==2.0.0", "torch==2.13.0"),
}


class InstallError(RuntimeError):
    """An environment could not be built."""


def environments_folder() -> Path:
    """Return the folder of all environments, from the variable or the default."""
    return Path(os.environ.get(FOLDER) or DEFAULT_FOLDER).resolve()


def python_of(name: str, folder: Path) -> Path:
    """Return the Python of a peer's environment; build it when it is missing or outdated.

    Parameters
    ----------
    name
        A key of `REQUIREMENTS`, or "" for the environment that runs this.
    folder
        Where environments are kept.

    Raises
    ------
    InstallError
        pip did not manage.
    """
    if not name:
        return Path(sys.executable)
    place = folder / name
    stamp = place / "installed.json"
    wanted = list(REQUIREMENTS[name])
    if not (stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == wanted):
        _build(place, wanted)
        stamp.write_text(json.dumps(wanted), encoding="utf-8")
    return place / "bin" / "python"


def _build(place: Path, requirements: list[str]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    venv = [sys.executable, "-m", "venv", str(place)]
    for command in (venv, [str(place / "bin" / "python"), *install]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InstallError(f"{' '.join(requirements)} did not install:\n{done.stderr[-2000:]}")
