"""Exact audit of released blocks: noise, choices, and how later steps follow earlier ones.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from pegsynth.auditing.cases import RULES, tiny_schema
from pegsynth.auditing.divergence import ROUNDING, Loss, Table, all_rows, all_tables, divergence
from pegsynth.auditing.noise_laws import choice_law, noise_law, shifted
from pegsynth.auditing.watched import (
    OFFSETS,
    AstrayError,
    Explorer,
    Output,
    Replay,
    Step,
    WatchedFilter,
)
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.noise import noise_of
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods import get
from pegsynth.methods.released.measuring_sums import CodedValues, ValueTable
from pegsynth.methods.released.published import Released
from pegsynth.methods.released.released_blocks import ReleasedPlan, fit_released
from pegsynth.methods.released.steps import Steps
from pegsynth.privacy import Budget, Ledger, Selection
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.declared import Analysis, Family, WantedTable
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.recoding import Recoding

ORDERS = (1.5, 2.0, 4.0, 8.0)
RESIDUALS = Steps(pairs_below=math.inf, merge=False, rounds=3)
"""Steps that measure residuals whatever their noise (R27), few enough for a small scale of it."""
AUDITED = Steps(loud_margins=0.45, drowned_above=math.inf, residuals=False, rounds=10)
"""Tiny tables are loud: one-way counts would take so much that the noise of blocks is too wide.
Features of few levels would have all pairs measured, which `RESIDUALS` audits."""
BESIDE_BLOCKS = replace(AUDITED, merge=False)
"""Levels that are merged into one have no residual to be measured by the second round."""
SUM_STEPS = 1


@dataclass(frozen=True)
class Path:
    """All steps of one release, what was published, and what its ledger says."""

    steps: tuple[Step, ...]
    published: tuple[Any, ...]
    ledger: Ledger


def cell_share(noise: Noise, count: int, noisy: int) -> Fraction:
    """Return the probability that a count becomes this noisy count."""
    return noise_law(noise).get(abs(noisy - count), Fraction(0))


def all_of(released: Released) -> tuple[Any, ...]:
    """Return everything that a release of blocks publishes, to be compared."""
    return (
        released.total,
        (released.loud, released.by_pairs),
        released.order,
        tuple(tuple(line.tolist()) for line in released.levels),
        tuple(
            (each.features, tuple(each.counts.tolist()), each.deviation)
            for each in (
                *released.one_ways,
                *released.blocks,
                *released.extra,
                *released.maps,
                *released.residuals,
            )
        ),
        tuple(
            (str(each.bounds.tolist()), tuple(each.sums.tolist()), each.deviation)
            for each in released.sums
        ),
    )


class PathCase(Protocol):
    """A tiny release that can be led along a path."""

    @property
    def pairs(self) -> tuple[tuple[Table, Table], ...]:
        """Tables, each with the rows of the unit that its neighbour has more."""
        ...

    @property
    def turns(self) -> int:
        """Patterns of noise that are tried."""
        ...

    @property
    def cell_law(self) -> Callable[[Noise, int, int], Fraction]:
        """The probability of a noisy count for a true one."""
        ...

    @property
    def delta(self) -> float | None:
        """None where the claim is pure."""
        ...

    @property
    def rows_per_unit(self) -> int:
        """The most rows of a unit."""
        ...

    def run(self, table: Table, answer: Callable[..., Output]) -> Path:
        """Release a table along a path."""
        ...

    def paths(self, table: Table, turn: int) -> Iterator[Path]:
        """Yield the paths of a table under one pattern of noise."""
        ...


@dataclass(frozen=True)
class ReleasedCase:
    """One tiny release of blocks.

    Parameters
    ----------
    schema, plan
        The public part of the release.
    pairs
        Tables, each with the rows of the unit that its neighbour has more.
    turns
        Patterns of noise that are tried.
    budget_filter, cell_law
        The privacy filter that is audited, and the probability of a noisy count for a true one.
    steps
        Other steps than those of the plan: tiny tables are too loud for residuals otherwise.
    values
        What adds up the values of rows for declared analyses.
    """

    name: str
    schema: Schema
    plan: ReleasedPlan
    pairs: tuple[tuple[Table, Table], ...]
    turns: int = len(OFFSETS)
    budget_filter: type[WatchedFilter] = WatchedFilter
    values: Callable[..., ValueTable] = CodedValues
    cell_law: Callable[[Noise, int, int], Fraction] = cell_share
    steps: Steps | None = None

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.plan.method

    @property
    def stated(self) -> float:
        """The epsilon that was asked for."""
        return self.plan.budget.epsilon or 0.0

    @property
    def delta(self) -> float | None:
        """None where the claim is pure."""
        return self.plan.budget.delta

    @property
    def rows_per_unit(self) -> int:
        """The most rows of a unit."""
        return self.schema.rows_per_unit if self.schema.unit else 1

    def run(self, table: Table, answer: Callable[..., Output]) -> Path:
        """Release a table along a path; pools are the same for all tables."""
        watched: list[WatchedFilter] = []

        def filter_of(*arguments: Any, **options: Any) -> PrivacyFilter:
            watched.append(self.budget_filter(*arguments, answer=answer, **options))
            return watched[0]

        counts = self.schema.category_counts
        codes = np.array(table, dtype=np.uint8).reshape(-1, len(counts))
        fit, spent = fit_released(
            codes,
            self.schema,
            self.plan,
            RandomStream("audit"),
            values=self.values(codes, self.schema),
            sum_steps=SUM_STEPS,
            filter_of=filter_of,
            steps=self.steps,
        )
        # The ledger is published too, with all that its events say.
        published = (*all_of(fit.released), spent.events)
        ledger = Ledger(spent.events, delta=self.plan.budget.delta or 0.0)
        return Path(tuple(watched[0].steps), published, ledger)

    def paths(self, table: Table, turn: int) -> Iterator[Path]:
        """Yield the paths of a table under one pattern of noise."""
        explorer = Explorer(turn)
        yield self.run(table, explorer.answer)
        while explorer.following():
            yield self.run(table, explorer.answer)


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
        slack = 1 + ROUNDING
        loss_kept = self.loss.epsilon <= self.epsilon * slack and self.loss.rho <= self.rho * slack
        return loss_kept and self.excess <= 0 and self.largest <= stated


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


def _pure_loss(case: PathCase, ours: Step, theirs: Step) -> float:
    """Return the log-ratio of a step's output under the table and its neighbour."""
    if isinstance(ours.done, Selection):
        epsilon = Fraction(ours.done.epsilon_numerator, ours.done.epsilon_denominator)
        (chosen,) = ours.output
        laws = [choice_law(step.inputs, epsilon)[chosen] for step in (ours, theirs)]
        return _log_ratio(*laws)
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
        epsilon = Fraction(ours.done.epsilon_numerator, ours.done.epsilon_denominator)
        first, second = (choice_law(step.inputs, epsilon) for step in (ours, theirs))
        return divergence(dict(enumerate(first)), dict(enumerate(second))).rho
    noise = noise_of(ours.done)
    # Cells are independent, so that at every order their divergences add up.
    shifts = tuple(sorted(abs(a - b) for a, b in zip(ours.inputs, theirs.inputs, strict=True)))
    return max(math.fsum(shifted(noise, s, order) for s in shifts if s) for order in ORDERS)


