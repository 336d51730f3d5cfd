"""Numbers that stay numbers: how near the values of a release are to those of its original.

``python -m checks.bench.released_numbers [--rows N] [--runs K] [--epsilon E ..] [--bins B]``
measures private edges with a part of the budget, settles the schema, releases the rest by
`pegs-once` and decodes; the same release on public edges, decoded uniformly, stands beside it. All
runs are unseeded. Errors are relative to the original; those of regressions are means over their
coefficients.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth import Schema, synthesize
from pegsynth.codec.codec import decode_values, encode
from pegsynth.codec.measured_numbers import Settled, measure, settle
from pegsynth.codec.measured_rows import count_grid
from pegsynth.codec.number_grid import grid_schema
from pegsynth.codec.paying import plan_numbers
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.privacy import Allowance
from pegsynth.privacy.conversion import epsilon_at, rho_at
from pegsynth.random import RandomStream

DELTA = 1e-9
NUMBERS = ("age.yrs", "los", "charge")
NOMINAL = ("typ", "sex", "ethncty", "race", "patzip", "disp", "pay", "MDC", "cat")
RESPONSE_ABOVE = 25_000
Float64 = NDArray[np.float64]


def private_schema(names: Sequence[str] = NUMBERS) -> Schema:
    """Return the schema of the discharges without any edge, and rules on nominal features."""
    schema = discharge_schema()
    positions = {schema.index(name) for name in names}
    rules = tuple(r for r in schema.rules if not positions & {index for index, _ in r.forbidden})
    schema = replace(schema, rules=rules)
    for name in names:
        schema = schema.with_feature(name, edges="private")
    return replace(schema, reviewed=True)


def settled_by_budget(
    table: pl.DataFrame, schema: Schema, rho: Fraction, *, bins: int | None = None
) -> tuple[Settled, Fraction]:
    """Measure edges and shapes; return what they give, and the rho that is left."""
    grids = grid_schema(schema)
    counts = count_grid([encode(table.select(grids.names), grids)], grids)
    plan = plan_numbers(schema, Allowance("zcdp", rho), rows=len(table))
    part = rho * Fraction(plan.together)
    budget_filter = PrivacyFilter(Allowance("zcdp", part), RandomStream(), names=schema.names)
    share = 1 / len(plan.names)
    trees = {
        name: measure(counts[name], schema[name], budget_filter, share, index=schema.index(name))
        for name in plan.names
    }
    rows = float(np.mean([tree.levels[0].counts.clip(0).sum() for tree in trees.values()]))
    return settle(schema, trees, bins or plan.bins(rows)), rho - part


def released(
    table: pl.DataFrame, epsilon: float, *, bins: int | None, modes: Sequence[str]
) -> Iterator[tuple[str, pl.DataFrame, float]]:
    """Yield one release after the other, by private edges: how, its table, seconds to decode."""
    rho = Fraction(rho_at(epsilon, delta=DELTA))
    settled, left = settled_by_budget(table, private_schema(), rho, bins=bins)
    rest = epsilon_at(float(left), delta=DELTA)
    frame = synthesize(
        table, settled.schema, method="pegs-once", rows=len(table), epsilon=rest, delta=DELTA
    ).frames[0]
    codes = encode(frame, settled.schema)
    counts = [settled.schema[name].bin_count for name in NUMBERS]
    for mode in modes:
        start = time.perf_counter()
        decoded = decode_values(
            codes, settled.schema, settled.shapes, RandomStream(), model=mode == "model"
        )
        yield f"private {counts}, {mode}", decoded, time.perf_counter() - start


def kolmogorov(first: pl.Series, second: pl.Series) -> float:
    """Return the largest distance of two distribution functions."""
    a, b = (np.sort(each.drop_nulls().to_numpy()) for each in (first, second))
    places = np.union1d(a, b)
    shares = [np.searchsorted(each, places, side="right") / len(each) for each in (a, b)]
    return float(np.abs(shares[0] - shares[1]).max())


def regressions(table: pl.DataFrame) -> tuple[Float64, Float64, Float64]:
    """Return slopes of age, severity, surgery and stay: on charge, its log, and a threshold."""
    kept = table.select(*NUMBERS, "sev", "cat").drop_nulls()
    columns = [kept["age.yrs"], kept["sev"], kept["cat"] == "Surgical", kept["los"]]
    design = np.column_stack([np.ones(len(kept)), *(c.cast(pl.Float64) for c in columns)])
    charge = kept["charge"].to_numpy().astype(np.float64)
    linear = np.linalg.lstsq(design, charge, rcond=None)[0]
    logs = np.linalg.lstsq(design, np.log(np.maximum(charge, 1.0)), rcond=None)[0]
    above, odds = (charge > RESPONSE_ABOVE).astype(np.float64), np.zeros(design.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(design @ odds, -30, 30)))
        weights = chance * (1 - chance) + 1e-9
        odds += np.linalg.solve(design.T @ (design * weights[:, None]), design.T @ (above - chance))
    return linear[1:], logs[1:], odds[1:]


def nominal_distance(first: pl.DataFrame, second: pl.DataFrame) -> float:
    """Return the mean total variation distance of two-way tables of nominal columns."""
    found = []
    for place, name in enumerate(NOMINAL):
        for other in NOMINAL[place + 1 :]:
            shares = [
                table.group_by(name, other).len(f"n{which}")
                for which, table in enumerate((first, second))
            ]
            both = shares[0].join(
                shares[1], on=[name, other], how="full", coalesce=True, nulls_equal=True
            )
            counts = both.select("n0", "n1").fill_null(0).to_numpy()
            found.append(np.abs(counts[:, 0] / len(first) - counts[:, 1] / len(second)).sum() / 2)
    return float(np.mean(found))


@dataclass(frozen=True)
class Line:
    """Errors of one release."""

    distances: Float64
    means: Float64
    deviations: Float64
    slopes: Float64
    nominal: float

    @classmethod
    def of(cls, original: pl.DataFrame, released: pl.DataFrame) -> Line:
        """Compare a release with its original."""
        values = [
            [table[name].drop_nulls().to_numpy() for name in NUMBERS]
            for table in (original, released)
        ]
        means, deviations = (
            np.array([abs(each(b) / each(a) - 1) for a, b in zip(*values, strict=True)])
            for each in (np.mean, np.std)
        )
        slopes = zip(regressions(original), regressions(released), strict=True)
        return cls(
            np.array([kolmogorov(original[name], released[name]) for name in NUMBERS]),
            means,
            deviations,
            np.array([np.abs(b / a - 1).mean() for a, b in slopes]),
            nominal_distance(original, released),
        )

    @classmethod
    def mean(cls, lines: Sequence[Line]) -> Line:
        """Return the means of several runs."""
        fields = ("distances", "means", "deviations", "slopes")
        arrays = (np.mean([getattr(line, field) for line in lines], axis=0) for field in fields)
        return cls(*arrays, nominal=float(np.mean([line.nominal for line in lines])))

    def text(self) -> str:
        """Return the line of a table."""
        parts = (self.distances, self.means, self.deviations, self.slopes, [self.nominal])
        return " | ".join("/".join(f"{figure:.4f}" for figure in part) for part in parts)


def decoding_seconds(rows: int) -> tuple[float, float]:
    """Return the seconds that it takes to decode uniformly, and by shapes and a model."""
    table, public = discharge(rows, seed=2), discharge_schema()
    settled, _ = settled_by_budget(table, private_schema(), Fraction(1, 85))
    codes = {True: encode(table, public), False: encode(table, settled.schema)}
    decode_values(codes[False][:1000], settled.schema, settled.shapes, RandomStream())
    start = time.perf_counter()
    decode_values(codes[True], public, {}, RandomStream(), model=False)
    middle = time.perf_counter()
    decode_values(codes[False], settled.schema, settled.shapes, RandomStream())
    return middle - start, time.perf_counter() - middle


HEADER = "how | Kolmogorov age/los/charge | mean | sd | OLS/log/logit | TVD2 nominal"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for every epsilon and way of release."""
    parser = argparse.ArgumentParser(prog="checks.bench.released_numbers", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--bins", type=int, default=None)
    parser.add_argument("--no-public", action="store_true", help="leave out public edges")
    parser.add_argument(
        "--decode", type=int, metavar="ROWS", help="time decoding, and nothing else"
    )
    options = parser.parse_args(arguments)
    if options.decode:
        uniform, model = decoding_seconds(options.decode)
        print(f"{options.decode:,} rows: uniform {uniform:.2f} s, by a model {model:.2f} s")
        return
    table = discharge(options.rows, seed=1)
    print(HEADER)
    for epsilon in options.epsilon:
        lines: dict[str, list[Line]] = {}
        seconds: dict[str, float] = {}
        for _ in range(options.runs):
            for how, frame, taken in released(
                table, epsilon, bins=options.bins, modes=("values", "model")
            ):
                mode = how.rpartition(" ")[2]
                lines.setdefault(f"private edges, {mode}", []).append(Line.of(table, frame))
                seconds[f"private edges, {mode}"] = taken
                shown = how
            if not options.no_public:
                frame = synthesize(
                    table,
                    discharge_schema(),
                    method="pegs-once",
                    rows=len(table),
                    epsilon=epsilon,
                    delta=DELTA,
                ).frames[0]
                lines.setdefault("public edges, uniform", []).append(Line.of(table, frame))
        print(f"epsilon {epsilon:g}, {options.runs} runs, {options.rows:,} rows; last: {shown}")
        for how, each in lines.items():
            taken = f" ({seconds[how]:.1f} s to decode)" if how in seconds else ""
            print(f"{how} | {Line.mean(each).text()}{taken}", flush=True)


if __name__ == "__main__":
    main()
