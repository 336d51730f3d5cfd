"""Bytes in, damaged bytes out: flips, cuts, splices and edits of length fields."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

NUMBERS = (
    *(0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1 << 20, 1 << 24, 1 << 30),
    *((1 << 31) - 1, 1 << 31, (1 << 32) - 1, 10**12, (1 << 63) - 1, (1 << 64) - 1),
)
TOKENS = (
    *(b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\r", b"\n"),
    *(b",", b'"', b'""', b"'", b"\\", b"\x1b[31m", b"=1+1", b"@x", b"-", b"+", b"{", b"[", b"[["),
    *(b"null", b"NaN", b"1e999", b"-0", b"9" * 400, b"true", b"PAR1", b"ARROW1", b"%s", b"../"),
)
_MOST_BYTES = 1 << 20

Change = Callable[[bytearray, random.Random], None]


def damaged(data: bytes, source: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Return a copy with one to eight random changes; `others` are files to splice with."""
    found = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        if others and source.random() < 0.08:
            _splice(found, source, source.choice(others))
        else:
            source.choice(_CHANGES)(found, source)
    return bytes(found[:_MOST_BYTES])


def _spot(data: bytearray, source: random.Random) -> int:
    """Pick a place; headers and footers more often than the middle."""
    size = len(data)
    if not size:
        return 0
    near = min(size, source.choice((16, 64, 1024)))
    kind = source.random()
    if kind < 0.3:
        return source.randrange(near)
    if kind < 0.65:
        return size - 1 - source.randrange(near)
    return source.randrange(size)


def _flip(data: bytearray, source: random.Random) -> None:
    if data:
        data[_spot(data, source)] ^= 1 << source.randrange(8)


def _overwrite(data: bytearray, source: random.Random) -> None:
    if data:
        data[_spot(data, source)] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))


def _truncate(data: bytearray, source: random.Random) -> None:
    del data[_spot(data, source) :]


def _remove(data: bytearray, source: random.Random) -> None:
    start = _spot(data, source)
    del data[start : start + source.choice((1, 2, 4, 8, 32, 200))]


def _repeat(data: bytearray, source: random.Random) -> None:
    start = _spot(data, source)
    piece = data[start : start + source.choice((1, 4, 16, 64, 256))]
    data[start:start] = piece * source.choice((1, 1, 2, 10))


def _insert(data: bytearray, source: random.Random) -> None:
    start = _spot(data, source)
    data[start:start] = source.choice(TOKENS)


def _random(data: bytearray, source: random.Random) -> None:
    start, size = _spot(data, source), source.choice((1, 2, 8, 64))
    data[start : start + size] = source.randbytes(size)


def _length(data: bytearray, source: random.Random) -> None:
    """Write a number that a reader may take for a size."""
    start = _spot(data, source)
    code = source.choice("BHIQ")
    size = struct.calcsize(code)
    number = source.choice(NUMBERS) % (1 << (8 * size))
    data[start : start + size] = struct.pack(source.choice("<>") + code, number)


def _variable_length(data: bytearray, source: random.Random) -> None:
    """Write a number as Thrift's compact protocol and Protocol Buffers do."""
    number, start = source.choice(NUMBERS), _spot(data, source)
    number = number * 2 if source.random() < 0.5 else number
    text = bytearray()
    while number > 0x7F:
        text.append(number & 0x7F | 0x80)
        number >>= 7
    text.append(number)
    data[start : start + source.choice((1, len(text)))] = text


def _swap(data: bytearray, source: random.Random) -> None:
    first, second, size = _spot(data, source), _spot(data, source), source.choice((1, 4, 16))
    one, two = data[first : first + size], data[second : second + size]
    if len(one) == len(two):
        data[first : first + size], data[second : second + size] = two, one


def _splice(data: bytearray, source: random.Random, other: bytes) -> None:
    cut, start = _spot(data, source), _spot(bytearray(other), source)
    data[cut:] = other[start:]


_CHANGES: tuple[Change, ...] = (
    *(_flip, _flip, _overwrite, _overwrite, _truncate, _remove, _repeat, _insert, _random),
    *(_length, _length, _variable_length, _swap),
)
