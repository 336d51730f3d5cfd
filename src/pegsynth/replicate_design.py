"""How the variance of an estimate follows from its replicates: one value for all who need it (R28).

Replicates have a part f of the sampling error and of the noise, so that weights stay near 1 (Fay's
method, with coefficient 1 - f). What they differ by is scaled up again: the variance of an
estimate q is 1/(K f^2) times the sum of (q_k - q)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pegsynth.arrays import Float64
from pegsynth.weight_names import WEIGHT, named_weights

PART: Final = 0.2
"""The part f of sampling error and noise that replicates have."""


@dataclass(frozen=True)
class ReplicateDesign:
    """Replicate weights of a table.

    Parameters
    ----------
    count
        Number of replicates (K), which are the degrees of freedom of an interval, too.
    part
        The part of sampling error and noise that each of them has (f).
    weight
        What the weight of a row is called.
    """

    count: int
    part: float = PART
    weight: str = WEIGHT

    @property
    def scale(self) -> float:
        """What sums of squares and products of the q_k - q are multiplied by: 1/(K f^2)."""
        return 1.0 / (self.count * self.part**2)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns: that of the weight, and those of its replicates."""
        return named_weights(self.weight, self.count)

    def variance(self, estimates: Float64, main: Float64) -> Float64:
        """Return the variances of p estimates.

        Parameters
        ----------
        estimates
            A line of p estimates for every replicate.
        main
            The estimates with the weight of the rows, or with none: rows count alike.
        """
        found: Float64 = self.scale * ((estimates - main) ** 2).sum(axis=0)
        return found
