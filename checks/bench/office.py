"""How fast files of offices are read: against `pyreadstat` itself, and `;` against commas.

``python -m checks.bench.office`` writes 1,000,000 x 13 rows and reads them in turns; the least time
of each way counts, by the clock and of processors, which a busy machine moves less. Asked for: at
most 1.5 times `pyreadstat`'s own time, and within 10 % of commas.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from pegsynth.codec.codec import encode
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.table_output import open_writer

ROWS = 1_000_000
TURNS = 3


def table(rows: int) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    codes = {f"n{i}": draw.integers(0, 9, rows).astype(float) for i in range(8)}
    numbers = {f"f{i}": draw.normal(size=rows).round(4) for i in range(2)}
    words = np.array(["ab", "cd", "efg"])
    texts = {f"s{i}": words[draw.integers(0, 3, rows)] for i in range(3)}
    return pl.DataFrame({**codes, **numbers, **texts})


def book(dialect: Dialect) -> Schema:
    codes = [Feature(f"n{i}", categories=tuple(f"{j}.0" for j in range(9))) for i in range(8)]
    numbers = [Feature(f"f{i}", "numeric", edges=(-4.0, -1.0, 0.0, 1.0, 4.0)) for i in range(2)]
    texts = [Feature(f"s{i}", categories=("ab", "cd", "efg")) for i in range(3)]
    return Schema((*codes, *numbers, *texts), dialect=dialect)


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def least(ways: dict[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Time several ways in turns, and return the least times of each: clock, processors."""
    found = dict.fromkeys(ways, (float("inf"), float("inf")))
    for _ in range(TURNS):
        for name, work in ways.items():
            started, used = time.perf_counter(), processor_seconds()
            work()
            spent = time.perf_counter() - started, processor_seconds() - used
            found[name] = (min(found[name][0], spent[0]), min(found[name][1], spent[1]))
    return found


def by_pyreadstat(path: Path) -> None:
    """Read with pyreadstat alone, in a fresh process as ours is."""
    read = {".sav": "read_sav", ".dta": "read_dta"}[path.suffix]
    program = f"import pyreadstat; pyreadstat.{read}({str(path)!r})"
    subprocess.run([sys.executable, "-c", program], check=True)


def by_us(path: Path) -> None:
    program = (
        "from pegsynth.tables.table_input import open_table\n"
        f"with open_table({str(path)!r}) as reader:\n"
        "    sum(batch.height for batch in reader.batches())"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def main(rows: int = ROWS) -> None:
    frame = table(rows)
    with tempfile.TemporaryDirectory() as folder:
        for extension in (".sav", ".dta"):
            path = Path(folder, f"t{extension}")
            with open_writer(path) as writer:
                writer.write(frame)
            ways = {"pyreadstat": partial(by_pyreadstat, path), "ours": partial(by_us, path)}
            print(f"{extension}: {_said(least(ways))}")
            path.unlink()
        readers: dict[str, Callable[[], object]] = {}
        for mark in (",", ";"):
            schema = book(Dialect(separator=mark))
            path = Path(folder, f"t{ord(mark)}.csv")
            with open_writer(path, codebook=schema) as writer:
                writer.write(frame)
            readers[mark] = partial(encode, str(path), schema)
        print(f"CSV to codes: {_said(least(readers))}")


def _said(seconds: dict[str, tuple[float, float]]) -> str:
    first, second = seconds.values()
    each = ", ".join(
        f"{name!r} {clock:.2f} s (processors {used:.2f} s)"
        for name, (clock, used) in seconds.items()
    )
    ratios = [there / here for here, there in zip(first, second, strict=True)]
    return f"{each}, ratio {ratios[0]:.2f} (processors {ratios[1]:.2f})"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
