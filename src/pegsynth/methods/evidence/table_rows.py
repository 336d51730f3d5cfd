"""Rows that meet published tables: taken from weighted candidate rows, exchanged, and settled.

Exact tables come first: after the exchange single values of rows are changed until no cell of
theirs is off, as far as single changes lead there, and as little as possible elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.evidence.table_fit import TableFit
from pegsynth.methods.released._row_pool import Features, Pool, UInt16
from pegsynth.schema.rules import Rule

_PASSES, _EXACT_PASSES = 4, 4
_TIMES = 16
"""How many times an exact table counts where rows are to meet it."""
_SORTED_BY = 4
_CHANGES = 1_000
_LOOKED_AT = 400
_TRIED = 8


def rows_of_fit(fit: TableFit, rows: int, rules: Sequence[Rule] = ()) -> UInt16:
    """Return rows of codes, a line for each feature."""
    pool, aims = fit.pool, fit.aims()
    exact = [(each.keys, each.table.low) for each in fit.met if each.table.exact]
    exact = [each for each in exact if len(each[1]) > 1]
    order = np.lexsort([pool.columns[each] for each in pool.placed[:_SORTED_BY][::-1]])
    reached = np.cumsum(pool.weights[order])
    chosen: Int64 = order[_spaced(reached, rows, pool.uniforms(1)[0])]
    chosen = _exchanged(pool, aims, chosen, _PASSES)
    if exact:
        chosen = _exchanged(pool, [*aims, *exact * _TIMES], chosen, _EXACT_PASSES)
    columns = np.ascontiguousarray(pool.columns[:, chosen])
    if exact:
        _Settling.of(fit, columns, rules).run()
    return columns[:, pool.permutation(rows)]


def _exchanged(
    pool: Pool, aims: Sequence[tuple[UInt16, Float64]], chosen: Int64, passes: int
) -> Int64:
    """Return places after rows were replaced by others where all tables then fit better."""
    rows = len(chosen)
    starts = np.cumsum([0, *(len(target) for _, target in aims)])
    excess = np.concatenate([-target * (rows / target.sum()) for _, target in aims])
    lines = np.ascontiguousarray(np.stack([keys for keys, _ in aims], axis=1))
    kernels.count_lines(chosen, lines, starts, excess)
    reached = np.cumsum(pool.weights)
    chosen = chosen.copy()
    for _ in range(passes):
        proposed = _spaced(reached, rows, pool.uniforms(1)[0])
        if not kernels.exchange(chosen, lines, starts, excess, proposed, pool.permutation(rows)):
            break
    return chosen


def _spaced(reached: Float64, count: int, offset: float) -> Int64:
    """Return places at equal steps along cumulated weights; none has weight 0."""
    points = (np.arange(count) + offset) * (reached[-1] / count)
    places: Int64 = np.minimum(
        np.searchsorted(reached, points, side="right"), np.searchsorted(reached, reached[-1])
    )
    return places


@dataclass
class _Part:
    """A published table while values of rows are changed: what its cells have too much."""

    features: Features
    strides: dict[int, int]
    exact: bool
    keys: Int64
    low: Float64
    high: Float64
    counts: Float64

    def off(self, cells: Int64, more: int) -> Float64:
        """Return the squared distance from the bounds if these cells had so many rows more."""
        counts = self.counts[cells] + more
        outside = np.maximum(np.maximum(self.low[cells] - counts, counts - self.high[cells]), 0)
        return np.square(outside) * (_TIMES if self.exact else 1)


@dataclass
class _Settling:
    """Changes single values of rows until exact tables are met."""

    pool: Pool
    columns: UInt16
    parts: list[_Part]
    rules: Sequence[Rule]

    @classmethod
    def of(cls, fit: TableFit, columns: UInt16, rules: Sequence[Rule]) -> _Settling:
        rows, parts = columns.shape[1], []
        for each in fit.met:
            table, sizes = each.table, fit.pool.sizes
            strides, cells = {}, 1
            for feature in reversed(table.features):
                strides[feature] = cells
                cells *= sizes[feature]
            keys = np.zeros(rows, dtype=np.int64)
            for feature, stride in strides.items():
                keys += columns[feature].astype(np.int64) * stride
            times = rows / fit.total
            reach = 3 * np.sqrt(table.variance)
            parts.append(
                _Part(
                    table.features,
                    strides,
                    table.exact and cells > 1,
                    keys,
                    # As many rows as the tables are about meet them; others come within half a row.
                    np.floor((table.low - reach) * times + 1e-6),
                    np.ceil((table.high + reach) * times - 1e-6),
                    np.bincount(keys, minlength=cells).astype(np.float64),
                )
            )
        return cls(fit.pool, columns, parts, rules)

    def run(self) -> None:
        """Change the best value of some row in the worst cell, until none helps."""
        stuck: set[tuple[int, int]] = set()
        for _ in range(_CHANGES):
            worst = self._worst(stuck)
            if worst is None or not self._change(*worst):
                if worst is None:
                    break
                stuck.add(worst)

    def _worst(self, stuck: set[tuple[int, int]]) -> tuple[int, int] | None:
        """Return an exact table, and its cell that has too many rows most."""
        found, most = None, 0.5
        for place, part in enumerate(self.parts):
            if not part.exact:
                continue
            for cell in np.argsort(part.high - part.counts)[:_TRIED]:
                over = float(part.counts[cell] - part.high[cell])
                if over > most and (place, int(cell)) not in stuck:
                    found, most = (place, int(cell)), over
                    break
        return found

    def _change(self, place: int, cell: int) -> bool:
        """Change one row of a cell where all tables together fit better after it."""
        part = self.parts[place]
        rows = np.flatnonzero(part.keys == cell)
        if len(rows) > _LOOKED_AT:
            rows = rows[(self.pool.uniforms(_LOOKED_AT) * len(rows)).astype(np.int64)]
        moves = []
        for codes in self._targets(part):
            gains = self._gains(rows, codes)
            best = int(np.argmin(gains))
            moves.append((float(gains[best]), int(rows[best]), codes))
        for gain, row, codes in sorted(moves, key=lambda move: move[0]):
            if gain < 0 and self._allowed(row, codes):
                self._apply(row, codes)
                return True
        return False

    def _targets(self, part: _Part) -> list[dict[int, int]]:
        """Return what rows may be changed to: another code of a feature, or a short cell."""
        sizes = self.pool.sizes
        found = [{one: code} for one in part.features for code in range(sizes[one])]
        short = [int(each) for each in np.argsort(part.counts - part.low)[:_TRIED]]
        for cell in short if len(part.features) > 1 else ():
            codes = {one: cell // part.strides[one] % sizes[one] for one in part.features}
            found.append(codes)
        return found

    def _gains(self, rows: Int64, codes: dict[int, int]) -> Float64:
        """Return by how much all tables are worse if rows had other codes."""
        gains = np.zeros(len(rows))
        for part in self.parts:
            changed = [one for one in codes if one in part.strides]
            if not changed:
                continue
            before = part.keys[rows]
            after = before.copy()
            for one in changed:
                after += (codes[one] - self.columns[one, rows].astype(np.int64)) * part.strides[one]
            moved = part.off(before, -1) - part.off(before, 0)
            moved += part.off(after, 1) - part.off(after, 0)
            gains += np.where(after == before, 0.0, moved)
        return gains

    def _allowed(self, row: int, codes: dict[int, int]) -> bool:
        changed = self.columns[:, [row]].copy()
        for feature, code in codes.items():
            changed[feature] = code
        return not any(rule.broken_by(changed.T).any() for rule in self.rules)

    def _apply(self, row: int, codes: dict[int, int]) -> None:
        for part in self.parts:
            step = sum(
                (code - int(self.columns[one, row])) * part.strides.get(one, 0)
                for one, code in codes.items()
            )
            part.counts[part.keys[row]] -= 1
            part.keys[row] += step
            part.counts[part.keys[row]] += 1
        for one, code in codes.items():
            self.columns[one, row] = code
