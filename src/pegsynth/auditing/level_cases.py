"""Tiny releases that run on levels, merged by paid counts, with every outcome enumerated.

The chain is the shipped one, on levels; what it draws is split into categories with the
shipped weights, as exact fractions. So an outcome is what a release publishes, and a choice
of levels that looks at the table would show (R10, R25).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pegsynth.auditing.cases import RULES, SCALE, Case, tiny_schema
from pegsynth.blocks import disintegrate
from pegsynth.hashing import public_heads
from pegsynth.mechanisms.marginals import Marginals, seed_weights
from pegsynth.methods import get
from pegsynth.methods.gibbs.block_fitting import GibbsFit, hash_spec
from pegsynth.methods.gibbs.samplers import prepare
from pegsynth.privacy import Budget

if TYPE_CHECKING:
    from pegsynth.auditing.cases import Heads
    from pegsynth.auditing.divergence import Distribution, Table
    from pegsynth.auditing.enumeration import Outcome
    from pegsynth.hashing.spec import Lines
    from pegsynth.sampling import Machine, Schedule
    from pegsynth.schema import Rule

Shares = tuple[tuple[float, ...], ...]


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
        merging = self.plan.merging(self.schema, spec, _marginals(self.merging_shares(table)))
        paid = _marginals(self.shares or ())
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
        weights = seed_weights(_marginals(self.shares or ()))
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


def _marginals(shares: Shares) -> Marginals:
    return Marginals(tuple(np.array(line) for line in shares), 1.0)


def level_case(
    name: str,
    shares: Shares,
    *,
    method: str = "pegs",
    rules: tuple[Rule, ...] = (),
    most_rows: int = 2,
    epsilon: float = 2.0,
    **draw: object,
) -> LevelCase:
    """Settle a release on levels of ordered features, whose shares have been paid for."""
    schema = tiny_schema(tuple(map(len, shares)), rules=rules)
    for each in schema.names:
        schema = schema.with_feature(each, kind="ordinal")
    chosen: Any = get(method)
    keys: dict[str, Any] = {"heads": 1, "order": "public", "seed_pool": "uniform", "rows": 1}
    if method == "pegs-capped":
        keys["urn"] = False
    options = chosen.options(**keys | {"prior": "uniform"} | draw)
    # The whole budget goes into the draws; only what is drawn from is in levels.
    plan = chosen.settle(schema, Budget(epsilon=epsilon), options, scale=SCALE)
    return LevelCase(name, schema, replace(plan, prior="levels"), shares, most_rows)


ONE, TWO = (0.5, 0.04, 0.04, 0.42), (0.3, 0.7)


def level_cases() -> list[LevelCase]:
    """Return one case for each schedule; in all of them neighbours are merged."""
    return [
        level_case("levels, one row", (ONE, TWO), most_rows=1),
        level_case("levels, two rows", (ONE,), rows=2, heads=0),
        level_case("levels, rule", (ONE, TWO), rules=RULES, most_rows=1),
        level_case("levels, block of 2", (ONE,), method="pegs-rs", rows=2, block_size=2, heads=0),
        level_case(
            "levels, cap 2",
            (ONE,),
            method="pegs-capped",
            rows=2,
            visits=2,
            chains=1,
            heads=0,
        ),
    ]


def level_private_case(*, epsilon: float = 9.0) -> LevelCase:
    """Settle a release that pays for marginals and draws on the levels that they give."""
    schema = tiny_schema((3, 2))
    for each in schema.names:
        schema = schema.with_feature(each, kind="ordinal")
    method: Any = get("pegs")
    options = method.options(rows=1, prior="levels", seed_pool="marginal", heads=1, order="public")
    plan = method.settle(schema, Budget(epsilon=epsilon), options, scale=SCALE)
    return LevelCase("paid counts, levels by them", schema, plan, None, most_rows=0)
