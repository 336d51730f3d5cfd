"""Levels as targets: small categories are merged by paid one-way counts before rows are drawn.

Neighbours of an ordered feature merge into runs, small categories of any other feature into
one level, so that a level holds at least 1/t of the rows by the paid counts. The samplers run
on levels, with virtual rows in proportion to what the levels hold; a drawn level is split
again by the paid shares. Levels, t and digits of heads follow from paid output and public
figures alone (R10), merging is a map of single rows, and splitting, with words of its own, is
post-processing: every price stays as it is. In the terms of R25 this is the kernel that keeps the
paid marginal with the fewest virtual rows, t times the smallest alpha at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.levels import alone, merged
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.marginals import CAP_RESOLUTION, Marginals, Shares
from pegsynth.methods.gibbs.order import plain_features
from pegsynth.methods.gibbs.spec import HashSpec, Lines
from pegsynth.methods.prior import Prior, Weights
from pegsynth.methods.seed_rows import Codes, SeedPool, WordSource
from pegsynth.schema import Schema
from pegsynth.schema.rules import Rule

LEAST_RESOLUTION = 1 << 4
MOST_RESOLUTION = 1 << 11
"""Between these, or up to 16 C for a feature of more categories, t is a power of two."""

HEAD_LEVELS = 8
PREVAILING = 0.3
"""A head has about 8 digits where virtual rows answer more than this part of the draws."""

LOST = 0.1
WRONG_PRIOR = 10.0
"""What the choice of t weighs: total variation that is lost where the prior answers, or where
categories are merged, and how much worse a prior is that is off by as much. A sweep passes on
what one feature's prior has wrong. The figures were chosen on four tables
(`checks.bench.order`); none is read off the table that is released."""

USED_KEYS = 2 / 3
"""Of K keys about K**(2/3) hold most of the rows."""

_FINENESS = 1 << 12
_MOST_FLOOR = 1 << 10


@dataclass(frozen=True)
class Merging:
    """What is merged, and how far virtual rows may go.

    Parameters
    ----------
    spec
        Keys and targets in levels.
    resolutions
        t of every feature: its virtual rows are about t times the smallest alpha at most.
    """

    spec: HashSpec
    resolutions: tuple[int, ...]


def merge(
    schema: Schema, spec: HashSpec, marginals: Marginals, *, numerator: int, scale: int
) -> Merging:
    """Merge small categories, and heads into few levels where virtual rows prevail.

    Parameters
    ----------
    spec
        Keys of the schema's own categories.
    marginals
        Paid one-way counts; nothing else of the table is looked at (R10).
    numerator, scale
        The smallest alpha.
    """
    alpha, lines, resolutions = numerator / scale, [], []
    for feature, shares in enumerate(marginals.shares):
        held = _rows_of_a_key(spec, feature, marginals.total)
        t, levels = _best(schema, feature, shares, alpha=alpha, held=held)
        resolutions.append(t)
        lines.append(tuple(levels.tolist()))
    own = level_shares(marginals.shares, tuple(lines))
    fine = replace(spec, category_counts=tuple(len(line) for line in own), levels=tuple(lines))
    answered = [
        _virtual_part(
            _floored(own[target], resolutions[target]),
            alpha,
            _rows_of_a_key(fine, target, marginals.total),
        )
        for target in plain_features(schema)
    ]
    if np.mean(answered) > PREVAILING:
        fine = replace(fine, head_levels=_head_levels(schema, own))
    return Merging(fine, tuple(resolutions))


def _rows_of_a_key(spec: HashSpec, target: int, total: float) -> float:
    """Return about how many rows a key holds that a chain visits."""
    return float(total / spec.key_space(target) ** USED_KEYS)


def _floored(shares: Shares, resolution: int) -> Shares:
    return np.maximum(shares, 1 / resolution)


def _virtual_part(weights: Shares, alpha: float, held: float) -> float:
    """Return which part of a draw virtual rows answer, those of the smallest weight being alpha."""
    virtual = alpha * float(weights.sum() / weights.min())
    return virtual / (virtual + held)


def _best(
    schema: Schema, feature: int, shares: Shares, *, alpha: float, held: float
) -> tuple[int, Int64]:
    """Return t and levels of a feature: the smallest error by public and paid figures."""
    parts = _alike(schema, feature)
    ordered = schema.features[feature].kind != "nominal"
    found: list[tuple[float, int, Int64]] = []
    for t in _resolutions(len(shares)):
        levels = _levels(shares, parts, 1 / t, ordered=ordered)
        own = _summed(shares, levels)
        weights = _floored(own, t)
        part = _virtual_part(weights, alpha, held)
        wrong = float(np.abs(weights / weights.sum() - own).sum()) / 2
        lost = float(shares[np.bincount(levels)[levels] > 1].sum())
        error = part * (WRONG_PRIOR * wrong + LOST) + (1 - part) * LOST * lost
        found.append((error, t, levels))
    _, t, levels = min(found, key=lambda each: each[:2])
    return t, levels


def _resolutions(categories: int) -> list[int]:
    most = max(MOST_RESOLUTION, CAP_RESOLUTION * categories)
    count = (most // LEAST_RESOLUTION).bit_length()
    return [LEAST_RESOLUTION << step for step in range(count)]


def most_resolution(categories: int) -> int:
    """Return the largest t of a feature."""
    return _resolutions(categories)[-1]


def _alike(schema: Schema, feature: int) -> list[Int64]:
    """Return sets of categories that may merge: no rule tells them apart.

    Missing, unlisted and not applicable values stay by themselves. A detail is drawn given the
    category of its parent, so neither is merged.
    """
    codes = range(schema.category_counts[feature])
    if feature in _told_apart(schema):
        return [np.array([code]) for code in codes]
    own = [dict(rule.forbidden).get(feature, frozenset()) for rule in schema.rules]
    listed = schema.features[feature].bin_count
    ordered = schema.features[feature].kind != "nominal"
    parts: dict[object, list[int]] = {}
    run, before = 0, None
    for code in codes:
        met: tuple[int, ...] = tuple(code in named for named in own)
        met = met if code < listed else (*met, code)
        run, before = run + (ordered and met != before), met
        parts.setdefault((met, run), []).append(code)
    return [np.array(part) for part in parts.values()]


def _told_apart(schema: Schema) -> set[int]:
    details = {i for i, feature in enumerate(schema.features) if feature.parent is not None}
    return details | {schema.index(schema.features[i].parent or "") for i in details}


def _levels(shares: Shares, parts: Sequence[Int64], least: float, *, ordered: bool) -> Int64:
    """Return the level of every category, numbered in the order of the categories."""
    levels = np.empty(len(shares), dtype=np.int64)
    size = 0
    for part in parts:
        own = merged(shares[part], least, ordered=ordered) if len(part) > 1 else alone(1)
        levels[part] = own + size
        size += int(own.max()) + 1
    _, first, places = np.unique(levels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[places].astype(np.int64)


def _head_levels(schema: Schema, shares: Sequence[Shares]) -> Lines:
    """Return about `HEAD_LEVELS` digits for every feature; those of parents stay in full."""
    whole = _told_apart(schema)
    lines = []
    for feature, own in enumerate(shares):
        if feature in whole or len(own) <= HEAD_LEVELS:
            line = alone(len(own))
        elif schema.features[feature].kind != "nominal":
            line = merged(own, 1 / HEAD_LEVELS, ordered=True)
        else:
            line = np.full(len(own), HEAD_LEVELS - 1, dtype=np.int64)
            largest = np.argsort(-own, kind="stable")[: HEAD_LEVELS - 1]
            line[np.sort(largest)] = np.arange(HEAD_LEVELS - 1)
        lines.append(tuple(line.tolist()))
    return tuple(lines)


def level_lines(levels: Lines) -> tuple[Int64, ...]:
    """Return levels as arrays."""
    return tuple(np.array(line, dtype=np.int64) for line in levels)


def level_shares(shares: Sequence[Shares], levels: Lines) -> tuple[Shares, ...]:
    """Return the share of every level."""
    lines = zip(level_lines(levels), shares, strict=True)
    return tuple(_summed(own, line) for line, own in lines)


def _summed(shares: Shares, levels: Int64) -> Shares:
    return np.bincount(levels, weights=shares).astype(np.float64)


def level_rules(rules: Sequence[Rule], levels: Lines) -> tuple[Rule, ...]:
    """Return the rules in levels; a rule names all categories of a level or none of them."""
    return tuple(
        Rule.of({f: sorted({levels[f][code] for code in codes}) for f, codes in rule.forbidden})
        for rule in rules
    )


def level_prior(
    shares: Sequence[Shares], resolutions: Sequence[int], *, numerator: int, scale: int
) -> Prior:
    """Return virtual rows in proportion to the shares of levels, none below the smallest alpha.

    The weights of a feature are as fine as the smallest alpha allows, and its multiplier is
    rounded up, so that no alpha is smaller than the one that is charged (R14, R15).
    """
    floor = min(max(numerator // _FINENESS, 1), _MOST_FLOOR)
    weights: tuple[Weights, ...] = tuple(
        np.maximum(np.rint(own * (floor * t)), float(floor)).astype(np.uint64)
        for own, t in zip(shares, resolutions, strict=True)
    )
    multipliers = tuple(-(-numerator // int(line.min())) for line in weights)
    return Prior(weights, multipliers, scale)


def most_virtual(categories: int, numerator: int) -> int:
    """Return a bound on the integer virtual rows of a feature, whatever its marginals are."""
    # Rounding and the floor add at most 2 C floors to the t of them; a multiplier that is
    # rounded up adds all weights at most once.
    return (numerator + _MOST_FLOOR) * (most_resolution(categories) + 2 * categories)


_HALF = np.uint64(32)


@dataclass(frozen=True)
class MergedPool:
    """Seed rows of another pool, in levels."""

    pool: SeedPool
    levels: tuple[Int64, ...]

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return `count` rows as levels."""
        rows = self.pool.draw(count, words)
        return np.column_stack([line[rows[:, i]] for i, line in enumerate(self.levels)]).astype(
            np.uint32
        )


