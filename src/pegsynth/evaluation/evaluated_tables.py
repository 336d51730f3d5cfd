"""Tables of any origin, read so that whatever can be compared is compared.

The original must fit its schema. A synthetic table need not: values without a code become
a category of their own, columns that the schema does not know are passed over, columns that
it lacks are left out of every measure, an empty table is left out altogether; and for each
there is a record that says so. A column none of whose values the schema lists says nothing about
utility, and nothing about risk above all: such tables are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pegsynth.codec.codec import Encoder, one_matrix
from pegsynth.codec.encoding import ColumnEncoder, column_encoders
from pegsynth.codec.folding import CountedRows
from pegsynth.errors import DataError, EmptyTableError, SchemaError
from pegsynth.evaluation.preprocessing import Preprocessing, Truth
from pegsynth.evaluation.records import Record, measured
from pegsynth.evaluation.utility.panel_records import panel_records
from pegsynth.inference.choice import weight_columns
from pegsynth.inference.statistics import NOTHING, Estimate, spread
from pegsynth.inference.value_columns import TableValues, ValueCollector
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.options import weight_file
from pegsynth.schema import Feature, Schema
from pegsynth.tables.reader import TableReader
from pegsynth.tables.table_input import opened

HOLDOUT = "the hold-out"


@dataclass(frozen=True)
class Tables:
    """All tables as codes of one schema, rows by features.

    Parameters
    ----------
    schema
        The features that all tables have, with a category for values without a code where
        there are any; no rules.
    original, synthetic, holdout
        The codes; synthetic tables without rows are left out.
    missing
        Features that a synthetic table lacks, or of which a table has no listed value; left out
        of the schema above.
    records
        What was amiss, one record for each fault.
    roles
        Features that identify a person or are sensitive, left out or not.
    values
        The numbers of the original, then of each synthetic table; empty where only codes are
        known.
    """

    schema: Schema | None
    original: Codes
    synthetic: tuple[Codes, ...]
    holdout: Codes | None
    missing: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    roles: tuple[str, ...] = ()
    values: tuple[TableValues, ...] = ()

    @property
    def weighted(self) -> bool:
        """Whether rows of a synthetic table count by weights."""
        return any(table.weights is not None for table in self.values[1:])

    @property
    def counted(self) -> tuple[Codes, ...]:
        """The synthetic tables for measures that count rows: weighted rows as often as they weigh.

        Measures of risk look at the rows that are published, `synthetic`.
        """
        pairs = zip(self.synthetic, self.values[1:] or [None] * len(self.synthetic), strict=True)
        return tuple(
            codes if table is None else plain_rows(codes, table.weights, table.every)
            for codes, table in pairs
        )


@dataclass(frozen=True)
class _Read:
    """One table as it came: codes, with the code after the last for values that have none."""

    role: str
    source: str
    codes: Codes
    strangers: tuple[int, ...] = ()
    unlisted: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    values: TableValues | None = None

    @property
    def rows(self) -> int:
        return len(self.codes)


def read_tables(
    original: object,
    synthetic: Sequence[object],
    schema: Schema,
    *,
    holdout: object = None,
    threads: int,
    counted: Truth | None = None,
    lenient: bool = False,
) -> Tables:
    """Read the tables.

    Of an original whose units may have more rows than count, those that count are compared: of a
    panel the first ones, else those that `counted` tells.

    Parameters
    ----------
    original, synthetic, holdout
        Files, globs or dataframes.
    schema
        The codebook of the original; reviewed or not.
    threads
        Columns encoded at a time.
    counted
        For every row of the original whether a release counted it; None: not known.
    lenient
        Whether a column without any listed value is left out of every measure, as for a report
        on a release that has been paid for, instead of being refused.

    Raises
    ------
    DataError
        A file cannot be read, the original does not fit its schema, the synthetic tables
        have no column in common with it, no value of a column is listed in the schema, or the
        hold-out lacks a column.
    """
    real, values, preprocessed = _read_original(original, schema, counted)
    files = {weight_file(Path(each)) for each in synthetic if isinstance(each, str | Path)}
    synthetic = [each for each in synthetic if _file_name(each) not in files]
    tables = [
        _read(table, f"synthetic table {number}", schema, threads)
        for number, table in enumerate(synthetic, start=1)
    ]
    held = [] if holdout is None else [_read(holdout, HOLDOUT, schema, threads)]
    for each in held:
        if not each.rows:
            raise DataError(f"{each.source}: the hold-out has no rows; give some, or leave it out")
        if each.missing:
            raise DataError(
                f"{each.source}: the hold-out lacks the column {each.missing[0]!r}; give rows with "
                "all columns of the schema"
            )
    filled = [table for table in tables if table.rows]
    _check_common(original, filled, schema)
    if not real.rows:
        return Tables(None, real.codes, (), None, records=(_empty_record("original", 0),))
    if not lenient:
        _refuse_unlisted([real, *tables, *held])
    found = _fitted(real, tables, held, schema)
    released = tuple(table.values for table in filled if table.values is not None)
    sources = [source for source, t in zip(synthetic, tables, strict=True) if t.rows]
    people = panel_records(original, sources, schema) if sources else []
    records = (*found.records, *preprocessed, *people)
    return replace(found, values=(values, *released), records=records)


def _file_name(source: object) -> str | None:
    return Path(source).name if isinstance(source, str | Path) else None


def weights_beside(source: object, schema: Schema) -> pl.DataFrame | None:
    """Return the weights of a table that stand in a file of their own; None where there is none."""
    if not isinstance(source, str | Path):
        return None
    path = Path(source).with_name(weight_file(Path(source)))
    if not path.is_file():
        return None
    with opened(str(path), dialect=schema.dialect) as reader:
        return pl.concat(list(reader.batches(weight_columns(reader.columns))))


def _check_common(original: object, filled: Sequence[_Read], schema: Schema) -> None:
    """Refuse tables of which nothing can be compared."""
    missing = {name for table in filled for name in table.missing}
    if not filled or not missing.issuperset(schema.names):
        return
    name = str(original) if isinstance(original, str | Path) else "the original"
    alone = [table.source for table in filled if len(table.missing) == len(schema.names)]
    if alone:
        raise DataError(
            f"{alone[0]}: no column in common with {name}, so nothing can be compared; give a "
            "synthetic table with the columns of the schema, spelt alike"
        )
    raise DataError(
        f"{', '.join(table.source for table in filled)}: no column of {name} is in all of these "
        "tables, so nothing can be compared; evaluate them one by one"
    )


def _refuse_unlisted(tables: Sequence[_Read]) -> None:
    """Refuse a table with a column that would be one category, and would be read as a finding."""
    for table in tables:
        for name in table.unlisted:
            raise DataError(
                f"{table.source}: column {name!r} of {table.role}: none of its values is in the "
                "schema, so that nothing can be compared; write them as the schema lists them, or "
                "give the schema that describes this table"
            )


def _without_listed(codes: Codes, encoders: Sequence[ColumnEncoder]) -> tuple[str, ...]:
    """Return the features none of whose values are listed, where the schema lists some."""
    return tuple(
        encoder.feature.name
        for place, encoder in enumerate(encoders)
        if encoder.unlisted
        and encoder.feature.bin_count
        and not _has_listed(codes[:, place], encoder.feature)
    )


def _has_listed(codes: Codes, feature: Feature) -> bool:
    listed = codes < feature.bin_count
    if feature.not_applicable_code is not None:
        listed |= codes == feature.not_applicable_code
    return bool(listed.any())


def _read_original(
    source: object, schema: Schema, counted: Truth | None
) -> tuple[_Read, TableValues, tuple[Record, ...]]:
    """Read the original, which must fit the schema: codes, numbers, what was done to it."""
    with opened(source, dialect=schema.dialect) as reader:
        encoder = Encoder(schema, source=reader.source, columns=reader.columns, need_unit=False)
        collector = ValueCollector(schema)
        done = Preprocessing.of(schema, reader.columns, counted)
        wanted = (*schema.names, *done.columns)
        frames, first = _passes(reader, wanted, encoder.hints, schema)
        done.counted = counted if first is None else first
        parts = []
        for frame in frames():
            compared = done.add(frame)
            parts.append(encoder.encode(compared))
            collector.add(compared, parts[-1])
    encoder.finish()
    codes = one_matrix(parts)
    read = _Read(
        "the original", reader.source, codes, unlisted=_without_listed(codes, encoder.columns)
    )
    return read, collector.finish(), done.records(codes)


def _passes(
    reader: TableReader, wanted: Sequence[str], hints: Mapping[str, Any], schema: Schema
) -> tuple[Callable[[], Iterable[pl.DataFrame]], Truth | None]:
    """Return the frames of real rows, and of a panel which of the rows count."""
    typed = partial(reader.batches, wanted, hints=hints)
    if schema.panel is None or schema.unit not in wanted:
        return typed, None
    # Values are put in order as they are when a panel is folded: without hints on their types.
    plain: Callable[[], Iterable[pl.DataFrame]] = partial(reader.batches, wanted)
    again = reader.steady and not reader.once
    if not again:
        # Rows may come in another order the next time.
        held = list(plain())
        plain = partial(iter, held)
    rows = CountedRows(schema)
    for frame in plain():
        rows.add(frame)
    return typed if again else plain, rows.mask()


def _read(source: object, role: str, schema: Schema, threads: int) -> _Read:
    """Read a table; of a hold-out, whose rows are real, those that count."""
    real = role == HOLDOUT
    try:
        with opened(source, dialect=schema.dialect) as reader:
            present = [name for name in schema.names if name in reader.columns]
            encoders = column_encoders(schema, spare=True)
            dtype = np.min_scalar_type(max(schema.category_counts))
            hints = {e.feature.name: e.hint for e in encoders if e.hint is not None}
            beside = None if real else weights_beside(source, schema)
            weights = weight_columns(reader.columns, schema.names)
            collector = ValueCollector(schema, weights if beside is None else tuple(beside.columns))
            wanted = [*present, *weights]
            if real and len(present) == len(schema.names) and schema.unit in reader.columns:
                wanted.append(schema.unit)
            # A table without any known column still has its number of rows.
            wanted = wanted or list(reader.columns[:1])
            frames, counted = _passes(reader, wanted, hints, schema)
            parts, rows = [], 0
            with ThreadPoolExecutor(threads) as pool:
                for whole in frames():
                    here = None if counted is None else counted[rows : rows + whole.height]
                    frame = whole if here is None else whole.filter(pl.Series(here))
                    if beside is not None:
                        frame = frame.hstack(beside[rows : rows + frame.height])
                    rows += whole.height
                    part = np.zeros((frame.height, len(encoders)), dtype=dtype)

                    def fill(index: int, frame: Any = frame, part: Any = part) -> None:
                        part[:, index] = encoders[index].encode_batch(frame)

                    list(pool.map(fill, [schema.index(name) for name in present]))
                    parts.append(part)
                    collector.add(frame, part)
    except EmptyTableError as error:
        nothing = np.empty((0, len(schema.names)), dtype=np.uint8)
        return _Read(role, str(error).partition(": the table has")[0], nothing)
    codes = np.concatenate(parts)
    known = {column.name for column in schema.columns} | {schema.unit, *weights}
    return _Read(
        role,
        reader.source,
        codes,
        tuple(each.unknown + each.absent for each in encoders),
        _without_listed(codes, encoders),
        tuple(name for name in schema.names if name not in present),
        tuple(name for name in reader.columns if name not in known),
        collector.finish(),
    )


def _fitted(real: _Read, tables: list[_Read], held: list[_Read], schema: Schema) -> Tables:
    """Bring all tables to one schema, and say what could not be compared."""
    filled = [table for table in tables if table.rows]
    compared, every = [*filled, *held], [real, *tables, *held]
    records = [_empty_record(each.role, real.rows) for each in tables if not each.rows]
    # Features that cannot be compared: who lacks them, or has no value of theirs that is listed.
    missing = {
        name: [str(number) for number, table in enumerate(tables, 1) if name in table.missing]
        for name in schema.names
        if any(name in table.missing for table in filled)
    }
    unlisted = {
        name: [table.role for table in every if name in table.unlisted] for name in schema.names
    }
    unlisted = {name: where for name, where in unlisted.items() if where}
    for name, numbers in missing.items():
        note = f"not in synthetic table {', '.join(numbers)}; left out of every measure"
        records.append(measured("missing_column", name, NOTHING, note=note))
    for name, where in unlisted.items():
        note = f"the schema lists no value that it has in {', '.join(where)}; left out of every "
        records.append(measured("unlisted_column", name, NOTHING, note=f"{note}measure"))
    for table in tables:
        if table.extra:
            note = (
                f"columns that the schema does not describe, passed over: {', '.join(table.extra)}"
            )
            found = Estimate(float(len(table.extra)), n=table.rows)
            records.append(measured("extra_columns", table.role, found, baseline=0.0, note=note))
    features = []
    columns: list[list[Codes]] = [[] for _ in range(1 + len(compared))]
    for index, feature in enumerate(schema.features):
        if feature.name in missing or feature.name in unlisted:
            continue
        strange = any(table.strangers[index] for table in compared)
        wider = _widened(feature, compared, index) if strange else _plain(feature)
        if strange:
            records.append(_stranger_record(feature, filled, held, index))
        features.append(wider)
        for column, table in zip(columns, (real, *compared), strict=True):
            column.append(_recoded(table.codes[:, index], feature, wider))
    matrices = [_matrix(column, features) for column in columns]
    return Tables(
        Schema(tuple(features)) if features else None,
        matrices[0],
        tuple(matrices[1 : 1 + len(filled)]),
        matrices[-1] if held else None,
        tuple(name for name in schema.names if name in missing or name in unlisted),
        tuple(records),
        tuple(f.name for f in schema.features if f.role in ("quasi-identifier", "sensitive")),
    )


def _matrix(columns: list[Codes], features: list[Feature]) -> Codes:
    if not columns:
        return np.empty((0, 0), dtype=np.uint8)
    largest = max(feature.category_count for feature in features) - 1
    return np.stack(columns, axis=1).astype(np.min_scalar_type(largest), copy=False)


def _plain(feature: Feature) -> Feature:
    """Return the feature without ties to others, which a comparison does not need."""
    if feature.after is not None:
        # How long after another date it is: a length of time, whatever the other is.
        feature = replace(feature, kind="duration", after=None, format="")
    return replace(feature, heads=(), parent=None)


def _widened(feature: Feature, tables: Sequence[_Read], index: int) -> Feature:
    """Return the feature with a category for values without a code."""
    try:
        return replace(_plain(feature), unknown="category")
    except SchemaError:
        table = next(table for table in tables if table.strangers[index])
        raise DataError(
            f"{table.source}: column {feature.name!r}: {table.strangers[index]} values are not in "
            "the schema, and it has a category (other) of its own; list them or rename that one"
        ) from None


def _recoded(codes: Codes, old: Feature, new: Feature) -> Codes:
    if old.category_count == new.category_count and not (codes == old.category_count).any():
        return codes
    table = np.arange(old.category_count + 1)
    table[old.bin_count : -1] += new.category_count - old.category_count
    table[-1] = new.unknown_code or 0
    return np.asarray(table[codes], dtype=np.min_scalar_type(new.category_count))


def _empty_record(subject: str, rows: int) -> Record:
    note = "the table has no rows; it is left out of every measure"
    return measured("empty_table", subject, NOTHING, baseline=float(rows), note=note)


def _stranger_record(
    feature: Feature, tables: Sequence[_Read], held: Sequence[_Read], index: int
) -> Record:
    shares = [table.strangers[index] / table.rows for table in tables]
    counts = ", ".join(str(table.strangers[index]) for table in tables)
    apart = "".join(f", {table.strangers[index]} of the hold-out" for table in held)
    note = (
        f"share of values that the schema does not list ({counts} rows{apart}); they count as "
        "a category of their own, (other)"
    )
    found = spread(shares, n=min((table.rows for table in tables), default=0))
    return measured("unknown_values", feature.name, found, baseline=0.0, note=note)


def repeats(weights: Float64) -> Int64:
    """Return how often each row stands in a table of as many rows.

    >>> repeats(np.array([2.0, 0.0, 0.5, 0.5, 1.0])).tolist()
    [3, 0, 0, 1, 1]
    """
    total = float(weights.sum())
    if not total > 0:
        return np.ones(len(weights), dtype=np.int64)
    ends = np.round(np.cumsum(weights) * (len(weights) / total)).astype(np.int64)
    ends[-1] = len(weights)
    return np.diff(ends, prepend=0)


def plain_rows(codes: Codes, weights: Float64 | None, every: int = 1) -> Codes:
    """Return the rows of a table, repeated by their weights where it has some.

    Parameters
    ----------
    codes
        Rows by features.
    weights
        One for each `every`-th row; None where all rows count alike.
    """
    if weights is None:
        return codes
    kept = codes[::every]
    return np.asarray(np.repeat(kept, repeats(weights), axis=0))
