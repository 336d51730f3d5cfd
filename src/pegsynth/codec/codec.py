"""Tables to codes and back.

`Encoder` turns batches of a table into code matrices, `Decoder` turns code matrices into
frames. Codes come from the schema alone. A value outside the schema is counted per
column over the whole stream and refused at its end, without being shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.clipped_sum import agreeing_shapes, bin_counts
from pegsynth.codec.column_decoding import How, LabelDecoder, column_decoder
from pegsynth.codec.date_decoding import DateDecoder, date_decoder
from pegsynth.codec.encoding import ColumnEncoder, column_encoders
from pegsynth.codec.inside import InsideModel, fit_inside
from pegsynth.errors import DataError, ParameterError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.runtime import spare_processors, usable_processors
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.dtypes import polars_dtype
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.related_columns import described_labels
from pegsynth.schema.temporal import described
from pegsynth.tables.reader import made, run_ahead

if TYPE_CHECKING:
    from pegsynth.codec.bin_shape import Shape
    from pegsynth.random import RandomStream
    from pegsynth.schema.schema import Schema
    from pegsynth.tables.reader import Piece, Place, TableReader, Track

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_CELLS_WORTH_THREADS = 1 << 15
_CELLS_READ = 1 << 22
_CELLS_AHEAD = 1 << 23
_ROWS_TOGETHER = 1 << 16
_UNITS, _SHIFT = 2.0**53, np.uint64(11)

Words = NDArray[np.uint64]


def check_columns(
    schema: Schema, columns: Sequence[str], *, source: str, need_unit: bool = True
) -> None:
    """Refuse a table that lacks a column of the schema, or has one that the schema lacks."""
    needed = [*schema.names, *((schema.unit,) if schema.unit and need_unit else ())]
    known = {column.name for column in schema.columns} | {schema.unit}
    check_both(columns, needed=needed, known=known, source=source)


def check_both(
    columns: Sequence[str], *, needed: Iterable[str], known: Collection[str | None], source: str
) -> None:
    """Refuse a table that lacks a column that is needed, or has one that is not known."""
    for name in needed:
        if name not in columns:
            raise DataError(
                f"{source}: column {name!r} of the schema is not in the table; add it, or take it "
                "out of the schema"
            )
    for name in columns:
        if name not in known:
            raise DataError(
                f"{source}: column {name!r} is not in the schema; describe it there (role = "
                '"identifier" drops it), or take it out of the table'
            )


class Encoder:
    """Turns batches of one table into codes.

    Parameters
    ----------
    schema
        The public codebook.
    source
        What messages call the table.
    columns
        Column names of the table. Identifier columns may be absent.
    need_unit
        Whether the unit column must be there; synthetic tables have none.

    Raises
    ------
    DataError
        A column of the schema is not in the table, or the reverse.
    """

    def __init__(
        self, schema: Schema, *, source: str, columns: Sequence[str], need_unit: bool = True
    ) -> None:
        self.schema = schema
        self._source = source
        check_columns(schema, columns, source=source, need_unit=need_unit)
        self._columns = column_encoders(schema)

    @property
    def columns(self) -> Sequence[ColumnEncoder]:
        """The encoders of the features, in the order of the schema."""
        return self._columns

    def encode(self, batch: pl.DataFrame, *, threads: int | None = None) -> Codes:
        """Return one row of codes per row, in the order of the schema's features.

        In memory a feature's codes lie side by side, which is how they are made and counted.
        Values that have no code get 0 until `finish` refuses the table. Columns are encoded
        on several threads; None stands for as many as there are processors.
        """
        shape = (batch.height, len(self._columns))
        codes = np.empty(shape, dtype=self.schema.code_dtype, order="F")

        def fill(index: int) -> None:
            column = self._columns[index]
            codes[:, index] = column.encode_batch(batch)

        _each(fill, range(len(self._columns)), codes.size, threads or usable_processors())
        return codes

    @property
    def hints(self) -> dict[str, pl.DataType]:
        """Types that a reader of text may try first; what does not fit stays text."""
        hints = {column.feature.name: column.hint for column in self._columns}
        return {name: hint for name, hint in hints.items() if hint is not None}

    @property
    def faulty(self) -> bool:
        """Whether a value was seen that `finish` will refuse."""
        return any(column.unknown or column.absent for column in self._columns)

    @property
    def faults(self) -> NDArray[np.int64]:
        """How many values of every feature the schema does not list, and how many are missing."""
        counts = [[column.unknown, column.absent] for column in self._columns]
        return np.array(counts, dtype=np.int64)

    def add_faults(self, faults: NDArray[np.int64]) -> None:
        """Take over what an encoder of other rows counted."""
        for column, (unknown, absent) in zip(self._columns, faults.tolist(), strict=True):
            column.unknown += unknown
            column.absent += absent

    def finish(self) -> None:
        """Refuse the table if any value seen was outside the schema."""
        faults = [line for column in self._columns for line in _faults(column)]
        if faults:
            raise DataError("\n".join(f"{self._source}: {line}" for line in faults))


class Decoder:
    """Turns codes into frames.

    Parameters
    ----------
    schema
        The public codebook.
    how
        "values" draws numbers inside their bin; "labels" writes the bin's label.
    columns
        Output order; names that are neither features nor descriptions of one are passed over.
        None: schema order.
    dtypes
        Types that the original columns had, Arrow or Polars. The schema's own come first;
        a column whose categories the type cannot hold is written as text.
    listed
        Whether columns of text may come as positions in the list of their categories,
        which is faster to write; the attribute `listed` then names them.
    shapes
        How values lie inside the bins of some numeric features; uniformly otherwise.
    model
        What `fit_inside` made of synthetic codes: ranks inside bins then follow a model of all
        features. Every row has words of its own. Few rows are decoded one by one; as many as were
        fitted are ranked among themselves (`InsideModel.ranks`).
    """

    def __init__(
        self,
        schema: Schema,
        *,
        how: How = "values",
        columns: Sequence[str] | None = None,
        dtypes: Mapping[str, Any] | None = None,
        listed: bool = False,
        shapes: Mapping[str, Shape] | None = None,
        model: InsideModel | None = None,
    ) -> None:
        if how not in {"values", "labels"}:
            raise ParameterError(f'decode is "values" or "labels", not {how!r}')
        seen = dtypes or {}
        known = {c.name: c.label_of or c.name for c in schema.columns if not c.dropped}
        order = [name for name in columns or known if name in known]
        self.columns: tuple[str, ...] = tuple(order)
        self._positions = [schema.index(known[name]) for name in order]
        # Words belong to features, so that the order of the output changes no value.
        numeric = [f.name for f in schema.features if f.binned and how == "values"]
        self._word_of = {name: index for index, name in enumerate(numeric)}
        self._model = model
        self._decoders = [
            LabelDecoder(name, described_labels(schema[name], schema.features[index]))
            if known[name] != name
            else date_decoder(
                schema, name, seen.get(name, ""), words_of=self._word_of, shapes=shapes or {}
            )
            if how == "values" and schema.features[index].kind in TEMPORAL
            else column_decoder(
                schema.features[index],
                how,
                polars_dtype(seen.get(name, "")),
                listed=listed,
                shape=(shapes or {}).get(name),
                written=NumberText(schema.dialect),
            )
            for name, index in zip(order, self._positions, strict=True)
        ]
        self.listed: frozenset[str] = frozenset(
            name for name, each in zip(order, self._decoders, strict=True) if each.listed
        )

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of the frames to come."""
        types = (decoder.dtype for decoder in self._decoders)
        return dict(zip(self.columns, types, strict=True))

    def words_needed(self, rows: int) -> int:
        """Random words that `decode` takes: one per number, and those of a model's scores."""
        scores = 0 if self._model is None else self._model.words_per_row
        return rows * (len(self._word_of) + scores)

    def decode(self, codes: Codes, words: NDArray[np.uint64] | None = None) -> pl.DataFrame:
        """Return the table that a code matrix stands for.

        Parameters
        ----------
        codes
            One row per row, columns in the order of the schema's features.
        words
            `words_needed` words, row by row: a table decoded in parts, with the words
            of one stream, equals the table decoded at once.
        """
        needed = self.words_needed(len(codes))
        if needed and (words is None or len(words) < needed):
            raise ParameterError(f"decoding {len(codes)} rows takes {needed} random words")
        grid = None if words is None or not needed else words[:needed].reshape(len(codes), -1)
        if grid is not None and self._model is not None:
            grid = self._ranked(self._model, codes, grid)

        def column(index: int) -> pl.Series:
            decoder = self._decoders[index]
            if isinstance(decoder, DateDecoder):
                lines = np.zeros((len(codes), len(self._word_of)), np.uint64)
                return decoder.decode_rows(codes, lines if grid is None else grid)
            word = self._word_of.get(self.columns[index])
            draws = None if grid is None or word is None else grid[:, word]
            return decoder.decode(codes[:, self._positions[index]], draws)

        cells = len(codes) * len(self.columns)
        return pl.DataFrame(_each(column, range(len(self.columns)), cells, spare_processors()))

    def _ranked(self, model: InsideModel, codes: Codes, words: Words) -> Words:
        """Return words that give numbers their ranks by a model."""
        draws = words[:, : len(self._word_of)].copy()
        sweeps = np.ascontiguousarray(words[:, len(self._word_of) :])
        places = [self._word_of[name] for name in model.names]
        ranks = model.ranks(codes, sweeps, draws[:, places])
        draws[:, places] = (ranks * _UNITS).astype(np.uint64) << _SHIFT
        return draws


