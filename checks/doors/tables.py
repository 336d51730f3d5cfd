"""Neighbouring tables for the door audit (R30): a table, a hostile row more, a schema.

A case is made from a number alone, so that a failure can be made again. Columns say how
they are held, which is public: an Arrow type, or "any" where a column may hold values of
every type. Rows of the table mostly suit the schema; the row more is chosen to disturb.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from pegsynth.schema import Feature, Schema

ROW, UNIT, FOLDER = "row", "person", "ward"
"""The columns that number the rows, name the unit, and may be given by folders."""
MOST_ROWS = 40
ANY = "any"
TEXTS = ("string", "dictionary")
WHOLE = ("int64", "int32", "int8", "uint64", "uint8")
BROKEN = ("double", "float")
DECIMALS = ("decimal128(38, 6)", "decimal128(9, 2)")
TIMES = (
    "timestamp[us]",
    "timestamp[ns]",
    "timestamp[us, tz=Europe/Berlin]",
    "timestamp[ms, tz=UTC]",
)
TYPED = (*TEXTS, *WHOLE, *BROKEN, *DECIMALS, *TIMES, "bool", "date32")

_WHOLE = re.compile(r"-?\d+", re.ASCII)
_LIMITS = {
    **{f"int{bits}": (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (8, 32, 64)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 64)},
}
_FEATURES = (
    ("nominal", ("x", "y", "z"), ("", "string", "dictionary")),
    ("nominal", ("1", "2", "3"), ("", "int64", "int8", "double", "string")),
    ("ordinal", ("1", "2", "10"), ("", "int64", "string")),
    ("nominal", ("1", "1.0", "01", "1.50"), ("", "string")),
    ("nominal", ("0.1", "1.5", "2"), ("", "double", "float")),
    ("nominal", ("true", "false"), ("", "bool", "string")),
    ("nominal", ("False", "True"), ("", "bool")),
    ("nominal", ("0", "1"), ("", "bool", "int64")),
    ("nominal", ("2020-02-29", "2021-12-31"), ("", "date32", "timestamp[us]")),
    (
        "nominal",
        ("2020-02-29", "2020-02-29T12:30:00", "2020-02-29T12:30:00.500"),
        ("", "timestamp[us]", "timestamp[us, tz=Europe/Berlin]"),
    ),
    ("nominal", ("=x", "'=x", "+", 'a"b', "a,b", "a\nb", " x"), ("", "string")),
    ("nominal", (str(1 << 53), str((1 << 53) + 1), str((1 << 60) + 1)), ("", "int64", "double")),
    ("numeric", (0.0, 10.0, 20.0, 50.0), ("", "int64", "double", "float")),
    ("numeric", (-1.5, 0.1, 0.3, 2.5), ("", "double")),
    ("numeric", (0.0, 2.0**53, 2.0**53 + 4, 2.0**60), ("", "int64", "double")),
    ("date", ("2020-01-01", "2020-02-29", "2021-12-31"), ("", "date32", "timestamp[us]")),
    (
        "datetime",
        ("2020-02-29T00:00:00", "2020-02-29T12:30:00", "2021-12-31T00:00:00"),
        ("", "timestamp[us]", "timestamp[us, tz=Europe/Berlin]"),
    ),
)
_DATES = ("date", "datetime")
_MOMENTS = ("2020-02-29", "2020-02-28", "2020-02-29T12:29:59", "1969-12-31", "2199-12-31")
_NUMBERS = ("0", "1", "5", "10", "19.5", "0.1", "0.30000000000000004", "-3", "9007199254740995")
_MISSING = ((), (), ("",), ("", "NA"), ("NA", "-9"), ("", "NaN"))
_NOT_APPLICABLE = ((), (), ("n/a",), ("-1",), ("99", "inf"), ("nan", "NaN"))
_HOSTILE_TEXTS = (
    *("", " ", "NA", "nan", "NaN", "inf", "-inf", "Infinity", "null", "None", "(missing)"),
    *("(other)", "1", "1.0", "1.00", "01", "+1", " 1", "1 ", "-0", "1e0", "1e3", "1_000", "0x1"),
    *("true", "TRUE", "True", "t", "=x", "'=x", "''=x", "'1", "[0, 10)", "[10, 20)", "5", "12.5"),
    *("2020-02-29", "2020-02-29T00:00:00", "2020-02-29 12:30:00", "2020-02-29T12:30:00+02:00"),
    *("unseen", "x ", "X", 'a"b', '"', ",", "a\r\nb", "\u0663", "\u00a01", "9007199254740993"),
    *("1" * 40, "x" * 70_000, "none", "__HIVE_DEFAULT_PARTITION__", "a/b", "%31", "\u00e9"),
)
_HOSTILE_WHOLE = (
    *(0, 1, 2, 5, -1, -9, 99, 127, 255, (1 << 53) - 1, (1 << 53) + 1, (1 << 53) + 3),
    *((1 << 60) + 7, (1 << 62), (1 << 63) - 1, -(1 << 63), (1 << 63), (1 << 64) - 1),
)
_HOSTILE_BROKEN = (
    *(float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.0, 1.5, 12.5, 0.1, 5e-324),
    *(1.7e308, 2.0**53 + 2, 2.0**60, 2.0**63, 2.0**64, -9.0, -1.0, 99.0, 1e15, 1e16, 1e22),
)
_HOSTILE_DECIMALS = tuple(
    map(Decimal, ("0", "1", "1.50", "-9", "99", "0.1", "9007199254740993", "1234567.89"))
)
_HOSTILE_DATES = (
    *(dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), dt.date(2020, 2, 29)),
    dt.date(2020, 1, 1),
)
_HOSTILE_TIMES = (
    *(dt.datetime(2020, 2, 29), dt.datetime(2020, 2, 29, 12, 30), dt.datetime(1700, 1, 1)),
    *(dt.datetime(2020, 2, 29, 12, 30, 0, 500_000), dt.datetime(2020, 10, 25, 2, 30)),
    *(dt.datetime(1970, 1, 1), dt.datetime(2021, 12, 31, 23, 59, 59, 999_999)),
)
_HOSTILE_ANY = (
    *(True, False, b"x", b"", dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 12, 30)),
    *(Decimal("1.5"), Decimal("1"), Decimal("9007199254740993.1"), [1]),
    dt.datetime(2020, 2, 29, 12, 30, tzinfo=ZoneInfo("Europe/Berlin")),
)
_SQL = (int, float, str, bytes, type(None))
_FLAVOURS = (str, int, float)

Groups = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Pair:
    """A table and one row more.

    Parameters
    ----------
    schema
        The public codebook; it names a unit.
    held
        How every column is held, by name, in table order.
    rows
        The rows of the table; the first value of each is its number.
    extra, place
        The row more, and before which row it stands.
    others
        Rows of another table of the same kind, for what a refusal depends on.
    style
        A number that settles how a door writes the tables: quotes, batches, files.
    """

    schema: Schema
    held: Mapping[str, str]
    rows: tuple[tuple[Any, ...], ...]
    extra: tuple[Any, ...]
    place: int
    others: tuple[tuple[Any, ...], ...]
    style: int

    def pick(self, which: int, many: int) -> int:
        """Return one of so many ways to write the tables; `which` tells five choices apart."""
        return (self.style >> 6 * which) % 64 % many

    def with_extra(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return rows and the row more at its place."""
        place = min(self.place, len(rows))
        return [*rows[:place], self.extra, *rows[place:]]

    def __str__(self) -> str:
        """Return everything that it takes to make the pair again."""
        features = [
            repr(column) for column in self.schema.columns if column.name not in (ROW, UNIT)
        ]
        lines = [
            f"held: {dict(self.held)}",
            *(f"feature: {text}" for text in features),
            f"rows per unit: {self.schema.rows_per_unit}, style: {self.style}",
            *(f"row:   {row}" for row in self.rows),
            f"extra: {self.extra} before row {self.place}",
        ]
        return "\n".join(line if len(line) < 400 else f"{line[:400]} .." for line in lines)


