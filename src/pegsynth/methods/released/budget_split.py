"""How the whole budget is split, by public figures and the noisy number of rows.

One-way counts get the more, the larger their error would be if everything went there. What they
leave goes to choices, to blocks, and to the tables of the second round. How loud the noise is
decides which `Steps` are taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pegsynth.kernels.arrays import Float64
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.released.domain import Domain
from pegsynth.methods.released.pair_residuals import margins_beside_pairs, pairs_are_quiet
from pegsynth.methods.released.steps import FIRST_ROUND, TOTAL_SHARE, Steps

_LOUD_ABOVE, _QUIET_BELOW = 3.0, 0.5
"""Noise is loud, or hardly there, where the best one-way counts are so many times the wanted error
off."""
WANTED_MARGIN_ERROR = 0.01
"""One-way counts get as much of the budget as brings their error down to this."""


@dataclass(frozen=True)
class Split:
    """Parts of the whole budget: one-way counts, each choice, and both rounds."""

    margins: float
    choice: float
    first: float
    second: float

    @property
    def rest(self) -> float:
        """What both rounds have together."""
        return self.first + self.second

    def without(self, spent: float) -> Split:
        """Return the same after another part was spent, which both rounds go without."""
        rest = self.first + self.second
        kept = max(rest - spent, 0.0) / rest if rest > 0 else 1.0
        return replace(self, first=self.first * kept, second=self.second * kept)


def steps_under(
    price: Price, total: int, domain: Domain, steps: Steps, rows: int
) -> tuple[Steps, bool]:
    """Return the steps that the noise asks for, and whether it is loud.

    Parameters
    ----------
    total
        The noisy number of rows.
    rows
        Rows that are to be drawn.
    """
    sizes, details = domain.sizes, domain.details
    weights = margin_weights(sizes, domain.known)
    error = margin_error(price, total, sizes, weights)
    all_pairs = pairs_are_quiet(price, total, sizes, details, steps, rows)
    placed = len(sizes) - len(details)
    drowned = not all_pairs and choice_error(price, total, placed, steps) > steps.drowned_above
    loud = drowned or error > _LOUD_ABOVE * WANTED_MARGIN_ERROR
    if loud:
        steps = steps.under_noise(drowned=drowned)
    elif error < _QUIET_BELOW * WANTED_MARGIN_ERROR:
        steps = steps.in_quiet()
    if all_pairs:
        known = margin_error(price, total, sizes, weights, given_total=True)
        steps = steps.for_pairs(margins_beside_pairs(price, total, sizes, details, known, steps))
    return steps, loud


def margin_weights(
    category_counts: Sequence[int], public: Sequence[Float64 | None] = ()
) -> Float64:
    """Return how the budget of the one-way counts is split: wide features get more."""
    weights = np.array([count ** (2 / 3) for count in category_counts])
    for feature, known in enumerate(public):
        if known is not None:
            weights[feature] = 0.0
    whole = weights.sum()
    shared: Float64 = weights / whole if whole > 0 else weights
    return shared


def block_deviation(price: Price, split: Split, features: int) -> float:
    """Return the noise on a block of the first round, if every feature gets one."""
    return price.deviation(split.first / max(features - 1, 1))


def margin_error(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    weights: Float64,
    *,
    given_total: bool = False,
) -> float:
    """Return the error of one-way tables if the whole budget went there.

    It is smaller once the number of rows is given, which all tables together tell well.
    """
    errors = [
        math.sqrt(2 / math.pi)
        * (math.sqrt(count * (count - 1)) if given_total else count)
        * price.deviation(float(weight))
        / (2 * total)
        for count, weight in zip(category_counts, weights, strict=True)
        if weight > 0
    ]
    return float(np.sum(errors)) / len(category_counts)


def choice_error(price: Price, total: int, features: int, steps: Steps) -> float:
    """Return by how much the best of all pairs must stand out to be chosen, as a part of all rows.

    A choice adds noise to the distance of every candidate; the largest of so many is about the
    logarithm of their number, in units of that noise.
    """
    pairs = features * (features - 1) / 2
    if pairs < 2:
        return 0.0
    share = steps.under_noise().first_choices / (features - 1)
    return price.choice_noise(share) * math.log(pairs) / (2 * total)


def split_budget(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    weights: Float64,
    steps: Steps,
    placed: int | None = None,
    *,
    withheld: float = 0.0,
) -> Split:
    """Split the whole by public figures and the noisy number of rows.

    One-way counts get the more, the larger their error would be if everything went there.
    Features that are not placed by choices, but given their parent, need no choice. What is
    withheld, for tables that are wanted and for sums, is taken off all but the total.
    """
    wanted = margin_error(price, total, category_counts, weights) / WANTED_MARGIN_ERROR
    needed = wanted if price.allowance.route == "pure" else wanted**2
    # The total is paid for already; the others share what it and the withheld part leave.
    kept = 1 - withheld / (1 - TOTAL_SHARE)
    margins = min(max(needed, steps.least_margins), steps.most_margins) * kept
    choices = steps.first_choices * kept
    rest = (1 - withheld - TOTAL_SHARE - choices - margins) * (1 - 1e-9)
    first = rest * FIRST_ROUND if steps.rounds else rest
    count = len(category_counts) if placed is None else placed
    choice = choices / max(count - 1, 1)
    return Split(margins, choice, first, rest - first)
