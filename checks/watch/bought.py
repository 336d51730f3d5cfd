"""Intervals of bought distances (R34): they hold exactly as often as the noise on them says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from checks.watch.laws import Check, Int64
from pegsynth.mechanisms.quality_distances import (
    BoughtFigures,
    QualityPlan,
    buy,
    cell_counts,
    distance,
    expected_counts,
    settle_quality,
)
from pegsynth.privacy import Allowance, Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

SIZES = (2, 3, 5)
ROWS = 400
_REACH = 40


def bought_checks(purchases: int = 150) -> tuple[Check, ...]:
    """Return a check for each kind of noise; the twin buys with a quarter of what it states."""
    return tuple(_check(delta, purchases) for delta in (None, 1e-6))


def _check(delta: float | None, purchases: int) -> Check:
    schema = Schema(
        tuple(Feature(f"f{n}", categories=tuple(map(str, range(n)))) for n in SIZES), reviewed=True
    )
    plan, _ = settle_quality(schema, Budget(epsilon=1.0, delta=delta), 0.5)
    draw = np.random.default_rng(1)
    ours, theirs = (
        np.stack([draw.integers(0, size, ROWS) for size in SIZES], axis=1) for _ in range(2)
    )
    counts, released = (cell_counts(iter((rows,)), schema, plan) for rows in (ours, theirs))

    def held(paid: QualityPlan) -> Int64:
        found = []
        for _ in range(purchases):
            bought = buy(paid, counts, released, RandomStream())
            found += _inside(bought, plan_width)
        return np.array(found, dtype=np.int64)

    def _inside(bought: BoughtFigures, width: float) -> list[bool]:
        truth = [
            distance(n, expected_counts(s, bought.total))
            for n, s in zip(counts, released, strict=True)
        ]
        return [abs(b - t) <= width for b, t in zip(bought.distances, truth, strict=True)]

    plan_width = buy(plan, counts, released, RandomStream()).half_width
    chance = _chance(plan, plan_width)
    poor = replace(plan, allowance=Allowance(plan.allowance.route, plan.allowance.amount / 4))
    kind = "Laplace" if delta is None else "Gaussian"
    return Check(
        name=f"intervals of bought distances, {kind}",
        mistake="a quarter of the stated budget spent",
        law={1: chance, 0: 1 - chance},
        sound=lambda: held(plan),
        broken=lambda: held(poor),
    )


def _chance(plan: QualityPlan, width: float) -> float:
    """Return the exact chance that the noise on a figure stays within a width."""
    event = plan.events[1]
    scale = event.scale_numerator / event.scale_denominator
    gaussian = event.mechanism == "discrete-gaussian"
    most = math.ceil(_REACH * (math.sqrt(scale) if gaussian else scale))
    steps = np.arange(-most, most + 1)
    logs = -(steps**2) / (2 * scale) if gaussian else -np.abs(steps) / scale
    weights = np.exp(logs)
    return float(weights[np.abs(steps) <= width].sum() / weights.sum())
