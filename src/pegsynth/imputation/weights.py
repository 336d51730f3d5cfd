"""Bayesian-bootstrap weights, for proper synthesis by refitting (R16).

Refitting a model with such weights is a draw of its parameters. It is no privacy
mechanism: weights are continuous numbers and the rows stay what they are.
"""

from __future__ import annotations

import numpy as np

from pegsynth.arrays import Float64
from pegsynth.errors import ParameterError
from pegsynth.random import Words

_UNIT = 2.0**-53


def bayesian_bootstrap(rows: int, words: Words) -> Float64:
    """Return `rows` weights: Dirichlet(1, .., 1) shares times `rows`, so that they average 1.

    Parameters
    ----------
    rows
        Number of rows to be weighted.
    words
        Where the randomness comes from; one word per row is read.
    """
    if rows < 1:
        raise ParameterError("rows must be at least 1")
    # The middle of one of 2**53 equal intervals is never 0, so the logarithm is finite.
    uniform = ((words.take(rows) >> np.uint64(11)).astype(np.float64) + 0.5) * _UNIT
    waits = -np.log(uniform)
    weights: Float64 = waits * (rows / waits.sum())
    return weights
