"""Which steps a release of blocks takes, and how the whole budget is split over them.

Public figures and the noisy number of rows decide. One-way counts get the more, the larger their
error would be if everything went there. What they leave goes to all pairs at once, where that is
quiet enough (R27), or else to choices, to blocks, and to the tables of the second round.

All figures, these and the constants of other modules, were chosen by measurement over the tuning
tables of `checks/bench/family.py`; none depends on the data. `checks/bench/ablation.py` shows what
each step brings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.plan_model import margin_error, margin_weights
from pegsynth.methods.released._details import MOST_DEPENDENCES, Merging
from pegsynth.methods.released._pairs import cell_noise, free_cells, summed_noise
from pegsynth.methods.released._row_pool import Features, cell_count, pairs_at_once
from pegsynth.methods.released._values import Detail, Domain, level_counts

TOTAL_SHARE = 0.01
"""What the noisy number of rows costs, as a part of the whole budget."""
FIRST_ROUND = 0.48
"""What blocks get of the budget that one-way counts leave; the second round has the rest."""
_LOUD_ABOVE = 3.0
"""Noise is loud where the best one-way counts are so many times the wanted error off."""
WANTED_MARGIN_ERROR = 0.01
"""One-way counts get as much of the budget as brings their error down to this."""
_MERGED_PAIRS_BELOW = 0.03
"""The noise on all pairs up to which they are measured where only merging makes it so low."""
_MOST_PAIRS = 600
"""More pairs, or levels, take too much time and memory."""
_MOST_LEVELS = 3_000
_PAIRS_SHARE = 0.97
"""All pairs get between these parts of what one-way counts leave."""
_LEAST_PAIRS = 0.4
_WANTED_PAIR_ERROR = 0.002
"""The error of pairs that is worth paying for."""
_MERGE_BELOW = 2.0
"""Categories with fewer rows than so many deviations of the noise on a pair merge."""
_LEAST_LEVELS = 0.5
"""The part of all categories that must be left as levels."""
_TOLD_TOGETHER = 0.85
"""Pairs have so much in common that they are off by this part of their noise."""
_LEAST_WHOLE = 0.5
"""What one-way counts and pairs get together, at the least."""
_LEAST_MARGINS = 0.2
"""One-way counts beside all pairs get between these parts of the budget."""
_MOST_MARGINS = 0.6
_ANY_CELLS = 1 << 40


@dataclass(frozen=True)
class Care:
    """How far blocks and choices are trusted; the louder the noise, the less.

    Parameters
    ----------
    pulled
        Part of a block's estimate that is pulled towards independence of its feature; the
        rest is a projection, which finds more cells empty than are.
    block_penalty
        How many times its expected noise is taken off the score of a block.
    first_choices, second_choices
        What choices cost: of the whole budget, and of the share of a table.
    """

    pulled: float = 0.3
    block_penalty: float = 1.0
    first_choices: float = 0.015
    second_choices: float = 0.1


@dataclass(frozen=True)
class Steps:
    """Steps of a release of blocks.

    Parameters
    ----------
    heads
        The most heads of a block.
    rounds
        The most tables of the second round; 0: there is none.
    merge
        Merge levels that the noise of a block would drown; ordered features merge
        neighbours.
    dependences
        Look for features that another one tells, and draw these by a noisy map (R33).
    triples
        The second round may choose three-way tables around pairs that were measured.
    residuals
        Measure the residuals of all pairs once where that is quiet enough (R27), and nothing
        else but residuals after that; order and heads then follow from pair tables.
    shrink
        Pull noisy tables towards what is expected of them, and smooth the one-way counts of
        ordered features. Without it every table is only projected on counts that are possible,
        which is what replicates need (R28).
    exchange
        Passes that replace output rows so that all tables fit better.
    care
        How far blocks and choices are trusted.
    least_margins, most_margins
        Between which parts of the budget one-way counts get.
    pairs_below
        The noise on all pairs up to which they are measured.
    blocks_beside_pairs
        Where pairs need at most this part of what one-way counts leave, blocks are measured, too.
    loud_margins
        What one-way counts may get under loud noise.
    drowned_above
        Where a pair must stand out by this part of the rows to be chosen, nothing is.
    """

    heads: int = 3
    rounds: int = 40
    merge: bool = True
    dependences: bool = True
    triples: bool = True
    residuals: bool = True
    shrink: bool = True
    exchange: int = 5
    care: Care = field(default_factory=Care)
    least_margins: float = 0.1
    most_margins: float = 0.5
    pairs_below: float = 0.05
    blocks_beside_pairs: float = 0.6
    loud_margins: float = 0.65
    drowned_above: float = 0.14

    def plain(self) -> Steps:
        """Return the steps of a fit without shrinkage (R28)."""
        return replace(self, shrink=False)

    def for_pairs(self, margins: float) -> Steps:
        """Return the steps for a table whose pairs are all measured: nothing else tells margins."""
        return replace(self, least_margins=margins, most_margins=margins)

    def under_noise(self, *, drowned: bool = False) -> Steps:
        """Return the steps for a table whose noise is loud: choose with care, trust little.

        A larger part goes to choices, weak blocks are left out, and blocks are pulled
        towards independence.

        Parameters
        ----------
        drowned
            No choice could be heard, so that one-way counts get nearly everything.
        """
        margins = 0.97 if drowned else self.loud_margins
        return replace(
            self,
            # What one-way counts leave must be enough for both rounds.
            dependences=self.dependences and margins < 1 - 2 * MOST_DEPENDENCES,
            care=Care(1.0, 1.5, min(0.06, 0.6 * (1 - margins)), 0.15),
            # Three features at once cannot be heard.
            triples=False,
            most_margins=margins,
        )


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
    if all_pairs:
        known = margin_error(price, total, sizes, weights, given_total=True)
        steps = steps.for_pairs(margins_beside_pairs(price, total, sizes, details, known, steps))
    return steps, loud


def block_deviation(price: Price, split: Split, features: int) -> float:
    """Return the noise on a block of the first round, if every feature gets one."""
    return price.deviation(split.first / max(features - 1, 1))


def choice_error(price: Price, total: int, features: int, steps: Steps) -> float:
    """Return by how much the best of all pairs must stand out to be chosen, as a part of all rows.

    A choice adds noise to the distance of every candidate; the largest of so many is about the
    logarithm of their number, in units of that noise.
    """
    pairs = features * (features - 1) / 2
    if pairs < 2:
        return 0.0
    share = steps.under_noise().care.first_choices / (features - 1)
    return price.choice_noise(share) * math.log(pairs) / (2 * total)


def split_budget(
    price: Price, total: int, domain: Domain, steps: Steps, *, withheld: float = 0.0
) -> Split:
    """Split the whole by public figures and the noisy number of rows.

    One-way counts get the more, the larger their error would be if everything went there.
    Features that are not placed by choices, but given their parent, need no choice. What is
    withheld, for tables that are wanted and for sums, is taken off all but the total.
    """
    weights = margin_weights(domain.sizes, domain.known)
    wanted = margin_error(price, total, domain.sizes, weights) / WANTED_MARGIN_ERROR
    needed = wanted if price.allowance.route == "pure" else wanted**2
    # The total is paid for already; the others share what it and the withheld part leave.
    kept = 1 - withheld / (1 - TOTAL_SHARE)
    margins = min(max(needed, steps.least_margins), steps.most_margins) * kept
    choices = steps.care.first_choices * kept
    rest = (1 - withheld - TOTAL_SHARE - choices - margins) * (1 - 1e-9)
    first = rest * FIRST_ROUND if steps.rounds else rest
    choice = choices / max(len(domain.sizes) - len(domain.details) - 1, 1)
    return Split(margins, choice, first, rest - first)


@dataclass(frozen=True)
class PairPlan:
    """What is to be measured of all pairs.

    Parameters
    ----------
    pairs
        The pairs; none if their noise would be too loud.
    levels
        The level of every category of each feature.
    share
        The part of the whole budget for all pairs together.
    first
        The part for blocks of the first round, which only quiet tables have.
    """

    pairs: tuple[Features, ...] = ()
    levels: tuple[Int64, ...] = ()
    share: float = 0.0
    first: float = 0.0


def residual_pairs(
    sizes: Sequence[int], details: Sequence[Detail] = (), most_cells: int = 1 << 15
) -> list[Features]:
    """Return the pairs to measure: not those of a detail and its parent, which are public.

    Pairs of the same levels stand together, because they share their noise.
    """
    given = {tuple(sorted((each.feature, each.parent))) for each in details}
    pairs = [
        pair
        for pair in combinations(range(len(sizes)), 2)
        if pair not in given
        and min(sizes[pair[0]], sizes[pair[1]]) > 1
        and cell_count(pair, sizes) <= most_cells
    ]
    return sorted(pairs, key=lambda pair: (sorted(sizes[each] for each in pair), pair))


def saved_by_residuals(pairs: Sequence[Features], sizes: Sequence[int]) -> float:
    """Return how many times the cells of all pairs are those that margins leave free.

    So much more budget would full tables of these pairs take for the same noise.
    """
    levels = [[sizes[each] for each in pair] for pair in pairs]
    return sum(map(math.prod, levels)) / sum(map(free_cells, levels))


def pair_weights(pairs: Sequence[Features], sizes: Sequence[int]) -> Float64:
    """Return how a budget is split over pairs: such that the sum of errors is least.

    A pair with f free cells, measured with the part r of the budget, is off by about f/sqrt(r)
    in all; the best parts are in proportion to f^(2/3).
    """
    weights = np.array([free_cells([sizes[each] for each in pair]) ** (2 / 3) for pair in pairs])
    shares: Float64 = weights / weights.sum()
    return shares


def noise_on_pairs(
    price: Price, share: float, pairs: Sequence[Features], sizes: Sequence[int], total: float
) -> float:
    """Return the error of pair tables by the noise of their residuals alone, on average.

    It is a total variation: half of the summed absolute noise, over the number of rows. Public
    figures and noisy ones that were paid for decide it.
    """
    errors = []
    for pair, weight in zip(pairs, pair_weights(pairs, sizes), strict=True):
        levels = [sizes[each] for each in pair]
        deviation = price.residual_deviation(share * float(weight), levels)
        errors.append(summed_noise(deviation, levels) / (2 * total))
    return float(np.mean(errors))


def pairs_are_quiet(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    details: Sequence[Detail],
    steps: Steps,
    rows: int = 1,
) -> bool:
    """Say whether all pairs can be measured on all categories, before anything else is known.

    Parameters
    ----------
    rows
        Rows that are to be drawn.
    """
    pairs = residual_pairs(category_counts, details)
    most = pairs_at_once(max(rows, total), _MOST_PAIRS)
    if not (steps.residuals and 0 < len(pairs) <= most):
        return False
    if sum(category_counts) > _MOST_LEVELS:
        return False
    share = _PAIRS_SHARE * (1 - steps.least_margins)
    noise = noise_on_pairs(price, share, pairs, category_counts, total)
    return noise <= bearable_noise(pairs, category_counts, steps)


def bearable_noise(pairs: Sequence[Features], sizes: Sequence[int], steps: Steps) -> float:
    """Return the noise up to which all pairs are measured at once.

    The more of a full table's budget goes to margins, the worse are blocks, and the louder
    residuals may be.
    """
    return steps.pairs_below * saved_by_residuals(pairs, sizes)


def margins_beside_pairs(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    details: Sequence[Detail],
    margin_error: float,
    steps: Steps,
) -> float:
    """Return the part of the budget for one-way counts that makes the error of pairs least.

    With the part f a pair is off by A/sqrt(f) through its two margins and by B/sqrt(1 - f) through
    its residual: the sum of their squares is least, and (A + B)^2, at f = A/(A + B). Pure budgets
    have f in place of its root. Pairs have much in common, which lowers B.

    Parameters
    ----------
    margin_error
        The error of one-way tables if everything went there.
    """
    pairs = residual_pairs(category_counts, details)
    ones = math.sqrt(2) * margin_error
    apart = _TOLD_TOGETHER * noise_on_pairs(price, 1.0, pairs, category_counts, total)
    wanted = _WANTED_PAIR_ERROR
    if price.allowance.route == "pure":
        ones, apart, wanted = math.sqrt(ones), math.sqrt(apart), math.sqrt(wanted)
    needed = ((ones + apart) / wanted) ** 2
    whole = min(max(needed, _LEAST_WHOLE), 1.0)
    least, most = _LEAST_MARGINS, _MOST_MARGINS
    return min(max(whole * ones / (ones + apart), least), most)


def plan_pairs(
    price: Price,
    rest: float,
    shares: Sequence[Float64],
    total: float,
    merging: Merging,
    steps: Steps,
    rows: int = 1,
) -> PairPlan:
    """Return what to measure of all pairs; of `rest` they get the more, the louder they are.

    Parameters
    ----------
    rest
        The part of the budget that one-way counts leave.
    shares
        Noisy shares of all categories.
    rows
        Rows that are to be drawn.
    """
    fine = [len(line) for line in shares]
    every = _worth_measuring(residual_pairs(fine, merging.details, most_cells=_ANY_CELLS), merging)
    if not (steps.residuals and every and rest > 0):
        return PairPlan()
    least = _MERGE_BELOW * _usual_noise(price, _PAIRS_SHARE * rest, every, fine)
    levels = merging.levels(shares, total, least)
    sizes = level_counts(levels)
    pairs = _worth_measuring(residual_pairs(sizes, merging.details), merging)
    # Few levels make little noise because they tell little.
    few = sum(sizes) < _LEAST_LEVELS * sum(fine)
    # Every pair takes memory and time for each row of the pool.
    most = pairs_at_once(max(rows, round(total)), _MOST_PAIRS)
    # A law of all pairs takes memory and time for every two levels.
    many = sum(sizes) > _MOST_LEVELS
    if few or many or not 0 < len(pairs) <= most:
        return PairPlan()
    whole = noise_on_pairs(price, rest, pairs, sizes, total)
    needed = (whole / _WANTED_PAIR_ERROR) ** 2
    part = min(max(needed, _LEAST_PAIRS), _PAIRS_SHARE)
    bearable = bearable_noise(pairs, sizes, steps)
    if noise_on_pairs(price, part * rest, every, fine, total) > bearable_noise(every, fine, steps):
        # What is quiet only after merging tells less than it seems to.
        bearable = min(bearable, _MERGED_PAIRS_BELOW)
    if noise_on_pairs(price, part * rest, pairs, sizes, total) > bearable:
        return PairPlan()
    first = FIRST_ROUND * (1 - part) * rest if part <= steps.blocks_beside_pairs else 0.0
    return PairPlan(tuple(pairs), levels, part * rest, first)


def _worth_measuring(pairs: Sequence[Features], merging: Merging) -> list[Features]:
    """Leave out pairs with a feature that another one tells (R33)."""
    told = {each.feature for each in merging.told}
    return [pair for pair in pairs if not told & set(pair)]


def _usual_noise(
    price: Price, share: float, pairs: Sequence[Features], sizes: Sequence[int]
) -> float:
    """Return the noise on a cell of a pair, in rows, that half of the pairs have at most."""
    found = []
    for pair, weight in zip(pairs, pair_weights(pairs, sizes), strict=True):
        levels = [sizes[each] for each in pair]
        deviation = price.residual_deviation(share * float(weight), levels)
        found.append(cell_noise(deviation, levels))
    return float(np.median(found))
