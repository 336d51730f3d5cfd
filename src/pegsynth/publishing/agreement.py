"""Does an analysis of the original agree with a release? Regions, parts and noisy counts (R32).

Goes in: a formula and published tables, and later the original and a budget. Comes out: a region
for each coefficient, which is public because it is made of published tables alone; then a noisy
count of the parts of the original whose coefficient lies in it, and the event that pays for them.

What a part answers depends on the rows of that part alone; a part that gives no estimate answers
no, for whatever reason. No error and no warning says more of it. Tables are read as a formula
needs them: codes, numbers, and whose every row is. Every row is read for itself (R30): all rows
are kept, and a number is what stands in its cell, whatever the other rows hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.codec import Encoder
from pegsynth.errors import ParameterError, escaped
from pegsynth.inference.choice import weight_columns
from pegsynth.inference.combining_rules import own_noise, replicate_weights
from pegsynth.inference.formula import Formula
from pegsynth.inference.model_matrix import INTERCEPT, Column, columns_of, sample_of
from pegsynth.inference.regression_fit import RegressionFit, fit
from pegsynth.inference.value_columns import TableValues, ValueCollector
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.mechanisms import answers
from pegsynth.mechanisms.noise import Below
from pegsynth.privacy import AgreementCounts, Allowance
from pegsynth.random import RandomStream
from pegsynth.runtime import in_silence
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import unit_text
from pegsynth.tables.reader import TableReader, is_blank, missing_units

LEVEL = 0.95
"""Share of the parts that agree where the release is right."""
_QUANTILE = 1.959963984540054
_FEWEST_PARTS, _MOST_PARTS = 10, 50
_ROWS_PER_UNKNOWN = 20
_MOST_STATED = 1_000_000
_ALL = 1 << 62
"""No bound on the numbers that are kept: leaving out every second row would look at places."""
_SLACK = 1e-12

Answers = NDArray[np.int64]
Deal = Callable[..., Int64]


@dataclass(frozen=True)
class Rows:
    """A table in memory.

    Parameters
    ----------
    codes
        One feature a line.
    values
        Numbers, row by row, and weights where there are any.
    units
        For every row the number of its unit; None: every row is a unit.
    """

    codes: Codes
    values: TableValues
    units: Int64 | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.codes.shape[1])

    def some(self, kept: Int64) -> Rows:
        """Return some of the rows."""
        columns = {name: line[kept] for name, line in self.values.columns.items()}
        values = replace(self.values, columns=columns, weights=None, replicates=None)
        return Rows(self.codes[:, kept], values)

    def replicated(self) -> Iterator[Rows]:
        """Yield the table with each of its replicate weights."""
        lines = self.values.replicates
        for line in () if lines is None else lines:
            yield replace(self, values=replace(self.values, weights=line, replicates=None))


def read_rows(reader: TableReader, schema: Schema, *, need_unit: bool) -> Rows:
    """Read a table whole; the original with its units, a release with its weights.

    Parameters
    ----------
    need_unit
        Whether rows have units; those of a release have none.
    """
    weights = () if need_unit else weight_columns(reader.columns, schema.names)
    columns = [name for name in reader.columns if name not in weights]
    encoder = Encoder(schema, source=reader.source, columns=columns, need_unit=need_unit)
    unit = schema.unit if need_unit else None
    names = list(dict.fromkeys([*schema.names, *([unit] if unit else []), *weights]))
    collector = ValueCollector(schema, weights, most=_ALL)
    parts: list[Codes] = []
    owners: list[pl.Series] = []
    for batch in reader.batches(names):
        parts.append(encoder.encode(batch))
        collector.add(batch, parts[-1])
        if unit:
            owners.append(unit_text(batch.get_column(unit)))
    encoder.finish()
    # Whether some cell holds a label is known of all rows together, and must not matter.
    values = replace(collector.finish(), labelled=frozenset())
    return Rows(
        np.ascontiguousarray(np.concatenate(parts).T),
        values,
        _numbered(pl.concat(owners), reader.source, unit) if unit else None,
    )


def _numbered(units: pl.Series, source: str, unit: str) -> Int64:
    """Give every unit a number; which one it gets decides nothing."""
    blank = int(is_blank(units).sum())
    if blank:
        raise missing_units(source, unit, blank)
    numbers: Int64 = (units.rank("dense").to_numpy() - 1).astype(np.int64)
    return numbers


@dataclass(frozen=True)
class Region:
    """Where the coefficient of a part must lie to agree.

    Parameters
    ----------
    estimate
        The release's own estimate.
    spread
        Standard deviation of its error, as far as the release tells; 0 where it does not.
    of_a_part
        Standard deviation that an estimate from one part has.
    tolerance
        What is added on both sides.
    """

    term: str
    estimate: float
    spread: float
    of_a_part: float
    tolerance: float = 0.0

    @property
    def half_width(self) -> float:
        """Half the width of the region."""
        return _QUANTILE * math.hypot(self.spread, self.of_a_part) + self.tolerance

    def holds(self, value: float) -> bool:
        """Say whether an estimate lies in the region; what is no number does not."""
        return abs(value - self.estimate) <= self.half_width


@dataclass(frozen=True)
class Asked:
    """A question, settled before the original is read.

    Parameters
    ----------
    columns
        The design of the regression, as the release has it.
    regions
        One for each coefficient that is compared.
    parts
        Parts that the original is dealt to.
    """

    formula: Formula
    columns: tuple[Column, ...]
    regions: tuple[Region, ...]
    parts: int


def regions_of(
    formula: Formula,
    tables: Sequence[Rows],
    schema: Schema,
    *,
    rows_in: int | None = None,
    parts: int | None = None,
    terms: Sequence[str] = (),
    tolerance: float = 0.0,
) -> Asked:
    """Settle what is compared with what.

    Parameters
    ----------
    tables
        The release: one table, maybe with replicate weights, or several.
    rows_in
        About how many rows the original has; by default the sum of the weights, or the rows
        of a table of the release.
    parts
        M; by default from 10 to 50, with 20 rows for every coefficient.
    terms
        Coefficients to compare; by default all but the intercept.
    tolerance
        How much further off a part may be and still agree.
    """
    samples = [sample_of(formula, table.codes, schema, table.values) for table in tables]
    columns = columns_of(formula, samples, schema)
    fits = [fit(sample, columns, formula.kind) for sample in samples]
    found = {name for each in fits for name in each.estimates}
    wanted = _wanted(terms, [column.name for column in columns], found)
    first = tables[0].values
    total = rows_in or (len(tables[0]) if first.weights is None else round(first.weights.sum()))
    if parts is None:
        parts = total // (_ROWS_PER_UNKNOWN * (len(columns) + 1))
        parts = min(max(parts, _FEWEST_PARTS), _MOST_PARTS)
    if not 2 <= parts <= _MOST_STATED:
        raise ParameterError(
            f"--parts must be at least 2 and at most {_MOST_STATED}: the original is dealt to parts"
        )
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ParameterError("--tolerance must be a number of at least 0")
    again = [
        fit(sample_of(formula, table.codes, schema, table.values), columns, formula.kind)
        for table in tables[0].replicated()
        if len(tables) == 1
    ]
    regions = [
        _region(name, fits, again, rows=max(total, 1), parts=parts, tolerance=tolerance)
        for name in wanted
    ]
    return Asked(formula, columns, tuple(regions), parts)


def _wanted(terms: Sequence[str], columns: Sequence[str], found: set[str]) -> list[str]:
    known = [INTERCEPT, *columns]
    for term in terms:
        if term not in known:
            raise ParameterError(
                f"--term {term!r} is no coefficient of the formula; it has {', '.join(known)}"
            )
    # A formula without terms has an intercept to compare.
    wanted = list(dict.fromkeys(terms)) or list(columns) or [INTERCEPT]
    lost = [name for name in wanted if name not in found]
    if lost:
        raise ParameterError(
            f"the release itself gives no estimate of {lost[0]!r}; leave it out with --term, or "
            "take another formula"
        )
    return wanted


def _region(
    name: str,
    fits: Sequence[RegressionFit],
    again: Sequence[RegressionFit],
    *,
    rows: int,
    parts: int,
    tolerance: float,
) -> Region:
    own = [each for each in fits if name in each.estimates]
    values = np.array([each.estimates[name].value for each in own])
    # A variance for as many rows as were fitted becomes that of a part of the original.
    usual = float(np.mean([each.estimates[name].variance * each.rows for each in own]))
    repeated = np.array([each.estimates[name].value for each in again if name in each.estimates])
    variance = 0.0
    if len(repeated) > 1:
        variance = float(replicate_weights(repeated[:, np.newaxis], values[:1]).variance[0])
    elif len(values) > 1:
        variance = float(own_noise(values[:, np.newaxis]).variance[0])
    return Region(
        name,
        float(values.mean()),
        math.sqrt(variance),
        math.sqrt(usual * parts / rows),
        tolerance,
    )


def dealt(units: Int64 | None, rows: int, parts: int, words: Below) -> Int64:
    """Return the part of every row.

    Every unit gets an exact uniform integer of its own and takes all its rows along. Parts
    of equal size would not do: one unit more would move others to another part.

    Parameters
    ----------
    units
        For every row the number of its unit, from 0; None: every row is a unit.
    words
        A source of exact uniform integers.
    """
    count = rows if units is None else (int(units.max()) + 1 if len(units) else 0)
    drawn = np.array([words.below(parts) for _ in range(count)], dtype=np.int64)
    found: Int64 = drawn if units is None else drawn[units]
    return found


@dataclass(frozen=True)
class Agreement:
    """What was paid for.

    Parameters
    ----------
    counts
        Parts that agree, with noise, for every coefficient of the question.
    event
        The noise, and what it costs.
    """

    counts: Int64
    event: AgreementCounts

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise."""
        scale = self.event.scale_numerator / self.event.scale_denominator
        if self.event.mechanism == "discrete-gaussian":
            return math.sqrt(scale)
        return math.sqrt(2.0) * scale


