"""The public structure of a release, before its alpha is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pegsynth.errors import ParameterError
from pegsynth.privacy.draw_events import (
    BlockDraws,
    CappedDraws,
    ContingencyDraws,
    Draws,
    ImputationDraws,
    MarginalDraws,
    PegsDraws,
    UrnDraws,
)

DrawMethod: TypeAlias = Literal[
    "pegs", "pegs-rs", "pegs-capped", "urn", "pmi", "contingency", "marginal"
]

_EVENTS: Final[Mapping[str, tuple[type[Draws], tuple[str, ...]]]] = {
    "pegs": (PegsDraws, ("sweeps",)),
    "pegs-rs": (BlockDraws, ("sweeps", "block_size")),
    "pegs-capped": (CappedDraws, ("sweeps", "visits", "hashings", "chains")),
    "urn": (UrnDraws, ("visits", "urns", "restricted")),
    "pmi": (ImputationDraws, ("sweeps",)),
    "contingency": (ContingencyDraws, ()),
    "marginal": (MarginalDraws, ()),
}


@dataclass(frozen=True)
class Structure:
    """The public structure of a release, which decides how many draws one row influences.

    Parameters
    ----------
    method
        Which mechanism draws.
    features, rows, sweeps, datasets
        M, n per dataset, S and K.
    block_size
        B, for `pegs-rs`.
    visits
        T, for `pegs-capped` and `urn`.
    hashings, chains
        Hash functions, and chains that share the visits, for `pegs-capped`.
    urns, restricted
        Independent sets of urns and features drawn under a rule, for `urn`.
    """

    method: DrawMethod
    features: int
    rows: int
    sweeps: int = 1
    datasets: int = 1
    block_size: int | None = None
    visits: int | None = None
    hashings: int = 1
    chains: int = 1
    urns: int = 1
    restricted: int = 0

    def event(self, alpha_numerator: int, alpha_denominator: int) -> Draws:
        """Return the event that a release of this shape records, at a given alpha."""
        if self.method not in _EVENTS:
            raise ParameterError(f"method {self.method!r} has no draws to calibrate")
        kind, further = _EVENTS[self.method]
        fields: dict[str, Any] = {
            name: getattr(self, name) for name in ("features", "rows", "datasets", *further)
        }
        missing = [name for name, value in fields.items() if value is None]
        if missing:
            raise ParameterError(f"method {self.method!r} needs {missing[0].replace('_', ' ')}")
        fields |= {"alpha_numerator": alpha_numerator, "alpha_denominator": alpha_denominator}
        return kind(**fields)
