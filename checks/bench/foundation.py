"""From a table to a synthetic table: counting, drawing, the command line, wide tables.

Every function takes a `Setting` and gives the figures of one theme. Data is invented
and lives in a temporary folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from numpy.typing import NDArray

from checks.bench.timing import MEBIBYTE, Figure, best_of, processor_time, run_program
from pegsynth.codec.codec import encode
from pegsynth.codec.pair_counts import count_pairs
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.mechanisms import rule_tables
from pegsynth.methods.gibbs.blocks import Blocks, disintegrate
from pegsynth.methods.gibbs.chains import Machine, Schedule, sample_rows
from pegsynth.methods.gibbs.order import heads_by_score, public_heads
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import SCALE, dirichlet
from pegsynth.methods.seed_rows import WeightedPool
from pegsynth.privacy import alpha_per_row
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema

THREADS = 2
HEADS = 2
SEED = 1
FIRST_ROWS = 20_000
PEGS = (sys.executable, "-m", "pegsynth.cli.main")

_REREAD = "import sys, polars as pl; pl.read_csv(sys.argv[1]).write_csv(sys.argv[2])"


@dataclass(frozen=True)
class Setting:
    """Sizes, and a folder for files.

    Parameters
    ----------
    rows
        Rows of the built-in table.
    wide_rows, wide_features
        Shape of the table with many features.
    many_categories
        Categories of the feature that has many.
    repeats
        How often work that takes less than a second is repeated.
    scale_rows
        Rows of the built-in table as Parquet, for what is larger than memory.
    output
        Where curves are written.
    spark_rows
        Rows of the built-in table that a small cluster counts and draws.
    cold
        Whether kernels are compiled anew where that is measured, and not only loaded.
    """

    folder: Path
    rows: int = 1_000_000
    wide_rows: int = 100_000
    wide_features: int = 1_000
    many_categories: int = 50_000
    repeats: int = 5
    scale_rows: int = 50_000_000
    output: Path = Path("bench-out")
    spark_rows: int = 10_000_000
    cold: bool = True

    @classmethod
    def quick(cls, folder: Path) -> Setting:
        """Return sizes that only show that every figure can be computed."""
        return cls(folder, 2_000, 500, 20, 300, 1, 20_000, spark_rows=20_000, cold=False)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the built-in table, rules and heads included."""
        return discharge_schema(heads=True)

    @cached_property
    def schema_file(self) -> Path:
        """The same as a file."""
        path = self.folder / "schema.toml"
        self.schema.save(path)
        return path

    @cached_property
    def table(self) -> Path:
        """The built-in table as a CSV file."""
        path = self.folder / "discharge.csv"
        discharge(self.rows, seed=SEED).write_csv(path)
        return path

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """The built-in table as a row-major matrix of small integers."""
        return np.ascontiguousarray(encode(self.table, self.schema), dtype=np.uint8)


def counting(setting: Setting) -> list[Figure]:
    """Pair counts, order and blocks, against reading the same rows from CSV."""
    codes, schema, table = setting.codes, setting.schema, setting.table

    def count() -> Blocks:
        pairs = count_pairs([codes], schema.category_counts, threads=THREADS)
        heads = heads_by_score(pairs.mutual_information(), HEADS)
        spec = HashSpec(schema.names, schema.category_counts, heads)
        return disintegrate([codes], spec, threads=THREADS)

    count()
    best = best_of({"count": count, "read": lambda: pl.read_csv(table)}, setting.repeats)
    ratio = best["count"] / best["read"]
    what = "pair counts + order + disintegrate / Polars reads the CSV"
    return [Figure(what, ratio, 1.0, best["count"], best["read"])]


def drawing(setting: Setting) -> list[Figure]:
    """Rows drawn from blocks, against copying random rows of the data."""
    codes, schema = setting.codes, setting.schema
    spec = HashSpec(schema.names, schema.category_counts, public_heads(schema, HEADS))
    blocks = disintegrate([codes], spec, threads=THREADS)
    generator = np.random.default_rng(SEED)
    work: dict[str, Callable[[], object]] = {
        "copy": lambda: codes[generator.integers(0, len(codes), len(codes))],
        "with the schema's rules": _sampler(blocks, schema.rules, setting.rows),
        "without rules": _sampler(blocks, (), setting.rows),
    }
    best_of(work, 1)
    best = best_of(work, setting.repeats)
    busy = processor_time(work, setting.repeats)
    copy = best.pop("copy")
    return [
        Figure(
            f"draw rows, {how} / copy random rows",
            time / copy,
            8.0,
            time,
            copy,
            note=f"by processor time, shared by {THREADS} threads: "
            f"{busy[how] / THREADS / max(busy['copy'], 1e-9):.1f}",
        )
        for how, time in best.items()
    ]


