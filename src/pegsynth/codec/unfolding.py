"""Wide rows of a panel back to long ones, with new unit numbers: post-processing (R24)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from pegsynth.codec.encoding import special_number
from pegsynth.codec.folding import text_of
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Int64
from pegsynth.schema.binning import within_type
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText, is_temporal
from pegsynth.schema.dtypes import dtype_name, typed_labels
from pegsynth.schema.feature import Feature, kept_codes
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.panel import Panel
from pegsynth.schema.schema import Schema
from pegsynth.schema.wide_schema import long_schema

Unfolded = TypeVar("Unfolded")


@dataclass(frozen=True)
class Unfolding:
    """How wide rows become long ones.

    Parameters
    ----------
    schema
        The codebook of the wide table.
    columns
        The order of the long table's columns; empty: that of its codebook.
    """

    schema: Schema
    columns: tuple[str, ...] = ()

    @property
    def panel(self) -> Panel:
        """How rows belong together."""
        if self.schema.panel is None or not self.schema.panel.wide:
            raise ValueError("the schema is not that of a folded panel")
        return self.schema.panel

    def pair(self, wide: pl.DataFrame, first: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return units and their rows as two tables, whose keys agree."""
        return self.units(wide, first), self.rows(wide, first)

    def units(self, wide: pl.DataFrame, first: int = 1) -> pl.DataFrame:
        """Return the first of two tables, units numbered from `first` on."""
        panel, book = self.panel, long_schema(self.schema)
        numbers = pl.Series(panel.unit, np.arange(first, first + wide.height))
        names = [column.name for column in book.columns if not column.dropped]
        once = [name for name in names if name in panel.fixed or book[name].label_of in panel.fixed]
        return pl.DataFrame([numbers, *(wide.get_column(name) for name in once)])

    def rows(self, wide: pl.DataFrame, first: int = 1) -> pl.DataFrame:
        """Return the long rows of wide ones, units numbered from `first` on."""
        panel, book = self.panel, long_schema(self.schema)
        counts = wide.get_column(panel.count).cast(pl.String).cast(pl.Int64).to_numpy()
        places = _Places(counts)
        once = set(panel.fixed) | {
            column.name for column in book.columns if column.label_of in panel.fixed
        }
        made: dict[str, pl.Series] = {panel.unit: pl.Series(first + places.units)}
        for column in book.columns:
            name = column.name
            if column.dropped or (panel.at(name, 1) not in wide.columns and name not in once):
                continue
            if name in once:
                # Two tables have the features of units in the first alone.
                if panel.tables is None:
                    made[name] = wide.get_column(name).gather(places.units)
                continue
            lines = [wide.get_column(panel.at(name, p)) for p in panel.positions]
            if name == panel.time and column.kind == "numeric":
                lines = _summed(column, lines, book)
            # A column has the type that it has where no row is absent.
            wanted = lines[0].dtype
            if all(line.dtype == wanted for line in lines):
                made[name] = places.joined([line.alias(name) for line in lines])
                continue
            texts = [text_of(column, line, book).alias(name) for line in lines]
            made[name] = _as_type(column, places.joined(texts), wanted, book)
        known = {column.name for column in self.schema.columns}
        extra = [name for name in wide.columns if name not in known]
        made |= {name: wide.get_column(name).gather(places.units) for name in extra}
        order = [name for name in self.columns if name in made] or [
            column.name for column in book.columns if column.name in made
        ]
        order = [panel.unit] * (panel.unit not in order) + order
        order += [name for name in made if name not in order]
        return pl.DataFrame([made[name].alias(name) for name in order])


def unfolded(
    unfold: Callable[[pl.DataFrame, int], Unfolded], frames: Iterable[pl.DataFrame]
) -> Iterator[Unfolded]:
    """Yield what wide frames unfold to, with the number of their first unit: they count through."""
    first = 1
    for wide in frames:
        yield unfold(wide, first)
        first += wide.height


