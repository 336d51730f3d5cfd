"""Streaming CSV: bytes of a file in, frames of text out, strictly.

Separator and encoding are declared by a `Dialect`. The bytes become UTF-8, whatever they are on
disk, and the file is cut into blocks of whole records, so that memory is bounded whatever its size.
Before Polars parses a block its skeleton (separators, line ends and quotes, nothing else)
is compared with the one every record must have: too many and too few fields, blank lines
and stray quotes are refused with their line number, where a parser would pad or guess.
An unquoted empty field is null; a quoted one is the empty text. What cannot be decompressed or
decoded is refused without being shown.

Spreadsheets run a cell that starts with ``=``, ``+``, ``-``, ``@``, a tab or a carriage
return as a formula. Text that starts so, and is not a number, is written with a leading
apostrophe; column names too. Readers take the apostrophe off again: from a column name
always, from a cell when the text with it is not a listed category and the text without
it is. A table that lists both ``=x`` and ``'=x`` is the one case that does not survive.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.errors import DataError
from pegsynth.schema.dialect import SEPARATORS, Dialect
from pegsynth.tables.caller_frames import check_names
from pegsynth.tables.file_kinds import compression_of
from pegsynth.tables.file_sets import File, RemoteFile, size_of
from pegsynth.tables.reader import TableReader, Wanted, unreadable

_STARTS = "=+-@\t\r"
# Ranges of text that hold all the starts and little else: comparing is faster than matching.
_RANGES = (("\t", "\x0e"), ("+", "."), ("=", "A"))
_START = r"^[=+\-@\t\r]"
# With the decimal mark of any dialect: no spreadsheet takes either for a formula.
_NUMBER = r"^[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NUMBER_PATTERN = re.compile(_NUMBER)


def protect(text: str) -> str:
    """Return `text` as it is written to CSV: no spreadsheet takes it for a formula."""
    if text.startswith(tuple(_STARTS)) and not _NUMBER_PATTERN.fullmatch(text):
        return "'" + text
    return text


def unprotect(text: str) -> str:
    """Take off the apostrophe that `protect` put on."""
    if text.startswith("'") and text[1:].startswith(tuple(_STARTS)):
        return text[1:]
    return text


def protect_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Protect every text cell and every column name of a frame.

    Categories of enumerated columns are looked at once, not row by row.
    """
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    near = [pl.col(texts).is_between(pl.lit(a), pl.lit(b), closed="left") for a, b in _RANGES]
    found = frame.select((near[0] | near[1] | near[2]).any()).row(0, named=True) if texts else {}
    risky = [name for name, some in found.items() if some]
    risky += [
        name
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Categorical)
        or (isinstance(dtype, pl.Enum) and dtype.categories.str.contains(_START).any())
    ]
    protected = []
    for name in risky:
        text = pl.col(name).cast(pl.String)
        formula = text.str.contains(_START) & ~text.str.contains(_NUMBER)
        protected.append(pl.when(formula).then(pl.lit("'") + text).otherwise(text).alias(name))
    return frame.with_columns(protected).rename(protect)


BLOCK_BYTES = 1 << 23
RECORD_BYTES = 1 << 28
BATCH_ROWS = 1 << 18
_GUESS_BYTES = 1 << 20
_HEADER_BYTES = 1 << 16

COMMAS = Dialect().settled("")
FIRST_NAME = "column_1"
"""What the first column is called if the header gives it no name, as R and pandas write it."""

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_NOT_SKELETON = {
    mark: bytes(byte for byte in range(256) if byte not in b'"\n' + mark.encode())
    for mark in SEPARATORS
}
_NAMED = {"\t": "tab"}
_BLANK_LINE = re.compile(rb"(?:^|\n)\r?(?=\n)")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
        source = handle if isinstance(path, RemoteFile) else pa.PythonFile(handle, "r")
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


