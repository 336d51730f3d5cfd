"""The column that names whose a row is."""

from __future__ import annotations

import polars as pl

from pegsynth.errors import DataError


def is_blank(units: pl.Series) -> pl.Series:
    """Say of every unit whether it is missing."""
    return units.is_null() | (units.str.strip_chars() == "")


def missing_units(source: str, unit: str, blank: int) -> DataError:
    """Say that rows do not name their unit."""
    return DataError(
        f"{source}: unit column {unit!r}: {blank} values are missing; every row must name its "
        "unit, so fill them in or drop these rows"
    )
