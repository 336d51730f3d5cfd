"""Membership inference: which rows were in the original, inferred from the release.

Members are rows of the original, non-members rows of a hold-out from the same population.
Two attacks give every row a score, higher for a supposed member:

- *nearest released row*: minus the number of features in which the nearest released row
  differs. It finds copies and near copies. A search compares every released row with every
  target. Where these are too many, the targets are a random part of theirs, as many as
  `COMPARISONS` codes allow, at least `FEWEST`; how many were searched for is part of the record.
- *density ratio*: how much more likely the row is in the release than in the population,
  the sum over pairs of features of the logarithm of the ratio of its pair's shares,
  released to reference. The reference is a random half of the hold-out; the non-members
  are the other half. It finds overfitting without copies.

`membership_auc` is the chance that a member scores above a non-member, 1/2 when nothing
can be told; `membership_advantage` is the largest true positive rate minus false positive
rate, 0 when nothing can be told. Given the release, members and non-members are samples of
one population unless the release tells them apart, so that the intervals are valid. An attack has
power where it would tell them apart by a bootstrap of the original in the place of the release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.tabulation import group_rows
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk.risk_tables import SEED, RiskTables, drawn, power_reason
from pegsynth.inference.statistics import Estimate, advantage, interval, roc_area
from pegsynth.kernels.arrays import Codes, Float64, Int64

COMPARISONS = 50_000_000_000
FEWEST = 500


def searchable(released: Codes) -> int:
    """Most targets of one search; `released` has one feature a row."""
    return max(FEWEST, COMPARISONS // max(released.size, 1))


def nearest(released: Codes, targets: Codes, *, threads: int) -> Float64:
    """Return in how many features the nearest released row of every target differs.

    Parameters
    ----------
    released, targets
        Codes with one feature a row, the same features in both.
    threads
        Parts searched at a time; the result does not depend on it.
    """
    from pegsynth.kernels.nearest import nearest_rows

    features, count = targets.shape
    # Codes as narrow as they can be: more of them fit into one instruction.
    codes = np.min_scalar_type(int(max(released.max(initial=0), targets.max(initial=0))))
    released, targets = (np.ascontiguousarray(table, dtype=codes) for table in (released, targets))
    narrow = np.dtype(np.uint8) if features < 255 else np.dtype(np.uint16)
    distance: NDArray[np.unsignedinteger] = np.zeros(count, dtype=narrow)

    def search(part: slice) -> None:
        nearest_rows(released, np.ascontiguousarray(targets[:, part]), distance[part])

    edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(search, [slice(a, b) for a, b in pairwise(edges) if a < b]))
    return distance.astype(np.float64)


NAMES = ("membership_auc", "membership_advantage")
DISTANCE, DENSITY = "nearest released row", "density ratio"
MOST_PAIRS = 100
MOST_CELLS = 1 << 20
_SMOOTHING = 0.5
_FEWEST = 2
_MEMBERS, _OTHERS, _HALVES, _REAL = 5, 6, 7, 9


@dataclass(frozen=True)
class Scores:
    """What an attack says of members and non-members; higher for a supposed member."""

    members: Float64
    others: Float64


def membership_records(tables: RiskTables) -> tuple[list[Record], dict[str, Float64]]:
    """Attack every row, or a stated part of them.

    Returns
    -------
    records, per_record
        Area and advantage of both attacks; the density ratio of every row of the original.
    """
    reason, holdout = "", tables.holdout
    if holdout is None:
        reason = f"members must be told from others, but {tables.no_holdout}"
    elif min(tables.rows, holdout.shape[1] // 2) < _FEWEST:
        reason = "the original has fewer than two rows, or the hold-out fewer than four"
    if reason or holdout is None:
        return [
            not_computed(name, each, reason) for each in (DISTANCE, DENSITY) for name in NAMES
        ], {}
    near = distance_scores(tables, holdout)
    copies = copy_area(tables, holdout, len(near.members), len(near.others))
    most = searchable(tables.released)
    part = f"; drawn at random (seeded), at most {most} of each" if most < tables.rows else ""
    note = (
        "score: minus the number of features in which the nearest released row differs"
        f"{tables.stacked}{part}"
    )
    records = _records(tables, DISTANCE, near, note, copies)
    pairs = scored_pairs(tables.sizes)
    if not pairs:
        reason = "there is no pair of features of a size that can be tabulated"
        return [*records, *(not_computed(name, DENSITY, reason) for name in NAMES)], {}
    dense = density_scores(tables, holdout, pairs)
    rows = np.random.default_rng([SEED, _REAL]).integers(0, tables.rows, tables.released_rows)
    real = density_scores(replace(tables, released=tables.original[:, rows]), holdout, pairs)
    area = roc_area(real.members, real.others, level=tables.level)
    note = (
        f"score: sum over {len(pairs)} pairs of features of the log ratio of the pair's shares, "
        f"released to reference, {_SMOOTHING:g} added to every cell; reference: "
        f"{holdout.shape[1] - len(dense.others)} rows of the hold-out drawn at random (seeded), "
        f"the others are the non-members{tables.stacked}"
    )
    records += _records(tables, DENSITY, dense, note, area)
    return records, {"membership_score": dense.members}


def distance_scores(tables: RiskTables, holdout: Codes) -> Scores:
    """Minus the distance to the nearest released row."""
    most = searchable(tables.released)

    def score(table: Codes, stream: int) -> Float64:
        rows = drawn(table.shape[1], most, stream=stream)
        return -nearest(tables.released, table[:, rows], threads=tables.threads)

    return Scores(score(tables.original, _MEMBERS), score(holdout, _OTHERS))


def copy_area(tables: RiskTables, holdout: Codes, members: int, others: int) -> Estimate:
    """Area if a bootstrap were released and only exact copies counted: no more than the attack's.

    The shares of rows with a copy are exact expectations, the interval is for so many rows.
    """
    groups = group_rows([tables.original, holdout], range(len(tables.names)), tables.sizes)
    chance = 1 - (1 - groups.sizes(0) / tables.rows) ** tables.released_rows
    found, by_chance = (float(chance[ids].mean()) for ids in groups.ids)
    together = (members * found + others * by_chance) / (members + others)
    variance = max(
        found * (1 - found) / members + by_chance * (1 - by_chance) / others,
        together * (1 - together) * (1 / members + 1 / others),
    )
    value = (1 + found - by_chance) / 2
    return interval(value, variance / 4, math.inf, n=members + others, level=tables.level)


def density_scores(tables: RiskTables, holdout: Codes, pairs: Sequence[tuple[int, int]]) -> Scores:
    """Logarithm of the ratio of pair shares, released to reference, summed over pairs."""
    order = np.random.default_rng([SEED, _HALVES]).permutation(holdout.shape[1])
    half = holdout.shape[1] // 2
    reference, others = holdout[:, order[:half]], holdout[:, order[half:]]
    scores = Scores(np.zeros(tables.rows), np.zeros(others.shape[1]))
    for pair in pairs:
        left, right = (tables.sizes[i] for i in pair)
        ratio = _log_shares(tables.released, pair, left, right) - _log_shares(
            reference, pair, left, right
        )
        scores.members[:] += ratio[_cells(tables.original, pair, right)]
        scores.others[:] += ratio[_cells(others, pair, right)]
    return scores


def scored_pairs(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Choose the pairs of features of the density ratio: a public choice, the same for any data.

    All pairs of at most `MOST_CELLS` cells; where they are more than `MOST_PAIRS`, as many
    of them, evenly spaced in the order of the features.
    """
    small = [
        (i, j) for i, j in combinations(range(len(sizes)), 2) if sizes[i] * sizes[j] <= MOST_CELLS
    ]
    if len(small) <= MOST_PAIRS:
        return small
    return [small[k * len(small) // MOST_PAIRS] for k in range(MOST_PAIRS)]


def _cells(table: Codes, pair: tuple[int, int], right: int) -> Int64:
    first, second = pair
    cells: Int64 = table[first].astype(np.int64)
    cells *= right
    cells += table[second]
    return cells


def _log_shares(table: Codes, pair: tuple[int, int], left: int, right: int) -> Float64:
    counts = np.bincount(_cells(table, pair, right), minlength=left * right) + _SMOOTHING
    return np.asarray(np.log(counts / counts.sum()), dtype=np.float64)


def _records(
    tables: RiskTables, subject: str, scores: Scores, note: str, real: Estimate
) -> list[Record]:
    counted = f"{len(scores.members)} members, {len(scores.others)} non-members"
    percent = f"{100 * tables.level:g} %"
    no_power = power_reason(real, Estimate(0.5, 0.5, 0.5))
    figures = (
        (
            roc_area,
            0.5,
            "chance that a member scores above a non-member, ties counted half",
            f"DeLong {percent}, no narrower than by chance",
        ),
        (
            advantage,
            0.0,
            "largest true positive rate minus false positive rate, above 0 by chance alone as it "
            "is a maximum",
            f"distribution-free {percent} (Dvoretzky-Kiefer-Wolfowitz)",
        ),
    )
    return [
        measured(
            name,
            subject,
            figure(scores.members, scores.others, level=tables.level),
            baseline=baseline,
            note=f"{meant}; {note}; {counted}; interval: {limits}, given what is released",
            no_power=no_power,
        )
        for name, (figure, baseline, meant, limits) in zip(NAMES, figures, strict=True)
    ]
