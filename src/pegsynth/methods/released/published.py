"""What was paid for and may be published: noisy tables and public structure, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.released.details import Detail


@dataclass(frozen=True)
class NoisyTable:
    """A table of merged levels with noise on every cell.

    Parameters
    ----------
    features
        Its features, the last varying fastest; the last of a block is the one it draws.
    counts
        Noisy counts of all cells; whole numbers but in a replicate (R28).
    deviation
        Standard deviation of the noise.
    """

    features: tuple[int, ...]
    counts: Int64 | Float64
    deviation: float


@dataclass(frozen=True)
class MeasuredSums:
    """Noisy sums of a declared analysis (R26).

    Parameters
    ----------
    bounds
        Where the numbers among its blocks were clipped, low and high of each in turn; not a
        number where a block has none.
    sums
        The sums; whole numbers but in a replicate (R28).
    deviation
        Standard deviation of the noise.
    scored_at
        Coefficients that a regression was scored at, and where its residuals were clipped;
        empty where the sums are no score.
    """

    bounds: Float64
    sums: Int64 | Float64
    deviation: float
    scored_at: Int64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Released:
    """A published model.

    Parameters
    ----------
    total
        Noisy number of rows, with the deviation of its noise.
    one_ways
        Noisy one-way counts of every feature, on all of its categories.
    public
        For every feature whether its one-way counts are public shares of the noisy total
        instead, which cost nothing.
    ordered
        For every feature whether neighbouring categories are alike; from the schema.
    loud
        Whether the noise is loud, compared with the noisy number of rows.
    levels
        For every feature the level that each category belongs to.
    order
        Features in the order in which they are drawn.
    blocks
        A block for every feature but those drawn without heads.
    extra
        Tables of the second round, in the order in which they were measured.
    details
        Features that are drawn given their parent, parents first, on merged levels: from the
        schema, and then those that another one tells.
    maps
        Noisy tables of a feature and one that it tells, on all categories (R33).
    sums
        Noisy sums of every analysis that the schema declares, in its order.
    residuals
        Noisy residuals (R27): of all pairs, or of none of them, and after these of what the second
        round chose.
    by_pairs
        Whether the residuals of all pairs were measured. There are no extra tables then, and no
        blocks but of quiet tables.
    """

    total: tuple[int, float]
    one_ways: tuple[NoisyTable, ...]
    public: tuple[bool, ...]
    ordered: tuple[bool, ...]
    loud: bool
    levels: tuple[Int64, ...]
    order: tuple[int, ...]
    blocks: tuple[NoisyTable, ...]
    extra: tuple[NoisyTable, ...]
    details: tuple[Detail, ...] = ()
    maps: tuple[NoisyTable, ...] = ()
    sums: tuple[MeasuredSums, ...] = ()
    residuals: tuple[NoisyTable, ...] = ()
    by_pairs: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of every feature."""
        return tuple(int(line.max()) + 1 for line in self.levels)