class AgreeingDecoder(Decoder):
    """A decoder whose means agree with clipped sums, for the rows that it decodes at once (R21).

    It serves where nobody sees the first rows of a table before the others are decoded.

    Parameters
    ----------
    schema
        The settled schema.
    shapes
        Shapes inside bins, by name.
    options
        As for `Decoder`.
    """

    def __init__(self, schema: Schema, shapes: Mapping[str, Shape], **options: Any) -> None:
        super().__init__(schema, shapes=shapes, **options)
        self._book, self._shapes, self._options = schema, shapes, options

    def counted(self, codes: Codes) -> Int64:
        """Count rows by their bins; counts of parts of a table add up."""
        return bin_counts(self._shapes, self._book, codes)

    def agreeing(self, counts: Int64) -> Decoder:
        """Return a decoder for a table with these counts, whatever parts it is decoded in."""
        shapes = agreeing_shapes(self._shapes, self._book, counts)
        return Decoder(self._book, shapes=shapes, **self._options)

    def decode(self, codes: Codes, words: Words | None = None) -> pl.DataFrame:
        """Return the table that a code matrix stands for; see `Decoder.decode`."""
        return self.agreeing(self.counted(codes)).decode(codes, words)


def value_decoder(
    schema: Schema,
    shapes: Mapping[str, Shape],
    sample: Codes,
    stream: RandomStream,
    *,
    model: bool = True,
    **options: Any,
) -> Decoder:
    """Return the decoder of a settled schema: measured shapes, and ranks by a model (R21).

    Parameters
    ----------
    sample
        Synthetic codes that a model is fitted to; means agree with clipped sums for them.
    model
        Whether ranks inside bins follow a model of all features; else values are drawn one by one.
    """
    shapes = agreeing_shapes(shapes, schema, bin_counts(shapes, schema, sample))
    inside = fit_inside(sample, schema, shapes, stream) if model else None
    return Decoder(schema, shapes=shapes, model=inside, **options)


