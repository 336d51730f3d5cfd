"""The story of `pegs-once`: from a confidential table to what may be published (R11).

Everything that is read of the table goes through one privacy filter. The number of rows and the
one-way counts come first. They tell how loud the noise is, so how the rest of the budget is split,
and which categories merge. Then either all pairs are measured at once, where that is quiet enough
(R27), or a block for every feature that is drawn, each chosen privately. A pool of candidate rows
is drawn by these, and weighed to all of them jointly. What it predicts worst is measured next, and
met as well, until the budget is used up. Rows are drawn from the weighted pool later (`draw`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.plan_model import margin_weights
from pegsynth.methods.released._budget import (
    TOTAL_SHARE,
    PairPlan,
    Split,
    Steps,
    block_deviation,
    pair_weights,
    plan_pairs,
    split_budget,
    steps_under,
)
from pegsynth.methods.released._choosing import FirstRound, Round, place_block, rounds_for
from pegsynth.methods.released._declared import DeclaredPlan, measured_tables
from pegsynth.methods.released._details import Merging, Search, details_on_levels, told_details
from pegsynth.methods.released._draw import fine_shares, fitted_rows, released_total
from pegsynth.methods.released._estimates import Margins
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._pair_pool import PairModel, links_of
from pegsynth.methods.released._row_pool import (
    MOST_POOL,
    Features,
    Pool,
    rows_at_once,
    whole_numbers,
)
from pegsynth.methods.released._sum_design import STEPS
from pegsynth.methods.released._values import (
    CountedRows,
    CountedTable,
    Domain,
    MergedTable,
    NoisyTable,
    Released,
    anchored,
)
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream

_PUBLIC_DEVIATION = 0.5
_MERGE_BELOW = 6.0
"""Categories with fewer rows than so many deviations of the noise on a block merge."""


@dataclass(frozen=True)
class Work:
    """What a fit works with; the audit puts a filter and steps of its own in the usual ones' place.

    Parameters
    ----------
    stream
        Where noise and candidate rows come from.
    steps
        The steps; None: those of the plan.
    sum_steps
        Steps of scaled numbers in sums of declared analyses.
    filter_of
        Makes the privacy filter that everything is paid from.
    """

    stream: RandomStream
    threads: int = 1
    progress: Progress = quiet
    steps: Steps | None = None
    sum_steps: int = STEPS
    filter_of: Callable[..., PrivacyFilter] = PrivacyFilter


def release_blocks(
    rows_of: Codes | CountedTable,
    domain: Domain,
    budget_filter: PrivacyFilter,
    work: Work,
    *,
    rows: int | None = None,
    declared: DeclaredPlan | None = None,
) -> tuple[Released, JointFit]:
    """Measure a table; return what may be published, and a weighted pool made of it.

    Parameters
    ----------
    rows_of
        The confidential rows as codes, or an object that counts them.
    rows
        Rows to be drawn, which set the size of the pool; the noisy total otherwise.
    declared
        Tables that are measured whatever is chosen, each with a share of its own, and what is
        left of the budget to sums of declared analyses.
    """
    steps, declared = work.steps or Steps(), declared or DeclaredPlan()
    # What is wanted is measured as tables beside blocks.
    beside = bool(declared.tables) or domain.first is not None
    steps = replace(steps, residuals=steps.residuals and not beside)
    table = CountedRows(rows_of, domain.sizes) if isinstance(rows_of, np.ndarray) else rows_of
    price = budget_filter.price

    # The number of rows, and what its noise says about all other noise.
    noisy, deviation = budget_filter.measure(
        np.array([table.rows], dtype=np.int64), TOTAL_SHARE, purpose="total"
    )
    total = int(noisy[0])
    steps, loud = steps_under(price, max(total, 1), domain, steps, rows or 1)
    weights = margin_weights(domain.sizes, domain.known)
    withheld = declared.withheld + math.fsum(each.share for each in declared.tables)
    split = split_budget(price, max(total, 1), domain, steps, withheld=withheld)

    # One-way counts, and features that another one tells.
    one_ways = _one_ways(table, budget_filter, split.margins * weights, domain.known, total)
    is_public = tuple(line is not None for line in domain.known)
    released = Released(
        (total, deviation), one_ways, is_public, domain.ordered, loud, (), (), (), ()
    )
    rows_estimated = released_total(released)
    if steps.dependences:
        before = budget_filter.left
        search = Search(table, fine_shares(released), rows_estimated, budget_filter, domain.closed)
        released = replace(released, maps=search.run())
        split = split.without(before - budget_filter.left)
    told = told_details(released.maps, domain.sizes)

    # Categories that the noise would drown merge; the pool is drawn on what is left.
    shares = fine_shares(released, smooth=steps.shrink)
    merging = Merging(steps.merge, domain.ordered, domain.whole, domain.above, domain.details, told)
    drawn = rows if rows is not None else round(rows_estimated)
    plan = plan_pairs(price, split.rest, shares, rows_estimated, merging, steps, drawn)
    placed = len(domain.sizes) - len(domain.details) - len(told)
    least = _MERGE_BELOW * block_deviation(price, split, placed)
    levels = plan.levels or merging.levels(shares, rows_estimated, least)
    details = details_on_levels(domain.details, told, levels)
    scaled = anchored(one_ways, is_public, rows_estimated)
    margins = Margins.of(scaled, levels, shares, rows_estimated, details)
    size = min(fitted_rows(released, max(drawn, 1)), rows_at_once(len(plan.pairs), MOST_POOL))
    pool = Pool(margins.sizes, size, work.stream, rules=domain.rules, threads=work.threads)
    released = replace(released, levels=levels, details=details)

    # All pairs at once, or blocks and then what the pool predicts worst.
    measuring = _Measuring(table.merged(levels), pool, margins, budget_filter, steps, work.progress)
    if plan.pairs:
        released = measuring.all_pairs(released, plan, split, declared)
    else:
        released = measuring.blocks_and_tables(released, split, domain.first, declared)
    measuring.fit.finish(levels, domain.ordered)
    return replace(released, order=tuple(pool.placed)), measuring.fit


def _one_ways(
    table: CountedTable,
    budget_filter: PrivacyFilter,
    shares: Float64,
    public: Sequence[Float64 | None],
    total: int,
) -> tuple[NoisyTable, ...]:
    """Measure the one-way counts, but those that are public shares of the noisy total."""
    tables = []
    for feature, known in enumerate(public):
        if known is not None:
            counts = whole_numbers(known * max(total, 1), max(total, 1))
            tables.append(NoisyTable((feature,), counts, _PUBLIC_DEVIATION))
            continue
        counts = table.one_way(feature)
        noisy, deviation = budget_filter.measure(
            counts,
            float(shares[feature]),
            purpose="marginals",
            features=(feature,),
            levels=(len(counts),),
        )
        tables.append(NoisyTable((feature,), noisy, deviation))
    return tuple(tables)


def measure_pairs(
    table: MergedTable,
    budget_filter: PrivacyFilter,
    pairs: Sequence[Features],
    sizes: Sequence[int],
    share: float,
) -> list[NoisyTable]:
    """Measure the residual of every pair with its part of the budget."""
    table.ask(pairs)
    found = []
    for pair, weight in zip(pairs, pair_weights(pairs, sizes), strict=True):
        levels = [sizes[each] for each in pair]
        noisy, deviation = budget_filter.measure_residual(
            table.count(pair), share * float(weight), purpose="pairs", features=pair, levels=levels
        )
        found.append(NoisyTable(pair, noisy, deviation))
    return found


@dataclass
class _Measuring:
    """Measures what is left to be measured once levels are settled, and fits the pool to it."""

    table: MergedTable
    pool: Pool
    margins: Margins
    budget_filter: PrivacyFilter
    steps: Steps
    progress: Progress

    def __post_init__(self) -> None:
        self.fit = JointFit(self.pool, self.margins, self.steps)

    def all_pairs(
        self, released: Released, plan: PairPlan, split: Split, declared: DeclaredPlan
    ) -> Released:
        """Measure all pairs, draw the pool, and spend the rest on what pairs do not tell."""
        pool, margins, steps = self.pool, self.margins, self.steps
        residuals = measure_pairs(
            self.table, self.budget_filter, plan.pairs, pool.sizes, plan.share
        )
        blocks: list[NoisyTable] = []
        if plan.first:
            blocks, _ = self._first_round(replace(split, first=plan.first))
        model = PairModel.of(residuals, pool, margins, steps)
        links = links_of(blocks) if blocks else model.draw(pool, margins, steps)
        self.progress("blocks", len(pool.sizes), len(pool.sizes))
        model.start(self.fit, blocks)
        # What other paths spend on choices and blocks is spent here as well.
        left = max(self.budget_filter.left - declared.withheld, 0.0) * (1 - 1e-9)
        later = self._second_round(
            Round(
                self.table,
                self.fit,
                self.budget_filter,
                steps,
                left,
                left / max(steps.rounds, 1),
                links,
            )
        )
        return replace(
            released, blocks=tuple(blocks), residuals=(*residuals, *later.residuals), by_pairs=True
        )

    def blocks_and_tables(
        self, released: Released, split: Split, first: int | None, declared: DeclaredPlan
    ) -> Released:
        """Measure blocks of all features, what was declared, and what the pool predicts worst."""
        blocks, left = self._first_round(split, first)
        self.pool.weigh(self.margins.total)
        self.fit.start(blocks)
        extra = measured_tables(self.table, self.fit, self.budget_filter, declared.tables)
        rounds = rounds_for(len(self.pool.sizes), self.steps.rounds)
        share, steps = split.second + left, replace(self.steps, rounds=rounds)
        later = self._second_round(
            Round(self.table, self.fit, self.budget_filter, steps, share, share / max(rounds, 1))
        )
        return replace(
            released,
            blocks=tuple(blocks),
            extra=(*extra, *later.tables),
            residuals=tuple(later.residuals),
        )

    def _first_round(
        self, split: Split, first: int | None = None
    ) -> tuple[list[NoisyTable], float]:
        """Place all features; return the blocks and what is left of the round's share."""
        pool, margins = self.pool, self.margins
        given = {detail.feature for detail in margins.details}
        plain = [feature for feature in range(len(pool.sizes)) if feature not in given]
        if first is None:
            first = min(plain, key=lambda feature: pool.sizes[feature])
        pool.draw(first, (), margins.shares[first][None, :])
        chooser = FirstRound(
            self.table, pool, margins, self.budget_filter, self.steps, split.choice, split.first
        )
        left = [feature for feature in plain if feature != first]
        blocks: list[NoisyTable] = []
        while left:
            feature, block = chooser.next(left)
            left.remove(feature)
            if block is None:
                pool.draw(feature, (), margins.shares[feature][None, :])
            else:
                margins.fold(block, (feature,))
                place_block(block, pool, margins, self.steps)
                blocks.append(block)
            self.progress("blocks", len(plain) - len(left), len(pool.sizes))
        for detail in margins.details:
            detail.place(pool, margins.shares[detail.parent], margins.shares[detail.feature])
        self.progress("blocks", len(pool.sizes), len(pool.sizes))
        return blocks, chooser.left_share

    def _second_round(self, chooser: Round) -> Round:
        """Measure tables and residuals until their share of the budget is used up."""
        while chooser.next():
            self.progress("tables", chooser.measured, None)
        return chooser
