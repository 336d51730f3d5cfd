"""How often intervals hold the truth under schemas that nobody wrote, by kind and status (R28).

A public table is the population: samples are drawn from its rows with replacement, released by
`pegs-once` with the drafted schema, default options and 20 replicate weights, and analysed as
users do it, values and not codes. Figures are chosen by the table alone.
``python -m checks.bench.coverage --only drafted --table Ecdat/HI --rows 10000 --releases 4`` prints
coverage, median width (the sample's own interval being 1) and median of (estimate - truth) over
the standard error, by kind and status; and how many supported figures cover below 0.80 by more
than chance (so many misses at 0.80: less than 1 in 40).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from checks.bench.coverage_tally import Interval, Release, Tally
from checks.bench.drafted_correlations import taken
from pegsynth import Schema, replicated, synthesize
from pegsynth.errors import ParameterError
from pegsynth.inference import procedures
from pegsynth.inference.pooled_result import Pooled

METHOD = "pegs-once, drafted"
EPSILONS = (0.1, 1.0, 3.0, 10.0)
MOST = 12
"""Figures of a kind and table."""
ERROR = "error"
LEAST = 0.80
CHANCE = 0.025
TABLES = ("Ecdat/HI", "wooldridge/labsup", "COUNT/rwm5yr", "wooldridge/k401ksubs")
"""Nothing may be chosen on the last two."""

Fit = str | procedures.Statistic | Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Asked:
    """A figure, or several of one fit.

    Parameters
    ----------
    kind
        What kind of figure it is.
    fit
        As for `replicated`.
    analysis
        The columns that it is of.
    contrast
        What is taken of the estimates; None: each that is named as the analysis wants.
    """

    kind: str
    fit: Fit
    analysis: str
    contrast: dict[str, float] | None = None


def numbers(frame: Any, name: str) -> Any:
    """Return a column as numbers."""
    return pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)


def deviation(name: str) -> Fit:
    """Return the standard deviation of a column."""

    def fit(frame: Any, weights: Any) -> dict[str, float]:
        values = numbers(frame, name)
        known = np.isfinite(values)
        return {name: float(np.sqrt(np.cov(values[known], aweights=weights[known], ddof=0)))}

    return fit


def correlation(first: str, second: str) -> Fit:
    """Return the correlation of two columns."""

    def fit(frame: Any, weights: Any) -> dict[str, float]:
        both = np.stack([numbers(frame, first), numbers(frame, second)])
        known = np.isfinite(both).all(axis=0)
        matrix = np.cov(both[:, known], aweights=weights[known], ddof=0)
        return {"r": float(matrix[0, 1] / np.sqrt(matrix[0, 0] * matrix[1, 1]))}

    return fit


def cell(values: dict[str, Any]) -> Fit:
    """Return the proportion of rows with these values."""

    def fit(frame: Any, weights: Any) -> dict[str, float]:
        inside = np.logical_and.reduce([frame[name] == value for name, value in values.items()])
        return {"cell": float(np.average(inside, weights=weights))}

    return fit


def figures(frame: pd.DataFrame, schema: Schema) -> list[Asked]:
    """Return what is asked of a table, at most `MOST` of each kind."""
    free = np.random.default_rng(1)
    measured = [f.name for f in schema.features if f.kind == "numeric"]
    listed = [
        f.name for f in schema.features if f.kind in ("nominal", "ordinal") and f.name in frame
    ]

    def some(items: Sequence[Any]) -> list[Any]:
        chosen = free.permutation(len(items))[:MOST]
        return [items[place] for place in sorted(chosen)]

    found = [Asked("shares", procedures.shares(name), name) for name in some(listed)]
    for a, b in some(list(combinations(listed, 2))):
        top = frame.value_counts([a, b]).index[0]
        found.append(Asked("cells", cell(dict(zip((a, b), top, strict=True))), f"{a} + {b}"))
    found += [Asked("means", procedures.means(name), name) for name in some(measured)]
    found += [Asked("deviations", deviation(name), name) for name in some(measured)]
    for name, group in some([(name, group) for name in measured for group in listed]):
        one, two = (f"{name}[{label}]" for label in frame[group].value_counts().index[:2])
        fit = procedures.means(name, by=group)
        found.append(Asked("differences", fit, f"{name} + {group}", {one: 1.0, two: -1.0}))
    for a, b in some(list(combinations(measured, 2))):
        found.append(Asked("correlations", correlation(a, b), f"{a} + {b}"))
    for y, a, b in some([(y, a, b) for y in measured for a in measured for b in listed if a != y]):
        found.append(Asked("linear regressions", f"{y} ~ {a} + C({b})", f"{y} + {a} + {b}"))
    binary = [name for name in listed if frame[name].nunique() == 2]
    for y, a, b in some([(y, a, b) for y in binary for a in listed for b in measured if a != y]):
        found.append(Asked("logistic regressions", f"{y} ~ C({a}) + {b}", f"{y} + {a} + {b}"))
    return found


def answered(asked: Asked, frame: Any) -> dict[str, tuple[float, float, str]]:
    """Return estimate, standard error and status of every figure of a fit."""
    stated = asked.analysis if callable(asked.fit) and hasattr(frame, "ledger") else None
    found: Pooled = replicated(asked.fit, frame, analysis=stated)
    if asked.contrast is not None:
        found = found.t_test(asked.contrast)
    lines = zip(
        found.names,
        np.atleast_1d(found.combined.estimate).tolist(),
        np.atleast_1d(found.combined.std_error).tolist(),
        found.combined.statuses or ("",) * len(found.names),
        strict=True,
    )
    return {name: each for name, *each in lines if name != "Intercept"}  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class Drafted:
    """A table as a population, its drafted schema, and what is true of it."""

    frame: pd.DataFrame
    schema: Schema
    asked: tuple[Asked, ...]
    true: tuple[dict[str, Any], ...]
    known: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: str) -> Drafted:
        """Draft the schema of a public table, and compute its figures."""
        frame = taken(table)
        schema = replace(Schema.draft(frame), reviewed=True)
        found = []
        for each in figures(frame, schema):
            try:
                found.append((each, answered(each, _alike(frame))))
            except ParameterError:
                # Of this table it cannot be estimated, as where one column decides another.
                continue
        asked, true = zip(*found, strict=True)
        return cls(frame, schema, asked, true)

    def usual(self, rows: int) -> list[dict[str, Any]]:
        """Return the answers of one sample itself, whose intervals are the unit of widths."""
        if rows not in self.known:
            self.known[rows] = self._usual(rows)
        return self.known[rows]

    def _usual(self, rows: int) -> list[dict[str, Any]]:
        own = _bootstrapped(self.frame.sample(rows, replace=True, random_state=0), 0)
        found = []
        for asked in self.asked:
            try:
                found.append(answered(asked, own))
            except (ValueError, KeyError, ArithmeticError):
                found.append({})
        return found

    def measure(self, which: Release, replicates: int) -> Iterator[Interval]:
        """Yield the intervals of one release, and under `ERROR` errors in standard errors."""
        sample = self.frame.sample(which.rows, replace=True, random_state=which.seed)
        sample = sample.reset_index(drop=True)
        released = synthesize(
            sample,
            self.schema,
            method="pegs-once",
            epsilon=which.epsilon,
            rows=which.rows,
            replicates=replicates,
            seed=which.seed,
            progress=False,
        )
        factor = float(stats.t.ppf(0.975, replicates))
        own = self.usual(which.rows)
        for asked, true, usual in zip(self.asked, self.true, own, strict=True):
            try:
                found = answered(asked, released)
            except (ValueError, KeyError, ArithmeticError):
                continue
            for name in found.keys() & true.keys() & usual.keys():
                value, error, status = found[name]
                off = (value - true[name][0]) / max(error, 1e-300)
                group = f"{asked.kind} | {status} | {asked.analysis}: {name}"
                width = error * factor / max(1.96 * usual[name][1], 1e-300)
                yield Interval(group, "replicate-weights", abs(off) <= factor, width)
                yield Interval(group, ERROR, covered=True, width=off)


def _alike(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(**{f"pegs_weight{end}": 1.0 for end in ("", "_1", "_2")})


def _bootstrapped(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return a sample with replicate weights of its own sampling error, f = 0.2 as ours have."""
    words = np.random.default_rng(seed)
    names = ["pegs_weight", *(f"pegs_weight_{k}" for k in range(1, 41))]
    signs = 1 + 0.2 * words.choice([-1.0, 1.0], size=(len(frame), len(names)))
    signs[:, 0] = 1.0
    return frame.reset_index(drop=True).join(pd.DataFrame(signs, columns=names))