def agreement_event(asked: Asked, allowance: Allowance) -> AgreementCounts:
    """Return the event that a whole allowance pays for: the least noise it buys."""
    terms = tuple(escaped(region.term) for region in asked.regions)
    about: dict[str, Any] = {
        "formula": escaped(asked.formula.text),
        "terms": terms,
        "parts": asked.parts,
    }
    # Prices are rounded up in the last of many digits: the noise is larger by a hair.
    amount, count = float(allowance.amount) * (1 - _SLACK), len(terms)
    if allowance.route == "pure":
        return AgreementCounts.laplace(count / amount, **about)
    deviation = math.sqrt(count / (2 * amount))
    return AgreementCounts.gaussian(Fraction(deviation), **about)


def agrees(asked: Asked, rows: Rows, schema: Schema) -> Answers:
    """Return 1 for every coefficient of one part that agrees; 0 where there is no estimate.

    A fit that fails, in whatever way, is an answer. Warnings are held back and cannot become
    errors: whether there is one depends on the rows.
    """
    try:
        with in_silence():
            return np.array(part_answers(asked, rows, schema), dtype=np.int64)
    except Exception:  # noqa: BLE001 (whether and how a fit fails depends on the rows)
        return np.zeros(len(asked.regions), dtype=np.int64)


