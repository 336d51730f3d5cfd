"""Tables with noise of their own, each drawn from a replicate of a published model (R28).

They come from the published model alone and cost nothing. Replicate weights of the rows of one
table are made by `row_replicates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.methods.released.draw import draw_rows, pool_rows, rebuild, released_total
from pegsynth.methods.released.perturbed import AddedUp, Laws, perturbed
from pegsynth.methods.released.published import Released
from pegsynth.methods.released.row_pool import Pool
from pegsynth.methods.released.steps import Steps
from pegsynth.options import MOST_REPLICATES
from pegsynth.privacy import Event
from pegsynth.random import RandomStream
from pegsynth.schema.rules import Rule

Codes = NDArray[np.uint32]

LEAST_REPLICATES = 2
MODEL_ROWS = 200_000
"""Rows of the pool that stands for the population when rows are drawn anew."""


@dataclass(frozen=True)
class Source:
    """A published model, and how its rows are drawn.

    Parameters
    ----------
    released
        The published counts.
    events
        The events of the model's ledger, which record the noise.
    steps
        The steps that rows are usually drawn by.
    rules
        The schema's rules.
    given
        Features and the code that each has in every row.
    design_effect
        How many times the sampling variance is that of independent rows.
    added
        Says what the rows of a pool add to the sums of declared analyses (R26).
    """

    released: Released
    events: Sequence[Event]
    steps: Steps = field(default_factory=Steps)
    rules: Sequence[Rule] = ()
    given: Mapping[int, int] = field(default_factory=dict)
    design_effect: float = 1.0
    added: Callable[[Pool, RandomStream], AddedUp] | None = None

    def replicates(self, count: int, stream: RandomStream, *, threads: int = 1) -> list[Released]:
        """Return the published counts with fresh sampling and noise, `count` times."""
        if not LEAST_REPLICATES <= count <= MOST_REPLICATES:
            raise ParameterError(
                f"replicates must be {LEAST_REPLICATES} to {MOST_REPLICATES}; 20 serve well"
            )
        laws = Laws.of(self.released, self.events)
        total = max(round(released_total(self.released)), 1)
        steps = self.usual_steps()
        size = min(pool_rows(self.released, total), MODEL_ROWS)
        pool = Pool(self.released.sizes, size, stream, rules=self.rules, threads=threads)
        fit = rebuild(self.released, pool, steps)
        return perturbed(
            self.released,
            laws,
            fit,
            stream,
            count=count,
            design_effect=self.design_effect,
            added=self.added(pool, stream.aside("added")) if self.added else None,
            threads=threads,
        )

    def usual_steps(self) -> Steps:
        """Return the steps that rows are drawn by, given how loud the noise is."""
        return self.steps.under_noise() if self.released.loud else self.steps


def own_noise_tables(
    source: Source, rows: int, stream: RandomStream, *, count: int, threads: int = 1
) -> Iterator[Iterator[Codes]]:
    """Yield tables in lots, each table from counts with noise of its own."""
    for _, lots in own_noise_versions(source, rows, stream, count=count, threads=threads):
        yield lots


def own_noise_versions(
    source: Source, rows: int, stream: RandomStream, *, count: int, threads: int = 1
) -> Iterator[tuple[Released, Iterator[Codes]]]:
    """Yield counts with noise of their own, and the table that is drawn from them, in lots."""
    for released in source.replicates(count, stream, threads=threads):
        lots = draw_rows(
            released,
            rows,
            stream.child(),
            steps=source.steps.plain(),
            rules=source.rules,
            given=source.given,
            threads=threads,
        )
        yield released, lots
