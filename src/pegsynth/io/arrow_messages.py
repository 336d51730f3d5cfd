"""How large the messages of an Arrow file become, told before any of them is unpacked.

A compressed buffer begins with the number of bytes that a reader reserves for it. Messages
(FlatBuffers) are therefore walked first, and what their buffers claim is added up.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pegsynth.errors import DataError
from pegsynth.io.parquet_pages import MOST_BYTES, MOST_GROWTH

_HEADER, _BATCH_OF_DICTIONARY = 2, 1
_BUFFERS, _COMPRESSION = 2, 3
_DICTIONARIES, _BATCHES = 2, 3
_END = struct.Struct("<i6s")
_BLOCK_BYTES = 24


def check_messages(source: Any, *, footer: bool) -> None:
    """Refuse an Arrow file or stream with a message that would fill the memory.

    Parameters
    ----------
    source
        The open file; its place is changed.
    footer
        Whether a footer tells where the messages are, as in a file; else they stand one
        after the other.

    Raises
    ------
    DataError
        A message is too large; without the name of the file.
    ValueError
        A message is damaged.
    """
    most = max(MOST_BYTES, MOST_GROWTH * source.size())
    for message in _listed(source) if footer else _streamed(source):
        if message.type in ("record batch", "dictionary"):
            claimed = sum(_claims(message))
            if claimed > most:
                raise DataError(
                    f"a batch unpacks to {claimed >> 20:,} MiB, far more than a file of this size "
                    "should hold; write it again in smaller batches"
                )


def _streamed(source: Any) -> Iterator[Any]:
    from pyarrow import ipc

    source.seek(0)
    reader = ipc.MessageReader.open_stream(source)
    with suppress(StopIteration):
        while True:
            yield reader.read_next_message()


def _listed(source: Any) -> Iterator[Any]:
    """Yield the messages that the footer of a file lists."""
    from pyarrow import ipc

    size = source.size()
    source.seek(max(size - _END.size, 0))
    try:
        length, _ = _END.unpack(source.read(_END.size))
        if not 0 < length <= size - _END.size:
            raise ValueError("a footer longer than its file")
        source.seek(size - _END.size - length)
        data = source.read(length)
        root = _follow(data, 0)
        places = [
            struct.unpack_from("<q", data, vector + 4 + _BLOCK_BYTES * index)[0]
            for field in (_DICTIONARIES, _BATCHES)
            if (vector := _vector(data, root, field))
            for index in range(struct.unpack_from("<I", data, vector)[0])
        ]
    except struct.error:
        raise ValueError("a footer that points outside of itself") from None
    for place in places:
        if not 0 <= place < size:
            raise ValueError("a message outside of the file")
        source.seek(place)
        yield ipc.read_message(source)


def _claims(message: Any) -> Iterator[int]:
    """Yield the bytes that each compressed buffer of a batch unpacks to, as it says."""
    data, body = message.metadata.to_pybytes(), message.body
    try:
        batch = _follow(data, _field(data, _follow(data, 0), _HEADER))
        if message.type == "dictionary":
            batch = _follow(data, _field(data, batch, _BATCH_OF_DICTIONARY))
        vector = _vector(data, batch, _BUFFERS)
        if not vector or not _field(data, batch, _COMPRESSION):
            return
        (count,) = struct.unpack_from("<I", data, vector)
        for index in range(count):
            offset, length = struct.unpack_from("<qq", data, vector + 4 + 16 * index)
            if length >= 8:
                (claimed,) = struct.unpack_from("<q", body, offset)
                yield max(claimed, 0)
    except struct.error:
        raise ValueError("a message that points outside of itself") from None


def _vector(data: bytes, table: int, number: int) -> int:
    """Return where a list that a field names begins; 0 when there is none."""
    place = _field(data, table, number)
    return _follow(data, place) if place else 0


def _follow(data: bytes, position: int) -> int:
    (step,) = struct.unpack_from("<I", data, position)
    return position + int(step)


def _field(data: bytes, table: int, number: int) -> int:
    """Return where a field of a table stands; 0 when it has none."""
    (back,) = struct.unpack_from("<i", data, table)
    (size,) = struct.unpack_from("<H", data, table - back)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - back + 4 + 2 * number)
    return table + int(offset) if offset else 0
