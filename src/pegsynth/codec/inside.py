"""What numbers have to do with each other, and with all else, inside their bins.

Rows of codes say in which bin a number lies. A linear-Gaussian model of *scores*, one for
each number, says where in it: the score of a number is normal given the other features and
the other scores, and known up to its bin. It is fitted to synthetic codes and looks at
nothing else, so it is post-processing (R21). Ranks of scores inside a bin then choose among
the measured quantiles of that bin: codes and one-way shapes stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.bin_shape import Shape
from pegsynth.errors import ParameterError
from pegsynth.kernels import scores as kernels
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.random import RandomStream
from pegsynth.runtime import spare_processors
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema

Int32 = NDArray[np.int32]
Words = NDArray[np.uint64]

MOST_FITTED = 1 << 17
"""Rows that a model is fitted to, at most."""
MOST_COLUMNS = 384
SWEEPS = 3
ROUNDS = 6
_FAR = 8.0
_LEAST_SPREAD = 0.02
_RIDGE = 1.0
_ROWS_WORTH_THREADS = 1 << 13
_MOST_EVEN = 2
"""A table of at least one part in this many of the fitted rows is ranked among itself."""
_SHIFT, _UNIT = np.uint64(11), 2.0**-53
_FREQUENT = 2.0
"""A single number with so many times the share of a usual bin has no score; zero with one."""


@dataclass(frozen=True, eq=False)
class Design:
    """How rows of codes become columns of a regression.

    Parameters
    ----------
    numbers
        Positions of the features that have scores.
    scored
        For each of them the bin of each code, -1 for codes without a score: missing ones,
        and single numbers, such as zero, that are too frequent to be part of a continuum.
    columns
        For every feature the column of each code, -1 for none.
    width
        Number of these columns.
    """

    numbers: tuple[int, ...]
    scored: tuple[Int32, ...]
    columns: tuple[Int32, ...]
    width: int

    @classmethod
    def of(cls, schema: Schema, shapes: Mapping[str, Shape], codes: Codes) -> Design:
        """Give every frequent category a column; rare ones of a feature share one."""
        most = max(2, MOST_COLUMNS // len(schema.features))
        numbers, scored, columns = [], [], []
        width = 1
        for place, feature in enumerate(schema.features):
            line = np.full(feature.category_count, -1, dtype=np.int32)
            listed = np.arange(len(line))
            if feature.name in shapes:
                bins = _scored(feature, shapes[feature.name])
                numbers.append(place)
                scored.append(bins)
                listed = np.flatnonzero(bins < 0)
            counts = np.bincount(codes[:, place], minlength=len(line))[listed]
            order = listed[np.argsort(-counts, kind="stable")]
            line[order] = width + np.minimum(np.arange(len(order)), most - 1)
            width += min(len(order), most)
            columns.append(line)
        return cls(tuple(numbers), tuple(scored), tuple(columns), width)

    def positions(self, codes: Codes) -> Int32:
        """Return the columns of every row that are 1; the first is so in all rows."""
        found = np.zeros((len(codes), len(self.columns) + 1), dtype=np.int32)
        for place, line in enumerate(self.columns):
            found[:, place + 1] = line[codes[:, place]]
        return found

    def bins(self, codes: Codes) -> Int32:
        """Return the bin of every number, -1 where it has no score."""
        found = np.empty((len(codes), len(self.numbers)), dtype=np.int32)
        for place, (number, line) in enumerate(zip(self.numbers, self.scored, strict=True)):
            found[:, place] = line[codes[:, number]]
        return found

    @property
    def bin_counts(self) -> tuple[int, ...]:
        """How many bins each number has."""
        return tuple(int(line.max()) + 1 for line in self.scored)


def _scored(feature: Feature, shape: Shape) -> Int32:
    """Return the bin of every code of a number, -1 for those without a score."""
    bins = np.full(feature.category_count, -1, dtype=np.int32)
    for each in range(feature.bin_count):
        zero = shape.low[shape.starts[each]] == 0
        frequent = shape.shares[each] > (1.0 if zero else _FREQUENT) / feature.bin_count
        if not (frequent and shape.is_single(each)):
            bins[each] = each
    return bins


@dataclass(frozen=True, eq=False)
class InsideModel:
    """A fitted model of scores, ready to rank rows.

    Parameters
    ----------
    names
        The numbers it is about.
    design
        How rows become columns.
    starts, bounds
        Bounds of the scores of every bin of every number, one number after the other.
    centres
        The score that a row starts from in every bin, the same way.
    weights, spreads
        Regression of every score on all columns, and its residual deviation.
    rows
        How many rows were fitted.
    known
        Of every number where the scores of fitted rows of each bin begin, and all of them in order.
    """

    names: tuple[str, ...]
    design: Design
    starts: Int64
    bounds: Float64
    centres: Float64
    weights: Float64
    spreads: Float64
    rows: int
    known: tuple[tuple[Int64, Float64], ...] = ()

    @property
    def words_per_row(self) -> int:
        """Random words that the scores of a row take."""
        return SWEEPS * len(self.names)

    def started(self, bins: Int32) -> Float64:
        """Return the scores that rows start from."""
        places = self.starts + np.maximum(bins, 0)
        return np.where(bins >= 0, self.centres[places], 0.0)

    def draw(self, positions: Int32, bins: Int32, words: Words, scores: Float64) -> None:
        """Replace scores by new ones; rows are independent, so threads share them out."""
        threads = spare_processors() if len(bins) >= _ROWS_WORTH_THREADS else 1
        size = -(-max(len(bins), 1) // threads)

        def work(start: int) -> None:
            part = slice(start, start + size)
            kernels.draw_scores(
                positions[part],
                bins[part],
                self.starts,
                self.bounds,
                self.weights,
                self.spreads,
                words[part],
                np.empty(len(self.names)),
                scores[part],
            )

        if threads == 1:
            work(0)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(0, len(bins), size)))

    def ranks(self, codes: Codes, words: Words, within: Words) -> Float64:
        """Return where in its bin every number lies, in [0, 1), a column for each.

        As many rows as were fitted are ranked among themselves, so that they fill each bin evenly
        and means hang on no draw; fewer are ranked among those that were fitted, one by one: the
        scores of a row depend on its own words alone.

        Parameters
        ----------
        words
            `words_per_row` words for each row.
        within
            One word for each number, which decides among equal ranks.
        """
        if words.shape != (len(codes), self.words_per_row):
            raise ParameterError(f"every row takes {self.words_per_row} words")
        bins = self.design.bins(codes)
        scores = self.started(bins)
        self.draw(self.design.positions(codes), bins, words, scores)
        ranks = np.empty(scores.shape, order="F")
        for number, (starts, known) in enumerate(self.known):
            columns = [np.ascontiguousarray(each[:, number]) for each in (bins, scores)]
            words_of = np.ascontiguousarray(within[:, number])
            if _MOST_EVEN * len(codes) < self.rows:
                kernels.ranks_in_bins(*columns, starts, known, words_of, ranks[:, number])
            else:
                ranks[:, number] = _even_ranks(bins[:, number], scores[:, number], words_of)
        return ranks


def fit_inside(
    codes: Codes, schema: Schema, shapes: Mapping[str, Shape], stream: RandomStream
) -> InsideModel | None:
    """Fit a model to synthetic codes; None if no number has anything to learn.

    Parameters
    ----------
    codes
        Synthetic rows; many are thinned out evenly.
    shapes
        Shapes of the numeric features that are to have scores.
    """
    names = tuple(name for name in schema.names if name in shapes)
    if not names or not len(codes):
        return None
    sample = codes[:: -(-len(codes) // MOST_FITTED)]
    design, size = Design.of(schema, shapes, sample), len(names)
    positions, bins = design.positions(sample), design.bins(sample)
    marks = [_marks(bins[:, place], count) for place, count in enumerate(design.bin_counts)]
    bounds, centres = (np.concatenate(each) for each in zip(*marks, strict=True))
    ends = np.cumsum([len(each) for each, _ in marks])
    model = InsideModel(
        names,
        design,
        np.append(0, ends[:-1]).astype(np.int64),
        bounds,
        centres,
        np.zeros((size, design.width + size)),
        np.ones(size),
        len(sample),
    )
    words = stream.substream()
    scores = model.started(bins)
    # The parts of the moments of every regression that have no score in them.
    pairs = [np.zeros((design.width + size,) * 2) for _ in names]
    for number, gram in enumerate(pairs):
        kernels.add_pairs(positions, bins, number, gram)
    for _ in range(ROUNDS):
        weights, spreads = _regressions(design, pairs, positions, bins, scores)
        model = replace(model, weights=weights, spreads=spreads)
        model.draw(positions, bins, words.take(len(sample) * size).reshape(-1, size), scores)
    last = words.take(len(sample) * model.words_per_row).reshape(len(sample), -1)
    scores = model.started(bins)
    model.draw(positions, bins, last, scores)
    lines = enumerate(design.bin_counts)
    return replace(
        model, known=tuple(_sorted(bins[:, place], scores[:, place], n) for place, n in lines)
    )


def _marks(bins: Int32, count: int) -> tuple[Float64, Float64]:
    """Return normal scores of the bins' edges, by how often each occurs, and of their medians.

    The last of the medians is not used.
    """
    counts = np.bincount(bins[bins >= 0], minlength=count) + 0.5
    reached = np.cumsum(counts)[:-1] / counts.sum()
    bounds = [-_FAR, *(kernels.normal_quantile(float(share)) for share in reached), _FAR]
    medians = [kernels.truncated_normal(0.0, 1.0, low, high, 0.5) for low, high in pairwise(bounds)]
    return np.array(bounds), np.array([*medians, 0.0])


def _regressions(
    design: Design,
    pairs: Sequence[Float64],
    positions: Int32,
    bins: Int32,
    scores: Float64,
) -> tuple[Float64, Float64]:
    """Regress every score on all else, by its normal equations."""
    numbers = len(design.numbers)
    width = design.width + numbers
    weights, spreads = np.zeros((numbers, width)), np.ones(numbers)
    for number in range(numbers):
        gram, right = pairs[number].copy(), np.zeros(width)
        square = kernels.add_moments(positions, bins, scores, number, design.width, gram, right)
        rows = int(np.count_nonzero(bins[:, number] >= 0))
        if not rows:
            continue
        full = np.triu(gram) + np.triu(gram, 1).T
        full[np.diag_indices(width)] += _RIDGE
        weights[number] = np.linalg.solve(full, right)
        left = max(square - float(weights[number] @ right), 0.0) / rows
        spreads[number] = max(left**0.5, _LEAST_SPREAD)
    return weights, spreads


def _even_ranks(bins: Int32, scores: Float64, words: Words) -> Float64:
    """Return ranks that divide each bin among its rows; words decide between equal scores."""
    order = np.lexsort((words, scores, bins))
    first = np.searchsorted(bins[order], bins[order], side="left")
    size = np.searchsorted(bins[order], bins[order], side="right") - first
    ranks = np.empty(len(bins))
    ranks[order] = (np.arange(len(bins)) - first + (words[order] >> _SHIFT) * _UNIT) / size
    found: Float64 = np.where(bins < 0, 0.0, np.minimum(ranks, 1 - _UNIT))
    return found


def _sorted(bins: Int32, scores: Float64, count: int) -> tuple[Int64, Float64]:
    """Return where the scores of every bin begin, and all of them in order."""
    seen = bins >= 0
    order = np.lexsort((scores[seen], bins[seen]))
    starts = np.searchsorted(bins[seen][order], np.arange(count + 1))
    return starts.astype(np.int64), np.ascontiguousarray(scores[seen][order])