def released_case(
    name: str,
    counts: tuple[int, ...] = (2, 2),
    *,
    epsilon: float = 12.0,
    delta: float | None = None,
    rules: tuple[Rule, ...] = (),
    unit: int | None = None,
    pairs: Sequence[tuple[Table, Table]] | None = None,
    turns: int = len(OFFSETS),
    schema: Schema | None = None,
    steps: Steps | None = None,
) -> ReleasedCase:
    """Settle a plan; by default every table of at most one row has every neighbour."""
    schema = schema or tiny_schema(counts, rules=rules, unit=unit)
    budget = Budget(epsilon=epsilon, delta=delta)
    method = get("pegs-once")
    plan = method.settle(schema, budget, method.options(rows=2))
    if pairs is None:
        units = [rows for rows in all_tables(counts, unit or 1) if rows]
        pairs = [(table, more) for table in all_tables(counts, 1) for more in units]
    return ReleasedCase(name, schema, plan, tuple(pairs), turns, steps=steps or AUDITED)


def _with_detail() -> Schema:
    """Return a schema whose second feature belongs to the first; real rows may break that."""
    by_prefix = Recoding(hierarchy=Hierarchy(prefixes=(1,)), level=0)
    detail = Feature("x1", categories=("a1", "a2", "b1"), parent="x0", recoding=by_prefix)
    return Schema((Feature("x0", categories=("a", "b")), detail), reviewed=True)


def with_analysis(unit: int | None = None, *, family: Family = "gaussian") -> Schema:
    """Return a schema of two small numbers that declares a regression and a table (R26)."""
    numbers = (
        Feature("x0", kind="ordinal", categories=("0", "1", "2")),
        Feature("x1", kind="ordinal", categories=("0", "1")),
    )
    declared: dict[str, Any] = {
        "analyses": (
            Analysis("I(x0 > 0) ~ x1" if family == "binomial" else "x0 ~ x1", family, 0.3),
        ),
        "tables_wanted": (WantedTable(("x0", "x1"), share=0.2),),
    }
    if unit is None:
        return Schema(numbers, reviewed=True, **declared)
    person = Feature(name="person", role="identifier")
    return Schema((person, *numbers), "person", unit, reviewed=True, **declared)


