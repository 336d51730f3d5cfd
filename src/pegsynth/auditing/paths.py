"""Exact audit along paths: noise, choices, and how later steps follow earlier ones.

The shipped code runs on a tiny table with a privacy filter that is told the output of every step
and records its input. Its neighbour then runs along the same path,
with the same output of every step. The probabilities of each step are exact, from the
tables that the shipped noise and choices decide by, and their log-ratios add up along the
path. Three things must hold on every path (R6, R10, R11):

- the neighbour asks for the same step at the same price: amounts follow from paid output;
- no step is further apart than its own event says;
- the worst path stays within what the ledger of *any* path claims, because a reader of one
  ledger does not know the others. So what was left unspent must count.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pegsynth.auditing.divergence import ROUNDING, Finding, Loss, Table, divergence, exactly
from pegsynth.auditing.exact_laws import choice_law, noise_law, shifted
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.noise import noise_of
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.privacy import Ledger, PooledRows, Selection
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.noise_events import Noisy

Output = tuple[int, ...]
Answer = Callable[["Noisy | Selection", Output], Output]

OFFSETS = ((2,), (-1,), (3, -2, 0))
"""Noise on the cells of a table, over and over: above every neighbour, below, and mixed."""

ORDERS = (1.5, 2.0, 4.0, 8.0)


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

    def __init__(self, *arguments: Any, answer: Answer, **options: Any) -> None:
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


class Watch:
    """Makes the watched filters of one run, and knows the steps of all of them."""

    def __init__(self, kind: type[WatchedFilter], answer: Answer) -> None:
        self._kind, self._answer = kind, answer
        self._made: list[WatchedFilter] = []

    def filter_of(self, *arguments: Any, **options: Any) -> WatchedFilter:
        """Make the next filter of the run."""
        self._made.append(self._kind(*arguments, answer=self._answer, **options))
        return self._made[-1]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps so far."""
        return tuple(step for each in self._made for step in each.steps)


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


@dataclass(frozen=True)
class Path:
    """All steps of one release, what was published, and what its ledger says."""

    steps: tuple[Step, ...]
    published: tuple[Any, ...]
    ledger: Ledger


def cell_share(noise: Noise, count: int, noisy: int) -> Fraction:
    """Return the probability that a count becomes this noisy count."""
    return noise_law(noise).get(abs(noisy - count), Fraction(0))


@dataclass(frozen=True, kw_only=True)
class PathCase(ABC):
    """A tiny release that can be led along a path.

    Parameters
    ----------
    stated, delta
        What was asked for; without a delta the claim is pure.
    pairs
        Tables, each with the rows of the unit that its neighbour has more.
    rows_per_unit
        The most rows of a unit.
    turns
        Patterns of noise that are tried.
    cell_law
        The probability of a noisy count for a true one.
    budget_filter
        The privacy filter that is audited.
    """

    name: str
    stated: float
    delta: float | None
    pairs: tuple[tuple[Table, Table], ...]
    rows_per_unit: int = 1
    turns: int = len(OFFSETS)
    cell_law: Callable[[Noise, int, int], Fraction] = cell_share
    budget_filter: type[WatchedFilter] = WatchedFilter

    @abstractmethod
    def run(self, table: Table, answer: Answer) -> Path:
        """Release a table along a path."""

    def paths(self, table: Table, turn: int) -> Iterator[Path]:
        """Yield the paths of a table under one pattern of noise."""
        explorer = Explorer(turn)
        yield self.run(table, explorer.answer)
        while explorer.following():
            yield self.run(table, explorer.answer)

    def finding(self, part: str) -> Finding:
        """Return what the audit of the case found."""
        worst, delta = audit_paths(self), self.delta
        holds = worst.holds(self.stated)
        if delta is None:
            return exactly(part, self.name, Loss(worst.epsilon, math.inf), worst.loss, holds=holds)
        rho = worst.loss.rho
        realised = Loss(math.inf if math.isinf(rho) else epsilon_at(rho, delta=delta), rho)
        return exactly(part, self.name, Loss(worst.epsilon, worst.rho), realised, holds=holds)


