"""How many rows of equal weight weighted rows are worth.

Notes
-----
Kish (1965), Survey Sampling, section 8.2.
"""

from __future__ import annotations

from pegsynth.arrays import Float64


def effective_rows(weights: Float64) -> float:
    """Return (sum w)^2 / sum w^2; 0 where no row counts.

    >>> import numpy as np
    >>> effective_rows(np.array([3.0, 1.0, 0.0, 0.0]))
    1.6
    """
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0
