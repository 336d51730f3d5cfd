"""Drawing from a model while keeping track of what was spent.

A `Session` holds a model, its recipe and what was drawn so far: rows, blocks, and the
visit counters of a capped model. Every draw is charged before its rows are handed out,
and a draw beyond the budget is refused with what is left. A session cannot be copied: a
second copy of its counters would be a second release.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import BudgetError, ModelError, ParameterError
from pegsynth.option_kinds import check_whole
from pegsynth.options import PEGS_METHODS
from pegsynth.privacy import Ledger
from pegsynth.random import RandomStream
from pegsynth.sampling import sample_rows
from pegsynth.sampling.capped import chain_limits, new_counters, sample_capped
from pegsynth.sampling.chains import run_chunk
from pegsynth.sampling.polya import new_urns, sample_polya
from pegsynth.sampling.seeds import InOrder
from pegsynth.synthesizers.model import Codes, Model, Prepared, prepare, seeded_ledger
from pegsynth.synthesizers.recipe import Recipe, shape_of
from pegsynth.synthesizers.released_blocks import ONCE
from pegsynth.synthesizers.table_draws import draw_tables, replace_features

SHUFFLED_BYTES = 1 << 30


@dataclass(frozen=True)
class Spent:
    """What was drawn from a model so far.

    Parameters
    ----------
    rows, blocks
        Synthetic rows, and blocks of PeGS.rs or sets of urns, drawn so far over all
        datasets.
    seeded
        Whether any of them came from a seed: then all of them together promise nothing.
    counters
        Visit counters of every chain of a capped model; empty before the first draw.
    """

    rows: int = 0
    blocks: int = 0
    seeded: bool = False
    counters: tuple[NDArray[np.uint32], ...] = field(default=(), repr=False)


class Session:
    """Draws from one model under one recipe.

    Parameters
    ----------
    spent
        What was drawn before, if this is not the first session on the model.
    """

    def __init__(
        self,
        model: Model,
        recipe: Recipe,
        stream: RandomStream,
        *,
        spent: Spent | None = None,
        threads: int = 1,
    ) -> None:
        self.model = model
        self.recipe = recipe
        self._stream = stream
        self._threads = threads
        self._lock = threading.Lock()
        self._prepared: Prepared = prepare(model, recipe, seeded=self._seeded)
        self._spent = spent or Spent()
        self._process = os.getpid()
        self._urns = (
            new_urns(self._prepared.machine, recipe.draw.visits or 1) if recipe.draw.urn else None
        )
        if self._counted and spent is None:
            fresh = new_counters(self._prepared.machine, recipe.draw.chains or 1)
            self._spent = replace(self._spent, counters=tuple(fresh))
        self._check_counters()

    @property
    def spent(self) -> Spent:
        """What was drawn so far, this session's draws included."""
        return self._spent

    @property
    def _seeded(self) -> bool:
        """Whether a seed fixed draws that look at the data; those from released blocks do not."""
        from_file = self.model.released is not None and self.model.ready is None
        return self._stream.seeded and not from_file

    @property
    def stream(self) -> RandomStream:
        """The random stream that draws and decodes."""
        return self._stream

    @property
    def prepared(self) -> Prepared:
        """The sampler itself, for the trace of a row; drawing with it charges nothing."""
        return self._prepared

    @property
    def ledger(self) -> Ledger:
        """What all draws from this model together promise, those still allowed included."""
        recipe, ledger = self.recipe, self._prepared.ledger
        if self._spent.seeded:
            ledger = seeded_ledger(ledger)
        total = recipe.budget.epsilon is not None and not recipe.draw.synthesize
        if total or recipe.draws is None:
            return ledger
        if recipe.draw.method == "pegs-capped" or not self._spent.rows:
            return ledger
        # Without a total there is no limit: the price follows the rows drawn so far.
        shape = replace(shape_of(self.model.schema, recipe.draw), rows=self._rows_charged())
        charged = replace(shape, datasets=1).event(recipe.numerator, recipe.scale)
        priced = recipe.events
        position = ledger.events.index(priced[0])
        events = (
            *ledger.events[:position],
            *recipe.events_with(charged),
            *ledger.events[position + len(priced) :],
        )
        return replace(ledger, events=events)

    def left(self) -> int | None:
        """Return how many rows may still be drawn; None when there is no limit."""
        draw = self.recipe.draw
        # Urns are priced by their cap, so they are limited whatever the budget's kind (R17).
        limited = self.recipe.budget.epsilon is not None or (
            draw.method == "marginal" and self.recipe.draws is not None
        )
        if not limited or draw.method in ("pegs-capped", ONCE) or not draw.rows:
            return None
        if lot := self._lot:
            return max(draw.datasets * -(-draw.rows // lot) - self._spent.blocks, 0) * lot
        return max(draw.rows * draw.datasets - self._spent.rows, 0)

    @property
    def _lot(self) -> int:
        """Rows that are paid for together: a block (R4), a set of urns (R17), or 0."""
        draw = self.recipe.draw
        if draw.method == "pegs-rs":
            return draw.block_size
        return draw.rows or 0 if draw.method == "marginal" else 0

    def charge(self, rows: int, datasets: int = 1) -> None:
        """Book rows before they are drawn, refusing what the budget does not cover."""
        check_whole("rows", rows)
        check_whole("datasets", datasets)
        if os.getpid() != self._process:
            # After a fork parent and child would each spend the whole budget.
            raise BudgetError(
                "a model cannot be sampled in a forked process: its budget would count twice; "
                "draw in the process that fitted it"
            )
        with self._lock:
            lot = self._lot
            lots = datasets * -(-rows // lot) if lot else 0
            left = self.left()
            wanted = lots * lot if lot else rows * datasets
            if left is not None and wanted > left:
                whole = f" in lots of {lot}" if lot else ""
                raise BudgetError(
                    f"the budget of this model covers {left} more rows{whole} and {wanted} were "
                    "asked for; draw fewer, or fit a new model with a budget of its own"
                )
            spent = self._spent
            self._spent = replace(
                spent,
                rows=spent.rows + rows * datasets,
                blocks=spent.blocks + lots,
                seeded=spent.seeded or self._seeded,
            )

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Keep other draws away from the counters while a cluster draws."""
        with self._lock:
            yield

    def draw(self, rows: int, datasets: int = 1) -> list[Iterator[Codes]]:
        """Charge and return K datasets of n rows as streams of code chunks.

        Partially synthetic datasets have the original rows: 0 stands for their number, and
        any other number is refused.
        """
        if self.recipe.draw.synthesize:
            if rows not in (0, self.rows_of_a_table(None)):
                raise ParameterError(
                    "--synthesize keeps the original rows, so every table has as many rows as "
                    "the original; ask for that many"
                )
            return self._replaced(datasets)
        self.charge(rows, datasets)
        dtype = self.model.schema.code_dtype
        if self.recipe.draw.method == "pegs-capped":
            return self._draw_capped(rows, datasets, dtype)
        if self.recipe.draw.method not in PEGS_METHODS:
            pool = self._prepared.pool
            tables = draw_tables(
                self.model,
                self.recipe,
                pool,
                rows,
                datasets,
                self._stream,
                threads=self._threads,
            )
            return [_narrow(chunks, dtype) for chunks in tables]
        ready = self._prepared
        return [
            _narrow(
                sample_rows(
                    ready.machine,
                    ready.pool,
                    ready.schedule,
                    rows,
                    self._stream,
                    threads=self._threads,
                ),
                dtype,
            )
            for _ in range(datasets)
        ]

    def _replaced(self, datasets: int) -> list[Iterator[Codes]]:
        """Draw the chosen features of the original rows anew, in their order."""
        ready, dtype = self._prepared, self.model.schema.code_dtype
        originals = self.model.originals
        if originals is None:
            raise ModelError("this model holds no original rows; use pegs synthesize")
        self.charge(len(originals), datasets)
        if self.recipe.draw.method != "pegs":
            tables = replace_features(self.model, self.recipe, datasets, self._stream)
            return [_narrow(chunks, dtype) for chunks in tables]
        words = [self._stream.substream() for _ in range(datasets)]
        start = originals.astype(np.uint32)
        return [
            iter(
                [
                    run_chunk(
                        ready.machine, InOrder(start), ready.schedule, len(start), each.take
                    ).astype(dtype)
                ]
            )
            for each in words
        ]

    def rows_of_a_table(self, asked: int | None) -> int:
        """Return the rows of a dataset: as asked for, or those of the original table."""
        if asked is not None:
            return asked
        return 0 if self.model.originals is None else len(self.model.originals)

    def _draw_capped(self, rows: int, datasets: int, dtype: np.dtype[Any]) -> list[Iterator[Codes]]:
        """Draw all rows, then deal them to the datasets by a public permutation (R13)."""
        chunks = _narrow(self._chains(rows * datasets), dtype)
        size = rows * datasets * len(self.model.schema.features) * dtype.itemsize
        if datasets == 1 and size > SHUFFLED_BYTES:
            return [_holding(self._lock, chunks)]
        with self._lock:
            everything = np.concatenate(list(chunks))
        order = np.argsort(self._stream.substream().take(len(everything)), kind="stable")
        return [iter([everything[part]]) for part in np.split(order, datasets)]

    def _chains(self, rows: int) -> Iterator[NDArray[np.uint32]]:
        """Yield rows of the running chains, or of the one chain over the urns (R5, R17)."""
        ready, draw = self._prepared, self.recipe.draw
        if self._urns is not None:
            return sample_polya(
                ready.machine, ready.pool, rows, self._urns, self._stream, sweeps=draw.sweeps
            )
        return sample_capped(
            ready.machine,
            ready.pool,
            rows,
            list(self._spent.counters),
            draw.visits or 1,
            self._stream,
            sweeps=draw.sweeps,
            threads=self._threads,
        )

    @property
    def _counted(self) -> bool:
        """Whether visits are counted chain by chain."""
        return self.recipe.draw.method == "pegs-capped" and not self.recipe.draw.urn

    def first_chain(self) -> tuple[NDArray[np.uint32] | None, int]:
        """Return the counters of the first chain and the visits it owns, for a trace."""
        draw = self.recipe.draw
        if draw.method == "pegs-rs":
            # The row is a block of its own: its second sweep may not ask an entry again (R4).
            return new_counters(self._prepared.machine, 1)[0], 1
        if not self._counted:
            return None, 0
        limits = chain_limits(draw.visits or 1, draw.chains or 1)
        return self._spent.counters[0], limits[0]

    def _rows_charged(self) -> int:
        if self.recipe.draw.method == "pegs-rs":
            return self._spent.blocks * self.recipe.draw.block_size
        return self._spent.rows

    def _check_counters(self) -> None:
        counters, entries = self._spent.counters, self._prepared.machine.entry_count
        wanted = self.recipe.draw.chains if self._counted else 0
        if len(counters) != (wanted or 0) or any(len(line) != entries for line in counters):
            raise ModelError(
                "the visit counters do not belong to this model; restore the file that was "
                "written beside it"
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session cannot be copied or pickled: its budget would count twice")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()


def _holding(lock: threading.Lock, chunks: Iterator[Codes]) -> Iterator[Codes]:
    """Keep other draws away from the counters until the last chunk is out."""
    with lock:
        yield from chunks


def _narrow(chunks: Iterator[NDArray[np.uint32]], dtype: np.dtype[Any]) -> Iterator[Codes]:
    for chunk in chunks:
        yield chunk.astype(dtype)
