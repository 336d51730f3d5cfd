"""Public rules as arrays for the sampler, and the patterns in which they can be active."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.kernels.tables import RuleTables
from pegsynth.schema.rules import Rule

MOST_PATTERN_RULES = 12


def rule_tables(rules: Sequence[Rule], category_counts: Sequence[int]) -> RuleTables:
    """Lay the rules out by the feature to be drawn (R18)."""
    by_target: list[list[int]] = [[] for _ in category_counts]
    item_start, item_feature, item_member = [0], [], []
    members: list[NDArray[np.bool_]] = []
    size = 0
    for number, rule in enumerate(rules):
        for feature, codes in rule.forbid:
            by_target[feature].append(number)
            item_feature.append(feature)
            item_member.append(size)
            members.append(_member(codes, category_counts[feature]))
            size += category_counts[feature]
        item_start.append(len(item_feature))
    lengths = [len(numbers) for numbers in by_target]
    return RuleTables(
        target_start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        target_rules=np.array([n for numbers in by_target for n in numbers], dtype=np.int64),
        item_start=np.array(item_start, dtype=np.int64),
        item_feature=np.array(item_feature, dtype=np.int64),
        item_member=np.array(item_member, dtype=np.int64),
        member=np.concatenate(members) if members else np.zeros(0, dtype=bool),
    )


def forbidden_patterns(
    rules: Sequence[Rule], target: int, categories: int, name: str
) -> dict[int, NDArray[np.bool_]]:
    """Return, for every set of rules that can be active at once, what it forbids the target.

    Sets are bit patterns over the rules that mention the target, in order; rules whose
    other conditions contradict each other are never active together.
    """
    own = [rule for rule in rules if any(feature == target for feature, _ in rule.forbid)]
    if len(own) > MOST_PATTERN_RULES:
        raise SchemaError(
            f"feature {name!r}: l-diversity takes at most {MOST_PATTERN_RULES} rules per "
            f"feature and {len(own)} mention this one; merge rules or leave it out of --l"
        )
    found: dict[int, NDArray[np.bool_]] = {}
    for pattern in range(1 << len(own)):
        chosen = [rule for bit, rule in enumerate(own) if pattern >> bit & 1]
        if _together(chosen, target):
            forbidden = np.zeros(categories, dtype=bool)
            for rule in chosen:
                forbidden |= _member(dict(rule.forbid)[target], categories)
            found[pattern] = forbidden
    return found


def _together(rules: Sequence[Rule], target: int) -> bool:
    held: dict[int, frozenset[int]] = {}
    for rule in rules:
        for feature, codes in rule.forbid:
            if feature != target:
                held[feature] = held.get(feature, codes) & codes
    return all(held.values())


def _member(codes: frozenset[int], categories: int) -> NDArray[np.bool_]:
    member = np.zeros(categories, dtype=bool)
    member[sorted(codes)] = True
    return member
