"""Rows of people over time: what ``[panel]`` of a schema says, and the names of a folded table.

A panel has several rows for a unit. They are folded into one wide row (R24): fixed features once,
every other feature once for each position, and how many rows there are. `wide_schema` makes the
codebook of that table, and `codec/` folds and unfolds rows.

What no unit of a folded panel can be are rules that follow from the schema alone (R18): a unit
with n rows has every feature at the first n positions and none at the others, so there are no gaps
and nothing is absent alone. Rows without a known time come last, and a time that has categories
does not run backwards; one that is a number or a date is counted from the row before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.keys import PRIVATE, documented, needed, optional
from pegsynth.schema.rules import Rule

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature

ABSENT = "(none)"
"""What a feature is at a position that a unit has no row for."""
MOST_POSITIONS = 64
POOLED, FOLDED = "pooled", "folded"
MOST_FOLDED = 12
"""Above as many rows of a unit a release measures transitions pooled over positions (R24)."""
_DATED = ("date", "datetime")
_UNIT = "neighbours differ in all rows of one unit: assumption `unit-column`"
_ORDER = "rows of a unit are ordered by its own values alone"


@documented
@dataclass(frozen=True)
class Panel:
    """How the rows of a unit belong together.

    Of two tables the first holds the fixed features, and `unit` is the key in both.
    """

    unit: str = field(
        metadata=needed(
            '"patient"',
            "Column that names whom the guarantee protects; it is written with new numbers.",
            _UNIT,
        )
    )
    time: str = field(
        metadata=needed(
            '"admitted"',
            "Feature that the rows of a unit are in the order of: a date, a number, or ordinal.",
            _ORDER,
        )
    )
    most: int = field(
        metadata=needed(
            "4",
            "The most rows of a unit that count; later ones are left out.",
            "assumption `panel`; never the observed maximum. The price does not grow with it",
        )
    )
    fixed: tuple[str, ...] = optional(
        (),
        '["sex", "birth_year"]',
        "Features that are the same in all rows of a unit. Where they are not, the first known one "
        "counts.",
        "assumption `panel`",
    )
    gaps: tuple[float, ...] | str = optional(
        (),
        "[0, 1, 7, 30, 365]",
        "Edges of the time from one row to the next, in units of the time.",
        "declared public by `reviewed`. Private ones are paid for",
        form="gaps",
        left_out="as the edges of the time",
    )
    transitions: str = optional(
        "",
        '"pooled"',
        "How one row leads to the next: measured at every position by itself, or in one table for "
        "all positions ([panels.md](panels.md#many-rows)).",
        "folded, a unit costs what one row costs; pooled, `most - 1` rows in that table. Both are "
        "recorded and add up to the stated budget",
        left_out="`pooled` above twelve rows, with `pegs-once`",
        choices=(POOLED, FOLDED),
    )
    wide: bool = optional(
        False, "true", "Whether the features are those of the folded table, as in model files."
    )
    tables: tuple[str, str] | None = optional(
        None,
        '["households", "persons"]',
        "The two tables that a folded one comes from, as in model files.",
        form="texts",
        left_out="one table",
    )
    least: int = optional(1, "0", "The fewest rows of a unit of two tables, as in model files.")

    def __post_init__(self) -> None:
        for key in ("unit", "time"):
            if not getattr(self, key):
                raise _error(f'{key} is missing; name a column, as {key} = ".."')
        if not 1 <= self.most <= MOST_POSITIONS:
            raise _error(f"most must be a whole number from 1 to {MOST_POSITIONS}")
        if self.least not in (0, 1) or (self.least == 0 and self.tables is None):
            raise _error("least is 0 or 1, and 0 requires two tables")
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


@dataclass(frozen=True)
class OneOfTwo:
    """One of two tables, as ``[[tables]]`` states it: units first, then their rows."""

    name: str = field(metadata=needed('"households"', "What the table is called in output."))
    key: str = field(
        metadata=needed(
            '"household"',
            "Column that both tables have: whose a row is. It is written with new numbers.",
            "neighbours differ in one unit of the first table with all its rows of the second",
        )
    )
    features: tuple[str, ...] = optional(
        (),
        '["region", "rooms"]',
        "Features of the first table; all others are those of the second.",
        left_out="first table: needed",
    )
    order: str = optional(
        "",
        '"age"',
        "Feature that the rows of a unit are in the order of.",
        _ORDER,
        left_out="second table: needed",
    )
    most: int = optional(
        0,
        "8",
        "The most rows of a unit that count.",
        "assumption `panel`; never the observed maximum",
        left_out="second table: needed",
    )
    least: int = optional(1, "0", "The fewest rows of a unit: 0 where it may have none.", "public")


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
        raise _error(f"gaps require a time that is a number or a date; {panel.time!r} is ordinal")


def _error(what: str) -> SchemaError:
    return SchemaError(f"[panel]: {what}")


def structural_rules(panel: Panel, features: Sequence[Feature]) -> tuple[Rule, ...]:
    """Return the rules of a folded panel, as far as its categories are known."""
    places = {feature.name: place for place, feature in enumerate(features)}
    if panel.count not in places:
        return ()
    return (*_presence(panel, features, places), *_order(panel, features, places))


def _presence(panel: Panel, features: Sequence[Feature], places: dict[str, int]) -> Iterator[Rule]:
    count = places[panel.count]
    for position in panel.positions:
        if panel.sure(position):
            continue
        without = list(range(position - panel.least))
        reaches = list(range(position - panel.least, panel.most - panel.least + 1))
        for name in panel.changing(places):
            feature = features[places[panel.at(name, position)]]
            absent = feature.not_applicable_code
            if absent is None:
                continue
            place = places[feature.name]
            yield panel_rule({count: reaches, place: [absent]}, f"{feature.name} is there")
            present = [code for code in range(feature.category_count) if code != absent]
            if present:
                yield panel_rule({count: without, place: present}, f"{feature.name} is not there")


def _order(panel: Panel, features: Sequence[Feature], places: dict[str, int]) -> Iterator[Rule]:
    for position in panel.positions[:-1]:
        first = features[places[panel.at(panel.time, position)]]
        second = features[places[panel.at(panel.time, position + 1)]]
        here, there = places[first.name], places[second.name]
        known = list(range(second.bin_count))
        unknown = [
            code
            for code in range(first.bin_count, first.category_count)
            if code != first.not_applicable_code
        ]
        if unknown and known:
            yield panel_rule({here: unknown, there: known}, f"{second.name} follows a known time")
        if not first.binned:
            for code in range(1, first.bin_count):
                yield panel_rule(
                    {here: [code], there: known[:code]}, f"{second.name} is not before"
                )


def panel_rule(forbidden: Mapping[int, Iterable[int]], label: str) -> Rule:
    """Return a rule that a folded panel cannot break."""
    parts = tuple((place, frozenset(codes)) for place, codes in forbidden.items())
    return Rule(parts, f"panel: {label}", structural=True)
