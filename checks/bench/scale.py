"""Tables larger than memory: time and memory of fitting and sampling, and how they grow.

``python -m checks.bench.scale [--rows N] [--output FOLDER]`` runs these figures alone, on as
many rows as asked. The built-in table is written as Parquet files of some million rows
each. Curves of time against rows and features go to ``scale.csv`` and ``scale.svg``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from checks.bench.foundation import HEADS, PEGS, SEED, THREADS, Setting
from checks.bench.timing import Clock, Figure, run_program
from pegsynth.codec.pair_counts import count_pairs
from pegsynth.datasets import discharge
from pegsynth.methods import get
from pegsynth.methods.base import Model
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.session import Session
from pegsynth.pipeline.drawn_tables import Decoding, decoded, decoder_of
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import open_writer

GIBIBYTE = 1 << 30
FILE_ROWS = 5_000_000
GROUP_ROWS = 500_000
FEATURES = (10, 20, 40, 80, 160, 300)
CATEGORIES = 5
FEATURE_ROWS = 100_000
THREAD_RUNS = 3

# Every column of every row, text as text.
_ITERATE = """
import sys, pyarrow.dataset as ds
print(sum(batch.num_rows for batch in ds.dataset(sys.argv[1]).to_batches()))
"""

_PIN = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.execv(sys.argv[1], sys.argv[1:])
"""
_ONE_PROCESSOR = (sys.executable, "-S", "-c", _PIN)

Point = tuple[str, int, float, float]
"""Curve, size, seconds, and seconds of processor time."""


def table(setting: Setting) -> Path:
    """Write the built-in table as Parquet files, once; return their folder."""
    folder = setting.folder / f"discharge-{setting.scale_rows}"
    if not folder.exists():
        folder.mkdir()
        done = 0
        while done < setting.scale_rows:
            _write_file(folder / f"part-{done:012}.parquet", done, setting.scale_rows)
            done += FILE_ROWS
    return folder


def _write_file(path: Path, first: int, rows: int) -> None:
    writer = None
    for start in range(first, min(first + FILE_ROWS, rows), GROUP_ROWS):
        part = discharge(min(GROUP_ROWS, rows - start), seed=SEED + start).to_arrow()
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer:
        writer.close()


def fitting(setting: Setting) -> Iterator[Figure]:
    """``pegs fit`` from Parquet, against iterating over all batches of the same files."""
    data, rows = table(setting), f"{setting.scale_rows:,} rows of Parquet"
    read = run_program([sys.executable, "-c", _ITERATE, data]).seconds
    for order, asked in (("public", 3.0), ("data", 6.0)):
        command = (*PEGS, "fit", data, "--schema", setting.schema_file, "--order", order)
        done = run_program([*command, "--threads", str(THREADS), "-o", _model(setting)])
        what = f"pegs fit --order {order}, {rows}"
        note = f"{setting.scale_rows / done.seconds:,.0f} rows/s"
        yield Figure(
            f"{what} / to_batches()", done.seconds / read, asked, done.seconds, read, note=note
        )
        peak = done.peak_bytes / GIBIBYTE
        yield Figure(f"{what}: peak memory", peak, 1.5, peak, unit="GiB")


def _model(setting: Setting) -> Path:
    return setting.folder / "scale.pegs"


def sampling(setting: Setting) -> Iterator[Figure]:
    """``pegs sample`` to Parquet: seconds per million rows, and memory."""
    command = (*PEGS, "sample", _fitted(setting), "--rows", str(setting.scale_rows))
    flags = ("--epsilon-per-row", "1", "--threads", str(THREADS))
    done = run_program([*command, *flags, "-o", setting.folder / "sampled.parquet"])
    what = f"pegs sample, {setting.scale_rows:,} rows to Parquet"
    per_million = done.seconds / setting.scale_rows * 1e6
    note = f"{setting.scale_rows / done.seconds:,.0f} rows/s"
    yield Figure(f"{what}: per million rows", per_million, 1.0, done.seconds, note=note)
    peak = done.peak_bytes / GIBIBYTE
    yield Figure(f"{what}: peak memory", peak, 1.5, peak, unit="GiB")


