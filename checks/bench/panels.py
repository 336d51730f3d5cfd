"""Panels: how far transitions and histories of synthetic people are off, and time at a million.

The invented panel (`datasets.panel`) is released by `pegs-once` at a total epsilon for each
person, and compared by the measures of `evaluation/utility/panel_records.py`. Beside it stands
the same table with its rows bounded instead of folded (R12), at the same epsilon, whose rows
carry no link:
for its transitions consecutive rows of the table serve. With up to 12 and 40 rows for a person,
transitions are pooled over positions; beside them stand those of every position folded, for 12.
Invented households with their members
(`datasets.households`) are released as two tables, beside each table released alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from checks.bench.foundation import SEED, Setting
from checks.bench.released import measure
from checks.bench.timing import MEBIBYTE, Clock, Figure, run_program
from pegsynth import Schema, synthesize
from pegsynth.codec.codec import encode
from pegsynth.codec.folding import as_one
from pegsynth.datasets import households, households_schema, panel, panel_schema
from pegsynth.evaluation.utility.distances import evaluate_codes
from pegsynth.evaluation.utility.panel_records import panel_records

DELTA = 1e-9
PEOPLE = 20_000
HOUSEHOLDS = 50_000
RUNS = 3
MOST_BYTES = 2 << 30
ASKED = {1.0: (0.03, 0.005), 10.0: (0.009, None)}
MANY_ROWS = (12, 40)
MOST_FOLDED = 12
"""With more rows a folded table has too many features to be released in minutes."""


def panels(setting: Setting) -> Iterator[Figure]:
    """How far transitions, rows per person and histories are off, then time and memory."""
    people = min(PEOPLE, setting.rows)
    table, schema = panel(people, seed=SEED), panel_schema()
    for epsilon, (transitions, rows) in ASKED.items():
        runs = [_measured(table, schema, people, epsilon) for _ in range(RUNS)]
        found = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        bounded = _bounded(table, schema, people, epsilon)
        name = f"panel of {people:,} people, epsilon {epsilon:g}"
        value = found["transition_distance"]
        yield Figure(f"{name}: transitions off", value, transitions, value, bounded, "")
        value = found["rows_per_unit_distance"]
        yield Figure(f"{name}: rows per person off", value, rows, value, None, "")
        value = found["inconsistent_units"]
        yield Figure(f"{name}: inconsistent people", value, 0, value, None, "")
    yield from _households(setting)
    yield from _large(setting)


def many_rows(setting: Setting) -> Iterator[Figure]:
    """How far transitions and rows per person are off where people have many rows."""
    whole = setting.rows >= PEOPLE
    people, repeats = min(PEOPLE, setting.rows), RUNS if whole else 1
    for most in MANY_ROWS if whole else MANY_ROWS[:1]:
        table, schema = panel(people, seed=SEED, most=most), panel_schema(most)
        pooled, folded = (_with(schema, way) for way in ("pooled", "folded"))
        for epsilon in ASKED if whole else (1.0,):
            with Clock() as clock:
                runs = [_measured(table, pooled, people, epsilon) for _ in range(repeats)]
            found = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
            beside = (
                _measured(table, folded, people, epsilon) if whole and most <= MOST_FOLDED else {}
            )
            name = f"1 to {most} rows, {people:,} people, epsilon {epsilon:g}"
            for key, words in _MANY:
                yield Figure(
                    f"{name}: {words}", found[key], None, found[key], beside.get(key), unit=""
                )
            seconds = clock.processor / repeats
            yield Figure(f"{name}: processor time of a release", seconds, None, seconds)


_MANY = (
    ("transition_distance", "transitions off / folded"),
    ("rows_per_unit_distance", "rows per person off / folded"),
    ("gap_distance", "gaps off / folded"),
    ("last_row_distance", "last rows off / folded"),
    ("inconsistent_units", "inconsistent people / folded"),
)


def _with(schema: Schema, transitions: str) -> Schema:
    if schema.panel is None:
        raise ValueError("the schema has no panel")
    return replace(schema, panel=replace(schema.panel, transitions=transitions))


def _households(setting: Setting) -> Iterator[Figure]:
    """Pairs within and across two tables, beside each table released alone at the same epsilon."""
    count = min(HOUSEHOLDS, setting.rows)
    schema, tables = households_schema(), households(count, seed=SEED)
    told: dict[str, Any] = {"method": "pegs-once", "epsilon": 1.0, "delta": DELTA}
    told |= {"progress": False}
    panel = schema.panel
    if panel is None:
        raise ValueError("two tables belong together")
    pair = synthesize(tables, schema, rows=count, **told).frames[0]
    original, together = as_one(tables, schema), as_one(pair, schema)
    flat = replace(schema, panel=None, unit=panel.unit, rows_per_unit=panel.most)
    alone = synthesize(original, flat, rows=original.height, **told).frames[0]
    units = Schema(tuple(schema[name] for name in panel.fixed), reviewed=True)
    first = tables[0].drop(panel.unit)
    apart = synthesize(first, units, rows=count, **told).frames[0]
    name = f"{count:,} households, epsilon 1"
    ours, theirs = (pair_error(original, each, flat) for each in (together, alone))
    yield Figure(f"{name}: pairs of both tables off / flattened", ours / theirs, None, ours, theirs)
    ours, theirs = (pair_error(first, each, units) for each in (pair[0].drop(panel.unit), apart))
    yield Figure(f"{name}: pairs of households off / alone", ours / theirs, None, ours, theirs)
    siblings = sibling_error(original, together, schema)
    yield Figure(f"{name}: pairs of siblings off", siblings, None, siblings, unit="")


def pair_error(original: pl.DataFrame, synthetic: pl.DataFrame, schema: Schema) -> float:
    """Return the mean distance of all two-way tables."""
    book = replace(schema, unit=None, rows_per_unit=1, columns=schema.features)
    codes = [encode(each.select(book.names), book) for each in (original, synthetic)]
    return evaluate_codes(codes[0], [codes[1]], book).summary["tvd2"] or 0.0


def sibling_error(original: pl.DataFrame, synthetic: pl.DataFrame, schema: Schema) -> float:
    """Return how far a member's values with those of the next member are off, over features."""
    records = panel_records(original, [synthetic], schema)
    return next(each.value or 0.0 for each in records if each.name == "transition_distance")


