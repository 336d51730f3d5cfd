"""Which steps are taken, and the fixed figures in them: an ablation is a flag here.

The defaults were chosen by measurement over several tables and budgets; none depends on
the data. `checks/bench/ablation.py` shows what each step brings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Steps:
    """Steps of a release of blocks.

    Parameters
    ----------
    smooth
        Smooth the one-way counts of ordered features.
    merge
        Merge levels that the noise of a block would drown; ordered features merge
        neighbours.
    leave_alone
        A feature may be placed without heads, and leaves its budget to the others.
    dependences
        Look for features that another one tells, and draw these by a noisy map (R33).
    fold
        Every measured table improves the one-way counts it contains.
    second_round
        Measure the worst-predicted tables, and weigh the pool to fit everything.
    triples
        The second round may choose three-way tables around pairs that were measured.
    anneal
        A table that moved less than its noise doubles the budget of the next.
    pulled
        Part of a block's estimate that is pulled towards independence of its feature; the
        rest is a projection, which finds more cells empty than are.
    shrink
        Pull noisy tables towards what is expected of them. Without it every table is only
        projected on counts that are possible, which is what replicates need (R28).
    listen
        Take the steps of `under_noise` where one-way counts alone would be far off or nothing
        could be chosen, and those of `in_quiet` where they would be close.
    larger_pool
        The pool of a small table has several times as many rows as are asked for.
    residuals
        Measure the residuals of all pairs once where that is quiet enough (R27), and nothing
        else but residuals after that; order and heads then follow from pair tables.
    residual_tables
        Of a pair that the second round chooses, measure the residual and not the whole table.
    classes
        Fit a law of hidden classes to all pairs at once, and expect of every pair what it says.
    exchange
        Passes that replace output rows so that all tables fit better.
    heads
        The most heads of a block.
    rounds
        The most tables of the second round.
    """

    smooth: bool = True
    merge: bool = True
    leave_alone: bool = True
    dependences: bool = True
    fold: bool = True
    second_round: bool = True
    triples: bool = True
    anneal: bool = True
    pulled: float = 0.3
    shrink: bool = True
    listen: bool = True
    larger_pool: bool = True
    residuals: bool = True
    residual_tables: bool = True
    classes: bool = True
    exchange: int = 5
    heads: int = 3
    rounds: int = 40

    total_share: float = 0.01
    first_choices: float = 0.015
    second_choices: float = 0.1
    least_margins: float = 0.1
    most_margins: float = 0.5
    first_round: float = 0.48
    wanted_margin_error: float = 0.01
    dependence: float = 0.008
    most_map: float = 0.03
    most_dependences: float = 0.12
    audible: float = 0.08
    unexplained: float = 0.002
    merge_below: float = 6.0
    block_penalty: float = 1.0
    most_cells: int = 40_000
    most_levels: int = 2_000
    pool_rows: int = 200_000
    most_pools: float = 4.0
    last_sweeps: int = 10
    most_factor: float = 3.0
    triple_divisor: int = 4
    loud_above: float = 3.0
    quiet_below: float = 0.5
    loud_margins: float = 0.65
    drowned_above: float = 0.14
    drowned_margins: float = 0.97
    loud_choices: float = 0.6
    pairs_below: float = 0.05
    merged_pairs_below: float = 0.03
    most_pairs: int = 600
    most_pair_levels: int = 3_000
    pairs_share: float = 0.97
    least_pairs: float = 0.4
    blocks_beside_pairs: float = 0.6
    wanted_pair_error: float = 0.002
    pairs_merge_below: float = 2.0
    pairs_least_levels: float = 0.5
    residual_divisor: int = 2
    class_turns: int = 300
    most_misfit: float = 3.0
    useful_misfit: float = 10.0
    most_crowded: float = 0.5
    closer_than_it_is: float = 0.6
    crowded_closeness: float = 6.0
    told_together: float = 0.85
    least_all_pairs: float = 0.5
    least_beside_pairs: float = 0.2
    most_beside_pairs: float = 0.6

    def plain(self) -> Steps:
        """Return the steps of a fit without shrinkage (R28)."""
        return replace(self, shrink=False, smooth=False)

    def for_pairs(self, margins: float) -> Steps:
        """Return the steps for a table whose pairs are all measured: nothing else tells margins."""
        return replace(self, least_margins=margins, most_margins=margins)

    def in_quiet(self) -> Steps:
        """Return the steps for a table that stands far above its noise: larger blocks."""
        return replace(self, block_penalty=0.5) if self.listen else self

    def under_noise(self, *, drowned: bool = False) -> Steps:
        """Return the steps for a table whose noise is loud: choose with care, trust little.

        A larger part goes to choices, weak blocks are left out, and blocks are pulled
        towards independence.

        Parameters
        ----------
        drowned
            No choice could be heard, so that one-way counts get nearly everything.
        """
        if not self.listen:
            return self
        margins = self.drowned_margins if drowned else self.loud_margins
        return replace(
            self,
            # What one-way counts leave must be enough for both rounds.
            dependences=self.dependences and margins < 1 - 2 * self.most_dependences,
            pulled=1.0,
            block_penalty=1.5,
            first_choices=min(0.06, self.loud_choices * (1 - margins)),
            second_choices=0.15,
            # Three features at once cannot be heard.
            triples=False,
            most_margins=margins,
        )
