"""Public rules: combinations that cannot occur (R18).

A rule forbids every row in which each of its features holds one of the listed codes. It
restricts the draw (a forbidden category gets weight 0), never the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError


@dataclass(frozen=True)
class Rule:
    """A forbidden combination: feature index to the codes that, together, cannot occur.

    People write rules by name: `Rule.forbid`. `drafted_from_data` says that a program found it
    by looking at a table, `structural` that a folded panel cannot be otherwise (R24).
    """

    forbidden: tuple[tuple[int, frozenset[int]], ...]
    label: str = ""
    drafted_from_data: bool = False
    structural: bool = False

    def __post_init__(self) -> None:
        if not self.forbidden or any(not codes for _, codes in self.forbidden):
            raise SchemaError("a rule must name at least one feature and one category of each")
        ordered = tuple(sorted(self.forbidden, key=lambda part: part[0]))
        if len({index for index, _ in ordered}) < len(ordered):
            raise SchemaError("a rule names a feature twice; name it once with all its categories")
        object.__setattr__(self, "forbidden", ordered)

    @staticmethod
    def forbid(
        values: Mapping[str, str | Sequence[str]] | None = None,
        /,
        *,
        label: str = "",
        **more: str | Sequence[str],
    ) -> NamedRule:
        """Forbid categories of several features together, by name.

        A mapping serves for names that are no Python names. A feature takes one category or
        several.

        Examples
        --------
        >>> Rule.forbid(sex="Male", MDC=["14", "15"]).values
        (('sex', ('Male',)), ('MDC', ('14', '15')))
        """
        named = {**(values or {}), **more}
        return NamedRule(
            tuple(
                (name, (listed,) if isinstance(listed, str) else tuple(map(str, listed)))
                for name, listed in named.items()
            ),
            label,
        )

    @classmethod
    def of(
        cls, forbid: Mapping[int, Sequence[int]], label: str = "", *, drafted: bool = False
    ) -> Rule:
        """Build a rule from a mapping of feature index to codes."""
        parts = tuple((index, frozenset(codes)) for index, codes in forbid.items())
        return cls(parts, label, drafted)

    def broken_by(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """Say for every row of a code matrix whether it breaks the rule."""
        broken = np.ones(len(codes), dtype=bool)
        for feature, forbidden in self.forbidden:
            broken &= np.isin(codes[:, feature], sorted(forbidden))
        return broken


@dataclass(frozen=True)
class NamedRule:
    """A rule as people write it: feature names with the categories that cannot occur together.

    A schema turns it into a `Rule` of its own.
    """

    values: tuple[tuple[str, tuple[str, ...]], ...]
    label: str = ""
    drafted_from_data: bool = False


def conditioned(rules: Sequence[Rule], clamped: Mapping[int, int]) -> tuple[Rule, ...]:
    """Return what the rules say of the other features once some values are given."""
    kept = []
    for rule in rules:
        if all(clamped[f] in codes for f, codes in rule.forbidden if f in clamped):
            rest = {f: sorted(codes) for f, codes in rule.forbidden if f not in clamped}
            if not rest:
                raise SchemaError("--where gives values that a rule of the schema forbids together")
            kept.append(Rule.of(rest))
    return tuple(kept)
