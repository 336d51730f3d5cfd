"""A small table with dependent columns, and blocks released of it."""

from __future__ import annotations

from functools import cache

import numpy as np

from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._values import Domain
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream

COUNTS = (3, 3, 20, 2, 6)
ORDERED = (False, False, True, False, False)


def table_of_codes(rows=3000, *, seed=1):
    """Return codes: an ordered column of 20 categories, and rare ones in the last column."""
    words = np.random.default_rng(seed)
    first = words.integers(0, 3, rows)
    second = (first + words.integers(0, 2, rows)) % 3
    ordered = np.minimum(words.poisson(4 + 3 * first), 19)
    binary = (ordered > 6) ^ (words.random(rows) < 0.1)
    rare = words.choice(6, rows, p=[0.5, 0.3, 0.1, 0.06, 0.03, 0.01])
    return np.stack([first, second, ordered, binary, rare], axis=1).astype(np.uint8)


def whole_of(epsilon, delta=None):
    """Return the allowance of a budget."""
    return Budget(epsilon=epsilon, delta=delta).whole("pure" if delta is None else "zcdp")


@cache
def released_of(epsilon=10.0, delta=None, *, rows=1000, steps=None, seed=5, rules=(), apart=()):
    """Release blocks of the table; return them, the weighted pool and the events."""
    stream = RandomStream(seed)
    budget_filter = PrivacyFilter(whole_of(epsilon, delta), stream)
    released, fit = release_blocks(
        table_of_codes(),
        Domain(COUNTS, ORDERED, rules=rules, apart=frozenset(apart)),
        budget_filter,
        Work(stream, steps=steps or Steps(residuals=False)),
        rows=rows,
    )
    return released, fit, budget_filter.events


def shares_of(codes, feature):
    """Return the shares of the categories in a column."""
    return np.bincount(codes[:, feature], minlength=COUNTS[feature]) / len(codes)