def open_csv(path: File, dialect: Dialect) -> TableReader:
    """Open a text file; `expected_rows` is 0 only if it surely has none."""
    dialect = dialect.settled(str(path))
    try:
        columns, has_rows = read_header(path, dialect)
        expected = None if has_rows else 0
        # Bytes on disk say nothing of the rows of a compressed file.
        if has_rows and not compression_of(path):
            with path.open("rb") as handle:
                start = handle.read(_GUESS_BYTES)
            lines = size_of(path) / max(len(start), 1) * start.count(b"\n")
            expected = max(1, round(lines) - 1)
    except OSError as error:
        raise unreadable(path, error) from None
    check_names(columns, str(path))
    part = partial(read_batches, path, dialect=dialect)
    return TableReader(columns, str(path), False, (part,), expected_rows=expected, dialect=dialect)


def read_header(path: File, dialect: Dialect = COMMAS) -> tuple[tuple[str, ...], bool]:
    """Return the column names of a CSV file, and whether any row follows them.

    The header is the first line. No byte behind it decides whether it can be read.
    """
    with open_text(path, dialect) as handle:
        start = _skip_mark(path, handle)
        while b"\n" not in start and (more := handle.read(_HEADER_BYTES)):
            start += more
            if len(start) > RECORD_BYTES:
                raise _endless(path)
        line, _, rest = start.partition(b"\n")
        # Anything but line ends is a row, and so is what cannot be read.
        rows = True
        while not rest.strip(b"\r\n"):
            try:
                rest = handle.read(_HEADER_BYTES)
            except DataError:
                break
            if not rest:
                rows = False
                break
    if not (rows or line.strip(b"\r")):
        raise DataError(f"{path}: the file is empty; give one with a header line and rows")
    _check_bytes(path, line, 1)
    return _header_names(path, line + b"\n", dialect), rows


