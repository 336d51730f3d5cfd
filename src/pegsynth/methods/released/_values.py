"""What goes into a release of blocks, and what comes out of it, as values.

In goes a confidential table as counts and nothing else (`CountedTable`), and what the schema says
of its features (`Domain`). Out come noisy tables and public structure (`Released`): what was paid
for and may be published. A feature that belongs to another is a `Detail`.

`CountedRows` counts a table in memory. `TableCounter` counts one that comes in batches, wherever
they are; `pegsynth.spark` adds up such counters over a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol, Self

import numpy as np

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.methods.released._estimates import fitted_to, given_lines
from pegsynth.methods.released._row_pool import Features, Pool, UInt16, cell_count, cell_keys
from pegsynth.schema.rules import Rule

MOST_TABLE_CELLS = 40_000
"""No table of several features has more cells."""


Allowed = np.ndarray[tuple[int, int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Detail:
    """A feature that belongs to another.

    Parameters
    ----------
    feature, parent
        Places of both.
    allowed
        For every category of the parent, and every category or level of the feature, whether
        they go together; public.
    """

    feature: int
    parent: int
    allowed: Allowed

    def on_levels(self, levels: Int64, above: Int64 | None = None) -> Detail:
        """Return the same on merged levels, of the parent as well where they are given.

        Levels of a public detail do not cross a category of its parent.
        """
        merged = np.zeros((len(self.allowed), int(levels.max()) + 1), dtype=bool)
        for category, level in enumerate(levels.tolist()):
            merged[:, level] |= self.allowed[:, category]
        if above is None:
            return Detail(self.feature, self.parent, merged)
        lines = np.zeros((int(above.max()) + 1, merged.shape[1]), dtype=bool)
        np.logical_or.at(lines, above, merged)
        return Detail(self.feature, self.parent, lines)

    def turned(self) -> Detail:
        """Return what goes together, seen from the feature."""
        return Detail(self.parent, self.feature, self.allowed.T)

    def joint(self, parent: Float64, own: Float64) -> Float64:
        """Return shares of both together that agree with the parent's, and nearly with its own."""
        table = np.where(self.allowed, np.outer(parent, own), 0.0)
        return fitted_to(table, {(1,): own, (0,): parent})

    def given(self, parent: Float64, own: Float64) -> Float64:
        """Return the distribution of the feature for every category of its parent."""
        even = self.allowed / self.allowed.sum(axis=1, keepdims=True)
        return given_lines(self.joint(parent, own), even)

    def place(self, pool: Pool, parent: Float64, own: Float64) -> None:
        """Draw the feature of every row of a pool given its parent.

        Where a rule leaves nothing that belongs to the parent the row dies; so it does where a
        rounded sum would have carried it past the last category that belongs.
        """
        pool.draw(self.feature, (self.parent,), self.given(parent, own))
        columns = pool.columns
        pool.alive &= self.allowed[columns[self.parent], columns[self.feature]]


@dataclass(frozen=True)
class NoisyTable:
    """A table of merged levels with noise on every cell.

    Parameters
    ----------
    features
        Its features, the last varying fastest; the last of a block is the one it draws.
    counts
        Noisy counts of all cells; whole numbers but in a replicate (R28).
    deviation
        Standard deviation of the noise.
    """

    features: tuple[int, ...]
    counts: Int64 | Float64
    deviation: float


