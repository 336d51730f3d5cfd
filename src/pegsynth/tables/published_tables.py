"""Published tables as bounds and variances of their cells: what `tables.toml` lists, read.

A cell is known to lie between two numbers (exact, rounded or suppressed counts) or was estimated
with a variance; never both. Rows that are labelled as totals become tables of fewer features. No
microdata is opened: every file that is read is one that was published.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from pegsynth.errors import DataError, escaped
from pegsynth.kernels.arrays import Float64
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema
from pegsynth.tables.table_input import named_source, opened
from pegsynth.tables.tables_file import Described, described_tables

MOST_CELLS = 1 << 16
_SDMX_COUNT = "OBS_VALUE"
_BETWEEN = re.compile(r"(\d+)\s*(?:-|\u2013|to|\.\.)\s*(\d+)")
_BELOW = re.compile(r"<\s*(\d+)")
_WHOLE = re.compile(r"(-?\d+)\.0+")


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """The cells of one table, in the order of the schema, the last feature varying fastest.

    Parameters
    ----------
    source
        The name of its file.
    features
        Places of its features in the schema, ascending; none for the number of rows.
    low, high
        Between which the count of each cell lies; equal where it is exact or an estimate.
    variance
        Of the error of an estimate; 0 where the cell lies between its bounds for certain.
    """

    source: str
    features: tuple[int, ...]
    low: Float64
    high: Float64
    variance: Float64

    @property
    def exact(self) -> bool:
        """Whether every cell is known exactly."""
        return bool((self.low == self.high).all() and not self.variance.any())

    @property
    def middle(self) -> Float64:
        """The middle of every cell; of a cell that nothing is known of, its lower bound."""
        return np.where(np.isfinite(self.high), (self.low + self.high) / 2, self.low)

    @property
    def spread(self) -> Float64:
        """The variance of every cell, if all whole numbers between its bounds are as likely."""
        width = self.high - self.low
        return self.variance + (np.square(width + 1) - 1) / 12

    def margin(self, features: Sequence[int], sizes: Sequence[int]) -> PublishedTable:
        """Return what this table tells of some of its features."""
        gone = tuple(axis for axis, each in enumerate(self.features) if each not in features)
        shape = [sizes[each] for each in self.features]
        parts = [
            np.asarray(line.reshape(shape).sum(axis=gone)).ravel()
            for line in (self.low, self.high, self.variance)
        ]
        kept = tuple(each for each in self.features if each in features)
        return PublishedTable(self.source, kept, *parts)


@dataclass(frozen=True)
class TableSource:
    """A file that evidence was read from, as the ledger lists it."""

    file: str
    sha256: str
    features: tuple[str, ...]
    error: str
    guarantee: str = ""
    by: str = ""


@dataclass(frozen=True)
class Evidence:
    """All published tables, and the files that they come from."""

    tables: tuple[PublishedTable, ...]
    sources: tuple[TableSource, ...]


def read_evidence(path: str | Path, schema: Schema) -> Evidence:
    """Read every table that a ``tables.toml`` lists; no other file is opened."""
    listing = Path(path)
    tables: list[PublishedTable] = []
    sources: list[TableSource] = []
    for each in described_tables(listing):
        file = listing.parent / each.file
        tables += _Reading(each, file, schema).tables()
        with file.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        names = tuple(map(escaped, each.features))
        statement = _statement(each, listing.parent)
        sources.append(
            TableSource(
                escaped(each.file),
                digest,
                names,
                each.error_in_words(),
                statement,
                escaped(each.by),
            )
        )
    _check_every_feature(tables, schema, listing)
    return Evidence(tuple(tables), tuple(sources))


def _check_every_feature(tables: Sequence[PublishedTable], schema: Schema, path: Path) -> None:
    known = {feature for table in tables for feature in table.features}
    for place, name in enumerate(schema.names):
        if place not in known:
            raise DataError(
                f"{path}: feature {name!r} of the schema is in no table; add a table of it, or "
                'give it role = "drop" in the schema'
            )


def _statement(each: Described, folder: Path) -> str:
    """Return what is promised of a table by those who made it."""
    if not each.guarantee.endswith(".json"):
        return escaped(each.guarantee)
    from pegsynth.privacy import Ledger

    path = folder / each.guarantee
    try:
        ledger = Ledger.from_json(path.read_bytes(), source=str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check guarantee") from None
    found = ledger.guarantee
    if found.epsilon is None:
        return "none"
    return f"epsilon = {found.epsilon:g}, delta = {found.delta or 0:g}"


@dataclass(frozen=True)
class _Reading:
    """One file, and how it is to be read."""

    told: Described
    file: Path
    schema: Schema

    def tables(self) -> Iterator[PublishedTable]:
        """Yield the table, and one for every set of features that totals are given for."""
        frame = self._long(self._frame())
        places = self._places()
        codes = [self._codes(frame, name) for name in self.told.features]
        low, high, variance = self._bounds(frame)
        order = sorted(range(len(places)), key=places.__getitem__)
        inside = np.stack([line >= 0 for line in codes]) if codes else np.zeros((0, len(low)))
        kinds = np.unique(inside, axis=1).T
        for kind in kinds[::-1]:
            rows = np.flatnonzero((inside == kind[:, None]).all(axis=0))
            kept = [each for each in order if kind[each]]
            features = tuple(places[each] for each in kept)
            shape = [self.schema.features[each].category_count for each in features]
            cells = math.prod(shape)
            if cells > MOST_CELLS:
                raise self._refused(
                    f"the table has {cells} cells and the most is {MOST_CELLS}; merge categories "
                    "in the schema, or give tables of fewer features"
                )
            keys = np.zeros(len(rows), dtype=np.int64)
            for each, size in zip(kept, shape, strict=True):
                keys = keys * size + codes[each][rows]
            if len(np.unique(keys)) < len(keys):
                raise self._refused(
                    "some cells are listed twice; say which rows to read, as where = "
                    '{ year = "2024" }, or name all features of the table'
                )
            yield self._table(features, keys, cells, low[rows], high[rows], variance[rows])

    def _table(
        self,
        features: tuple[int, ...],
        keys: np.ndarray,
        cells: int,
        low: Float64,
        high: Float64,
        variance: Float64,
    ) -> PublishedTable:
        """Put the cells in their order; those that are not listed are what `absent` says."""
        if len(keys) < cells and self.told.absent == "error":
            names = " x ".join(self.schema.names[each] for each in features)
            raise self._refused(
                f"{cells - len(keys)} of {cells} cells of {names} are not listed; say what they "
                'are, as absent = "zero" or absent = "unknown"'
            )
        unlisted = math.inf if self.told.absent == "unknown" else 0.0
        whole = [np.zeros(cells), np.full(cells, unlisted), np.zeros(cells)]
        for line, given in zip(whole, (low, high, variance), strict=True):
            line[keys] = given
        return PublishedTable(self.told.file, features, *whole)

    def _frame(self) -> pl.DataFrame:
        source = named_source(str(self.file), table=self.told.sheet or None)
        with opened(source) as reader:
            frame = pl.concat(list(reader.batches()))
        return frame.select(pl.all().cast(pl.String).fill_null("").str.strip_chars())

    def _long(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return one row for each cell, of the rows that are to be read."""
        told = self.told
        for column, value in told.where.items():
            frame = frame.filter(self._column(frame, column) == value)
            if frame.is_empty():
                raise self._refused(f"no row has {value!r} in column {column!r}; mend where")
        if not told.across:
            return frame
        rows = [told.columns.get(name, name) for name in told.features if name != told.across]
        for name in rows:
            self._column(frame, name)
        known = self._labels(told.across)
        heads = [name for name in frame.columns if name not in rows and self._known(name, known)]
        if not heads:
            raise self._refused(
                f"no column is named by a category of {told.across!r}; mend across, or say what "
                f"the columns mean in labels.{told.across}"
            )
        across = told.columns.get(told.across, told.across)
        return frame.unpivot(heads, index=rows, variable_name=across, value_name=self._count(frame))

    def _known(self, text: str, labels: Mapping[str, int]) -> bool:
        return _spelled(text) in labels or text.casefold() in self.told.totals

    def _count(self, frame: pl.DataFrame) -> str:
        return self.told.count or (_SDMX_COUNT if _SDMX_COUNT in frame.columns else "n")

    def _column(self, frame: pl.DataFrame, name: str) -> pl.Series:
        if name not in frame.columns:
            raise self._refused(
                f"there is no column {escaped(name)!r}; its columns are "
                f"{', '.join(escaped(each) for each in frame.columns)}"
            )
        return frame.get_column(name)

    def _places(self) -> list[int]:
        for name in self.told.features:
            if name not in self.schema.names:
                raise self._refused(
                    f"{escaped(name)!r} is no feature of the schema; its features are "
                    f"{', '.join(self.schema.names)}"
                )
        return [self.schema.names.index(name) for name in self.told.features]

    def _labels(self, name: str) -> dict[str, int]:
        """Return the code of every text that a category may have in this file."""
        feature = self.schema.features[self.schema.names.index(name)]
        known = labels_of(feature)
        for text, category in self.told.labels.get(name, {}).items():
            if _spelled(category) not in known:
                raise self._refused(
                    f"labels.{name}: {escaped(category)!r} is no category of the schema"
                )
            known[_spelled(text)] = known[_spelled(category)]
        return known

    def _codes(self, frame: pl.DataFrame, name: str) -> np.ndarray:
        """Return the code of a feature in every row; -1 where the row is a total."""
        column = self._column(frame, self.told.columns.get(name, name))
        known, totals = self._labels(name), self.told.totals
        codes = {}
        for text in column.unique().to_list():
            code = known.get(_spelled(text))
            if code is None and text.casefold() in totals:
                code = -1
            if code is None:
                raise self._refused(
                    f"column {column.name!r} has the label {escaped(text)!r}, which is no category "
                    f"of {name!r}; say which it is, as labels.{name} = {{ {escaped(text)!r} = "
                    '".." }, or name it in total'
                )
            codes[text] = code
        return np.array([codes[text] for text in column.to_list()], dtype=np.int64)

    def _bounds(self, frame: pl.DataFrame) -> tuple[Float64, Float64, Float64]:
        """Return bounds and variance of every row."""
        told = self.told
        if told.error == "interval":
            low, high = (self._numbers(frame, name) for name in (told.low, told.high))
            return low, high, np.zeros(len(low))
        texts = self._column(frame, self._count(frame)).to_list()
        bounds = [self._cell(text) for text in texts]
        low, high = (np.array([each[side] for each in bounds]) for side in (0, 1))
        variance = np.zeros(len(low))
        plain = np.array([each[2] for each in bounds], dtype=bool)
        if told.error == "variance":
            spread = self._numbers(frame, told.se) ** 2 if told.se else told.variance or 0.0
            variance = np.where(plain, spread, 0.0)
        elif told.random:
            # Up or down with odds that leave the mean: x - y has this variance if x is anything.
            variance = np.where(plain & (low > 0), (told.base**2 - 1) / 6, 0.0)
            high = np.where(plain & (low == 0), told.base - 1.0, high)
        elif told.error == "rounded":
            half = told.base / 2
            wide = np.where(plain, half, 0.0)
            low, high = np.maximum(np.ceil(low - wide), 0), np.floor(high + wide)
        return low, high, variance

    def _cell(self, text: str) -> tuple[float, float, bool]:
        """Return the bounds of a cell, and whether its number is shown."""
        if text in self.told.marks:
            return float(self.told.zeros_shown), self.told.below - 1.0, False
        if found := _BETWEEN.fullmatch(text):
            return float(found[1]), float(found[2]), False
        if found := _BELOW.fullmatch(text):
            return float(self.told.zeros_shown), float(found[1]) - 1.0, False
        number = _number(text)
        rounded = self.told.error == "rounded"
        if number is None or (number < 0 and self.told.error != "variance"):
            raise self._refused(
                f"the count {escaped(text)!r} is no number; if it stands for small cells, state "
                "below and mark"
            )
        if rounded and number % self.told.base:
            raise self._refused(
                f"the count {text} is no multiple of base {self.told.base}; mend base, or error"
            )
        return number, number, True

    def _numbers(self, frame: pl.DataFrame, name: str) -> Float64:
        found = [_number(text) for text in self._column(frame, name).to_list()]
        known = [each for each in found if each is not None and each >= 0]
        if len(known) < len(found):
            raise self._refused(f"column {name!r} holds something that is no number of at least 0")
        return np.array(known)

    def _refused(self, reason: str) -> DataError:
        return DataError(f"{self.file}: {reason}")


