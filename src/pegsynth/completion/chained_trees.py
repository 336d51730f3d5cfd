"""Missing values drawn by chained classification trees with redrawn weights (R23).

Every imputation redraws the weights of the synthetic rows (a Bayesian bootstrap), so that the
trees differ as much as they are uncertain: the imputations are proper. Features with missing
values take turns, those with the fewest first. A tree of a feature is grown from the rows that
have it, given all other features as they then stand, and a missing value is drawn from the
leaf of its row, within the public rules. In the first round "missing" is a category of the
other features; later they hold what was drawn.

What is drawn is a row of the same leaf with that category, the donor. Its value is copied, so
that numbers have the shape inside their bins that the synthetic values have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Codes, Float64, Int64
from pegsynth.completion.holes import missing_cells, value_codes
from pegsynth.imputation import TreeModel, bayesian_bootstrap, fit_cart
from pegsynth.interruptible import Stop, run_each
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream, Words

if TYPE_CHECKING:
    from pegsynth.schema import Schema

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
    tree = fit_cart(
        rows,
        schema,
        words=words,
        targets=[place],
        sample_weight=np.where(seen, weights, 0.0),
        max_rows=MOST_FITTED,
    )
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
