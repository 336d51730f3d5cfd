"""Exact random integers from an AES-CTR stream (R15).

A `RandomStream` holds a secret 256-bit key. Without a seed the key comes from the
operating system, is replaced after a fork, is never written and cannot be copied or
pickled. With a seed the key is derived from it: the stream is then reproducible, and
the ledger must record that, because a seeded draw protects nobody.

`substream` numbers give independent keystreams of one key, so that work split into
chunks yields the same words whatever the number of threads. Words become exact uniform
integers by rejection, here for Python callers (`below`) and in `pegsynth.kernels` for
compiled ones.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import NoReturn, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

_BUFFER_WORDS = 512
_ZEROS = bytes(1 << 16)
_live: weakref.WeakSet[RandomStream] = weakref.WeakSet()


class RandomStream:
    """A source of 64-bit words that nobody can predict, or that a seed fixes.

    Parameters
    ----------
    seed
        None for a secure stream. A whole number or text makes it reproducible.
    """

    def __init__(self, seed: int | str | None = None) -> None:
        self._seeded = seed is not None
        self._next_substream = 0
        self._lock = threading.Lock()
        self._key = _seed_key(seed) if seed is not None else os.urandom(32)
        _live.add(self)

    @property
    def seeded(self) -> bool:
        """Whether a seed fixed this stream; such draws carry no guarantee."""
        return self._seeded

    @property
    def shared_key(self) -> bytes | None:
        """What lets another process go on with a seeded stream; None for a secure one.

        The key of a secure stream never leaves its process.
        """
        return self._key if self._seeded else None

    @classmethod
    def from_shared(cls, key: bytes | None) -> RandomStream:
        """Return the seeded stream of a shared key, or for None a secure one of its own."""
        stream = cls()
        if key is not None:
            stream._key, stream._seeded = key, True
        return stream

    def substream(self, number: int | None = None, *, skip: int = 0) -> Words:
        """Open keystream `number` of this key, or the next one that was not handed out.

        Numbers below 2**63 are the caller's to assign; the automatic ones lie above.
        A secure stream hands every number out at most once per key by construction of
        its callers: a number used twice would repeat its words.

        Parameters
        ----------
        skip
            Words to leave out at the beginning, at no cost.
        """
        with self._lock:
            if number is None:
                number = (1 << 63) + self._next_substream
                self._next_substream += 1
        return Words(self, number, skip)

    def substreams(self, count: int) -> int:
        """Reserve `count` consecutive automatic numbers and return the first."""
        with self._lock:
            first = (1 << 63) + self._next_substream
            self._next_substream += count
        return first

    def child(self) -> RandomStream:
        """Return a stream of its own, so that who draws when does not change what is drawn."""
        if not self.seeded:
            return RandomStream()
        return RandomStream(self.substream().take(4).tobytes().hex())

    def aside(self, purpose: str) -> RandomStream:
        """Return a stream for a purpose of its own; what else is drawn does not change by it."""
        if not self.seeded:
            return RandomStream()
        key = hashlib.sha256(b"pegsynth aside " + self._key + purpose.encode()).digest()
        return RandomStream.from_shared(key)

    def _keystream(self, number: int, block: int = 0) -> CipherContext:
        counter = number.to_bytes(8, "big") + block.to_bytes(8, "big")
        return Cipher(AES256(self._key), CTR(counter)).encryptor()

    def _rekey(self) -> None:
        # The child of a fork must not repeat its parent's words, nor wait for a lock
        # that a thread of the parent held.
        if not self._seeded:
            self._key = os.urandom(32)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"RandomStream({'seeded' if self._seeded else 'secure'})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a RandomStream cannot be copied or pickled: its words would repeat")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()


Streams: TypeAlias = Callable[[int | None], RandomStream]
"""Makes the stream of a run from its seed: `RandomStream` itself, or what an audit puts there."""


class Words:
    """One keystream: an endless sequence of 64-bit words, read once."""

    def __init__(self, stream: RandomStream, number: int, skip: int = 0) -> None:
        self._stream = stream
        self._number = number
        self._key = stream._key
        # A block of the cipher is two words.
        self._context = stream._keystream(number, skip // 2)
        self._context.update(bytes(8 * (skip % 2)))
        self._buffer: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._position = 0

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words."""
        self._follow_fork()
        size = 8 * count
        out = np.empty(size + 16, dtype=np.uint8)
        view = memoryview(out.data)
        done = 0
        while done < size:
            step = min(len(_ZEROS), size - done)
            self._context.update_into(_ZEROS[:step], view[done:])
            done += step
        return out[:size].view(np.uint64)

    def below(self, bound: int) -> int:
        """Return an exact uniform integer in [0, bound), by rejection; any size of bound."""
        if bound < 1:
            raise ValueError("the bound of a uniform integer must be positive")
        bits = (bound - 1).bit_length()
        words = max(1, -(-bits // 64))
        while True:
            value = 0
            for _ in range(words):
                value = (value << 64) | self._word()
            value >>= 64 * words - bits
            if value < bound:
                return value

    def _word(self) -> int:
        if self._position >= len(self._buffer) or self._stream._key is not self._key:
            self._buffer = self.take(_BUFFER_WORDS)
            self._position = 0
        word = int(self._buffer[self._position])
        self._position += 1
        return word

    def _follow_fork(self) -> None:
        if self._stream._key is not self._key:
            self._key = self._stream._key
            self._context = self._stream._keystream(self._number)
            self._buffer = np.empty(0, dtype=np.uint64)
            self._position = 0

    def __reduce__(self) -> NoReturn:
        raise TypeError("random words cannot be copied or pickled: they would repeat")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()


def _seed_key(seed: int | str) -> bytes:
    return hashlib.sha256(f"pegsynth seed {type(seed).__name__} {seed}".encode()).digest()


def _rekey_after_fork() -> None:
    for stream in list(_live):
        stream._rekey()


os.register_at_fork(after_in_child=_rekey_after_fork)
