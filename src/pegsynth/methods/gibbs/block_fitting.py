"""Blocks of a table, fitted: heads are chosen and paid for, then every target is counted.

What is left is confidential: it holds exact counts. A model file holds one line for each cell;
what is read from one is checked against the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.pair_counts import PairCounts
from pegsynth.errors import BudgetError, ModelError, ParameterError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.mechanisms import answers
from pegsynth.mechanisms.marginals import Marginals, noisy_marginals
from pegsynth.methods.base import Fitting
from pegsynth.methods.gibbs.blocks import (
    MOST_ROWS,
    Block,
    Blocks,
    DenseBlock,
    SparseBlock,
    dense_limit,
)
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan, Keys
from pegsynth.methods.gibbs.merging import most_resolution
from pegsynth.methods.gibbs.order import (
    Heads,
    detail_features,
    heads_by_choice,
    heads_by_score,
    pair_scores,
    plain_features,
    public_heads,
    with_parents,
)
from pegsynth.methods.gibbs.spec import HashSpec, Lines
from pegsynth.methods.ledgers import of_heads
from pegsynth.methods.stored_model import Arrays, Cells, StoredModel
from pegsynth.privacy import Ledger, NoisyCounts, NotPrivate
from pegsynth.random import RandomStream
from pegsynth.schema import Schema

_LEVELS, _HEAD_LEVELS, _RESOLUTIONS = "levels", "head levels", "resolutions"


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
    work: Fitting, keys: Keys, plan: GibbsPlan | None = None
) -> tuple[GibbsFit, Ledger]:
    """Choose heads and count blocks, paying for what the choice looks at (R10).

    Parameters
    ----------
    plan
        What a budget has paid for; None for blocks without a budget.
    """
    schema, stream, ledger, marginals = work.schema, work.stream, work.ledger, None
    paid = plan.marginals if plan else None
    if keys.order == "public":
        chosen = public_heads(schema, keys.heads)
        ledger = ledger.assume(*of_heads(schema, keys.heads))
    else:
        pairs = work.table.pairs(schema.category_counts, order_rows=keys.order_rows)
        if keys.order == "private":
            marginals, chosen = _private_heads(schema, pairs, plan, stream)
        else:
            plain = np.ix_(*[plain_features(schema)] * 2)
            scores = pairs.mutual_information()[plain]
            chosen = with_parents(schema, mapped(schema, heads_by_score(scores, keys.heads)))
            ledger = ledger.add(NotPrivate.because("data-order"))
    spec, drawn = hash_spec(schema, chosen, keys.tail_bits), keys.order == "private"
    resolutions: tuple[int, ...] = ()
    if plan and plan.merges and paid:
        if marginals is None:
            marginals = paid_marginals(work, paid)
        merging = plan.merging(schema, spec, marginals)
        spec, resolutions, drawn = merging.spec, merging.resolutions, True
    blocks = work.table.blocks(spec, drawn_heads=drawn and not stream.seeded)
    if paid and marginals is None:
        marginals = noisy_marginals(one_way_counts(blocks), paid, stream)
    return GibbsFit(blocks, marginals, resolutions=resolutions), ledger


def hash_spec(schema: Schema, heads: Heads, tail_bits: int) -> HashSpec:
    """Return the keys of a schema's features, details by their parent alone."""
    details = detail_features(schema)
    return HashSpec(schema.names, schema.category_counts, heads, tail_bits, details)


def mapped(schema: Schema, heads: Heads) -> Heads:
    """Turn heads that were chosen among the plain features into features of the schema."""
    plain = plain_features(schema)
    return tuple(tuple(plain[i] for i in line) for line in heads)


def _private_heads(
    schema: Schema, pairs: PairCounts, plan: GibbsPlan | None, stream: RandomStream
) -> tuple[Marginals, Heads]:
    """Pay for marginals, then for every choice of a head (R10)."""
    if plan is None or plan.marginals is None or plan.choice is None:
        raise BudgetError("a private order is paid out of --epsilon; state that when fitting")
    choice = plan.choice
    marginals = noisy_marginals(pairs.one_way_counts(), plan.marginals, stream)
    scores = pair_scores(pairs, marginals.shares, marginals.total)
    words = stream.substream()
    plain = plain_features(schema)
    scores = scores[np.ix_(plain, plain)]
    heads = choice.count // len(plain)
    chosen = heads_by_choice(
        scores, heads, lambda line: answers.chosen(line, choice, stream, words)
    )
    return marginals, with_parents(schema, mapped(schema, chosen))


def counted_alone(work: Fitting) -> list[Int64]:
    """Return the exact one-way counts, in a pass of their own: blocks without heads or tail."""
    spec = hash_spec(work.schema, ((),) * len(work.schema.features), 0)
    return one_way_counts(work.table.blocks(spec, drawn_heads=False))


def paid_marginals(work: Fitting, event: NoisyCounts) -> Marginals:
    """Return noisy one-way counts, in a pass of their own."""
    return noisy_marginals(counted_alone(work), event, work.stream)