@dataclass(frozen=True)
class Holding:
    """What the columns of a door may be held as.

    Parameters
    ----------
    kinds
        Types of features and units; "any" for a column of all types, and after it what
        a database declares it as.
    folder
        Whether one feature is given by the names of folders.
    among
        Which values "any" stands for.
    """

    kinds: tuple[str, ...]
    folder: bool = False
    among: Callable[[Any], bool] = lambda value: True


def pairs(holding: Holding, seed: str, *, extras: int = 4) -> Iterator[Pair]:
    """Yield neighbouring tables without end: every table with some rows more."""
    random = Random(seed)
    while True:
        yield from _pairs_of_one_table(holding, random, extras)


def _pairs_of_one_table(holding: Holding, random: Random, extras: int) -> Iterator[Pair]:
    columns = [_Texts.numbers()]
    names = ["a", "b", "c"][: random.randint(1, 3)]
    columns += [_feature(name, random, random.choice(holding.kinds), holding) for name in names]
    if holding.folder:
        columns.append(_feature(FOLDER, random, "string", holding))
    columns.append(_unit(random, random.choice(holding.kinds), holding))
    described = tuple(column.feature for column in columns)
    schema = Schema(described, UNIT, random.choice((1, 1, 2)), reviewed=True)
    held = {column.feature.name: column.kind for column in columns}
    count = random.randint(1, 8)
    rows = _rows(columns, random, 0, count)
    others = _rows(columns, random, 0, random.randint(1, 3))
    style = random.getrandbits(30)
    for _ in range(extras):
        values = [column.extra(random) for column in columns]
        # One hostile value tells more than many, which refuse each other's tables.
        if random.random() < 0.7:
            hostile = random.randrange(1, len(columns))
            values = [
                value if index == hostile else column.plain(random)
                for index, (column, value) in enumerate(zip(columns, values, strict=True))
            ]
        extra = (str(MOST_ROWS - 1), *values[1:])
        place = random.choice((0, count, random.randint(0, count)))
        yield Pair(schema, held, rows, extra, place, others, style)


