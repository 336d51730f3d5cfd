"""Entropy l-diversity of released distributions: post-processing of paid-for numbers (R7).

Features with an l are drawn after all others, every row by itself from a line that is
diverse, and nothing that comes later changes or drops a row. So each of their values has
an l-diverse distribution given all that was drawn before it. Rules restrict a draw before
it is made; for that they must say all that they imply (`implied_rules`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64
from pegsynth.errors import ParameterError
from pegsynth.released.implied_rules import together, with_implied
from pegsynth.schema.rules import Rule

Mask = NDArray[np.bool_]

_BISECTIONS = 60
_REMEDY = (
    "leave it out, or fit a model anew where only the features that --l is about have "
    'role = "sensitive"'
)


@dataclass(frozen=True)
class Diverse:
    """The l that features must reach, whatever a rule leaves of their categories.

    Parameters
    ----------
    levels
        Feature to its l; features that are not listed stay as they are.
    rules
        Rules that rows obey. A draw may be restricted by any of those that name the
        feature together, and each restricted distribution must be diverse.
    """

    levels: Mapping[int, float] = field(default_factory=dict)
    rules: Sequence[Rule] = ()

    @classmethod
    def under(
        cls, levels: Mapping[int, float], rules: Sequence[Rule], category_counts: Sequence[int]
    ) -> Diverse:
        """Return it under the rules of a schema, with all that these imply.

        Without an l the rules stay as they are.
        """
        return cls(levels, with_implied(rules, category_counts) if levels else rules)

    def check_given(
        self, given: Collection[int], order: Sequence[int], names: Sequence[str]
    ) -> None:
        """Refuse given values that would choose among diverse values already drawn.

        Parameters
        ----------
        given
            Features whose values are given.
        order
            Features in the order in which they are drawn.
        """
        place = {feature: number for number, feature in enumerate(order)}
        for feature in given:
            if feature in self.levels:
                raise ParameterError(
                    f"--where {names[feature]}: this model promises l-diverse values of "
                    f"{names[feature]!r}, and a given value is drawn from no distribution; "
                    f"{_REMEDY}"
                )
            before = [names[each] for each in self.levels if place[each] < place[feature]]
            if before:
                raise ParameterError(
                    f"--where {names[feature]}: this model draws {', '.join(map(repr, before))} "
                    "before it, and keeping only the rows with a given value would undo their "
                    f"l-diversity; {_REMEDY}"
                )

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
        """Yield which categories remain, for every set of rules that may hold together.

        No row meets a set that leaves nothing: the rules say so themselves.
        """
        for gone in together(self.rules, feature):
            if len(gone) < size:
                mask = np.ones(size, dtype=bool)
                mask[sorted(gone)] = False
                yield mask


def _uniform_part(shares: Float64, mask: Mask, wanted: float) -> Float64:
    part = np.zeros(len(shares))
    short = entropy(_restricted(shares, mask)) < wanted
    if not short.any():
        return part
    shares = shares[short]
    low, high = np.zeros(len(shares)), np.ones(len(shares))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        reached = entropy(_restricted(_mixed(shares, middle), mask)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    part[short] = high
    return part


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
