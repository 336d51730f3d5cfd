"""One synthetic row, step by step: the paper's table of sampling steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.methods.gibbs.chains import Machine, Schedule, Visits, run_chunk
from pegsynth.methods.gibbs.seeds import FilePool, SeedPool, Splitter
from pegsynth.random import RandomStream


@dataclass(frozen=True)
class TraceStep:
    """The row after one feature was drawn."""

    feature: int
    row: tuple[int, ...]


def trace_row(
    machine: Machine,
    seeds: SeedPool,
    sweeps: int,
    stream: RandomStream,
    *,
    counters: NDArray[np.uint32] | None = None,
    limit: int = 0,
) -> tuple[tuple[int, ...], list[TraceStep]]:
    """Draw one row and return its seed row and the row after every draw.

    A sweep draws every target once, so the rows in between follow from the rows before
    and after it. A capped model's visits are counted in `counters`, in place.
    """
    visits = None if counters is None else Visits.running(counters)
    machine, words = machine.drawn(stream, 1), stream.substream()
    before = seeds.draw(1, words.take)
    seed = tuple(int(code) for code in before[0])
    steps: list[TraceStep] = []
    for _ in range(sweeps):
        after = run_chunk(machine, FilePool(before), Schedule(limit=limit), 1, words.take, visits)
        steps += _between(before[0], after[0], machine.targets)
        before = after
    return seed, steps


def in_categories(
    splitter: Splitter, seed: tuple[int, ...], steps: list[TraceStep], stream: RandomStream
) -> tuple[tuple[int, ...], list[TraceStep]]:
    """Return a trace of levels as one of categories, a level being the same one throughout."""
    rows = np.array([seed, *(step.row for step in steps)], dtype=np.uint32)
    split = [tuple(row) for row in splitter.alike(rows, stream.substream().take).tolist()]
    return split[0], [
        TraceStep(step.feature, row) for step, row in zip(steps, split[1:], strict=True)
    ]


def _between(
    before: NDArray[np.uint32], after: NDArray[np.uint32], targets: NDArray[np.int64]
) -> list[TraceStep]:
    row = before.copy()
    steps = []
    for target in targets:
        row[target] = after[target]
        steps.append(TraceStep(int(target), tuple(int(code) for code in row)))
    return steps
