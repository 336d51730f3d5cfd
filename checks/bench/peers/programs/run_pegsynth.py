"""Our own methods, by `pegsynth.synthesize` or by the command, on a table of codes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
from exchange import Job, serve

from pegsynth import Feature, Schema, synthesize

WARM_ROWS = 1000


def public_schema(domain: dict[str, int]) -> Schema:
    """Ordinal features of whole numbers 0 .. levels - 1, and nothing read off the data."""
    features = [
        Feature(name, "ordinal", tuple(map(str, range(levels))), dtype="int64")
        for name, levels in domain.items()
    ]
    return Schema(tuple(features), reviewed=True)


def frame_of(job: Job) -> pl.DataFrame:
    return pl.DataFrame(job.codes.astype(np.int64), schema=list(job.domain))


def told(job: Job, rows_in: int) -> dict[str, Any]:
    """Return the public choices of a run on `rows_in` rows."""
    settings = {name: value for name, value in job.settings.items() if name != "command"}
    return {**settings, "epsilon": job.epsilon, "delta": job.delta, "rows_in": rows_in}


def prepare(job: Job) -> pl.DataFrame:
    """Load every kernel by a run on a few rows, or write the files of the command."""
    frame, schema = frame_of(job), public_schema(job.domain)
    if job.settings.get("command"):
        frame.write_parquet(job.folder / "train.parquet")
        schema.save(job.folder / "schema.toml")
    else:
        few = frame.head(WARM_ROWS)
        synthesize(few, schema, rows=len(few), **told(job, len(few)))
    return frame


def fit_and_sample(job: Job, frame: pl.DataFrame) -> pl.DataFrame:
    """One step: what the front door does."""
    choices = told(job, len(frame))
    if not job.settings.get("command"):
        schema = public_schema(job.domain)
        return synthesize(frame, schema, rows=job.rows, **choices).frames[0]
    flags = [
        text
        for name, value in {**choices, "rows": job.rows}.items()
        if value is not None
        for text in (f"--{name.replace('_', '-')}", str(value))
    ]
    command = [
        sys.executable,
        "-m",
        "pegsynth.cli.main",
        "synthesize",
        job.folder / "train.parquet",
    ]
    files = ["--schema", job.folder / "schema.toml", "-o", job.folder / "out.parquet"]
    subprocess.run([*map(str, [*command, *files]), *flags], check=True, stdout=subprocess.DEVNULL)
    return pl.read_parquet(job.folder / "out.parquet")


def codes_of(job: Job, frame: pl.DataFrame) -> np.ndarray:
    return frame.select(list(job.domain)).to_numpy()


if __name__ == "__main__":
    serve(fit_and_sample, codes_of, ("pegsynth", "numpy", "numba"), prepare)
