"""One column of a table in, its codes out.

Text is looked up whole; only what is not found there is looked at again, once per
distinct text: missing codes between spaces, the apostrophe of the CSV convention, other
spellings (`spelling`), bin labels. What is still not found is counted, never kept. Whole numbers
are looked up in a table of codes instead of being searched for, or written as a text, one by one.

A feature with `after` is read off two columns of the same row: its own date and the one that it is
counted from. The rule is public and looks at one row (R30): a date before the other counts as
the same moment, and where the other is not known the difference is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.dtypes import as_text, in_zone
from pegsynth.schema.feature import Feature, missing_code_of
from pegsynth.schema.keys import MISSING_LABEL, UNKNOWN_LABEL
from pegsynth.schema.number_text import TRUTH, NumberText, parsed_number, spelt
from pegsynth.schema.recoding import Recoding
from pegsynth.tables.csv_read import unprotect

if TYPE_CHECKING:
    from pegsynth.schema.schema import Schema

MISS = -1
_MOST_ENTRIES = 1 << 20
_FAR = 1 << 61
"""Beyond the ends of every table, and a difference of two such numbers has 64 bits."""
_WHOLE = re.compile(r"0|-?[1-9]\d{0,15}", re.ASCII)
_FITTING = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


@dataclass(frozen=True)
class WholeNumbers:
    """A table of codes for the numbers from `low` on; its ends stand for all beyond them."""

    low: int
    codes: NDArray[np.int32]

    def encode(self, values: pl.Series, gap: int) -> NDArray[np.int32] | None:
        """Return the code of every number, `MISS` where the table has none, `gap` for a null.

        None means that the column is not of whole numbers.
        """
        if values.dtype not in _FITTING:
            return None
        numbers = values.cast(pl.Int64).fill_null(self.low).to_numpy()
        if len(numbers) and max(-int(numbers.min()), int(numbers.max())) > _FAR:
            numbers = np.clip(numbers, -_FAR, _FAR)
        found: NDArray[np.int32] = np.take(self.codes, numbers - self.low, mode="clip")
        if values.null_count():
            found[values.is_null().arg_true().to_numpy()] = gap
        return found


def binned_numbers(
    inner_edges: NDArray[np.float64], special: Mapping[float, int]
) -> WholeNumbers | None:
    """Return the table of a numeric feature, if it is small enough.

    Parameters
    ----------
    inner_edges
        Edges between bins; a number on an edge falls in the bin above it.
    special
        Numbers that have a code of their own.
    """
    marks = [*inner_edges.tolist(), *special]
    if not marks or not all(map(math.isfinite, marks)):
        return None
    low, high = math.floor(min(marks)) - 1, math.ceil(max(marks)) + 1
    if high - low >= _MOST_ENTRIES or max(-low, high) >= _FAR:
        return None
    numbers = np.arange(low, high + 1)
    codes = np.searchsorted(inner_edges, numbers, side="right").astype(np.int32)
    for number, code in special.items():
        codes[numbers == number] = code
    return WholeNumbers(low, codes)


def listed_numbers(exact: Mapping[str, int]) -> WholeNumbers | None:
    """Return the table of a feature some of whose categories are whole numbers."""
    known: dict[int, Any] = {int(t): code for t, code in exact.items() if _WHOLE.fullmatch(t)}
    if not known or max(known) - min(known) >= _MOST_ENTRIES - 2:
        return None
    low = min(known) - 1
    codes = np.full(max(known) - low + 2, MISS, dtype=np.int32)
    codes[np.fromiter(known, dtype=np.int64) - low] = list(known.values())
    return WholeNumbers(low, codes)


_UNKNOWN = -1
ABSENT = -2

Codes = NDArray[np.integer[Any]]


class ColumnEncoder:
    """Turns values of one feature into codes, counting those that have none.

    Parameters
    ----------
    feature
        What the column may hold.
    spare
        Whether values that have no code get the code after the last one instead of 0.
    numbers
        How numbers are written in columns of text.

    Attributes
    ----------
    unknown
        Values seen so far that the schema does not list, and that have no category.
    unlisted
        Values seen so far that the schema does not list, with or without a category.
    absent
        Missing values seen so far where the schema has no missing category.
    """

    def __init__(
        self, feature: Feature, *, spare: bool = False, numbers: NumberText | None = None
    ) -> None:
        self.feature = feature
        self._dates = DateText(feature) if feature.kind in TEMPORAL else None
        self._written = self._dates or numbers or NumberText()
        self._none = feature.category_count if spare else 0
        self.unknown = 0
        self.unlisted = 0
        self.absent = 0
        self._exact = _exact_codes(feature)
        self._listed = {text: code for code, text in enumerate(feature.categories)}
        self._missing = {text.strip(): missing_code_of(feature, text) for text in feature.missing}
        self._numeric = feature.binned
        self._recoding = feature.recoding or Recoding()
        # Rounding values is the same as moving the edges between bins (R31).
        self._inner_edges = self._recoding.inner_edges(feature.edges)
        self._numbers = special_numbers(feature, self._written)
        spelt_low = {*map(str.lower, feature.categories)}
        self._truth = feature.dtype == "bool" or (bool(spelt_low) and spelt_low <= {*TRUTH})
        self._spellings: dict[bool, dict[str, int]] = {}
        self._table = pl.Enum(list(self._exact))
        self._codes = np.fromiter(self._exact.values(), dtype=np.int32, count=len(self._exact))
        self._identity = bool((self._codes == np.arange(len(self._codes))).all())
        self._whole = (
            binned_numbers(self._inner_edges, self._numbers)
            if self._numeric
            else listed_numbers(self._exact)
        )

    def encode(self, values: pl.Series) -> Codes:
        """Return the code of every value; those that have none are counted and get a stand-in."""
        if self._dates is not None:
            moments = self._dates.typed(values)
            if moments is None:
                return self._encode_number_texts(as_text(values))
            return self._encode_numbers(moments)
        if self._numeric and (values.dtype.is_numeric() or values.dtype == pl.Boolean):
            return self._encode_numbers(values)
        if self._numeric:
            return self._encode_number_texts(as_text(values))
        return self._encode_texts(values)

    def encode_batch(self, batch: pl.DataFrame) -> Codes:
        """Return the code of every row of a batch of the table."""
        return self.encode(batch.get_column(self.feature.name))

    @property
    def hint(self) -> pl.DataType | None:
        """Return the type that says the same as the text of a cell, if there is one.

        An empty cell would become null, so it must mean the same as null.
        """
        gap = self._exact.get("", self.feature.missing_code)
        if self._dates is not None or gap != self.feature.missing_code:
            return None
        if self.feature.missing and "" not in self._missing:
            return None
        missing = self.feature.missing_code
        if self._numeric and any(
            text.strip().lstrip("+-").lower() == "nan" and code != missing
            for text, code in self._exact.items()
        ):
            # The text has a meaning of its own, which a float that is no number has lost.
            return None
        if self._numeric and not (self._written.usual or self.feature.integer):
            # Readers take either mark for a decimal one, and one block may have both.
            return None
        if self._numeric:
            return pl.Int64() if self.feature.integer else pl.Float64()
        return self._table if self._exact else None

    def _encode_listed(self, values: pl.Series) -> Codes:
        """Return codes of values that were read as the schema's own categories."""
        found = values.to_physical()
        gaps = found.null_count()
        if gaps and self._identity:
            # The type may be too small for a code after the last.
            found = found.cast(pl.UInt32).fill_null(self._counted(ABSENT, gaps))
        if self._identity:
            return found.to_numpy()
        codes: Codes = np.take(self._codes, found.fill_null(0).to_numpy())
        if gaps:
            codes[found.is_null().arg_true().to_numpy()] = self._counted(ABSENT, gaps)
        return codes

    def _encode_texts(self, values: pl.Series) -> Codes:
        if values.dtype == self._table:
            return self._encode_listed(values)
        whole = self._encode_whole(values)
        if whole is not None:
            return whole
        text = as_text(in_zone(values, self.feature.dtype))
        # A column of truth values says so itself, and for itself alone (R30).
        truth = self._truth or values.dtype == pl.Boolean
        if not self._exact:
            return self._resolve(text, truth=truth)
        found = text.cast(self._table, strict=False).to_physical()
        gaps = found.null_count()
        positions: Codes = (found.fill_null(0) if gaps else found).to_numpy()
        codes: Codes = positions if self._identity else self._codes[positions]
        if gaps:
            codes = codes.astype(np.int64)
            lost = found.is_null()
            codes[lost.to_numpy()] = self._resolve(text.filter(lost), truth=truth)
        return codes

    def _encode_numbers(self, values: pl.Series) -> Codes:
        whole = self._encode_whole(values)
        if whole is not None:
            return whole
        numbers = values.cast(pl.Float64).to_numpy()
        codes = self._bins(numbers)
        gaps = np.isnan(numbers)
        count = int(np.count_nonzero(gaps))
        if count:
            codes[gaps] = self._counted(ABSENT, count)
        return codes

    def _encode_whole(self, values: pl.Series) -> Codes | None:
        """Return codes of whole numbers by table, if all of them are in it."""
        if self._whole is None:
            return None
        gap = self._accepted(ABSENT)
        codes = self._whole.encode(values, self._none if gap is None else gap)
        if codes is None or (len(codes) and codes.min() == MISS):
            return None
        if gap is None:
            self.absent += values.null_count()
        return codes

    def _encode_number_texts(self, text: pl.Series) -> Codes:
        numbers = self._written.numbers(text).to_numpy()
        codes = self._bins(numbers)
        gaps = np.isnan(numbers)
        if gaps.any():
            codes[gaps] = self._resolve(text.filter(pl.Series(gaps)))
        return codes

    def _bins(self, numbers: NDArray[np.float64]) -> Codes:
        # Outer edges are left out: what lies beyond them falls in the end bins.
        codes = np.searchsorted(self._inner_edges, numbers, side="right")
        for number, code in self._numbers.items():
            codes[numbers == number] = code
        return codes

    def _resolve(self, text: pl.Series, *, truth: bool = False) -> Codes:
        """Code of every text that the exact lookup did not find."""
        codes = np.full(len(text), ABSENT, dtype=np.int64)
        distinct = text.drop_nulls().unique()
        if len(distinct):
            plain = self._spelt([unprotect(text) for text in distinct], truth=truth)
            known = self._by_spelling(truth=truth)
            codes_of = [self._code(*each, known) for each in zip(distinct, plain, strict=True)]
            found = pl.Series(codes_of, dtype=pl.Int64)
            mapped = text.replace_strict(distinct, found, default=None, return_dtype=pl.Int64)
            codes = mapped.fill_null(ABSENT).to_numpy().copy()
        for mark in (_UNKNOWN, ABSENT):
            hit = codes == mark
            count = int(np.count_nonzero(hit))
            if count:
                codes[hit] = self._counted(mark, count)
        return codes

    def _counted(self, mark: int, count: int) -> int:
        self.unlisted += count if mark == _UNKNOWN else 0
        code = self._accepted(mark)
        if code is not None:
            return code
        if mark == ABSENT:
            self.absent += count
        else:
            self.unknown += count
        return self._none

    def _accepted(self, mark: int) -> int | None:
        """Return the code that the schema gives to values that are unknown or absent."""
        feature = self.feature
        if mark == ABSENT and feature.missing_code is not None:
            return feature.missing_code
        # Numeric columns are written with null for "unknown", so null reads back as it.
        return feature.unknown_code if mark == _UNKNOWN or self._numeric else None

    def _by_spelling(self, *, truth: bool) -> dict[str, int]:
        """Return the code of every spelling, that of the first listed text that is spelt so."""
        if truth not in self._spellings:
            # Few columns have other spellings, and a table may have thousands of columns.
            spellings = self._spelt(list(self._exact), truth=truth)
            pairs = zip(spellings, self._exact.values(), strict=True)
            self._spellings[truth] = dict(reversed(list(pairs)))
        return self._spellings[truth]

    def _spelt(self, texts: Sequence[str], *, truth: bool) -> pl.Series:
        """Return texts in one spelling; files of SPSS have no spaces at the end of a text."""
        series = pl.Series(texts, dtype=pl.String).str.strip_chars_end(" ")
        return spelt(series, self.feature, truth=truth)

    def _code(self, text: str, spelling: str, spellings: dict[str, int]) -> int:
        stripped = text.strip()
        if text in self._exact:
            return self._exact[text]
        missing = self._missing.get(stripped)
        if not stripped or missing is not None:
            return ABSENT if missing is None or not stripped else missing
        plain = unprotect(text)
        known = self._exact.get(plain, spellings.get(spelling))
        if known is not None:
            return known
        if stripped == MISSING_LABEL and self.feature.missing:
            return ABSENT
        if stripped == UNKNOWN_LABEL and self.feature.unknown_code is not None:
            return self.feature.unknown_code
        return self._other_code(stripped, spelling)

    def _other_code(self, text: str, spelling: str) -> int:
        """Return the code of a number, or of what public rules turn into a category (R31)."""
        if not self._numeric:
            text = self._recoding.text(spelling)
            return self._listed.get(text, _UNKNOWN) if self.feature.recoding else _UNKNOWN
        number = self._written.number(text)
        if number is None:
            return _UNKNOWN
        return ABSENT if math.isnan(number) else int(self._bins(np.array([number]))[0])


