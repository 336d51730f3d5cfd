"""What was done to the original before it was counted: the cap, bounds, unlisted values, recodings.

Goes in: the original, batch by batch, and which of its rows count where that is known. Comes out:
the rows to compare, and records of how many rows and units the cap of rows per unit cuts, what that
does to every one-way table, and how many values were bounded, unlisted or recoded. All of it is
exact, and confidential.

Of a panel the first rows of a unit count, in their order (R24). Otherwise they are drawn at random.
Whoever does not know which were drawn compares all rows, and what the cap does to a table is its
expectation over that draw: of a unit with c rows each counts min(1, k/c).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.encoding import column_encoders
from pegsynth.evaluation.records import Record, measured
from pegsynth.evaluation.utility.distances import shares
from pegsynth.inference.statistics import Estimate
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dtypes import as_text, unit_text
from pegsynth.schema.number_text import NumberText, spelt

ROWS_COMPARED = "rows_compared"
CAP_ROWS, CAP_UNITS, CAP_EFFECT = "cap_rows", "cap_units", "cap_effect"
BOUNDED, UNLISTED, RECODED = "values_bounded", "values_unlisted", "values_recoded"

Truth = NDArray[np.bool_]


@dataclass
class Preprocessing:
    """What was done to a table, gathered while it is read.

    Parameters
    ----------
    capped
        Whether units may have more rows than count, and the table tells them apart.
    counted
        For every row whether it counts; None: not known, and all rows are compared.
    """

    schema: Schema
    capped: bool = False
    counted: Truth | None = None
    _units: list[NDArray[np.uint64]] = field(default_factory=list)
    _bounded: Counter[str] = field(default_factory=Counter)
    _recoded: Counter[str] = field(default_factory=Counter)
    _rows: int = 0
    _compared: int = 0

    @classmethod
    def of(
        cls, schema: Schema, columns: Iterable[str], counted: Truth | None = None
    ) -> Preprocessing:
        """Look at a table with these columns; without its unit nothing is known of a cap."""
        capped = schema.unit is not None and schema.unit in set(columns)
        return cls(schema, capped, counted if capped else None)

    def __post_init__(self) -> None:
        self._numbers = NumberText(self.schema.dialect)
        # Rows that do not count need not fit the schema: no release has looked at their values.
        self._encoders = column_encoders(self.schema, spare=True)
        self._left = [np.zeros(each.category_count + 1, np.int64) for each in self.schema.features]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed beside the features."""
        return (self.schema.unit,) if self.capped and self.schema.unit else ()

    def add(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Take in the next rows, and return those that are compared."""
        if self.capped and self.schema.unit:
            names = unit_text(frame.get_column(self.schema.unit))
            self._units.append(names.hash(seed=0).to_numpy())
        first, self._rows = self._rows, self._rows + frame.height
        if self.counted is not None:
            here = pl.Series(self.counted[first : self._rows])
            left = frame.filter(~here)
            for index, encoder in enumerate(self._encoders):
                codes = encoder.encode_batch(left)
                self._left[index] += np.bincount(codes, minlength=len(self._left[index]))
            frame = frame.filter(here)
        self._compared += frame.height
        for feature in self.schema.features:
            if feature.name not in frame.columns:
                continue
            column = frame.get_column(feature.name)
            if feature.kind == "numeric" and feature.edges:
                self._bounded[feature.name] += self._beyond(feature, column)
            elif feature.recoding is not None and not feature.binned:
                self._recoded[feature.name] += _unlike(feature, column)
        return frame

    def records(self, codes: Codes) -> tuple[Record, ...]:
        """Return what was found; `codes` are those of the rows that are compared, in order."""
        return (*self._cap(codes), *self._values(codes))

    def _cap(self, codes: Codes) -> Iterable[Record]:
        if not self.capped or not self._rows:
            return
        panel, unit = self.schema.panel, self.schema.unit
        most = self.schema.rows_per_unit if panel is None else panel.most
        what = f"of one {unit} at most {most} rows are counted, drawn at random"
        if panel is not None:
            what = f"of one {unit} the first {most} rows are counted, in the order of {panel.time}"
        _, place, rows = np.unique(
            np.concatenate(self._units), return_inverse=True, return_counts=True
        )
        cut, units = int(np.maximum(rows - most, 0).sum()), int((rows > most).sum())
        yield _share(CAP_ROWS, "", cut, self._rows, f"{cut:,} of {self._rows:,} rows; {what}")
        told = f"{units:,} of {len(rows):,} have more than {most} rows"
        yield _share(CAP_UNITS, "", units, len(rows), told)
        if not cut:
            return
        yield _share(ROWS_COMPARED, "", self._compared, self._rows, self._compared_said())
        weights = np.minimum(1.0, most / rows)[place]
        for index, feature in enumerate(self.schema.features):
            own = np.bincount(codes[:, index], minlength=len(self._left[index]))
            if self.counted is None:
                expected = np.bincount(codes[:, index], weights, minlength=len(own))
                yield _effect(feature, own, expected, ", in expectation", len(codes))
            else:
                yield _effect(feature, own + self._left[index], own, "", self._rows)

    def _compared_said(self) -> str:
        if self.counted is None:
            return (
                f"all {self._rows:,} rows are compared with the release: which of them were "
                "counted is not known here"
            )
        return f"{self._compared:,} rows are compared with the release: those that were counted"

    def _values(self, codes: Codes) -> Iterable[Record]:
        for index, feature in enumerate(self.schema.features):
            if self._bounded.get(feature.name):
                low, high = feature.public_bounds
                note = f"numbers beyond {low:g} and {high:g}, which count as the nearer of these"
                found = self._bounded[feature.name]
                yield _share(BOUNDED, feature.name, found, self._compared, note)
            unknown = feature.unknown_code
            found = 0 if unknown is None else int(np.count_nonzero(codes[:, index] == unknown))
            if found:
                note = "values that the schema does not list, which count as one category"
                yield _share(UNLISTED, feature.name, found, self._compared, note)
            if self._recoded.get(feature.name):
                note = "values that public rules turn into other ones before they are counted"
                found = self._recoded[feature.name]
                yield _share(RECODED, feature.name, found, self._compared, note)

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


def _effect(feature: Feature, before: Int64, after: Int64 | Float64, how: str, rows: int) -> Record:
    old, new = shares(before), shares(after)
    moved = int(np.argmax(np.abs(new - old)))
    label = (*feature.labels, "a value that the schema does not list")[moved]
    note = (
        f"{feature.name} = {label} goes from {old[moved]:.2%} to {new[moved]:.2%} of the "
        f"rows{how}; total variation distance"
    )
    distance = float(np.abs(new - old).sum() / 2)
    return measured(CAP_EFFECT, feature.name, Estimate(distance, n=rows), note=note)
