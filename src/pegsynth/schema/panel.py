"""Rows of people over time: what ``[panel]`` of a schema says, and the names of a folded table.

A panel has several rows for a unit. They are folded into one wide row (R24): fixed features once,
every other feature once for each position, and how many rows there are. `wide_schema` makes the
codebook of that table, and `panels/` folds and unfolds rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import TEMPORAL

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature

ABSENT = "(none)"
"""What a feature is at a position that a unit has no row for."""
MOST_POSITIONS = 64
PRIVATE = "private"
POOLED, FOLDED = "pooled", "folded"
MOST_FOLDED = 12
"""Above as many rows of a unit a release measures transitions pooled over positions (R24)."""
_DATED = ("date", "datetime")


@dataclass(frozen=True)
class Panel:
    """How the rows of a unit belong together.

    Parameters
    ----------
    unit
        Column that names the unit, whom the guarantee protects as a whole.
    time
        Feature that the rows of a unit are in the order of.
    most
        The most rows of a unit that count; public, never observed.
    fixed
        Features that are the same in all rows of a unit.
    gaps
        Edges of the bins of the time between one row and the next, in units of the time;
        "private": a release measures them; empty: by the edges of the time.
    wide
        Whether the features are those of the folded table.
    tables
        Names of two tables, where units and their rows have one each: the fixed features are
        those of the first, and `unit` is the key in both.
    least
        The fewest rows of a unit; 0 in two tables where a unit may have none.
    transitions
        "pooled": a release of blocks measures how one row leads to the next in one table for all
        positions; "folded": every position has features of its own; empty: by `most`.
    """

    unit: str
    time: str
    most: int
    fixed: tuple[str, ...] = ()
    gaps: tuple[float, ...] | str = ()
    wide: bool = False
    tables: tuple[str, str] | None = None
    least: int = 1
    transitions: str = ""

    def __post_init__(self) -> None:
        for key in ("unit", "time"):
            if not getattr(self, key):
                raise _error(f'{key} is missing; name a column, as {key} = ".."')
        if not 1 <= self.most <= MOST_POSITIONS:
            raise _error(f"most must be a whole number from 1 to {MOST_POSITIONS}")
        if self.least not in (0, 1) or (self.least == 0 and self.tables is None):
            raise _error("least is 0 or 1, and 0 goes with two tables only")
        if self.tables is not None and not self.fixed:
            raise _error(f"the table {self.tables[0]!r} has no features; list them")
        if self.transitions not in ("", POOLED, FOLDED):
            raise _error(f'transitions must be "{POOLED}" or "{FOLDED}"')
        if self.transitions == POOLED and (self.most == 1 or self.tables is not None):
            raise _error(
                "transitions are pooled in one table whose units have two rows or more (most); "
                "leave it out"
            )
        object.__setattr__(self, "fixed", tuple(self.fixed))
        if isinstance(self.gaps, str):
            if self.gaps != PRIVATE:
                raise _error('gaps are a list of numbers, or "private"')
        else:
            object.__setattr__(self, "gaps", tuple(self.gaps))
            if self.gaps and (self.gaps[0] != 0 or any(a >= b for a, b in pairwise(self.gaps))):
                raise _error("gaps must begin with 0 and increase strictly")

    @property
    def positions(self) -> range:
        """The positions of rows, from 1 on."""
        return range(1, self.most + 1)

    def sure(self, position: int) -> bool:
        """Say whether every unit has a row at a position."""
        return position <= self.least

    @property
    def count(self) -> str:
        """The feature of a folded table that says how many rows a unit has."""
        return f"{self.unit}_rows"

    @property
    def pooled(self) -> bool:
        """Whether a release of blocks measures transitions pooled over positions (R24).

        It follows from public figures. A folded codebook says so itself.
        """
        if self.transitions or self.wide:
            return self.transitions == POOLED
        return self.tables is None and self.most > MOST_FOLDED

    def at(self, name: str, position: int) -> str:
        """Return the name that a feature has at a position."""
        return name if name in self.fixed else f"{name}_{position}"

    def counted_on(self, name: str) -> bool:
        """Say whether a feature of the folded table is a time that is counted from another row."""
        return any(name == self.at(self.time, position) for position in self.positions[1:])

    def changing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the features of the long table that may differ from row to row.

        Parameters
        ----------
        names
            Features of this schema, be it the long or the folded one.
        """
        if not self.wide:
            return tuple(name for name in names if name not in self.fixed)
        first = (name for name in names if name.endswith("_1") and name not in self.fixed)
        return tuple(name.removesuffix("_1") for name in first)


def check_panel(panel: Panel, columns: Sequence[Feature]) -> None:
    """Refuse a panel whose columns are not there, or whose time has no order."""
    by_name = {column.name: column for column in columns}
    if panel.wide:
        return
    time = by_name.get(panel.time)
    if time is None or not time.modelled:
        raise _error(f"time names {panel.time!r}, which is not a modelled feature of this schema")
    if time.kind == "nominal":
        raise _error(
            f"time names {panel.time!r}, which is nominal and has no order; make it ordinal, "
            "numeric or a date"
        )
    if time.kind in TEMPORAL and time.kind not in _DATED:
        raise _error(f"time names {panel.time!r}, a {time.kind}; rows are ordered by a date")
    if time.after is not None:
        raise _error(f"time names {panel.time!r}, which is counted from another date of its row")
    if panel.unit in (panel.time, *panel.fixed):
        raise _error(f"{panel.unit!r} names the unit; it is neither its time nor fixed")
    if len(set(panel.fixed)) < len(panel.fixed):
        raise _error("a fixed feature is listed twice; list it once")
    for name in panel.fixed:
        if name == panel.time:
            raise _error(f"{name!r} is the time; it is not fixed")
        if name not in by_name or not by_name[name].modelled:
            raise _error(f"fixed names {name!r}, which is not a modelled feature of this schema")
    if panel.gaps and not time.binned:
        raise _error(f"gaps go with a time that is a number or a date; {panel.time!r} is ordinal")


def _error(what: str) -> SchemaError:
    return SchemaError(f"[panel]: {what}")