def _measured(table: pl.DataFrame, schema: Schema, people: int, epsilon: float) -> dict[str, float]:
    release = synthesize(
        table, schema, method="pegs-once", epsilon=epsilon, delta=DELTA, rows=people, progress=False
    )
    records = panel_records(table, release.frames, schema)
    return {each.name: each.value or 0.0 for each in records if not each.subject}


def _bounded(table: pl.DataFrame, schema: Schema, people: int, epsilon: float) -> float:
    """Return how far transitions are off where rows are bounded and drawn one by one."""
    most = schema.panel.most if schema.panel else 1
    plain = replace(schema, panel=None, unit="patient", rows_per_unit=most)
    release = synthesize(
        table,
        plain,
        method="pegs-once",
        epsilon=epsilon,
        delta=DELTA,
        rows=table.height,
        progress=False,
    )
    sizes = table.group_by("patient").len().get_column("len").to_numpy()
    rows = release.frames[0][: int(sizes.sum())]
    units = np.repeat(np.arange(len(sizes)), sizes)[: rows.height]
    records = panel_records(table, [rows.with_columns(patient=units)], schema)
    return next(e.value or 0.0 for e in records if e.name == "transition_distance")


def _large(setting: Setting) -> Iterator[Figure]:
    path, schema = setting.folder / "panel.parquet", setting.folder / "panel.toml"
    panel(setting.rows, seed=SEED).write_parquet(path)
    panel_schema().save(schema)
    done = run_program(
        [sys.executable, "-m", "checks.bench.panels", path, schema, str(setting.rows)]
    )
    seconds = float(done.output.split()[-1])
    name = f"panel of {setting.rows:,} people"
    yield Figure(f"{name}, warm", seconds, 60, seconds)
    memory = done.peak_bytes / MEBIBYTE
    yield Figure(f"{name}: memory / 2 GiB", done.peak_bytes / MOST_BYTES, 1, memory, unit="MiB")


FIGURES: dict[str, Callable[[Setting], Iterable[Figure]]] = {
    "panels": panels,
    "many-rows": many_rows,
}


if __name__ == "__main__":
    print(measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), runs=1))
