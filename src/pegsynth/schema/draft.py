"""A first schema for a table, for a person to review.

In goes a table; out comes an unreviewed `Schema` that covers what was seen in it. It is
made by looking at the data (R10), so every feature says ``drafted_from_data`` and nothing
that rests on it is private until a person declares it public. Notes tell the reviewer what
to look at. The table is read in batches, once, in bounded memory.

A draft that reads no row tells nothing of the data: it is made from names and declared types
alone. What a column may hold is left to the release, which measures edges (R21) and finds
categories (R29) and pays for both, so that nothing has to be declared public but what a person
adds: roles, unit and rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import polars as pl

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import suggest
from pegsynth.schema.binning import (
    MAX_BINS,
    MOST_PRIVATE_BINS,
    quantile_edges,
    round_edges,
    within_type,
)
from pegsynth.schema.date_text import Guess, guess_of_type
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.dtypes import polars_dtype
from pegsynth.schema.feature import Feature
from pegsynth.schema.keys import MISSING_LABEL, PRIVATE, UNKNOWN_LABEL
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.schema import Schema
from pegsynth.schema.tally import (
    FEW_PEOPLE,
    FEW_ROWS,
    FILE_MISSING,
    MAX_SKETCH,
    MAX_TEXTS,
    TYPED_MISSING,
    ColumnTally,
    QuantileSketch,
)
from pegsynth.schema.words import in_order, named, names_codes
from pegsynth.tables.caller_frames import frame_kind, object_texts
from pegsynth.tables.dialect_guess import check_known, recognised
from pegsynth.tables.file_sets import DATABASES, find_files, scheme_of
from pegsynth.tables.reader import TableReader
from pegsynth.tables.table_input import named_source, opened

Binning = Literal["private", "equal-width", "quantile"]

FEW_VALUES = 16
"""Numbers of more values than these are measured and not listed."""
MOST_ROWS_EACH = 30
"""A key that repeats names units; with more rows for each value, it is a code of groups."""
MOST_ROWS_OF_A_PERSON = 1_000
USUAL_BINS = 20
LIKE_AN_IDENTIFIER = 0.5
NEARLY_ALL = 0.9
CROWDED = 0.8

_DROPPED = f"more than {MAX_TEXTS:,} distinct texts or nearly one per row; dropped"
_SHARE_SKETCH = 10_000
_PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]", re.ASCII)

_TRUTH = ("false", "true")

# What the schema itself calls these categories; no value is listed under either name.
_RESERVED = (MISSING_LABEL, UNKNOWN_LABEL)


LOOKED_AT = 200_000
MOST_CELLS = 1 << 23


@dataclass(frozen=True)
class _Options:
    """How many rows a listed value has at least, the most bins, and how they are made.

    `stated_count` and `stated_bins` are None where nobody stated them.
    """

    stated_count: int | None
    stated_bins: int | None
    binning: Binning

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ParameterError("min_count must be at least 1; 1 lists every category")
        if self.binning not in get_args(Binning):
            raise ParameterError(f"binning must be one of {', '.join(get_args(Binning))}")
        private = self.binning == "private"
        least, most = (2, MOST_PRIVATE_BINS) if private else (1, MAX_BINS)
        if not least <= self.bins <= most:
            raise ParameterError(
                f"bins must be from {least} to {most:,} if they are {self.binning}"
            )

    @property
    def min_count(self) -> int:
        return FEW_PEOPLE if self.stated_count is None else self.stated_count

    @property
    def bins(self) -> int:
        return USUAL_BINS if self.stated_bins is None else self.stated_bins


class _Declared(NamedTuple):
    """Categories that a column's own type lists."""

    categories: tuple[str, ...]
    ordered: bool


def draft(
    data: Any,
    *,
    min_count: int | None = None,
    bins: int | None = None,
    binning: Binning = "private",
    unit: str | None = None,
    dialect: Dialect | None = None,
) -> Schema:
    """Draft a schema from a table; see `Schema.draft`.

    Edges of ``private`` bins are not read off the data, a release measures them (R21);
    ``equal-width`` bins lie between round numbers, and edges of ``quantile`` bins are values of the
    data. `rows_per_unit` stays 1 until a person sets it. What is recognised of a text file is
    written into the schema.

    Raises
    ------
    SchemaError
        No column is left to synthesize, or the unit column does not exist.
    DataError
        The table cannot be read or is empty.
    """
    options = _Options(min_count, bins, binning)
    with opened(data, dialect=table_dialect(data, dialect or Dialect())) as table:
        if unit is not None and unit not in table.columns:
            raise SchemaError(f"{table.source}: there is no column {unit!r} to be the unit")
        tallies, types, first = _tally(table, options)
    declared = _declared_categories(data, types)
    dtypes = declared_types(table)
    columns = tuple(
        unit_column(name)
        if name == unit
        else _feature(tallies[name], dtypes[name], declared.get(name), options)
        for name in table.columns
    )
    if all(column.role == "identifier" for column in columns):
        raise SchemaError(
            f"{table.source}: every column looks like an identifier and would be dropped; group "
            "their values into fewer categories, or write the schema by hand"
        )
    columns = suggest.with_notes(columns, first)
    return Schema(columns, unit=unit, dialect=stated_dialect(table))


