"""The confidential table as code batches, with every unit's rows bounded first (R12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pegsynth.arrays import Codes
from pegsynth.errors import ParameterError
from pegsynth.io.reader import Place, Track
from pegsynth.io.unit_names import is_blank, missing_units
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream, Words
from pegsynth.schema.codec import Encoder, encode_table, one_matrix
from pegsynth.schema.dtypes import unit_text
from pegsynth.tables.units import KeptCodes, KeptRows, kept_rows

if TYPE_CHECKING:
    from pegsynth.io.reader import TableReader
    from pegsynth.schema import Schema


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
        check_another_pass(self.reader)
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
        """Return the codes of the rows to count of a table that is read once."""
        reader, schema, unit = self.reader, self._schema, self._schema.unit or ""
        held = KeptCodes(schema.rows_per_unit)
        names = [unit, *(name for name in schema.names if name != unit)]
        blank = 0
        for batch in reader.batches(names):
            units = unit_text(batch.get_column(unit))
            blank += int(is_blank(units).sum())
            held.add(units, words.take(len(units)), self._encoder.encode(batch))
            self._read += len(units)
            progress("units 1/1", self._read, reader.expected_rows)
        if blank:
            raise missing_units(reader.source, unit, blank)
        self._encoder.finish()
        return held.codes()

    def _new_encoder(self) -> Encoder:
        reader = self.reader
        return Encoder(
            self._schema,
            source=reader.source,
            columns=reader.columns,
            need_unit=not reader.folded,
        )


def check_another_pass(reader: TableReader) -> None:
    """Refuse declared analyses of a table that can be read once only."""
    if reader.once:
        raise ParameterError(
            f"{reader.source}: declared analyses take another pass over the table, and this one "
            "can be read once; write it to a file first"
        )


def bounded_codes(
    reader: TableReader, schema: Schema, stream: RandomStream
) -> Callable[[], Iterator[Codes]]:
    """Return a function that streams the codes of the rows to count, as often as called."""
    return CodeTable(reader, schema, stream).batches
