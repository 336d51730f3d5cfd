"""A real run on three features, every step of it written down: the paper's figures 1 to 3.

`demonstrate` counts the blocks of three features, perturbs them, and draws one block of rows
with reset. What comes out are the counted and the perturbed distribution of every entry, and
every visit: which entry was asked, whether it answered from its counts or had been reset,
and what was drawn. The first row of the block is a row of PeGS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Codes
from pegsynth.methods.gibbs.block_fitting import GibbsFit
from pegsynth.methods.gibbs.blocks import Blocks, disintegrate
from pegsynth.methods.gibbs.chains import new_counters
from pegsynth.methods.gibbs.pegs import PEGS_RS
from pegsynth.methods.gibbs.samplers import prepare, trace_row
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.registry import PegsRsOptions
from pegsynth.methods.seed_rows import FilePool
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema

BLOCK_SIZE = 10
EPSILON = 1.0
"""Epsilon of the whole block of the demonstration."""


@dataclass(frozen=True)
class Visit:
    """One draw of a chain.

    Parameters
    ----------
    row, target
        Number of the row in its block, from 1, and the feature drawn.
    key
        The other two values, which name the entry.
    answered
        Whether the entry answered from its counts; else it had been reset.
    before, drawn
        Code of the feature before and after.
    """

    row: int
    target: int
    key: tuple[int, ...]
    answered: bool
    before: int
    drawn: int


@dataclass(frozen=True)
class Demonstration:
    """Blocks of three features, and a block of rows drawn from them.

    Parameters
    ----------
    schema
        Of the three features.
    heads
        For each target the two features that make its key.
    counts
        For each target the counts, a line per key.
    alpha
        Virtual rows per category.
    seed_row, visits
        Where the chain started, and every draw.
    """

    schema: Schema
    heads: tuple[tuple[int, ...], ...]
    counts: tuple[NDArray[np.int64], ...]
    alpha: float
    seed_row: tuple[int, ...]
    visits: tuple[Visit, ...]

    def counted(self, target: int) -> NDArray[np.float64]:
        """Return the counted shares of every entry, a line per key; 0 for empty entries."""
        counts = self.counts[target]
        shares: NDArray[np.float64] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return shares

    def perturbed(self, target: int) -> NDArray[np.float64]:
        """Return (n_kj + alpha)/(N_k + A) of every entry (R1)."""
        raised = self.counts[target] + self.alpha
        shares: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
        return shares

    def line(self, target: int, key: Sequence[int]) -> int:
        """Return the line of a key in the blocks of a target."""
        sizes = [self.schema.category_counts[head] for head in self.heads[target]]
        return int(np.ravel_multi_index(tuple(key), tuple(sizes)))

    def key_text(self, target: int, key: Sequence[int]) -> str:
        """Write a key in words."""
        pairs = zip(self.heads[target], key, strict=True)
        return ", ".join(self.schema.features[head].labels[code] for head, code in pairs)


def demonstrate(
    codes: Codes,
    schema: Schema,
    names: Sequence[str],
    stream: RandomStream,
    *,
    pool: Codes,
    block_size: int = BLOCK_SIZE,
    epsilon: float = EPSILON,
) -> Demonstration:
    """Run PeGS.rs on three features of a table.

    Parameters
    ----------
    codes, schema
        The table, rows by features.
    names
        The three features.
    pool
        Public rows to start from.
    block_size, epsilon
        Rows of the block, and its price.
    """
    places = [schema.index(name) for name in names]
    small = part_of(schema, places)
    heads = tuple(tuple(i for i in range(len(places)) if i != t) for t in range(len(places)))
    spec = HashSpec(small.names, small.category_counts, heads, 0)
    blocks = disintegrate([np.ascontiguousarray(codes[:, places])], spec)
    budget = Budget(epsilon_per_row=epsilon / block_size)
    options = PegsRsOptions(
        rows=block_size,
        block_size=block_size,
        heads=len(places) - 1,
        tail_bits=0,
        order="public",
    )
    plan = PEGS_RS.settle(small, budget, options)
    ready = prepare(small, GibbsFit(blocks), plan)
    start = pool[:, places]
    start = start[~small.breaks_a_rule(start)].astype(np.uint32)
    chosen = FilePool(start).draw(1, stream.substream().take)
    counters = new_counters(ready.machine, 1)[0]
    row, visits = chosen, []
    asked: set[tuple[int, ...]] = set()
    for number in range(1, block_size + 1):
        before, steps = trace_row(
            ready.machine, FilePool(row), 1, stream, counters=counters, limit=1
        )
        state = list(before)
        for step in steps:
            target, drawn = step.feature, step.row[step.feature]
            key = tuple(state[head] for head in heads[target])
            answered = (target, *key) not in asked
            asked.add((target, *key))
            visits.append(Visit(number, target, key, answered, state[target], drawn))
            state[target] = drawn
        row = np.array([state], dtype=np.uint32)
    return Demonstration(
        small,
        heads,
        _counts(blocks),
        plan.alpha,
        tuple(int(code) for code in chosen[0]),
        tuple(visits),
    )


def part_of(schema: Schema, places: Sequence[int]) -> Schema:
    """Return the codebook of some features, with the rules that speak of these alone."""
    new = {old: position for position, old in enumerate(places)}
    rules = tuple(
        Rule.of({new[feature]: sorted(codes) for feature, codes in rule.forbidden}, rule.label)
        for rule in schema.rules
        if all(feature in new for feature, _ in rule.forbidden)
    )
    columns = tuple(_alone(schema, place) for place in places)
    return Schema(columns, rules=rules, reviewed=schema.reviewed)


def _alone(schema: Schema, place: int) -> Feature:
    return replace(schema.features[place], heads=(), parent=None)


def _counts(blocks: Blocks) -> tuple[NDArray[np.int64], ...]:
    tables = []
    for target, block in enumerate(blocks.blocks):
        table = np.zeros(
            (blocks.spec.key_space(target), blocks.spec.category_counts[target]), dtype=np.int64
        )
        keys, codes, counts = block.cells()
        table[keys, codes] = counts
        tables.append(table)
    return tuple(tables)