class DifferenceEncoder(ColumnEncoder):
    """Turns dates into codes of how long after another date they are.

    Parameters
    ----------
    feature
        The feature, with `after`.
    other
        The feature that it is counted from.
    spare
        As for `ColumnEncoder`.
    """

    def __init__(self, feature: Feature, other: Feature, *, spare: bool = False) -> None:
        super().__init__(feature, spare=spare)
        self._other = other.name
        self._other_text = DateText(other)
        self._other_special = np.array([*special_numbers(other, self._other_text)])

    def encode(self, values: pl.Series) -> Codes:
        """Return codes of texts that name a category; dates alone have none."""
        return self._resolve(as_text(values))

    def encode_batch(self, batch: pl.DataFrame) -> Codes:
        """Return the code of every row."""
        own = batch.get_column(self.feature.name)
        text = as_text(own)
        moments = moments_of(DateText(self.feature), own)
        codes = np.zeros(len(own), dtype=np.int64)
        strange = np.isnan(moments)
        if strange.any():
            codes[strange] = self._resolve(text.filter(pl.Series(strange)))
        counted = ~strange
        for number, code in self._numbers.items():
            hit = moments == number
            codes[hit] = code
            counted &= ~hit
        others = np.full(len(own), np.nan)
        if self._other in batch.columns:
            others = moments_of(self._other_text, batch.get_column(self._other))
            others[np.isin(others, self._other_special)] = np.nan
        alone = counted & np.isnan(others)
        if alone.any():
            codes[alone] = self._counted(ABSENT, int(np.count_nonzero(alone)))
        both = counted & ~alone
        # Rows in which the order is violated count as the same moment.
        differences = np.maximum(moments[both] - others[both], 0.0)
        codes[both] = np.searchsorted(self._inner_edges, differences, side="right")
        return codes


