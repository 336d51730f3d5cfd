"""All that is measured of the numbers of tables: distributions, correlations, and what is off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from pegsynth.evaluation.faults.fault_kinds import Fault
from pegsynth.evaluation.faults.number_faults import RULE, number_faults
from pegsynth.evaluation.judged_tables import Tables
from pegsynth.evaluation.records import Cumulative, Record, not_computed
from pegsynth.evaluation.utility.correlations import (
    PairSides,
    correlation_records,
    no_correlation_records,
    pair_sides,
)
from pegsynth.evaluation.utility.empirical import Sides, sides_of
from pegsynth.evaluation.utility.value_records import (
    cumulative_of,
    moment_records,
    no_value_records,
    value_records,
)
from pegsynth.inference.combining_rules import Rule
from pegsynth.inference.statistics import LEVEL
from pegsynth.inference.value_columns import moment_features, value_features
from pegsynth.schema import Schema

NO_NUMBERS = "no numeric feature has numbers in all tables"


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
        return RULE if self.sides or self.moments else f"Numbers were not judged: {NO_NUMBERS}."

    def faults(self) -> list[Fault]:
        """List what is off about the numbers."""
        with np.errstate(all="ignore"):
            return number_faults(self.sides, self.pairs, self.moments)

    def records(self, *, level: float = LEVEL) -> list[Record]:
        """Return every record of numbers."""
        absent = [
            not_computed("kolmogorov_distance" if name in self.units else "value_mean", name, why)
            for name, why in self.left_out
        ]
        dated = list(map(self._thinned, moment_records(self.moments, self.units)))
        if not self.sides:
            return [
                *no_value_records(NO_NUMBERS),
                *dated,
                *no_correlation_records(NO_NUMBERS),
                *absent,
            ]
        # Numbers near the largest that there are overflow in squares: those figures are left out.
        with np.errstate(all="ignore"):
            found = [
                *value_records(self.sides, level=level),
                *correlation_records(self.pairs, level=level),
            ]
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
