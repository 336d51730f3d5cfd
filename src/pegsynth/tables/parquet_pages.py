"""How large the pages of a Parquet file become, told before any of them is unpacked.

A reader reserves what a page says of itself, and a text that is stored once may stand in
every row, so that a file of a few hundred bytes can fill any memory. Page headers are
therefore walked first, and dictionaries of texts are looked into. Reading in a process of its own
with a memory limit would be no way around: it takes several times as long for tables of the usual
size, fills all of that memory before it refuses, and takes some damaged footers for sound ones.

The footer, which says which chunk of which column lies where, is read here, too: PyArrow ends the
whole process on some damaged ones when it is asked for a chunk. Footer and headers are Thrift's
compact protocol; every error in it is a ValueError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from pegsynth.errors import DataError

TEXT_TYPE = 6
CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4_raw", "zstd", "lz4_raw")

MOST_BYTES = 1 << 29
MOST_GROWTH = 64
MOST_TEXT = 1 << 16
_MAGIC = b"PAR1"
_DEEPEST = 16
_ROW_GROUPS, _COLUMNS, _CHUNK = 4, 1, 3
_TYPE, _PATH, _CODEC, _VALUES, _BYTES, _DATA, _DICTIONARY = 1, 3, 4, 5, 7, 9, 11
_HEADER_BYTES = 1 << 10
_MOST_HEADER_BYTES = 1 << 24
_LEAST_PAGE_BYTES = 8
_DICTIONARY_PAGE = 2
_PREFIXES_SHARED = 7

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
    start, end
        Where the pages lie.
    """

    column: str
    kind: int
    codec: str
    values: int
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
    start, first, codec = fields[_DATA], fields.get(_DICTIONARY, 0), fields[_CODEC]
    start = first if 0 < first < start else start
    name = CODECS[codec] if 0 <= codec < len(CODECS) else ""
    column, end = fields[_PATH][0].decode(), start + fields[_BYTES]
    return Chunk(column, fields[_TYPE], name, fields[_VALUES], start, end)


def read_struct(data: bytes, position: int, depth: int = 0) -> tuple[Fields, int]:
    """Read a struct as its fields by number, and where it ends; IndexError if the data does."""
    if depth > _DEEPEST:
        raise ValueError("structs that are nested too deeply")
    fields: Fields = {}
    number = 0
    while head := data[position]:
        position += 1
        step, position = (head >> 4, position) if head >> 4 else _signed(data, position)
        number = number + step if head >> 4 else step
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


def _value(data: bytes, position: int, kind: int, depth: int) -> tuple[object, int]:
    """Read a value of a kind, and where it ends."""
    if kind in (1, 2, 3):
        return data[position], position + 1
    if kind in (4, 5, 6):
        return _signed(data, position)
    if kind == 7:
        return None, position + 8
    if kind == 8:
        length, position = _number(data, position)
        if position + length > len(data):
            raise IndexError
        return data[position : position + length], position + length
    if kind in (9, 10):
        head = data[position]
        count, position = head >> 4, position + 1
        if count == 15:
            count, position = _number(data, position)
        found = []
        for _ in range(count):
            value, position = _value(data, position, head & 0x0F, depth + 1)
            found.append(value)
        return found, position
    if kind == 12:
        return read_struct(data, position, depth + 1)
    raise ValueError("a field of a kind that Parquet does not have")


@dataclass(frozen=True)
class _Page:
    """What a page header says, and where the page begins."""

    start: int
    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int


def check_pages(
    handle: BinaryIO,
    columns: Collection[str] | None = None,
    *,
    texts: Collection[str] = (),
    most: int = MOST_BYTES,
    growth: int = MOST_GROWTH,
) -> int:
    """Refuse a file whose pages would fill the memory; return the longest repeated text.

    Parameters
    ----------
    handle
        The file.
    columns
        The columns that will be read; None for all.
    texts
        Those among them whose texts will be written out row by row.
    most, growth
        Bytes that may be unpacked at once in any case, and times the size of the file.

    Returns
    -------
    int
        Bytes that a text of one row may take although the file holds them once, at most.

    Raises
    ------
    DataError
        The pages are too large, or a text is; without the name of the file.
    ValueError
        The pages are damaged.
    """
    size = handle.seek(0, 2)
    most = max(most, growth * size)
    # Chunks may point to the same pages over and over.
    left = size // _LEAST_PAGE_BYTES
    longest = 0
    for number, group in enumerate(row_groups(handle), start=1):
        total = 0
        for chunk in group:
            if columns is not None and chunk.column not in columns:
                continue
            largest = 0
            for page in _pages(handle, chunk, size):
                left -= 1
                if left < 0:
                    raise ValueError("more pages than the file can hold")
                if page.packed > size:
                    raise ValueError("a page that is longer than its file")
                largest = max(largest, page.unpacked)
                if chunk.column in texts and page.unpacked <= most:
                    longest = max(longest, _repeated(handle, chunk, page))
            total += largest
        if total > most:
            raise DataError(
                f"row group {number} unpacks to more than {most >> 20} MiB at once, far more "
                "than a file of this size should hold; write it again with smaller pages"
            )
    return longest


def _pages(handle: BinaryIO, chunk: Chunk, size: int) -> Iterator[_Page]:
    """Yield the pages of a column chunk in order."""
    start, left = chunk.start, chunk.values
    while left > 0 and start < chunk.end:
        if not 0 <= start < size:
            raise ValueError("a page outside of the file")
        wanted, header = _HEADER_BYTES, None
        while header is None:
            handle.seek(start)
            data = handle.read(wanted)
            try:
                header, used = read_struct(data, 0)
            except IndexError:
                # Statistics in a header may be long.
                if len(data) < wanted or wanted >= _MOST_HEADER_BYTES:
                    raise ValueError("a page header without an end") from None
                wanted *= 16
        nested = [header[n] for n in (5, 7, 8) if isinstance(header.get(n), dict)]
        inner: Fields = nested[0] if nested else {}
        encoding = inner.get(4 if 8 in header else 2, 0)
        sizes = (*(header.get(n) for n in (1, 2, 3)), inner.get(1, 0), encoding)
        if not all(isinstance(each, int) and each >= 0 for each in sizes):
            raise ValueError("a page header without sizes")
        page = _Page(start + used, *sizes)
        if page.kind != _DICTIONARY_PAGE:
            left -= page.values
        yield page
        start = page.start + page.packed


def _repeated(handle: BinaryIO, chunk: Chunk, page: _Page) -> int:
    """Return the bytes that one value of a page of texts may take, where they are shared."""
    import pyarrow as pa

    if chunk.kind != TEXT_TYPE:
        return 0
    if page.kind != _DICTIONARY_PAGE:
        return page.unpacked if page.encoding == _PREFIXES_SHARED else 0
    handle.seek(page.start)
    data = handle.read(page.packed)
    if chunk.codec != "uncompressed":
        try:
            data = pa.Codec(chunk.codec).decompress(data, page.unpacked, asbytes=True)
        except (pa.ArrowException, OSError, ValueError):
            # It is packed in a way that is not known here.
            return page.unpacked
    position = longest = 0
    # Each text stands after its length.
    for _ in range(page.values):
        length = int.from_bytes(data[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
        if position > len(data):
            raise ValueError("texts that are longer than their page")
    if longest > MOST_TEXT:
        raise DataError(
            f"column {chunk.column!r} holds a text of more than {MOST_TEXT:,} bytes; "
            "shorten it, or drop the column"
        )
    return longest
