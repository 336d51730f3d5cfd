"""Invented tables of many shapes, the same on every machine: what real tables are like, in brief.

Every recipe has a seed of its own and makes the rows to learn from and others to test on. None
was adjusted to a method. They imitate tables that cannot be shipped: panels of yes and no,
a census, questionnaires of a hundred columns, prescriptions that hardly anybody has, codes that
belong to codes. `checks.bench.family` says which are for tuning and which are kept for confirming.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Columns = list[NDArray[np.int64]]
Make = Callable[[np.random.Generator, int], tuple[Columns, list[int]]]

TEST_SHARE = 0.25
MOST_TEST_ROWS = 50_000


@dataclass(frozen=True)
class Recipe:
    """How a table is made.

    Parameters
    ----------
    rows
        Rows to learn from.
    seed
        Fixes the law and the rows.
    columns
        Makes the columns, the target last, and the levels of each.
    """

    rows: int
    seed: int
    columns: Make

    def made(self) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
        """Return rows to learn from, rows to test on, and the levels of every column."""
        generator = np.random.default_rng(self.seed)
        test = min(max(int(TEST_SHARE * self.rows), 2_000), MOST_TEST_ROWS)
        columns, levels = self.columns(generator, self.rows + test)
        codes = np.stack(columns, axis=1)
        return codes[: self.rows], codes[self.rows :], levels


def _drawn(
    generator: np.random.Generator, law: NDArray[np.float64], keys: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw a column: each row from the line of `law` that its key names."""
    reached = np.cumsum(law, axis=1)
    points = generator.random(len(keys)) * reached[keys, -1]
    column = np.zeros(len(keys), dtype=np.int64)
    for level in range(law.shape[1] - 1):
        column += points >= reached[keys, level]
    return column


def panel(columns: int, *, levels: int = 2, classes: int = 6) -> Make:
    """Return answers of yes and no (or a few levels) that a hidden, graded class explains."""

    def make(generator: np.random.Generator, rows: int) -> tuple[Columns, list[int]]:
        shares = generator.dirichlet(np.full(classes, 1.5))
        hidden = generator.choice(classes, rows, p=shares)
        made = []
        for _ in range(columns):
            grade = np.sort(generator.normal(-1.2, 2.0, classes)) + generator.normal(0, 0.6)
            steps = np.arange(1, levels)
            odds = np.exp(np.concatenate([np.zeros((classes, 1)), np.outer(grade, steps)], axis=1))
            made.append(_drawn(generator, odds / odds.sum(axis=1, keepdims=True), hidden))
        return made, [levels] * columns

    return make


def network(
    levels: list[int],
    *,
    parents: int = 2,
    classes: int = 5,
    shared: float = 0.8,
    skew: float = 1.0,
    strength: float = 1.0,
) -> Make:
    """Return columns that depend on up to so many columns before them, and many on a hidden class.

    Parameters
    ----------
    classes, shared
        Hidden classes, and the chance that a column depends on them.
    skew
        How fast the shares of levels fall.
    strength
        Standard deviation of what a level of a parent adds to the logarithms of shares; its
        interactions with other parents have a third of that.
    """

    def make(generator: np.random.Generator, rows: int) -> tuple[Columns, list[int]]:
        hidden = generator.choice(classes, rows, p=generator.dirichlet(np.full(classes, 2.0)))
        order = [*generator.permutation(len(levels) - 1).tolist(), len(levels) - 1]
        place: dict[int, NDArray[np.int64]] = {}
        for position, feature in enumerate(order):
            size = levels[feature]
            few = [other for other in order[:position] if levels[other] <= 12]
            count = min(int(generator.integers(0, parents + 1)), len(few))
            chosen = generator.choice(few, count, replace=False).tolist() if count else []
            above = [(place[other], levels[other]) for other in chosen]
            if generator.random() < shared:
                above.append((hidden, classes))
            odds = -skew * np.log1p(generator.permutation(size))[None, :]
            keys = np.zeros(rows, dtype=np.int64)
            for column, lines in above:
                added = strength * generator.normal(size=(lines, size))
                odds = (odds[:, None, :] + added).reshape(-1, size)
                keys = keys * lines + column
            if len(above) > 1:
                odds = odds + strength / 3 * generator.normal(size=odds.shape)
            place[feature] = _drawn(generator, np.exp(odds), keys)
        return [place[feature] for feature in range(len(levels))], levels

    return make


