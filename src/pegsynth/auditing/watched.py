"""A privacy filter for audits: it is told the output of every step and records the input.

`Explorer` answers the steps of one path after the other; `Replay` answers as another path
was answered, for a neighbour that is led along it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.privacy import PooledRows, Selection
from pegsynth.privacy.noise_events import Noisy

Output = tuple[int, ...]

OFFSETS = ((2,), (-1,), (3, -2, 0))
"""Noise on the cells of a table, over and over: above every neighbour, below, and mixed."""


@dataclass(frozen=True)
class Step:
    """One crossing of the boundary: its event, what went in, and what came out."""

    event: Noisy | Selection | PooledRows
    inputs: Output
    output: Output

    @property
    def done(self) -> Noisy | Selection:
        """What was done, whatever the rows of a unit in the table that it was done to."""
        return self.event.step if isinstance(self.event, PooledRows) else self.event


class AstrayError(Exception):
    """The neighbour asks for another step than the table did."""


class WatchedFilter(PrivacyFilter):
    """The shipped privacy filter, whose noise and choices are given instead of drawn."""

    def __init__(self, *arguments: Any, answer: Callable[..., Output], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.steps: list[Step] = []
        self._answer = answer

    def _noisy(self, counts: Int64, event: Any) -> Int64:
        return np.array(self._taken(event, tuple(counts.tolist())), dtype=np.int64)

    def _chosen(self, scores: Sequence[int], event: Selection) -> int:
        return self._taken(event, tuple(int(score) for score in scores))[0]

    def _taken(self, event: Noisy | Selection, inputs: Output) -> Output:
        output = self._answer(event, inputs)
        self.steps.append(Step(event, inputs, output))
        return output


@dataclass
class Explorer:
    """Answers the steps of one path after the other, until all choices of heads were made.

    Noise, and choices of the second round, follow from `turn`, which sets a pattern.
    """

    turn: int
    _script: list[int] = field(default_factory=list)
    _options: list[int] = field(default_factory=list)
    _made: int = 0
    _step: int = 0

    def answer(self, event: Noisy | Selection, inputs: Output) -> Output:
        """Return what a step of the current path puts out."""
        self._step += 1
        if not isinstance(event, Selection):
            offsets = OFFSETS[self.turn % len(OFFSETS)]
            return tuple(n + offsets[cell % len(offsets)] for cell, n in enumerate(inputs))
        if event.purpose != "heads":
            return ((self.turn + self._step) % len(inputs),)
        if self._made == len(self._script):
            self._script.append(0)
        if self._made == len(self._options):
            self._options.append(len(inputs))
        self._made += 1
        return (self._script[self._made - 1],)

    def following(self) -> bool:
        """Go to the next path; say whether there is one."""
        del self._script[self._made :], self._options[self._made :]
        while self._script and self._script[-1] + 1 == self._options[-1]:
            self._script.pop()
            self._options.pop()
        self._made = self._step = 0
        if not self._script:
            return False
        self._script[-1] += 1
        return True


@dataclass
class Replay:
    """Answers as another path was answered, and notices when the steps are not the same."""

    steps: Sequence[Step]
    _next: int = 0

    def answer(self, event: Noisy | Selection, inputs: Output) -> Output:
        """Return what the other path put out here."""
        if self._next == len(self.steps) or self.steps[self._next].done != event:
            raise AstrayError
        step = self.steps[self._next]
        if isinstance(event, Selection) and len(inputs) != len(step.inputs):
            raise AstrayError
        self._next += 1
        return step.output
