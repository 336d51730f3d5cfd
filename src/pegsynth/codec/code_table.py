"""The confidential table as code batches, with every unit's rows bounded first (R12).

At most k rows of every unit are kept, chosen at random by the secure stream; k is public. A row's
fate depends on the rows of its own unit alone, so adding or removing a unit changes the rows of no
other. Every row has a random word, and the k rows of a unit with the smallest words are kept.
Memory is bounded (`HeldRows`): when there are too many units to hold at once, the unit column is
read again for every share of them. `putting_back` returns the columns of the original table that a
partially synthetic one keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.codec import Encoder, encode_table, one_matrix
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream, Words
from pegsynth.schema.dtypes import as_text, polars_dtype, unit_text
from pegsynth.tables.reader import Place, Track, is_blank, missing_units

if TYPE_CHECKING:
    from pegsynth.schema import Schema
    from pegsynth.tables.reader import TableReader


MOST_HELD = 1 << 21


@dataclass(frozen=True)
class KeptRows:
    """For every row whether it is kept, one bit each."""

    bits: NDArray[np.uint8]
    rows: int

    def mask(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return for `count` rows from row `first` on whether each is kept."""
        start = first // 8
        bits = np.unpackbits(self.bits[start : (first + count + 7) // 8], bitorder="little")
        return bits[first - 8 * start :][:count].astype(bool)


def kept_rows(
    reader: TableReader,
    unit: str,
    rows_per_unit: int,
    stream: RandomStream,
    *,
    most_held: int = MOST_HELD,
    progress: Progress = quiet,
) -> KeptRows:
    """Say for every row whether it is among the at most k kept of its unit.

    Parameters
    ----------
    most_held
        About how many rows to hold in memory at once.
    """
    number = stream.substreams(1)
    least = partial(least_words, rows_per_unit=rows_per_unit)
    share, shares = 0, 1
    kept: list[NDArray[np.int64]] = []
    rows = 0
    while share < shares:
        held = HeldRows(least, most_held, key="unit", share=share, shares=shares)
        words = stream.substream(number)
        rows = blank = 0
        for batch in reader.batches([unit]):
            units = unit_text(batch.to_series())
            blank += int(is_blank(units).sum())
            held.add(_drawn(units, words.take(len(units)), rows))
            rows += len(units)
            progress(f"units {share + 1}/{held.shares}", rows, reader.expected_rows)
        if blank:
            raise missing_units(reader.source, unit, blank)
        kept.append(held.frame().get_column("row").to_numpy())
        share, shares = share + 1, held.shares
    bits = np.zeros(-(-rows // 8), dtype=np.uint8)
    for numbers in kept:
        np.bitwise_or.at(bits, numbers // 8, (1 << (numbers % 8)).astype(np.uint8))
    return KeptRows(bits, rows)


def least_words(
    rows: pl.DataFrame, rows_per_unit: int, *, then: Sequence[str] = ()
) -> pl.DataFrame:
    """Return of every `unit` the at most k rows with the smallest `word`.

    Parameters
    ----------
    then
        Columns that decide between rows with the same word.
    """
    return rows.sort("word", *then).group_by("unit", maintain_order=True).head(rows_per_unit)


def _drawn(units: pl.Series, words: NDArray[np.uint64], first: int) -> pl.DataFrame:
    """Return units with their words and the numbers of their rows, from row `first` on."""
    rows = np.arange(first, first + len(units))
    return pl.DataFrame({"unit": units, "word": words, "row": rows})


_ROWS = 1 << 16


class CodeTable:
    """Streams the codes of the rows to count, as often as asked.

    Parameters
    ----------
    kept
        Rows kept of every unit, if they were chosen before; None chooses them now.
    """

    def __init__(
        self,
        reader: TableReader,
        schema: Schema,
        stream: RandomStream,
        *,
        kept: KeptRows | None = None,
        progress: Progress = quiet,
    ) -> None:
        self.reader = reader
        self._schema, self._stream = schema, stream
        # Columns are checked before the unit column is read.
        self._encoder = self._new_encoder()
        self.kept = kept
        self._held: Codes | None = None
        self._track = Track()
        self._read = 0
        # The rows of a folded panel are units (R24).
        unit = None if reader.folded else schema.unit
        if unit is not None and not reader.steady:
            self._track.begin(0, 0)
            self._held = self._codes_of_units(stream.substream(stream.substreams(1)), progress)
        elif reader.once:
            # There is no second pass: the codes, which take less room than values, are kept.
            self._held = one_matrix(self._streamed(progress))
        elif unit is not None and kept is None:
            k = schema.rows_per_unit
            self.kept = kept_rows(reader, unit, k, stream, progress=progress)
        elif unit is not None:
            # The choice took one keystream; what follows must not take the same.
            stream.substreams(1)

    def batches(self, start: Place | None = None) -> Iterator[Codes]:
        """Yield the codes of the rows from `start` on; of no rows a batch without any."""
        if self._held is not None:
            places = range(0, max(len(self._held), 1), _ROWS)
            yield from (self._held[at : at + _ROWS] for at in places)
            return
        some = False
        self._encoder, self._track = self._new_encoder(), Track()
        self._read = start.rows if start else 0
        for codes in encode_table(
            self.reader, self._schema, encoder=self._encoder, start=start, track=self._track
        ):
            first = self._read
            self._read += len(codes)
            chosen = codes if self.kept is None else codes[self.kept.mask(first, len(codes))]
            if len(chosen) or not some:
                some = True
                yield chosen

    def under(self, schema: Schema) -> CodeTable:
        """Return the same rows as codes of another schema, to be read once more.

        Raises
        ------
        ParameterError
            If the table can be read once only.
        """
        if self.reader.once:
            raise ParameterError(
                f"{self.reader.source}: declared analyses take another pass over the table, and "
                "this one can be read once; write it to a file first"
            )
        # Aside, so that what is drawn otherwise stays the same as on a cluster.
        return CodeTable(self.reader, schema, self._stream.aside("sums"), kept=self.kept)

    def _streamed(self, progress: Progress) -> Iterator[Codes]:
        """Yield the codes of a table that is read once, as they are read."""
        for codes in encode_table(
            self.reader, self._schema, encoder=self._encoder, track=self._track
        ):
            self._read += len(codes)
            yield codes
            progress("rows read", self._read, self.reader.expected_rows)

    @property
    def place(self) -> Place:
        """Where the stream stands: after all rows that it has handed out."""
        return self._track.place(self._read)

    @property
    def sound(self) -> bool:
        """Whether all values that were read so far have a code."""
        return not self._encoder.faulty

    def _codes_of_units(self, words: Words, progress: Progress) -> Codes:
        """Return the codes of the rows to count of a table that may come in another order again.

        A row's unit and its codes are read together. What is held grows with the units, not with
        the rows.
        """
        reader, schema, unit = self.reader, self._schema, self._schema.unit or ""
        held = HeldRows(partial(least_words, rows_per_unit=schema.rows_per_unit), MOST_HELD)
        names = [unit, *(name for name in schema.names if name != unit)]
        blank = 0
        for batch in reader.batches(names):
            units = unit_text(batch.get_column(unit))
            blank += int(is_blank(units).sum())
            codes = np.ascontiguousarray(self._encoder.encode(batch))
            drawn = _drawn(units, words.take(len(units)), self._read)
            held.add(drawn.with_columns(pl.Series("codes", codes)))
            self._read += len(units)
            progress("units 1/1", self._read, reader.expected_rows)
        if blank:
            raise missing_units(reader.source, unit, blank)
        self._encoder.finish()
        codes = held.frame().sort("row").get_column("codes").to_numpy()
        return codes.astype(schema.code_dtype, copy=False)

    def _new_encoder(self) -> Encoder:
        reader = self.reader
        return Encoder(
            self._schema,
            source=reader.source,
            columns=reader.columns,
            need_unit=not reader.folded,
        )


def putting_back(
    reader: TableReader, schema: Schema, replaced: Sequence[str]
) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return what puts drawn columns beside those that are kept; nothing to do if none are.

    Columns that were read as text get their type back where all of their values have it. That
    looks at the data, as keeping them does: such a table has no guarantee.
    """
    if not replaced:
        return lambda frame: frame
    names = [name for name in reader.columns if name in schema.names]
    original = pl.concat(list(reader.batches(names)))
    for name in reader.untyped.intersection(names):
        stated = schema.features[schema.index(name)].dtype
        dtype = polars_dtype(stated) or reader.dtypes.get(name)
        typed = original[name].cast(dtype, strict=False) if dtype and dtype.is_numeric() else None
        if typed is not None and as_text(typed).equals(original[name]):
            original = original.with_columns(typed)
    return lambda frame: original.with_columns(frame.get_column(name) for name in replaced)


_MOST_SHARES = 1 << 12


class HeldRows:
    """Rows of one share of the keys.

    During the first share, when nothing is final yet, their number doubles until what is held is
    small enough.

    Parameters
    ----------
    reduced
        Puts rows together, and drops those that are not wanted any more.
    most
        About how much to hold, as `size` tells it.
    key
        The column whose hash deals rows into shares; None: they are not dealt.
    share, shares
        Which share this is, of how many.
    """

    def __init__(
        self,
        reduced: Callable[[pl.DataFrame], pl.DataFrame],
        most: int,
        *,
        key: str | None = None,
        share: int = 0,
        shares: int = 1,
        size: Callable[[pl.DataFrame], float] = len,
    ) -> None:
        self._reduced, self._size = reduced, size
        self._key, self._share, self.shares = key, share, shares
        self._most = self._limit = float(most)
        self._parts: list[pl.DataFrame] = []
        self._held = 0.0

    def add(self, rows: pl.DataFrame) -> None:
        """Take in the next rows."""
        part = self.of_share(rows)
        self._parts.append(part)
        self._held += self._size(part)
        if self._held > self._limit:
            self.frame()

    def frame(self) -> pl.DataFrame:
        """Return all rows of the share, put together; there was one."""
        rows = self._reduced(pl.concat(self._parts))
        deals = self._key is not None and self._share == 0
        while deals and self.shares < _MOST_SHARES and 2 * self._size(rows) > self._most:
            self.shares *= 2
            rows = self.of_share(rows)
        self._parts, self._held = [rows], self._size(rows)
        # What is left may not get fewer, so look again only when there is much more.
        self._limit = max(self._most, 2 * self._held)
        return rows

    def of_share(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that belong to the share."""
        if self.shares == 1 or self._key is None:
            return rows
        return rows.filter(pl.col(self._key).hash(seed=0) % self.shares == self._share)
