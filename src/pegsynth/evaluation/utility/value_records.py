"""All that is measured of the numbers of tables, as records beside the original's.

Means, standard deviations, quantiles, zeros and heaps, the share of rows in the original's
tails, Kolmogorov and Wasserstein distance. The baseline of a figure is the original's own; of a
distance, what a bootstrap of the original would have. Rows without a number are left out.
Correlations, and what is off about the numbers, are in modules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import numpy as np

from pegsynth.evaluation.faults.fault_kinds import Fault
from pegsynth.evaluation.faults.figure_faults import NUMBER_RULE, number_faults
from pegsynth.evaluation.judged_tables import Tables
from pegsynth.evaluation.records import SEPARATOR, Cumulative, Record, measured, not_computed
from pegsynth.evaluation.utility.correlations import HEADLINES as CORRELATION_HEADLINES
from pegsynth.evaluation.utility.correlations import PairSides, correlation_records, pair_sides
from pegsynth.evaluation.utility.empirical import (
    HEAP_SHARE,
    TAILS,
    Empirical,
    Figure,
    Sides,
    kolmogorov,
    kolmogorov_floor,
    sides_of,
    wasserstein,
    wasserstein_floor,
)
from pegsynth.inference.combining_rules import Rule, how_pooled
from pegsynth.inference.statistics import LEVEL, Estimate, quantile, spread
from pegsynth.inference.value_columns import moment_features, value_features
from pegsynth.kernels.arrays import Float64
from pegsynth.schema import Schema

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
NO_NUMBERS = "no numeric feature has numbers in all tables"
HEADLINES = ("kolmogorov_distance", "wasserstein_distance")
_POINTS = 60
_MEANT = {
    "value_mean": "mean of the released numbers; baseline: the original's",
    "value_sd": "standard deviation of the released numbers; baseline: the original's",
    "value_quantile": "smallest released number with that share of the rows at or below it; "
    "variance by Woodruff (1952, doi:10.1080/01621459.1952.10483443); baseline: the original's",
    "value_zeros": "share of rows whose number is 0; baseline: the original's",
    "value_heap": f"share of rows that have this very number, which {HEAP_SHARE:.0%} or more of a "
    "table's rows share; baseline: the original's",
    "value_tail": "share of rows beyond a quantile of the original; baseline: the original's",
    "kolmogorov_distance": "largest distance of the distribution functions of released and "
    "original numbers (Kolmogorov 1933); baseline: expected of a bootstrap, "
    "sqrt(pi/2) log 2/sqrt(n), less where numbers repeat",
    "wasserstein_distance": "area between the distribution functions of released and original "
    "numbers, in the feature's unit (Vallender 1974, doi:10.1137/1118101); baseline: expected of "
    "a bootstrap, the integral of sqrt(2 F (1 - F)/(pi n))",
}


@dataclass(frozen=True)
class Numbers:
    """The numbers of all tables, sorted and correlated.

    Parameters
    ----------
    sides
        One for each numeric feature that all tables have numbers of.
    pairs
        Correlations of all pairs of these.
    moments
        One for each feature of dates or times that all tables have.
    units
        What these are counted in, by feature.
    left_out
        Other features with numbers, and why nothing is said about these.
    every
        Every so manieth row of the largest table was used; 1 where all were.
    """

    sides: tuple[Sides, ...] = ()
    pairs: tuple[PairSides, ...] = ()
    moments: tuple[Sides, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()
    every: int = 1

    @property
    def rule(self) -> str:
        """By which rule numbers are judged, or why they are not."""
        return (
            NUMBER_RULE if self.sides or self.moments else f"Numbers were not judged: {NO_NUMBERS}."
        )

    def faults(self) -> list[Fault]:
        """List what is off about the numbers."""
        with np.errstate(all="ignore"):
            return number_faults(self.sides, self.pairs, self.moments)

    def records(self) -> list[Record]:
        """Return every record of numbers."""
        absent = [
            not_computed("kolmogorov_distance" if name in self.units else "value_mean", name, why)
            for name, why in self.left_out
        ]
        dated = list(map(self._thinned, moment_records(self.moments, self.units)))
        if not self.sides:
            values, correlations = (
                [not_computed(name, "", NO_NUMBERS) for name in names]
                for names in (HEADLINES, CORRELATION_HEADLINES)
            )
            return [*values, *dated, *correlations, *absent]
        # Numbers near the largest that there are overflow in squares: those figures are left out.
        with np.errstate(all="ignore"):
            found = [*value_records(self.sides), *correlation_records(self.pairs)]
        return [*map(self._thinned, found), *dated, *absent]

    def _thinned(self, record: Record) -> Record:
        """Say in a note that rows were left out of a table too large for all."""
        if self.every == 1:
            return record
        note = f"{record.note}; every {self.every}th row was used, evenly spaced"
        return msgspec.structs.replace(record, note=note)

    def distributions(self, schema: Schema) -> tuple[Cumulative, ...]:
        """Return the distribution functions of every feature, for the report."""
        labels = {feature.name: feature.label for feature in schema.features}
        return tuple(cumulative_of(each, labels[each.name]) for each in self.sides)


def numbers_found(tables: Tables, schema: Schema, rule: Rule | None = None) -> Numbers:
    """Sort and correlate the numbers of tables; nothing where only codes are known."""
    if not tables.values:
        return Numbers()
    original, *synthetic = tables.values
    sides: list[Sides] = []
    moments: list[Sides] = []
    left_out = []
    units = {name: schema[name].resolution for name in moment_features(schema)}
    for name in (*value_features(schema), *units):
        found = sides_of(name, original, synthetic, rule)
        if isinstance(found, Sides):
            (moments if name in units else sides).append(found)
        else:
            left_out.append((name, found))
    with np.errstate(all="ignore"):
        pairs = pair_sides(sides, original, synthetic)
    every = max(each.every for each in tables.values)
    return Numbers(tuple(sides), tuple(pairs), tuple(moments), units, tuple(left_out), every)


def value_records(sides: Sequence[Sides]) -> list[Record]:
    """Return all records of numbers: the means over the features first."""
    records = [record for each in sides for record in _feature(each)]
    return [*(_headline(name, sides, records) for name in HEADLINES), *records]


def moment_records(sides: Sequence[Sides], units: Mapping[str, str]) -> list[Record]:
    """Return the distances of dates and times; amounts are in the unit of each feature."""
    records = [record for each in sides for record in _distances(each)]
    return [
        msgspec.structs.replace(
            record, note=f"dates or times, counted in {units[record.subject]}s: {record.note}"
        )
        for record in records
    ]


def cumulative_of(side: Sides, label: str) -> Cumulative:
    """Return the distribution functions of a feature near the quantiles of both tables."""
    # Half a step from either end, so that one row far out does not stretch the picture.
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    points = [law.quantile(levels) for law in (side.original, *side.synthetic[:1])]
    places = _rounded(np.concatenate(points))
    released = np.mean([law.at_most(places) for law in side.synthetic], axis=0)
    return Cumulative(
        feature=side.name,
        label=label,
        values=tuple(places.tolist()),
        original=tuple(side.original.at_most(places).tolist()),
        synthetic=tuple(np.minimum(released, 1.0).tolist()),
    )


def _rounded(places: Float64) -> Float64:
    """Return places in order, rounded to a thousandth of their range.

    A picture needs no more, and a page that is kept should not hold the numbers of single rows.
    """
    # Floats of Python's own, whose difference may be infinite without a warning.
    reach = float(places.max()) - float(places.min())
    if not 0 < reach < math.inf:
        return np.unique(places)
    step = 10.0 ** math.floor(math.log10(reach / 1000))
    with np.errstate(over="ignore"):
        rounded = np.round(places / step) * step
    return np.unique(np.where(np.isfinite(rounded), rounded, places))


def _feature(side: Sides) -> Iterable[Record]:
    yield _figure("value_mean", "", side, lambda law: law.mean, lambda law: law.moment(2) / law.n)
    yield _figure("value_sd", "", side, lambda law: law.sd, _sd_variance)
    for each in LEVELS:
        variance = partial(_quantile_variance, level=each)
        yield _figure("value_quantile", f"{each:g}", side, partial(_quantile, level=each), variance)
    if any(law.share(0) > 0 for law in (side.original, *side.synthetic)):
        yield _share("value_zeros", "", side, partial(Empirical.share, number=0.0))
    for number in side.heaps():
        heap = partial(Empirical.share, number=number)
        yield _share("value_heap", f"{number:.15g}", side, heap)
    for where, each in TAILS:
        bound = float(side.original.quantile(each))
        beyond = partial(Empirical.beyond, bound=bound, where=where)
        if beyond(side.original) > 0:
            yield _share("value_tail", f"{where} the {each:g} quantile", side, beyond)
    yield from _distances(side)


def _figure(name: str, detail: str, side: Sides, figure: Figure, variance: Figure) -> Record:
    return _record(name, detail, side, side.estimate(figure, variance), figure(side.original))


def _share(name: str, detail: str, side: Sides, figure: Figure) -> Record:
    found = side.estimate(figure, lambda law: figure(law) * (1 - figure(law)) / law.n)
    inside = Estimate(found.value, max(found.low, 0.0), min(found.high, 1.0))
    return _record(name, detail, side, inside, figure(side.original))


def _record(name: str, detail: str, side: Sides, found: Estimate, baseline: float) -> Record:
    subject = f"{side.name}{SEPARATOR}{detail}" if detail else side.name
    figures = (found.value, found.low, found.high, baseline)
    if not all(map(math.isfinite, (found.value, baseline))):
        return not_computed(name, subject, "the numbers are too large to be added up")
    value, low, high, baseline = (
        figure if math.isfinite(figure) else math.nan for figure in figures
    )
    how = how_pooled(len(side.synthetic), rule=side.rule, replicates=len(side.replicates))
    return measured(
        name,
        subject,
        Estimate(value, low, high, _rows(side)),
        baseline=baseline,
        note=f"{_MEANT[name]}; {how}{_dropped(side)}",
    )


def _distances(side: Sides) -> Iterable[Record]:
    floors = {
        "kolmogorov_distance": lambda law: kolmogorov_floor(law.rows),
        "wasserstein_distance": lambda law: wasserstein_floor(side.original, law.rows),
    }
    measures = {"kolmogorov_distance": kolmogorov, "wasserstein_distance": wasserstein}
    for name, measure in measures.items():
        values = [measure(side.original, law) for law in side.synthetic]
        baseline = side.mean(floors[name])
        if not all(map(math.isfinite, (*values, baseline))):
            yield not_computed(name, side.name, "the numbers are too large to be added up")
            continue
        found = spread(values, n=_rows(side))
        note = f"{_MEANT[name]}{_dropped(side)}"
        yield measured(name, side.name, found, baseline=baseline, note=note)


def _headline(name: str, sides: Sequence[Sides], records: Sequence[Record]) -> Record:
    """Return the mean over the features; of amounts, each in units of the original's sd."""
    units = dict.fromkeys((each.name for each in sides), 1.0)
    note = f"mean over the numeric features: {_MEANT[name]}"
    if name == "wasserstein_distance":
        units = {each.name: each.original.sd for each in sides}
        note = note.replace("in the feature's unit", "in standard deviations of the original")
    ours = [
        record
        for record in records
        if record.name == name and record.value is not None and units[record.subject] > 0
    ]
    if not ours:
        return not_computed(name, "", "no numeric feature varies")
    value, baseline = (
        float(np.mean([figure / units[record.subject] for record, figure in known]))
        for known in (
            [(record, record.value or 0.0) for record in ours],
            [(record, record.baseline or 0.0) for record in ours],
        )
    )
    n = min(record.n for record in ours)
    return measured(name, "", Estimate(value, n=n), baseline=baseline, note=note)


def _sd_variance(law: Empirical) -> float:
    """Variance of a standard deviation by the delta method: (m4 - s^4)/(4 s^2 n)."""
    variance = law.moment(2)
    return (law.moment(4) - variance * variance) / (4 * variance * law.n) if variance > 0 else 0.0


def _quantile(law: Empirical, level: float) -> float:
    return float(law.quantile(level))


def _quantile_variance(law: Empirical, level: float) -> float:
    z = quantile(LEVEL)
    half = z * math.sqrt(level * (1 - level) / law.n)
    low, high = law.quantile(np.clip([level - half, level + half], 0.0, 1.0))
    deviation = float((high - low) / (2 * z))
    return deviation * deviation


def _rows(side: Sides) -> int:
    return min(each.rows for each in side.synthetic)


def _dropped(side: Sides) -> str:
    if not any(side.dropped):
        return ""
    first, *others = side.dropped
    listed = ", ".join(map(str, others))
    return f"; rows without a number are left out: {first} original, {listed} synthetic"