def decode_values(
    codes: Codes,
    schema: Schema,
    shapes: Mapping[str, Shape],
    stream: RandomStream,
    *,
    model: bool = True,
    **options: Any,
) -> pl.DataFrame:
    """Return the table of a whole code matrix, decoded chunk by chunk."""
    decoder = value_decoder(schema, shapes, codes, stream, model=model, **options)
    words = stream.substream()
    frames = []
    for start in range(0, max(len(codes), 1), _ROWS_TOGETHER):
        chunk = codes[start : start + _ROWS_TOGETHER]
        frames.append(decoder.decode(chunk, words.take(decoder.words_needed(len(chunk)))))
    return pl.concat(frames)


def encode_table(
    reader: TableReader,
    schema: Schema,
    *,
    need_unit: bool = True,
    encoder: Encoder | None = None,
    start: Place | None = None,
    track: Track | None = None,
) -> Iterator[Codes]:
    """Yield the codes of a table batch by batch; raise at the end if a value had none.

    One thread reads files ahead and another one encodes, while the caller is busy with
    earlier batches.

    Parameters
    ----------
    encoder
        An encoder of the caller's own, who wants to look at it on the way.
    start, track
        Where to start, and who is told where every part of the table begins.
    """
    if encoder is None:
        columns = reader.columns
        encoder = Encoder(schema, source=reader.source, columns=columns, need_unit=need_unit)
    pieces = reader.pieces(schema.names, hints=encoder.hints, start=start, track=track)
    if reader.frame_kind is None:
        stop, threads = reader.interrupt, spare_processors()
        read = run_ahead(
            pieces, size=lambda p: p.height * p.width, most=_CELLS_READ, interrupt=stop
        )
        batches = _encoded(read, encoder, threads)
        yield from run_ahead(batches, size=np.size, most=_CELLS_AHEAD, interrupt=stop)
    else:
        yield from _encoded(pieces, encoder, None)
    encoder.finish()


