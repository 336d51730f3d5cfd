"""The hash function h_i(x_-i): heads in clear, then tail bits by XOR.

`HashSpec` fixes, for every target, which features are its heads and how many tail bits
follow. The tail of a row is the XOR of public bits, one word per (feature, category),
over all features that are neither target nor head, so that a sweep updates it in O(1)
and every engine computes the same key. Nothing here depends on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.sampling_arrays import KeyTables

Lines = tuple[tuple[int, ...], ...]

KEY_BITS = 63
MOST_TAIL_BITS = 16


@dataclass(frozen=True)
class HashSpec:
    """Keys of all targets.

    Parameters
    ----------
    names, category_counts
        Name of every feature, and how many codes it is counted by: its categories, or its
        levels where those are merged.
    heads
        For every target the head features (indices), most significant digit first.
    tail_bits
        Width t of the tail; the paper uses 1.
    details
        Features that are drawn given their parent alone: their keys have no tail, and
        they enter no other key.
    levels
        Level of every category of every feature, for codes that are merged before they are
        counted; empty where nothing is merged.
    head_levels
        Digit of every code of every feature where it serves as a head; empty: the code.
    """

    names: tuple[str, ...]
    category_counts: tuple[int, ...]
    heads: tuple[tuple[int, ...], ...]
    tail_bits: int = 1
    details: tuple[int, ...] = ()
    levels: Lines = ()
    head_levels: Lines = ()

    def __post_init__(self) -> None:
        if not 0 <= self.tail_bits <= MOST_TAIL_BITS:
            raise ParameterError(f"tail bits must lie between 0 and {MOST_TAIL_BITS}")
        for target, heads in enumerate(self.heads):
            if target in heads or len(set(heads)) < len(heads):
                raise ParameterError(
                    f"feature {self.names[target]!r}: its heads must be distinct others"
                )
            if self.key_space(target) > 1 << KEY_BITS:
                raise ParameterError(
                    f"feature {self.names[target]!r}: a key of {len(heads)} heads does not fit in "
                    f"{KEY_BITS} bits; use --heads {self._most_heads(target)} or fewer"
                )

    def key_space(self, target: int) -> int:
        """Return the number of possible keys of a target, seen or not."""
        return prod(self.head_counts[head] for head in self.heads[target]) << self.tail_bits

    @cached_property
    def head_counts(self) -> tuple[int, ...]:
        """How many digits every feature has where it serves as a head."""
        if not self.head_levels:
            return self.category_counts
        return tuple(max(line) + 1 for line in self.head_levels)

    def _most_heads(self, target: int) -> int:
        space, most = 1 << self.tail_bits, 0
        for head in self.heads[target]:
            space *= self.head_counts[head]
            if space > 1 << KEY_BITS:
                break
            most += 1
        return most

    @cached_property
    def tables(self) -> KeyTables:
        """The same as arrays for the kernels."""
        category_start = np.concatenate([[0], np.cumsum(self.category_counts)]).astype(np.int64)
        head_start = np.concatenate([[0], np.cumsum([len(h) for h in self.heads])]).astype(np.int64)
        flat = [head for heads in self.heads for head in heads]
        return KeyTables(
            category_start,
            head_start,
            np.array(flat, dtype=np.int64),
            self._digits(),
            np.array(self.head_counts, dtype=np.int64),
            self._tail_codes(),
            np.array([0 if i in self.details else -1 for i in range(len(self.heads))], np.int64),
            self.tail_bits,
        )

    def _digits(self) -> NDArray[np.int64]:
        """Return the digit that every code gives a key."""
        if not self.head_levels:
            return np.concatenate([np.arange(count, dtype=np.int64) for count in self.head_counts])
        return np.concatenate([np.array(line, dtype=np.int64) for line in self.head_levels])

    def _tail_codes(self) -> NDArray[np.int64]:
        """Return the public bits of every category; those of details are 0, which XOR ignores."""
        codes = tail_codes(self.category_counts, self.tail_bits)
        starts = np.concatenate([[0], np.cumsum(self.category_counts)])
        for detail in self.details:
            codes[starts[detail] : starts[detail + 1]] = 0
        return codes


def tail_codes(category_counts: tuple[int, ...], tail_bits: int) -> NDArray[np.int64]:
    """Return the public bits of every (feature, category): a fixed mixing of the two numbers.

    The mixing is the finaliser of SplitMix64, taken as a public constant function; the
    guarantee does not rest on its quality.
    """
    feature = np.repeat(np.arange(len(category_counts), dtype=np.uint64), category_counts)
    category = np.concatenate([np.arange(count, dtype=np.uint64) for count in category_counts])
    word = (feature << np.uint64(32)) + category + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return (
        (word >> np.uint64(64 - tail_bits)).astype(np.int64)
        if tail_bits
        else np.zeros(len(word), dtype=np.int64)
    )
