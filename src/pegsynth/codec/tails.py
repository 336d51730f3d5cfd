"""The octaves of a noisy tree: which of them hold anything, and how the ends go on (R21).

Noise on empty octaves must not become huge numbers. So nothing is taken from an octave that
does not stand out of the noise, but for what joins those that do. There a log-normal
law goes on that agrees with two quantiles of the numbers that can be seen. Its deviation may
be wider or narrower, as far as the noisy counts beyond say so: a distribution of years ends at
once, one of incomes goes on for several octaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Float64, Int64

FALSE_OCTAVES = 2e-5
"""Chance that noise alone makes any octave stand out, of either sign and any size."""
_FALSE_NEXT = 3e-5
"""Chance that noise alone makes the next larger octave one of those that stand out."""
_FALSE_SMALLER, _FALSE_INNER = 1e-3, 1e-2
"""The same for all octaves no larger than one that stands out, and for zero or the next smaller
octave: numbers that are too small do less harm."""
_RUNS = (1, 2, 4, 8)
"""How many neighbouring octaves are looked at together."""
_BEYOND = 8
_MISFIT = 0.15
"""Relative error of a log-normal law in the last octave that can be seen."""
_TRUST = 0.8
"""The same where it is used."""
_WIDTHS = np.geomspace(0.4, 2.5, 31)
WIDTH_SPREAD = 0.25
"""How far, in logs, the deviation of a tail is from that of the upper quantiles, usually."""
_LEAST_ROWS = 1.0
_OUTER, _FURTHER_IN = 0.05, 4.0
"""The outer quantile that a tail is fitted to, and how much more the inner one holds."""
VISIBLE = 4.0
"""So many deviations of the noise must lie beyond the outer quantile."""
_USUAL_WIDTH = 0.7
_NARROWEST = 1e-4
_WINDOW = 3
_FEW_OCTAVES = 24
"""Between public bounds of so few octaves any number is as good as another."""


@dataclass(frozen=True)
class Seen:
    """What can be seen of the numbers of one sign: masses, and the sizes between which they lie.

    Parameters
    ----------
    masses
        Estimated rows of every cell.
    near, far
        The least and the largest size of the cells.
    """

    masses: Float64
    near: Float64
    far: Float64


def standing_out(nodes: int, deviation: float, *, laplace: bool, chance: float = 0.01) -> float:
    """Return a count that noise on any of this many nodes exceeds with this chance at most."""
    each = chance / max(nodes, 1)
    if laplace:
        return -deviation * math.log(2 * each) / math.sqrt(2.0)
    return -deviation * _normal_quantile(each)


def visible_masses(
    noisy: Float64,
    deviation: float,
    sides: Int64,
    sizes: Float64,
    *,
    laplace: bool,
    bounded: bool = False,
) -> Float64:
    """Return the masses of the octaves between those that stand out of the noise, by sign.

    If none does, all is put where numbers are smallest: a size that nobody has would be worse.

    Parameters
    ----------
    noisy, deviation
        Noisy counts of all octaves, and their noise.
    sides
        The sign of every octave, 0 for zero itself.
    sizes
        The least size of the numbers of every octave.
    bounded
        Whether every octave may be taken, as on a calendar.
    """
    out = _reached(noisy, deviation, sides, sizes, laplace=laplace)
    masses = np.zeros(len(noisy))
    if not out.any():
        window = np.lexsort((np.abs(sides), sizes))[:1]
        if bounded or len(noisy) <= _FEW_OCTAVES:
            window = _likeliest(noisy, sides)
        masses[window] = np.maximum(noisy[window], 0.0)
        if not masses.any():
            masses[window[len(window) // 2]] = 1.0
        return masses
    for side in (-1, 0, 1):
        seen = np.flatnonzero(out & (sides == side))
        if len(seen):
            held = slice(int(seen[0]), int(seen[-1]) + 1)
            masses[held] = _non_negative(noisy[held])
    return masses


def _reached(
    noisy: Float64, deviation: float, sides: Int64, sizes: Float64, *, laplace: bool
) -> NDArray[np.bool_]:
    """Say which octaves are surely reached: in them or beyond, at the same side, is a row.

    A run of neighbours that stands out together says so of its nearest octave: first among all
    octaves, then among those that are no larger than one that was found, and then of the neighbours
    of those that were found, one after the other, so that no union over them is needed.
    """
    out = np.zeros(len(noisy), dtype=bool)

    def look(among: NDArray[np.bool_], chance: float) -> None:
        nodes = int(among.sum()) * len(_RUNS)
        enough = standing_out(nodes, deviation, laplace=laplace, chance=chance)
        for width in _RUNS:
            rest = np.where(among & ~out, noisy, 0.0)
            out[list(_standing(rest, sides, width, enough * math.sqrt(width)))] = True

    look(np.ones(len(noisy), dtype=bool), FALSE_OCTAVES)
    if not out.any():
        return out
    look(sizes <= sizes[out].max(), _FALSE_SMALLER)
    for side, step, chance in (
        (1, 1, _FALSE_NEXT),
        (-1, -1, _FALSE_NEXT),
        (1, -1, _FALSE_INNER),
        (-1, 1, _FALSE_INNER),
    ):
        places = np.flatnonzero(sides == side)[::step]
        enough = standing_out(len(_RUNS), deviation, laplace=laplace, chance=chance)
        for number, place in enumerate(places[1:].tolist(), start=1):
            if out[places[number - 1]] and not out[place]:
                beyond = np.cumsum(noisy[places[number : number + _RUNS[-1]]])
                sums = [beyond[w - 1] / math.sqrt(w) for w in _RUNS if w <= len(beyond)]
                out[place] = max(sums) > enough
    least = standing_out(1, deviation, laplace=laplace, chance=_FALSE_INNER)
    out |= (sides == 0) & (noisy > least) & (sizes <= 0)
    return out


def _standing(noisy: Float64, sides: Int64, width: int, enough: float) -> Iterator[int]:
    """Yield the octave nearest to zero of every run that stands out."""
    if width > len(noisy):
        return
    sums = np.convolve(noisy, np.ones(width), mode="valid")
    for start in np.flatnonzero(sums > enough).tolist():
        if sides[start] == sides[start + width - 1]:
            yield start + (width - 1 if sides[start] < 0 else 0)


def _non_negative(noisy: Float64) -> Float64:
    """Return masses of the same sum, none of them negative, near the noisy ones."""
    total, kept = max(float(noisy.sum()), 1.0), np.ones(len(noisy), dtype=bool)
    masses = np.zeros(len(noisy))
    while True:
        masses[kept] = noisy[kept] - (noisy[kept].sum() - total) / kept.sum()
        below = kept & (masses < 0)
        masses[below] = 0.0
        if not below.any():
            return masses
        kept &= ~below


def _likeliest(noisy: Float64, sides: Int64) -> Int64:
    """Return the neighbouring octaves that hold most, if none stands out by itself."""
    best, found = -np.inf, np.zeros(0, dtype=np.int64)
    for start in range(len(noisy)):
        window = np.arange(start, min(start + _WINDOW, len(noisy)))
        window = window[sides[window] == sides[start]]
        strength = noisy[window].sum() / math.sqrt(len(window))
        if strength > best:
            best, found = strength, window
    return found


def continued(
    masses: Float64,
    noisy: Float64,
    deviation: float,
    bounds: tuple[Float64, Float64],
    places: Int64,
    seen: Seen,
    *,
    outwards: bool,
) -> None:
    """Fill in the octaves beyond the last one that can be seen.

    Parameters
    ----------
    masses
        Masses of all octaves, changed here.
    noisy, deviation
        Noisy counts of all octaves, and their noise.
    bounds
        The least and the largest size of the numbers of every octave.
    places
        The last octave that can be seen, then those beyond it.
    seen
        Numbers of the same sign.
    outwards
        Whether to go on to larger sizes, or to smaller ones.
    """
    places = places[: _BEYOND + 1]
    total = float(seen.masses.sum())
    if len(places) < 2 or total <= 0:
        return
    law = upper_law(seen, deviation, outwards=outwards)
    near, far = (np.log(np.maximum(size[places], 1e-300)) for size in bounds)
    shares = _shares(near, far, law, law.width * _WIDTHS, outwards=outwards)
    expected = total * shares
    counts = noisy[places]
    spread = deviation**2 + (_MISFIT * expected) ** 2
    errors = ((counts - expected) ** 2 / spread + np.log(spread)).sum(-1)
    errors += (np.log(_WIDTHS) / WIDTH_SPREAD) ** 2
    likelihood = np.exp(-(errors - errors.min()) / 2)
    # The mean over all widths, and not the best one: sums of large values hang on it.
    tail = (likelihood[:, None] * expected).sum(0) / likelihood.sum()
    for place, mass in zip(places[1:].tolist(), tail[1:].tolist(), strict=True):
        if mass < _LEAST_ROWS:
            break
        weight = (_TRUST * mass) ** 2 / ((_TRUST * mass) ** 2 + deviation**2)
        masses[place] = max(mass + weight * (noisy[place] - mass), 0.0)


@dataclass(frozen=True)
class UpperLaw:
    """A log-normal law that agrees with two outer quantiles.

    Parameters
    ----------
    centre, width
        Mean and deviation of the logs of sizes, or of smaller sizes their negatives.
    """

    centre: float
    width: float

    def centres(self, widths: Float64) -> Float64:
        """Return the centres of laws of other widths beyond the inner quantile.

        There all of them have the same share.
        """
        inner = _normal_quantile(1 - _FURTHER_IN * _OUTER)
        found: Float64 = self.centre + self.width * inner - widths * inner
        return found


def upper_law(seen: Seen, deviation: float, *, outwards: bool) -> UpperLaw:
    """Return the law of the upper values, or of the lower ones.

    Parameters
    ----------
    deviation
        Noise on the number of values of an octave.
    """
    total = float(seen.masses.sum())
    outer = max(_OUTER, VISIBLE * deviation / total)
    inner = _FURTHER_IN * outer
    if inner > 0.5:
        outer, inner = min(outer, 0.25), 0.5
    first, second = (_log_quantile(seen, share, outwards=outwards) for share in (inner, outer))
    steps = _normal_quantile(1 - outer) - _normal_quantile(1 - inner)
    width = max(abs(second - first) / steps, _NARROWEST)
    if VISIBLE * deviation > total / 4:
        width = max(width, _USUAL_WIDTH)
    sign = 1.0 if outwards else -1.0
    centre = first - sign * width * _normal_quantile(1 - inner)
    return UpperLaw(sign * centre, width)


def _log_quantile(seen: Seen, share: float, *, outwards: bool) -> float:
    """Return the log of the size beyond which this share of the numbers lies."""
    order = np.argsort(seen.near, kind="stable")
    if outwards:
        order = order[::-1]
    reached = np.cumsum(seen.masses[order])
    place = min(int(np.searchsorted(reached, share * reached[-1])), len(order) - 1)
    cell = order[place]
    before = reached[place] - seen.masses[cell]
    part = (share * reached[-1] - before) / max(float(seen.masses[cell]), 1e-300)
    near, far = (math.log(max(float(size[cell]), 1e-300)) for size in (seen.near, seen.far))
    part = min(max(part, 0.0), 1.0)
    found: float = far - part * (far - near) if outwards else near + part * (far - near)
    return found


def _shares(
    near: Float64, far: Float64, law: UpperLaw, widths: Float64, *, outwards: bool
) -> Float64:
    """Return the shares of octaves under laws of several widths that meet at one quantile."""
    from scipy.special import ndtr

    low, high = (near, far) if outwards else (-far, -near)
    centres = law.centres(widths)
    upper = (low - centres[:, None]) / widths[:, None]
    lower = (high - centres[:, None]) / widths[:, None]
    found: Float64 = ndtr(-upper) - ndtr(-lower)
    return found


def _normal_quantile(share: float) -> float:
    """Return the quantile of the standard normal law; SciPy is loaded for numbers alone."""
    from scipy.special import ndtri

    return float(ndtri(share))
