"""Categories out of counts: what finding them costs, the search itself, the schema afterwards.

`plan_categories` needs no data: noise, threshold and delta' are fixed before any is read (R29).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from pegsynth.arrays import Int64
from pegsynth.categories.candidate_counts import Part
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.privacy.unseen_categories import smallest_threshold
from pegsynth.schema.private_categories import with_categories
from pegsynth.schema.schema import Schema

DELTA_SHARE = Fraction(1, 10)
"""Part of the stated delta that all searches take together. A tenth of it costs half a percent
of rho at a delta of 1e-9, and a threshold grows with the root of its logarithm."""

MOST_FOUND = 2_000
"""The most categories that a feature gets: those with the largest noisy counts."""

FORESEEN = 20
"""How many categories a plan takes a feature to have before they are known."""


@dataclass(frozen=True)
class CategoriesPlan:
    """How the categories of a schema are looked for.

    Parameters
    ----------
    names
        Features whose categories are private, in the order of the schema.
    share
        The part of the whole budget that each takes.
    delta
        The most of delta that each takes.
    deviation, threshold
        Noise on every count, and the noisy count above which a value becomes a category.
    """

    names: tuple[str, ...]
    share: float
    delta: Fraction
    deviation: float
    threshold: int


def private_names(schema: Schema) -> tuple[str, ...]:
    """Return the features whose categories are private."""
    return tuple(each.name for each in schema.features if each.private_categories)


def delta_for(schema: Schema, delta: float | None) -> Fraction:
    """Return what all searches take of a stated delta, fixed before any data is read."""
    if delta is None or not private_names(schema):
        return Fraction(0)
    return Fraction(delta) * DELTA_SHARE


def plan_categories(
    schema: Schema, price: Price, share: float, *, delta: Fraction
) -> CategoriesPlan:
    """Plan the searches.

    Parameters
    ----------
    price
        What a part of the whole buys.
    share
        The part of it for each feature.
    delta
        What all searches together may take of the stated delta.
    """
    names = private_names(schema)
    each = delta / max(len(names), 1)
    deviation = price.deviation(share)
    threshold = smallest_threshold(Fraction(deviation) ** 2, each, price.rows_per_unit)
    return CategoriesPlan(names, share, each, deviation, threshold)


def find_categories(
    schema: Schema, plan: CategoriesPlan, parts: Iterable[Part], budget_filter: PrivacyFilter
) -> dict[str, tuple[str, ...]]:
    """Return the categories that were found, in text order; all is paid before any is looked at."""
    searches = {
        name: budget_filter.search(plan.share, delta=plan.delta, features=(schema.index(name),))
        for name in plan.names
    }
    kept = _Largest(plan.names)
    for part in budget_filter.candidates(parts):
        kept.add(part, searches[part.name](part.counts))
    return kept.texts()


def frequent_categories(parts: Iterable[Part], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the most frequent values, for methods that promise nothing."""
    kept = _Largest(names)
    for part in parts:
        kept.add(part, part.counts)
    return kept.texts()


class _Largest:
    """Texts with the largest counts of every feature, those with a count of 0 left out."""

    def __init__(self, names: Sequence[str]) -> None:
        none = pl.DataFrame(schema={"text": pl.String, "count": pl.Int64})
        self._kept = dict.fromkeys(names, none)

    def add(self, part: Part, counts: Int64) -> None:
        """Take in a part, by these counts."""
        more = pl.DataFrame({"text": part.texts, "count": counts}).filter(pl.col("count") > 0)
        both = pl.concat([self._kept[part.name], more])
        order = both.sort(["count", "text"], descending=[True, False])
        self._kept[part.name] = order.head(MOST_FOUND)

    def texts(self) -> dict[str, tuple[str, ...]]:
        """Return what is kept, in text order."""
        return {name: tuple(sorted(kept["text"].to_list())) for name, kept in self._kept.items()}


def settled_categories(schema: Schema, found: Mapping[str, Iterable[str]]) -> Schema:
    """Return the schema with the categories that were found."""
    return schema.with_columns(
        with_categories(column, found[column.name]) if column.name in found else column
        for column in schema.columns
    )


def provisional_categories(schema: Schema) -> Schema:
    """Return the schema with as many categories as are taken for granted, which mean nothing."""
    guess = tuple(f"category {number:02}" for number in range(1, FORESEEN + 1))
    return settled_categories(schema, dict.fromkeys(private_names(schema), guess))