@dataclass(frozen=True)
class _Line:
    """One feature that has fewer levels than categories, its categories in order of level."""

    members: Int64
    first: Int64
    cumulative: NDArray[np.uint64]

    @classmethod
    def of(cls, levels: Int64, weights: NDArray[np.uint64]) -> _Line:
        members = np.argsort(levels, kind="stable")
        first = np.searchsorted(levels[members], np.arange(int(levels.max()) + 2))
        sums = np.concatenate([[0], np.cumsum(weights[members], dtype=np.uint64)])
        return cls(members, first, sums.astype(np.uint64))

    def split(self, column: AnyCodes | Int64, words: NDArray[np.uint64]) -> Int64:
        """Draw a category for every level of a column."""
        start = self.cumulative[self.first[column]]
        width = self.cumulative[self.first[column.astype(np.int64) + 1]] - start
        # Weights of a feature add up to less than 2**32, so the product fits in 64 bits.
        value = start + (((words >> _HALF) * width) >> _HALF)
        found: Int64 = self.members[np.searchsorted(self.cumulative, value, side="right") - 1]
        return found


class Splitter:
    """Turns rows of levels into rows of categories.

    Parameters
    ----------
    levels
        The level of every category of every feature.
    weights
        Whole weights of the categories, from paid shares; less than 2**32 in all.
    given
        Codes of features that every row holds as they are.
    """

    def __init__(
        self,
        levels: Sequence[Int64],
        weights: Sequence[NDArray[np.uint64]],
        given: Mapping[int, int],
    ) -> None:
        self._lines = {
            feature: _Line.of(line, weights[feature])
            for feature, line in enumerate(levels)
            if not np.array_equal(line, np.arange(len(line)))
        }
        self._given = dict(given)

    def words_needed(self, rows: int) -> int:
        """Return how many random words so many rows take."""
        return rows * len(self._lines)

    def split(self, rows: AnyCodes, words: NDArray[np.uint64]) -> AnyCodes:
        """Return the rows as categories, one row of words for each."""
        table = words.reshape(len(rows), len(self._lines))
        drawn = {
            feature: line.split(rows[:, feature], table[:, place])
            for place, (feature, line) in enumerate(self._lines.items())
        }
        return self._with(rows, drawn)

    def stream(self, chunks: Iterator[AnyCodes], words: WordSource) -> Iterator[AnyCodes]:
        """Split chunks as they come, with words that follow the rows."""
        for chunk in chunks:
            yield self.split(chunk, words(self.words_needed(len(chunk))))

    def alike(self, rows: AnyCodes, words: WordSource) -> AnyCodes:
        """Split rows so that equal levels become equal categories, for steps of one row."""
        drawn = {}
        for feature, line in self._lines.items():
            every = np.arange(len(line.first) - 1)
            drawn[feature] = line.split(every, words(len(every)))[rows[:, feature]]
        return self._with(rows, drawn)

    def _with(self, rows: AnyCodes, drawn: dict[int, Int64]) -> AnyCodes:
        """Return rows with these columns, and with the given values."""
        out = rows.copy()
        for feature, column in drawn.items():
            out[:, feature] = column
        for feature, code in self._given.items():
            out[:, feature] = code
        return out
