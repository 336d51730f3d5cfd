"""The public grid that dates and times are counted on (R21).

Four levels, each of which divides the one above: years, months, quarters of a month and days for
dates; years, months, days and hours for dates with a time; hours, quarters of an hour, minutes
and seconds for times of day. A short range of dates with a time is counted by minutes, a very
long one by days or months. All of it follows from the schema alone.

The public grid that numbers are counted on (R21).

In goes a numeric feature; out comes a `Grid`: cells in order that cover every number, and
how they nest. Nothing of it depends on data. From coarse to fine the levels are

0. signs and octaves, [2^e, 2^(e+1)), with zero a cell of its own;
1. eighths of an octave;
2. 64 parts of an octave, so that whole numbers are exact below 128;
3. single units in parts of at most 64 of them, so that whole numbers, years among them, are
   exact below 8,192; in every wider part its roundest number, which people write down when they
   round; and whatever edges the schema already has.

Whole numbers, and numbers with a stated number of decimals, are counted in their smallest
unit. Where public bounds lie close together, such as those of years or of a latitude, octaves are
those of the distance from the lowest number. A grid is used as the edges of a feature
(`grid_feature`), so that tables are read, encoded and counted on it like on any public bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from pegsynth.codec.levels import rare_grid
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.schema.binning import exact, within_type
from pegsynth.schema.calendar_units import SECONDS, bounds, marks, per_day, weekdays
from pegsynth.schema.feature import Feature, measured_recoding
from pegsynth.schema.schema import Schema
from pegsynth.schema.temporal import chain

MOST_CELLS = 1 << 21
_DAYS_BY_MINUTES = 366
_BY_HOURS = ("year", "month", "day", "hour")
_BY_MINUTES = ("month", "day", "hour", "minute")
_BY_DAYS = ("year", "month", "part", "day")
_BY_MONTHS = ("year", "year", "month", "month")
_CLOCK = ("hour", "quarter hour", "minute", "second")


def calendar_marks(
    kind: str,
    resolution: str,
    lowest: float | None,
    highest: float | None,
    public: tuple[float, ...],
) -> tuple[tuple[Int64, ...], float]:
    """Return where the nodes of every level begin, and where the last of them ends.

    Parameters
    ----------
    kind, resolution
        What is counted, and in which unit.
    lowest, highest
        Public bounds of a feature with private edges; the usual ones where they are None.
    public
        Public edges, if there are any: the finest cells begin at them, too.
    """
    if public:
        return _marks(kind, resolution, public[0], public[-1], public), public[-1]
    usual = bounds(kind, resolution)
    first = usual[0] if lowest is None else lowest
    # The last moment has a cell of its own, which ends after it.
    end = (usual[1] if highest is None else highest) + 1
    return _marks(kind, resolution, first, end, ()), end


@lru_cache(maxsize=16)
def _marks(
    kind: str, resolution: str, lowest: float, highest: float, public: tuple[float, ...]
) -> tuple[Int64, ...]:
    steps = levels_of(kind, resolution, lowest, highest)
    start = np.array([lowest], dtype=np.int64)
    found = [np.append(start, marks(step, resolution, lowest, highest)) for step in steps]
    if public:
        found[-1] = np.union1d(found[-1], np.array(public[:-1], dtype=np.int64))
    return tuple(found)


def levels_of(kind: str, resolution: str, lowest: float, highest: float) -> tuple[str, ...]:
    """Return the steps of the four levels of a grid: a function of what is public."""
    days = (highest - lowest) / per_day(resolution)
    if kind == "time":
        finest = [step for step in _CLOCK if SECONDS.get(step, 900) >= SECONDS[resolution]]
        steps = [step for step in finest if step != "quarter hour" or resolution != "hour"]
        return (*steps, *steps[-1:] * 3)[: len(_CLOCK)]
    if kind == "datetime" and days <= _DAYS_BY_MINUTES and resolution in ("minute", "second"):
        return _BY_MINUTES
    if kind == "datetime" and days * 24 <= MOST_CELLS:
        return _BY_HOURS
    return _BY_DAYS if days <= MOST_CELLS else _BY_MONTHS


LEVELS = 4
_EIGHTHS, _PARTS = 8, 64
_UNITS = 64
"""Parts of so many units are divided into single ones."""
_CLOSE = 3.0
"""Bounds of one sign lie close together if their distance is below this multiple of the smaller."""
_HIGHEST_OCTAVE = 63
_LOWEST_OCTAVE = -40
"""Smaller numbers, about 1e-12, share the lowest octave."""
_EXACT = 2.0**53
_LEAST_ROUND = 2.0**-20
"""No round numbers are looked for below, about 1e-6."""
_TINIEST = float(np.nextafter(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells in order, and how they nest.

    Parameters
    ----------
    edges
        Edges of the finest cells, lowest and highest included.
    starts
        For every level the finest cells at which its nodes begin; each level contains the
        one before.
    unit
        The smallest step between two values, 0 for none.
    calendar
        Whether cells lie on a calendar, where zero is a moment like any other.
    weekdays
        The weekday of every finest cell, 0 for Monday, where cells have one.
    """

    edges: Float64
    starts: tuple[Int64, ...]
    unit: float
    calendar: bool = False
    weekdays: Int64 | None = None

    @property
    def cells(self) -> int:
        """Number of finest cells."""
        return len(self.edges) - 1

    def nodes(self, level: int) -> int:
        """Return the number of nodes of a level."""
        return len(self.starts[level])

    def parents(self, level: int) -> Int64:
        """Return the node of the level above in which every node of a level lies."""
        return np.searchsorted(self.starts[level - 1], self.starts[level], side="right") - 1

    def bounds(self, level: int) -> tuple[Float64, Float64]:
        """Return where the nodes of a level begin and end."""
        starts = self.starts[level]
        return self.edges[starts], self.edges[np.append(starts[1:], self.cells)]

    def totals(self, counts: Int64, level: int) -> Int64:
        """Add up the counts of the finest cells by the nodes of a level."""
        return np.add.reduceat(counts, self.starts[level])

    def sides(self) -> Int64:
        """Return the sign of every octave, 0 for zero itself and for all of a calendar."""
        low, high = self.bounds(0)
        sides = np.where(low > 0, 1, np.where(high <= 0, -1, 0))
        return sides * 0 if self.calendar else sides

    def weekday_totals(self, counts: Int64) -> Int64:
        """Add up the counts of the finest cells by weekday: seven disjoint sets of cells."""
        totals = np.zeros(7, dtype=np.int64)
        if self.weekdays is not None:
            np.add.at(totals, self.weekdays, counts)
        return totals