@dataclass(frozen=True)
class MeasuredSums:
    """Noisy sums of a declared analysis (R26).

    Parameters
    ----------
    bounds
        Where the numbers among its blocks were clipped, low and high of each in turn; not a
        number where a block has none.
    sums
        The sums; whole numbers but in a replicate (R28).
    deviation
        Standard deviation of the noise.
    scored_at
        Coefficients that a regression was scored at, and where its residuals were clipped;
        empty where the sums are no score.
    """

    bounds: Float64
    sums: Int64 | Float64
    deviation: float
    scored_at: Int64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Released:
    """A published model.

    Parameters
    ----------
    total
        Noisy number of rows, with the deviation of its noise.
    one_ways
        Noisy one-way counts of every feature, on all of its categories.
    public
        For every feature whether its one-way counts are public shares of the noisy total
        instead, which cost nothing.
    ordered
        For every feature whether neighbouring categories are alike; from the schema.
    loud
        Whether the noise is loud, compared with the noisy number of rows.
    levels
        For every feature the level that each category belongs to.
    order
        Features in the order in which they are drawn.
    blocks
        A block for every feature but those drawn without heads.
    extra
        Tables of the second round, in the order in which they were measured.
    details
        Features that are drawn given their parent, parents first, on merged levels: from the
        schema, and then those that another one tells.
    maps
        Noisy tables of a feature and one that it tells, on all categories (R33).
    sums
        Noisy sums of every analysis that the schema declares, in its order.
    residuals
        Noisy residuals (R27): of all pairs, or of none of them, and after these of what the second
        round chose.
    by_pairs
        Whether the residuals of all pairs were measured. There are no extra tables then, and no
        blocks but of quiet tables.
    """

    total: tuple[int, float]
    one_ways: tuple[NoisyTable, ...]
    public: tuple[bool, ...]
    ordered: tuple[bool, ...]
    loud: bool
    levels: tuple[Int64, ...]
    order: tuple[int, ...]
    blocks: tuple[NoisyTable, ...]
    extra: tuple[NoisyTable, ...]
    details: tuple[Detail, ...] = ()
    maps: tuple[NoisyTable, ...] = ()
    sums: tuple[MeasuredSums, ...] = ()
    residuals: tuple[NoisyTable, ...] = ()
    by_pairs: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of every feature."""
        return tuple(int(line.max()) + 1 for line in self.levels)


def common_total(total: tuple[int, float], measured: Iterable[NoisyTable]) -> float:
    """Estimate the number of rows from every noisy sum there is."""
    count, deviation = total
    sums, weights = float(count) / deviation**2, 1.0 / deviation**2
    for table in measured:
        precision = 1.0 / (len(table.counts) * table.deviation**2)
        sums += float(table.counts.sum()) * precision
        weights += precision
    return max(sums / weights, 1.0)


def anchored(
    one_ways: tuple[NoisyTable, ...], public: tuple[bool, ...], total: float
) -> tuple[NoisyTable, ...]:
    """Scale counts that are public shares to the estimated total, so that they stay shares.

    They were written as shares of the noisy number of rows. A projection on another total
    would move all categories by the same number of rows, and rare ones by a large part.
    """
    return tuple(
        replace(table, counts=table.counts * (total / table.counts.sum())) if known else table
        for table, known in zip(one_ways, public, strict=True)
    )


@dataclass(frozen=True)
class Domain:
    """The features of a table, and what the schema says of them.

    Parameters
    ----------
    sizes
        Categories of every feature.
    ordered
        For every feature whether neighbouring categories are alike.
    names
        Names of the features, for the ledger.
    rules
        What no row may be.
    details
        Features that are drawn given their parent, parents first, on their categories.
    above
        For every feature a public hierarchy, if it has one, along which its categories merge.
    public
        For every feature its public shares, or None: what is public is not measured.
    apart
        Features, beside those of rules and details, whose categories must stay apart.
    first
        The feature to be placed first; None: the one with the fewest levels.
    rows_per_unit
        The most rows of a unit.
    """

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    names: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    details: tuple[Detail, ...] = ()
    above: tuple[Sequence[Int64], ...] = ()
    public: tuple[Float64 | None, ...] = ()
    apart: frozenset[int] = frozenset()
    first: int | None = None
    rows_per_unit: int = 1

    @property
    def known(self) -> tuple[Float64 | None, ...]:
        """For every feature its public shares, or None."""
        return self.public or (None,) * len(self.sizes)

    @property
    def whole(self) -> tuple[bool, ...]:
        """For every feature whether its categories must stay apart."""
        spoken_of = {place for rule in self.rules for place, _ in rule.forbidden} | self.apart
        spoken_of |= {detail.parent for detail in self.details}
        return tuple(place in spoken_of for place in range(len(self.sizes)))

    @property
    def closed(self) -> set[int]:
        """The features that no found dependence may be about: others speak of them."""
        details = {each.feature for each in self.details}
        return details | {place for place, kept in enumerate(self.whole) if kept}


class MergedTable(Protocol):
    """Counts on merged levels. Tables are flat, their last feature varying fastest."""

    def ask(self, tables: Sequence[Features]) -> None:
        """Say which tables will be wanted next, so that they can be counted together."""
        ...

    def count(self, table: Features) -> Int64:
        """Count the rows by the cells of a table."""
        ...

    def extended(self, heads: Features, features: Sequence[int]) -> Iterator[Int64]:
        """Yield the table of some heads extended by one feature after the other."""
        ...


class CountedTable(Protocol):
    """A confidential table."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    def one_way(self, feature: int) -> Int64:
        """Count the rows by the categories of a feature."""
        ...

    def merged(self, levels: Sequence[Int64]) -> MergedTable:
        """Return the same table on merged levels: one level for every category."""
        ...


