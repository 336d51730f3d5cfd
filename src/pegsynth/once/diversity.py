"""Entropy l-diversity of released distributions: post-processing of paid-for numbers (R7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.schema.rules import Rule

Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_RULES = 8
_BISECTIONS = 60


@dataclass(frozen=True)
class Diverse:
    """The l that features must reach, whatever a rule leaves of their categories.

    Parameters
    ----------
    levels
        Feature to its l; features that are not listed stay as they are.
    rules
        Rules of the schema. A draw may be restricted by any of those that name the
        feature together, and each restricted distribution must be diverse.
    """

    levels: Mapping[int, float] = field(default_factory=dict)
    rules: Sequence[Rule] = ()

    def check(self, names: Sequence[str], category_counts: Sequence[int]) -> None:
        """Refuse an l that some restricted distribution cannot reach."""
        for feature, level in self.levels.items():
            least = min(int(mask.sum()) for mask in self._masks(feature, category_counts[feature]))
            if level > least:
                raise ParameterError(
                    f"feature {names[feature]!r}: l = {level:g} is out of reach, because only "
                    f"{least} of its categories may remain under the rules; lower --l"
                )

    def applied(self, shares: Float64, feature: int) -> Float64:
        """Mix every line with the uniform distribution until it is diverse enough.

        The uniform part is the smallest that serves every restriction, rounded upwards;
        entropy rises with it.
        """
        if feature not in self.levels:
            return shares
        wanted = math.log(self.levels[feature])
        part = np.zeros(len(shares))
        for mask in self._masks(feature, shares.shape[1]):
            part = np.maximum(part, _uniform_part(shares, mask, wanted))
        return _mixed(shares, part)

    def _masks(self, feature: int, size: int) -> Iterator[Mask]:
        """Yield which categories remain, for every set of rules that may hold together."""
        named = [dict(rule.forbid)[feature] for rule in self.rules if feature in dict(rule.forbid)]
        if len(named) > MOST_RULES:
            raise ParameterError(
                f"more than {MOST_RULES} rules name a feature with an l; state fewer, longer rules"
            )
        sets = chain.from_iterable(combinations(named, count) for count in range(len(named) + 1))
        for together in sets:
            mask = np.ones(size, dtype=bool)
            for codes in together:
                mask[sorted(codes)] = False
            if mask.any():
                yield mask


def _uniform_part(shares: Float64, mask: Mask, wanted: float) -> Float64:
    low, high = np.zeros(len(shares)), np.ones(len(shares))
    enough = entropy(_restricted(shares, mask)) >= wanted
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        reached = entropy(_restricted(_mixed(shares, middle), mask)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.where(enough, 0.0, high)


def entropy(shares: Float64) -> Float64:
    """Return the entropy of every line, in nats."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    found: Float64 = -(shares * logs).sum(axis=1)
    return found


def _restricted(shares: Float64, mask: Mask) -> Float64:
    kept = shares[:, mask]
    sums = kept.sum(axis=1, keepdims=True)
    restricted: Float64 = np.divide(kept, sums, out=np.zeros_like(kept), where=sums > 0)
    return restricted


def _mixed(shares: Float64, uniform: Float64) -> Float64:
    part = uniform[:, None]
    mixed: Float64 = (1 - part) * shares + part / shares.shape[1]
    return mixed
