"""Records of what was spent of format 1, which were JSON; they are read and no longer written."""

from __future__ import annotations

import base64
import binascii
import zlib
from io import BufferedIOBase

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.io.container import NewerFormatError
from pegsynth.io.packed_arrays import ContainerError
from pegsynth.methods.session import Spent

_FORMAT = 1
_MOST_BYTES = 1 << 30


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    notice: str
    model: str
    rows: int
    blocks: int
    seeded: bool
    entries: int
    counters: list[str]


def is_older_record(handle: BufferedIOBase) -> bool:
    """Whether a file begins like one; it is read from its start again afterwards."""
    found = handle.read(1) == b"{"
    handle.seek(0)
    return found


def read_older_record(handle: BufferedIOBase) -> tuple[str, Spent]:
    """Return the identity of the model, and what was spent; ContainerError if it is damaged."""
    try:
        file = msgspec.json.decode(handle.read(), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _damaged() from None
    if file.format > _FORMAT:
        raise NewerFormatError(file.format)
    if min(file.rows, file.blocks, file.entries) < 0 or 4 * file.entries > _MOST_BYTES:
        raise _damaged()
    counters = tuple(_counters(line, file.entries) for line in file.counters)
    return file.model, Spent(file.rows, file.blocks, file.seeded, counters)


def _counters(text: str, entries: int) -> NDArray[np.uint32]:
    try:
        packed = base64.b85decode(text)
        # The declared size bounds what is unpacked, whatever the file says inside.
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(packed, 4 * entries + 1)
    except (ValueError, zlib.error, binascii.Error):
        raise _damaged() from None
    if len(raw) != 4 * entries or not unpacking.eof or unpacking.unused_data:
        raise _damaged()
    return np.frombuffer(raw, dtype=np.uint32).copy()


def _damaged() -> ContainerError:
    return ContainerError("it is damaged")
