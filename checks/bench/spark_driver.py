"""The driver of a small cluster: times of fitting and sampling, and the memory it took.

``python -m checks.bench.spark_driver FOLDER SCHEMA TABLE..`` counts every table with both
orders, samples as many rows, and prints a line of JSON for each. A first small table, which is
not reported, starts the workers and loads what they need.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checks.bench.foundation import HEADS, SEED
from pegsynth.datasets import discharge
from pegsynth.schema import Schema

MASTER = "local-cluster[2,1,2048]"
WARM_UP_ROWS = 20_000


def main(folder: Path, schema: Schema, tables: list[Path]) -> None:
    small = folder / "warm-up.parquet"
    discharge(WARM_UP_ROWS, seed=SEED).write_parquet(small)
    with _session(folder) as spark:
        for table in (small, *tables):
            measured = _measure(spark, folder, schema, table)
            if table is not small:
                print(json.dumps(measured), flush=True)


def _measure(spark: object, folder: Path, schema: Schema, table: Path) -> dict[str, float]:
    import pegsynth.spark

    frame = spark.read.parquet(str(table))  # type: ignore[attr-defined]
    rows = frame.count()
    seconds: dict[str, float] = {"rows": rows}
    for order in ("data", "public"):
        start = time.perf_counter()
        model = pegsynth.spark.fit(
            frame, schema, order=order, heads=HEADS, rows=rows, epsilon_per_row=1.0
        )
        seconds[f"fit {order}"] = time.perf_counter() - start
    target = folder / "drawn-on-spark"
    start = time.perf_counter()
    pegsynth.spark.sample(model, rows, spark, path=target)  # type: ignore[arg-type]
    seconds["sample"] = time.perf_counter() - start
    shutil.rmtree(target)
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[attr-defined]
    return {**seconds, "python": _peak(os.getpid()), "java": _peak(java)}


def _peak(process: int) -> float:
    """Return the most memory that a process ever held, in bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


@contextmanager
def _session(folder: Path) -> Iterator[object]:
    """Start two workers whose files lie in a folder of ours."""
    import pyspark
    from pyspark.sql import SparkSession

    home = folder / "spark-home"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    os.environ |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "spark-local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    spark = (
        SparkSession.builder.master(MASTER)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.executor.memory", "2g")
        .config("spark.log.level", "FATAL")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Schema.load(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
