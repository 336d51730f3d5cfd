"""What a release is to hold, declared before any data is read: analyses and tables (R26).

In go the tables ``[[analyses]]`` and ``[[tables_wanted]]`` of a schema, or of a file of their
own (``--analyses``); out come values. What they need of the table is settled elsewhere, from
these declarations and the schema alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pegsynth.errors import SchemaError
from pegsynth.schema.entry import Entry, file_text, parsed, shown
from pegsynth.schema.keys import documented, needed, optional

Family: TypeAlias = Literal["gaussian", "binomial", "poisson", "multinomial"]

FAMILIES: tuple[str, ...] = get_args(Family)
USUAL_SHARE = 0.05
_SETTLED = "settled before data is read"
MOST_TOGETHER = 0.6
"""The most of the budget that declared analyses and tables may take together."""


@documented
@dataclass(frozen=True)
class Analysis:
    """A regression that a release is to hold; of its family with its usual link."""

    formula: str = field(
        metadata=needed(
            '"I(charge > 25000) ~ age + C(sev) + los"',
            "Response and terms: a feature, `C(feature)` by its categories, a comparison `I(..)`, "
            "`log(..)`, `I(x^2)`, `rcs(x, 1, 2, 3)` or a product `a*b`.",
            _SETTLED,
        )
    )
    family: Family = optional(
        "gaussian", '"binomial"', "Distribution of the response.", _SETTLED, always=True
    )
    share: float = optional(
        USUAL_SHARE,
        "0.1",
        "Part of the whole budget that the analysis gets.",
        _SETTLED,
        always=True,
    )

    def __post_init__(self) -> None:
        if not self.formula.strip():
            raise SchemaError('an analysis has no formula; add formula = "response ~ term + term"')
        if self.family not in FAMILIES:
            raise SchemaError(
                f"analysis {shown(self.formula)}: there is no family {shown(str(self.family))}; "
                f"the families are {', '.join(FAMILIES)}"
            )
        _check_share(f"analysis {shown(self.formula)}", self.share)


@documented
@dataclass(frozen=True)
class WantedTable:
    """A table of counts that a release is to publish, with noise."""

    features: tuple[str, ...] = field(
        metadata=needed(
            '["ward", "chapter"]',
            "Features of the table. A survival table has time, event and group; standardised rates "
            "area, age and event.",
            _SETTLED,
        )
    )
    share: float = optional(
        USUAL_SHARE,
        "0.1",
        "Part of the whole budget that the table gets.",
        _SETTLED,
        always=True,
    )

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
        tuple(
            Entry.at(Analysis, f"analysis {number}", raw).made(Analysis)
            for number, raw in enumerate(file.tables("analyses"), start=1)
        ),
        tuple(
            Entry.at(WantedTable, f"wanted table {number}", raw).made(WantedTable)
            for number, raw in enumerate(file.tables("tables_wanted"), start=1)
        ),
    )


def load_declared(path: str | Path) -> Declared:
    """Read a file of declarations alone, ``analyses.toml``."""
    text = file_text(path)
    try:
        entry = Entry.of("the file", parsed(text), ("analyses", "tables_wanted"))
        declared = read_declared(entry)
        if not any(declared):
            raise SchemaError("it declares nothing; add [[analyses]] or [[tables_wanted]]")
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    return declared
