"""What one row does to the reading of the others must be nothing (R30).

A door is a way to read a table. A table is read through it with and without one row more,
and everything that can reach a count, an output or a refusal is compared bit for bit: the
codes of every row, its unit, whether it is kept, the types and the order of the columns.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from checks.doors.reading import Reading, read_here, refusal, small_batches
from checks.doors.tables import FOLDER, UNIT, Holding, Pair, is_any, pairs
from pegsynth.errors import PegsynthError
from pegsynth.schema import Schema

Build = Callable[[Path, Pair, Sequence[tuple[Any, ...]]], Any]
_BATCHES = (1, 3, 1 << 16, 1 << 16)


@dataclass(frozen=True)
class Door:
    """A way to read tables.

    Parameters
    ----------
    name
        What it is called in the audit.
    holding
        How its columns may be held.
    build
        Writes rows below a folder, or makes a frame of them; returns what is opened.
    ordered
        Whether rows come in one order every time.
    needs
        A package that must be installed.
    read
        Reads what was built under a schema; None for the readers of this process.
    """

    name: str
    holding: Holding
    build: Build
    ordered: bool = True
    needs: str = ""
    read: Callable[[Any, Schema], Reading] | None = None


Readings = dict[str, Reading]


@dataclass(frozen=True)
class Failure:
    """A pair at a door that something differs for."""

    door: Door
    pair: Pair
    found: tuple[str, ...]

    def __str__(self) -> str:
        """Return what it takes to see it again."""
        return "\n".join([f"{self.door.name}:", *self.found, str(self.pair)])


def read_through(door: Door, pair: Pair, rows: Sequence[tuple[Any, ...]], folder: Path) -> Reading:
    """Read rows through a door, as `pegsynth.pipeline.fitting.fit` would."""
    source = door.build(folder, pair, rows)
    try:
        return (door.read or read_here)(source, pair.schema)
    except PegsynthError as error:
        return refusal(error)


def differences(
    door: Door, pair: Pair, folder: Path, *, twice: bool = True, known: Readings | None = None
) -> list[str]:
    """Return what one row more changes for the others; nothing, if the door is sound.

    Parameters
    ----------
    twice
        Whether the refusal is tried with another table too.
    known
        Readings of tables that several pairs share.
    """
    known = {} if known is None else known

    def read(name: str, rows: Sequence[tuple[Any, ...]]) -> Reading:
        place = folder / name
        place.mkdir()
        return read_through(door, pair, rows, place)

    def shared(name: str, rows: Sequence[tuple[Any, ...]]) -> Reading:
        if name not in known:
            known[name] = read(name, rows)
        return known[name]

    plain, more = shared("plain", pair.rows), read("more", pair.with_extra(pair.rows))
    alone = read("alone", [pair.extra])
    if len({reading.claimed for reading in (plain, more, alone) if not reading.refused}) > 1:
        return ["whether a guarantee covers the rows depends on them"]
    if not (plain.claimed and more.claimed and alone.claimed):
        return []
    found = _refusals(plain, more, alone)
    if twice and not found:
        others = shared("others", pair.others)
        found += _refusals(others, read("others and more", pair.with_extra(pair.others)), alone)
    for reading in (plain, more):
        if not reading.refused:
            found += _inside(pair, reading)
    if not (plain.refused or more.refused):
        found += _compared(door, pair, plain, more)
    if not (more.refused or alone.refused):
        found += _own(pair, more, alone)
    return found


def _refusals(plain: Reading, more: Reading, alone: Reading) -> list[str]:
    """Check that a table with the row more is refused if and only if one of both is."""
    expected = bool(plain.refused or alone.refused)
    if bool(more.refused) == expected:
        return []
    said = {"plain": plain.refused, "with the row": more.refused, "row alone": alone.refused}
    return [f"a refusal depends on more than the row's own values: {said}"]


def _compared(door: Door, pair: Pair, plain: Reading, more: Reading) -> list[str]:
    found = []
    if plain.types != more.types:
        told = [f"{a} -> {b}" for a, b in zip(plain.types, more.types, strict=True) if a != b]
        found.append(f"types differ: {told[0]}")
    extra = int(pair.extra[0])
    codes, others = dict(plain.codes or {}), dict(more.codes or {})
    own = others.pop(extra, None)
    if codes != others:
        changed = [n for n in {*codes, *others} if codes.get(n) != others.get(n)]
        shown = [(n, codes.get(n), others.get(n)) for n in changed[:3]]
        found.append(f"codes of {len(changed)} rows differ: {shown}")
    names, texts = dict(plain.unit or {}), dict(more.unit or {})
    name = texts.pop(extra, None)
    if names != texts:
        changed = [n for n in {*names, *texts} if names.get(n) != texts.get(n)]
        shown_units = [(n, names.get(n), texts.get(n)) for n in changed[:3]]
        found.append(f"units of {len(changed)} rows differ: {shown_units}")
    if door.ordered and own is not None and not found:
        apart = {n for n, text in names.items() if text != name}
        if plain.kept & apart != more.kept & apart:
            found.append("rows of other units are kept or dropped")
        if not (more.kept - {extra}) <= plain.kept:
            found.append("a row is kept only beside the row more")
    return found


def _own(pair: Pair, more: Reading, alone: Reading) -> list[str]:
    """Check that what the row more is read as does not depend on the others either."""
    extra = int(pair.extra[0])
    if (more.codes or {}).get(extra) != (alone.codes or {}).get(extra):
        return ["the row more has other codes alone"]
    if (more.unit or {}).get(extra) != (alone.unit or {}).get(extra):
        return ["the row more has another unit alone"]
    return []


def _inside(pair: Pair, reading: Reading) -> list[str]:
    """Within one table: as many rows as may count, one code for one value, no unit merged."""
    found = list(reading.faults)
    codes, unit = reading.codes or {}, reading.unit or {}
    k = pair.schema.rows_per_unit
    sizes = Counter(unit.values())
    kept = Counter(unit[number] for number in reading.kept if number in unit)
    wrong = [text for text, size in sizes.items() if kept[text] != min(k, size)]
    if wrong:
        found.append(f"{len(wrong)} units have other than min(k, size) rows that count")
    rows = {int(row[0]): row for row in (*pair.rows, pair.extra)}
    where = list(pair.held).index(UNIT)
    if not is_any(pair.held[UNIT]):
        named = {(rows[number][where], text) for number, text in unit.items()}
        values = {value for value, _ in named}
        texts = {text for _, text in named}
        if len(named) > len(values) or len(texts) < len(values):
            found.append("different units have one text, or one unit has several")
    for index, name in enumerate(pair.schema.names[1:], start=1):
        position = list(pair.held).index(name)
        seen: dict[str, int] = {}
        for number, line in codes.items():
            value = rows[number][position]
            if seen.setdefault(f"{type(value)} {value!r}", line[index]) != line[index]:
                found.append(f"column {name!r}: one value has two codes")
                break
    return found


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="pegs-door-") as name:
        yield Path(name)


def failures(door: Door, count: int, *, seed: str = "doors") -> Iterator[Failure]:
    """Try so many pairs at a door; yield those that differ, made small."""
    known: Readings = {}
    rows: Any = None
    for number, pair in enumerate(islice(pairs(door.holding, f"{seed} {door.name}"), count)):
        if pair.rows is not rows:
            rows, known = pair.rows, {}
        if tried(door, pair, twice=number % 4 == 0, known=known):
            less = smaller(door, pair)
            yield Failure(door, less, tuple(tried(door, less)))


def tried(
    door: Door, pair: Pair, *, twice: bool = True, known: Readings | None = None
) -> list[str]:
    """Return what differs for one pair, read in batches of a few rows or in one."""
    with temporary_folder() as folder, small_batches(_BATCHES[pair.pick(0, len(_BATCHES))]):
        return differences(door, pair, folder, twice=twice, known=known)


def smaller(door: Door, pair: Pair) -> Pair:
    """Leave out rows and features as long as something still differs."""
    again = True
    while again:
        again = False
        for attempt in _less(pair):
            if tried(door, attempt):
                pair, again = attempt, True
                break
    return pair


def _less(pair: Pair) -> Iterator[Pair]:
    for index in range(len(pair.rows) if len(pair.rows) > 1 else 0):
        rows = (*pair.rows[:index], *pair.rows[index + 1 :])
        yield replace(pair, rows=rows, place=min(pair.place, len(rows)))
    for name in list(pair.held)[1:]:
        if name in (UNIT, FOLDER):
            continue
        index = list(pair.held).index(name)

        def cut(row: tuple[Any, ...], index: int = index) -> tuple[Any, ...]:
            return (*row[:index], *row[index + 1 :])

        yield replace(
            pair,
            schema=replace(
                pair.schema, columns=tuple(c for c in pair.schema.columns if c.name != name)
            ),
            held={key: kind for key, kind in pair.held.items() if key != name},
            rows=tuple(map(cut, pair.rows)),
            extra=cut(pair.extra),
            others=tuple(map(cut, pair.others)),
        )