@dataclass(frozen=True)
class MergedRows:
    """A table in memory, one line of levels for every feature."""

    columns: UInt16
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, codes: Codes, levels: Sequence[Int64]) -> MergedRows:
        """Merge the categories of code rows."""
        lines = [line.astype(np.uint16)[codes[:, i]] for i, line in enumerate(levels)]
        return cls(np.stack(lines), level_counts(levels))

    def ask(self, tables: Sequence[Features]) -> None:
        """Do nothing: every table is counted when it is wanted."""

    def count(self, table: Features) -> Int64:
        """Count a table."""
        keys = cell_keys(self.columns, table, self.sizes)
        return kernels.count_cells(keys, cell_count(table, self.sizes))

    def extended(self, heads: Features, features: Sequence[int]) -> Iterator[Int64]:
        """Count tables that share their heads."""
        keys, cells = cell_keys(self.columns, heads, self.sizes), cell_count(heads, self.sizes)
        for feature in features:
            size = self.sizes[feature]
            yield kernels.count_extended(keys, self.columns[feature], size, cells * size)


@dataclass(frozen=True)
class CountedRows:
    """A table of codes in memory."""

    codes: Codes
    category_counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def one_way(self, feature: int) -> Int64:
        """Count a feature."""
        counts = np.bincount(self.codes[:, feature], minlength=self.category_counts[feature])
        return counts.astype(np.int64)

    def merged(self, levels: Sequence[Int64]) -> MergedRows:
        """Merge categories."""
        return MergedRows.of(self.codes, levels)


def level_counts(levels: Sequence[Int64]) -> tuple[int, ...]:
    """Return how many levels every feature has."""
    return tuple(int(line.max()) + 1 for line in levels)


class TableCounter:
    """Counts of some tables on merged levels, batch by batch.

    What was counted apart can be added: `arrays` gives it as plain arrays, `absorb` takes
    them in.
    """

    def __init__(self, levels: Sequence[Int64], tables: Sequence[Features]) -> None:
        self._levels = levels
        self._tables = tables
        sizes = level_counts(levels)
        self._ends = np.cumsum([cell_count(table, sizes) for table in tables])
        self._cells = np.zeros(int(self._ends[-1]) if len(tables) else 0, dtype=np.int64)

    def add(self, batch: Codes) -> None:
        """Count one batch of code rows."""
        rows = MergedRows.of(batch, self._levels)
        lines = iter(self.counts())
        # Neighbours that share their heads share the keys of these.
        for heads, group in groupby(self._tables, key=lambda table: table[:-1]):
            features = [table[-1] for table in group]
            for counts in rows.extended(heads, features):
                line = next(lines)
                line += counts

    def counts(self) -> list[Int64]:
        """Return the counts of every table so far."""
        return np.split(self._cells, self._ends[:-1])

    def arrays(self) -> dict[str, Int64]:
        """Return the counts so far; they change with the next batch."""
        return {"tables": self._cells}

    def absorb(self, arrays: Mapping[str, Int64]) -> None:
        """Add counts of other rows."""
        self._cells += arrays["tables"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