class _Places:
    """Where the rows of every unit go, one position after the other."""

    def __init__(self, counts: Int64) -> None:
        self.counts = counts
        self.units: Int64 = np.repeat(np.arange(len(counts)), counts)
        starts = np.cumsum(counts) - counts
        position = np.arange(len(self.units)) - starts[self.units]
        # Rows of the first position of all units, then those of the second, and so on.
        self._order = np.empty(len(self.units), dtype=np.int64)
        self._order[np.lexsort((self.units, position))] = np.arange(len(self.units))

    def joined(self, lines: Sequence[pl.Series]) -> pl.Series:
        """Return the values at all positions, those of a unit one after the other."""
        there = [
            line.filter(pl.Series(self.counts >= position))
            for position, line in enumerate(lines, start=1)
        ]
        return pl.concat(there).gather(self._order)


def _as_type(column: Feature, texts: pl.Series, wanted: pl.DataType, book: Schema) -> pl.Series:
    """Return texts of a column as its type."""
    if column.kind in TEMPORAL and is_temporal(wanted, column.kind):
        written = DateText(column)
        return written.as_type(written.numbers(texts).cast(pl.Int64), wanted).alias(column.name)
    if isinstance(wanted, pl.Enum | pl.Categorical):
        return texts.cast(pl.Enum(texts.drop_nulls().unique().sort()))
    if wanted == pl.Boolean or wanted.is_temporal():
        known = texts.drop_nulls().unique()
        typed = typed_labels(known.to_list(), wanted)
        return texts.replace_strict(known, typed, default=None, return_dtype=wanted)
    if column.kind == "numeric" and wanted.is_numeric():
        texts = NumberText(book.dialect).plain(texts)
    return texts.cast(wanted, strict=False)


def _summed(time: Feature, lines: Sequence[pl.Series], book: Schema) -> list[pl.Series]:
    """Return times from the first one and the times between rows, held at their public bound.

    A time after one that is not known is missing. A sum that would mean so is a step later, or the
    time before where that is beyond the bound.
    """
    wanted = lines[0].dtype
    _, most = within_type(time.public_bounds, dtype_name(wanted))
    if wanted == pl.Float32 and float(np.float32(most)) > most:
        most = float(np.nextafter(np.float32(most), np.float32(-np.inf)))
    written = NumberText(book.dialect)
    taken = sorted(n for text in time.missing if (n := special_number(text, written)) is not None)
    total, *between = (written.numbers(text_of(time, line, book)) for line in lines)
    total = total.set(total.is_in(pl.Series(taken, dtype=pl.Float64).implode()), None)
    texts = [] if "" in time.missing else [*kept_codes(time).values()]
    gap = _as_type(time, pl.Series([*texts, None][:1], dtype=pl.String), wanted, book)
    summed = [lines[0]]
    for line in between:
        before, total = total, total + line
        total = total if time.decimals is None else total.round(time.decimals)
        total = total.clip(upper_bound=most)
        for number in taken:
            later = round(number + 10.0 ** -(time.decimals or 0), 9)
            free = before if later > most else pl.repeat(later, len(total), eager=True)
            total = free.zip_with((total == number).fill_null(value=False), total)
        values = written.texts(total) if wanted == pl.String else total.cast(wanted, strict=False)
        filling = gap.new_from_index(0, len(values))
        summed.append(values.zip_with(values.is_not_null(), filling))
    return summed


def with_types(
    frame: pl.DataFrame, schema: Schema, types: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Return long rows whose columns are text in the types that they are to have."""
    book = long_schema(schema)
    columns = []
    for values in frame:
        wanted = types.get(values.name, values.dtype)
        known = {column.name: column for column in book.columns if not column.dropped}
        same = values.dtype == wanted or values.name not in known
        columns.append(values if same else _as_type(known[values.name], values, wanted, book))
    return pl.DataFrame(columns)


def check_unfolds(how: str | None) -> None:
    """Refuse labels of bins where times are added up."""
    if how == "labels":
        raise ParameterError(
            "--decode labels requires --wide in a panel: the times between rows have to be "
            "numbers to be added up"
        )