def prescriptions(answers: list[int], drugs: int) -> Make:
    """Return a questionnaire, and columns that nearly everybody leaves at their first level."""

    def make(generator: np.random.Generator, rows: int) -> tuple[Columns, list[int]]:
        made, levels = network(answers)(generator, rows)
        hidden = made[-1]
        for _ in range(drugs):
            rare = 10 ** generator.uniform(-4.3, -0.8)
            odds = rare * np.exp(generator.normal(0, 1.0, answers[-1]))
            law = np.stack([1 - odds, odds * 0.7, odds * 0.2, odds * 0.1], axis=1)
            made.insert(0, _drawn(generator, law, hidden))
            levels = [4, *levels]
        return made, levels

    return make


def coded(others: list[int], *, wide: int, groups: int, twins: int) -> Make:
    """Return a network with codes: one of `wide` levels, its groups, and renamed copies of columns.

    A copy has another name for every level of the column that it copies, so that the pair
    is one to one; a group is what many codes have in common.
    """

    def make(generator: np.random.Generator, rows: int) -> tuple[Columns, list[int]]:
        made, _ = network([wide, twins, *others])(generator, rows)
        code, place = made[0], made[1]
        group = np.sort(generator.integers(0, groups, wide))[code]
        blank = generator.random(rows) < 0.3
        # Who has no occupation has no code, and no group of one.
        code, group = np.where(blank, wide, code), np.where(blank, groups, group)
        copy = generator.permutation(twins)[place]
        return [code, group, place, copy, *made[2:]], [wide + 1, groups + 1, twins, twins, *others]

    return make


_CENSUS = [9, 2, 17, 3, 7, 24, 15, 5, 10, 3, 6, 8, 51, 6, 8, 10, 3, 5, 4, 2]
_SURVEY = [2, 5, 5, 3, 8, 2, 4, 6, 10, 2, 7, 3, 12, 2, 4, 9, 5, 2]
_STAY = [10, 3, 6, 20, 18, 14, 2, 5, 9, 3, 8, 11, 2, 4, 6, 3, 12, 5, 7, 2]
_DRUGS = [5, 3, 10, 8, 3, 20, 17, 14, 2, 9, 18, 6, 30, 9, 9, 4, 4, 2, 5, 3]

INVENTED: dict[str, Recipe] = {
    "panel": Recipe(17_000, 11, panel(16)),
    "census": Recipe(200_000, 12, network(_CENSUS, strength=1.5)),
    "census-few": Recipe(5_000, 12, network(_CENSUS, strength=1.5)),
    "hundred": Recipe(50_000, 13, network([2, 3, 4, 5, 6, 8, 10, 3, 4, 2] * 10)),
    "drugs": Recipe(81_000, 14, prescriptions(_DRUGS, 26)),
    "stays-few": Recipe(800, 15, network(_STAY, strength=1.5)),
    "codes": Recipe(22_000, 16, coded([*_SURVEY[:18], 6, 2], wide=40, groups=9, twins=20)),
    "panel-2": Recipe(9_000, 21, panel(12, levels=3, classes=4)),
    "survey-2": Recipe(60_000, 22, network(_SURVEY)),
    "survey-few-2": Recipe(2_500, 22, network(_SURVEY)),
    "sixty-2": Recipe(30_000, 23, network([3, 2, 6, 4, 2, 9] * 10, parents=3)),
    "drugs-2": Recipe(40_000, 24, prescriptions(_DRUGS[5:], 20)),
    "codes-2": Recipe(35_000, 26, coded(_SURVEY[:10], wide=60, groups=14, twins=8)),
}
