"""A table as its rows are counted: codes, units, kept rows, types and refusals (R30).

Every row has a number, which is a feature, so that rows can be told whatever their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from checks.doors.foreign_here import foreign_here
from checks.doors.tables import ROW, UNIT
from pegsynth.codec.code_table import CodeTable
from pegsynth.codec.codec import Decoder
from pegsynth.errors import PegsynthError
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import unit_text
from pegsynth.tables import arrow_read, csv_read, streams, table_input
from pegsynth.tables.caller_frames import to_kind
from pegsynth.tables.foreign import excel, statistics_files
from pegsynth.tables.reader import TableReader

_ROWWISE = ("whole", "rowwise")


@dataclass(frozen=True)
class Reading:
    """What a table looked like through a door.

    Parameters
    ----------
    refused
        The message of the refusal; empty when the table was read.
    claimed
        Whether rows were selected in a way that a guarantee covers.
    types
        Every name and type that can reach an output.
    codes, unit
        The codes and the text of the unit of every row, by its number.
    kept
        The numbers of the rows that count.
    faults
        What was wrong within the table itself.
    """

    refused: str
    claimed: bool = True
    types: tuple[str, ...] = ()
    codes: Mapping[int, tuple[int, ...]] | None = None
    unit: Mapping[int, str | None] | None = None
    kept: frozenset[int] = frozenset()
    faults: tuple[str, ...] = ()


class ByNumber(RandomStream):
    """A stream whose words belong to rows, so that a row keeps its word among others."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(0)
        self._numbers = numbers

    def substream(self, number: int | None = None, *, skip: int = 0) -> Any:
        """Return the words of the rows in their order."""
        words = np.array([_word(each) for each in self._numbers[skip:]], dtype=np.uint64)
        return _Given(words)


class _Given:
    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def take(self, count: int) -> NDArray[np.uint64]:
        taken, self._words = self._words[:count], self._words[count:]
        return taken


def _word(number: int) -> int:
    mixed = (number + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
    return mixed ^ (mixed >> 31)


def refusal(error: PegsynthError, *, claimed: bool = True) -> Reading:
    """Return the reading of a table that was refused."""
    return Reading(f"{type(error).__name__}: {error}", claimed)


def read_here(source: Any, schema: Schema) -> Reading:
    """Read a table of this process to the rows that would be counted.

    A source that is a function makes a table that is read once, and another for every pass.
    """
    made = source() if callable(source) else source
    with table_input.open_table(made, dialect=schema.dialect, confidential=True) as reader:
        claimed = reader.selection in _ROWWISE
        try:
            return _reading(reader, schema, source, claimed=claimed)
        except PegsynthError as error:
            return refusal(error, claimed=claimed)


def _reading(reader: TableReader, schema: Schema, source: Any, *, claimed: bool) -> Reading:
    def again() -> TableReader:
        if not callable(source):
            return reader
        return table_input.open_table(source(), confidential=True)

    unit = {}
    for batch in reader.batches([ROW, UNIT]):
        texts = unit_text(batch.get_column(UNIT))
        for number, text in zip(batch.get_column(ROW), texts, strict=True):
            unit[int(number)] = text
    lines = _codes(CodeTable(again(), replace(schema, unit=None), RandomStream(0)))
    counted = _codes(CodeTable(again(), schema, ByNumber(list(unit))))
    codes, kept = ({line[0]: line for line in found} for found in (lines, counted))
    faults = []
    if len(codes) < len(lines) or len(kept) < len(counted):
        faults.append("a row came twice")
    if any(codes.get(number) != line for number, line in kept.items()):
        faults.append("the codes of a row differ between two passes")
    types = _types(reader, schema, source)
    return Reading("", claimed, types, codes, unit, frozenset(kept), tuple(faults))


def _codes(table: CodeTable) -> list[tuple[int, ...]]:
    """Return the codes of the rows that count."""
    return [tuple(line) for batch in table.batches() for line in batch.tolist()]


def _types(reader: TableReader, schema: Schema, source: Any) -> tuple[str, ...]:
    """Return all names and types that can reach an output."""
    # Without one header the schema says the order, and files may differ in theirs.
    found = [str(sorted(reader.columns)), str(reader.output_columns)]
    if reader.one_header:
        found.append(str(reader.arrow_schema))
    found += [str(sorted(reader.dtypes.items(), key=str)), str(sorted(reader.untyped))]
    found += [reader.selection, str(reader.typed)]
    codes = np.zeros((1, len(schema.features)), dtype=schema.code_dtype)
    for how in ("values", "labels"):
        decoder = Decoder(schema, how=how, columns=reader.output_columns, dtypes=reader.dtypes)
        found.append(str(decoder.schema))
        words = np.zeros(decoder.words_needed(1), dtype=np.uint64)
        frame = decoder.decode(codes, words)
        if reader.frame_kind is not None:
            back = to_kind(frame, reader.frame_kind, like=source)
            found.append(_frame_types(back))
    return tuple(found)


def _frame_types(frame: Any) -> str:
    if hasattr(frame, "dtypes") and hasattr(frame, "columns") and hasattr(frame, "iloc"):
        kinds = [getattr(kind, "categories", None) for kind in frame.dtypes]
        texts = ["" if kind is None else f"{kind.dtype} {list(kind)}" for kind in kinds]
        return f"{list(frame.columns)} {list(map(str, frame.dtypes))} {texts}"
    return str(frame.schema)


@contextmanager
def small_batches(rows: int) -> Iterator[None]:
    """Let readers hand out so many rows at a time, those of foreign files in this process."""
    places: list[tuple[Any, str, int]] = [
        (arrow_read, "BATCH_ROWS", rows),
        (csv_read, "BATCH_ROWS", rows),
        (csv_read, "BLOCK_BYTES", 24 * rows),
        (streams, "FRAME_ROWS", rows),
        (statistics_files, "CHUNK_CELLS", 3 * rows),
        (excel, "ROWS_AT_ONCE", rows),
    ]
    before = [getattr(module, name) for module, name, _ in places]
    for module, name, value in places:
        setattr(module, name, value)
    try:
        with foreign_here():
            yield
    finally:
        for (module, name, _), value in zip(places, before, strict=True):
            setattr(module, name, value)
