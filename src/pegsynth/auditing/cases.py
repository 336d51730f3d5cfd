"""Tiny releases whose every outcome is enumerated, one for each schedule that claims DP.

A case settles a real plan for a schema of two or three tiny features, builds the real
sampler for a table, and returns the exact distribution of what it would publish, for
every possible seed row. The claim is the ledger's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from pegsynth.auditing.divergence import Distribution, Table, all_rows
from pegsynth.auditing.enumeration import enumerate_rows, word_bits
from pegsynth.mechanisms.marginals import Marginals
from pegsynth.methods import get
from pegsynth.methods.gibbs.block_fitting import GibbsFit, hash_spec
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import Machine, Schedule, chain_limits
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
from pegsynth.methods.gibbs.order import public_heads
from pegsynth.methods.gibbs.samplers import prepare
from pegsynth.privacy import Budget, Ledger
from pegsynth.schema import Feature, Rule, Schema

Heads = tuple[tuple[int, ...], ...]

SCALE = 4
MOST_ROWS = 3


@dataclass(frozen=True)
class Case:
    """One tiny release.

    Parameters
    ----------
    name
        What is special about it.
    schema, plan
        The public part of the release.
    shares
        Shares of a marginal prior, as if they had been paid for; None for uniform.
    most_rows
        Largest original table that is tried.
    """

    name: str
    schema: Schema
    plan: GibbsPlan
    shares: tuple[tuple[float, ...], ...] | None = None
    most_rows: int = MOST_ROWS

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.plan.method

    @property
    def claim(self) -> Ledger:
        """What the ledger says of the draws."""
        return Ledger(self.plan.events)

    def fitted(self, table: Table, heads: Heads | None = None) -> GibbsFit:
        """Fit the real blocks to a table; heads as in the schema unless given."""
        counts = self.schema.category_counts
        codes = np.array(table, dtype=np.uint8).reshape(-1, len(counts))
        heads = heads or public_heads(self.schema, self.plan.keys.heads)
        spec = hash_spec(self.schema, heads, self.plan.keys.tail_bits)
        marginals = (
            Marginals(tuple(np.array(line) for line in self.shares), 1.0) if self.shares else None
        )
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
        chains = -(-(draw.rows or 1) // schedule.chain_rows)
        one = _mixture(
            [
                self._enumerated(machine, schedule, draw.rows or 1, seeds)
                for seeds in product(self.starts(), repeat=chains)
            ]
        )
        joint = one
        for _ in range(draw.datasets - 1):
            joint = _joined(joint, one)
        return joint

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
            joint = _joined(joint, _mixture(parts))
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


def _joined(first: Distribution, second: Distribution) -> Distribution:
    """Return the joint distribution of independent outputs."""
    return {(a, b): p * q for a, p in first.items() for b, q in second.items()}


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


def case(
    name: str,
    counts: tuple[int, ...] = (2, 2),
    *,
    epsilon: float = 2.0,
    delta: float | None = None,
    heads: int = 1,
    tail_bits: int = 0,
    rules: tuple[Rule, ...] = (),
    unit: int | None = None,
    parents: Mapping[int, int] | None = None,
    shares: tuple[tuple[float, ...], ...] | None = None,
    most_rows: int = MOST_ROWS,
    **draw: object,
) -> Case:
    """Settle a plan whose whole budget goes into the draws."""
    schema = tiny_schema(counts, rules=rules, unit=unit, parents=parents)
    plain: dict[str, object] = {"prior": "uniform", "seed_pool": "uniform"}
    if draw.get("method") == "pegs-capped":
        plain["urn"] = False
    method: Any = get(str(draw.pop("method", "pegs")))
    keys = {"heads": heads, "tail_bits": tail_bits, "order": "public"}
    options = method.options(**keys | plain | draw)
    budget = Budget(epsilon=epsilon, delta=delta)
    plan = method.settle(schema, budget, options, scale=SCALE)
    if shares is not None:
        plan = replace(plan, prior="marginal")
    return Case(name, schema, plan, shares, most_rows)


RULES = (Rule.of({0: [0], 1: [1]}),)


def all_cases() -> list[Case]:
    """Return one case for every method and schedule that claims differential privacy."""
    return [
        case("one row", rows=1),
        case("two rows", rows=2),
        case("two datasets", rows=1, datasets=2),
        case("three features", (2, 2, 2), rows=1, heads=1, most_rows=2),
        case("hashed key, two tail bits", (2, 3), rows=1, heads=0, tail_bits=2),
        case("head and tail bit", (2, 2, 2), rows=1, heads=1, tail_bits=1, most_rows=2),
        case("two sweeps, last shown", rows=1, sweeps=2),
        case("rule that a real row breaks", rows=2, rules=RULES),
        case("two rows per unit", rows=1, unit=2, most_rows=2),
        case("detail given its parent", (2, 2, 2), rows=1, parents={2: 0}, most_rows=1),
        case("block of 2", rows=2, method="pegs-rs", block_size=2),
        case("block of 3, no heads", rows=3, heads=0, method="pegs-rs", block_size=3, most_rows=2),
        case("block, two sweeps", rows=2, sweeps=2, method="pegs-rs", block_size=2, most_rows=1),
        case("a last block of 1", rows=3, method="pegs-rs", block_size=2, most_rows=2),
        case("block, rule", rows=2, method="pegs-rs", block_size=2, rules=RULES),
        case("block, detail", rows=2, heads=0, method="pegs-rs", block_size=2, parents={1: 0}),
        case("cap 1", rows=2, method="pegs-capped", visits=1, chains=1, heads=0),
        case("cap 2", rows=3, method="pegs-capped", visits=2, chains=1, heads=0, most_rows=2),
        case("cap 2, head", rows=2, method="pegs-capped", visits=2, chains=1),
        case("cap 3 over 2 chains", rows=4, method="pegs-capped", visits=3, chains=2, heads=0),
        case(
            "cap 2, two sweeps",
            rows=2,
            sweeps=2,
            method="pegs-capped",
            visits=2,
            chains=1,
            most_rows=1,
        ),
        case("cap 2, two datasets", rows=2, datasets=2, method="pegs-capped", visits=2, chains=2),
        case("cap 2, rule", rows=2, method="pegs-capped", visits=2, chains=1, rules=RULES),
        case(
            "cap 2, unit of 2",
            rows=2,
            method="pegs-capped",
            visits=2,
            chains=1,
            unit=2,
            most_rows=1,
        ),
        case(
            "cap 2, detail",
            rows=2,
            method="pegs-capped",
            visits=2,
            chains=1,
            heads=0,
            parents={1: 0},
        ),
        case("urn of 2", rows=2, method="pegs-capped", visits=2, urn=True, heads=0),
        case(
            "urn of 3, 4 rows",
            rows=4,
            method="pegs-capped",
            visits=3,
            urn=True,
            heads=0,
            most_rows=1,
        ),
        case(
            "urn of 2, detail",
            rows=2,
            method="pegs-capped",
            visits=2,
            urn=True,
            heads=0,
            parents={1: 0},
        ),
        case("urn of 2, head", rows=2, method="pegs-capped", visits=2, urn=True),
        case(
            "urn of 3, rule",
            rows=2,
            method="pegs-capped",
            visits=3,
            urn=True,
            rules=RULES,
            most_rows=2,
        ),
        case(
            "urn of 2, two datasets", rows=1, datasets=2, method="pegs-capped", visits=2, urn=True
        ),
        case(
            "cap 2, marginal prior",
            rows=2,
            method="pegs-capped",
            visits=2,
            chains=1,
            heads=0,
            shares=((0.9, 0.1), (0.25, 0.75)),
        ),
        case(
            "block, marginal prior",
            rows=2,
            method="pegs-rs",
            block_size=2,
            heads=0,
            shares=((0.9, 0.1), (0.5, 0.5)),
        ),
    ]
