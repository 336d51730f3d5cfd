"""Tiny releases of Gibbs samplers whose every outcome is enumerated, one for each schedule.

A case settles a real plan for a schema of two or three tiny features, builds the real
sampler for a table, and returns the exact distribution of what it would publish, for
every possible seed row. The claim is the ledger's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from pegsynth.auditing.divergence import (
    Distribution,
    EnumeratedCase,
    Loss,
    Table,
    all_rows,
    joined,
    neighbours,
    repeated,
)
from pegsynth.auditing.exact_laws import enumerate_rows, word_bits
from pegsynth.mechanisms.marginals import Marginals
from pegsynth.methods import get
from pegsynth.methods.gibbs.block_fitting import GibbsFit, hash_spec
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import Machine, Schedule, chain_limits
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
from pegsynth.methods.gibbs.order import public_heads
from pegsynth.methods.gibbs.samplers import prepare
from pegsynth.methods.pricing import PricedPlan
from pegsynth.privacy import Budget, Ledger
from pegsynth.schema import Feature, Rule, Schema

Heads = tuple[tuple[int, ...], ...]
Shares = tuple[tuple[float, ...], ...]

SCALE = 4
MOST_ROWS = 3
RULES = (Rule.of({0: [0], 1: [1]}),)


@dataclass(frozen=True)
class PlannedCase(EnumeratedCase):
    """A tiny release whose plan is settled as the program does it; the claim is its ledger's.

    Parameters
    ----------
    name
        What is special about it.
    schema, plan
        The public part of the release.
    most_rows
        Largest original table that is tried.
    """

    name: str
    schema: Schema
    plan: PricedPlan
    most_rows: int = MOST_ROWS

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.plan.method

    @property
    def claim(self) -> Ledger:
        """What the ledger says of the draws."""
        return Ledger(self.plan.events)

    @property
    def claimed(self) -> Loss:
        """The price in both currencies."""
        guarantee = self.claim.guarantee
        return Loss(guarantee.epsilon or 0.0, guarantee.rho or 0.0)

    def pairs(self) -> Iterator[tuple[Table, Table]]:
        """Return all small tables and their neighbours."""
        unit = self.schema.rows_per_unit if self.schema.unit else 1
        return neighbours(self.schema.category_counts, self.most_rows, rows_per_unit=unit)


@dataclass(frozen=True)
class Case(PlannedCase):
    """One tiny release.

    Parameters
    ----------
    shares
        Shares of a marginal prior, as if they had been paid for; None for uniform.
    """

    plan: GibbsPlan
    shares: Shares | None = None

    def fitted(self, table: Table, heads: Heads | None = None) -> GibbsFit:
        """Fit the real blocks to a table; heads as in the schema unless given."""
        counts = self.schema.category_counts
        codes = np.array(table, dtype=np.uint8).reshape(-1, len(counts))
        heads = heads or public_heads(self.schema, self.plan.keys.heads)
        spec = hash_spec(self.schema, heads, self.plan.keys.tail_bits)
        marginals = marginals_of(self.shares) if self.shares else None
        return GibbsFit(disintegrate([codes], spec), marginals)

    def distribution(self, table: Table, heads: Heads | None = None) -> Distribution:
        """Return the exact probability of every output, the seed rows shown as well."""
        return self.drawn(prepare(self.schema, self.fitted(table, heads), self.plan).machine)

    def drawn(self, machine: Machine) -> Distribution:
        """Return the exact probability of every output of a machine, for every seed row."""
        if getattr(self.plan.options, "urn", False):
            return self._urn(machine)
        if hasattr(self.plan.options, "visits"):
            return self._capped(machine)
        return self._restarted(machine)

    def _restarted(self, machine: Machine) -> Distribution:
        method: Any = get(self.method)
        draw, schedule = self.plan.options, method.schedule(self.plan.options)
        rows = draw.rows or 1
        chains = -(-rows // schedule.chain_rows)
        starts = product(self.starts(), repeat=chains)
        one = _mixture([self._enumerated(machine, schedule, rows, seeds) for seeds in starts])
        return repeated(one, draw.datasets)

    def _capped(self, machine: Machine) -> Distribution:
        """Return the joint distribution of all chains, each with the visits it owns."""
        draw = self.plan.options
        limits = chain_limits(draw.visits or 1, draw.chains or 1)
        rows = (draw.rows or 1) * draw.datasets
        joint: Distribution = {(): Fraction(1)}
        for chain, limit in enumerate(limits):
            count = rows // len(limits) + (chain < rows % len(limits))
            schedule = Schedule(max(count, 1), draw.sweeps, limit)
            parts = [self._enumerated(machine, schedule, count, (seed,)) for seed in self.starts()]
            joint = joined(joint, _mixture(parts))
        return joint

    def _urn(self, machine: Machine) -> Distribution:
        """Return the distribution of one chain of Polya visits (R17)."""
        draw = self.plan.options
        rows = (draw.rows or 1) * draw.datasets
        schedule = Schedule(rows, draw.sweeps, draw.visits or 1)
        return _mixture([self._enumerated(machine, schedule, rows, (s,)) for s in self.starts()])

    def starts(self) -> list[tuple[int, ...]]:
        """Return every seed row that obeys the rules."""
        rows = np.array(all_rows(self.schema.category_counts), dtype=np.uint8)
        valid = rows[~self.schema.breaks_a_rule(rows)]
        return [tuple(int(code) for code in row) for row in valid]

    def _enumerated(
        self,
        machine: Machine,
        schedule: Schedule,
        rows: int,
        seeds: tuple[tuple[int, ...], ...],
    ) -> Distribution:
        urn = bool(getattr(self.plan.options, "urn", False))
        held = self.most_rows + max(1, self.schema.rows_per_unit) + (schedule.limit if urn else 0)
        start = np.array(seeds, dtype=np.uint32)
        bits = word_bits(machine, held)
        found = enumerate_rows(machine, start, schedule, rows, bits, urn=urn)
        return {(seeds, table): share for table, share in found.items()}


def _mixture(parts: list[Distribution]) -> Distribution:
    """Weigh equally likely seed rows."""
    return {
        outcome: share / len(parts)
        for distribution in parts
        for outcome, share in distribution.items()
    }


def marginals_of(shares: Shares) -> Marginals:
    """Return shares as marginals that were paid for."""
    return Marginals(tuple(np.array(line) for line in shares), 1.0)


def tiny_schema(
    counts: tuple[int, ...],
    *,
    rules: tuple[Rule, ...] = (),
    unit: int | None = None,
    parents: Mapping[int, int] | None = None,
) -> Schema:
    """Return a reviewed schema of small nominal features, with a unit column if asked.

    `parents` gives the parent of each feature that is a detail.
    """
    parent = {i: f"x{above}" for i, above in (parents or {}).items()}
    features = [
        Feature(name=f"x{i}", categories=tuple("abcdef"[:count]), parent=parent.get(i))
        for i, count in enumerate(counts)
    ]
    if unit is None:
        return Schema(tuple(features), rules=rules, reviewed=True)
    person = Feature(name="person", role="identifier")
    return Schema((person, *features), "person", unit, rules, reviewed=True)


def settled(
    method: str,
    schema: Schema,
    *,
    epsilon: float = 2.0,
    delta: float | None = None,
    scale: int = SCALE,
    **options: object,
) -> Any:
    """Settle a plan whose whole budget goes into the draws, from a uniform seed pool."""
    chosen: Any = get(method)
    plain: dict[str, object] = {"seed_pool": "uniform", "order": "public", "prior": "uniform"}
    known = chosen.options.__dataclass_fields__
    given = {name: value for name, value in plain.items() if name in known} | options
    if "urn" in known:
        given = {"urn": False} | given
    budget = Budget(epsilon=epsilon, delta=delta)
    return chosen.settle(schema, budget, chosen.options(**given), scale=scale)


def case(
    name: str,
    counts: tuple[int, ...] = (2, 2),
    *,
    method: str = "pegs",
    shares: Shares | None = None,
    most_rows: int = MOST_ROWS,
    rules: tuple[Rule, ...] = (),
    unit: int | None = None,
    parents: Mapping[int, int] | None = None,
    **draw: Any,
) -> Case:
    """Settle a release of small features; `draw` are the budget and the options of the method."""
    schema = tiny_schema(counts, rules=rules, unit=unit, parents=parents)
    plan = settled(method, schema, **{"heads": 1, "tail_bits": 0} | draw)
    if shares is not None:
        plan = replace(plan, prior="marginal")
    return Case(name, schema, plan, most_rows, shares)


def all_cases() -> list[Case]:
    """Return one case for every method and schedule that claims differential privacy."""
    block = partial(case, method="pegs-rs", block_size=2)
    cap = partial(case, method="pegs-capped", chains=1, visits=2, rows=2)
    urn = partial(case, method="pegs-capped", urn=True, visits=2, rows=2)
    detail: dict[str, Any] = {"heads": 0, "parents": {1: 0}}
    return [
        case("one row", rows=1),
        case("two rows", rows=2),
        case("two datasets", rows=1, datasets=2),
        case("three features", (2, 2, 2), rows=1, most_rows=2),
        case("hashed key, two tail bits", (2, 3), rows=1, heads=0, tail_bits=2),
        case("head and tail bit", (2, 2, 2), rows=1, tail_bits=1, most_rows=2),
        case("two sweeps, last shown", rows=1, sweeps=2),
        case("rule that a real row breaks", rows=2, rules=RULES),
        case("two rows per unit", rows=1, unit=2, most_rows=2),
        case("detail given its parent", (2, 2, 2), rows=1, parents={2: 0}, most_rows=1),
        block("block of 2", rows=2),
        block("block of 3, no heads", rows=3, heads=0, block_size=3, most_rows=2),
        block("block, two sweeps", rows=2, sweeps=2, most_rows=1),
        block("a last block of 1", rows=3, most_rows=2),
        block("block, rule", rows=2, rules=RULES),
        block("block, detail", rows=2, **detail),
        cap("cap 1", visits=1, heads=0),
        cap("cap 2", rows=3, heads=0, most_rows=2),
        cap("cap 2, head"),
        cap("cap 3 over 2 chains", rows=4, visits=3, chains=2, heads=0),
        cap("cap 2, two sweeps", sweeps=2, most_rows=1),
        cap("cap 2, two datasets", datasets=2, chains=2),
        cap("cap 2, rule", rules=RULES),
        cap("cap 2, unit of 2", unit=2, most_rows=1),
        cap("cap 2, detail", **detail),
        urn("urn of 2", heads=0),
        urn("urn of 3, 4 rows", rows=4, visits=3, heads=0, most_rows=1),
        urn("urn of 2, detail", **detail),
        urn("urn of 2, head"),
        urn("urn of 3, rule", visits=3, rules=RULES, most_rows=2),
        urn("urn of 2, two datasets", rows=1, datasets=2),
        cap("cap 2, marginal prior", heads=0, shares=((0.9, 0.1), (0.25, 0.75))),
        block("block, marginal prior", rows=2, heads=0, shares=((0.9, 0.1), (0.5, 0.5))),
    ]