def one_way_counts(blocks: Blocks) -> list[Int64]:
    """Return the exact one-way counts, which the blocks hold already."""
    counts = []
    for block, categories in zip(blocks.blocks, blocks.spec.category_counts, strict=True):
        if isinstance(block, DenseBlock):
            counts.append(block.counts.sum(axis=0))
        else:
            summed = np.bincount(block.codes, weights=block.counts, minlength=categories)
            counts.append(summed.astype(np.int64))
    return counts


def store_blocks(fit: GibbsFit) -> StoredModel:
    """Return the cells of all blocks, the marginals, and the rows if there are any."""
    spec = fit.blocks.spec
    levels: Arrays = {}
    if fit.resolutions:
        digits = spec.head_levels or tuple(tuple(range(count)) for count in spec.category_counts)
        levels = {
            _LEVELS: np.concatenate([np.array(line, dtype=np.int64) for line in spec.levels]),
            _HEAD_LEVELS: np.concatenate([np.array(line, dtype=np.int64) for line in digits]),
            _RESOLUTIONS: np.array(fit.resolutions, dtype=np.int64),
        }
    cells = [block.cells() for block in fit.blocks.blocks]
    return StoredModel(spec.heads, spec.tail_bits, cells, fit.marginals, fit.rows, levels)


def load_blocks(stored: StoredModel, schema: Schema) -> GibbsFit:
    """Rebuild blocks; every number is checked against the schema."""
    spec = spec_of(stored, schema)
    blocks = Blocks(spec, tuple(_checked_blocks(stored.cells, spec)))
    if spec.levels and stored.marginals is None:
        raise ModelError("its levels have no marginals")
    return GibbsFit(blocks, stored.marginals, stored.rows, _resolutions(stored, schema))


def spec_of(stored: StoredModel, schema: Schema) -> HashSpec:
    """Return the keys of stored counts."""
    features = len(schema.features)
    lines = stored.heads
    if len(lines) != features or any(not 0 <= h < features for line in lines for h in line):
        raise ModelError("its heads do not fit its schema")
    try:
        return _with_levels(hash_spec(schema, lines, stored.tail_bits), stored, schema)
    except ParameterError as error:
        raise ModelError(f"its manifest is damaged ({error})") from None


def _with_levels(spec: HashSpec, stored: StoredModel, schema: Schema) -> HashSpec:
    """Return the keys in levels, where categories were merged before they were counted."""
    if not any(name in stored.arrays for name in (_LEVELS, _HEAD_LEVELS, _RESOLUTIONS)):
        return spec
    if not _resolutions(stored, schema):
        raise ModelError("its levels are incomplete")
    levels = _lines(stored, _LEVELS, schema.category_counts)
    broken = any(
        {levels[f][c] for c in codes} & {levels[f][c] for c in others}
        for rule in schema.rules
        for f, codes in rule.forbidden
        for others in [frozenset(range(schema.category_counts[f])) - codes]
    )
    if broken:
        raise ModelError("its levels do not fit the rules of its schema")
    counts = tuple(max(line) + 1 for line in levels)
    digits = _lines(stored, _HEAD_LEVELS, counts)
    in_full = all(line == tuple(range(len(line))) for line in digits)
    digits = () if in_full else digits
    return replace(spec, category_counts=counts, levels=levels, head_levels=digits)


def _resolutions(stored: StoredModel, schema: Schema) -> tuple[int, ...]:
    found = stored.arrays.get(_RESOLUTIONS)
    if found is None:
        return ()
    fits = found.shape == (len(schema.features),) and found.dtype == np.int64
    if not fits or found.min() < 1 or found.max() > most_resolution(max(schema.category_counts)):
        raise ModelError("its levels do not fit its schema")
    return tuple(found.tolist())


def _lines(stored: StoredModel, name: str, counts: Sequence[int]) -> Lines:
    """Return a line of levels for each feature, each level having at least one member."""
    flat = stored.arrays.get(name)
    if flat is None or flat.shape != (sum(counts),) or flat.dtype != np.int64:
        raise ModelError("its levels do not fit its schema")
    lines = np.split(flat, np.cumsum(counts)[:-1])
    if any(line.min() != 0 or len(np.unique(line)) != line.max() + 1 for line in lines):
        raise ModelError("its levels do not fit its schema")
    return tuple(tuple(line.tolist()) for line in lines)


def _checked_blocks(cells: Sequence[Cells], spec: HashSpec) -> Iterator[Block]:
    for target, (categories, (keys, codes, counts)) in enumerate(
        zip(spec.category_counts, cells, strict=True)
    ):
        space = spec.key_space(target)
        later: NDArray[np.bool_] = np.diff(keys) > 0
        if len(keys) and (
            not (later | ((np.diff(keys) == 0) & (np.diff(codes) > 0))).all()
            or keys[0] < 0
            or int(keys[-1]) >= space
            or codes.min() < 0
            or codes.max() >= categories
            or counts.min() < 1
            or counts.max() > MOST_ROWS
            or int(counts.sum()) > MOST_ROWS
        ):
            raise ModelError(f"the counts of feature {spec.names[target]!r} do not fit the schema")
        if space * categories > dense_limit(len(spec.category_counts)):
            yield SparseBlock.from_cells(categories, keys, codes, counts)
        else:
            table = np.zeros((space, categories), dtype=np.int64)
            table[keys, codes] = counts
            yield DenseBlock(table)
