"""Which cells are missing, and whether a schema lets them be filled in.

All of it follows from the schema, before any row is drawn, or from the synthetic rows.

Missing values drawn by chained classification trees with redrawn weights (R23).

Every imputation redraws the weights of the synthetic rows (a Bayesian bootstrap), so that the
trees differ as much as they are uncertain: the imputations are proper. Features with missing
values take turns, those with the fewest first. A tree of a feature is grown from the rows that
have it, given all other features as they then stand, and a missing value is drawn from the
leaf of its row, within the public rules. In the first round "missing" is a category of the
other features; later they hold what was drawn.

What is drawn is a row of the same leaf with that category, the donor. Its value is copied, so
that numbers have the shape inside their bins that the synthetic values have.

Columns with the values of donors in their missing cells.

A value is copied as it stands in the donor's row. A date that is counted from another one of its
row is that one and the donor's difference, so that the order of dates holds. A description goes
with its code.

Completed versions of a synthetic dataframe: every missing cell gets the value of a donor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.codec import Encoder
from pegsynth.codec.date_decoding import last_moment
from pegsynth.codec.encoding import moments_of
from pegsynth.errors import DataError, ParameterError
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.methods.baselines.target_fits import RowsToFit, bayesian_bootstrap
from pegsynth.methods.baselines.trees import CART_TREE, TreeModel, fit_trees
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream, Words
from pegsynth.runtime import Stop, check_trees, run_each
from pegsynth.schema.date_text import DateText, is_temporal
from pegsynth.schema.feature import missing_codes
from pegsynth.schema.temporal import chain

if TYPE_CHECKING:
    from pegsynth.schema import Feature, Schema


def check_completable(schema: Schema, given: Mapping[str, str] | None = None) -> None:
    """Refuse to complete tables of a schema where that cannot mean anything.

    Parameters
    ----------
    given
        Features that keep a given value in every row.
    """
    check_trees("completing tables")
    features = [feature for feature in schema.features if feature.missing]
    if not features:
        raise ParameterError(
            "--complete: no feature of the schema has missing values; leave it out"
        )
    for feature in features:
        found_later = feature.private_edges or feature.private_categories
        if not found_later and len(value_codes(feature)) == 0:
            raise ParameterError(
                f"--complete: feature {feature.name!r} has no value but missing; list its "
                "categories, or drop the column"
            )
        value = (given or {}).get(feature.name)
        if value is not None and (not value.strip() or value in feature.missing):
            raise ParameterError(
                f"--complete: --where keeps {feature.name!r} missing in every row, so that nothing "
                "says what it could be; leave one of the two out"
            )


def missing_cells(codes: Codes, schema: Schema) -> dict[int, Int64]:
    """Return the rows in which each feature is missing, for features where any are."""
    found = {}
    for place, feature in enumerate(schema.features):
        if feature.missing:
            rows = np.flatnonzero(np.isin(codes[:, place], missing_codes(feature)))
            if len(rows):
                found[place] = rows
    return found


def check_holes(codes: Codes, schema: Schema, *, source: str) -> None:
    """Refuse a table that is complete, or of which a feature has no value at all."""
    holes = missing_cells(codes, schema)
    if not holes:
        raise DataError(f"{source}: no value is missing; use the table as it is")
    for place, rows in holes.items():
        if len(rows) == len(codes):
            raise DataError(
                f"{source}: column {schema.names[place]!r} has no value but missing, so that "
                "nothing says what it could be; take the column out of the table and the schema"
            )


def value_codes(feature: Feature) -> Int64:
    """Return the codes of a feature that are values: all but those of missing."""
    return np.setdiff1d(np.arange(feature.category_count), missing_codes(feature))


STAGE: Final = "imputations"
ROUNDS: Final = 3
"""How often every feature is drawn, where several have missing values."""
MOST_FITTED: Final = 20_000
"""Rows that a tree is grown from, at most; fewer rows than there are make imputations vary more."""
_CELLS: Final = 1 << 22
_UNIT: Final = 2.0**-53
_NOBODY: Final = -1


@dataclass(frozen=True, eq=False)
class Filled:
    """One imputation of a table.

    Parameters
    ----------
    codes
        The completed codes.
    donors
        For every feature with missing values the rows in which it was missing, and the row
        that each took its value from, or -1 where the rules left nothing but missing.
    """

    codes: Codes
    donors: dict[int, tuple[Int64, Int64]]


def fill(
    codes: Codes,
    schema: Schema,
    stream: RandomStream,
    *,
    imputations: int = 1,
    threads: int = 1,
    progress: Progress = quiet,
) -> list[Filled]:
    """Complete the codes of a synthetic table r times.

    Parameters
    ----------
    codes
        Synthetic rows, a column for every feature of the schema. A feature that is missing in
        all of them stays so.
    stream
        Where weights and values come from.
    """
    holes = {
        place: rows
        for place, rows in missing_cells(codes, schema).items()
        if len(rows) < len(codes)
    }
    first = stream.substreams(imputations)

    def once(number: int, stop: Stop) -> Filled:
        return _filled(codes, schema, holes, stream.substream(first + number), stop)

    done: dict[int, Filled] = {}
    progress(STAGE, 0, imputations)
    for number, result in run_each(range(imputations), once, threads=threads):
        done[number] = result
        progress(STAGE, len(done), imputations)
    return [done[number] for number in range(imputations)]


def _filled(
    codes: Codes, schema: Schema, holes: dict[int, Int64], words: Words, stop: Stop
) -> Filled:
    rows = np.array(codes, dtype=np.uint32, order="C")
    donors: dict[int, tuple[Int64, Int64]] = {}
    if not holes:
        return Filled(rows.astype(codes.dtype), donors)
    weights = bayesian_bootstrap(len(rows), words)
    order = sorted(holes, key=lambda place: len(holes[place]))
    rounds = ROUNDS if len(order) > 1 else 1
    for turn in range(rounds):
        for place in order:
            stop.check()
            grown = _grown(rows, schema, place, holes[place], weights, words)
            rows[grown.lost, place] = grown.drawn(words)
            if turn == rounds - 1:
                donors[place] = grown.lost, grown.donors(words)
    return Filled(rows.astype(codes.dtype), donors)


@dataclass(frozen=True, eq=False)
class _Grown:
    """The tree of one feature, and the rows that lack it or have it."""

    rows: Codes
    schema: Schema
    tree: TreeModel
    place: int
    lost: Int64
    known: Int64

    @property
    def categories(self) -> int:
        return self.schema.category_counts[self.place]

    def drawn(self, words: Words) -> Int64:
        """Draw a code for every row that lacks the feature, within the rules (R18)."""
        place = self.place
        found = np.bincount(self.rows[self.known, place], minlength=self.categories).astype(float)
        listed = np.zeros(self.categories, dtype=bool)
        listed[value_codes(self.schema.features[place])] = True
        drawn = self._codes(self.lost)
        for part in _parts(len(drawn), self.categories):
            some = self.rows[self.lost[part]]
            allowed = _allowed(some, self.schema, place) & listed
            shares = self.tree.probabilities(place, some) * allowed
            stuck = shares.sum(axis=1) <= 0
            shares[stuck] = allowed[stuck] * found
            codes, sure = _chosen(shares, words)
            drawn[part] = np.where(sure, codes, drawn[part])
        return drawn

    def donors(self, words: Words) -> Int64:
        """Choose for every value that was drawn a row that has it: one of its leaf, if any."""
        draws = words.take(len(self.lost))
        donors = np.full(len(self.lost), _NOBODY, dtype=np.int64)
        # First by leaf and code; what the rules have moved out of its leaf goes by code alone.
        for keys in (self._leaf_keys, self._codes):
            left = np.flatnonzero(donors == _NOBODY)
            donors[left] = _picked(keys(self.known), self.known, keys(self.lost[left]), draws[left])
        return donors

    def _codes(self, which: Int64) -> Int64:
        codes: Int64 = self.rows[which, self.place].astype(np.int64)
        return codes

    def _leaf_keys(self, which: Int64) -> Int64:
        leaves = self.tree.leaves(self.place, self.rows[which])
        return leaves * self.categories + self._codes(which)


def _grown(
    rows: Codes, schema: Schema, place: int, lost: Int64, weights: Float64, words: Words
) -> _Grown:
    seen = np.ones(len(rows), dtype=bool)
    seen[lost] = False
    to_fit = RowsToFit.of(
        rows,
        schema,
        targets=[place],
        sample_weight=np.where(seen, weights, 0.0),
        max_rows=MOST_FITTED,
    )
    tree = fit_trees(to_fit, CART_TREE, words=words)
    return _Grown(rows, schema, tree, place, lost, np.flatnonzero(seen))


def _parts(rows: int, width: int) -> Iterator[slice]:
    size = max(1, _CELLS // width)
    return (slice(start, start + size) for start in range(0, rows, size))


def _allowed(rows: Codes, schema: Schema, place: int) -> NDArray[np.bool_]:
    """Say which codes of a feature the rules leave to every row as it stands."""
    allowed = np.ones((len(rows), schema.category_counts[place]), dtype=bool)
    for rule in schema.rules:
        parts = dict(rule.forbidden)
        own = parts.pop(place, None)
        if own is None:
            continue
        active = np.ones(len(rows), dtype=bool)
        for other, codes in parts.items():
            active &= np.isin(rows[:, other], sorted(codes))
        for code in own:
            allowed[active, code] = False
    return allowed


def _chosen(shares: Float64, words: Words) -> tuple[Int64, NDArray[np.bool_]]:
    """Draw one column for every line in proportion to its shares; say where there was any."""
    reached = np.cumsum(shares, axis=1)
    total = reached[:, -1]
    level = _unit(words.take(len(shares))) * total
    codes = np.sum(reached <= level[:, None], axis=1, dtype=np.int64)
    return np.minimum(codes, shares.shape[1] - 1), total > 0


def _picked(keys: Int64, known: Int64, wanted: Int64, words: NDArray[np.uint64]) -> Int64:
    """Pick a row at random among those with the wanted key; -1 where there is none."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    start = np.searchsorted(ordered, wanted, side="left")
    size = np.searchsorted(ordered, wanted, side="right") - start
    offset = np.minimum((_unit(words) * size).astype(np.int64), np.maximum(size - 1, 0))
    rows = known[order[np.minimum(start + offset, len(order) - 1)]]
    picked: Int64 = np.where(size > 0, rows, _NOBODY)
    return picked


