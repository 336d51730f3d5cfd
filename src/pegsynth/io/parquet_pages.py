"""How large the pages of a Parquet file become, told before any of them is unpacked.

A reader reserves what a page says of itself, and a text that is stored once may stand in
every row, so that a file of a few hundred bytes can fill any memory. Page headers are
therefore walked first, and dictionaries of texts are looked into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from pegsynth.errors import DataError
from pegsynth.io.parquet_footer import TEXT_TYPE, Chunk, read_struct, row_groups

MOST_BYTES = 1 << 29
MOST_GROWTH = 64
MOST_TEXT = 1 << 16
_HEADER_BYTES = 1 << 10
_MOST_HEADER_BYTES = 1 << 24
_LEAST_PAGE_BYTES = 8
_DICTIONARY_PAGE = 2
_PREFIXES_SHARED = 7


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
        page = _page(handle, start)
        if page.kind != _DICTIONARY_PAGE:
            left -= page.values
        yield page
        start = page.start + page.packed


def _page(handle: BinaryIO, start: int) -> _Page:
    wanted = _HEADER_BYTES
    while True:
        handle.seek(start)
        data = handle.read(wanted)
        try:
            fields, used = read_struct(data, 0)
            break
        except IndexError:
            # Statistics in a header may be long.
            if len(data) < wanted or wanted >= _MOST_HEADER_BYTES:
                raise ValueError("a page header without an end") from None
            wanted *= 16
    nested = [fields[n] for n in (5, 7, 8) if isinstance(fields.get(n), dict)]
    inner: dict[int, Any] = nested[0] if nested else {}
    encoding = 4 if 8 in fields else 2
    sizes = (*(fields.get(n) for n in (1, 2, 3)), inner.get(1, 0), inner.get(encoding, 0))
    if not all(isinstance(each, int) and each >= 0 for each in sizes):
        raise ValueError("a page header without sizes")
    return _Page(start + used, *sizes)


def _repeated(handle: BinaryIO, chunk: Chunk, page: _Page) -> int:
    """Return the bytes that one value of a page of texts may take, where they are shared."""
    if chunk.kind != TEXT_TYPE:
        return 0
    if page.kind != _DICTIONARY_PAGE:
        return page.unpacked if page.encoding == _PREFIXES_SHARED else 0
    data = _unpacked(handle, chunk, page)
    if data is None:
        return page.unpacked
    longest = _longest(data, page.values)
    if longest > MOST_TEXT:
        raise DataError(
            f"column {chunk.column!r} holds a text of more than {MOST_TEXT:,} bytes; "
            "shorten it, or drop the column"
        )
    return longest


def _unpacked(handle: BinaryIO, chunk: Chunk, page: _Page) -> bytes | None:
    """Return the content of a page; None if it is packed in a way that is not known here."""
    import pyarrow as pa

    handle.seek(page.start)
    data = handle.read(page.packed)
    if chunk.codec == "uncompressed":
        return data
    try:
        plain: bytes = pa.Codec(chunk.codec).decompress(data, page.unpacked, asbytes=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return plain


def _longest(data: bytes, values: int) -> int:
    """Return the length of the longest of texts that each stand after their length."""
    position = longest = 0
    for _ in range(values):
        length = int.from_bytes(data[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
        if position > len(data):
            raise ValueError("texts that are longer than their page")
    return longest
