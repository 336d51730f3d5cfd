"""Transitions of a folded panel pooled over positions: which tables are counted of wide rows (R24).

Where units may have many rows, tables of every position have too many features. Two tables are
counted instead. The table of first rows has one row for each unit: fixed features, the number of
rows, and the features of the first row. The table of transitions has a row for every row of a unit
but its first, at most `most - 1`: the fixed features, how many rows the unit has and how many are
left, both in public bins, the row before, and the row itself.

In: codes of wide rows. Out: codes of these tables, and wide rows put together again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.schema.feature import Feature
from pegsynth.schema.panel import Panel, panel_rule
from pegsynth.schema.rules import Rule
from pegsynth.schema.schema import Schema


@dataclass(frozen=True)
class PooledFeature:
    """A feature of the table of transitions.

    Parameters
    ----------
    name
        For the ledger.
    size
        Number of its categories.
    ordered
        Whether neighbouring categories are alike.
    origin
        Place of the wide feature, fixed or at the first position, whose codes it has; None
        where it has codes of its own.
    """

    name: str
    size: int
    ordered: bool
    origin: int | None = None


@dataclass(frozen=True)
class Pooling:
    """How wide rows of a panel become rows of two tables, and the way back.

    Parameters
    ----------
    schema
        The codebook of the wide table.
    """

    schema: Schema

    @property
    def panel(self) -> Panel:
        """How rows belong together."""
        if self.schema.panel is None or not self.schema.panel.wide:
            raise ValueError("the schema is not that of a folded panel")
        return self.schema.panel

    @cached_property
    def count(self) -> int:
        """Place of the number of rows."""
        return self.schema.index(self.panel.count)

    @cached_property
    def fixed(self) -> tuple[int, ...]:
        """Places of the fixed features."""
        return tuple(i for i, name in enumerate(self.schema.names) if name in self.panel.fixed)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """Places of the wide features that the table of first rows has."""
        return tuple(sorted((*self.fixed, self.count, *self._at(1))))

    @cached_property
    def given(self) -> tuple[PooledFeature, ...]:
        """Features of a transition that are known before its row is drawn."""
        features, panel = self.schema.features, self.panel
        fixed = [
            PooledFeature(features[i].name, features[i].category_count, _ordered(features[i]), i)
            for i in self.fixed
        ]
        bins = _bin(panel.most - 1) + 1
        rows = PooledFeature(f"{panel.count} (bins)", max(_bin(panel.most), 1), ordered=True)
        left = PooledFeature(f"{panel.count} left (bins)", bins, ordered=True)
        before = [self._named(name, "before") for name in self._changing]
        return (*fixed, rows, left, *before)

    @cached_property
    def following(self) -> tuple[PooledFeature, ...]:
        """Features of a transition that are drawn."""
        return tuple(self._named(name, "next") for name in self._changing)

    @property
    def features(self) -> tuple[PooledFeature, ...]:
        """Features of the table of transitions, those that are known first."""
        return (*self.given, *self.following)

    @cached_property
    def first_rules(self) -> tuple[Rule, ...]:
        """Rules of the schema on the table of first rows."""
        places = {place: number for number, place in enumerate(self.first)}
        return tuple(_moved(rule, places) for rule in self._own_rules(places))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Rules on the table of transitions: those of the schema for both rows, and the order."""
        size = len(self.given)
        found: dict[tuple[tuple[int, frozenset[int]], ...], Rule] = {}
        for features, start in ((self.given, 0), (self.following, size)):
            places = {
                each.origin: start + number
                for number, each in enumerate(features)
                if each.origin is not None
            }
            places |= {
                each.origin: number
                for number, each in enumerate(self.given)
                if each.origin in self.fixed
            }
            for rule in self._own_rules(places):
                moved = _moved(rule, places)
                found[moved.forbidden] = moved
        return (*found.values(), *self._order())

    def pairs(self, codes: Codes) -> Codes:
        """Return the transitions of wide rows: at most `most - 1` for each."""
        counts = self._counts(codes)
        parts = [np.zeros((0, len(self.features)), dtype=codes.dtype)]
        for position in self.panel.positions[:-1]:
            rows = codes[counts > position]
            if len(rows):
                parts.append(np.hstack([self.known(rows, position), self._row(rows, position + 1)]))
        return np.concatenate(parts)

    def known(self, codes: Codes, position: int) -> Codes:
        """Return what is known of transitions from a position of wide rows to the next."""
        counts = self._counts(codes)
        fixed = codes[:, list(self.fixed)]
        bins = np.column_stack([_bins(counts) - 1, _bins(counts - position)])
        before = self._row(codes, position)
        if self._timed:
            time = self._changing.index(self.panel.time)
            before[:, time] = self._time_before(codes, position)
        return np.hstack([fixed, bins.astype(codes.dtype), before])

    def put(self, codes: Codes, units: Int64, position: int, rows: Codes) -> None:
        """Write drawn rows of some units at a position of their wide rows."""
        for number, place in enumerate(self._at(position)):
            absent = self.schema.features[place].not_applicable_code
            drawn = rows[:, number]
            codes[units, place] = drawn if absent is None else drawn + (drawn >= absent)

    def begun(self, first: Codes) -> Codes:
        """Return wide rows with what the table of first rows tells; all else is absent."""
        absent = [
            0 if feature.not_applicable_code is None else feature.not_applicable_code
            for feature in self.schema.features
        ]
        codes = np.tile(np.array(absent, dtype=self.schema.code_dtype), (len(first), 1))
        codes[:, list(self.first)] = first
        return codes

    def follow(self, codes: Codes) -> Iterator[tuple[int, Int64]]:
        """Yield positions from the second on, and the units that have a row there."""
        counts = self._counts(codes)
        for position in self.panel.positions[1:]:
            units = np.flatnonzero(counts >= position)
            if not len(units):
                return
            yield position, units

    @cached_property
    def _changing(self) -> tuple[str, ...]:
        return self.panel.changing(self.schema.names)

    @property
    def _timed(self) -> bool:
        """Whether later times are the times since the row before."""
        return self.schema[self.panel.at(self.panel.time, 1)].binned

    def _at(self, position: int) -> tuple[int, ...]:
        index, panel = self.schema.index, self.panel
        return tuple(index(panel.at(name, position)) for name in self._changing)

    def _counts(self, codes: Codes) -> Int64:
        counts: Int64 = codes[:, self.count].astype(np.int64) + self.panel.least
        return counts

    def _row(self, codes: Codes, position: int) -> Codes:
        """Return the row of a position, in codes that have none for what is absent."""
        rows = codes[:, list(self._at(position))].copy()
        for number, place in enumerate(self._at(position)):
            absent = self.schema.features[place].not_applicable_code
            if absent is not None:
                rows[:, number] -= rows[:, number] > absent
        return rows

    def _gap(self) -> tuple[Feature, int]:
        """Return the time since the row before, and how many codes it has where it is there."""
        gap = self.schema[self.panel.at(self.panel.time, 2)]
        return gap, gap.category_count - 1

    def _time_before(self, codes: Codes, position: int) -> Codes:
        """Return the gap before a row; of a first row whether its time is known, and if not why."""
        time = self._changing.index(self.panel.time)
        if position > 1:
            return self._row(codes, position)[:, time]
        first = self.schema[self.panel.at(self.panel.time, 1)]
        gap, size = self._gap()
        own = codes[:, self._at(1)[time]].astype(np.int64)
        special, others = size - gap.bin_count, first.category_count - first.bin_count
        unknown = own - first.bin_count if special == others else np.zeros_like(own)
        found = np.where(own < first.bin_count, size, gap.bin_count + unknown)
        return found.astype(codes.dtype)

    def _named(self, name: str, which: str) -> PooledFeature:
        place = self.schema.index(self.panel.at(name, 1))
        feature = self.schema.features[place]
        if name != self.panel.time or not self._timed:
            size, ordered = feature.category_count, _ordered(feature)
            return PooledFeature(f"{name} ({which})", size, ordered, place)
        # Of a first row the gap before it is one code more.
        size = self._gap()[1] + (which == "before")
        return PooledFeature(f"{name} ({which})", size, ordered=True)

    def _own_rules(self, places: Mapping[int, int]) -> Iterator[Rule]:
        for rule in self.schema.rules:
            named = {place for place, _ in rule.forbidden}
            if not rule.structural and named <= set(places):
                yield rule

    def _order(self) -> Iterator[Rule]:
        """Yield the rules of times: unknown ones come last, and none runs backwards."""
        number = self._changing.index(self.panel.time)
        before = len(self.fixed) + 2 + number
        after = len(self.given) + number
        feature = self._gap()[0] if self._timed else self.schema[self.panel.at(self.panel.time, 1)]
        known, size = feature.bin_count, self.following[number].size
        if known < size:
            yield panel_rule(
                {before: range(known, size), after: range(known)}, "follows a known time"
            )
        if not self._timed:
            for code in range(1, known):
                yield panel_rule({before: [code], after: range(code)}, "is not before")


def measured_tables(schema: Schema) -> tuple[dict[str, int], ...]:
    """Return the features of every table that a release of blocks measures, with their sizes."""
    sizes = dict(zip(schema.names, schema.category_counts, strict=True))
    if schema.panel is None or not (schema.panel.wide and schema.panel.pooled):
        return (sizes,)
    pooling = Pooling(schema)
    first = (schema.names[place] for place in pooling.first)
    return {name: sizes[name] for name in first}, {f.name: f.size for f in pooling.features}


def _ordered(feature: Feature) -> bool:
    return feature.kind != "nominal"


def _bin(number: int) -> int:
    """Return the bin of a number of rows: 1, 2, 3-4, 5-8 and so on."""
    return max(number - 1, 0).bit_length()


def _bins(numbers: Int64) -> Int64:
    table = np.array([_bin(number) for number in range(int(numbers.max(initial=0)) + 1)])
    return table[numbers]


def _moved(rule: Rule, places: Mapping[int, int]) -> Rule:
    parts = sorted((places[place], codes) for place, codes in rule.forbidden)
    return Rule(tuple(parts), rule.label)