def _unit(words: NDArray[np.uint64]) -> Float64:
    """Numbers in [0, 1), multiples of 2**-53."""
    return (words >> np.uint64(11)).astype(np.float64) * _UNIT


def with_donors(frame: pl.DataFrame, schema: Schema, filled: Filled) -> pl.DataFrame:
    """Return a table with its missing cells filled in."""
    completed = frame
    described: dict[str, list[str]] = {}
    for column in schema.columns:
        if column.label_of is not None and column.name in frame.columns:
            described.setdefault(column.label_of, []).append(column.name)
    for place in sorted(filled.donors, key=lambda each: _depth(schema, each)):
        feature = schema.features[place]
        lost, donors = filled.donors[place]
        found = donors >= 0
        lost, donors = lost[found], donors[found]
        names = [feature.name, *described.get(feature.name, ())]
        completed = completed.with_columns(
            _copied(frame.get_column(name), lost, donors) for name in names
        )
        if feature.after is not None:
            completed = completed.with_columns(
                _counted_on(frame, completed, schema, feature, lost, donors)
            )
    return completed


def _depth(schema: Schema, place: int) -> int:
    """Dates come after those that they are counted from."""
    return len(chain(schema.features[place], schema.features))


def _copied(column: pl.Series, lost: Int64, donors: Int64) -> pl.Series:
    taken = np.arange(len(column))
    taken[lost] = donors
    return column.gather(pl.Series(taken))