def page(tallies: Sequence[Tally]) -> Iterator[str]:
    """Yield a line for every epsilon, kind and status, over all tables; and what is too low."""
    yield "| epsilon | figures | status | coverage | median width | median error | intervals |"
    yield "|---|---|---|---|---|---|---|"
    cells: dict[tuple[float, str, str], list[Tally]] = {}
    alone: dict[tuple[str, float, str], list[int]] = {}
    for each in tallies:
        kind, status, figure = each.group.split(" | ", 2)
        cells.setdefault((each.release.epsilon, kind, status), []).append(each)
        if each.rule != ERROR and status == "supported":
            key = (each.release.table, each.release.epsilon, figure)
            alone.setdefault(key, []).append(each.hits)
    for (epsilon, kind, status), own in sorted(cells.items()):
        hits = [each.hits for each in own if each.rule != ERROR]
        widths = [each.width for each in own if each.rule != ERROR]
        errors = [each.width for each in own if each.rule == ERROR]
        yield (
            f"| {epsilon:g} | {kind} | {status} | {np.mean(hits):.3f} | {median(widths):.2f} | "
            f"{median(errors):+.2f} | {len(hits)} |"
        )
    low = [
        stats.binom.cdf(sum(hits), len(hits), LEAST) < CHANCE
        for hits in alone.values()
        if stats.binom.cdf(0, len(hits), LEAST) < CHANCE
    ]
    yield f"\nsupported figures below {LEAST:g} by more than chance: {sum(low)} of {len(low)}"
