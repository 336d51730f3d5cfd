"""One container for the files of our own: models, records of what was spent, checkpoints.

A file consists of

1. a notice, one line of text that begins with CONFIDENTIAL or SHAREABLE,
2. a header, one line of JSON: the version of the container, the kind of file and its format,
   the manifest of that kind, and name, type, shape and stored size of every array,
3. the bytes of the arrays, one after the other, each packed by zlib or as it is,
4. the SHA-256 of everything before, as one line of hexadecimal digits.

Nothing in a file is trusted on the way in: sizes are checked against the size of the file before
anything is allocated, and nothing is unpacked before the checksum fits. What an entry says of an
array is believed only if it accounts for every byte of the file. What a manifest and its arrays
mean is checked by whoever asked for them.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError, PegsynthError
from pegsynth.tables.atomic import atomic_file

# Packed arrays may unpack to so much in any case, and to so many times the size of the file.
MOST_UNPACKED = 1 << 27
MOST_GROWTH = 256

_MOST_DIMENSIONS = 8
_MOST_LENGTH = 1 << 56
_TYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
# Level 1 is several times as quick as the usual one and makes files a tenth larger.
_LEVEL = 1

VERSION = 1
SHAREABLE_WORD = "SHAREABLE"
CONFIDENTIAL_WORD = "CONFIDENTIAL"

_MOST_NOTICE = 1 << 10
_MOST_HEADER = 1 << 27
_TRAILER = 2 * hashlib.sha256().digest_size + 1
_BEGINNING = b'{"pegsynth":'
# The format is looked at before all else: another one may have other fields altogether.
_STATED = re.compile(rb'\{"pegsynth":(\d{1,9}),"kind":"([a-z ]{1,40})","format":(\d{1,9})[,}]')

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Bytes: TypeAlias = NDArray[np.uint8]
Manifest = TypeVar("Manifest")


class ContainerError(PegsynthError):
    """A file is not what was expected; the text is half a sentence without the file's name."""


class ForeignFileError(ContainerError):
    """A file is no container, or one of another kind."""


class OtherFormatError(ContainerError):
    """A file has another format than this program writes and reads.

    Parameters
    ----------
    found
        Its format.
    """

    def __init__(self, found: int) -> None:
        super().__init__(f"it has format {found}")
        self.found = found

    def message(self, path: str | Path, noun: str, known: int) -> str:
        """Say what is wrong with the file, and what to do."""
        return (
            f"{path}: the {noun} has format {self.found}, and this program reads format {known} "
            "only; use the version of pegsynth that wrote it"
        )


@dataclass(frozen=True)
class Container:
    """What a file holds.

    Parameters
    ----------
    notice
        What may be done with the file; its first word decides who may read it.
    kind
        What the file is, in lower-case words.
    format
        The format of its manifest and arrays.
    manifest
        JSON.
    arrays
        Arrays by name: booleans, integers and floats of any shape.
    """

    notice: str
    kind: str
    format: int
    manifest: bytes
    arrays: Arrays = field(default_factory=dict)


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

    def restored(self, body: Bytes) -> NDArray[Any]:
        """Return the array, which may be written to, from its bytes in the file."""
        if self.packed:
            unpacking = zlib.decompressobj()
            try:
                # The size that was declared bounds what is unpacked, whatever the stream holds.
                plain = unpacking.decompress(body.data, self.size + 1)
            except zlib.error:
                raise ContainerError("its arrays are damaged") from None
            if len(plain) != self.size or not unpacking.eof or unpacking.unused_data:
                raise ContainerError("its arrays are damaged")
            body = np.frombuffer(plain, dtype=np.uint8).copy()
        # NumPy goes wrong on truth values that are neither 0 nor 1.
        if self.dtype == "|b1" and body.max(initial=0) > 1:
            raise ContainerError("its arrays are damaged")
        return body.view(self.dtype).reshape(self.shape)


class _Header(msgspec.Struct, frozen=True):
    pegsynth: int
    kind: str
    format: int
    manifest: msgspec.Raw
    arrays: list[Entry]

    def check(self, *, size: int, left: int) -> None:
        """Refuse arrays that do not account for every byte, or that unpack to too much.

        Parameters
        ----------
        size
            Size of the file.
        left
            How much of it the arrays should take.
        """
        if len({entry.name for entry in self.arrays}) != len(self.arrays):
            raise ContainerError("it holds an array twice")
        for entry in self.arrays:
            entry.check()
        if sum(entry.stored for entry in self.arrays) != left:
            raise ContainerError("it is truncated, or its arrays are damaged")
        unpacked = sum(entry.size for entry in self.arrays if entry.packed)
        if unpacked > MOST_UNPACKED + MOST_GROWTH * size:
            raise ContainerError("it unpacks to far more than a file of its size should hold")


