"""The bytes of a text file as UTF-8, whatever they are on disk.

In goes a file, its compression by its name and its declared encoding; out comes a stream of
bytes in UTF-8. Memory is bounded by what is asked for at a time. What cannot be decompressed or
decoded is refused without being shown.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

from pegsynth.errors import DataError
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.file_kinds import compression_of
from pegsynth.tables.file_sets import File, RemoteFile


class Bytes(Protocol):
    """What can be read."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""


@contextmanager
def open_text(path: File, dialect: Dialect) -> Iterator[Bytes]:
    """Yield the bytes of a text file as UTF-8."""
    with path.open("rb") as handle:
        stream: Bytes = handle
        if compression := compression_of(path):
            stream = _Decompressed(path, handle, compression)
        if dialect.codec != "utf-8":
            stream = _Decoded(path, stream, dialect)
        yield stream


class _Decompressed:
    def __init__(self, path: File, handle: BinaryIO, compression: str) -> None:
        import pyarrow as pa

        self._path = path
        source: Any = handle if isinstance(path, RemoteFile) else pa.PythonFile(handle, "r")
        self._stream = pa.CompressedInputStream(source, compression)

    def read(self, size: int, /) -> bytes:
        try:
            found: bytes = self._stream.read(size)
        except OSError:
            raise DataError(
                f"{self._path}: the file is truncated or is not compressed as its name says; write "
                "it again, or give it the extension of what it is"
            ) from None
        return found


class _Decoded:
    """Characters of another encoding as UTF-8."""

    def __init__(self, path: File, stream: Bytes, dialect: Dialect) -> None:
        self._path = path
        self._stream = stream
        self._name = dialect.encoding
        self._decoder = codecs.getincrementaldecoder(dialect.codec)()
        self._line = 1
        self._ended = self._broken = False

    def read(self, size: int, /) -> bytes:
        text = ""
        while not (text or self._ended or self._broken):
            data = self._stream.read(size)
            self._ended = not data
            text = self._decoded(data)
            self._line += text.count("\n")
        if self._broken and not text:
            raise DataError(
                f"{self._path}: line {self._line}: the text is not {self._name}; say which "
                "encoding it has (--encoding, or encoding under [table] of the schema)"
            )
        return text.encode()

    def _decoded(self, data: bytes) -> str:
        """Return the text up to what is none: a row must not decide how the header is read."""
        before = self._decoder.getstate()
        try:
            text = self._decoder.decode(data, final=self._ended)
        except UnicodeError as error:
            self._broken = True
            self._decoder.setstate(before)
            # UTF-16 without its byte order mark is none from the start, and says no place.
            valid = data[: max(getattr(error, "start", 0) - len(before[0]), 0)]
            return self._decoded(valid) if valid else ""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            self._broken = True
            text = text[: error.start]
        return text
