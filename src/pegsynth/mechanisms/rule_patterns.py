"""Public rules as arrays for the sampler, and the patterns in which they can be active."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.kernels.sampling_arrays import RuleTables
from pegsynth.schema.rules import Rule

MOST_PATTERN_RULES = 12
_MOST_LISTED = 1 << 20


def rule_tables(rules: Sequence[Rule], category_counts: Sequence[int]) -> RuleTables:
    """Lay the rules out by the feature to be drawn (R18)."""
    by_target: list[list[int]] = [[] for _ in category_counts]
    item_start, item_feature, item_member = [0], [], []
    members: list[NDArray[np.bool_]] = []
    size = 0
    for number, rule in enumerate(rules):
        for feature, codes in rule.forbidden:
            by_target[feature].append(number)
            item_feature.append(feature)
            item_member.append(size)
            members.append(_member(codes, category_counts[feature]))
            size += category_counts[feature]
        item_start.append(len(item_feature))
    lengths = [len(numbers) for numbers in by_target]
    pattern_start, forbidden = _listed_patterns(rules, by_target, category_counts)
    return RuleTables(
        target_start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        target_rules=np.array([n for numbers in by_target for n in numbers], dtype=np.int64),
        item_start=np.array(item_start, dtype=np.int64),
        item_feature=np.array(item_feature, dtype=np.int64),
        item_member=np.array(item_member, dtype=np.int64),
        member=np.concatenate(members) if members else np.zeros(0, dtype=bool),
        pattern_start=pattern_start,
        forbidden_start=np.cumsum([0, *map(len, forbidden)]).astype(np.int64),
        forbidden=np.array([code for codes in forbidden for code in codes], dtype=np.int64),
    )


def _listed_patterns(
    rules: Sequence[Rule], by_target: Sequence[Sequence[int]], category_counts: Sequence[int]
) -> tuple[NDArray[np.int64], list[list[int]]]:
    """Return where the patterns of each target start, and what each pattern forbids."""
    start = np.full(len(category_counts), -1, dtype=np.int64)
    forbidden: list[list[int]] = []
    for target, numbers in enumerate(by_target):
        if not numbers or category_counts[target] << len(numbers) > _MOST_LISTED:
            continue
        start[target] = len(forbidden)
        own = [dict(rules[number].forbidden)[target] for number in numbers]
        for pattern in range(1 << len(own)):
            active = [codes for bit, codes in enumerate(own) if pattern >> bit & 1]
            forbidden.append(sorted(frozenset[int]().union(*active)))
    return start, forbidden


def forbidden_patterns(
    rules: Sequence[Rule], target: int, categories: int, name: str
) -> dict[int, NDArray[np.bool_]]:
    """Return, for every set of rules that can be active at once, what it forbids the target.

    Sets are bit patterns over the rules that mention the target, in order; rules whose
    other conditions contradict each other are never active together, and no row that
    obeys the rules meets a set that leaves the target no category.
    """
    own = [rule for rule in rules if any(feature == target for feature, _ in rule.forbidden)]
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
                forbidden |= _member(dict(rule.forbidden)[target], categories)
            if not forbidden.all():
                found[pattern] = forbidden
    return found


def _together(rules: Sequence[Rule], target: int) -> bool:
    held: dict[int, frozenset[int]] = {}
    for rule in rules:
        for feature, codes in rule.forbidden:
            if feature != target:
                held[feature] = held.get(feature, codes) & codes
    return all(held.values())


def _member(codes: frozenset[int], categories: int) -> NDArray[np.bool_]:
    member = np.zeros(categories, dtype=bool)
    member[sorted(codes)] = True
    return member
