"""What rules forbid together that none of them says alone (R18).

If every category of a feature is forbidden by some rule, then no row may meet the other
conditions of all these rules at once. That is a rule of its own, about fewer features.
With all such rules at hand, a row that is drawn feature by feature, in any order, never
gets to a feature that has no category left: nothing that was drawn is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema.rules import Rule

Parts = Mapping[int, frozenset[int]]

MOST_RULES = 256
_MOST_STEPS = 100_000


def with_implied(rules: Sequence[Rule], category_counts: Sequence[int]) -> tuple[Rule, ...]:
    """Return rules that forbid the same rows, and say all that they forbid together.

    Whatever values a row has in some of its features: if it breaks none of these rules
    that speak of those features alone, it can be completed.
    """
    known = _Known()
    for rule in rules:
        known.add(dict(rule.forbidden))
    steps = [_MOST_STEPS]
    found = True
    while found:
        found = False
        for feature, size in enumerate(category_counts):
            for parts in list(_without(known.rules, feature, size, steps)):
                if not parts:
                    raise SchemaError("the schema's rules forbid every row; list fewer categories")
                found |= known.add(parts)
    return tuple(Rule.of({f: sorted(codes) for f, codes in parts.items()}) for parts in known.rules)


class _Known:
    """Rules of which none says a part of what another one says."""

    def __init__(self) -> None:
        self.rules: list[Parts] = []

    def add(self, new: Parts) -> bool:
        """Add a rule; return whether it says anything new."""
        if any(_says(old, new) for old in self.rules):
            return False
        self.rules = [old for old in self.rules if not _says(new, old)]
        self.rules.append(new)
        if len(self.rules) > MOST_RULES:
            raise _too_many()
        return True


def _says(rule: Parts, other: Parts) -> bool:
    """Say whether a rule forbids all that another one forbids."""
    return all(feature in other and other[feature] <= codes for feature, codes in rule.items())


def _without(rules: Sequence[Parts], feature: int, size: int, steps: list[int]) -> Iterator[Parts]:
    """Yield what must not be met because no category of a feature would be left."""
    own = [rule for rule in rules if feature in rule]
    left = frozenset(range(size))
    if frozenset[int]().union(*(rule[feature] for rule in own)) != left:
        return
    naming = {code: [rule for rule in own if code in rule[feature]] for code in left}

    def cover(left: frozenset[int], held: Parts) -> Iterator[Parts]:
        steps[0] -= 1
        if steps[0] < 0:
            raise _too_many()
        if not left:
            yield held
            return
        for rule in naming[min(left, key=lambda code: (len(naming[code]), code))]:
            together = _together(held, rule, feature)
            if together is not None:
                yield from cover(left - rule[feature], together)

    yield from cover(left, {})


def _together(held: Parts, rule: Parts, but: int) -> Parts | None:
    """Return the conditions of `held` and of a rule but for one feature; None if they clash."""
    together = dict(held)
    for feature, codes in rule.items():
        if feature != but:
            together[feature] = together.get(feature, codes) & codes
            if not together[feature]:
                return None
    return together


def _too_many() -> ParameterError:
    return ParameterError(
        "the schema's rules can act together in too many ways; state fewer rules about the same "
        "features"
    )