def read_batches(
    path: File,
    wanted: Wanted | None = None,
    *,
    dialect: Dialect = COMMAS,
    block_bytes: int | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a CSV file as frames of text, in order.

    Parameters
    ----------
    path
        The file.
    wanted
        Which rows and columns; None for all. Blocks that are passed over are checked and not
        parsed. A block with a value that does not fit its hint is read as text.
    dialect
        How the file is written, with nothing left open.
    block_bytes
        Bytes to read at a time; the rows do not depend on it.
    """
    skip = 0 if wanted is None else wanted.skip
    hints = {} if wanted is None else wanted.hints
    # One block is parsed while the one before it is used and the one after it is checked.
    with ThreadPoolExecutor(1) as parser:
        parsing: Future[pl.DataFrame] | None = None
        for block in _checked(path, dialect, block_bytes or BLOCK_BYTES):
            passed = min(skip, block.rows)
            skip -= passed
            if passed == block.rows:
                continue
            started = parser.submit(block.parsed, passed, hints)
            if parsing is not None:
                yield from _slices(parsing.result(), wanted)
            parsing = started
        if parsing is not None:
            yield from _slices(parsing.result(), wanted)


def _slices(frame: pl.DataFrame, wanted: Wanted | None) -> Iterator[pl.DataFrame]:
    return (frame if wanted is None else frame.select(wanted.columns)).iter_slices(BATCH_ROWS)


def _checked(path: File, dialect: Dialect, block_bytes: int) -> Iterator[_Block]:
    """Yield blocks whose records are sound."""
    names: tuple[str, ...] = ()
    line = 1
    for block in _blocks(path, dialect, block_bytes):
        _check_bytes(path, block, line)
        body = block
        if not names:
            end = block.find(b"\n") + 1
            names = _header_names(path, block[:end], dialect)
            body = block[end:]
            line += 1
        if body:
            rows = _check_records(path, body, len(names), line, dialect.separator)
            yield _Block(path, body, names, rows, dialect.separator)
            line += body.count(b"\n") if _QUOTE in body else rows


def _blocks(path: File, dialect: Dialect, block_bytes: int) -> Iterator[bytes]:
    """Yield blocks of whole records, each ending with a line end."""
    with open_text(path, dialect) as handle:
        carry = _skip_mark(path, handle)
        size = block_bytes
        while data := handle.read(size):
            carry += data
            cut = _last_record_end(carry)
            if cut:
                yield carry[:cut]
                carry = carry[cut:]
            elif len(carry) > RECORD_BYTES:
                raise _endless(path)
            size = max(block_bytes, len(carry))
    if carry.count(b'"') % 2:
        raise DataError(
            f"{path}: a quote is opened and never closed; close it, or double it inside a "
            "quoted field"
        )
    carry = carry.rstrip(b"\r\n")
    if carry:
        yield carry + b"\n"


def _endless(path: File) -> DataError:
    return DataError(
        f"{path}: a record has no end within {RECORD_BYTES >> 20} MiB; look for a quote that is "
        "opened and never closed"
    )


def _skip_mark(path: File, handle: Bytes) -> bytes:
    start = b""
    while len(start) < 3 and (more := handle.read(3 - len(start))):
        start += more
    if start[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise DataError(
            f"{path}: the file is UTF-16; say so with --encoding utf-16, or with encoding = "
            '"utf-16" under [table] of the schema'
        )
    return start.removeprefix(_BYTE_ORDER_MARK)


def _last_record_end(data: bytes) -> int:
    """Position after the last whole record that is not followed by blank lines only."""
    end = data.rfind(b"\n")
    odd = data.count(b'"', 0, max(end, 0)) % 2 if _QUOTE in data else 0
    while end >= 0 and odd:
        before = data.rfind(b"\n", 0, data.rfind(b'"', 0, end))
        odd = (odd + data.count(b'"', max(before, 0), end)) % 2
        end = before
    if end < 0:
        return 0
    # Blank lines wait for what follows them: at the end of the file they are dropped.
    used = end
    while used and data[used - 1] in b"\r\n":
        used -= 1
    return data.find(b"\n", used) + 1 if used else 0


def _header_names(path: File, record: bytes, dialect: Dialect) -> tuple[str, ...]:
    mark = dialect.separator
    if record.count(b'"') % 2:
        raise DataError(
            f"{path}: line 1: a quote is opened and never closed; the names of all columns stand "
            "on the first line, so close it there"
        )
    _check_quotes(path, record, 1, mark)
    line = record.decode().rstrip("\r\n")
    try:
        cells = next(csv.reader([line], delimiter=mark, strict=True), [])
    except csv.Error:
        raise DataError(f"{path}: line 1: the column names cannot be read") from None
    others = [each for each in ",;\t|" if each != mark and each in line]
    if len(cells) == 1 and _QUOTE not in record and others:
        said = _NAMED.get(others[0], others[0])
        raise DataError(
            f"{path}: fields are not separated by {_called(mark)}; if they are by "
            f"{_called(others[0])}, say --separator '{said}', or separator = \"{said}\" under "
            "[table] of the schema"
        )
    names = [unprotect(cell) for cell in cells]
    if len(names) > 1 and not names[0] and FIRST_NAME not in names:
        names[0] = FIRST_NAME
    return tuple(names)


def _called(mark: str) -> str:
    return {",": "commas", ";": "semicolons", "\t": "tabs"}.get(mark, repr(mark))


def _check_bytes(path: File, block: bytes, line: int) -> None:
    zero = block.find(b"\0")
    if zero >= 0:
        at = line + block.count(b"\n", 0, zero)
        raise DataError(
            f"{path}: line {at}: the file has zero bytes and is not text; save it as UTF-8 CSV"
        )
    if block.isascii():
        return
    try:
        block.decode()
    except UnicodeDecodeError as error:
        at = line + block.count(b"\n", 0, error.start)
        raise DataError(
            f"{path}: line {at}: the text is not UTF-8; say which encoding it has (--encoding, or "
            "encoding under [table] of the schema)"
        ) from None


def _check_records(path: File, body: bytes, fields: int, line: int, mark: str) -> int:
    """Refuse records without exactly `fields` fields; return the number of records."""
    skeleton = body.translate(None, _NOT_SKELETON[mark])
    quoted = _QUOTE in skeleton
    if quoted:
        _check_quotes(path, body, line, mark)
        skeleton = skeleton.replace(b'""', b"")
        marks = np.frombuffer(skeleton, dtype=np.uint8)
        skeleton = marks[_outside(marks)].tobytes() if _QUOTE in skeleton else skeleton
    rows = len(skeleton) // fields
    if skeleton != (mark.encode() * (fields - 1) + b"\n") * rows:
        raise _ragged(path, body, skeleton, fields, line)
    quotes = position = 0
    for match in _BLANK_LINE.finditer(body) if fields == 1 else ():
        quotes += body.count(b'"', position, match.end())
        position = match.end()
        if quotes % 2 == 0:
            raise _blank(path, line + body.count(b"\n", 0, position))
    return rows


def _outside(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Say of every byte whether it is neither a quote nor between two."""
    quote = data == _QUOTE
    return np.asarray(~(quote | np.logical_xor.accumulate(quote)))


def _check_quotes(path: File, body: bytes, line: int, mark: str) -> None:
    """Refuse quotes that neither open nor close a whole field."""
    data = np.frombuffer(body, dtype=np.uint8)
    at = np.flatnonzero(data == _QUOTE)
    opening, closing = at[0::2], at[1::2]
    before = data[np.maximum(opening, 1) - 1]
    good_open = (opening == 0) | _one_of(before, ord(mark), _NEWLINE, _QUOTE)
    after = data[np.minimum(closing, len(data) - 2) + 1]
    good_close = _one_of(after, ord(mark), _NEWLINE, _RETURN, _QUOTE)
    if good_open.all() and good_close.all():
        return
    bad = min([*opening[~good_open][:1], *closing[~good_close][:1]])
    number = line + body.count(b"\n", 0, int(bad))
    raise DataError(
        f"{path}: line {number}: a quote stands inside a field; quote the whole field and "
        "double the quotes inside it"
    )


def _one_of(data: NDArray[np.uint8], *characters: int) -> NDArray[np.bool_]:
    """Say of every byte whether it is one of these."""
    listed = np.zeros(256, dtype=np.bool_)
    listed[list(characters)] = True
    return listed[data]


def _ragged(path: File, body: bytes, skeleton: bytes, fields: int, line: int) -> DataError:
    counts = [len(commas) + 1 for commas in skeleton.split(b"\n")[:-1]]
    record = next(index for index, count in enumerate(counts) if count != fields)
    data = np.frombuffer(body, dtype=np.uint8)
    ends = np.flatnonzero((data == _NEWLINE) & _outside(data))
    start = int(ends[record - 1]) + 1 if record else 0
    number = line + body.count(b"\n", 0, start)
    if not body[start : int(ends[record])].strip(b"\r"):
        return _blank(path, number)
    return DataError(
        f"{path}: line {number}: {counts[record]} fields where the header has {fields}; mend "
        "the line, and quote fields that hold separators"
    )


def _blank(path: File, line: int) -> DataError:
    return DataError(
        f'{path}: line {line} is blank; remove it, or write "" for an empty field of a table '
        "with one column"
    )


@dataclass(frozen=True)
class _Block:
    """Checked records, ready to be parsed."""

    path: File
    body: bytes
    names: Sequence[str]
    rows: int
    separator: str

    def parsed(self, passed: int, hints: Mapping[str, pl.DataType]) -> pl.DataFrame:
        """Return the records after the first `passed`."""
        if hints:
            schema = {name: hints.get(name, pl.String()) for name in self.names}
            with suppress(pl.exceptions.PolarsError):
                typed = pl.read_csv(
                    self.body, has_header=False, schema=schema, separator=self.separator
                )
                if typed.shape == (self.rows, len(self.names)):
                    return typed.slice(passed)
        try:
            frame = pl.read_csv(
                self.body, has_header=False, infer_schema=False, separator=self.separator
            )
        except (pl.exceptions.PolarsError, OSError):
            raise DataError(f"{self.path}: the file cannot be read as CSV; save it again") from None
        if frame.shape != (self.rows, len(self.names)):
            raise DataError(f"{self.path}: the quotes are not balanced; quote fields in whole")
        frame.columns = list(self.names)
        return frame.slice(passed)