def grid_of(feature: Feature, between: tuple[float, float] | None = None) -> Grid:
    """Return the grid of a numeric feature: a function of the schema alone.

    Parameters
    ----------
    between
        The ends of the grid of a feature whose edges were private when it was measured.
    """
    if between is not None:
        return _grid(_decimals(feature), *between, ())
    if feature.calendar:
        return _calendar_grid(feature)
    if feature.edges:
        lowest, highest = feature.edges[0], feature.edges[-1]
    else:
        lowest, highest = _bounds(feature)
    return _grid(_decimals(feature), lowest, highest, feature.edges)


def _decimals(feature: Feature) -> int | None:
    return 0 if feature.integer else feature.decimals


def grid_feature(feature: Feature) -> Feature:
    """Return a feature whose bins are the cells of its grid; categories are their own cells."""
    if not feature.binned:
        return rare_grid(feature)
    edges = tuple(grid_of(feature).edges.tolist())
    plain: dict[str, Any] = {"lowest": None, "highest": None, "bins": None}
    plain |= {"inside": None, "shares": (), "weekday": False}
    plain["recoding"] = measured_recoding(feature)
    return replace(feature, edges=edges, private_edges=False, **plain)


def grid_schema(schema: Schema) -> Schema:
    """Return a schema of those features alone whose values are to be measured, on their grids.

    Columns that are not measured become identifiers, which are not read; unit and rows per
    unit stay. One-way counts under this schema are what `measure` takes.
    """
    measured = {column.name for column in schema.features if column.wants_shape}
    # A difference is read off two columns, whether or not the other is measured.
    read = measured | {
        each.name
        for column in schema.features
        if column.name in measured
        for each in chain(column, schema.features)
    }
    columns = tuple(
        grid_feature(replace(column, heads=(), parent=None, l=None))
        if column.name in read
        else replace(column, role="identifier")
        for column in schema.columns
    )
    return replace(schema, columns=columns, rules=(), analyses=(), tables_wanted=())


def kept_highest(feature: Feature, schema: Schema) -> float | None:
    """Return the bound that measured edges keep: that which is stated, or what follows from kinds.

    Of numbers that are added up, the times of a panel, the end of the grid is one.
    """
    panel = schema.panel
    if feature.highest is not None:
        return feature.highest
    if feature.calendar:
        return bounds(feature.kind, feature.resolution)[1]
    added = panel is not None and feature.name == panel.at(panel.time, 1)
    return _bounds(feature)[1] if added else None


def _bounds(feature: Feature) -> tuple[float, float]:
    decimals = _decimals(feature)
    scale = 10 ** (decimals or 0)
    widest = 2.0 ** (_HIGHEST_OCTAVE) / scale
    lowest, highest = within_type((-widest, widest), feature.dtype)
    if feature.lowest is not None:
        lowest = feature.lowest
        if decimals is not None:
            lowest = math.ceil(exact(lowest) * scale) / scale
    if feature.highest is not None:
        highest = feature.highest
        if decimals is not None:
            # The highest number has a cell of its own, which has to end above it.
            highest = (math.floor(exact(highest) * scale) + 1) / scale
    return lowest, highest


def _calendar_grid(feature: Feature) -> Grid:
    marks, end = calendar_marks(
        feature.kind, feature.resolution, feature.lowest, feature.highest, feature.edges
    )
    finest = marks[-1]
    starts = tuple(np.searchsorted(finest, mark).astype(np.int64) for mark in marks)
    edges = np.append(finest, end).astype(np.float64)
    edges.flags.writeable = False
    days = None if feature.kind == "time" else weekdays(finest, feature.resolution)
    return Grid(edges, starts, 1.0, calendar=True, weekdays=days)


