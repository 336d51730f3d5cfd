"""Rows from released blocks alone: no data, no budget, any number of times.

Tables with noise of their own are drawn without shrinkage: every table meets what projection alone
makes of it (R28). Such a plain target is a function of published counts only: it does not look at
a pool, nor at what other tables lead to expect. So the same function serves the published counts
and their replicates, and where no count is near zero it is linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.levels import split_again
from pegsynth.errors import DataError
from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.kernels.pool_loops import uniforms
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._choosing import place_block
from pegsynth.methods.released._details import agreed_shares, tell, told_details
from pegsynth.methods.released._estimates import (
    Axes,
    Margins,
    fitted_to,
    measured_products,
    on_simplex,
    one_way_shares,
    says_something,
    standard_scores,
    tilted,
)
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._pair_pool import PairModel
from pegsynth.methods.released._pairs import PAIR, PairEstimates, cell_noise, projected
from pegsynth.methods.released._row_pool import MOST_POOL, Features, Pool, cell_count, rows_at_once
from pegsynth.methods.released._values import Detail, NoisyTable, Released, anchored, common_total
from pegsynth.random import RandomStream
from pegsynth.schema.rules import Rule

Codes = NDArray[np.uint32]

LOT = MOST_POOL
POOL_ROWS = 200_000
"""Small tables get a pool of so many rows, but at most so many times those asked for."""
_MOST_POOLS = 4.0
FIT_ROWS = 1 << 16
"""The most rows of a pool that potentials are found by."""
_WORTH_GROWING = 2
_SWEEPS = 10
_GROWN_SWEEPS = 32
MOST_POOLS_FOR_GIVEN = 64
_SMALLEST_GIVEN = 1 << 14
_POOLS_TO_JUDGE_BY = 8


def draw_rows(
    released: Released,
    rows: int,
    stream: RandomStream,
    *,
    steps: Steps | None = None,
    rules: Sequence[Rule] = (),
    given: Mapping[int, int] | None = None,
    threads: int = 1,
    ready: JointFit | None = None,
) -> Iterator[Codes]:
    """Yield code rows in lots; every lot has a pool of its own.

    Parameters
    ----------
    given
        Features and the code that each has in every row: the pool is conditioned on it,
        so the other features follow.
    ready
        A fit to the same tables; without it a new one is made.
    """
    steps = steps or Steps()
    steps = steps.under_noise() if released.loud else steps
    lot = lot_rows(released)
    if not rows:
        return
    if ready is None:
        size = fitted_rows(released, min(lot, rows))
        pool = Pool(released.sizes, size, stream, rules=rules, threads=threads)
        ready = rebuild(released, pool, steps)
    for start in range(0, rows, lot):
        wanted = min(lot, rows - start)
        if given:
            yield _given(released, wanted, stream, given, partial(grown, released, ready, stream))
        elif start or pool_rows(released, wanted) > ready.pool.rows:
            larger = grown(released, ready, stream, pool_rows(released, wanted))
            yield take_rows(released, larger, wanted, stream)
        else:
            yield take_rows(released, ready, wanted, stream)


def lot_rows(released: Released) -> int:
    """Return how many rows are drawn at a time: fewer where very many pairs were measured."""
    return rows_at_once(len(released.residuals), LOT)


def pool_rows(released: Released, rows: int) -> int:
    """Return the rows of the pool: several times those wanted where the table is small."""
    count = max(released.total[0], 1)
    times = min(max(POOL_ROWS / count, 1.0), _MOST_POOLS)
    lot = lot_rows(released)
    larger = max(math.ceil(rows * times), 1)
    return larger if lot == LOT else min(larger, max(rows, lot))


def fitted_rows(released: Released, rows: int) -> int:
    """Return the rows of the pool that potentials are found by, which more rows do not need."""
    size = pool_rows(released, rows)
    return size if size < _WORTH_GROWING * FIT_ROWS else FIT_ROWS


def grown(released: Released, fit: JointFit, stream: RandomStream, rows: int) -> JointFit:
    """Return the same fit on a new pool of so many rows."""
    pool = Pool(released.sizes, rows, stream, rules=fit.pool.rules, threads=fit.pool.threads)
    if fit.pairs is not None and not released.blocks:
        fit.pairs.draw(pool, fit.margins, fit.steps, released.order)
    else:
        fill(released, pool, fit.steps)
    return fit.on(pool, _SWEEPS if fit.raked else _GROWN_SWEEPS)


def rebuild(released: Released, pool: Pool, steps: Steps) -> JointFit:
    """Fill a pool by the blocks and weigh it to every table that was released."""
    if released.by_pairs:
        return _by_residuals(released, pool, steps)
    fit = JointFit(pool, fill(released, pool, steps), steps)
    if not steps.shrink:
        return _raked(released, pool, steps)
    pool.weigh(fit.margins.total)
    fit.start(released.blocks)
    for table in released.extra:
        fit.take(table)
    for table in released.residuals:
        fit.take_residual(table)
    fit.finish(released.levels, released.ordered)
    return fit


def _by_residuals(released: Released, pool: Pool, steps: Steps) -> JointFit:
    """Fill a pool by blocks or the residuals of all pairs, and weigh it to all tables."""
    some = bool(released.blocks)
    margins = fill(released, pool, steps) if some else start_margins(released, smooth=steps.shrink)
    fit, model = (
        JointFit(pool, margins, steps),
        PairModel.of(released.residuals, pool, margins, steps),
    )
    if not some:
        model.draw(pool, margins, steps, released.order)
    if not steps.shrink:
        return _raked(released, pool, steps)
    model.start(fit, released.blocks)
    for table in released.residuals:
        if len(table.features) > PAIR:
            fit.take_residual(table)
    fit.finish(released.levels, released.ordered)
    return fit


def _raked(released: Released, pool: Pool, steps: Steps) -> JointFit:
    """Rake a pool to the published tables as they are, without any shrinkage (R28)."""
    fit = JointFit(pool, plain_margins(released), steps)
    fit.meet(plain_targets(released, fit.margins), _SWEEPS)
    return fit


def fill(released: Released, pool: Pool, steps: Steps) -> Margins:
    """Fill a pool by the blocks; return the one-way counts."""
    margins = start_margins(released, smooth=steps.shrink)
    for block in released.blocks:
        margins.fold(block, block.features)
    drawn = {block.features[-1]: block for block in released.blocks}
    details = {detail.feature: detail for detail in released.details}
    for feature in released.order:
        if feature in details:
            parent = details[feature].parent
            details[feature].place(pool, margins.shares[parent], margins.shares[feature])
            continue
        if feature in drawn:
            place_block(drawn[feature], pool, margins, steps)
        else:
            pool.draw(feature, (), margins.shares[feature][None, :])
    return margins


def plain_margins(released: Released) -> Margins:
    """Return the one-way counts as all published tables give them together (R28)."""
    margins = start_margins(released, smooth=False)
    for table in (*released.blocks, *released.extra):
        margins.fold(table, table.features)
    return margins


def start_margins(released: Released, *, smooth: bool = True) -> Margins:
    """Return the one-way counts on merged levels, before any table has improved them."""
    total = released_total(released)
    one_ways = anchored(released.one_ways, released.public, total)
    shares = fine_shares(released, smooth=smooth)
    return Margins.of(one_ways, released.levels, shares, total, released.details)


def fine_shares(released: Released, *, smooth: bool = True) -> tuple[Float64, ...]:
    """Return the shares of all categories of every feature."""
    total = released_total(released)
    one_ways = anchored(released.one_ways, released.public, total)
    lines = zip(one_ways, released.ordered, released.public, strict=True)
    shares = [
        one_way_shares(table, total, smooth=smooth and ordered and not public)
        for table, ordered, public in lines
    ]
    return agreed_shares(shares, told_of(released))


def told_of(released: Released) -> tuple[Detail, ...]:
    """Return the features that another one tells, on their categories (R33)."""
    return told_details(released.maps, [len(table.counts) for table in released.one_ways])


def released_total(released: Released) -> float:
    """Estimate the number of rows from everything that was measured."""
    lines = zip(released.one_ways, released.public, strict=True)
    return common_total(released.total, [table for table, public in lines if not public])


def take_rows(released: Released, fit: JointFit, rows: int, stream: RandomStream) -> Codes:
    """Choose rows from a weighted pool, let all tables fit better, and split the levels."""
    chosen = exchange_rows(fit, choose_rows(fit, rows), fit.steps.exchange)
    return _codes(released, fit, chosen, stream)


def _codes(
    released: Released,
    fit: JointFit,
    chosen: NDArray[np.int64],
    stream: RandomStream,
    given: Mapping[int, int] | None = None,
) -> Codes:
    # Rows leave in random order: their places in the pool say nothing, but look sorted.
    chosen = chosen[fit.pool.permutation(len(chosen))]
    columns = fit.pool.columns[:, chosen]
    return level_codes(released, columns, stream, given, smooth=fit.steps.shrink)


def level_codes(
    released: Released,
    columns: NDArray[np.uint16],
    stream: RandomStream,
    given: Mapping[int, int] | None = None,
    *,
    smooth: bool = True,
) -> Codes:
    """Return categories for rows on merged levels, a line of these for every feature."""
    shares = fine_shares(released, smooth=smooth)
    words = stream.substream()
    rows = columns.shape[1]
    codes = np.empty((rows, len(released.levels)), dtype=np.uint32)
    for feature, levels in enumerate(released.levels):
        enough = words.take(rows + int(levels.max()) + 1)
        column = np.ascontiguousarray(columns[feature])
        codes[:, feature] = split_again(column, levels, shares[feature], enough)
    for feature, code in (given or {}).items():
        codes[:, feature] = code
    tell(codes, told_of(released), shares, lambda count: uniforms(words.take(count)), given)
    return codes


def _given(
    released: Released,
    rows: int,
    stream: RandomStream,
    given: Mapping[int, int],
    fresh: Callable[[int], JointFit],
) -> Codes:
    """Condition pools on given values until there are enough rows."""
    found: list[Codes] = []
    have, size = 0, max(pool_rows(released, rows), _SMALLEST_GIVEN)
    for number in range(MOST_POOLS_FOR_GIVEN):
        if number >= _POOLS_TO_JUDGE_BY and have * MOST_POOLS_FOR_GIVEN < rows * number:
            break
        fit = fresh(min(size, lot_rows(released)))
        weights = fit.pool.weights
        for feature, code in given.items():
            level = released.levels[feature][code]
            weights = np.where(fit.pool.columns[feature] == level, weights, 0.0)
        matching = int(np.count_nonzero(weights))
        if matching:
            fit.pool.weights = weights
            chosen = choose_rows(fit, min(matching, rows - have))
            codes = _codes(released, fit, chosen, stream, given)
            found.append(codes)
            have += len(codes)
        if have >= rows:
            return np.concatenate(found)
        size *= 2
    raise DataError(
        f"the released blocks hold almost no rows with the values of --where: {have} of {rows} "
        "were found; ask for fewer rows, or give fewer values"
    )


UInt16 = NDArray[np.uint16]

_SORTED_BY = 4
_FEW_ROWS = 250_000
_LINES_AT_A_TIME = 4096


def choose_rows(fit: JointFit, rows: int) -> Int64:
    """Choose pool rows by systematic sampling along the features that were placed first.

    The number of times that a row is chosen differs from its weight by less than 1, and
    so, nearly, does that of any run of similar rows.
    """
    pool = fit.pool
    columns = [pool.columns[feature] for feature in pool.placed[:_SORTED_BY][::-1]]
    order = np.lexsort(columns) if columns else np.arange(pool.rows)
    reached = np.cumsum(pool.weights[order])
    chosen: Int64 = order[_systematic(reached, rows, pool.uniforms(1)[0])]
    return chosen


def _systematic(reached: Float64, count: int, offset: float) -> Int64:
    """Return places at equal steps along cumulated weights; none has weight 0."""
    points = (np.arange(count) + offset) * (reached[-1] / count)
    # Rounding may carry the last point to the very end, behind which rows have no weight.
    places: Int64 = np.minimum(
        np.searchsorted(reached, points, side="right"), np.searchsorted(reached, reached[-1])
    )
    return places


def exchange_rows(fit: JointFit, chosen: Int64, passes: int) -> Int64:
    """Replace rows by others of the pool where all tables together then fit better."""
    pool, rows = fit.pool, len(chosen)
    aims = fit.aims() if passes and rows else []
    if not aims:
        return chosen
    # The more rows, the less a single one matters.
    passes = min(max(round(passes * _FEW_ROWS / rows), 1), passes)
    starts = np.cumsum([0, *(len(target) for _, target in aims)])
    excess = np.concatenate([-target * (rows / target.sum()) for _, target in aims])
    lines = _lines(pool, [keys for keys, _ in aims])
    kernels.count_lines(chosen, lines, starts, excess)
    reached = np.cumsum(pool.weights)
    chosen = chosen.copy()
    for _ in range(passes):
        proposed = _systematic(reached, rows, pool.uniforms(1)[0])
        if kernels.exchange(chosen, lines, starts, excess, proposed, pool.permutation(rows)) == 0:
            break
    return chosen


def _lines(pool: Pool, tables: Sequence[UInt16]) -> UInt16:
    """Return a line for every pool row: its cell in each table."""
    lines = np.empty((pool.rows, len(tables)), dtype=np.uint16)

    def work(first: int) -> None:
        part = slice(first, first + _LINES_AT_A_TIME)
        for table, keys in enumerate(tables):
            kernels.line_up(keys[part], table, lines[part])

    pool.each(work, range(0, pool.rows, _LINES_AT_A_TIME))
    return lines


Target = tuple[Features, Float64]


def plain_targets(released: Released, margins: Margins) -> list[Target]:
    """Return the tables that weights should meet, in the order in which they are raked.

    One-way counts come last, because they are known best.

    Parameters
    ----------
    margins
        One-way counts that every published table has improved.
    """
    known: list[tuple[NoisyTable, Float64]] = []
    scores = standard_scores(released.levels, released.ordered, margins)
    products = measured_products(released, margins, scores)
    for table in (*released.blocks, *released.extra):
        projected = on_simplex(table.counts.astype(np.float64), table.deviation**2, margins.total)
        if len(table.features) <= _LARGEST_FITTED:
            shape = [margins.sizes[feature] for feature in table.features]
            wanted = _known_margins(table, known, margins)
            alone = projected.reshape(shape)
            fitted = fitted_to(alone, wanted)
            # Pairs that other tables know better may leave nothing of it.
            fitted = fitted if says_something(fitted) else alone
            projected = tilted(fitted, table.features, products, scores, wanted).ravel()
        known.append((table, projected))
    ones: list[Target] = [
        ((feature,), margins.counts(feature)) for feature in range(len(margins.sizes))
    ]
    tables = [(table.features, counts) for table, counts in known]
    return [*tables, *_told_by_residuals(released, margins), *ones]


def _told_by_residuals(released: Released, margins: Margins) -> Iterator[Target]:
    """Yield what residuals tell together with one-way counts (R27); triples need pairs too."""
    pairs = PairEstimates.of(released.residuals, margins.sizes).tables(margins, shrink=False)
    yield from ((pair, table.ravel()) for pair, table in pairs.items())
    for table in released.residuals:
        if len(table.features) > PAIR:
            yield table.features, _by_parts(table, pairs, margins)


def _by_parts(table: NoisyTable, pairs: Mapping[Features, Float64], margins: Margins) -> Float64:
    """Add a residual to what pairs tell of its table, and project."""
    features = table.features
    levels = [margins.sizes[feature] for feature in features]
    wanted: dict[tuple[int, ...], Float64] = {}
    for places in combinations(range(len(features)), PAIR):
        first, second = (features[place] for place in places)
        alone = np.outer(margins.counts(first), margins.shares[second])
        wanted[places] = pairs.get((first, second), alone)
    told = _without_residual(wanted, levels, margins.total)
    noisy = told.ravel() + projected(table, levels)
    cells = on_simplex(noisy, cell_noise(table.deviation, levels) ** 2, margins.total)
    for start in (cells.reshape(levels), np.ones(levels)):
        fitted = fitted_to(start, wanted)
        if says_something(fitted):
            return fitted.ravel()
    # Loud noise may leave no cell that all pairs allow; such a residual says nothing.
    return np.full(len(cells), margins.total / len(cells))


def _without_residual(
    pairs: Mapping[tuple[int, ...], Float64], levels: Sequence[int], total: float
) -> Float64:
    """Return the table with these pair tables that has no residual: a sum of their parts."""
    told = np.full(levels, total / np.prod(levels))
    places = range(len(levels))
    for place in places:
        pair = next(each for each in pairs if place in each)
        line = pairs[pair].sum(axis=1 - pair.index(place))
        others = tuple(other for other in places if other != place)
        told += np.expand_dims(line - line.mean(), others) * (levels[place] / np.prod(levels))
    for pair, table in pairs.items():
        shape = [levels[place] for place in pair]
        others = tuple(other for other in places if other not in pair)
        part = centred(table.ravel(), shape).reshape(shape)
        told += np.expand_dims(part, others) * (np.prod(shape) / np.prod(levels))
    return told


_LARGEST_FITTED = 3


def _known_margins(
    table: NoisyTable, known: Sequence[tuple[NoisyTable, Float64]], margins: Margins
) -> dict[Axes, Float64]:
    """Return the one-way counts of a table, and pairs that another table knows better."""
    places = range(len(table.features))
    wanted: dict[Axes, Float64] = {
        (place,): margins.counts(table.features[place]) for place in places
    }
    for pair in combinations(places, 2) if len(places) > 2 else ():
        features = (table.features[pair[0]], table.features[pair[1]])
        better = _better_known(features, table, known, margins.sizes)
        if better is not None:
            wanted[pair] = better
    return wanted


def _better_known(
    pair: Features,
    table: NoisyTable,
    known: Sequence[tuple[NoisyTable, Float64]],
    sizes: Sequence[int],
) -> Float64 | None:
    """Return a pair as the least noisy table before this one has it; None if none is better."""
    best, found = _noise(table, pair, sizes), None
    for other, counts in known:
        if set(pair) <= set(other.features) and _noise(other, pair, sizes) < best:
            best = _noise(other, pair, sizes)
            cells = counts.reshape([sizes[feature] for feature in other.features])
            axes = [other.features.index(feature) for feature in pair]
            gone = tuple(axis for axis in range(cells.ndim) if axis not in axes)
            found = cells.sum(axis=gone)
            if axes[0] > axes[1]:
                found = found.T
    return found


def _noise(table: NoisyTable, features: Features, sizes: Sequence[int]) -> float:
    """Return the variance of the noise on a cell of these features, summed from a table."""
    return table.deviation**2 * (len(table.counts) / cell_count(features, sizes))
