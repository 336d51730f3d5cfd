"""What all replicates share, so that no interval tells of it, by the ledger alone (R28).

An octave of a measured number that does not stand out of the noise is not seen (R21): rows at the
ends of the number may be lost, in the table and in every replicate alike. So many rows are put at
either end; what that moves by more than half an interval is supported by bins only. Replicates that
do not vary at all have nothing to vary: the number was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from pegsynth.inference.choice import from_released_blocks, rows_in_of
from pegsynth.inference.combine import Combined, Floor
from pegsynth.inference.combining_rules import Numbers
from pegsynth.inference.ledger_support import (
    BY_BINS,
    DECLARED,
    EDGES,
    NOT_SUPPORTED,
    ONE_WAY,
    SUPPORTED,
    drowned,
    listed,
    named_features,
)
from pegsynth.privacy import Ledger, NoisyCounts
from pegsynth.tables.caller_frames import from_frame

NOT_VARYING = (
    f"{NOT_SUPPORTED}: replicates of {{}} do not vary, as where noise hides a whole number"
)
DROWNED = f"{NOT_SUPPORTED}: noise drowns the published table of {{}}"
HIDDEN = (
    f"{BY_BINS}: noise may hide up to {{}} rows at the ends of {{}}, which would move the estimate "
    "by more than its interval is wide"
)
CHANCE = 3e-5
"""Chance that noise alone makes an octave one of those that are seen (`pegsynth.codec.tails`)."""
LEVEL = 0.95

Estimates = Callable[[Numbers], Mapping[str, float]]


def with_shared_bias(
    found: Combined,
    estimates: Estimates,
    frame: Any,
    weights: Numbers,
    ledger: Ledger,
    analysis: str,
) -> Combined:
    """Return estimates with the statuses that what replicates share leaves to them.

    Parameters
    ----------
    found
        Estimates with statuses.
    estimates
        From weights of all rows to the same estimates.
    weights
        Those of the table itself.
    """
    if not from_released_blocks(ledger) or not found.statuses:
        return found
    values = np.atleast_1d(np.asarray(found.estimate, dtype=np.float64))
    errors = np.atleast_1d(np.asarray(found.std_error, dtype=np.float64))
    statuses, notes = list(found.statuses), list(found.notes)
    if DECLARED not in " ".join(notes):
        total = float(rows_in_of(ledger) or weights.sum())
        loud = drowned(ledger, analysis, max(total, 1.0))
        if loud:
            statuses = [NOT_SUPPORTED] * len(statuses)
            notes.append(DROWNED.format(listed(loud)))
    # A share of 0 or 1 does not vary, and neither do figures of features with public counts.
    numbers = [name for name in named_features(ledger, analysis) if hidden_rows(ledger, name)]
    still = errors <= 1e-12 * np.abs(values) if numbers else np.zeros(len(values), dtype=bool)
    if still.any():
        statuses = [
            NOT_SUPPORTED if s else old for s, old in zip(still.tolist(), statuses, strict=True)
        ]
        notes.append(NOT_VARYING.format(listed(numbers)))
    if SUPPORTED in statuses:
        low, high = (np.atleast_1d(end) for end in found.interval(LEVEL))
        half = (high - low) / 2
        for name in numbers:
            rows = hidden_rows(ledger, name)
            moved = _moved(found, estimates, frame, weights, name, rows * _scale(ledger, weights))
            beyond = [
                status == SUPPORTED and not off <= reach
                for status, off, reach in zip(statuses, moved, half.tolist(), strict=True)
            ]
            if any(beyond):
                statuses = [BY_BINS if b else s for b, s in zip(beyond, statuses, strict=True)]
                notes.append(HIDDEN.format(math.ceil(rows), name))
    return replace(found, statuses=tuple(statuses), notes=tuple(notes))


def hidden_rows(ledger: Ledger, name: str) -> float:
    """Return how many rows an octave of a number may have without being seen; 0: not measured."""
    events = [each for each in _counts(ledger, EDGES, name) if each.levels]
    # Octaves are measured twice where none can be divided.
    tops = [each for each in events if each.levels == events[0].levels]
    if not tops:
        return 0.0
    deviation = _deviation(tops[0]) / math.sqrt(len(tops))
    if tops[0].mechanism == "discrete-laplace":
        return -deviation * math.log(2 * CHANCE) / math.sqrt(2.0)
    return -deviation * float(ndtri(CHANCE))


def floor_of_shares(
    ledger: Ledger, name: str, weights: Numbers, names: Iterable[str]
) -> Floor | None:
    """Return the floor of the shares of a feature's categories; None where none were counted.

    Noise of tables with more features may be less, which makes the floor a little high.

    Parameters
    ----------
    names
        Of the shares.
    """
    if not from_released_blocks(ledger) or hidden_rows(ledger, name):
        return None
    deviations = [_deviation(event) for event in _counts(ledger, ONE_WAY, name)]
    if not deviations:
        return None
    total = rows_in_of(ledger) or float(weights.sum())
    return Floor(dict.fromkeys(names, min(deviations) / total), total)


def _counts(ledger: Ledger, purpose: str, name: str) -> list[NoisyCounts]:
    return [
        event
        for event in ledger.events
        if isinstance(event, NoisyCounts) and event.purpose == purpose and event.features == (name,)
    ]


def _deviation(event: NoisyCounts) -> float:
    scale = event.scale_numerator / event.scale_denominator
    return scale * math.sqrt(2.0) if event.mechanism == "discrete-laplace" else math.sqrt(scale)


def _scale(ledger: Ledger, weights: Numbers) -> float:
    """Return what a row of the original weighs."""
    rows = rows_in_of(ledger)
    return 1.0 if rows is None else float(weights.sum()) / rows


def _moved(
    found: Combined, estimates: Estimates, frame: Any, weights: Numbers, name: str, mass: float
) -> Sequence[float]:
    """Return by how much estimates move with more weight at either end of a number."""
    values, names = np.atleast_1d(np.asarray(found.estimate, dtype=np.float64)), found.names
    column = from_frame(frame).lazy().select(name).collect().to_series()
    numbers = column.cast(pl.Float64, strict=False).to_numpy()
    most = np.zeros(len(values))
    if not np.isfinite(numbers).any():
        return most.tolist()
    for end in (np.nanargmin(numbers), np.nanargmax(numbers)):
        more = weights.copy()
        more[end] += mass
        fitted = estimates(more)
        most = np.maximum(most, np.abs(np.array([fitted[each] for each in names]) - values))
    farthest: list[float] = most.tolist()
    return farthest