def part_answers(asked: Asked, rows: Rows, schema: Schema) -> list[bool]:
    """Fit one part and compare; a part that cannot be fitted may raise."""
    sample = sample_of(asked.formula, rows.codes, schema, rows.values)
    found = fit(sample, asked.columns, asked.formula.kind).estimates
    return [
        region.term in found and region.holds(found[region.term].value) for region in asked.regions
    ]


def measured(
    asked: Asked,
    rows: Rows,
    schema: Schema,
    event: AgreementCounts,
    stream: RandomStream,
    *,
    deal: Deal = dealt,
) -> Agreement:
    """Deal the original to parts, ask each of them, and count those that agree, with noise.

    What `event` records is to be charged before.
    """
    parts = deal(rows.units, len(rows), asked.parts, stream.substream())
    counts = counted(asked, rows, schema, parts)
    return Agreement(answers.noisy(counts, event, stream), event)


def counted(asked: Asked, rows: Rows, schema: Schema, parts: Int64) -> Int64:
    """Count the parts that agree, exactly: confidential until noise is added.

    A part without rows does not agree.
    """
    order = np.argsort(parts, kind="stable")
    counts = np.zeros(len(asked.regions), dtype=np.int64)
    for kept in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1):
        # In the order of the table: what a part answers is a function of its own rows.
        counts += agrees(asked, rows.some(kept), schema)
    return counts
