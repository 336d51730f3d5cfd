"""Blocks as a model file holds them: one line for each cell, checked against the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pegsynth.arrays import Int64
from pegsynth.blocks import Block, Blocks, DenseBlock, SparseBlock
from pegsynth.blocks.blocks import MOST_ROWS, dense_limit
from pegsynth.errors import ModelError, ParameterError
from pegsynth.hashing import HashSpec
from pegsynth.hashing.order import plain_features
from pegsynth.mechanisms.marginals import stored_marginals
from pegsynth.methods.gibbs.block_fitting import GibbsFit, hash_spec
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan, Keys, detail_count
from pegsynth.methods.stored_model import StoredModel, stored_rows, with_rows
from pegsynth.privacy import NoisyCounts, Selection

if TYPE_CHECKING:
    from pegsynth.methods.gibbs.method import GibbsMethod
    from pegsynth.schema import Schema


def store_blocks(fit: GibbsFit) -> StoredModel:
    """Return the cells of all blocks, the marginals, and the rows if there are any."""
    spec, marginals = fit.blocks.spec, fit.marginals
    return StoredModel(
        heads=spec.heads,
        tail_bits=spec.tail_bits,
        cells=[block.cells() for block in fit.blocks.blocks],
        shares=[line.tolist() for line in marginals.shares] if marginals else [],
        total=marginals.total if marginals else 1.0,
        arrays=with_rows({}, fit.rows),
    )


def load_blocks(stored: StoredModel, schema: Schema) -> GibbsFit:
    """Rebuild blocks; every number is checked against the schema."""
    spec = spec_of(stored, schema)
    blocks = Blocks(spec, tuple(_checked_blocks(stored, spec)))
    marginals = stored_marginals(stored.shares, stored.total, spec.category_counts)
    return GibbsFit(blocks, marginals, stored_rows(stored.arrays, schema))


def spec_of(stored: StoredModel, schema: Schema) -> HashSpec:
    """Return the keys of stored counts."""
    features = len(schema.features)
    lines = stored.heads
    if len(lines) != features or any(not 0 <= h < features for line in lines for h in line):
        raise ModelError("its heads do not fit its schema")
    try:
        return hash_spec(schema, lines, stored.tail_bits)
    except ParameterError as error:
        raise ModelError(f"its manifest is damaged ({error})") from None


def load_gibbs_plan(
    method: GibbsMethod, stored: Mapping[str, Any], schema: Schema, model: StoredModel
) -> GibbsPlan:
    """Rebuild a plan; heads and tail bits are those of the counts."""
    options, events = stored["options"], stored["events"]
    spec = spec_of(model, schema)
    heads = max(len(spec.heads[i]) for i in plain_features(schema))
    if getattr(options, "urn", False):
        raise ModelError("it asks for urns, which no model file holds")
    price = method.restored_price(schema, options, stored, details=detail_count(schema, options))
    return GibbsPlan(
        method=method.name,
        options=options,
        budget=stored["budget"],
        keys=Keys(heads, spec.tail_bits, stored["order"]),
        choice=next((event for event in events if isinstance(event, Selection)), None),
        marginals=next((event for event in events if isinstance(event, NoisyCounts)), None),
        prior=stored["prior"],
        seed_pool=stored["seed_pool"],
        **price,
    )


def _checked_blocks(stored: StoredModel, spec: HashSpec) -> Iterator[Block]:
    for target in range(len(spec.category_counts)):
        yield _checked_block(spec, target, stored.cells[target])


def _checked_block(spec: HashSpec, target: int, cells: tuple[Int64, Int64, Int64]) -> Block:
    keys, codes, counts = cells
    categories, space = spec.category_counts[target], spec.key_space(target)
    sorted_cells = (np.diff(keys) > 0) | ((np.diff(keys) == 0) & (np.diff(codes) > 0))
    if len(keys) and (
        not sorted_cells.all()
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
        return SparseBlock.from_cells(categories, keys, codes, counts)
    table = np.zeros((space, categories), dtype=np.int64)
    table[keys, codes] = counts
    return DenseBlock(table)
