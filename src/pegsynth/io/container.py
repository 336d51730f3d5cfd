"""One container for the files of our own: models, records of what was spent, checkpoints.

A file consists of

1. a notice, one line of text that begins with CONFIDENTIAL or SHAREABLE,
2. a header, one line of JSON: the version of the container, the kind of file and its format,
   the manifest of that kind, and name, type, shape and stored size of every array,
3. the bytes of the arrays, one after the other, each packed by zlib or as it is,
4. the SHA-256 of everything before, as one line of hexadecimal digits.

Nothing in a file is trusted on the way in: sizes are checked against the size of the file before
anything is allocated, and nothing is unpacked before the checksum fits. What a manifest and its
arrays mean is checked by whoever asked for them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np

from pegsynth.io.atomic import atomic_file
from pegsynth.io.packed_arrays import (
    Arrays,
    Bytes,
    ContainerError,
    Entry,
    check_sizes,
    restored_array,
    stored_arrays,
)

VERSION = 1
SHAREABLE_WORD = "SHAREABLE"
CONFIDENTIAL_WORD = "CONFIDENTIAL"

_MOST_NOTICE = 1 << 10
_MOST_HEADER = 1 << 27
_PIECE = 1 << 20
_TRAILER = 2 * hashlib.sha256().digest_size + 1
_BEGINNING = b'{"pegsynth":'
# The format is looked at before all else: another one may have other fields altogether.
_STATED = re.compile(rb'\{"pegsynth":(\d{1,9}),"kind":"([a-z ]{1,40})","format":(\d{1,9})[,}]')

Manifest = TypeVar("Manifest")


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


class _Header(msgspec.Struct, frozen=True):
    pegsynth: int
    kind: str
    format: int
    manifest: msgspec.Raw
    arrays: list[Entry]


def write_container(handle: BinaryIO, content: Container, *, pack: bool = True) -> None:
    """Write a container to an open file.

    Parameters
    ----------
    pack
        Whether arrays are packed; that takes longer than writing them as they are.
    """
    entries, bodies = stored_arrays(content.arrays, pack=pack)
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
    if not _is_notice(notice):
        raise ForeignFileError(f"this is not a {kind}, or it is truncated")
    line = handle.readline(_MOST_HEADER)
    header = _header(line, kind, format_)
    left = size - len(notice) - len(line) - _TRAILER
    check_sizes(header.arrays, size=size, left=left)
    digest = hashlib.sha256(notice + line)
    if with_arrays:
        bodies = [_body(handle, entry.stored, digest) for entry in header.arrays]
    else:
        _skip(handle, sum(entry.stored for entry in header.arrays), digest)
        bodies = []
    if handle.read(_TRAILER) != digest.hexdigest().encode() + b"\n":
        raise ContainerError("it is damaged: its checksum does not fit")
    arrays = {
        entry.name: restored_array(entry, body)
        for entry, body in zip(header.arrays if bodies else (), bodies, strict=True)
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


def _body(handle: BufferedIOBase, length: int, digest: Any) -> Bytes:
    """Read the bytes of an array; the header was checked against the size of the file."""
    body = np.empty(length, dtype=np.uint8)
    if handle.readinto(body.data) != length:
        raise ContainerError("it is truncated")
    digest.update(body.data)
    return body


def _skip(handle: BufferedIOBase, length: int, digest: Any) -> None:
    while piece := handle.read(min(length, _PIECE)):
        digest.update(piece)
        length -= len(piece)
