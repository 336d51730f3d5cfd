"""``tables.toml``: which published tables there are, and what is known of the error of their cells.

Nothing is guessed: a key that is not known, or an error that is not stated, is refused by the name
of the file and the number of its entry. The cells themselves are read by `published_tables`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegsynth.errors import ParameterError, escaped

TOTALS = ("total", "totals", "all", "both", "sum", "_t", "insgesamt", "gesamt", "ensemble", "tous")
"""Labels that name the sum over all categories of a feature, unless a table names its own."""


class Described(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the file.

    Parameters
    ----------
    file
        A CSV, Excel or Parquet file beside ``tables.toml``: one row for each cell, or a cross
        table, or SDMX-CSV.
    features
        Features of the schema that the table counts rows by.
    count
        The column of counts; ``OBS_VALUE`` of SDMX-CSV needs no name.
    across
        For a cross table the feature whose categories are the names of columns.
    columns
        Feature to the column that holds it, where that has another name.
    labels
        Feature to what the file calls a category, and what the schema calls it.
    where
        Columns and the value that rows must have to be read.
    total
        What the table calls totals, where that is not "Total" or the like.
    sheet
        The sheet of a workbook.
    error
        ``exact``; ``rounded`` to a multiple of `base`, up or down at `random` or to the nearest;
        ``variance``: estimates with a stated `variance`, or with standard errors in the column
        `se`; ``interval``: between the columns `low` and `high`.
    below, mark
        Cells shown as one of these marks are 0 to below - 1, or from 1 on where zeros are shown.
    absent
        What a cell is that the file does not list: refused, zero, or unknown.
    guarantee, by
        What is promised of this table, as a text or the name of its ``privacy.json``, and who
        says so.
    """

    file: str
    features: tuple[str, ...]
    error: Literal["exact", "rounded", "variance", "interval"]
    count: str = ""
    across: str = ""
    columns: dict[str, str] = {}
    labels: dict[str, dict[str, str]] = {}
    where: dict[str, str] = {}
    total: str | tuple[str, ...] = ()
    sheet: str = ""
    base: int = 0
    random: bool = False
    below: int = 0
    mark: str | tuple[str, ...] = ()
    zeros_shown: bool = False
    variance: float | None = None
    se: str = ""
    low: str = ""
    high: str = ""
    absent: Literal["error", "zero", "unknown"] = "error"
    guarantee: str = ""
    by: str = ""

    @property
    def totals(self) -> frozenset[str]:
        """The labels of totals, in small letters."""
        return frozenset(each.casefold() for each in _several(self.total) or TOTALS)

    @property
    def marks(self) -> frozenset[str]:
        """The marks of cells that are not shown."""
        return frozenset(_several(self.mark))

    def error_in_words(self) -> str:
        """Say what is known of the error of its cells, for the ledger."""
        ways = {"rounded": f"rounded to base {self.base}{' at random' if self.random else ''}"}
        ways["variance"] = f"estimates with {'standard errors' if self.se else 'one variance'}"
        hidden = f", cells below {self.below} not shown" if self.below else ""
        return ways.get(self.error, self.error) + hidden

    def problem(self) -> str:
        """Say what is missing or too much; nothing where it is whole."""
        spread = (self.variance is not None) + bool(self.se)
        bounds = bool(self.low) + bool(self.high)
        checks = (
            (not self.features, 'features is empty; name them, as features = ["age", "sex"]'),
            (len(set(self.features)) < len(self.features), "features names one twice"),
            (
                self.error == "rounded" and self.base < 2,
                'error = "rounded" needs base, the multiple that counts are rounded to',
            ),
            (self.error != "rounded" and (self.base or self.random), "base requires rounded"),
            (
                self.error == "variance" and spread != 1,
                'error = "variance" needs one of variance and se',
            ),
            (self.error != "variance" and spread, 'variance and se require error = "variance"'),
            (
                self.variance is not None and not 0 < self.variance < 1e12,
                "variance must be above 0",
            ),
            (self.error == "interval" and bounds != 2, 'error = "interval" needs low and high'),
            (self.error != "interval" and bounds, 'low and high require error = "interval"'),
            (bool(self.below) != bool(self.marks), "below and mark belong together; state both"),
            (self.below == 1 or self.below < 0, "below must be at least 2"),
            (
                bool(self.across) and self.across not in self.features,
                "across names a feature that is not among features",
            ),
            (
                bool(self.across) and self.error in ("interval",),
                "intervals need one row for each cell; leave across out",
            ),
            (
                bool(self.across) and bool(self.se),
                "standard errors need one row for each cell; leave across out",
            ),
            (
                bool({*self.columns, *self.labels} - {*self.features}),
                "columns and labels are about features of the table only",
            ),
        )
        return next((text for wrong, text in checks if wrong), "")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    tables: tuple[Described, ...]


def described_tables(path: Path) -> tuple[Described, ...]:
    """Read ``tables.toml``, refusing what is unknown, missing or contradicts itself."""
    try:
        content: Any = tomllib.loads(path.read_text("utf-8-sig"))
        found = msgspec.convert(content, _File).tables
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror}); check the name") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(f"{path}: this is no TOML that can be read: {error}") from None
    except msgspec.ValidationError as error:
        raise ParameterError(
            f"{path}: {escaped(str(error))}; docs/evidence.md lists the keys of [[tables]]"
        ) from None
    if not found:
        raise ParameterError(f"{path}: it lists no table; add one as [[tables]]")
    for number, each in enumerate(found, start=1):
        if problem := each.problem():
            raise ParameterError(f"{path}: table {number} ({escaped(each.file)}): {problem}")
    return found


def _several(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
