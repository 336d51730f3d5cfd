"""Tiny releases of the methods that work on the table itself: contingency, marginal, pmi.

As in `cases`, a real plan is settled and the claim is its own ledger. The law of what is
published is exact: every integer behind a row of the contingency table, every word behind
an urn, every word behind a draw from fitted probabilities (R8, R9, R17, R18).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.auditing.cases import RULES, PlannedCase, settled, tiny_schema
from pegsynth.auditing.divergence import Distribution, Row, Table, all_rows, repeated
from pegsynth.auditing.exact_laws import enumerate_integers, enumerate_words
from pegsynth.kernels.fitted_draws import LANE, draw_categories
from pegsynth.kernels.urns import DRAWN, draw_urn
from pegsynth.mechanisms.noise import Below
from pegsynth.methods import get
from pegsynth.methods.baselines.contingency import ContingencyTable
from pegsynth.methods.baselines.loglinear import blocked_cells, cell_weights, fit_loglinear
from pegsynth.methods.baselines.marginal import allowed_rows
from pegsynth.methods.baselines.sequential_draws import ConditionalModel, Probabilities, Sweeps
from pegsynth.methods.seed_rows import Codes
from pegsynth.schema import Rule

MOST_ROWS = 2

Law = dict[Hashable, Fraction]
Fit = Callable[[Table, tuple[int, ...]], ConditionalModel]


@dataclass(frozen=True)
class TableCase(PlannedCase):
    """One tiny release.

    Parameters
    ----------
    fit
        How `pmi` fits its conditional models to a table; any way keeps the claim (R8).
    """

    fit: Fit = field(kw_only=True)

    def distribution(self, table: Table) -> Distribution:
        """Return the exact probability of every output of all datasets."""
        one = _LAWS[self.method](self, table)
        return repeated(one, self.plan.options.datasets)

    @property
    def rows(self) -> int:
        """Rows of one dataset."""
        return self.plan.options.rows or 1


def _codes(table: Table, features: int) -> Codes:
    return np.array(table, dtype=np.uint32).reshape(-1, features)


def contingency_law(each: TableCase, table: Table) -> Law:
    """Return the law of all rows, by every integer the shipped code may draw (R9)."""
    counts, rules, plan = each.schema.category_counts, each.schema.rules, each.plan
    codes = _codes(table, len(counts))
    if plan.options.log_linear:
        return repeated(_fitted_cells(each, codes), each.rows)
    held = ContingencyTable(codes, counts)

    def run(source: Below, rows: int) -> Hashable:
        drawn = held.draw(
            rows, numerator=plan.numerator, scale=plan.scale, words=source, rules=rules
        )
        return tuple(map(tuple, drawn.tolist()))

    if not rules:
        return enumerate_integers(lambda source: run(source, each.rows), each.rows)
    # The first integer only says that some row obeys the rules.
    return repeated(enumerate_integers(lambda source: run(source, 1), 2), each.rows)


def _fitted_cells(each: TableCase, codes: Codes) -> Law:
    """Return the law of one row from the integer weights of a log-linear fit (R8)."""
    counts = each.schema.category_counts
    fitted = fit_loglinear(codes, counts).probabilities
    weights = cell_weights(fitted, each.plan.numerator, each.plan.scale)
    weights[blocked_cells(each.schema.rules, counts)] = 0
    total = int(weights.sum())
    return {
        row: Fraction(int(weight), total)
        for row, weight in zip(all_rows(counts), weights, strict=True)
        if weight
    }


def marginal_law(each: TableCase, table: Table) -> Law:
    """Return the law of one dataset: urns independent of each other, rows rejected whole.

    Rows that are missing when the urns are silent come from public weights alone.
    """
    counts, plan = each.schema.category_counts, each.plan
    method: Any = get(each.method)
    visits = method.shape(each.schema, plan.options).visits or 1
    codes = _codes(table, len(counts))
    tapes = [
        urn_law(
            tuple(np.bincount(codes[:, feature], minlength=count).tolist()),
            visits,
            plan.numerator,
            plan.scale,
        )
        for feature, count in enumerate(counts)
    ]
    law: Law = defaultdict(Fraction)
    for drawn in product(*(tape.items() for tape in tapes)):
        attempts = np.array([values for values, _ in drawn], dtype=np.uint32).T
        shown = allowed_rows(attempts, each.schema.rules, each.rows)
        mass = Fraction(1)
        for _, share in drawn:
            mass *= share
        law[tuple(map(tuple, shown.tolist()))] += mass
    return dict(law)


@cache
def urn_law(counts: tuple[int, ...], draws: int, multiplier: int, scale: int) -> Law:
    """Return the law of the first values of the compiled urn (R17)."""
    held = np.cumsum(np.array(counts, dtype=np.uint64), dtype=np.uint64)
    virtual = np.arange(1, len(counts) + 1, dtype=np.uint64)
    bits = (scale * (sum(counts) + draws) + max(multiplier, 1) * len(counts)).bit_length()

    def run(words: NDArray[np.uint64]) -> tuple[bool, Hashable, Hashable]:
        drawn = np.zeros(draws, dtype=np.uint32)
        state = np.zeros(2, dtype=np.int64)
        weights = (held, virtual, np.uint64(scale), np.uint64(multiplier))
        done = draw_urn(drawn, state, *weights, True, words, np.uint64(bits))
        # What is not drawn yet is 0, so equal prefixes look alike.
        return bool(done), int(state[DRAWN]), tuple(drawn.tolist())

    return enumerate_words(run, bits)


def imputation_law(each: TableCase, table: Table) -> Law:
    """Return the law of all rows, each swept from every seed row that obeys the rules (R8)."""
    model = each.fit(table, each.schema.category_counts)
    rows = np.array(all_rows(each.schema.category_counts), dtype=np.uint8)
    starts = [tuple(map(int, row)) for row in rows[~each.schema.breaks_a_rule(rows)]]
    one: Law = {}
    for start in starts:
        for row, share in _swept(each, model, start).items():
            one[start, row] = share / len(starts)
    return repeated(one, each.rows)


def _swept(each: TableCase, model: ConditionalModel, start: Row) -> dict[Row, Fraction]:
    """Return the law of one row after its sweeps, the values of hidden sweeps left out."""
    plan, counts = each.plan, each.schema.category_counts
    targets = tuple(range(len(counts)))
    how = Sweeps(targets, counts, plan.numerator, plan.scale, each.schema.rules)
    law: dict[Row, Fraction] = {start: Fraction(1)}
    for _ in range(plan.options.sweeps):
        for target in targets:
            after: dict[Row, Fraction] = defaultdict(Fraction)
            for row, mass in law.items():
                fitted = model.probabilities(target, np.array([row], dtype=np.uint32))[0]
                drawn = category_law(row, target, tuple(fitted.tolist()), how)
                for value, share in drawn.items():
                    after[(*row[:target], value, *row[target + 1 :])] += mass * share
            law = after
    return law


@cache
def category_law(
    row: Row, target: int, fitted: tuple[float, ...], how: Sweeps
) -> dict[int, Fraction]:
    """Return the law of one draw of the compiled code from fitted probabilities (R8, R18)."""
    bits = (how.scale + len(fitted) * max(how.numerator, 1)).bit_length()

    def run(words: NDArray[np.uint64]) -> tuple[bool, Hashable, Hashable]:
        drawn = np.array([row], dtype=np.uint32)
        state = np.zeros(3, dtype=np.int64)
        weights = (np.uint64(how.scale), np.uint64(how.numerator), how.tables)
        line = np.array([fitted])
        done = draw_categories(drawn, target, line, state, *weights, words, np.uint64(bits))
        return bool(done), int(state[LANE]), int(drawn[0, target])

    return enumerate_words(run, bits)  # type: ignore[return-value]


_LAWS: dict[str, Callable[[TableCase, Table], Law]] = {
    "contingency": contingency_law,
    "marginal": marginal_law,
    "pmi": imputation_law,
}


@dataclass(frozen=True)
class Frequencies:
    """Smoothed frequencies: rows that agree with the given one weigh more than the others."""

    table: Table
    category_counts: tuple[int, ...]

    def probabilities(self, target: int, rows: Codes) -> Probabilities:
        """Return a line per row."""
        lines = np.full((len(rows), self.category_counts[target]), 0.1)
        for line, given in zip(lines, rows.tolist(), strict=True):
            for row in self.table:
                others = [i for i in range(len(given)) if i != target]
                line[row[target]] += 1 + 5 * sum(row[i] == given[i] for i in others)
        shares: Probabilities = lines / lines.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True)
class Checksum:
    """A fit that any row turns round: all probability on the sum of all codes."""

    table: Table
    category_counts: tuple[int, ...]

    def probabilities(self, target: int, rows: Codes) -> Probabilities:
        """Return a line per row."""
        count = self.category_counts[target]
        total = sum(sum(row) + 1 for row in self.table)
        line = np.zeros(count)
        line[total % count] = 1.0
        return np.tile(line, (len(rows), 1))


def table_case(
    name: str,
    method: str,
    counts: tuple[int, ...] = (2, 2),
    *,
    rules: tuple[Rule, ...] = (),
    unit: int | None = None,
    fit: Fit = Frequencies,
    most_rows: int = MOST_ROWS,
    **draw: Any,
) -> TableCase:
    """Settle a release of small features; `draw` are the budget and the options of the method."""
    schema = tiny_schema(counts, rules=rules, unit=unit)
    return TableCase(name, schema, settled(method, schema, **draw), most_rows, fit=fit)


def table_cases() -> list[TableCase]:
    """Return one case for every way in which these methods claim differential privacy."""
    broken_rule: dict[str, Any] = {"name": "rule that a real row breaks", "rules": RULES}
    unit: dict[str, Any] = {"name": "two rows per unit", "unit": 2, "rows": 1, "most_rows": 1}
    contingency, marginal, pmi = (
        partial(table_case, method=method) for method in ("contingency", "marginal", "pmi")
    )
    return [
        contingency("one row", counts=(2, 3), rows=1),
        contingency("two rows", rows=2),
        contingency("two datasets", rows=1, datasets=2),
        contingency(**broken_rule, rows=2),
        contingency(**unit),
        contingency("log-linear fit", counts=(2, 3), rows=1, log_linear=True),
        contingency("log-linear, rule", rows=2, rules=RULES, log_linear=True),
        marginal("one row", counts=(2, 3), rows=1),
        marginal("two rows", rows=2),
        marginal("two datasets", rows=2, datasets=2, epsilon=4.0, most_rows=1),
        marginal(**broken_rule, rows=1, epsilon=3.0),
        marginal(**unit),
        pmi("one row", counts=(2, 3), rows=1),
        pmi("two rows", rows=2),
        pmi("two datasets, two sweeps", rows=1, datasets=2, sweeps=2, epsilon=4.0),
        pmi(**broken_rule, rows=2),
        pmi("a fit that any row turns round", rows=2, fit=Checksum),
        pmi(**unit, fit=Checksum),
    ]