def table_dialect(data: Any, stated: Dialect) -> Dialect:
    """Return how a table is written: what was stated, and the rest as its files look."""
    if not isinstance(data, str | Path) or scheme_of(str(data)) in DATABASES:
        return stated
    named_source(str(data))
    files = [each.file for each in find_files(str(data))]
    try:
        return check_known([(file, recognised(file, stated)) for file in files])
    except OSError:
        # What cannot be read is refused when the table is opened.
        return stated


def stated_dialect(table: TableReader) -> Dialect:
    """Return what a schema must say of how its table is written: nothing that is usual."""
    usual = Dialect().settled(table.source)
    return Dialect(
        **{
            each.name: stated
            for each in fields(Dialect)
            if (stated := getattr(table.dialect, each.name)) != getattr(usual, each.name)
        }
    )


def _tally(
    table: TableReader, options: _Options
) -> tuple[dict[str, ColumnTally], dict[str, pl.DataType], list[pl.DataFrame]]:
    """Read a table once: tallies and types of its columns, and its first rows."""
    # How full a bin is need not be known as exactly as where an edge lies.
    points = MAX_SKETCH if options.binning == "quantile" else _SHARE_SKETCH
    written = NumberText(table.dialect)
    tallies = {
        name: ColumnTally(name, table.has_type(name), QuantileSketch(points), written=written)
        for name in table.columns
    }
    types: dict[str, pl.DataType] = {}
    first: list[pl.DataFrame] = []
    wanted = min(LOOKED_AT, MOST_CELLS // max(len(table.columns), 1))
    for batch in table.batches():
        types.update(batch.schema)
        if wanted > 0:
            first.append(batch.head(wanted))
            wanted -= first[-1].height
        for name, tally in tallies.items():
            tally.add(batch[name])
    return tallies, types, first


def _declared_categories(data: Any, types: Mapping[str, pl.DataType]) -> dict[str, _Declared]:
    """Collect what categorical types say of their categories.

    Those of a pandas frame are asked for here: on the way through Arrow they are lost.
    """
    declared = {}
    for name, dtype in data.dtypes.items() if frame_kind(data) == "pandas" else ():
        if hasattr(dtype, "categories") and hasattr(dtype, "ordered"):
            texts = object_texts(dtype.categories.astype(object), str(name))
            declared[str(name)] = _Declared(tuple(filter(None, texts)), bool(dtype.ordered))
    for name, dtype in types.items():
        if isinstance(dtype, pl.Enum):
            declared[name] = _Declared(tuple(filter(None, dtype.categories)), True)
        elif dtype.is_temporal():
            declared.pop(name, None)
    return declared


def declared_types(table: TableReader) -> dict[str, str]:
    """Return the types that columns declare and their values have; "" for all others."""
    schema = table.arrow_schema
    declared = {}
    for field in schema or ():
        text = str(getattr(field.type, "value_type", field.type))
        text = "string" if text in {"large_string", "string_view"} else text
        listed = text == "string" and hasattr(field.type, "value_type")
        declared[field.name] = "dictionary" if listed else text
    return {name: declared.get(name, "") if table.has_type(name) else "" for name in table.columns}


def unit_column(name: str) -> Feature:
    """Return the column that names the privacy unit."""
    return Feature(name, role="identifier", notes=("the privacy unit; dropped",))


def _feature(
    tally: ColumnTally, dtype: str, declared: _Declared | None, options: _Options
) -> Feature:
    if dtype == "bool" or (tally.rows == 0 and declared is None):
        truth = _TRUTH if dtype == "bool" else ()
        return _listed(tally, truth, dtype=dtype or "string")
    if declared is None and tally.dates.found is not None:
        return _dated(tally, dtype)
    if declared is None and (why := _key(tally)):
        return Feature(tally.name, role="identifier", notes=(why,))
    if declared is None and tally.numeric:
        return _numbers(tally, dtype or ("int64" if tally.integers else "double"), options)
    common, others = _common(tally, declared, options)
    known = None if declared else in_order(common)
    ordered = declared.ordered if declared else known is not None
    return _listed(tally, known or common, others, dtype=dtype or "string", ordered=ordered)


def _numbers(tally: ColumnTally, dtype: str, options: _Options) -> Feature:
    """Return a feature of numbers: codes, a few values in order, or measured."""
    if tally.texts is None or tally.marked:
        return _binned(tally, dtype, options)
    common, others = _common(tally, None, options)
    if tally.integers and (names_codes(tally.name) or named(tally.name, "identifiers")):
        return _listed(tally, common, others, dtype=dtype)
    # A number that few people have is measured with its neighbours: it is not listed, nor does it
    # become "(other)", which is no number. Listed ones are written plainly, each in one way.
    plain = all(_PLAIN_NUMBER.fullmatch(text) for text in common)
    few = plain and len({float(text) for text in common}) == len(common) <= FEW_VALUES
    if others or not few:
        return _binned(tally, dtype, options)
    return _listed(tally, common, dtype=dtype, ordered=True)


def _key(tally: ColumnTally) -> str:
    """Say why a column tells rows or people apart; "" if it does not seem to."""
    texts = not tally.numeric
    each = tally.texts is not None and tally.texts.height > NEARLY_ALL * tally.rows
    if texts and (tally.texts is None or (each and tally.rows > FEW_ROWS)):
        return _DROPPED
    if tally.rows <= FEW_ROWS or tally.distinct <= FEW_VALUES:
        return ""
    if texts and named(tally.name, "personal_texts"):
        return "by its name it holds names or addresses; dropped"
    whole = tally.integers and not tally.marked
    if whole and tally.lowest in (0, 1) and tally.highest is not None:
        counted = tally.highest - tally.lowest + 1 == tally.rows
        # Of many values only about how many there are is known.
        if counted and tally.distinct > NEARLY_ALL * tally.rows:
            return "numbers the rows; dropped"
    person = named(tally.name, "people")
    most = MOST_ROWS_OF_A_PERSON if person else MOST_ROWS_EACH
    key = (texts or whole) and (person or named(tally.name, "identifiers"))
    if key and tally.rows <= most * tally.distinct:
        return "by its name and its values it tells rows or people apart; dropped"
    return ""


def _common(
    tally: ColumnTally, declared: _Declared | None, options: _Options
) -> tuple[tuple[str, ...], bool]:
    """List the categories with enough rows, in order, and say whether any were left out."""
    texts = tally.counts
    if tally.whole_decimals and not tally.whole:
        plain = pl.col("value").str.replace(r"\.0+$", "")
        texts = texts.group_by(plain).agg(pl.col("count").sum())
    key = pl.col("value").cast(pl.Float64) if tally.numeric else pl.col("value")
    counts = dict(texts.sort(key).iter_rows())
    # An ordered type is a statement: all that it declares is listed, unless a number was stated.
    stated = declared is not None and declared.ordered and options.stated_count is None
    least = 0 if stated or options.min_count == 1 else options.min_count
    order = declared.categories if declared else tuple(counts)
    common = tuple(text for text in order if text not in _RESERVED and counts.get(text, 0) >= least)
    return common, not set(counts) <= set(common)


def _listed(
    tally: ColumnTally,
    categories: tuple[str, ...],
    others: bool = False,
    *,
    dtype: str,
    ordered: bool = False,
) -> Feature:
    return _drafted(
        tally,
        dtype,
        (*_like_an_identifier(tally), *_on_values(tally, frozenset(categories))),
        kind="ordinal" if ordered else "nominal",
        categories=categories,
        missing=_missing(tally, always=not categories and not others),
        unknown="category" if others else "error",
    )


def _binned(tally: ColumnTally, dtype: str, options: _Options) -> Feature:
    """Return a numeric feature; no edge of private ones is read off the data.

    Whether values are missing and how many decimals they have is, and is suggested.
    """
    alike = _like_an_identifier(tally)
    if options.binning == "private":
        decimals = None if dtype.startswith(("int", "uint")) else tally.decimals
        bins = options.stated_bins
        return _drafted(
            tally, dtype, alike, kind="numeric", edges=PRIVATE, bins=bins, decimals=decimals
        )
    low, high, whole = tally.lowest or 0.0, tally.highest or 0.0, tally.integers
    if options.binning == "quantile":
        inner = tally.sketch.quantiles(options.bins) if tally.sketch else ()
        edges = within_type(quantile_edges(low, inner, high, whole=whole), dtype)
        label = "quantile bins: the edges are values of the data"
        return _drafted(tally, dtype, alike, kind="numeric", edges=edges, label=label)
    edges = within_type(round_edges(low, high, options.bins, whole=whole), dtype)
    return _drafted(tally, dtype, (*alike, *_crowded(tally, edges)), kind="numeric", edges=edges)


def _dated(tally: ColumnTally, dtype: str) -> Feature:
    """Return a feature of dates or times; its edges are measured, not read off the data."""
    found = tally.dates.found or Guess("date")
    notes = ("; ".join(tally.dates.notes),) if tally.dates.notes else ()
    said: dict[str, Any] = {"kind": found.kind, "edges": PRIVATE, "format": found.format}
    return _drafted(tally, dtype or "string", notes, **said)


def _drafted(tally: ColumnTally, dtype: str, notes: tuple[str, ...], **said: Any) -> Feature:
    missing = {"missing": _missing(tally), **said}
    return Feature(tally.name, dtype=dtype, drafted_from_data=True, notes=notes, **missing)


def _on_values(tally: ColumnTally, listed: frozenset[str]) -> tuple[str, ...]:
    """Return notes on the listed values of a column; no others are named."""
    if tally.rows and not listed:
        return ('no value is in enough rows, so that all are "(other)"; group them, or drop it',)
    counts = {text: n for text, n in tally.counts.iter_rows() if text in listed}
    many = tally.rows > FEW_ROWS
    return (*suggest.missing_note(counts), *(suggest.rare_note(counts) if many else ()))


def _like_an_identifier(tally: ColumnTally) -> tuple[str, ...]:
    """Note that most texts of a column, or nearly all its whole numbers, are different."""
    if tally.rows <= FEW_ROWS or (tally.numeric and not tally.integers):
        return ()
    if tally.distinct <= (NEARLY_ALL if tally.numeric else LIKE_AN_IDENTIFIER) * tally.rows:
        return ()
    about = "about " if tally.texts is None else ""
    distinct = min(tally.distinct, tally.rows)
    return (
        f"looks like an identifier: {about}{distinct:,} different values in {tally.rows:,} rows; "
        'consider role = "identifier"',
    )


def _crowded(tally: ColumnTally, edges: tuple[float, ...]) -> tuple[str, ...]:
    """Note that one of several bins holds nearly all values."""
    weights = tally.sketch.weights(edges) if tally.sketch else []
    if len(weights) < 2 or max(weights) <= CROWDED * sum(weights):
        return ()
    share = math.floor(100 * max(weights) / sum(weights))
    return (f"{share} % of the values lie in one bin; set edges by hand",)


def _missing(tally: ColumnTally, *, always: bool = False) -> tuple[str, ...]:
    if not (tally.has_missing or always):
        return ()
    return TYPED_MISSING if tally.typed else FILE_MISSING


def draft_private(
    data: Any,
    *,
    unit: str | None = None,
    dialect: Dialect | None = None,
    types: Mapping[str, str] | None = None,
) -> Schema:
    """Draft a schema without reading a row; see `Schema.draft`.

    `dialect` says how a text file is written, where that is not usual; nothing is recognised.
    """
    with opened(data, dialect=dialect or Dialect()) as table:
        stated = dict(types or {})
        for name in (*stated, *((unit,) if unit is not None else ())):
            if name not in table.columns:
                raise SchemaError(f"{table.source}: there is no column {name!r}")
        declared = declared_types(table)
        columns = tuple(
            unit_column(name)
            if name == unit
            else _undrafted(
                table, name, stated.get(name, declared[name]), declared=name not in stated
            )
            for name in table.columns
        )
        return Schema(columns, unit=unit, dialect=stated_dialect(table))


def _undrafted(table: TableReader, name: str, dtype: str, *, declared: bool) -> Feature:
    known = polars_dtype(dtype)
    if dtype and known is None and not declared:
        raise SchemaError(
            f"column {name!r}: the type {dtype!r} is not known; write an Arrow type such as int64, "
            "double, string or bool"
        )
    typed = table.has_type(name)
    # What is no number, or neither true nor false, must not refuse a table: that would tell.
    elsewhere = "error" if typed else "category"
    if dtype == "bool":
        said: dict[str, Any] = {"categories": _TRUTH, "unknown": elsewhere}
    elif known is not None and known.is_numeric():
        said = {"kind": "numeric", "edges": PRIVATE, "unknown": elsewhere}
    elif known is not None and (dated := guess_of_type(known)) is not None:
        said = {"kind": dated.kind, "edges": PRIVATE, "unknown": elsewhere}
    else:
        said = {"categories": PRIVATE}
    return Feature(
        name,
        missing=TYPED_MISSING if typed else FILE_MISSING,
        dtype=dtype or "string",
        notes=suggest.role_note(name),
        **said,
    )