@dataclass(frozen=True)
class Worst:
    """The worst over all paths of a case, and the smallest claim of any of them.

    Parameters
    ----------
    loss
        Largest log-ratio of a path, and largest sum of the divergences of its steps.
    excess
        By how much a step is further apart than its event says, at most; 0 if none is.
    epsilon, rho, largest
        Smallest epsilon and rho, and largest epsilon, that a ledger claims.
    """

    loss: Loss = field(default_factory=Loss)
    excess: float = 0.0
    epsilon: float = math.inf
    rho: float = math.inf
    largest: float = 0.0

    def holds(self, stated: float) -> bool:
        """Say whether all that must hold does."""
        kept = self.loss.within(self.epsilon, self.rho)
        return kept and self.excess <= 0 and self.largest <= stated


def audit_paths(case: PathCase) -> Worst:
    """Compare every table of a case with its neighbour, path by path."""
    worst = Worst()
    for number, (table, more) in enumerate(case.pairs):
        for turn in range(case.turns):
            for path in case.paths(table, turn + number):
                worst = _with(worst, case, path, compared(case, path, table + more))
    return worst


def compared(case: PathCase, path: Path, neighbour: Table) -> tuple[Loss, float]:
    """Return how far apart a path is from the same one of a neighbour; and by which excess."""
    try:
        other = case.run(neighbour, Replay(path.steps).answer)
    except AstrayError:
        return Loss(math.inf, math.inf), math.inf
    if len(other.steps) != len(path.steps) or other.published != path.published:
        return Loss(math.inf, math.inf), math.inf
    unit, pure = case.rows_per_unit, case.delta is None
    ratio, rho, excess = 0.0, 0.0, 0.0
    for ours, theirs in zip(path.steps, other.steps, strict=True):
        loss = _pure_loss(case, ours, theirs) if pure else _divergence(ours, theirs)
        price = ours.event.price("pure" if pure else "zcdp", rows_per_unit=unit)
        allowed = math.inf if price is None else float(price)
        excess = max(excess, abs(loss) - allowed * (1 + ROUNDING))
        ratio, rho = (ratio + loss, rho) if pure else (ratio, rho + loss)
    return Loss(abs(ratio), rho), max(excess, 0.0)


def _with(worst: Worst, case: PathCase, path: Path, found: tuple[Loss, float]) -> Worst:
    loss, excess = found
    guarantee = path.ledger.guarantee
    epsilon = math.inf if guarantee.epsilon is None else guarantee.epsilon
    rho = guarantee.rho if guarantee.rho is not None and case.delta else math.inf
    return Worst(
        worst.loss.worse(loss),
        max(worst.excess, excess),
        min(worst.epsilon, epsilon),
        min(worst.rho, rho),
        max(worst.largest, epsilon),
    )


def _choice_laws(event: Selection, *steps: Step) -> list[tuple[Fraction, ...]]:
    """Return the laws of a choice for the scores of each step."""
    epsilon = Fraction(event.epsilon_numerator, event.epsilon_denominator)
    return [choice_law(step.inputs, epsilon) for step in steps]


def _pure_loss(case: PathCase, ours: Step, theirs: Step) -> float:
    """Return the log-ratio of a step's output under the table and its neighbour."""
    if isinstance(ours.done, Selection):
        (chosen,) = ours.output
        first, second = _choice_laws(ours.done, ours, theirs)
        return _log_ratio(first[chosen], second[chosen])
    noise = noise_of(ours.done)
    return math.fsum(
        _log_ratio(case.cell_law(noise, a, y), case.cell_law(noise, b, y))
        for a, b, y in zip(ours.inputs, theirs.inputs, ours.output, strict=True)
        if a != b
    )


def _log_ratio(first: Fraction, second: Fraction) -> float:
    return math.log(first / second) if first and second else math.inf


def _divergence(ours: Step, theirs: Step) -> float:
    """Return the worst Renyi divergence of a step over its order, whatever its output."""
    if isinstance(ours.done, Selection):
        first, second = _choice_laws(ours.done, ours, theirs)
        return divergence(dict(enumerate(first)), dict(enumerate(second))).rho
    noise = noise_of(ours.done)
    # Cells are independent, so that at every order their divergences add up.
    shifts = tuple(sorted(abs(a - b) for a, b in zip(ours.inputs, theirs.inputs, strict=True)))
    return max(math.fsum(shifted(noise, s, order) for s in shifts if s) for order in ORDERS)
