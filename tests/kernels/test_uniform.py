"""Every integer below a total is given by the same number of words, exactly (R15)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.kernels.uniform import REJECTED, bounded_array

WORD = 1 << 64


def shipped(words, total, bits):
    return bounded_array(words, np.uint64(total), np.uint64(bits))


def modulo(words, total, bits):
    """A broken twin: the remainder, nothing rejected."""
    return words % np.uint64(total)


def multiply_only(words, total, bits):
    """A broken twin: the high part of the product, nothing rejected."""
    return (words * np.uint64(total)) >> np.uint64(bits)


def is_exact(method, total, bits):
    """Whether all words of `bits` bits give each integer equally often, fewest rejected."""
    given_values = method(np.arange(1 << bits, dtype=np.uint64), total, bits)
    accepted = given_values[given_values != REJECTED]
    if len(given_values) - len(accepted) != (1 << bits) % total or accepted.max() >= total:
        return False
    hits = np.bincount(accepted.astype(np.int64), minlength=total)
    return bool(np.all(hits == (1 << bits) // total))


@pytest.mark.parametrize("bits", range(1, 9))
def test_all_words_of_a_few_bits(bits):
    assert all(is_exact(shipped, total, bits) for total in range(1, (1 << bits) + 1))


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("broken", [modulo, multiply_only])
def test_reductions_without_rejection_are_caught(broken, bits):
    """Only a total that divides the number of words needs no rejection."""
    for total in range(1, (1 << bits) + 1):
        assert is_exact(broken, total, bits) == ((1 << bits) % total == 0)


def slow(word, total):
    product = word * total
    return int(REJECTED) if product % WORD < WORD % total else product // WORD


def one(word, total):
    return int(shipped(np.array([word], dtype=np.uint64), total, 64)[0])


TOTALS = st.one_of(
    st.integers(1, 2**63),
    st.integers(1, 1000),
    st.integers(2**62, 2**63),
    st.sampled_from([1, 2**32, 2**62, 2**63 - 1, 2**63]),
)


@given(total=TOTALS, words=st.lists(st.integers(0, WORD - 1), min_size=1, max_size=50))
def test_64_bits_against_big_integers(total, words):
    found = shipped(np.array(words, dtype=np.uint64), total, 64)
    assert found.tolist() == [slow(word, total) for word in words]


@given(total=TOTALS, data=st.data())
def test_64_bits_give_every_integer_equally_many_words(total, data):
    """The words of one integer are a run; its ends are found in exact arithmetic."""
    value = data.draw(st.integers(0, total - 1))
    first_of_run = -(-value * WORD // total)
    first = -(-(value * WORD + WORD % total) // total)
    last = -(-(value + 1) * WORD // total) - 1
    assert last - first + 1 == WORD // total
    assert one(first, total) == one(last, total) == value
    if first_of_run < first:
        assert one(first_of_run, total) == one(first - 1, total) == int(REJECTED)
