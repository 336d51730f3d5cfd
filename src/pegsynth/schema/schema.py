"""The public codebook of a table: its features, unit and rules.

`Schema` is a value. It is made by hand, loaded from ``schema.toml``, or drafted from a
table; everything downstream takes its codes, key spaces and rules from here and nowhere
else, so that none of them depends on the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.schema.feature import Feature, category_counts
from pegsynth.schema.rules import Rule

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Schema:
    """What is publicly known about a table.

    Parameters
    ----------
    columns
        All described columns in table order, identifiers and the unit column included.
    unit
        Column that names the privacy unit, or None when a row is the unit. It is an
        identifier, whatever its role is said to be.
    rows_per_unit
        The most rows one unit may contribute; public, never observed.
    rules
        Forbidden combinations; feature indices refer to `features`.
    reviewed
        A person has declared categories, order, edges and `rows_per_unit` to be public.
    """

    columns: tuple[Feature, ...]
    unit: str | None = None
    rows_per_unit: int = 1
    rules: tuple[Rule, ...] = ()
    reviewed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(map(self._without_units, self.columns)))
        names = [column.name for column in self.columns]
        twice = (
            {name for name in names if names.count(name) > 1}
            if len(set(names)) < len(names)
            else ()
        )
        if twice:
            raise SchemaError(f"feature {min(twice)!r} is described twice")
        if not self.features:
            raise SchemaError("the schema has no feature left to synthesize")
        if self.rows_per_unit < 1:
            raise SchemaError("rows_per_unit must be at least 1")
        known = set(self.names)
        for feature in self.features:
            for other in (*feature.heads, *((feature.parent,) if feature.parent else ())):
                if other not in known or other == feature.name:
                    raise SchemaError(
                        f"feature {feature.name!r}: head or parent {other!r} is not another "
                        "feature of this schema"
                    )
            if len(set(feature.heads)) < len(feature.heads):
                raise SchemaError(f"feature {feature.name!r}: a head is listed twice")
        for number, rule in enumerate(self.rules, start=1):
            self._check_rule(f"rule {rule.label!r}" if rule.label else f"rule {number}", rule)

    def _without_units(self, column: Feature) -> Feature:
        return replace(column, role="identifier") if column.name == self.unit else column

    def _check_rule(self, name: str, rule: Rule) -> None:
        counts = self.category_counts
        if any(
            not 0 <= index < len(counts) or not 0 <= min(codes) <= max(codes) < counts[index]
            for index, codes in rule.forbid
        ):
            raise SchemaError(f"{name}: it speaks of features or categories the schema lacks")
        if all(len(codes) == counts[index] for index, codes in rule.forbid):
            raise SchemaError(f"{name}: it forbids every row; list fewer categories")

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The modelled columns: neither identifiers nor the unit column."""
        return tuple(column for column in self.columns if column.role != "identifier")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the modelled columns."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def category_counts(self) -> tuple[int, ...]:
        """C_1 .. C_M of the modelled columns."""
        return category_counts(self.features)

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """Smallest unsigned integer type that holds every code."""
        return np.min_scalar_type(max(self.category_counts) - 1)

    @property
    def drafted_from_data(self) -> tuple[str, ...]:
        """Names of the features whose categories or edges were read off a table."""
        return tuple(feature.name for feature in self.features if feature.drafted_from_data)

    def index(self, name: str) -> int:
        """Position of a modelled feature."""
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(
                f"the schema has no feature {name!r}; it has {', '.join(self.names)}"
            ) from None

    def breaks_a_rule(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """Say for every row of a code matrix whether it breaks any rule."""
        broken = np.zeros(len(codes), dtype=bool)
        for rule in self.rules:
            broken |= rule.broken_by(codes)
        return broken

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read ``schema.toml``."""
        from pegsynth.schema.toml import load

        return load(path)

    def save(self, path: str | Path) -> None:
        """Write ``schema.toml``."""
        from pegsynth.schema.toml import save

        save(self, path)

    @classmethod
    def draft(cls, data: Any, **options: Any) -> Schema:
        """Draft a schema from a table; it stays unreviewed until a person says otherwise."""
        from pegsynth.forks import check_threads
        from pegsynth.schema.draft import draft

        check_threads()
        return draft(data, **options)
