"""Two tables beside another tool: ``checks.bench.two_tables --households 50000 --cap 900``.

Invented households with their members (`datasets.households`) are released by `pegs-once` at two
epsilons, and synthesized by the hierarchical model of SDV (HMA), which promises no privacy and
runs in an environment of its own. Beside them stand whole households of the original, drawn with
replacement. The same code compares them all with the original:

- pairs of both tables: mean distance of all two-way tables of members with their household's
  features; pairs of households: of the first table alone;
- siblings: distance of a member's value and the next member's, mean over features;
- members per household: distance of their number, households without any included;
- impossible households: share with no member, or with more than the codebook allows;
- orphans: share of members whose household is not in the first table.

A model that takes more processor time than the cap is ended, and the comparison is made again
with a smaller table (``--smaller``), ours beside it. ``--ours`` leaves the other tool out.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import polars as pl

from checks.bench.foundation import SEED
from checks.bench.panels import DELTA, HOUSEHOLDS, RUNS, pair_error, sibling_error
from checks.bench.peers.environments import environments_folder
from checks.bench.peers.execute import Setting, launch
from checks.bench.peers.tools import PROGRAMS, Tool
from checks.bench.timing import Clock
from pegsynth import Schema, synthesize
from pegsynth.codec.folding import joined
from pegsynth.datasets import households, households_schema
from pegsynth.evaluation.utility.distances import total_variation
from pegsynth.schema.panel import Panel

Tables = tuple[pl.DataFrame, pl.DataFrame]

EPSILONS = (1.0, 10.0)
SMALLER = 5_000
WARM = 300
FILES = ("units", "rows")
HMA = Tool(
    "sdv-hma",
    "HMA, sdv",
    "peer",
    "sdv",
    PROGRAMS / "run_sdv_two_tables.py",
    price="none",
    note="no privacy guarantee",
)


@dataclass(frozen=True)
class Scores:
    """How far two synthetic tables are from the original ones."""

    pairs: float
    pairs_of_units: float
    siblings: float
    rows_per_unit: float
    impossible: float
    orphans: float


@dataclass(frozen=True)
class Line:
    """One line of the table: who, how long, and the scores or why there are none."""

    who: str
    seconds: float
    scores: Scores | None = None
    why: str = ""


def compare(original: Tables, synthetic: Tables, schema: Schema) -> Scores:
    """Compare two synthetic tables with the original ones."""
    panel = _panel(schema)
    flat = replace(schema, panel=None, unit=panel.unit, rows_per_unit=panel.most)
    units = Schema(tuple(schema[name] for name in panel.fixed), reviewed=True)
    real, other = (joined(*each, panel) for each in (original, synthetic))
    sizes = [_sizes(each, panel.unit) for each in (original, synthetic)]
    most = max(int(each.max()) for each in sizes) + 1
    counts = [np.bincount(each, minlength=most) for each in sizes]
    known = synthetic[1].get_column(panel.unit).is_in(synthetic[0].get_column(panel.unit).implode())
    return Scores(
        pair_error(real, other, flat),
        pair_error(original[0], synthetic[0], units),
        sibling_error(real, other, schema),
        total_variation(counts[0], counts[1]),
        float(np.mean((sizes[1] < panel.least) | (sizes[1] > panel.most))),
        float((~known).mean() or 0.0),
    )


def ours(tables: Tables, schema: Schema, epsilon: float, runs: int) -> Line:
    """Release both tables, `runs` times; means of what was found."""
    count = tables[0].height
    with Clock() as clock:
        made = [_release(tables, schema, epsilon, count) for _ in range(runs)]
    found = [asdict(compare(tables, each, schema)) for each in made]
    scores = Scores(**{name: mean(each[name] for each in found) for name in found[0]})
    return Line(f"pegsynth `pegs-once`, epsilon {epsilon:g}", clock.processor / runs, scores)


def theirs(tables: Tables, schema: Schema, setting: Setting, tool: Tool = HMA) -> Line:
    """Run the other tool under the cap and compare the files that it left."""
    panel = _panel(schema)
    folder = setting.output / "two-tables" / f"{tool.name}-{tables[0].height}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    features = [[n for n in each.columns if n != panel.unit] for each in tables]
    told = {"key": panel.unit, "features": dict(zip(FILES, features, strict=True))}
    (folder / "keys.json").write_text(json.dumps(told), encoding="utf-8")
    for name, table in zip(FILES, tables, strict=True):
        table.write_csv(folder / f"{name}.csv")
    measured = launch(folder, tool, setting)
    who = f"*{tool.note}*: {tool.title}" if tool.note else tool.title
    if measured["over"]:
        log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
        stage = "drawing" if "fitted:" in log else "fitting"
        return Line(who, measured["cpu"], why=f"ended by the cap of {setting.cap:g} s in {stage}")
    times, files = folder / "times.json", [folder / f"synthetic-{name}.csv" for name in FILES]
    if measured["status"] or not all(path.exists() for path in (times, *files)):
        return Line(who, measured["cpu"], why="failed; its log is in the output folder")
    first, second = (
        pl.read_csv(path, schema_overrides=dict(table.schema))
        for path, table in zip(files, tables, strict=True)
    )
    spent: dict[str, Any] = json.loads(times.read_text(encoding="utf-8"))
    seconds = spent["fit_cpu"] + spent["sample_cpu"]
    return Line(who, seconds, compare(tables, (first, second), schema))


def resampled(tables: Tables, key: str) -> Tables:
    """Draw whole households with replacement, under new keys."""
    rng = np.random.default_rng(SEED)
    count = tables[0].height
    drawn = pl.DataFrame({"_new": np.arange(count), "_row": rng.integers(0, count, count)})
    keys = tables[0].select(key).with_row_index("_row").cast({"_row": pl.Int64})
    chosen = drawn.join(keys, on="_row", maintain_order="left").drop("_row")
    first, second = (
        chosen.join(each, on=key, maintain_order="left_right").drop(key).rename({"_new": key})
        for each in tables
    )
    return first, second


def lines(count: int, runs: int, peer: Callable[[Tables, Schema], Line]) -> Iterator[Line]:
    """Compare everything at one size; the other tool last."""
    schema, tables = households_schema(), households(count, seed=SEED)
    # Kernels are loaded before anything of ours is timed.
    few = households(min(WARM, count), seed=SEED)
    _release(few, schema, EPSILONS[0], few[0].height)
    for epsilon in EPSILONS:
        yield ours(tables, schema, epsilon, runs)
    with Clock() as clock:
        drawn = resampled(tables, _panel(schema).unit)
    yield Line(
        "*no privacy guarantee*: bootstrap of whole households",
        clock.processor,
        compare(tables, drawn, schema),
    )
    yield peer(tables, schema)


HEADER = (
    "| {count:,} households | pairs of both tables | pairs of households | siblings "
    "| members per household | impossible households | orphans | processor seconds |\n"
    "|---|---|---|---|---|---|---|---|"
)


def text(line: Line) -> str:
    """Write a line of the table."""
    if line.scores is None:
        cells = [line.why, "", "", "", "", ""]
    else:
        *distances, impossible, orphans = asdict(line.scores).values()
        cells = [f"{each:.4f}".removeprefix("0") for each in distances]
        cells += [f"{100 * each:.3g} %" for each in (impossible, orphans)]
    return f"| {line.who} | {' | '.join(cells)} | {line.seconds:.1f} |"


def page(counts: Sequence[int], runs: int, peer: Callable[[Tables, Schema], Line]) -> Iterator[str]:
    """Write a table for every size, and stop after the first at which the other tool ended."""
    for count in counts:
        yield HEADER.format(count=count)
        for line in lines(count, runs, peer):
            yield text(line)
        yield ""
        if line.scores is not None:
            return


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="checks.bench.two_tables", description=__doc__)
    parser.add_argument("--households", type=int, default=HOUSEHOLDS, help="how many")
    parser.add_argument("--smaller", type=int, default=SMALLER, help="how many if it takes longer")
    parser.add_argument("--cap", type=float, default=900.0, help="processor seconds of a peer")
    parser.add_argument("--runs", type=int, default=RUNS, help="releases of ours to take means of")
    parser.add_argument("--ours", action="store_true", help="leave the other tool out")
    parser.add_argument("--output", type=Path, default=Path("bench-out"), help="folder to write")
    options = parser.parse_args(arguments)
    setting = Setting(options.output, environments_folder(), cap=options.cap)

    def peer(tables: Tables, schema: Schema) -> Line:
        if options.ours:
            return Line(HMA.title, 0.0, why="not run")
        return theirs(tables, schema, setting)

    counts = [options.households]
    if options.smaller < options.households and not options.ours:
        counts.append(options.smaller)
    for each in page(counts, options.runs, peer):
        print(each, flush=True)


def _panel(schema: Schema) -> Panel:
    if schema.panel is None:
        raise ValueError("two tables belong together")
    return schema.panel


def _release(tables: Tables, schema: Schema, epsilon: float, count: int) -> Tables:
    made: Tables = synthesize(
        tables,
        schema,
        method="pegs-once",
        epsilon=epsilon,
        delta=DELTA,
        rows=count,
        progress=False,
    ).frames[0]
    return made


def _sizes(tables: Tables, key: str) -> Any:
    """Return the number of members of every household of the first table, 0 included."""
    members = tables[1].group_by(key).len()
    joint = tables[0].select(key).join(members, on=key, how="left")
    return joint.get_column("len").fill_null(0).to_numpy().astype(np.int64)


if __name__ == "__main__":
    main()