@lru_cache(maxsize=64)
def _grid(decimals: int | None, lowest: float, highest: float, public: tuple[float, ...]) -> Grid:
    octaves, eighths, parts = _whole_marks() if decimals is not None else _real_marks()
    scale = 10.0 ** (decimals or 0)
    unit = 0.0 if decimals is None else 1.0 / scale
    close = lowest * highest > 0 and highest - lowest < _CLOSE * min(abs(lowest), abs(highest))
    offset = np.rint(lowest * scale) if close else 0.0
    # Whole units divided by a power of ten round once, as text that is read as a number does.
    every = ((each + offset) / scale for each in (octaves, eighths, parts))
    marks = [
        np.unique(np.append(lowest, each[(each > lowest) & (each < highest)])) for each in every
    ]
    finer = (
        _unit_marks(marks[-1], highest, scale, unit),
        _round_marks(marks[-1], highest, scale, unit),
    )
    finest = np.unique(np.concatenate([marks[-1], *finer]))
    if public:
        finest = np.union1d(finest, np.asarray(public[:-1], dtype=np.float64))
    edges = np.append(finest, highest)
    starts = tuple(np.searchsorted(finest, mark).astype(np.int64) for mark in (*marks, finest))
    edges.flags.writeable = False
    return Grid(edges, starts, unit)


def _whole_marks() -> tuple[Float64, Float64, Float64]:
    """Return where octaves, eighths and parts of whole numbers begin, of both signs."""
    above = []
    for steps in (1, _EIGHTHS, _PARTS):
        marks = [
            2.0**e + np.arange(min(steps, 2**e)) * (2.0**e / min(steps, 2**e))
            for e in range(_HIGHEST_OCTAVE)
        ]
        above.append(np.concatenate(marks))
    # A run of numbers lo .. hi - 1 becomes -(hi - 1) .. -lo, which begins at 1 - hi.
    return tuple(np.concatenate((1 - mark[::-1], mark)) for mark in above)  # type: ignore[return-value]


def _real_marks() -> tuple[Float64, Float64, Float64]:
    """Return the same for numbers with any decimals; the lowest octave reaches down to zero."""
    above = []
    for steps in (1, _EIGHTHS, _PARTS):
        marks = [
            2.0**e * (1.0 + np.arange(steps) / steps)
            for e in range(_LOWEST_OCTAVE, _HIGHEST_OCTAVE)
        ]
        joined = np.concatenate(marks)
        joined[0] = _TINIEST
        above.append(joined)
    return tuple(  # type: ignore[return-value]
        np.concatenate((-mark[:0:-1], [0.0], mark)) for mark in above
    )


def _unit_marks(starts: Float64, highest: float, scale: float, unit: float) -> Float64:
    """Return every unit of the parts that have more than one, but not many."""
    if not unit:
        return np.zeros(0)
    first, last = np.rint(starts * scale), np.rint(np.append(starts[1:], highest) * scale)
    narrow = np.flatnonzero((last - first > 1) & (last - first <= _UNITS))
    found = [np.arange(first[place] + 1, last[place]) / scale for place in narrow]
    units: Float64 = np.concatenate(found) if found else np.zeros(0)
    inside: Float64 = units[(units > starts[0]) & (units < highest)]
    return inside


def _round_marks(starts: Float64, highest: float, scale: float, unit: float) -> Float64:
    """Return where the roundest number of every part begins and ends.

    A number is the rounder, the larger the power of ten, or half of one, that divides it.
    """
    low, high = starts, np.append(starts[1:], highest)
    near, far = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    wide = (high - low > 1.5 * unit) & (near >= _LEAST_ROUND) & (far * scale <= _EXACT)
    low, high = low[wide], high[wide]
    roundest = np.full(len(low), np.nan)
    if not len(low):
        return roundest
    most, least = float(far[wide].max()), float((high - low).min())
    for power in range(int(np.log10(most)) + 1, int(np.floor(np.log10(least))) - 1, -1):
        for factor in (1, 5):
            numbers = _multiple_in(low, power - (factor == 5), factor)
            found = np.isnan(roundest) & (numbers >= low) & (numbers < high)
            roundest[found] = numbers[found]
    atoms = roundest[~np.isnan(roundest)]
    after = np.nextafter(atoms, np.inf) if unit == 0 else (np.rint(atoms * scale) + 1) / scale
    marks = np.concatenate((atoms, after))
    inside: Float64 = marks[(marks > starts[0]) & (marks < highest)]
    return inside


def _multiple_in(low: Float64, power: int, factor: int) -> Float64:
    """Return the first multiple of factor times a power of ten that is not below `low`."""
    if power >= 0:
        step = factor * 10.0**power
        return np.ceil(low / step) * step
    inverse = 10.0**-power
    return np.ceil(low * inverse / factor) * factor / inverse
