"""Exact uniform integers from random words, by rejection (R15).

`bounded` maps one word of `bits` random bits to an integer below `total`, or rejects it.
Every integer below `total` is given by the same number of words, so accepted values are
exactly uniform. The word width is an argument: production uses 64, and tests enumerate
all words of a few bits through the very same code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pegsynth.kernels.arrays import UInt64
from pegsynth.kernels.compiled import helper, kernel

REJECTED = np.uint64(0xFFFFFFFFFFFFFFFF)
"""What `bounded` returns for a word that must be thrown away; never a valid integer."""


@intrinsic
def split_product(typing_context: Any, word: Any, total: Any, bits: Any) -> Any:
    """Split the 128-bit product of word and total at `bits`: (high part, low part)."""
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64, types.uint64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        wide, narrow = ir.IntType(128), ir.IntType(64)
        left, right, shift = (builder.zext(argument, wide) for argument in arguments)
        product = builder.mul(left, right)
        high = builder.trunc(builder.lshr(product, shift), narrow)
        mask = builder.sub(builder.shl(wide(1), shift), wide(1))
        low = builder.trunc(builder.and_(product, mask), narrow)
        return cgutils.pack_array(builder, [high, low])

    return signature, generate


@intrinsic
def _multiply_full(typing_context: Any, word: Any, total: Any) -> Any:
    """Split the 128-bit product of word and total in the middle, as the processor does."""
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        wide, narrow = ir.IntType(128), ir.IntType(64)
        left, right = (builder.zext(argument, wide) for argument in arguments)
        product = builder.mul(left, right)
        high = builder.trunc(builder.lshr(product, wide(64)), narrow)
        return cgutils.pack_array(builder, [high, builder.trunc(product, narrow)])

    return signature, generate


@helper
def bounded(word: np.uint64, total: np.uint64, bits: np.uint64) -> np.uint64:
    """Return the integer below `total` that `word` stands for, or `REJECTED`.

    Lemire's multiplication method: the high part of word * total is the candidate, and
    the 2**bits mod total smallest low parts are rejected. Requires total <= 2**bits.
    """
    if bits == np.uint64(64):
        high, low = _multiply_full(word, total)
    else:
        high, low = split_product(word, total, bits)
    if low < total:
        # 2**bits mod total, without ever forming 2**64.
        all_ones = REJECTED >> (np.uint64(64) - bits)
        if low < (all_ones - total + np.uint64(1)) % total:
            return REJECTED
    return high


def bounded_array(words: UInt64, total: np.uint64, bits: np.uint64) -> UInt64:
    """Apply `bounded` to every word (for tests and small callers)."""
    out = np.empty(len(words), dtype=np.uint64)
    _bound_all(words, total, bits, out)
    return out


@kernel
def _bound_all(words: UInt64, total: np.uint64, bits: np.uint64, out: UInt64) -> None:
    for index in range(len(words)):
        out[index] = bounded(words[index], total, bits)