def _counted_on(
    frame: pl.DataFrame,
    completed: pl.DataFrame,
    schema: Schema,
    feature: Feature,
    lost: Int64,
    donors: Int64,
) -> pl.Series:
    """Return a column of dates whose imputed ones are counted from the row's own other date."""
    other = schema[feature.after or ""]
    own_text, column = DateText(feature), completed.get_column(feature.name)
    theirs = _moments(feature, frame.get_column(feature.name))[donors]
    from_ = _moments(other, frame.get_column(other.name))[donors]
    start = _moments(other, completed.get_column(other.name))[lost]
    # A donor without a difference has a special category, which was copied as it stands.
    counted = ~np.isnan(theirs - from_)
    last = last_moment(schema, feature)
    sums = np.minimum(start + np.maximum(theirs - from_, 0.0), last)[counted]
    numbers = pl.Series(feature.name, sums, nan_to_null=True).cast(pl.Int64)
    if is_temporal(column.dtype, feature.kind):
        values = own_text.as_type(numbers, column.dtype)
    else:
        values = own_text.written(numbers).cast(column.dtype)
    taken = np.arange(len(column))
    taken[lost[counted]] = len(column) + np.arange(len(sums))
    return pl.concat([column, values.alias(feature.name)]).gather(pl.Series(taken))


def _moments(feature: Feature, values: pl.Series) -> Float64:
    """Return the number of every date, NaN for what is none."""
    text = DateText(feature)
    found = moments_of(text, values)
    for special in (*feature.missing, *feature.not_applicable):
        if (number := text.number(special)) is not None:
            found[found == number] = np.nan
    return found


def completed_frames(
    frame: pl.DataFrame,
    schema: Schema,
    stream: RandomStream,
    *,
    imputations: int = 1,
    source: str = "the table",
    strict: bool = False,
    threads: int = 1,
    progress: Progress = quiet,
) -> list[pl.DataFrame]:
    """Return r versions of a synthetic table in which no value is missing.

    Cells that are not missing stay as they are, in all of them; a date that is counted from a
    missing one is missing with it.

    Parameters
    ----------
    source
        What messages call the table.
    strict
        Refuse a table in which nothing is missing, or a feature has no value at all.
    """
    encoder = Encoder(schema, source=source, columns=frame.columns, need_unit=False)
    codes = encoder.encode(frame)
    encoder.finish()
    if strict:
        check_holes(codes, schema, source=source)
    filled = fill(
        codes, schema, stream, imputations=imputations, threads=threads, progress=progress
    )
    return [with_donors(frame, schema, each) for each in filled]
