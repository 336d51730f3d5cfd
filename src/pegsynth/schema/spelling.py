"""Texts that spell the same category: 1.0 is 1, and TRUE is true.

Programs write the codes of one column differently: a column of doubles comes out of them as
``1.0`` where the schema lists ``1``. The schema decides what a category is called; a text that it
does not list is looked up by its spelling. What that is depends on the text and the schema
alone (R30).
"""

from __future__ import annotations

import polars as pl

from pegsynth.schema.feature import Feature

TRUTH = ("false", "true")
_TEXT_TYPES = ("string", "large_string", "string_view", "utf8", "dictionary")
_WHOLE = r"^(-?(?:0|[1-9][0-9]*))\.0*$"
_ZEROS = r"^(-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])0+$"


def spelt(texts: pl.Series, feature: Feature, *, truth: bool) -> pl.Series:
    """Return texts in one spelling: decimals without zeros at their end, truth values in words.

    A column that the schema declares to be text is taken at its word: there 1.0 is not 1.

    Parameters
    ----------
    truth
        Whether the column holds truth values, which may be written as 0 and 1.
    """
    numbers = not feature.dtype.startswith(_TEXT_TYPES)
    if numbers:
        texts = texts.str.replace(_WHOLE, "$1").str.replace(_ZEROS, "$1").replace("-0", "0")
    if truth:
        low = texts.str.to_lowercase()
        texts = low.zip_with(low.is_in(TRUTH).fill_null(value=False), texts)
    if truth and numbers:
        texts = texts.replace(["0", "1"], TRUTH)
    return texts
