"""The counts that fitting needs of a confidential table, and the engine that makes them.

`StreamedTable` reads the table in this process. `pegsynth.spark` lets the workers of a
cluster do it; both run the same counters and give the same counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pegsynth.codec.codec import one_matrix
from pegsynth.codec.pair_counts import PairCounter, PairCounts
from pegsynth.methods.checkpoint import Checkpoint, count_into
from pegsynth.methods.gibbs.blocks import BlockCounter, Blocks
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.options._kinds import LARGEST_WHOLE
from pegsynth.progress import Progress

if TYPE_CHECKING:
    from pegsynth.codec.bin_shape import Shape
    from pegsynth.codec.code_table import CodeTable
    from pegsynth.kernels.arrays import Codes, Int64
    from pegsynth.methods.released import CountedTable, SumDesign

PAIRS, BLOCKS = "pair counts", "blocks"


class ConfidentialTable(Protocol):
    """One confidential table, every unit's rows bounded (R12), in the forms that methods ask for.

    A cluster counts; it does not hand out rows.
    """

    def pairs(self, category_counts: tuple[int, ...], *, order_rows: int | None) -> PairCounts:
        """Count every pair of features, in about `order_rows` rows if that is stated."""
        ...

    def blocks(self, spec: HashSpec, *, drawn_heads: bool) -> Blocks:
        """Count every target given its key; say whether the heads were drawn in secret."""
        ...

    def rows(self) -> Codes:
        """Return the codes of all rows in one matrix."""
        ...

    def counted(self) -> Codes | CountedTable:
        """Return what tables of any features can be counted from."""
        ...

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """How values lie inside bins, where that was measured and paid for."""
        ...

    def sums(self, design: SumDesign) -> Int64:
        """Add up what every row adds to the sums of a declared analysis."""
        ...


def one_row_in(rows: int | None, order_rows: int | None) -> int:
    """Return n so that one row in n of so many gives about the rows wanted."""
    return max(1, (rows or 0) // (order_rows or LARGEST_WHOLE))


@dataclass(frozen=True)
class StreamedTable:
    """A table that is read in this process."""

    table: CodeTable
    threads: int
    progress: Progress
    checkpoint: Checkpoint | None = None
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def pairs(self, category_counts: tuple[int, ...], *, order_rows: int | None) -> PairCounts:
        """Count pairs in one pass."""
        every = one_row_in(self.table.reader.expected_rows, order_rows)
        # Which rows a sample takes depends on where batches begin, so it is not resumed.
        saved = self.checkpoint if every == 1 else None
        with PairCounter(category_counts, threads=self.threads, every=every) as counter:
            count_into(counter, self.table, PAIRS, checkpoint=saved, progress=self.progress)
            return counter.counts()

    def blocks(self, spec: HashSpec, *, drawn_heads: bool) -> Blocks:
        """Count blocks in one pass."""
        # Another attempt draws other heads, so the counts of drawn ones are not saved.
        saved = None if drawn_heads else self.checkpoint
        with BlockCounter(spec, threads=self.threads) as counter:
            count_into(
                counter,
                self.table,
                BLOCKS,
                key=repr(
                    (spec.heads, spec.levels, spec.head_levels) if spec.levels else spec.heads
                ),
                checkpoint=saved,
                progress=self.progress,
            )
            return counter.blocks()

    def rows(self) -> Codes:
        """Read all rows."""
        return one_matrix(self._watched("rows read"))

    def counted(self) -> Codes:
        """Read all rows; tables are counted from them."""
        return self.rows()

    def sums(self, design: SumDesign) -> Int64:
        """Read the table once more, on the fine bins of the design."""
        from pegsynth.methods.released import SumCounter

        counter = SumCounter(design)
        table, total = self.table.under(design.schema), self.table.reader.expected_rows
        for batch in table.batches():
            counter.add(batch)
            self.progress("sums", table.place.rows, total)
        return counter.sums()

    def _watched(self, stage: str) -> Iterator[Codes]:
        total = self.table.reader.expected_rows
        self.progress(stage, 0, total)
        for batch in self.table.batches():
            yield batch
            self.progress(stage, self.table.place.rows, total)
