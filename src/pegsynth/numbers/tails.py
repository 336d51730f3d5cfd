"""The octaves of a noisy tree: which of them hold anything, and how the ends go on (R21).

Noise on empty octaves must not become huge numbers. So nothing is taken from an octave that
does not stand out of the noise, but for those next to the last that does: there the logs of
the counts are continued by a parabola that bends down, fitted to the last octaves and to
the noisy counts beyond them. A straight line would be a Pareto tail; counts of a
log-normal or lighter distribution bend down.
"""

from __future__ import annotations

import math

import numpy as np

from pegsynth.arrays import Float64, Int64

_FALSE_OCTAVES = 0.01
"""Chance that noise alone makes any octave stand out."""
_BEFORE, _BEYOND = 4, 8
_MISFIT = 0.1
_TRUST = 0.4
"""Relative errors: of a parabola where it is fitted, and where it is used."""
_BENDS = -np.concatenate(([0.0], np.geomspace(0.02, 2.0, 24)))
_RISES = np.linspace(-5.0, 0.5, 56)
_USUAL_BEND = -0.15
"""What a log-normal distribution with a deviation of 1.3 has: a guess where noise hides it."""
_BEND_SPREAD = 0.04
_LEAST_ROWS = 3.0
_SIMPLE_RATIO = 0.5


def standing_out(nodes: int, deviation: float, *, laplace: bool) -> float:
    """Return a count that noise on this many nodes hardly ever reaches."""
    odds = math.log(max(nodes, 1) / (2 * _FALSE_OCTAVES))
    return deviation * (odds / math.sqrt(2.0) if laplace else math.sqrt(2.0 * odds))


def octave_masses(
    noisy: Float64,
    deviation: float,
    sides: Int64,
    ends: tuple[Float64, Float64],
    *,
    laplace: bool,
) -> Float64:
    """Return the masses of octaves, in order of their numbers.

    Parameters
    ----------
    noisy, deviation
        Noisy counts of all octaves, and their noise.
    sides
        The sign of every octave, 0 for zero itself.
    ends
        0 for a lower or an upper end of an octave at which there is nothing, else 1.
    """
    octaves = len(noisy)
    seen = np.flatnonzero(noisy > standing_out(octaves, deviation, laplace=laplace))
    masses = np.zeros(octaves)
    if not len(seen):
        # Nothing stands out: the largest count is as good a guess as any.
        masses[int(np.argmax(noisy))] = max(float(noisy.max()), 1.0)
        return masses
    first, last = int(seen[0]), int(seen[-1])
    masses[first : last + 1] = np.maximum(noisy[first : last + 1], 0.0)
    _continue(masses, noisy, deviation, sides, last, 1, float(ends[1][last]))
    _continue(masses, noisy, deviation, sides, first, -1, float(ends[0][first]))
    return masses


def _continue(
    masses: Float64,
    noisy: Float64,
    deviation: float,
    sides: Int64,
    last: int,
    step: int,
    goes_on: float,
) -> None:
    """Fill in the octaves beyond the last one that stands out, and smooth it with them."""
    side = sides[last]
    if goes_on <= 0 or side == 0:
        return
    beyond = _run(last + step, step, _BEYOND, sides, side)
    before = _run(last, -step, _BEFORE, sides, side)
    fitted = _parabola(masses[before[::-1]], noisy[beyond], deviation)
    if not len(fitted):
        return
    places = np.concatenate((before[::-1], beyond))[-len(fitted) :]
    ends = np.flatnonzero(fitted < _LEAST_ROWS)
    reach = int(ends[0]) if len(ends) else len(fitted)
    for place, mass in zip(places[:reach].tolist(), fitted[:reach].tolist(), strict=True):
        weight = (_TRUST * mass) ** 2 / ((_TRUST * mass) ** 2 + deviation**2)
        masses[place] = max(mass + weight * (noisy[place] - mass), 0.0)


def _run(start: int, step: int, most: int, sides: Int64, side: int) -> Int64:
    """Return octaves from one on, as long as they are on the same side of zero."""
    stop = start
    while 0 <= stop < len(sides) and sides[stop] == side and abs(stop - start) < most:
        stop += step
    return np.arange(start, stop, step, dtype=np.int64)


def _parabola(known: Float64, beyond: Float64, deviation: float) -> Float64:
    """Return counts whose logs are a parabola, bent down, near those that are known.

    In go the last octaves that stand out, and noisy counts beyond them.
    """
    if len(known) < 3 or (known <= 0).any():
        size = np.arange(1, len(beyond) + 1)
        simple: Float64 = known[-1] * _SIMPLE_RATIO**size
        return np.concatenate((known[-1:], simple))
    counts = np.concatenate((known, beyond))
    place = np.arange(len(counts)) - (len(known) - 1.0)
    logs = _RISES[:, None, None] * place + _BENDS[:, None] * place**2
    # Never rising beyond the last known octave.
    falling = _RISES[:, None] + _BENDS <= np.log(1.0)
    curves = np.exp(np.clip(logs, -700, 50))
    spread = deviation**2 + (_MISFIT * np.maximum(counts, 0.0)) ** 2
    scale = (curves * counts / spread).sum(-1) / (curves**2 / spread).sum(-1)
    errors = ((counts - scale[..., None] * curves) ** 2 / spread).sum(-1)
    errors += ((_BENDS - _USUAL_BEND) / _BEND_SPREAD) ** 2
    errors = np.where(falling & (scale > 0), errors, np.inf)
    rise, bend = np.unravel_index(int(np.argmin(errors)), errors.shape)
    best: Float64 = scale[rise, bend] * curves[rise, bend]
    return best
