"""Arrays as a container stores them: type, shape and size said first, then their bytes.

Arrays go in by name; out come entries for the header of a file and the bytes that follow it,
packed by zlib or as they are, and the other way round. What an entry says is believed only if
it accounts for every byte of the file.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError, PegsynthError

# Packed arrays may unpack to so much in any case, and to so many times the size of the file.
MOST_UNPACKED = 1 << 27
MOST_GROWTH = 256

_MOST_DIMENSIONS = 8
_MOST_LENGTH = 1 << 56
_TYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
# Level 1 is several times as quick as the usual one and makes files a tenth larger.
_LEVEL = 1

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Bytes: TypeAlias = NDArray[np.uint8]


class ContainerError(PegsynthError):
    """A file is not what was expected; the text is half a sentence without the file's name."""


class Entry(msgspec.Struct, frozen=True):
    """What a header says of one array: its name, type, shape, and bytes in the file."""

    name: str
    dtype: str
    shape: list[int]
    stored: int
    packed: bool

    @property
    def size(self) -> int:
        """Bytes of the array in memory."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def check(self) -> None:
        """Refuse what no array of ours is."""
        # An array of no elements could hide lengths that are too large for NumPy.
        lengths = [max(length, 1) for length in self.shape]
        if (
            self.dtype not in _TYPES
            or len(self.shape) > _MOST_DIMENSIONS
            or min(self.shape, default=0) < 0
            or math.prod(lengths) > _MOST_LENGTH
            or self.stored < 0
            or not (self.packed or self.stored == self.size)
        ):
            raise ContainerError("its arrays are damaged")


def stored_arrays(arrays: Arrays, *, pack: bool) -> tuple[list[Entry], list[Any]]:
    """Return the entries of arrays, and their bytes in the file.

    Parameters
    ----------
    pack
        Whether arrays are packed; that takes longer than writing them as they are.
    """
    entries, bodies = [], []
    # What is written must be read again: arrays that shrink too well are packed up to a limit.
    allowance = MOST_UNPACKED
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        if plain.dtype.str not in _TYPES:
            raise ModelError(f"array {name!r} is of a type that no file of ours holds")
        body: Any = plain.reshape(-1).view(np.uint8).data
        packed = zlib.compress(body, _LEVEL) if pack else body
        smaller = len(packed) < plain.nbytes
        if smaller and plain.nbytes > MOST_GROWTH * len(packed):
            smaller = plain.nbytes <= allowance
            allowance -= plain.nbytes if smaller else 0
        stored = packed if smaller else body
        entries.append(Entry(name, plain.dtype.str, list(array.shape), len(stored), smaller))
        bodies.append(stored)
    return entries, bodies


def check_sizes(entries: Sequence[Entry], *, size: int, left: int) -> None:
    """Refuse arrays that do not account for every byte, or that unpack to too much.

    Parameters
    ----------
    size
        Size of the file.
    left
        How much of it the arrays should take.
    """
    if len({entry.name for entry in entries}) != len(entries):
        raise ContainerError("it holds an array twice")
    for entry in entries:
        entry.check()
    if sum(entry.stored for entry in entries) != left:
        raise ContainerError("it is truncated, or its arrays are damaged")
    if sum(entry.size for entry in entries if entry.packed) > MOST_UNPACKED + MOST_GROWTH * size:
        raise ContainerError("it unpacks to far more than a file of its size should hold")


def restored_array(entry: Entry, body: Bytes) -> NDArray[Any]:
    """Return an array that may be written to, from its bytes in the file."""
    plain = _unpacked(body, entry.size) if entry.packed else body
    # NumPy goes wrong on truth values that are neither 0 nor 1.
    if entry.dtype == "|b1" and plain.max(initial=0) > 1:
        raise ContainerError("its arrays are damaged")
    return plain.view(entry.dtype).reshape(entry.shape)


def _unpacked(body: Bytes, size: int) -> Bytes:
    unpacking = zlib.decompressobj()
    try:
        # The size that was declared bounds what is unpacked, whatever the stream holds.
        plain = unpacking.decompress(body.data, size + 1)
    except zlib.error:
        raise ContainerError("its arrays are damaged") from None
    if len(plain) != size or not unpacking.eof or unpacking.unused_data:
        raise ContainerError("its arrays are damaged")
    return np.frombuffer(plain, dtype=np.uint8).copy()