def labels_of(feature: Feature) -> dict[str, int]:
    """Return the code of every text that a published table may call a category."""
    known = {_spelled(label): code for code, label in enumerate(feature.labels)}
    listed = {text: code for code, text in enumerate(feature.categories)}
    for text, meaning in feature.value_labels:
        if text in listed:
            known.setdefault(_spelled(meaning), listed[text])
    for texts, code in (
        (feature.missing, feature.missing_code),
        (feature.not_applicable, feature.not_applicable_code),
    ):
        if code is not None:
            known = {_spelled(text): code for text in texts} | known
    spellings: dict[str, set[int]] = {}
    for code, text in _bands(feature):
        spellings.setdefault(_spelled(text), set()).add(code)
    for text, codes in spellings.items():
        if len(codes) == 1:
            known.setdefault(text, next(iter(codes)))
    return known


def _bands(feature: Feature) -> Iterator[tuple[int, str]]:
    """Yield what tables call the bins of a number, such as 18-64, 65+ and under 18."""
    edges, last = feature.closed_edges, feature.bin_count - 1
    if not feature.binned or feature.calendar:
        return
    for code in range(feature.bin_count):
        low, high = edges[code], edges[code + 1]
        ends = {high, high - 1} if code < last and float(high).is_integer() else {high}
        for end, dash in product(ends, ("-", "\u2013", " - ", " to ", "..")):
            yield code, f"{low:.12g}{dash}{end:.12g}"
        if code == last:
            yield from (
                (code, form.format(f"{low:.12g}")) for form in ("{}+", ">={}", "{} and over")
            )
        if code == 0:
            yield from ((code, form.format(f"{high:.12g}")) for form in ("<{}", "under {}"))


def _spelled(text: str) -> str:
    """Return a label as labels are compared: small letters, single spaces, 1.0 as 1."""
    plain = " ".join(text.casefold().split())
    found = _WHOLE.fullmatch(plain)
    return found[1] if found else plain


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
