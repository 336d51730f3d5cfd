"""Nominal features whose categories are not public: which texts a release may find (R29).

Before they are found such a feature has no category but the special ones. Afterwards it is an
ordinary nominal feature: its categories stand in text order, and every other value is
"(other)".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from pegsynth.schema.dtypes import as_text, in_zone
from pegsynth.schema.feature import UNKNOWN_LABEL, Feature
from pegsynth.schema.missing_codes import MISSING_LABEL
from pegsynth.schema.number_text import spelt

_PROTECTED = r"^'([=+\-@\t\r])"


def candidates(values: pl.Series, feature: Feature) -> pl.Series:
    """Return the text that each value would be found under; null where it can be none.

    What a value becomes depends on that value alone (R30). Missing values, those that mean
    "not applicable", and the names of special categories are no candidates.
    """
    # As the encoder looks texts up: without what CSV puts before formulas, in one spelling.
    text = as_text(in_zone(values, feature.dtype)).str.replace(_PROTECTED, "$1")
    if not values.dtype.is_numeric():
        text = spelt(text, feature, truth=feature.dtype == "bool")
    stripped = text.str.strip_chars()
    taken = special_texts(feature)
    lost = (stripped == "") | stripped.is_in(taken) | text.is_in(taken)
    return text.set(lost.fill_null(value=True), None)


def special_texts(feature: Feature) -> list[str]:
    """Return the texts that mean something else than a category of their own."""
    stripped = (text.strip() for text in feature.missing)
    reserved = (MISSING_LABEL, UNKNOWN_LABEL, *special_labels(feature))
    return [*reserved, *feature.not_applicable, *feature.missing, *stripped]


def special_labels(feature: Feature) -> tuple[str, ...]:
    """Return the labels that a feature has besides its categories."""
    return feature.labels[feature.bin_count :]


def with_categories(feature: Feature, found: Iterable[str]) -> Feature:
    """Return the feature with the categories that were found, in text order."""
    return replace(feature, private_categories=False, categories=tuple(sorted(set(found))))
