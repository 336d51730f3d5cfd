"""What a release of blocks has to know of a table: public figures, by feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.drawn_features import clamped_codes
from pegsynth.methods.released.details import Detail, details_of, hierarchies
from pegsynth.schema.rules import Rule

if TYPE_CHECKING:
    from pegsynth.schema import Schema


@dataclass(frozen=True)
class Domain:
    """The features of a table, and what the schema says of them.

    Parameters
    ----------
    sizes
        Categories of every feature.
    ordered
        For every feature whether neighbouring categories are alike.
    names
        Names of the features, for the ledger.
    rules
        What no row may be.
    details
        Features that are drawn given their parent, parents first, on their categories.
    above
        For every feature a public hierarchy, if it has one, along which its categories merge.
    public
        For every feature its public shares, or None: what is public is not measured.
    apart
        Features, beside those of rules and details, whose categories must stay apart.
    first
        The feature to be placed first; None: the one with the fewest levels.
    rows_per_unit
        The most rows of a unit.
    """

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    names: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    details: tuple[Detail, ...] = ()
    above: tuple[Sequence[Int64], ...] = ()
    public: tuple[Float64 | None, ...] = ()
    apart: frozenset[int] = frozenset()
    first: int | None = None
    rows_per_unit: int = 1

    @property
    def known(self) -> tuple[Float64 | None, ...]:
        """For every feature its public shares, or None."""
        return self.public or (None,) * len(self.sizes)

    @property
    def whole(self) -> tuple[bool, ...]:
        """For every feature whether its categories must stay apart."""
        spoken_of = {place for rule in self.rules for place, _ in rule.forbidden} | self.apart
        spoken_of |= {detail.parent for detail in self.details}
        return tuple(place in spoken_of for place in range(len(self.sizes)))

    @property
    def closed(self) -> set[int]:
        """The features that no found dependence may be about: others speak of them."""
        details = {each.feature for each in self.details}
        return details | {place for place, kept in enumerate(self.whole) if kept}


def domain_of(schema: Schema, options: Any) -> Domain:
    """Return the domain of a table whose rows are counted as they are."""
    apart = set(clamped_codes(schema, options))
    apart |= {schema.index(name) for table in schema.tables_wanted for name in table.features}
    panel = schema.panel
    return Domain(
        schema.category_counts,
        tuple(feature.kind != "nominal" for feature in schema.features),
        schema.names,
        tuple(schema.rules),
        details_of(schema),
        tuple(hierarchies(schema)),
        public_lines(schema),
        frozenset(apart),
        # The number of rows of a panel's unit settles what is absent (R24).
        schema.index(panel.count) if panel is not None and panel.wide else None,
    )


def public_lines(schema: Schema) -> tuple[NDArray[np.float64] | None, ...]:
    """Return the public shares of every feature, None where the schema states none."""
    return tuple(
        np.array(feature.shares) / math.fsum(feature.shares) if feature.shares else None
        for feature in schema.features
    )