def _rows(
    columns: Sequence[_Texts], random: Random, first: int, count: int
) -> tuple[tuple[Any, ...], ...]:
    numbered = range(first, first + count)
    return tuple((str(n), *(column.plain(random) for column in columns[1:])) for n in numbered)


@dataclass(frozen=True)
class _Texts:
    """A column: values that suit it, and values that disturb."""

    feature: Feature
    kind: str
    suited: tuple[Any, ...]
    hostile: Groups

    @classmethod
    def numbers(cls) -> _Texts:
        """Return the column that numbers rows."""
        texts = tuple(map(str, range(MOST_ROWS)))
        return cls(Feature(ROW, categories=texts), "string", texts, (texts,))

    def plain(self, random: Random) -> Any:
        return random.choice(self.suited)

    def extra(self, random: Random) -> Any:
        return random.choice(random.choice((self.suited, *self.hostile)))


def _feature(name: str, random: Random, kind: str, holding: Holding) -> _Texts:
    # Names of folders that are all numbers are what one other name may disturb.
    numbers = _FEATURES[1:3] if name == FOLDER and random.random() < 0.5 else _FEATURES
    shape, listed, dtypes = random.choice(numbers)
    missing, numeric = random.choice(_MISSING), shape == "numeric" or shape in _DATES
    not_applicable = tuple(t for t in random.choice(_NOT_APPLICABLE) if t not in missing)
    feature = Feature(
        name,
        shape,  # type: ignore[arg-type]
        categories=() if numeric else tuple(map(str, listed)),
        edges=listed if numeric else (),  # type: ignore[arg-type]
        missing=missing,
        not_applicable=not_applicable,
        dtype=random.choice(dtypes),
        unknown=random.choice(("error", "category")),
    )
    flavour = random.choice(_FLAVOURS) if is_any(kind) else None
    listed_texts = _NUMBERS if numeric else feature.categories
    listed_texts = _MOMENTS if shape in _DATES else listed_texts
    special = tuple(_parsed((*missing, *not_applicable), kind, flavour))
    suited = (*_parsed(listed_texts, kind, flavour), *special, *special)
    if missing or (feature.unknown == "category" and numeric):
        suited += (None,)
    elif not suited:
        feature = replace(feature, unknown="category", missing=("",))
        suited = (None, *_hostile(kind, holding)[-1][:2])
    if feature.unknown == "category" and random.random() < 0.5:
        suited += tuple(_parsed(("unseen", "77", "77.5", "1999-01-01"), kind, flavour))
    hostile = _hostile(kind, holding)
    if is_any(kind):
        # The same values in another type: what a look at all types would disturb.
        texts = (*listed_texts, *missing, *not_applicable)
        alike = [tuple(filter(holding.among, _parsed(texts, kind, f))) for f in _FLAVOURS]
        hostile += tuple(filter(None, alike))
    return _Texts(feature, kind, suited, hostile)


def _unit(random: Random, kind: str, holding: Holding) -> _Texts:
    feature = Feature(UNIT, role="identifier")
    base = random.choice((0, 1 << 52, 1 << 60))
    styles: Mapping[str, Sequence[Any]] = {
        "whole": [base + i for i in range(4)],
        "text": random.choice((["p1", "p2", "P1", "p1 "], ["1", "01", "1.0", "2"])),
        "broken": [float(base), base + 0.5, base + 512.0, base + 1024.0],
        "decimal": [Decimal(base) + Decimal(i) / 100 for i in range(4)],
        "date": [dt.date(2020, 1, 1 + i) for i in range(4)],
        "time": [dt.datetime(2020, 10, 25, i, 30, 0, 1000) for i in range(4)],
        "bool": [True, False],
    }
    style = random.choice(("whole", "text", "broken")) if is_any(kind) else _style(kind)
    suited = tuple(_fitting(styles[style], kind)) or tuple(
        _fitting([_small(i, kind) for i in range(4)], kind)
    )
    hostile = _hostile(kind, holding)
    if is_any(kind):
        names = ("whole", "text", "broken")
        others = [tuple(filter(holding.among, styles[name])) for name in names]
        hostile = (*filter(None, others), tuple(map(str, suited)), *hostile)
    return _Texts(feature, kind, suited, hostile)