def _fitted(setting: Setting) -> Path:
    """Return a model of the built-in table."""
    path = _model(setting)
    if not path.exists():
        command = (*PEGS, "fit", table(setting), "--schema", setting.schema_file)
        run_program([*command, "--order", "public", "-o", path])
    return path


def threads(setting: Setting) -> Iterator[Figure]:
    """Two threads on two processors against one on one, for fitting and for sampling.

    Files are read and written by libraries that have threads of their own, so the flag alone
    does not make a run a run on one processor. Fitting a fifth of the rows would be over so
    soon that the start of the program would count as much.
    """
    some = max(setting.scale_rows // 5, 1000)
    fit_command = (*PEGS, "fit", table(setting), "--schema", setting.schema_file)
    draw = (*PEGS, "sample", _fitted(setting), "--rows", str(some), "--epsilon-per-row", "1")
    for name, command, rows, output in (
        ("pegs fit --order data", (*fit_command, "--order", "data"), setting.scale_rows, "t.pegs"),
        ("pegs sample", draw, some, "t.parquet"),
    ):
        flags = ("-o", setting.folder / output, "--threads")
        # Taken in turns, the least of each: a machine that is shared is not always as fast.
        runs = [
            (
                run_program([*_ONE_PROCESSOR, *command, *flags, "1"]).seconds,
                run_program([*command, *flags, "2"]).seconds,
            )
            for _ in range(min(THREAD_RUNS, setting.repeats))
        ]
        one, two = map(min, zip(*runs, strict=True))
        yield Figure(f"{name}, {rows:,} rows: 2 threads / 1 thread", two / one, 1 / 1.7, two, one)


def growth(setting: Setting) -> Iterator[Figure]:
    """Exponents of time against rows and against features, and the curves as a figure."""
    points = [*_rows_curves(setting), *_feature_curves(setting)]
    for name, asked in (
        ("fit, order public, against rows", 1.05),
        ("fit, order data, against rows", 1.05),
        ("sample, against rows", 1.05),
        ("disintegrate, against features", 1.1),
        ("pair counts, against features", None),
    ):
        sizes, *times = zip(*(each for curve, *each in points if curve == name), strict=True)
        slope, busy = (float(np.polyfit(np.log(sizes), np.log(each), 1)[0]) for each in times)
        note = f"{sizes[0]:,} to {sizes[-1]:,}; by processor time {busy:.2f}"
        first, *_, last = times[0]
        yield Figure(f"exponent of time: {name}", slope, asked, last, first, note=note)
    save_curves(points, setting.output)


def _rows_curves(setting: Setting) -> Iterator[Point]:
    """Time of fitting and sampling in this process, so that starting it does not count."""
    data = table(setting)
    sample_rows(setting, fit_table(setting, _part(setting, data, 1000), "data"), 1000)
    for rows in _sizes(setting.scale_rows):
        part = _part(setting, data, rows)
        model = fit_table(setting, part, "public")
        for order in ("public", "data"):
            with Clock() as clock:
                model = fit_table(setting, part, order)
            yield f"fit, order {order}, against rows", rows, clock.seconds, clock.processor
        with Clock() as clock:
            sample_rows(setting, model, rows)
        yield "sample, against rows", rows, clock.seconds, clock.processor


def _sizes(most: int) -> list[int]:
    """Rows from 100,000 (or a hundredth of all) to all, about three to a power of ten."""
    least = min(100_000, max(most // 100, 1))
    count = max(2, round(2 * np.log10(most / least)) + 1)
    return [round(least * (most / least) ** (i / (count - 1))) for i in range(count)]


def _part(setting: Setting, data: Path, rows: int) -> Path:
    """Write the first rows as one file."""
    path = setting.folder / "part.parquet"
    writer = None
    for file in sorted(data.iterdir()):
        for batch in pq.ParquetFile(file).iter_batches(GROUP_ROWS):
            taken = batch.slice(0, rows)
            rows -= taken.num_rows
            if taken.num_rows:
                writer = writer or pq.ParquetWriter(path, taken.schema)
                writer.write_batch(taken)
        if not rows:
            break
    if writer:
        writer.close()
    return path


def fit_table(setting: Setting, path: Path, order: str) -> Model:
    request = Request(method="pegs", heads=HEADS, tail_bits=1, order=order, threads=THREADS)  # type: ignore[arg-type]
    return fit(open_table(path), Settled(setting.schema, request, None), RandomStream(SEED))


def sample_rows(setting: Setting, model: Model, rows: int) -> None:
    pegs = get("pegs")
    options = pegs.options(rows=rows, heads=HEADS, tail_bits=1, order="public")  # type: ignore[call-arg]
    plan = pegs.settle(model.schema, Budget(epsilon_per_row=1.0), options)
    session = Session(model, plan, RandomStream(SEED), threads=THREADS)
    decoder = decoder_of(model, listed=True)
    with open_writer(setting.folder / "drawn.parquet", texts=decoder.listed) as writer:
        for frame in decoded(model, session.draw(rows)[0], session.stream, Decoding(listed=True)):
            writer.write(frame)


def _feature_curves(setting: Setting) -> Iterator[Point]:
    """Time of counting codes with m heads, and of counting all pairs."""
    rows = min(FEATURE_ROWS, setting.scale_rows)
    generator = np.random.default_rng(SEED)
    for features in FEATURES:
        codes = generator.integers(0, CATEGORIES, (rows, features)).astype(np.uint8)
        counts = (CATEGORIES,) * features
        names = tuple(f"f{i}" for i in range(features))
        heads = tuple(((i + 1) % features, (i + 2) % features) for i in range(features))
        spec = HashSpec(names, counts, heads)
        disintegrate([codes[:10]], spec)
        with Clock() as clock:
            disintegrate([codes], spec, threads=THREADS)
        yield "disintegrate, against features", features, clock.seconds, clock.processor
        with Clock() as clock:
            count_pairs([codes], counts, threads=THREADS)
        yield "pair counts, against features", features, clock.seconds, clock.processor


def save_curves(points: Sequence[Point], folder: Path) -> None:
    """Write the curves as numbers and as a figure."""
    from pegsynth.publishing.report.charts import plot

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "scale.csv").open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([("curve", "size", "seconds", "busy"), *points])
    rows = [
        {"x": size, "y": seconds, "series": curve, "facet": f"against {curve.rpartition(' ')[2]}"}
        for curve, size, seconds, _ in points
    ]
    look = {"x_title": "size", "y_title": "seconds", "log_x": True, "log_y": True}
    drawing = plot("curves", rows, columns=1, width=560, height=260, **look)
    (folder / "scale.svg").write_text(drawing.svg, encoding="utf-8")


FIGURES: dict[str, Callable[[Setting], Iterable[Figure]]] = {
    "scale-fit": fitting,
    "scale-sample": sampling,
    "scale-threads": threads,
    "scale-growth": growth,
}


def main(arguments: Sequence[str] | None = None) -> None:
    from checks.bench.run import HEADER, line, save

    parser = argparse.ArgumentParser(prog="checks.bench.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the built-in table")
    parser.add_argument("--output", type=Path, default=Path("bench-out"), help="folder to write")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for large files")
    options = parser.parse_args(arguments)
    figures = []
    print(HEADER)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        setting = Setting(Path(folder), scale_rows=options.rows, output=options.output)
        for work in FIGURES.values():
            for figure in work(setting):
                figures.append(figure)
                print(line(figure), flush=True)
    save(figures, options.output, quick=False, name="scale.json")


if __name__ == "__main__":
    main()
