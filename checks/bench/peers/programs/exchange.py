"""What a program inside a peer's environment reads and writes; NumPy and nothing of ours.

The folder that is the program's only argument holds ``job.json``: where the training codes
lie, the domain (column name to number of levels), how many rows to draw, the budget, the
seed and the settings of the tool. The program leaves ``synthetic.npy`` and ``times.json``
there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Job:
    """One fit and one draw.

    Parameters
    ----------
    folder
        Where the program may write.
    codes
        Training rows, one column of codes 0 .. levels - 1 per entry of `domain`.
    domain
        Public: levels of each column, in column order.
    epsilon, delta
        Total budget; None where the tool takes none.
    seed
        The number of the repeat, for tools that would otherwise repeat themselves.
    """

    folder: Path
    codes: np.ndarray
    domain: dict[str, int]
    rows: int
    epsilon: float | None
    delta: float | None
    seed: int
    settings: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Job:
        """Read ``job.json`` and the codes it points at."""
        told = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        return cls(folder=folder, codes=np.load(told.pop("train")), **told)

    def frame(self) -> Any:
        """Return the training rows as a pandas table of 64-bit integers."""
        import pandas as pd

        return pd.DataFrame(self.codes.astype(np.int64), columns=list(self.domain))


def serve(
    fit: Callable[[Job, Any], Any],
    sample: Callable[[Job, Any], Any],
    packages: tuple[str, ...],
    prepare: Callable[[Job], Any] = Job.frame,
) -> None:
    """Fit, draw, and write rows, times and versions.

    Parameters
    ----------
    fit
        Returns the model fitted to what `prepare` returned; its time is the fit's.
    sample
        Returns `Job.rows` rows of codes, as anything NumPy can make a matrix of.
    packages
        Distributions whose versions are worth knowing.
    prepare
        Brings the training rows into the form that `fit` takes, before the clock starts.
    """
    job = Job.read(Path(sys.argv[1]))
    prepared = prepare(job)
    start = clocks()
    model = fit(job, prepared)
    fitted = clocks()
    drawn = np.asarray(sample(job, model))
    end = clocks()
    np.save(job.folder / "synthetic.npy", drawn.astype(np.int64))
    times = {
        "fit": fitted[0] - start[0],
        "fit_cpu": fitted[1] - start[1],
        "sample": end[0] - fitted[0],
        "sample_cpu": end[1] - fitted[1],
        "versions": {name: version(name) for name in packages},
    }
    (job.folder / "times.json").write_text(json.dumps(times), encoding="utf-8")


def clocks() -> tuple[float, float]:
    """Wall time, and processor time of this process and its finished children."""
    spent = os.times()
    return time.perf_counter(), sum(spent[:4])
