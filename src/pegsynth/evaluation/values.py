"""All that is measured of the numbers of tables: distributions, correlations, and what is off."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from pegsynth.evaluation.correlations import (
    PairSides,
    correlation_records,
    no_correlation_records,
    pair_sides,
)
from pegsynth.evaluation.fault_kinds import Fault
from pegsynth.evaluation.judged_tables import Tables
from pegsynth.evaluation.number_faults import RULE, number_faults
from pegsynth.evaluation.records import Cumulative, Record, not_computed
from pegsynth.evaluation.statistics import LEVEL
from pegsynth.evaluation.value_columns import value_features
from pegsynth.evaluation.value_records import cumulative_of, no_value_records, value_records
from pegsynth.evaluation.value_sides import Sides, sides_of
from pegsynth.inference.combining_rules import Rule
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
    left_out
        Other numeric features, and why nothing is said about their numbers.
    every
        Every so manieth row of the largest table was used; 1 where all were.
    """

    sides: tuple[Sides, ...] = ()
    pairs: tuple[PairSides, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    every: int = 1

    @property
    def rule(self) -> str:
        """By which rule numbers are judged, or why they are not."""
        return RULE if self.sides else f"Numbers were not judged: {NO_NUMBERS}."

    def faults(self) -> list[Fault]:
        """List what is off about the numbers."""
        with np.errstate(all="ignore"):
            return number_faults(self.sides, self.pairs)

    def records(self, *, level: float = LEVEL) -> list[Record]:
        """Return every record of numbers."""
        absent = [not_computed("value_mean", name, why) for name, why in self.left_out]
        if not self.sides:
            return [
                *no_value_records(NO_NUMBERS),
                *no_correlation_records(NO_NUMBERS),
                *absent,
            ]
        # Numbers near the largest that there are overflow in squares: those figures are left out.
        with np.errstate(all="ignore"):
            found = [
                *value_records(self.sides, level=level),
                *correlation_records(self.pairs, level=level),
            ]
        return [*map(self._thinned, found), *absent]

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
    left_out = []
    for name in value_features(schema):
        found = sides_of(name, original, synthetic, rule)
        if isinstance(found, Sides):
            sides.append(found)
        else:
            left_out.append((name, found))
    with np.errstate(all="ignore"):
        pairs = pair_sides(sides, original, synthetic)
    every = max(each.every for each in tables.values)
    return Numbers(tuple(sides), tuple(pairs), tuple(left_out), every)