def column_encoders(schema: Schema, *, spare: bool = False) -> list[ColumnEncoder]:
    """Return an encoder for every feature of a schema, in order."""
    numbers = NumberText(schema.dialect)
    return [
        ColumnEncoder(feature, spare=spare, numbers=numbers)
        if feature.after is None
        else DifferenceEncoder(feature, schema[feature.after], spare=spare)
        for feature in schema.features
    ]


def moments_of(text: DateText, values: pl.Series) -> NDArray[np.float64]:
    """Return the number of every moment, NaN for none."""
    typed = text.typed(values)
    numbers = text.numbers(as_text(values)) if typed is None else typed
    return numbers.cast(pl.Float64).to_numpy().copy()


def _exact_codes(feature: Feature) -> dict[str, int]:
    """Texts that stand for a code as they are; the first meaning of a text counts."""
    codes: dict[str, int] = {}
    labels = feature.labels[: feature.bin_count] if feature.labelled else ()
    for code, label in enumerate(labels):
        codes.setdefault(label, code)
    for text in feature.not_applicable:
        if feature.not_applicable_code is not None:
            codes.setdefault(text, feature.not_applicable_code)
    for text in feature.missing:
        if (missing := missing_code_of(feature, text)) is not None:
            codes.setdefault(text, missing)
    listed = {text: code for code, text in enumerate(feature.categories)}
    for text, becomes in feature.recoding.listed_texts if feature.recoding else ():
        if becomes in listed:
            codes.setdefault(text, listed[becomes])
    return codes


def special_numbers(feature: Feature, written: NumberText | DateText) -> dict[float, int]:
    """Return numbers that mean "missing" or "not applicable", and the codes that they have."""
    numbers: dict[float, int] = {}
    pairs = [(text, feature.not_applicable_code) for text in feature.not_applicable]
    pairs += [(text, missing_code_of(feature, text)) for text in feature.missing]
    for text, code in pairs:
        number = special_number(text, written)
        if number is not None and code is not None:
            numbers.setdefault(number, code)
    return numbers


def special_number(text: str, written: NumberText | DateText) -> float | None:
    """Return the finite number of a text that has a meaning of its own, as its column has it."""
    number = parsed_number(text) if written.usual else written.number(text)
    return number if number is not None and math.isfinite(number) else None
