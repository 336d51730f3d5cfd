"""Dirichlet perturbation: virtual rows as exact integers.

`dirichlet` gives every category of a feature alpha_j = multiplier * weight_j / scale
virtual rows (R1, R15), the same for all entries, seen or not. `diverse` gives every entry
of the chosen features its own smallest multiplier that makes it l-diverse (R7); those are
chosen by looking at the data and carry no epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.kernels.diverse_entries import smallest_multipliers
from pegsynth.kernels.sampling_arrays import PUBLIC, PriorTables
from pegsynth.mechanisms.rule_patterns import forbidden_patterns
from pegsynth.methods.gibbs.blocks import Blocks
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.schema.rules import Rule

SCALE = DEFAULT_SCALE
"""Denominator s of every alpha: virtual rows come in steps of one millionth."""

MOST_TOTAL = 1 << 62
_TOLERANCE = 1e-13
"""What floating entropies are wrong by at most; ties such as counts (1, 1) at l = 2 hold."""

Weights = NDArray[np.uint64]


@dataclass(frozen=True)
class Prior:
    """Public part of a perturbation: prior weights, multipliers and scale.

    Parameters
    ----------
    weights
        Integer weight of every category, per feature; their shares are the public
        distribution that answers for empty entries and after reset or cap.
    multipliers
        Per feature; alpha_j = multiplier * weight_j / scale. 0 leaves counts as they are.
    scale
        The denominator s.
    """

    weights: tuple[Weights, ...]
    multipliers: tuple[int, ...]
    scale: int = SCALE

    def __post_init__(self) -> None:
        if self.scale < 1 or self.scale > 1 << 30:
            raise ParameterError("the scale of the virtual rows must lie between 1 and 2**30")
        for weights, multiplier in zip(self.weights, self.multipliers, strict=True):
            if int(weights.min()) < 1 or multiplier < 0:
                raise ParameterError("prior weights must be positive, multipliers not negative")
            check_total(multiplier, sum(int(w) for w in weights))

    @property
    def tables(self) -> PriorTables:
        """Return the same as arrays for the kernels, one multiplier per feature."""
        features = len(self.weights)
        return PriorTables(
            scale=np.uint64(self.scale),
            weight_cumulative=np.concatenate([np.cumsum(w, dtype=np.uint64) for w in self.weights]),
            multiplier=np.array(self.multipliers, dtype=np.uint64),
            multiplier_start=np.full(features, -1, dtype=np.int64),
            multiplier_stride=np.zeros(features, dtype=np.int64),
            entry_multiplier=np.zeros(0, dtype=np.uint64),
            pattern_start=np.zeros(features, dtype=np.int64),
            pattern_row=np.zeros(0, dtype=np.int64),
        )


def check_total(multiplier: int, weight: int) -> None:
    """Refuse virtual rows that do not fit in 64 bits beside any number of counted rows."""
    if max(multiplier, 1) * weight >= MOST_TOTAL:
        raise BudgetError(
            "this budget asks for more virtual rows than fit in 64 bits; raise epsilon, ask for "
            "fewer rows, or use pegs-rs or pegs-capped"
        )


def uniform_weights(category_counts: Sequence[int]) -> tuple[Weights, ...]:
    """Return weight 1 for every category of every feature."""
    return tuple(np.ones(count, dtype=np.uint64) for count in category_counts)


def dirichlet(category_counts: Sequence[int], numerator: int, scale: int = SCALE) -> Prior:
    """Return the paper's perturbation: alpha = numerator / scale for every category."""
    return Prior(uniform_weights(category_counts), (numerator,) * len(category_counts), scale)


def diverse(
    blocks: Blocks,
    prior: Prior,
    levels: Mapping[int, float],
    rules: Sequence[Rule] = (),
) -> PriorTables:
    """Return the prior with an own multiplier for every entry of the features in `levels`.

    Parameters
    ----------
    levels
        Feature index to the wanted l.
    rules
        Public rules; where one restricts the draw the restricted distribution is made
        diverse.
    """
    tables = prior.tables
    lines: list[NDArray[np.uint64]] = []
    pattern_rows: list[NDArray[np.int64]] = []
    size = patterns_size = 0
    for target, level in sorted(levels.items()):
        patterns = _checked_patterns(blocks, prior, target, level, rules)
        tables.multiplier_start[target] = size
        tables.multiplier_stride[target] = blocks.entry_counts[target]
        tables.pattern_start[target] = patterns_size
        row_of = np.full(max(patterns) + 1, -1, dtype=np.int64)
        for row, (pattern, forbidden) in enumerate(patterns.items()):
            row_of[pattern] = row
            lines.append(_entry_multipliers(blocks, prior, target, level, forbidden))
            size += len(lines[-1])
        pattern_rows.append(row_of)
        patterns_size += len(row_of)
    return tables._replace(
        entry_multiplier=np.concatenate(lines) if lines else tables.entry_multiplier,
        pattern_row=np.concatenate(pattern_rows) if pattern_rows else tables.pattern_row,
    )


def _checked_patterns(
    blocks: Blocks, prior: Prior, target: int, level: float, rules: Sequence[Rule]
) -> dict[int, NDArray[np.bool_]]:
    """Return what rules can forbid the target, refusing an l that they make impossible."""
    name = blocks.spec.names[target]
    categories = blocks.spec.category_counts[target]
    if level > categories:
        raise BudgetError(
            f"feature {name!r}: l = {level:g} is above its {categories} categories; "
            f"choose l of at most {categories}"
        )
    patterns = forbidden_patterns(rules, target, categories, name)
    for forbidden in patterns.values():
        weights = prior.weights[target][~forbidden].astype(np.float64)
        share = weights / weights.sum() if len(weights) else weights
        if -np.sum(share * np.log(share)) < math.log(level) - _TOLERANCE:
            raise BudgetError(
                f"feature {name!r}: l = {level:g} cannot be reached where the schema's rules or "
                f"the prior leave it only {len(weights)} categories; choose a smaller l"
            )
    return patterns


def _entry_multipliers(
    blocks: Blocks, prior: Prior, target: int, level: float, forbidden: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    block, weights = blocks.blocks[target], prior.weights[target]
    _, codes, counts = block.cells()
    out = np.full(block.entry_count, PUBLIC, dtype=np.uint64)
    if level >= np.count_nonzero(~forbidden):
        return out  # only the uniform distribution is that diverse
    most = MOST_TOTAL // (2 * int(weights.sum()))
    goal = math.log(level) - _TOLERANCE
    smallest_multipliers(
        block.entry_start(),
        codes,
        counts,
        weights.astype(np.float64),
        forbidden,
        float(prior.scale),
        goal,
        most,
        out,
    )
    return out
