"""Categories that are found: counts of values, what finding them costs, the search (R29).

`counted_values` takes the rows of a table, batch by batch and as often as asked, and gives the
values that occur with their counts, in parts: one for every share of the values (`HeldRows`).
They are exact, confidential, and in bounded memory. `plan_categories` needs no data: noise,
threshold and delta' are fixed before any is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import polars as pl

from pegsynth.codec.code_table import HeldRows
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.privacy.unseen_categories import smallest_threshold
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import candidates, with_categories
from pegsynth.schema.schema import Schema

MOST_BYTES = 1 << 26
"""About how much memory the values of all features take together before they are dealt into
shares; putting counts together takes a few times as much for a moment."""

_VALUE, _COUNT = "value", "count"

Rows = Callable[[], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Part:
    """Some of the values of one feature, in text order, and how often each occurs."""

    name: str
    texts: pl.Series
    counts: Int64


def counted_values(
    rows: Rows, features: Sequence[Feature], *, most_bytes: int = MOST_BYTES
) -> Iterator[Part]:
    """Yield the values of some features with their counts; every value is in one part.

    Parameters
    ----------
    rows
        Yields the rows to count, units bounded, as often as called.
    features
        Features whose categories are private.
    most_bytes
        See `MOST_BYTES`.
    """
    most = max(1, most_bytes // max(1, len(features)))
    shares = {feature.name: 1 for feature in features}
    share = 0
    while share < max(shares.values()):
        held = {
            feature: HeldRows(
                lambda counted: counted.group_by(_VALUE).agg(pl.col(_COUNT).sum()),
                most,
                key=_VALUE,
                share=share,
                shares=shares[feature.name],
                size=pl.DataFrame.estimated_size,
            )
            for feature in features
            if share < shares[feature.name]
        }
        for each in held.values():
            each.add(pl.DataFrame(schema={_VALUE: pl.String, _COUNT: pl.Int64}))
        for frame in rows():
            for feature, each in held.items():
                each.add(_counted(frame.get_column(feature.name), feature))
        for feature, each in held.items():
            counted = each.frame().sort(_VALUE)
            shares[feature.name] = each.shares
            texts, counts = counted.get_columns()
            yield Part(feature.name, texts, counts.to_numpy())
        share += 1


def _counted(values: pl.Series, feature: Feature) -> pl.DataFrame:
    """Return the values of one batch that may become categories, with their counts."""
    text = candidates(values, feature).rename(_VALUE)
    counted = text.drop_nulls().value_counts(name=_COUNT)
    return counted.with_columns(pl.col(_COUNT).cast(pl.Int64))


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
    passing = (
        replace(part, counts=searches[part.name](part.counts))
        for part in budget_filter.candidates(parts)
    )
    return frequent_categories(passing, plan.names)


def frequent_categories(parts: Iterable[Part], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the texts with the largest counts of every feature, in text order.

    Those with a count of 0 are left out. With exact counts it is for methods that promise nothing.
    """
    none = pl.DataFrame(schema={"text": pl.String, "count": pl.Int64})
    kept = dict.fromkeys(names, none)
    for part in parts:
        more = pl.DataFrame({"text": part.texts, "count": part.counts})
        both = pl.concat([kept[part.name], more.filter(pl.col("count") > 0)])
        order = both.sort(["count", "text"], descending=[True, False])
        kept[part.name] = order.head(MOST_FOUND)
    return {name: tuple(sorted(frame["text"].to_list())) for name, frame in kept.items()}


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