def _sampler(blocks: Blocks, rules: Sequence[Rule], rows: int) -> Callable[[], NDArray[np.uint8]]:
    """Return a function that draws a matrix of rows at an epsilon of 1 per row."""
    spec = blocks.spec
    features = len(spec.names)
    prior = dirichlet(spec.category_counts, alpha_per_row(1.0, features=features, scale=SCALE))
    tables = rule_tables(rules, spec.category_counts)
    targets = np.arange(features, dtype=np.int64)
    machine = Machine(spec.tables, blocks.tables, prior.tables, tables, targets)
    pool = WeightedPool(spec.tables.category_start, prior.tables.weight_cumulative, tables)

    def draw() -> NDArray[np.uint8]:
        drawn = np.empty((rows, features), dtype=np.uint8)
        done = 0
        stream = RandomStream(SEED)
        for part in sample_rows(machine, pool, Schedule(), rows, stream, threads=THREADS):
            drawn[done : done + len(part)] = part
            done += len(part)
        return drawn

    return draw


def command_line(setting: Setting) -> list[Figure]:
    """``pegs synthesize`` from CSV to CSV, against Polars reading and writing that CSV."""
    table, copy = setting.table, setting.folder / "copy.csv"
    command = _synthesize(setting, table, setting.schema_file, setting.rows, "synthetic.csv")
    work: dict[str, Callable[[], object]] = {
        "ours": lambda: run_program(command),
        "warm": lambda: pl.read_csv(table).write_csv(copy),
        "program": lambda: run_program([sys.executable, "-c", _REREAD, table, copy]),
    }
    best_of(work, 1)
    best = best_of(work, min(setting.repeats, 3))
    ours = best["ours"]
    what = "pegs synthesize, CSV to CSV / Polars reads and writes it"
    return [
        Figure(what, ours / best["warm"], 3.0, ours, best["warm"]),
        Figure(f"{what}, as a program", ours / best["program"], None, ours, best["program"]),
    ]


SMALL_ROWS = 1_000


def start_up(setting: Setting) -> Iterator[Figure]:
    """Measure what a process takes before it works, by the processor; others hardly change it."""
    small, schema = setting.folder / "small.csv", setting.folder / "small.toml"
    discharge(SMALL_ROWS, seed=SEED).write_csv(small)
    discharge_schema().save(schema)
    for what, asked, command in (
        ("import pegsynth", 0.05, [sys.executable, "-c", "import pegsynth"]),
        ("pegs --help", 0.15, [*PEGS, "--help"]),
        (
            f"pegs synthesize, {SMALL_ROWS:,} rows, warm",
            0.8,
            [*_synthesize(setting, small, schema, SMALL_ROWS, "small-out.csv"), "--method", "pegs"],
        ),
    ):
        runs = [run_program(command) for _ in range(max(setting.repeats, 2) + 1)]
        busy = min(run.processor for run in runs)
        yield Figure(f"{what}, processor time", busy, asked, busy)


def compiling(setting: Setting) -> list[Figure]:
    """Kernels of the paper's methods from cold: the same work, an empty cache and a full one."""
    command = [sys.executable, "-m", "checks.bench.every_kernel"]
    cache = {"NUMBA_CACHE_DIR": str(setting.folder / "kernel-cache")}
    environment = cache if setting.cold else {}
    cold = run_program(command, environment=environment).seconds
    warm = run_program(command, environment=environment).seconds
    return [
        Figure("compile the kernels of pegs and pegs-rs from cold", cold - warm, 30.0, cold, warm)
    ]


