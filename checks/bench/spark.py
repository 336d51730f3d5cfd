"""Spark on two workers of this machine against the local engine with two threads.

``python -m checks.bench.spark [--rows N] [--output FOLDER]`` runs these figures alone. The
start of Spark and its workers is not timed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from checks.bench import scale
from checks.bench.foundation import Setting
from checks.bench.timing import MEBIBYTE, Figure, run_program

MOST_TIMES_LOCAL = 4.0
MOST_GROWTH = 1.25


def spark(setting: Setting) -> Iterator[Figure]:
    """Compare times of fitting and sampling, and the driver's memory for a tenth and for all."""
    if shutil.which("java") is None:
        print("Spark is not measured: Java 17 is missing")
        return
    rows = setting.spark_rows
    small, large = (_table(setting, each) for each in (max(rows // 10, 1000), rows))
    command = (sys.executable, "-m", "checks.bench.spark_driver", setting.folder)
    done = run_program([*command, setting.schema_file, small, large])
    tenth, whole = (json.loads(line) for line in done.output.splitlines() if line[:1] == "{")
    local = _local_times(setting, large, rows)
    for name, what in (
        ("fit public", "fit, order public"),
        ("fit data", "fit, pair counts too"),
        ("sample", "sample"),
    ):
        ours, reference = whole[name], local[name]
        ratio, note = ours / reference, f"{rows / ours:,.0f} rows/s"
        words = f"{what}, {rows:,} rows: Spark on two workers / local"
        yield Figure(words, ratio, MOST_TIMES_LOCAL, ours, reference, note=note)
    for name in ("python", "java"):
        ours, reference = (each[name] / MEBIBYTE for each in (whole, tenth))
        what = f"driver memory, {name}: {rows:,} rows / a tenth"
        yield Figure(what, ours / reference, MOST_GROWTH, ours, reference, unit="MiB")


def _table(setting: Setting, rows: int) -> Path:
    return scale.table(replace(setting, scale_rows=rows))


def _local_times(setting: Setting, table: Path, rows: int) -> dict[str, float]:
    """Time the same work in this process, kernels loaded."""
    model = scale.fit_table(setting, _table(setting, 1000), "data")
    scale.sample_rows(setting, model, 1000)
    times = {}
    for order in ("data", "public"):
        start = time.perf_counter()
        model = scale.fit_table(setting, table, order)
        times[f"fit {order}"] = time.perf_counter() - start
    start = time.perf_counter()
    scale.sample_rows(setting, model, rows)
    times["sample"] = time.perf_counter() - start
    return times


FIGURES: dict[str, Callable[[Setting], Iterable[Figure]]] = {"spark": spark}


def main(arguments: Sequence[str] | None = None) -> None:
    from checks.bench.run import HEADER, line, save

    parser = argparse.ArgumentParser(prog="checks.bench.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the built-in table")
    parser.add_argument("--output", type=Path, default=Path("bench-out"), help="folder to write")
    options = parser.parse_args(arguments)
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        figures = list(spark(Setting(Path(folder), spark_rows=options.rows)))
    for figure in figures:
        print(line(figure), flush=True)
    save(figures, options.output, quick=False, name="spark.json")


if __name__ == "__main__":
    main()
