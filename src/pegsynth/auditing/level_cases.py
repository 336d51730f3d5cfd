"""Exact audit of everything together: noisy marginals, private heads, and the draws.

For a tiny table and its neighbour, and for several noisy outcomes y of the marginals, the
probability of every choice of heads and of every output row is exact: noise and choices
from the tables that the shipped code decides by, on its own scores and scales, draws by
enumeration of the kernel. The three log-ratios add up along a path; the worst path must
stay within the ledger's total.

Tiny releases that run on levels, merged by paid counts, with every outcome enumerated.

The chain is the shipped one, on levels; what it draws is split into categories with the
shipped weights, as exact fractions. So an outcome is what a release publishes, and a choice
of levels that looks at the table would show (R10, R25).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from pegsynth.auditing.cases import (
    RULES,
    Case,
    Heads,
    Shares,
    marginals_of,
    settled,
    tiny_schema,
)
from pegsynth.auditing.divergence import Loss, Table, all_rows, all_tables
from pegsynth.auditing.exact_laws import choice_law, noise_probability
from pegsynth.codec.pair_counts import count_pairs
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.marginals import marginals_from_noisy, seed_weights
from pegsynth.mechanisms.noise import noise_of
from pegsynth.methods.gibbs.block_fitting import GibbsFit, hash_spec
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.order import pair_scores, public_heads
from pegsynth.methods.gibbs.samplers import prepare
from pegsynth.options import PriorKind
from pegsynth.privacy import NoisyCounts, Selection

if TYPE_CHECKING:
    from pegsynth.auditing.divergence import Distribution
    from pegsynth.auditing.exact_laws import Outcome
    from pegsynth.methods.gibbs.chains import Machine, Schedule
    from pegsynth.methods.gibbs.spec import Lines
    from pegsynth.schema import Rule, Schema

NOISES = ((0, 0), (3, -1), (-4, 2))
"""Noise on the first and on every other category; far tails give the same ratios."""


def private_case(*, epsilon: float = 9.0, prior: PriorKind = "uniform") -> Case:
    """Settle a release that pays for marginals, order and draws."""
    schema = tiny_schema((2, 2, 2))
    paid: dict[str, Any] = {"prior": prior, "seed_pool": "marginal", "order": "private"}
    plan = settled("pegs", schema, epsilon=epsilon, rows=1, heads=1, tail_bits=0, **paid)
    return Case(f"private order, {prior} prior", schema, plan, most_rows=1)


def worst_path(case: Case) -> Loss:
    """Return the worst log-ratio over tables, neighbours, noise, heads and rows."""
    counts = case.schema.category_counts
    worst = 0.0
    for table in all_tables(counts, case.most_rows):
        for row in all_rows(counts):
            for loss in _paths(case, table, (*table, row)):
                worst = max(worst, loss)
    return Loss(worst, 0.0)


def _paths(case: Case, table: Table, neighbour: Table) -> Iterator[float]:
    counts = case.schema.category_counts
    ours, theirs = _one_way(table, counts), _one_way(neighbour, counts)
    for first, rest in NOISES:
        noisy = [line + np.array([first] + [rest] * (len(line) - 1)) for line in ours]
        noise = noise_ratio(case.plan.marginals, ours, theirs, noisy)
        for heads in _all_heads(len(counts), case.plan.keys.heads):
            choice = math.log(
                choice_probability(case.plan.choice, table, counts, noisy, heads)
                / choice_probability(case.plan.choice, neighbour, counts, noisy, heads)
            )
            draws = _draw_ratios(case, table, neighbour, noisy, heads)
            # Both directions: the largest and the smallest log-ratio of any output.
            yield max(abs(noise + choice + ratio) for ratio in draws)


def noise_ratio(
    event: NoisyCounts | None, ours: list[Int64], theirs: list[Int64], noisy: list[Int64]
) -> float:
    """Return the log-ratio of a noisy outcome under discrete Laplace noise."""
    if event is None or event.mechanism != "discrete-laplace":
        return 0.0
    noise = noise_of(event)
    total = 0.0
    for a, b, y in zip(ours, theirs, noisy, strict=True):
        for here, there in zip((y - a).tolist(), (y - b).tolist(), strict=True):
            first, second = noise_probability(noise, here), noise_probability(noise, there)
            total += math.log(first / second) if first and second else math.inf
    return total


def choice_probability(
    event: Selection | None,
    table: Table,
    counts: tuple[int, ...],
    noisy: list[Int64],
    heads: Heads,
) -> float:
    """Return the probability that these heads are chosen, from the shipped scores."""
    if event is None:
        return 1.0
    codes = np.array(table, dtype=np.uint8).reshape(-1, len(counts))
    marginals = marginals_from_noisy(noisy)
    scores = pair_scores(count_pairs([codes], counts), marginals.shares, marginals.total)
    epsilon = Fraction(event.epsilon_numerator, event.epsilon_denominator)
    probability = 1.0
    for target, chosen in enumerate(heads):
        others = [i for i in range(len(counts)) if i != target]
        for head in chosen:
            law = choice_law([int(scores[target, i]) for i in others], epsilon)
            probability *= float(law[others.index(head)])
            others.remove(head)
    return probability


def _draw_ratios(
    case: Case, table: Table, neighbour: Table, noisy: list[Int64], heads: Heads
) -> tuple[float, float]:
    shares = tuple(tuple(line.tolist()) for line in marginals_from_noisy(noisy).shares)
    fixed = replace(case, shares=shares)
    first, second = (dict(fixed.distribution(each, heads=heads)) for each in (table, neighbour))
    ratios = [math.log(Fraction(share) / Fraction(second[o])) for o, share in first.items()]
    return min(ratios), max(ratios)


def _one_way(table: Table, counts: tuple[int, ...]) -> list[Int64]:
    lines = [np.zeros(count, dtype=np.int64) for count in counts]
    for row in table:
        for feature, code in enumerate(row):
            lines[feature][code] += 1
    return lines


def _all_heads(features: int, heads: int) -> Iterator[Heads]:
    choices = [
        list(permutations([i for i in range(features) if i != target], heads))
        for target in range(features)
    ]
    yield from product(*choices)


@dataclass(frozen=True)
class LevelCase(Case):
    """One tiny release on levels; `shares` are what was paid for.

    Parameters
    ----------
    levels
        The levels of the table that is looked at.
    """

    levels: Lines = ()

    def merging_shares(self, table: Table) -> Shares:
        """Return the shares that categories are merged by: the paid ones, whatever the table."""
        return self.shares or ()

    def fitted(self, table: Table, heads: Heads | None = None) -> GibbsFit:
        """Fit the real blocks to a table, in the real levels."""
        features = len(self.schema.features)
        codes = np.array(table, dtype=np.uint8).reshape(-1, features)
        heads = heads or public_heads(self.schema, self.plan.keys.heads)
        spec = hash_spec(self.schema, heads, self.plan.keys.tail_bits)
        merging = self.plan.merging(self.schema, spec, marginals_of(self.merging_shares(table)))
        paid = marginals_of(self.shares or ())
        blocks = disintegrate([codes], merging.spec)
        return GibbsFit(blocks, paid, resolutions=merging.resolutions)

    def distribution(self, table: Table, heads: Heads | None = None) -> Distribution:
        """Return the exact probability of every output in categories, and of the seed rows."""
        fit = self.fitted(table, heads)
        looked_at = replace(self, levels=fit.blocks.spec.levels)
        return looked_at.drawn(prepare(self.schema, fit, self.plan).machine)

    def _enumerated(
        self,
        machine: Machine,
        schedule: Schedule,
        rows: int,
        seeds: tuple[tuple[int, ...], ...],
    ) -> Distribution:
        merged = tuple(tuple(self.levels[f][code] for f, code in enumerate(seed)) for seed in seeds)
        split: dict[Any, Fraction] = {}
        found: dict[Any, Any] = dict(super()._enumerated(machine, schedule, rows, merged))
        for (_, table), share in found.items():
            for outcome, part in self._split(table):
                split[seeds, outcome] = split.get((seeds, outcome), Fraction(0)) + share * part
        return split

    def _split(self, table: Outcome) -> Iterator[tuple[Outcome, Fraction]]:
        """Yield the tables of categories that a table of levels may become."""
        weights = seed_weights(marginals_of(self.shares or ()))
        inside = [
            {level: [code for code, own in enumerate(line) if own == level] for level in set(line)}
            for line in self.levels
        ]
        cells = [(f, level) for row in table for f, level in enumerate(row)]
        for codes in product(*(inside[f][level] for f, level in cells)):
            part = Fraction(1)
            for (f, level), code in zip(cells, codes, strict=True):
                own = [int(weights[f][each]) for each in inside[f][level]]
                part *= Fraction(int(weights[f][code]), sum(own))
            width = len(self.levels)
            starts = range(0, len(codes), width)
            yield tuple(codes[start : start + width] for start in starts), part


def level_case(
    name: str,
    shares: Shares,
    *,
    method: str = "pegs",
    rules: tuple[Rule, ...] = (),
    most_rows: int = 2,
    **draw: Any,
) -> LevelCase:
    """Settle a release on levels of ordered features, whose shares have been paid for."""
    schema = _ordinal(tiny_schema(tuple(map(len, shares)), rules=rules))
    # The whole budget goes into the draws; only what is drawn from is in levels.
    plan = settled(method, schema, **{"heads": 1, "rows": 1} | draw)
    return LevelCase(name, schema, replace(plan, prior="levels"), most_rows, shares)


def _ordinal(schema: Schema) -> Schema:
    for each in schema.names:
        schema = schema.with_feature(each, kind="ordinal")
    return schema


ONE, TWO = (0.5, 0.04, 0.04, 0.42), (0.3, 0.7)


def level_cases() -> list[LevelCase]:
    """Return one case for each schedule; in all of them neighbours are merged."""
    several: dict[str, Any] = {"rows": 2, "heads": 0}
    capped: dict[str, Any] = {"method": "pegs-capped", "visits": 2, "chains": 1}
    return [
        level_case("levels, one row", (ONE, TWO), most_rows=1),
        level_case("levels, two rows", (ONE,), **several),
        level_case("levels, rule", (ONE, TWO), rules=RULES, most_rows=1),
        level_case("levels, block of 2", (ONE,), method="pegs-rs", block_size=2, **several),
        level_case("levels, cap 2", (ONE,), **capped, **several),
    ]


def level_private_case(*, epsilon: float = 9.0) -> LevelCase:
    """Settle a release that pays for marginals and draws on the levels that they give."""
    schema = _ordinal(tiny_schema((3, 2)))
    plan = settled(
        "pegs", schema, epsilon=epsilon, rows=1, prior="levels", seed_pool="marginal", heads=1
    )
    return LevelCase("paid counts, levels by them", schema, plan, most_rows=0)