def first_command(setting: Setting) -> Iterator[Figure]:
    """Time the first command after an install, which compiles, by the processor.

    Every repeat begins with an empty cache of kernels; the reference is the same command again.
    """
    table, free = setting.folder / "first.csv", setting.folder / "free.toml"
    discharge(min(setting.rows, FIRST_ROWS), seed=SEED).write_csv(table)
    replace(setting.schema, rules=()).save(free)
    once = ("--method", "pegs-once", "--epsilon", "1", "--delta", "1e-9")
    pegs = ("--method", "pegs", "--epsilon-per-row", "1")
    for what, schema, flags, asked in (
        ("pegs-once", free, once, 5.5),
        ("pegs", free, pegs, 11.0),
        ("pegs under rules", setting.schema_file, pegs, 11.0),
    ):
        command = [*PEGS, "synthesize", table, "--schema", schema, "--rows", "1000", *flags]
        command += ["-o", setting.folder / "first-out.csv"]
        cold, warm = [], []
        for _ in range(min(setting.repeats, 3)):
            with TemporaryDirectory(dir=setting.folder) as cache:
                environment = {"NUMBA_CACHE_DIR": cache} if setting.cold else {}
                cold.append(run_program(command, environment=environment).processor)
                warm.append(run_program(command, environment=environment).processor)
        note = "the reference is the second run"
        name = f"{what}: processor time of the first run"
        yield Figure(name, min(cold), asked, min(cold), min(warm), note=note)


def wide(setting: Setting) -> Iterator[Figure]:
    """Many features, and a feature of many categories: time and memory."""
    rows, features = setting.wide_rows, setting.wide_features
    generator = np.random.default_rng(SEED)
    table, schema = invented(setting, "wide", rows, [5] * features, generator)
    for order in ("public", "data"):
        what = f"{features:,} features x {rows:,} rows, order {order}"
        yield _memory(setting, what, table, schema, features, ("--order", order))
    counts = [setting.many_categories, 2, 20, 5]
    table, schema = invented(setting, "long", rows, counts, generator)
    what = f"a feature of {setting.many_categories:,} categories x {rows:,} rows"
    yield _memory(setting, what, table, schema, len(counts), ("--order", "data"))


def invented(
    setting: Setting, name: str, rows: int, counts: Sequence[int], generator: np.random.Generator
) -> tuple[Path, Path]:
    """Write a table of skewed, dependent categories, and its schema."""
    shared = generator.random((rows, 1))
    columns, features = [], []
    for number, count in enumerate(counts):
        mixed = (shared[:, 0] + generator.random(rows)) / 2
        codes = np.minimum((mixed * count).astype(np.uint32), count - 1)
        labels = [str(code) for code in range(count)]
        feature = f"f{number}"
        columns.append(pl.Series(feature, labels, dtype=pl.String).gather(codes))
        features.append(Feature(feature, categories=tuple(labels), dtype="string"))
    table, schema = setting.folder / f"{name}.parquet", setting.folder / f"{name}.toml"
    pl.DataFrame([c.alias(f.name) for c, f in zip(columns, features, strict=True)]).write_parquet(
        table
    )
    Schema(tuple(features), reviewed=True).save(schema)
    return table, schema


def _memory(
    setting: Setting, what: str, table: Path, schema: Path, features: int, options: Sequence[str]
) -> Figure:
    rows = setting.wide_rows
    done = run_program([*_synthesize(setting, table, schema, rows, "out.parquet"), *options])
    cells = rows * features
    note = f"{done.seconds:.1f} s"
    return Figure(
        f"{what}: peak memory / one byte per cell",
        done.peak_bytes / cells,
        None,
        done.peak_bytes / MEBIBYTE,
        cells / MEBIBYTE,
        "MiB",
        note,
    )


def _synthesize(
    setting: Setting, table: Path, schema: Path, rows: int, output: str
) -> list[str | Path]:
    return [
        *(*PEGS, "synthesize", table, "--schema", schema, "--rows", str(rows)),
        *("--epsilon-per-row", "1", "--threads", str(THREADS), "-o", setting.folder / output),
    ]


FIGURES: dict[str, Callable[[Setting], Iterable[Figure]]] = {
    "count": counting,
    "draw": drawing,
    "command": command_line,
    "start": start_up,
    "compile": compiling,
    "first": first_command,
    "wide": wide,
}
