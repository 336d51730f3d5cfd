"""Drawing from a model while keeping track of what was spent.

A `Session` holds a model, its plan and what was drawn so far: rows, blocks, and the visit
counters of a capped model. Every draw is charged before its rows are handed out, and a draw
beyond the budget is refused with what is left. A session cannot be copied: a second copy of
its counters would be a second release.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from pegsynth.errors import BudgetError, ModelError, ParameterError
from pegsynth.methods.base import Model, Plan, Sampler
from pegsynth.methods.ledgers import release_ledger, seeded_ledger
from pegsynth.methods.registry import get
from pegsynth.options._kinds import check_whole, flag_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegsynth.methods.base import Codes, Rows
    from pegsynth.methods.released import Released, Replicates
    from pegsynth.privacy import Ledger
    from pegsynth.random import RandomStream


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
    """Draws from one model under one plan.

    Parameters
    ----------
    spent
        What was drawn before, if this is not the first session on the model.
    """

    def __init__(
        self,
        model: Model,
        plan: Plan,
        stream: RandomStream,
        *,
        spent: Spent | None = None,
        threads: int = 1,
    ) -> None:
        self.model, self.plan = model, plan
        self._method = get(plan.method)
        self._stream, self._threads = stream, threads
        self._sampler = self._method.sampler(model, plan, threads=threads)
        self._seeded = stream.seeded and self._method.looks_at_data(model.content)
        self._ledger = release_ledger(
            model, plan, assumptions=self._sampler.assumptions, seeded=self._seeded
        )
        self._process = os.getpid()
        self._before: Callable[[], None] | None = None
        self._spent = Spent(counters=self._sampler.counters)
        if spent is not None:
            self._take_up(spent)

    def _take_up(self, spent: Spent) -> None:
        """Go on where an earlier session stopped."""
        fresh = self._sampler.counters
        if [len(line) for line in spent.counters] != [len(line) for line in fresh]:
            raise ModelError(
                "the visit counters do not belong to this model; restore the file that was "
                "written beside it"
            )
        self._sampler.counters = spent.counters
        self._spent = spent

    @property
    def spent(self) -> Spent:
        """What was drawn so far, this session's draws included."""
        return self._spent

    @property
    def stream(self) -> RandomStream:
        """The random stream that draws and decodes."""
        return self._stream

    @property
    def sampler(self) -> Sampler:
        """The sampler itself, for a trace or a cluster; drawing with it charges nothing."""
        return self._sampler

    @property
    def ledger(self) -> Ledger:
        """What all draws from this model together promise, those still allowed included."""
        plan, ledger = self.plan, self._ledger
        if self._spent.seeded:
            ledger = seeded_ledger(ledger)
        charged = self._method.charged(self.model.schema, plan, self._rows_charged())
        if charged == plan.events:
            return ledger
        position = ledger.events.index(plan.events[0])
        events = (
            *ledger.events[:position],
            *charged,
            *ledger.events[position + len(plan.events) :],
        )
        return replace(ledger, events=events)

    def left(self) -> int | None:
        """Return how many rows may still be drawn; None when there is no limit."""
        rows, datasets = int(self.plan.options.rows or 0), int(self.plan.options.datasets)
        if not self._method.limited(self.plan):
            return None
        if lot := self._method.lot(self.plan):
            return max(datasets * -(-rows // lot) - self._spent.blocks, 0) * lot
        return max(rows * datasets - self._spent.rows, 0)

    def before_drawing(self, call: Callable[[], None]) -> None:
        """Call a function before rows are drawn, once it is known that the budget covers them."""
        self._before = call

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
        with self._sampler.lock:
            lot = self._method.lot(self.plan)
            lots = datasets * -(-rows // lot) if lot else 0
            left = self.left()
            wanted = lots * lot if lot else rows * datasets
            if left is not None and wanted > left:
                whole = f" in lots of {lot}" if lot else ""
                raise BudgetError(
                    f"the budget of this model covers {left} more rows{whole} and {wanted} were "
                    "asked for; draw fewer, or fit a new model with a budget of its own"
                )
            if self._before is not None:
                self._before()
            spent = self._spent
            self._spent = replace(
                spent,
                rows=spent.rows + rows * datasets,
                blocks=spent.blocks + lots,
                seeded=spent.seeded or self._seeded,
            )

    def changed(self, **options: Any) -> Session:
        """Return a session on the same model that draws in another way.

        Only where rows cost nothing more: elsewhere the price depends on how they are drawn.
        """
        if not self._method.released:
            named = " and ".join(map(flag_of, options))
            verb = "is" if len(options) == 1 else "are"
            raise ParameterError(
                f"{named} {verb} settled when a model of {self.plan.method} is fitted; state that "
                "there"
            )
        plan = replace(self.plan, options=replace(self.plan.options, **options))
        return Session(self.model, plan, self._stream, threads=self._threads)

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Keep other draws away from the counters while a cluster draws."""
        with self._sampler.lock:
            yield

    def draw(self, rows: int, datasets: int = 1) -> list[Rows]:
        """Charge and return K datasets of n rows as streams of code chunks.

        Partially synthetic datasets have the original rows: 0 stands for their number, and
        any other number is refused.
        """
        own = self._sampler.own_rows
        if own is not None and rows not in (0, own):
            raise ParameterError(
                "--synthesize keeps the original rows, so every table has as many rows as the "
                "original; ask for that many"
            )
        rows = rows if own is None else own
        self.charge(rows, datasets)
        return self._sampler.tables(rows, datasets, self._stream)

    def replicates(self, codes: Codes, rows: int, count: int, stream: RandomStream) -> Replicates:
        """Return what makes replicate weights of rows, of which `codes` are the first (R28)."""
        return self._sampler.replicates(codes, rows, count, stream)

    def draw_declared(self, rows: int, datasets: int, times: int) -> list[tuple[Released, Rows]]:
        """Charge K datasets of n rows; return several times as many rows of each to choose from.

        Each comes with the published counts, or the replicate of them, that it was drawn from.
        """
        if self._sampler.calibration is None:
            raise ParameterError(f"{self.plan.method} has no declared analyses")
        self.charge(rows, datasets)
        return self._sampler.versions(rows * times, datasets, self._stream)

    def rows_of_a_table(self, asked: int | None) -> int:
        """Return the rows of a dataset: those of the original table, or as asked for."""
        own = self._sampler.own_rows
        return (asked or 0) if own is None else own

    def _rows_charged(self) -> int:
        lot = self._method.lot(self.plan)
        return self._spent.blocks * lot if lot else self._spent.rows

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session cannot be copied or pickled: its budget would count twice")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()
