"""Check that a hold-out is not a part of the original.

Goes in: codes of the original and of the hold-out. Comes out: a record if nearly all rows of
the hold-out lie among the original rows and chance does not explain it. Equal rows are
common where categories are few. The original itself shows how common: by the share of
its rows that have a twin elsewhere in it.
"""

from __future__ import annotations

import math

import numpy as np

from pegsynth.arrays import Codes
from pegsynth.evaluation.records import Record, measured
from pegsynth.evaluation.risk_tables import CHANCE
from pegsynth.evaluation.statistics import Estimate
from pegsynth.evaluation.tabulation import group_rows

NAME = "holdout_in_original"
NEARLY_ALL = 0.9


def holdout_records(
    original: Codes, holdout: Codes | None, sizes: tuple[int, ...]
) -> tuple[Record, ...]:
    """Return a record if the hold-out must be a part of the original, else nothing.

    Parameters
    ----------
    original, holdout
        Codes, one feature a row.
    sizes
        Number of categories of every feature.

    Notes
    -----
    Were the hold-out drawn from the same population, a row of it would lie among the
    original rows about as often as an original row lies among the others. Both the share of
    rows with a twin (McDiarmid) and the chance of meeting a row that was seen (McAllester and
    Ortiz 2003) stay within sqrt(2 log(1/CHANCE) / rows) of their means but for a probability
    of CHANCE each. The record is made where even twice that margin above the share found
    leaves so many rows of the hold-out a binomial probability below CHANCE.
    """
    if holdout is None:
        return ()
    from scipy.special import bdtrc

    groups = group_rows([original, holdout], range(len(sizes)), sizes)
    counts = groups.sizes(0)
    rows, held = len(groups.ids[0]), len(groups.ids[1])
    inside = int(np.count_nonzero(counts[groups.ids[1]]))
    twins = float(counts[counts > 1].sum() / rows)
    likely = twins + 2 * math.sqrt(-2 * math.log(CHANCE) / rows)
    if likely >= 1 or inside < NEARLY_ALL * held or bdtrc(inside - 1, held, likely) > CHANCE:
        return ()
    note = (
        f"{inside} of the {held} rows of the hold-out are rows of the original, where "
        f"{100 * twins:.3g} % of the rows have a twin, so that this is no chance; give rows "
        "that the synthesizer never saw, or all that is held against the hold-out misleads"
    )
    found = Estimate(inside / held, n=held)
    return (measured(NAME, "hold-out", found, baseline=twins, note=note),)
