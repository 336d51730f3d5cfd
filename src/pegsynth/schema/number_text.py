"""Numbers as texts of a dialect: ``1.234,56`` in, 1234.56 out, and back.

A text is a number or it is none, whatever stands beside it (R30): groups of digits are taken for
thousands only if every group but the first has three of them, and the mark of another dialect is
no decimal mark.

Texts that spell the same category: 1.0 is 1, and TRUE is true.

Programs write the codes of one column differently: a column of doubles comes out of them as
``1.0`` where the schema lists ``1``. The schema decides what a category is called; a text that it
does not list is looked up by its spelling. What that is depends on the text and the schema
alone (R30). A nominal feature whose categories are private has none but the special ones before a
release finds them (R29); afterwards they stand in text order, and every other value is "(other)".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import polars as pl

from pegsynth.schema.dialect import Dialect
from pegsynth.schema.dtypes import as_text, in_zone
from pegsynth.schema.feature import Feature
from pegsynth.schema.keys import MISSING_LABEL, UNKNOWN_LABEL

_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"


@dataclass(frozen=True)
class NumberText:
    """How numbers are written.

    Examples
    --------
    >>> german = NumberText(Dialect(decimal=",", thousands="."))
    >>> german.plain(pl.Series(["1.234,5", "1.5"])).to_list()
    ['1234.5', None]
    """

    dialect: Dialect = field(default_factory=Dialect)

    @property
    def usual(self) -> bool:
        """Whether texts are numbers as they are."""
        return self.dialect.decimal in ("", ".") and not self.dialect.thousands

    @cached_property
    def _pattern(self) -> str:
        mark = re.escape(self.dialect.decimal or ".")
        digits = "[0-9]+"
        if self.dialect.thousands:
            group = re.escape(self.dialect.thousands)
            digits = f"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)"
        return rf"^\s*[+-]?(?:{digits}(?:{mark}[0-9]*)?|{mark}[0-9]+){_EXPONENT}\s*$"

    def plain(self, texts: pl.Series) -> pl.Series:
        """Return every text as programs write the number in it; null for one of another form.

        Texts without any mark are left as they are: they are whole numbers, or no numbers.
        """
        if self.usual:
            return texts
        marks = ".," + self.dialect.thousands
        marked = texts.str.contains(f"[{re.escape(marks)}]")
        if not marked.any():
            return texts
        fits = texts.str.contains(self._pattern)
        bare = texts
        if self.dialect.thousands:
            bare = bare.str.replace_all(self.dialect.thousands, "", literal=True)
        if self.dialect.decimal == ",":
            bare = bare.str.replace(",", ".", literal=True)
        bare = bare.set(~fits, None)
        return bare.zip_with(marked, texts)

    def numbers(self, texts: pl.Series) -> pl.Series:
        """Return the number in every text; null where there is none."""
        return self.plain(texts).cast(pl.Float64, strict=False)

    def texts(self, numbers: pl.Series) -> pl.Series:
        """Return the text of every number, without marks of thousands."""
        texts = as_text(numbers)
        return texts.str.replace(".", ",", literal=True) if self.dialect.decimal == "," else texts

    def number(self, text: str) -> float | None:
        """Return the number in one text, which may be no finite one."""
        if not self.usual:
            (plain,) = self.plain(pl.Series([text], dtype=pl.String))
            if plain is None:
                return None
            text = plain
        try:
            return float(text.replace("_", "?"))
        except ValueError:
            return None


def parsed_number(text: str) -> float | None:
    """Return the finite number that a text spells, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


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


# The apostrophe that keeps spreadsheets from running a text as a formula is not part of it.
PROTECTED = r"^'([=+\-@\t\r])"


def candidates(values: pl.Series, feature: Feature) -> pl.Series:
    """Return the text that each value would be found under; null where it can be none.

    What a value becomes depends on that value alone (R30). Missing values, those that mean
    "not applicable", and the names of special categories are no candidates.
    """
    # As the encoder looks texts up: without what CSV puts before formulas, in one spelling.
    text = as_text(in_zone(values, feature.dtype)).str.replace(PROTECTED, "$1")
    if not values.dtype.is_numeric():
        text = spelt(text, feature, truth=feature.dtype == "bool")
    stripped = text.str.strip_chars()
    reserved = (MISSING_LABEL, UNKNOWN_LABEL, *feature.labels[feature.bin_count :])
    listed = (*feature.not_applicable, *feature.missing)
    taken = [*reserved, *listed, *(each.strip() for each in feature.missing)]
    lost = (stripped == "") | stripped.is_in(taken) | text.is_in(taken)
    return text.set(lost.fill_null(value=True), None)


def with_categories(feature: Feature, found: Iterable[str]) -> Feature:
    """Return the feature with the categories that were found, in text order."""
    return replace(feature, private_categories=False, categories=tuple(sorted(set(found))))
