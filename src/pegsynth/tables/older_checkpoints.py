"""Checkpoints of format 1, which had a framing of their own; they are read and no longer written.

After the notice comes a line of JSON with a checksum of itself and of the arrays, whose bytes
follow. Out comes what the container of today would hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pegsynth.io.container import Container, NewerFormatError
from pegsynth.io.packed_arrays import ContainerError

KEPT = "kept rows"
"""The name of the array that says which rows are kept, in the container of today."""

_UNITS = ("units", "bits")
_BEGINNING = b'{"format":'
_FORMAT = 1
_MOST_HEADER = 1 << 24


class _Array(msgspec.Struct, frozen=True):
    stage: str
    name: str
    dtype: str
    length: int


class _Header(msgspec.Struct, frozen=True):
    format: int
    belongs: str
    rows: int
    stages: dict[str, tuple[int, int, int, bool]]
    arrays: list[_Array]
    sha256: str = ""


def is_older_checkpoint(handle: BufferedIOBase, notice: str) -> bool:
    """Whether a file begins like one; it is read from its start again afterwards."""
    first = notice.encode() + b"\n"
    found = handle.read(len(first)) == first and handle.read(len(_BEGINNING)) == _BEGINNING
    handle.seek(0)
    return found


def read_older_checkpoint(handle: BufferedIOBase, *, kind: str = "checkpoint") -> Container:
    """Read the file; ContainerError if it is damaged."""
    size = handle.seek(0, 2)
    handle.seek(0)
    notice = handle.readline(_MOST_HEADER)
    try:
        header = msgspec.json.decode(handle.readline(_MOST_HEADER), type=_Header)
        if header.format > _FORMAT:
            raise NewerFormatError(header.format)
        arrays = dict(_arrays(handle, header, size))
    except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
        raise ContainerError("it is damaged") from None
    fields = {"belongs": header.belongs, "rows": header.rows, "stages": header.stages}
    manifest = msgspec.json.encode(fields)
    return Container(notice.decode().rstrip("\n"), kind, header.format, manifest, arrays)


def _arrays(
    handle: BufferedIOBase, header: _Header, size: int
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays; what the header says of them is believed if the file can hold it."""
    digest = hashlib.sha256(msgspec.json.encode(replace(header, sha256="")))
    stages = list(header.stages)
    for each in header.arrays:
        dtype = np.dtype(each.dtype)
        if each.dtype != dtype.str or dtype.kind not in "iub":
            raise ValueError("an array of something else than counts")
        if not 0 <= each.length <= size // dtype.itemsize:
            raise ValueError("an array longer than the file")
        raw = handle.read(dtype.itemsize * each.length)
        digest.update(raw)
        array = np.frombuffer(raw, dtype=dtype, count=each.length).copy()
        if each.stage in stages:
            yield f"{stages.index(each.stage)}: {each.name}", array
        elif (each.stage, each.name) == _UNITS:
            yield KEPT, array
    if digest.hexdigest() != header.sha256 or handle.read(1):
        raise ValueError("the bytes do not add up")
