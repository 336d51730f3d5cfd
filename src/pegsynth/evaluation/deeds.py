"""What was done to the original before it was counted: the cap, bounds, unlisted values, recodings.

Goes in: the original, batch by batch, with its codes. Comes out: records of how many rows and
units the cap of rows per unit cuts, what that does to every one-way table, and how many values
were bounded, unlisted or recoded. All of it is exact, and confidential.

Which rows of a unit are kept is drawn at random, so that what the cap does to a table is its
expectation over that draw: of a unit with c rows each counts min(1, k/c).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.arrays import Codes, Float64
from pegsynth.evaluation.distances import shares
from pegsynth.evaluation.records import Record, measured
from pegsynth.evaluation.statistics import Estimate
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dtypes import as_text, unit_text
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.spelling import spelt

CAP_ROWS, CAP_UNITS, CAP_EFFECT = "cap_rows", "cap_units", "cap_effect"
BOUNDED, UNLISTED, RECODED = "values_bounded", "values_unlisted", "values_recoded"
DEEDS = (CAP_ROWS, CAP_UNITS, CAP_EFFECT, BOUNDED, UNLISTED, RECODED)


@dataclass
class DeedCollector:
    """Gathers what was done to a table while it is read."""

    schema: Schema
    capped: bool = False
    _units: list[NDArray[np.uint64]] = field(default_factory=list)
    _bounded: dict[str, int] = field(default_factory=dict)
    _recoded: dict[str, int] = field(default_factory=dict)
    _rows: int = 0

    @classmethod
    def of(cls, schema: Schema, columns: Iterable[str]) -> DeedCollector:
        """Look at a table with these columns; without its unit nothing is known of a cap."""
        return cls(schema, schema.unit is not None and schema.unit in set(columns))

    def __post_init__(self) -> None:
        self._numbers = NumberText(self.schema.dialect)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed beside the features."""
        return (self.schema.unit,) if self.capped and self.schema.unit else ()

    def add(self, frame: pl.DataFrame) -> None:
        """Take in the next rows."""
        self._rows += frame.height
        if self.capped and self.schema.unit:
            names = unit_text(frame.get_column(self.schema.unit))
            self._units.append(names.hash(seed=0).to_numpy())
        for feature in self.schema.features:
            if feature.name not in frame.columns:
                continue
            column = frame.get_column(feature.name)
            if feature.kind == "numeric" and feature.edges:
                self._count(self._bounded, feature, self._beyond(feature, column))
            elif feature.recoding is not None and not feature.binned:
                self._count(self._recoded, feature, _unlike(feature, column))

    def records(self, codes: Codes) -> tuple[Record, ...]:
        """Return what was found; `codes` are those of all rows, in order."""
        return (*self._cap(codes), *self._values(codes))

    def _cap(self, codes: Codes) -> Iterable[Record]:
        if not self.capped or not self._rows:
            return
        most = self.schema.rows_per_unit
        _, place, rows = np.unique(
            np.concatenate(self._units), return_inverse=True, return_counts=True
        )
        cut, units = int(np.maximum(rows - most, 0).sum()), int((rows > most).sum())
        what = f"of one {self.schema.unit} at most {most} rows are counted, drawn at random"
        yield _share(CAP_ROWS, "", cut, self._rows, f"{cut:,} of {self._rows:,} rows; {what}")
        told = f"{units:,} of {len(rows):,} have more than {most} rows"
        yield _share(CAP_UNITS, "", units, len(rows), told)
        if not cut:
            return
        weights = np.minimum(1.0, most / rows)[place]
        for index, feature in enumerate(self.schema.features):
            yield _effect(feature, codes[:, index], weights)

    def _values(self, codes: Codes) -> Iterable[Record]:
        for index, feature in enumerate(self.schema.features):
            if self._bounded.get(feature.name):
                low, high = feature.public_bounds
                note = f"numbers beyond {low:g} and {high:g}, which count as the nearer of these"
                yield _share(BOUNDED, feature.name, self._bounded[feature.name], self._rows, note)
            unknown = feature.unknown_code
            found = 0 if unknown is None else int(np.count_nonzero(codes[:, index] == unknown))
            if found:
                note = "values that the schema does not list, which count as one category"
                yield _share(UNLISTED, feature.name, found, self._rows, note)
            if self._recoded.get(feature.name):
                note = "values that public rules turn into other ones before they are counted"
                yield _share(RECODED, feature.name, self._recoded[feature.name], self._rows, note)

    def _count(self, where: dict[str, int], feature: Feature, found: int) -> None:
        where[feature.name] = where.get(feature.name, 0) + found

    def _beyond(self, feature: Feature, column: pl.Series) -> int:
        if not column.dtype.is_numeric():
            texts = as_text(column)
            column = texts.cast(pl.Float64, strict=False)
            if not self._numbers.usual:
                return 0
        low, high = feature.public_bounds
        special = [
            float(text) for text in (*feature.missing, *feature.not_applicable) if _is_number(text)
        ]
        outside = ((column < low) | (column > high)) & ~column.cast(pl.Float64).is_in(special)
        return int(outside.fill_null(False).sum())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unlike(feature: Feature, column: pl.Series) -> int:
    """Count values that are none of the categories as they are counted."""
    kept = pl.Series([*feature.categories, *feature.missing, *feature.not_applicable, ""])
    texts = as_text(column)
    spellings = (spelt(each, feature, truth=False) for each in (texts, kept))
    alike = texts.is_in(kept.implode()) | next(spellings).is_in(next(spellings).implode())
    return int((~alike).fill_null(False).sum())


def _share(name: str, subject: str, count: int, rows: int, note: str) -> Record:
    return measured(name, subject, Estimate(count / max(rows, 1), n=rows), note=note)


def _effect(feature: Feature, codes: Codes, weights: Float64) -> Record:
    before = shares(np.bincount(codes, minlength=feature.category_count))
    after = shares(np.bincount(codes, weights, minlength=feature.category_count))
    moved = int(np.argmax(np.abs(after - before)))
    note = (
        f"{feature.name} = {feature.labels[moved]} goes from {before[moved]:.2%} to "
        f"{after[moved]:.2%} of the rows, in expectation; total variation distance"
    )
    distance = float(np.abs(after - before).sum() / 2)
    return measured(CAP_EFFECT, feature.name, Estimate(distance, n=len(codes)), note=note)