def _style(kind: str) -> str:
    return next(
        name
        for name, kinds in {
            **{"whole": WHOLE, "text": TEXTS, "broken": BROKEN, "decimal": DECIMALS},
            **{"date": ("date32",), "time": TIMES, "bool": ("bool",)},
        }.items()
        if kind in kinds
    )


def _hostile(kind: str, holding: Holding) -> Groups:
    """Return values that disturb, type by type; the rarest type is as likely as any other."""
    if is_any(kind):
        numbers = (*_HOSTILE_WHOLE, 1 << 64)
        every = ((None,), numbers, _HOSTILE_BROKEN, _HOSTILE_ANY, _HOSTILE_TEXTS)
        found = [tuple(filter(holding.among, values)) for values in every]
        return tuple(filter(None, found))
    values: Mapping[str, tuple[Any, ...]] = {
        "whole": _HOSTILE_WHOLE,
        "text": _HOSTILE_TEXTS,
        "broken": _HOSTILE_BROKEN,
        "decimal": _HOSTILE_DECIMALS,
        "date": _HOSTILE_DATES,
        "time": _HOSTILE_TIMES,
        "bool": (True, False),
    }
    fitting = tuple(_fitting(values[_style(kind)], kind))
    return ((None,), fitting, fitting, fitting)


def is_any(kind: str) -> bool:
    """Say whether a column may hold values of all types, whatever it is declared as."""
    return kind.partition(" ")[0] == ANY


def is_sql(value: Any) -> bool:
    """Say whether SQLite stores values of this type."""
    if isinstance(value, int) and not isinstance(value, bool):
        return -(1 << 63) <= value < 1 << 63
    return type(value) in _SQL


def is_apart(value: Any) -> bool:
    """Say whether no value of another type equals this one: pandas would take both for one."""
    return value is None or isinstance(value, str) or (isinstance(value, float) and value % 1 != 0)


def _parsed(texts: Sequence[str], kind: str, flavour: type | None) -> Iterator[Any]:
    """Yield what texts say in a type, leaving out those that say nothing in it."""
    for text in texts:
        try:
            value = _value(text, kind, flavour)
        except (ValueError, InvalidOperation):
            continue
        yield from _fitting([value], kind)


def _value(text: str, kind: str, flavour: type | None) -> Any:
    style = {str: "text", int: "whole", float: "broken"}[flavour] if flavour else _style(kind)
    if style == "whole":
        if not _WHOLE.fullmatch(text):
            raise ValueError
        return int(text)
    if style == "bool":
        known = {"true": True, "false": False, "1": True, "0": False}
        if text.lower() not in known:
            raise ValueError
        return known[text.lower()]
    readers: Mapping[str, Any] = {
        "text": str,
        "broken": float,
        "decimal": Decimal,
        "date": dt.date.fromisoformat,
        "time": dt.datetime.fromisoformat,
    }
    return readers[style](text)


def _fitting(values: Sequence[Any], kind: str) -> Iterator[Any]:
    """Yield the values that a type can hold, times with their zone."""
    for value in values:
        if kind in _LIMITS:
            low, high = _LIMITS[kind]
            if low <= value <= high:
                yield value
        elif kind == "float":
            # What a column of four bytes holds is what was rounded to them.
            with suppress(OverflowError):
                yield struct.unpack("f", struct.pack("f", value))[0]
        elif kind in DECIMALS:
            scale = 6 if "38" in kind else 2
            most = Decimal(10) ** (32 if "38" in kind else 7)
            if value.is_finite() and abs(value) < most and value == round(value, scale):
                yield value
        elif kind in TIMES:
            zone = re.search(r"tz=([^\]]+)", kind)
            if "ms" not in kind or value.microsecond % 1000 == 0:
                yield value.replace(tzinfo=ZoneInfo(zone[1])) if zone else value
        else:
            yield value


def _small(number: int, kind: str) -> Any:
    return Decimal(number) if kind in DECIMALS else number
