"""The footer of a Parquet file, read by ourselves: which chunk of which column lies where.

PyArrow ends the whole process on some damaged footers when it is asked for a chunk, so that
what is checked before reading is read here. In goes an open file, out come `Chunk`s by row
group. The format is Thrift's compact protocol; every error in it is a ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

TEXT_TYPE = 6
CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4_raw", "zstd", "lz4_raw")

_MAGIC = b"PAR1"
_DEEPEST = 16
_ROW_GROUPS, _COLUMNS, _CHUNK = 4, 1, 3
_TYPE, _PATH, _CODEC, _VALUES, _BYTES, _DATA, _DICTIONARY = 1, 3, 4, 5, 7, 9, 11
_STATISTICS, _NULLS = 12, 3

Fields = dict[int, Any]


@dataclass(frozen=True)
class Chunk:
    """The pages of one column in one row group.

    Parameters
    ----------
    column
        Name of the column, of a nested one that of the outermost.
    kind
        Its physical type; `TEXT_TYPE` for texts and bytes.
    codec
        How pages are packed, in the words of PyArrow; empty if that is not known.
    values
        Number of values, those that are missing included.
    nulls
        How many are missing, if the file says so.
    start, end
        Where the pages lie.
    """

    column: str
    kind: int
    codec: str
    values: int
    nulls: int | None
    start: int
    end: int


def row_groups(handle: BinaryIO) -> list[list[Chunk]]:
    """Read where the chunks of every row group lie; ValueError for a damaged footer."""
    size = handle.seek(0, 2)
    handle.seek(max(size - 8, 0))
    length, magic = int.from_bytes(handle.read(4), "little"), handle.read(4)
    if magic != _MAGIC or length > size - 8:
        raise ValueError("no footer")
    handle.seek(size - 8 - length)
    try:
        footer, _ = read_struct(handle.read(length), 0)
        return [
            [_chunk(column[_CHUNK]) for column in group[_COLUMNS]]
            for group in footer.get(_ROW_GROUPS, [])
        ]
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
        raise ValueError("a damaged footer") from None


def _chunk(fields: Fields) -> Chunk:
    start, first = fields[_DATA], fields.get(_DICTIONARY, 0)
    start = first if 0 < first < start else start
    codec = fields[_CODEC]
    return Chunk(
        fields[_PATH][0].decode(),
        fields[_TYPE],
        CODECS[codec] if 0 <= codec < len(CODECS) else "",
        fields[_VALUES],
        fields.get(_STATISTICS, {}).get(_NULLS),
        start,
        start + fields[_BYTES],
    )


def read_struct(data: bytes, position: int, depth: int = 0) -> tuple[Fields, int]:
    """Read a struct as its fields by number, and where it ends; IndexError if the data does."""
    if depth > _DEEPEST:
        raise ValueError("structs that are nested too deeply")
    fields: Fields = {}
    number = 0
    while head := data[position]:
        position += 1
        if head >> 4:
            number += head >> 4
        else:
            number, position = _signed(data, position)
        kind = head & 0x0F
        if kind in (1, 2):
            fields[number] = kind == 1
        else:
            fields[number], position = _value(data, position, kind, depth)
    return fields, position + 1


def _number(data: bytes, position: int) -> tuple[int, int]:
    """Read a number of variable length."""
    found = shift = 0
    while shift <= 63:
        byte = data[position]
        position += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, position
        shift += 7
    raise ValueError("a number of too many bytes")


def _signed(data: bytes, position: int) -> tuple[int, int]:
    found, position = _number(data, position)
    return (found >> 1) ^ -(found & 1), position


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = _number(data, position)
    if position + length > len(data):
        raise IndexError
    return data[position : position + length], position + length


def _list(data: bytes, position: int, depth: int) -> tuple[list[Any], int]:
    head = data[position]
    count, position = head >> 4, position + 1
    if count == 15:
        count, position = _number(data, position)
    found = []
    for _ in range(count):
        value, position = _value(data, position, head & 0x0F, depth)
        found.append(value)
    return found, position


def _value(data: bytes, position: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2, 3):
        return data[position], position + 1
    if kind in (4, 5, 6):
        return _signed(data, position)
    if kind == 7:
        return None, position + 8
    if kind == 8:
        return _bytes(data, position)
    if kind in (9, 10):
        return _list(data, position, depth + 1)
    if kind == 12:
        return read_struct(data, position, depth + 1)
    raise ValueError("a field of a kind that Parquet does not have")
