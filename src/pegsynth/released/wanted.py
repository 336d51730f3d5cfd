"""Tables that are measured whatever is chosen, because somebody declared that they are wanted.

Which they are, and what each costs, is settled before any data is read; so no choice is paid for.
They are noisy counts like all others (R11), and the pool is weighed to them like to all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.released.counted import MergedTable
from pegsynth.released.joint_fit import JointFit
from pegsynth.released.published import NoisyTable
from pegsynth.released.row_pool import Features

PURPOSE = "wanted"


@dataclass(frozen=True)
class Wanted:
    """A table that is to be published.

    Parameters
    ----------
    features
        Its features.
    share
        The part of the whole budget that pays for it.
    """

    features: Features
    share: float


def measured_tables(
    table: MergedTable, fit: JointFit, budget_filter: PrivacyFilter, wanted: Sequence[Wanted]
) -> list[NoisyTable]:
    """Measure the tables, and weigh the pool to each."""
    table.ask([each.features for each in wanted])
    found = []
    for each in wanted:
        noisy, deviation = budget_filter.measure(
            table.count(each.features),
            each.share,
            purpose=PURPOSE,
            features=each.features,
            levels=[fit.pool.sizes[feature] for feature in each.features],
        )
        found.append(NoisyTable(each.features, noisy, deviation))
        fit.take(found[-1])
    return found
