"""Counting a table into blocks: heads are chosen and paid for, then every target is counted.

What is left is confidential: it holds exact counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.pair_counts import PairCounts
from pegsynth.errors import BudgetError
from pegsynth.mechanisms import answers
from pegsynth.mechanisms.marginals import Marginals, noisy_marginals
from pegsynth.methods.gibbs.blocks import Blocks, DenseBlock
from pegsynth.methods.gibbs.order import (
    detail_features,
    heads_by_choice,
    heads_by_score,
    pair_scores,
    plain_features,
    public_heads,
    with_parents,
)
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.ledgers import of_heads
from pegsynth.options import Order
from pegsynth.privacy import Ledger, NoisyCounts, NotPrivate, Selection

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes
    from pegsynth.methods.counting import ConfidentialTable
    from pegsynth.methods.gibbs.gibbs_plan import Keys
    from pegsynth.methods.gibbs.merging import Merging
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema

Heads = tuple[tuple[int, ...], ...]


class Paid(Protocol):
    """Events that were paid for before the table is counted."""

    @property
    def choice(self) -> Selection | None:
        """The private choices of heads."""

    @property
    def marginals(self) -> NoisyCounts | None:
        """The noisy one-way counts."""

    @property
    def merges(self) -> bool:
        """Whether categories are merged by these counts."""

    def merging(self, schema: Schema, spec: HashSpec, marginals: Marginals) -> Merging:
        """Merge small categories by these counts."""


@dataclass(frozen=True)
class GibbsFit:
    """Blocks and what the draws from them need.

    Parameters
    ----------
    blocks
        The confidential counts.
    marginals
        Noisy marginals, if they were paid for.
    resolutions
        How far virtual rows may go, where categories are merged by the marginals.
    rows
        All rows of the table, where seed rows or kept columns need them.
    """

    blocks: Blocks
    marginals: Marginals | None = None
    rows: Codes | None = field(default=None, repr=False)
    resolutions: tuple[int, ...] = ()


def count_blocks(
    table: ConfidentialTable,
    schema: Schema,
    keys: Keys,
    stream: RandomStream,
    ledger: Ledger,
    paid: Paid | None = None,
) -> tuple[GibbsFit, Ledger]:
    """Choose heads and count blocks, paying for what the choice looks at (R10).

    Parameters
    ----------
    table
        The engine that counts, on this machine or on a cluster.
    ledger
        What is known so far of the schema and of how the rows were selected.
    paid
        What a budget has paid for; None for blocks without a budget.
    """
    if keys.order == "public":
        chosen, marginals = public_heads(schema, keys.heads), None
        ledger = ledger.assume(*of_heads(schema, keys.heads))
    else:
        pairs = table.pairs(schema.category_counts, order_rows=keys.order_rows)
        chosen, marginals, event = _heads_of(schema, pairs, keys.order, keys.heads, paid, stream)
        ledger = ledger.add(*event)
    spec, drawn = hash_spec(schema, chosen, keys.tail_bits), keys.order == "private"
    resolutions: tuple[int, ...] = ()
    if paid and paid.merges and paid.marginals:
        if marginals is None:
            marginals = noisy_marginals(_counted_alone(table, schema), paid.marginals, stream)
        merging = paid.merging(schema, spec, marginals)
        spec, resolutions, drawn = merging.spec, merging.resolutions, True
    blocks = table.blocks(spec, drawn_heads=drawn and not stream.seeded)
    if paid and paid.marginals and marginals is None:
        marginals = noisy_marginals(one_way_counts(blocks), paid.marginals, stream)
    return GibbsFit(blocks, marginals, resolutions=resolutions), ledger


def _counted_alone(table: ConfidentialTable, schema: Schema) -> list[NDArray[np.int64]]:
    """Return the exact one-way counts, in a pass of their own."""
    counts = schema.category_counts
    alone = HashSpec(schema.names, counts, ((),) * len(counts), 0)
    return one_way_counts(table.blocks(alone, drawn_heads=False))


def hash_spec(schema: Schema, heads: Heads, tail_bits: int) -> HashSpec:
    """Return the keys of a schema's features, details by their parent alone."""
    details = detail_features(schema)
    return HashSpec(schema.names, schema.category_counts, heads, tail_bits, details)


def mapped(schema: Schema, heads: Heads) -> Heads:
    """Turn heads that were chosen among the plain features into features of the schema."""
    plain = plain_features(schema)
    return tuple(tuple(plain[i] for i in line) for line in heads)


def _heads_of(
    schema: Schema,
    pairs: PairCounts,
    order: Order,
    heads: int,
    paid: Paid | None,
    stream: RandomStream,
) -> tuple[Heads, Marginals | None, tuple[NotPrivate, ...]]:
    """Choose heads by pair counts; pay for the choice, or record that it is not paid (R10)."""
    if order == "private":
        marginals, chosen = _private_heads(schema, pairs, paid, stream)
        return chosen, marginals, ()
    plain = np.ix_(*[plain_features(schema)] * 2)
    scores = pairs.mutual_information()[plain]
    chosen = with_parents(schema, mapped(schema, heads_by_score(scores, heads)))
    return chosen, None, (NotPrivate.because("data-order"),)


def _private_heads(
    schema: Schema, pairs: PairCounts, paid: Paid | None, stream: RandomStream
) -> tuple[Marginals, Heads]:
    """Pay for marginals, then for every choice of a head (R10)."""
    if paid is None or paid.marginals is None or paid.choice is None:
        raise BudgetError("a private order is paid out of --epsilon; state that when fitting")
    choice = paid.choice
    marginals = noisy_marginals(pairs.one_way_counts(), paid.marginals, stream)
    scores = pair_scores(pairs, marginals.shares, marginals.total)
    words = stream.substream()
    plain = plain_features(schema)
    scores = scores[np.ix_(plain, plain)]
    heads = choice.count // len(plain)
    chosen = heads_by_choice(
        scores, heads, lambda line: answers.chosen(line, choice, stream, words)
    )
    return marginals, with_parents(schema, mapped(schema, chosen))


def one_way_counts(blocks: Blocks) -> list[NDArray[np.int64]]:
    """Return the exact one-way counts, which the blocks hold already."""
    counts = []
    for block, categories in zip(blocks.blocks, blocks.spec.category_counts, strict=True):
        if isinstance(block, DenseBlock):
            counts.append(block.counts.sum(axis=0))
        else:
            summed = np.bincount(block.codes, weights=block.counts, minlength=categories)
            counts.append(summed.astype(np.int64))
    return counts
