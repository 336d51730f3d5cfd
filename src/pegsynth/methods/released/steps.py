"""Which steps a release of blocks takes, and the figures in them that the noise decides.

All figures, these and the constants of other modules, were chosen by measurement over the tuning
tables of `checks/bench/family.py`; none depends on the data. `checks/bench/ablation.py` shows what
each step brings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

TOTAL_SHARE = 0.01
"""What the noisy number of rows costs, as a part of the whole budget."""
FIRST_ROUND = 0.48
"""What blocks get of the budget that one-way counts leave; the second round has the rest."""
MOST_DEPENDENCES = 0.12
"""What the search for features that others tell costs at the most."""
MOST_TABLE_CELLS = 40_000
"""No table of several features has more cells, nor any of them more levels."""
MOST_LEVELS = 2_000


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
    pulled
        Part of a block's estimate that is pulled towards independence of its feature; the
        rest is a projection, which finds more cells empty than are.
    block_penalty
        How many times its expected noise is taken off the score of a block.
    first_choices, second_choices
        What choices cost: of the whole budget, and of the share of a table.
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
    pulled: float = 0.3
    block_penalty: float = 1.0
    first_choices: float = 0.015
    second_choices: float = 0.1
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

    def in_quiet(self) -> Steps:
        """Return the steps for a table that stands far above its noise: larger blocks."""
        return replace(self, block_penalty=0.5)

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
            pulled=1.0,
            block_penalty=1.5,
            first_choices=min(0.06, 0.6 * (1 - margins)),
            second_choices=0.15,
            # Three features at once cannot be heard.
            triples=False,
            most_margins=margins,
        )
