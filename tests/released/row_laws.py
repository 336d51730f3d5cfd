"""The exact distribution of one row that shipped code draws from released blocks.

Every uniform number that a draw asks for takes each of `GRID` equally spaced values in
turn, so that what comes out is counted and not estimated. The pool has one row, so that of
all numbers asked for at once only one matters. Shares that are multiples of 1/`GRID` are
met exactly.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from fractions import Fraction

import numpy as np

from pegsynth.errors import DataError, SchemaError
from pegsynth.kernels import pool_loops as kernels
from pegsynth.random import RandomStream
from pegsynth.released import Diverse, NoisyTable, Released, Steps, draw_rows
from pegsynth.released import draw as drawing
from pegsynth.released.row_pool import Pool

GRID = 12
PLAIN = Steps(
    larger_pool=False,
    second_round=False,
    exchange=0,
    pulled=0.0,
    fold=False,
    smooth=False,
    listen=False,
)
"""Lines are the shares of the counts, and the pool has as many rows as are asked for."""


def released_of_rows(rows, sizes, order, heads):
    """Return blocks of a table without noise: each feature in `heads` given those."""
    codes = np.array(rows)

    def table(features):
        shape = [sizes[feature] for feature in features]
        cells = np.ravel_multi_index(tuple(codes[:, f] for f in features), shape)
        return NoisyTable(features, np.bincount(cells, minlength=math.prod(shape)), 1e-3)

    features = range(len(sizes))
    return Released(
        (len(codes), 1e-3),
        tuple(table((feature,)) for feature in features),
        (False,) * len(sizes),
        (False,) * len(sizes),
        False,
        tuple(np.arange(size) for size in sizes),
        tuple(order),
        tuple(table((*heads[feature], feature)) for feature in order if heads.get(feature)),
        (),
    )


class _AskedError(Exception):
    """A uniform number is wanted that the script does not hold."""

    def __init__(self, state):
        self.state = state


class _Script:
    """Uniform numbers that are given, and where in the drawing one more is wanted."""

    def __init__(self, *, settled):
        self.settled, self.values, self.place, self.since = settled, (), 0, []

    def start(self, values):
        self.values, self.place, self.since = values, 0, []

    def uniforms(self, pool, count):
        if sys._getframe(2).f_code.co_name == "choose_rows":
            return np.full(count, 0.5)  # a single row is chosen whatever the number
        if self.place == len(self.values):
            # Settling follows before the column is placed, so that the pool does not tell.
            tail = [value for placed, value in self.since if placed == len(pool.placed)]
            known = (pool.columns.tobytes(), pool.alive.tobytes(), tuple(pool.placed))
            raise _AskedError((*known, tuple(tail) if self.settled else ()))
        value = self.values[self.place]
        self.place += 1
        self.since.append((len(pool.placed), value))
        return np.full(count, value)


def _unsettled(pool, feature, heads, shares):
    """Draw a column as `Pool.draw` does, and leave its margin as it comes out."""
    groups, keys = pool.cells(heads), pool.keys(heads)
    rows, starts = kernels.grouped(keys, pool.permutation(), groups)
    drawn = kernels.spread(rows, starts, shares, pool.uniforms(groups))
    pool._place(feature, drawn, keys, shares)


def law_of_a_row(monkeypatch, released, *, settled=False, **options):
    """Return every row that may be drawn with its probability, given that one is.

    Unless `settled`, columns without an l are not moved to meet their margins, which would
    leave a single row no choice.
    """
    if not settled:
        monkeypatch.setattr(Pool, "draw", _unsettled)
    script = _Script(settled=settled)
    monkeypatch.setattr(Pool, "uniforms", lambda *asked: script.uniforms(*asked))
    monkeypatch.setattr(Pool, "permutation", lambda pool, rows=None: np.arange(rows or pool.rows))
    monkeypatch.setattr(drawing, "_SMALLEST_GIVEN", 1)
    monkeypatch.setattr(drawing, "MOST_POOLS_FOR_GIVEN", 1)

    def run(values):
        script.start(values)
        try:
            (lot,) = draw_rows(released, 1, RandomStream(1), steps=PLAIN, **options)
        except (DataError, SchemaError):
            return None  # no row had the given values, or none obeyed the rules
        return tuple(lot[0].tolist())

    _remembered(monkeypatch, Diverse, "applied")
    _remembered(monkeypatch, drawing, "start_margins")
    grid = [(number + 0.5) / GRID for number in range(GRID)]
    law = defaultdict(Fraction)
    waiting = {None: ((), Fraction(1))}
    while waiting:
        following = {}
        for script_so_far, chance in waiting.values():
            try:
                row = run(script_so_far)
            except _AskedError as asked:
                values, before = following.get(asked.state, (script_so_far, Fraction(0)))
                following[asked.state] = (values, before + chance)
            else:
                law[row] += chance
        waiting = {
            (state, value): ((*values, value), chance / GRID)
            for state, (values, chance) in following.items()
            for value in grid
        }
    law.pop(None, None)
    whole = sum(law.values())
    return {row: chance / whole for row, chance in law.items()}


def _remembered(monkeypatch, owner, name):
    """Compute once what every run computes from the same numbers."""
    shipped, known = getattr(owner, name), {}

    def found(*given):
        key = tuple(each.tobytes() if isinstance(each, np.ndarray) else id(each) for each in given)
        if key not in known:
            known[key] = shipped(*given)
        return known[key]

    monkeypatch.setattr(owner, name, found)


def smallest_l(law, feature, known):
    """Return the l of a feature given the others that are known, where it is smallest."""
    groups = defaultdict(lambda: defaultdict(Fraction))
    for row, chance in law.items():
        groups[tuple(row[each] for each in known)][row[feature]] += chance
    found = []
    for line in groups.values():
        whole = sum(line.values())
        shares = [float(chance / whole) for chance in line.values()]
        found.append(math.exp(-sum(share * math.log(share) for share in shares)))
    return min(found)
