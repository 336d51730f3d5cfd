"""Runs one tool on one table in its own environment, under a cap, and scores what it wrote."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

import pegsynth
from checks.bench.peers.environments import REQUIREMENTS, python_of
from checks.bench.peers.results import Key, Result, Status
from checks.bench.peers.scores import score
from checks.bench.peers.tables import Table
from checks.bench.peers.tools import Tool
from pegsynth.errors import DataError

LAUNCHER = Path(__file__).parent / "launcher.py"
Clock = Literal["processor", "wall"]
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


@dataclass(frozen=True)
class Setting:
    """Where things are kept, and how long a run may take.

    Parameters
    ----------
    output
        Folder of tables, logs, synthetic rows and results.
    environments
        Folder of the peers' environments.
    cap
        Seconds that a run may take by `clock`.
    clock
        ``processor``: what an idle machine would need; ``wall``: what this one needs.
    """

    output: Path
    environments: Path
    cap: float = 600.0
    clock: Clock = "processor"


def build_of(tool: Tool) -> str:
    """Return what tells versions of a tool apart: its pins, or a digest of our source."""
    if tool.environment:
        what = " ".join(REQUIREMENTS[tool.environment])
    else:
        what = _source() if tool.group == "ours" else ""
    told = json.dumps(dict(tool.settings), sort_keys=True)
    return hashlib.sha256(f"{what} {told}".encode()).hexdigest()[:12]


def _source() -> str:
    root = Path(pegsynth.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def execute(tool: Tool, table: Table, key: Key, setting: Setting) -> Result:
    """Run a tool once.

    A run that fails or is ended by the cap is a result too. Its log, and the rows of a run
    that went well, stay in the output folder.
    """
    folder = setting.output / "jobs" / file_name(key)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _write_job(folder, tool, table, key, setting)
    measured = launch(folder, tool, setting)
    times, scores, status = _outcome(folder, table, measured)
    if status == "done":
        _keep_rows(folder, rows_file(key, setting.output), table)
        shutil.rmtree(folder)
    return Result(
        key=key,
        status=status,
        cap=setting.cap,
        date=datetime.now(UTC).date().isoformat(),
        rows=len(table.train),
        load=os.getloadavg()[0],
        wall=measured["wall"],
        cpu=measured["cpu"],
        peak_bytes=measured["peak_bytes"],
        scores=scores,
        **times,
    )


def file_name(key: Key) -> str:
    """Return a name for the files of a run."""
    parts = [str(part) for part in asdict(key).values() if part is not None]
    return "-".join(parts).replace(":", "_")


def rows_file(key: Key, output: Path) -> Path:
    """Return the file that keeps the rows of a run, for scores thought of later."""
    return output / "synthetic" / f"{file_name(key)}.npz"


def training_file(table: Table, output: Path) -> Path:
    """Return the file of the training codes, written once."""
    path = output / "tables" / f"{table.name.replace(':', '_')}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, table.train)
    return path


def _write_job(folder: Path, tool: Tool, table: Table, key: Key, setting: Setting) -> None:
    job = {
        "train": str(training_file(table, setting.output).resolve()),
        "domain": dict(table.domain),
        "rows": len(table.train),
        "epsilon": key.epsilon,
        "delta": None if key.epsilon is None else tool.delta,
        "seed": key.repeat,
        "settings": dict(tool.settings),
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def launch(folder: Path, tool: Tool, setting: Setting) -> dict[str, Any]:
    """Run the program of a tool under the cap; return what the launcher measured."""
    python = python_of(tool.environment, setting.environments)
    report = folder / "report.json"
    pin = "1" if tool.threads == 1 else "0"
    limits = [str(report), str(setting.cap), setting.clock, pin]
    command = [sys.executable, "-S", LAUNCHER, *limits, python, tool.program, folder]
    environment = {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(tool.threads))}
    # Programs of a peer must not see our packages.
    environment.pop("PYTHONPATH", None)
    with (folder / "log.txt").open("wb") as log:
        launcher = subprocess.Popen(
            [str(part) for part in command],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            launcher.wait()
        finally:
            if launcher.poll() is None:
                launcher.terminate()
                launcher.wait()
    if not report.exists():
        raise RuntimeError(f"the launcher left no report in {folder}; see log.txt there")
    told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return told


def _outcome(
    folder: Path, table: Table, measured: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, float], Status]:
    if measured["over"]:
        return {}, {}, "over"
    times, rows = folder / "times.json", folder / "synthetic.npy"
    if measured["status"] or not (times.exists() and rows.exists()):
        return {}, {}, "failed"
    told: dict[str, Any] = json.loads(times.read_text(encoding="utf-8"))
    try:
        return told, asdict(score(table, np.load(rows))), "done"
    except DataError as error:
        with (folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"\n{error}\n")
        return told, {}, "failed"


def _keep_rows(folder: Path, path: Path, table: Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.load(folder / "synthetic.npy").astype(table.train.dtype)
    np.savez_compressed(path, rows=rows)
