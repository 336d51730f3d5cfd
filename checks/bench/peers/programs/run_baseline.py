"""Tables without any synthesizer: what a method must beat, and what none can."""

from __future__ import annotations

from typing import Any

import numpy as np
from exchange import Job, serve

from pegsynth.privacy.conversion import rho_at


def fit(job: Job, codes: np.ndarray) -> Any:
    if job.settings["method"] == "bootstrap":
        return codes
    counts = [np.bincount(c, minlength=n) for c, n in zip(codes.T, _levels(job), strict=True)]
    if job.settings["method"] == "dp-independent":
        return _noisy(job, counts)
    return [count / count.sum() for count in counts]


def _levels(job: Job) -> list[int]:
    return list(job.domain.values())


def _noisy(job: Job, counts: list[np.ndarray]) -> list[np.ndarray]:
    """Shares of noisy one-ways, each with a part of the budget that grows with its levels."""
    rng = np.random.default_rng()
    weights = np.array(_levels(job), dtype=float) ** (2 / 3)
    budgets = float(rho_at(job.epsilon, delta=job.delta)) * weights / weights.sum()
    noisy = [
        count + rng.normal(0, (2 * budget) ** -0.5, len(count))
        for count, budget in zip(counts, budgets, strict=True)
    ]
    return [_projected(count) for count in noisy]


def _projected(values: np.ndarray) -> np.ndarray:
    """Return the closest shares: the total is kept, negative counts become 0."""
    total = max(values.sum(), 1.0)
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    kept = np.maximum(values - excess[last], 0)
    return kept / kept.sum()


def sample(job: Job, model: Any) -> np.ndarray:
    rng = np.random.default_rng()
    if job.settings["method"] == "bootstrap":
        return model[rng.integers(0, len(model), job.rows)]
    return np.stack([rng.choice(len(share), job.rows, p=share) for share in model], axis=1)


if __name__ == "__main__":
    serve(fit, sample, ("numpy",), lambda job: job.codes)
