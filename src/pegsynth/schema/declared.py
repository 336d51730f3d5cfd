"""What a release is to hold, declared before any data is read: analyses and tables (R26).

In go the tables ``[[analyses]]`` and ``[[tables_wanted]]`` of a schema, or of a file of their
own (``--analyses``); out come values. What they need of the table is settled elsewhere, from
these declarations and the schema alone.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from pegsynth.errors import SchemaError
from pegsynth.schema.entry import Entry, shown
from pegsynth.schema.feature import number_text

Family: TypeAlias = Literal["gaussian", "binomial", "poisson", "multinomial"]

FAMILIES: tuple[str, ...] = get_args(Family)
USUAL_SHARE = 0.05
MOST_TOGETHER = 0.6
"""The most of the budget that declared analyses and tables may take together."""


@dataclass(frozen=True)
class Analysis:
    """A regression that a release is to hold.

    Parameters
    ----------
    formula
        Such as ``charge ~ age + C(sev)``.
    family
        Distribution of the response, as in a generalised linear model with its usual link.
    share
        The part of the whole budget that it gets.
    """

    formula: str
    family: Family = "gaussian"
    share: float = USUAL_SHARE

    def __post_init__(self) -> None:
        if not self.formula.strip():
            raise SchemaError('an analysis has no formula; add formula = "response ~ term + term"')
        if self.family not in FAMILIES:
            raise SchemaError(
                f"analysis {shown(self.formula)}: there is no family {shown(str(self.family))}; "
                f"the families are {', '.join(FAMILIES)}"
            )
        _check_share(f"analysis {shown(self.formula)}", self.share)


@dataclass(frozen=True)
class WantedTable:
    """A table of counts that a release is to publish, with noise.

    Parameters
    ----------
    features
        Names of its features.
    share
        The part of the whole budget that it gets.
    """

    features: tuple[str, ...]
    share: float = USUAL_SHARE

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if not self.features:
            raise SchemaError('a table that is wanted names no features; add features = ["a", "b"]')
        if len(set(self.features)) < len(self.features):
            raise SchemaError(f"{self.name}: a feature is named twice")
        _check_share(self.name, self.share)

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the table of {' x '.join(self.features)}"


Declared: TypeAlias = tuple[tuple[Analysis, ...], tuple[WantedTable, ...]]


def _check_share(where: str, share: float) -> None:
    if not 0 < share < 1:
        raise SchemaError(f"{where}: share is the part of the budget, above 0 and below 1")


def check_declared(
    analyses: Sequence[Analysis], tables: Sequence[WantedTable], names: Collection[str]
) -> None:
    """Refuse features that a schema lacks, and shares that leave nothing to the rest."""
    for table in tables:
        if unknown := [name for name in table.features if name not in names]:
            raise SchemaError(
                f"{table.name}: the schema has no feature {shown(unknown[0])}; it has "
                f"{', '.join(names)}"
            )
    sets = [frozenset(table.features) for table in tables]
    if len(set(sets)) < len(sets):
        raise SchemaError("a table is wanted twice; state it once, with a larger share")
    shares = (*(each.share for each in analyses), *(each.share for each in tables))
    together = math.fsum(shares)
    if together > MOST_TOGETHER:
        raise SchemaError(
            f"the shares of analyses and tables_wanted add up to {together:g}; one-way counts and "
            f"blocks need the rest, so at most {MOST_TOGETHER:g} can be given away"
        )


def read_declared(file: Entry) -> Declared:
    """Read the declarations of a file."""
    return (
        tuple(_analysis(n, raw) for n, raw in enumerate(_tables(file, "analyses"), start=1)),
        tuple(_wanted(n, raw) for n, raw in enumerate(_tables(file, "tables_wanted"), start=1)),
    )


def load_declared(path: str | Path) -> Declared:
    """Read a file of declarations alone, ``analyses.toml``."""
    source = str(path)
    try:
        document = tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise SchemaError(f"{source}: there is no such file; check --analyses") from None
    except (OSError, RecursionError, UnicodeDecodeError):
        raise SchemaError(f"{source}: the file cannot be read; give a TOML file") from None
    except ValueError as error:
        raise SchemaError(f"{source}: not valid TOML: {error}; correct that line") from None
    try:
        declared = read_declared(Entry.of("the file", document, ("analyses", "tables_wanted")))
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None
    if not any(declared):
        raise SchemaError(f"{source}: it declares nothing; add [[analyses]] or [[tables_wanted]]")
    return declared


def declared_blocks(
    analyses: Sequence[Analysis], tables: Sequence[WantedTable]
) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield heading, keys and values of all declarations, as a file has them."""
    for each in analyses:
        lines: list[tuple[str, Any]] = [("formula", each.formula), ("family", each.family)]
        yield "[[analyses]]", [*lines, ("share", number_text(each.share))]
    for table in tables:
        lines = [("features", table.features), ("share", number_text(table.share))]
        yield "[[tables_wanted]]", lines


def _tables(file: Entry, key: str) -> list[Any]:
    tables = file.values.get(key, [])
    if not isinstance(tables, list):
        raise SchemaError(f"{key} must be tables headed [[{key}]], in double brackets")
    return tables


def _analysis(number: int, raw: Any) -> Analysis:
    entry = Entry.at("analyses", f"analysis {number}", raw)
    share = entry.number("share")
    return Analysis(
        entry.text("formula"),
        cast(Family, entry.text("family", "gaussian")),
        USUAL_SHARE if share is None else share,
    )


def _wanted(number: int, raw: Any) -> WantedTable:
    entry = Entry.at("tables_wanted", f"wanted table {number}", raw)
    share = entry.number("share")
    return WantedTable(entry.texts("features"), USUAL_SHARE if share is None else share)
