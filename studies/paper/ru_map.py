"""Risk against utility of any methods on any table.

`risk_utility_map` draws every method at every budget, several times, measures one risk and
one utility of each table, and returns the points of a map with their intervals. It runs on
the engine of the study: in parallel, resumable, with results that no order changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pegsynth.codec.code_table import CodeTable
from pegsynth.codec.codec import decode, encode, one_matrix
from pegsynth.errors import ParameterError
from pegsynth.inference.statistics import Estimate
from pegsynth.kernels.arrays import Codes
from pegsynth.methods import get, names
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.toml import dumps
from pegsynth.tables.table_input import opened
from pegsynth.views import CONFIDENTIAL, Picture, card, table
from studies.paper.arms import MAIN, Arm, Axis, Pool
from studies.paper.cell_file import CellValues
from studies.paper.results import Results
from studies.paper.setting import setting_of
from studies.paper.study_design import PER_ROW
from studies.paper.work_cells import Cell, one_thread_each, run
from studies.paper.workshop import FRESH, Population, Workshop
from studies.paper.yardstick import Yardstick

if TYPE_CHECKING:
    import polars as pl

Measure = Callable[[Codes, Codes], float]
BudgetKind = Literal["epsilon_per_row", "epsilon", "l"]

PRICES = ("epsilon", "epsilon_per_row", "alpha")
"""Figures that are known without measuring: the price of all rows, of one, and alpha."""

_MODEL_ROWS = 50_000
DRAWN_AS = {
    **{f"risk{end}": f"x{end}" for end in ("", "_low", "_high")},
    **{f"utility{end}": f"y{end}" for end in ("", "_low", "_high")},
    "method": "series",
    "budget": "path",
    "level": "path",
}
"""What the chart builder calls the columns of a map."""


@dataclass(frozen=True)
class Point:
    """One method at one budget.

    Parameters
    ----------
    method, budget
        What was drawn; no budget for a method that takes none.
    risk, utility
        Means over repeats with their intervals.
    reason
        Why there are no values, where there are none.
    """

    method: str
    budget: float | None
    risk: Estimate
    utility: Estimate
    reason: str = ""


@dataclass(frozen=True)
class RiskUtilityMap:
    """Points of risk against utility.

    Parameters
    ----------
    risk, utility
        Names of the two figures.
    points
        One for every method and budget, in the order in which they were asked for.
    results
        All figures that were measured, of every repeat.
    """

    risk: str
    utility: str
    points: tuple[Point, ...]
    results: Results

    def rows(self) -> list[dict[str, Any]]:
        """Return the points as plain rows."""
        return [
            {
                "method": point.method,
                "budget": point.budget,
                "label": "" if point.budget is None else f"{point.budget:g}",
                "risk": point.risk.value,
                "risk_low": point.risk.low,
                "risk_high": point.risk.high,
                "utility": point.utility.value,
                "utility_low": point.utility.low,
                "utility_high": point.utility.high,
                "repeats": point.utility.n,
                "reason": point.reason,
            }
            for point in self.points
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each point (Polars)."""
        import polars as pl

        return pl.DataFrame(
            self.rows(), schema_overrides={"budget": pl.Float64}, infer_schema_length=None
        )

    def plot(self, *, log_risk: bool = False, log_utility: bool = True) -> Picture:
        """Draw the map."""
        rows = [
            {DRAWN_AS.get(key, key): value for key, value in row.items()} for row in self.rows()
        ]
        titles = {"x_title": self.risk, "y_title": self.utility}
        scales = {"log_x": log_risk, "log_y": log_utility}
        return Picture(
            "risk_utility_map",
            rows,
            f"{self.risk} against {self.utility}",
            {**titles, **scales},
            confidential=True,
        )

    def _repr_html_(self) -> str:
        header = ("method", "budget", "risk", "utility", "repeats", "reason")
        rows = [[row[name] for name in header] for row in self.rows()]
        title = f"{self.risk} against {self.utility}, {len(rows):,} points"
        return card(title, table=table(header, rows), warning=CONFIDENTIAL)