def _encoded(pieces: Generator[Piece], encoder: Encoder, threads: int | None) -> Iterator[Codes]:
    """Yield the codes of pieces; whatever happens, their stream ends here and now."""
    with closing(pieces):
        yield from _joined(encoder.encode(made(piece), threads=threads) for piece in pieces)


def _joined(batches: Iterable[Codes]) -> Iterator[Codes]:
    """Put short batches together: codes are small, and every batch costs work per feature."""
    pending: list[Codes] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += len(batch)
        if rows >= _ROWS_TOGETHER:
            yield pending[0] if len(pending) == 1 else np.concatenate(pending)
            pending, rows = [], 0
    if pending:
        yield np.concatenate(pending)


def encode(data: Any, schema: Schema, *, need_unit: bool = True) -> Codes:
    """Return the codes of a file or dataframe as one matrix."""
    from pegsynth.tables.table_input import opened

    with opened(data, dialect=schema.dialect) as reader:
        return one_matrix(encode_table(reader, schema, need_unit=need_unit))


def one_matrix(batches: Iterable[Codes]) -> Codes:
    """Put the batches of a table together, row after row in memory."""
    parts = list(batches)
    rows = np.empty((sum(map(len, parts)), parts[0].shape[1]), dtype=parts[0].dtype)
    return np.concatenate(parts, out=rows)


def decode(
    codes: Codes,
    schema: Schema,
    words: NDArray[np.uint64] | None = None,
    *,
    how: How = "values",
    columns: Sequence[str] | None = None,
    dtypes: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Return the frame that a code matrix stands for; see `Decoder`."""
    return Decoder(schema, how=how, columns=columns, dtypes=dtypes).decode(codes, words)


def _faults(column: ColumnEncoder) -> list[str]:
    name = repr(column.feature.name)
    lines = []
    if column.unknown:
        count = _values(column.unknown)
        if column.feature.kind in TEMPORAL:
            noun = described(column.feature, several=column.unknown > 1)
            what = f"not {noun}; mend them, state their format, list them under missing,"
        elif column.feature.binned:
            noun = "a number" if column.unknown == 1 else "numbers"
            what = f"not {noun}; mend them, list them under missing or not_applicable,"
        else:
            what = "not in the schema; list them under categories,"
        lines.append(f'column {name}: {count} {what} or set unknown = "category"')
    if column.absent:
        lines.append(
            f"column {name}: {_values(column.absent)} missing, and the schema has no missing "
            'category for it; add missing = [""]'
        )
    return lines


def _values(count: int) -> str:
    return "1 value is" if count == 1 else f"{count} values are"


def _each(
    work: Callable[[_Item], _Result], items: Iterable[_Item], cells: int, threads: int
) -> list[_Result]:
    """Do `work` for every item, on several threads when there is enough of it."""
    if threads == 1 or cells < _CELLS_WORTH_THREADS:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))
