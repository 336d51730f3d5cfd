"""Released blocks: seconds and memory from a Parquet file to as many synthetic rows.

Every figure is taken in a process of its own: the kernels are loaded by a release of a few
rows, then a whole table is read, its blocks released at a total epsilon of 1 and delta of
1e-9, and rows drawn. Memory is that of the whole process. Adult is measured where
``PEGSYNTH_BENCH_DATA`` names its folder, as `checks.bench.peers` reads it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from checks.bench.foundation import SEED, THREADS, Setting, invented
from checks.bench.peers.tables import NoDataError, data_folder, load
from checks.bench.timing import MEBIBYTE, Figure, run_program
from pegsynth import Feature, Schema, synthesize
from pegsynth.datasets import discharge

MOST_BYTES = 1 << 30
WIDE_FEATURES = 100
WARM_ROWS = 1_000
_RUNS = 3


def released(setting: Setting) -> Iterator[Figure]:
    """Time and memory of `pegs-once` on tables of several sizes."""
    for what, asked, table, schema, rows in _tables(setting):
        command = [sys.executable, "-m", "checks.bench.released", table, schema, str(rows)]
        done = run_program(command)
        seconds = float(done.output.split()[-1])
        name = f"pegs-once, {what}, {rows:,} rows"
        yield Figure(f"{name}, warm", seconds, asked, seconds)
        memory = done.peak_bytes / MEBIBYTE
        yield Figure(f"{name}: memory / 1 GiB", done.peak_bytes / MOST_BYTES, 1, memory, unit="MiB")


def _tables(setting: Setting) -> Iterator[tuple[str, float, Path, Path, int]]:
    """Yield a name, the seconds that are good enough, a table, its schema, and its rows."""
    try:
        yield ("Adult", 2, *adult(setting))
    except NoDataError as error:
        print(f"passed over: {error}", flush=True)
    schema = setting.folder / "discharge.toml"
    Schema.draft(discharge(setting.rows, seed=SEED)).reviewed_by("nobody").save(schema)
    for rows, asked in ((setting.rows // 5, 3), (setting.rows, 10)):
        table = setting.folder / f"discharge-{rows}.parquet"
        discharge(rows, seed=SEED).write_parquet(table)
        yield "built-in discharges by their draft", asked, table, schema, rows
    counts, generator = [5] * WIDE_FEATURES, np.random.default_rng(SEED)
    table, schema = invented(setting, "hundred", setting.wide_rows, counts, generator)
    yield f"{WIDE_FEATURES} features", 60, table, schema, setting.wide_rows


def adult(setting: Setting) -> tuple[Path, Path, int]:
    codes = load("adult", data_folder())
    table, schema = setting.folder / "adult.parquet", setting.folder / "adult.toml"
    pl.DataFrame(codes.train.astype(np.int64), schema=list(codes.domain)).write_parquet(table)
    features = [
        Feature(name, "ordinal", tuple(map(str, range(levels))), dtype="int64")
        for name, levels in codes.domain.items()
    ]
    Schema(tuple(features), reviewed=True).save(schema)
    return table, schema, len(codes.train)


def measure(table: Path, schema: Path, rows: int, *, runs: int = _RUNS) -> float:
    """Return the best of some runs, in seconds."""

    def release(data: object, rows: int) -> None:
        budget = {"epsilon": 1.0, "delta": 1e-9}
        synthesize(data, schema, method="pegs-once", rows=rows, threads=THREADS, **budget)

    release(pl.read_parquet(table, n_rows=WARM_ROWS), min(WARM_ROWS, rows))
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        release(table, rows)
        best = min(best, time.perf_counter() - start)
    return best


FIGURES: dict[str, Callable[[Setting], Iterable[Figure]]] = {"released": released}

if __name__ == "__main__":
    print(measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
