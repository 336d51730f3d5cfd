"""The colour of a promise, by public thresholds.

They are the tiers of Ponomareva et al., How to DP-fy ML (2023): conventions, and no law.
"""

from __future__ import annotations

from typing import Final, Literal

from pegsynth.privacy.ledger import LARGEST_USUAL_DELTA
from pegsynth.privacy.statement import WEAK_EPSILON

AMBER_ABOVE: Final = 1.0
RED_ABOVE: Final = WEAK_EPSILON
Level = Literal["green", "amber", "red", "none"]


def level(kind: str, epsilon: float | None, delta: float | None) -> Level:
    """Return green, amber or red; none without differential privacy."""
    if kind not in ("pure", "approximate") or epsilon is None:
        return "none"
    if epsilon > RED_ABOVE:
        return "red"
    amber = epsilon > AMBER_ABOVE or (delta or 0.0) > LARGEST_USUAL_DELTA
    return "amber" if amber else "green"