def released_cases(*, full: bool = False) -> list[ReleasedCase]:
    """Return a case for every way in which blocks are released."""
    triple = tuple(
        (table, (row,))
        for table in ((), ((0, 0, 0),), ((0, 0, 0), (0, 1, 1)))
        for row in (all_rows((2, 2, 2)) if full else ((0, 0, 0), (1, 0, 1)))
    )
    turns = len(OFFSETS) if full else 1
    pair = (((), ((0, 0),)), (((0, 1),), ((0, 0),)), (((0, 0),), ((1, 1),)))
    twice = (((), ((0, 0), (0, 0))), (((0, 1),), ((0, 0), (1, 1))))
    told = (((0, 0),) * 60 + ((1, 1),) * 60, ((0, 0),) * 90 + ((1, 0),) * 29 + ((1, 1),))
    telling = tuple((table, (row,)) for table in told for row in ((0, 0), (0, 1)))
    return [
        released_case("noise, choices, adaptive amounts", turns=turns),
        released_case("approximate", epsilon=6.0, delta=1e-9, turns=turns),
        released_case("three features", (2, 2, 2), pairs=triple, turns=turns),
        released_case(
            "three features, approximate",
            (2, 2, 2),
            epsilon=6.0,
            delta=1e-9,
            pairs=triple[-2:],
            turns=turns,
        ),
        released_case("rule that a real row breaks", rules=RULES, pairs=pair),
        released_case("detail given its parent", (2, 3), pairs=pair, schema=_with_detail()),
        released_case("a feature tells another", epsilon=60.0, pairs=telling, turns=turns),
        released_case(
            "a feature tells another, approximate", epsilon=30.0, delta=1e-9, pairs=telling, turns=1
        ),
        released_case("two rows per unit", unit=2, pairs=twice),
        released_case(
            "two rows per unit, approximate", epsilon=6.0, delta=1e-9, unit=2, pairs=twice
        ),
        released_case(
            "residuals beside blocks",
            (2, 3),
            epsilon=8.0,
            delta=1e-9,
            pairs=pair,
            turns=2,
            steps=BESIDE_BLOCKS,
        ),
        released_case("residuals", pairs=pair, steps=RESIDUALS),
        released_case(
            "residuals, approximate", (2, 3), epsilon=6.0, delta=1e-9, pairs=pair, steps=RESIDUALS
        ),
        released_case(
            "residuals of pairs and a triple", (2, 2, 2), pairs=triple[-2:], steps=RESIDUALS
        ),
        released_case(
            "residuals, two rows per unit",
            epsilon=6.0,
            delta=1e-9,
            unit=2,
            pairs=twice,
            steps=RESIDUALS,
        ),
        *analysis_cases(),
    ]


def analysis_cases() -> list[ReleasedCase]:
    """Return cases with a declared regression and a table that is wanted (R26)."""
    pair = (((), ((2, 0),)), (((2, 0), (0, 1)), ((2, 1),)), (((0, 0),), ((1, 1),)))
    twice = (((), ((2, 0), (2, 0))), (((0, 1),), ((2, 0), (0, 0))))
    several, one = with_analysis(2), with_analysis()
    near: dict[str, Any] = {"epsilon": 6.0, "delta": 1e-9, "turns": 1}
    return [
        released_case("declared analysis", (3, 2), pairs=pair, schema=one, turns=1),
        released_case("declared analysis, approximate", (3, 2), pairs=pair, schema=one, **near),
        released_case(
            "declared logistic analysis, approximate",
            (3, 2),
            pairs=pair,
            schema=with_analysis(family="binomial"),
            **near,
        ),
        released_case(
            "declared products", (3, 2), pairs=pair, schema=with_analysis(family="poisson"), turns=1
        ),
        released_case(
            "declared products, approximate",
            (3, 2),
            pairs=pair,
            schema=with_analysis(family="poisson"),
            **near,
        ),
        released_case(
            "declared analysis, two rows per unit",
            (3, 2),
            epsilon=30.0,
            pairs=twice,
            schema=several,
            turns=1,
        ),
        released_case(
            "declared analysis, two rows per unit, approximate",
            (3, 2),
            pairs=twice,
            schema=several,
            **near,
        ),
    ]
