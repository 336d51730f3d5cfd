"""The number that stands for a code, where the meaning of a feature is numeric.

Measures that need quantities (regressions, a mean charge) take one number per code, so
that a table of values and a table of bin labels give the same figure.
"""

from __future__ import annotations

import math

import numpy as np

from pegsynth.arrays import Float64
from pegsynth.schema.encoding import parsed_number
from pegsynth.schema.feature import Feature


def is_numeric(feature: Feature) -> bool:
    """Say whether a feature has numbers: it is binned, or ordinal with numbers as categories.

    Nominal categories are names, even those that look like numbers.
    """
    if feature.binned:
        return True
    return (
        feature.kind == "ordinal"
        and feature.bin_count > 0
        and all(parsed_number(text) is not None for text in feature.categories)
    )


def numeric_values(feature: Feature) -> Float64:
    """Return one number per code; NaN where a code has none.

    Parameters
    ----------
    feature
        A column of the schema.

    Returns
    -------
    array
        The midpoint of a bin, which for a column of whole numbers is the mean of those in the
        bin; the number that an ordinal category spells. NaN for missing, not applicable and
        unknown, and for every code of a feature that `is_numeric` says has no numbers.
    """
    values = np.full(feature.category_count, np.nan)
    if not is_numeric(feature):
        return values
    listed = _midpoints(feature) if feature.binned else _spelled(feature)
    values[: feature.bin_count] = listed
    return values


def _midpoints(feature: Feature) -> Float64:
    edges = np.asarray(feature.closed_edges, dtype=np.float64)
    low, high = edges[:-1], edges[1:].copy()
    if feature.integer:
        # The upper edge belongs to the next bin, except the last one.
        high[:-1] -= 1
    # Halved first: the sum of two floats can overflow.
    return np.asarray(low / 2 + high / 2, dtype=np.float64)


def _spelled(feature: Feature) -> Float64:
    numbers = (parsed_number(text) for text in feature.categories)
    return np.array([math.nan if number is None else number for number in numbers])