def write_container(handle: BinaryIO, content: Container, *, pack: bool = True) -> None:
    """Write a container to an open file.

    Parameters
    ----------
    pack
        Whether arrays are packed; that takes longer than writing them as they are.
    """
    entries, bodies = [], []
    # What is written must be read again: arrays that shrink too well are packed up to a limit.
    allowance = MOST_UNPACKED
    for name, array in content.arrays.items():
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
    header = _Header(VERSION, content.kind, content.format, msgspec.Raw(content.manifest), entries)
    digest = hashlib.sha256()
    # A manifest may hold JSON of others; without line breaks the header is one line.
    line = msgspec.json.format(msgspec.json.encode(header), indent=-1)
    for part in (content.notice.encode() + b"\n", line + b"\n", *bodies):
        digest.update(part)
        handle.write(part)
    handle.write(digest.hexdigest().encode() + b"\n")


def save_container(
    path: str | Path, content: Container, *, before: Callable[[], None] | None = None
) -> None:
    """Write a container under a name, whole or not at all, and synced.

    Only its owner may read it, unless its notice says that it may be shared.

    Parameters
    ----------
    before
        Called when the file is complete and before it becomes visible.
    """
    mode = 0o644 if content.notice.startswith(SHAREABLE_WORD) else 0o600
    with (
        atomic_file(path, mode=mode, before=before) as temporary,
        temporary.open("wb") as handle,
    ):
        write_container(handle, content)


def is_container(handle: BufferedIOBase) -> bool:
    """Whether a file begins like a container; the place in the file stays where it is."""
    place = handle.tell()
    notice = handle.readline(_MOST_NOTICE)
    found = _is_notice(notice) and handle.read(len(_BEGINNING)) == _BEGINNING
    handle.seek(place)
    return found


def read_container(
    handle: BufferedIOBase, *, kind: str, format_: int, with_arrays: bool = True
) -> Container:
    """Read a container from the start of an open file.

    Parameters
    ----------
    kind, format_
        The kind of file that is expected, and its format; there is one.
    with_arrays
        Whether the arrays are wanted; the checksum is compared either way.

    Raises
    ------
    ForeignFileError
        This is no container, or one of another kind.
    OtherFormatError
        Another version of the program wrote it.
    ContainerError
        It is truncated or damaged, or unpacks to far more than it is.
    """
    size = handle.seek(0, 2)
    handle.seek(0)
    notice = handle.readline(_MOST_NOTICE)
    line = handle.readline(_MOST_HEADER) if _is_notice(notice) else b""
    header = _header(line, kind, format_)
    header.check(size=size, left=size - len(notice) - len(line) - _TRAILER)
    digest = hashlib.sha256(notice + line)
    bodies = []
    for entry in header.arrays:
        # The header was checked against the size of the file.
        body = np.empty(entry.stored, dtype=np.uint8)
        if handle.readinto(body.data) != entry.stored:
            raise ContainerError("it is truncated")
        digest.update(body.data)
        bodies.append(body if with_arrays else None)
    if handle.read(_TRAILER) != digest.hexdigest().encode() + b"\n":
        raise ContainerError("it is damaged: its checksum does not fit")
    arrays = {
        entry.name: entry.restored(body)
        for entry, body in zip(header.arrays, bodies, strict=True)
        if body is not None
    }
    text = notice[:-1].decode("utf-8", "replace")
    return Container(text, header.kind, header.format, bytes(header.manifest), arrays)


def decoded(content: Container, kind: type[Manifest]) -> Manifest:
    """Return the manifest of a container as a type of its own."""
    try:
        return msgspec.json.decode(content.manifest, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ContainerError("its manifest is damaged") from None


def _is_notice(line: bytes) -> bool:
    words = (CONFIDENTIAL_WORD.encode(), SHAREABLE_WORD.encode())
    return line.startswith(words) and line.endswith(b"\n")


def _header(line: bytes, kind: str, format_: int) -> _Header:
    if not line.startswith(_BEGINNING):
        raise ForeignFileError(f"this is not a {kind}, or it is truncated")
    stated = _STATED.match(line)
    if stated is None or not line.endswith(b"\n"):
        raise ContainerError("it is truncated, or its header is damaged")
    version, found, stated_format = int(stated[1]), stated[2].decode(), int(stated[3])
    if found != kind:
        raise ForeignFileError(f"this is a {found} and not a {kind}")
    if not (version and stated_format):
        raise ContainerError("its header is damaged")
    if (version, stated_format) != (VERSION, format_):
        raise OtherFormatError(stated_format)
    try:
        return msgspec.json.decode(line, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ContainerError("its header or its manifest is damaged") from None