def risk_utility_map(
    data: Any,
    schema: Schema | str | Path,
    *,
    methods: Sequence[str] = ("pegs", "pegs-rs", "pmi"),
    budgets: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
    budget: BudgetKind = "epsilon_per_row",
    risk: str = "epsilon",
    utility: str = "marginal_distance",
    measures: Mapping[str, Measure] | None = None,
    rows: int = 1_000,
    repeats: int = 10,
    delta: float | None = None,
    seed_pool: Any = "default",
    holdout: Any = None,
    seed: int = 1,
    checkpoint: str | Path | None = None,
    threads: int = 1,
    progress: Progress = quiet,
) -> RiskUtilityMap:
    """Map risk against utility over methods, budgets and repeats.

    Everything is computed from the original table: the map is internal. All draws are seeded,
    so no synthetic table of it carries a guarantee.

    Parameters
    ----------
    data, schema
        The table (a frame or the name of a file) and its codebook.
    methods
        Names of methods; ``fresh`` stands for rows of `holdout`.
    budgets, budget
        Values, and what they are. Methods without a price per row get the same total at once;
        those that take no budget give one point.
    risk, utility
        Names of figures: ``epsilon`` (of all rows), ``epsilon_per_row``, ``alpha``; any that
        `Yardstick.measure` gives, such as ``marginal_distance``,
        ``conditional_distance[* | age]``, ``uniqueness[age, sex]``, ``copied_rows``; or a name in
        `measures`.
    measures
        Figures of your own by name: functions of the code matrices of the original and of a
        synthetic table.
    rows, repeats
        Rows of a synthetic table, and tables for each method and budget.
    delta
        Beside a total epsilon.
    seed_pool
        ``default``, ``uniform``, ``original``, or a frame or file of public rows.
    holdout
        Rows of the same population that are never given to a synthesizer.
    seed, threads
        Nothing depends on the number of threads.
    checkpoint
        File of finished tables; a run that was stopped goes on from there.

    Returns
    -------
    RiskUtilityMap
        Its points, and all other figures of the same tables.
    """
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    population, pool = _population(data, book, seed_pool, holdout)
    own = dict(measures or {})
    arms = {m: _arm(m, budget, pool, delta, population) for m in dict.fromkeys(methods)}
    yardstick = Yardstick.of(setting_of(population.schema), population.codes)
    known = [*PRICES, *yardstick.measure(population.codes[:_SOME]), *own]
    for name in (risk, utility):
        if name not in known:
            raise ParameterError(f"there is no figure {name!r}; there are {', '.join(known)}")
    workshop = Workshop({MAIN: population}, model_rows=_MODEL_ROWS, threads=threads)

    def work(cell: Cell, stream: RandomStream) -> CellValues:
        drawn = workshop.draw(arms[cell.arm], cell.level, rows, stream)
        mine = {name: float(of(population.codes, drawn.codes)) for name, of in own.items()}
        price: CellValues = {
            "epsilon": drawn.epsilon,
            "epsilon_per_row": drawn.epsilon / rows,
            "alpha": drawn.alpha,
        }
        return {**price, **yardstick.measure(drawn.codes), **mine}

    places = [
        (name, level)
        for name, arm in arms.items()
        for level in ((None,) if arm.axis == "none" else tuple(map(float, budgets)))
    ]
    cells = [Cell(*place, repeat) for place in places for repeat in range(repeats)]
    configuration = {
        "rows": rows,
        "budget": budget,
        "delta": delta,
        "pool": pool,
        "measures": sorted(own),
        "schema": hashlib.sha256(dumps(population.schema).encode()).hexdigest(),
        "table": _digest(population),
    }
    with one_thread_each():
        found = run(
            cells,
            work,
            seed=seed,
            checkpoint=checkpoint,
            configuration=configuration,
            mode=0o600,
            threads=threads,
            progress=progress,
        )
    results = Results.of(found)
    reasons = results.reasons()
    points = tuple(
        Point(
            name,
            level,
            results.mean(name, level, risk),
            results.mean(name, level, utility),
            reasons.get((name, level), ""),
        )
        for name, level in places
    )
    return RiskUtilityMap(risk, utility, points, results)


_SOME = 100


def _population(data: Any, schema: Schema, pool: Any, holdout: Any) -> tuple[Population, Pool]:
    with opened(data, dialect=schema.dialect) as reader:
        codes = one_matrix(CodeTable(reader, schema, RandomStream("study table")).batches())
    book = replace(schema, unit=None, columns=schema.features, rows_per_unit=1)
    nothing = codes[:0]
    named: Pool = "public"
    rows = nothing
    if isinstance(pool, str) and pool in ("default", "uniform", "original"):
        named = pool  # type: ignore[assignment]
    else:
        rows = encode(pool, schema, need_unit=False)
    fresh = nothing if holdout is None else encode(holdout, schema, need_unit=False)
    return Population(book, decode(codes, book, how="labels"), codes, rows, fresh), named


def _arm(
    method: str, budget: BudgetKind, pool: Pool, delta: float | None, population: Population
) -> Arm:
    if method == FRESH and not len(population.fresh):
        raise ParameterError("fresh rows are those of a hold-out; give one")
    if method != FRESH and method not in names():
        raise ParameterError(f"there is no method {method!r}; there are {', '.join(names())}")
    axes: dict[str, Axis] = {"epsilon_per_row": "row", "epsilon": "total", "l": "l"}
    if budget not in axes:
        raise ParameterError(f"a budget is one of {', '.join(axes)}, not {budget!r}")
    axis = axes[budget]
    if method == FRESH or not get(method).has_proof:
        axis = "none"
    elif axis == "row" and method not in PER_ROW:
        axis = "rows"
    return Arm(method, method, axis, pool=pool, order="default", delta=delta)


def _digest(population: Population) -> str:
    parts = (population.codes, population.pool, population.fresh)
    return hashlib.sha256(b"|".join(part.tobytes() for part in parts)).hexdigest()
