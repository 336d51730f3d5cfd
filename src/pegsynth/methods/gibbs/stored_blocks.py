"""Blocks as a model file holds them: one line for each cell, checked against the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pegsynth.errors import ModelError, ParameterError
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.marginals import stored_marginals
from pegsynth.methods.gibbs.block_fitting import GibbsFit, hash_spec
from pegsynth.methods.gibbs.blocks import (
    MOST_ROWS,
    Block,
    Blocks,
    DenseBlock,
    SparseBlock,
    dense_limit,
)
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan, Keys, detail_count
from pegsynth.methods.gibbs.merging import most_resolution
from pegsynth.methods.gibbs.order import plain_features
from pegsynth.methods.gibbs.spec import HashSpec, Lines
from pegsynth.methods.stored_model import Arrays, StoredModel, stored_rows, with_rows
from pegsynth.privacy import NoisyCounts, Selection

if TYPE_CHECKING:
    from pegsynth.methods.gibbs.method import GibbsMethod
    from pegsynth.schema import Schema

_LEVELS, _HEAD_LEVELS, _RESOLUTIONS = "levels", "head levels", "resolutions"


def store_blocks(fit: GibbsFit) -> StoredModel:
    """Return the cells of all blocks, the marginals, and the rows if there are any."""
    spec, marginals = fit.blocks.spec, fit.marginals
    return StoredModel(
        heads=spec.heads,
        tail_bits=spec.tail_bits,
        cells=[block.cells() for block in fit.blocks.blocks],
        shares=[line.tolist() for line in marginals.shares] if marginals else [],
        total=marginals.total if marginals else 1.0,
        arrays=with_rows(_stored_levels(fit), fit.rows),
    )


def load_blocks(stored: StoredModel, schema: Schema) -> GibbsFit:
    """Rebuild blocks; every number is checked against the schema."""
    spec = spec_of(stored, schema)
    blocks = Blocks(spec, tuple(_checked_blocks(stored, spec)))
    marginals = stored_marginals(stored.shares, stored.total, schema.category_counts)
    if spec.levels and marginals is None:
        raise ModelError("its levels have no marginals")
    rows = stored_rows(stored.arrays, schema)
    return GibbsFit(blocks, marginals, rows, _resolutions(stored, schema))


def _stored_levels(fit: GibbsFit) -> Arrays:
    """Return levels, digits of heads and resolutions, where categories are merged."""
    spec = fit.blocks.spec
    if not fit.resolutions:
        return {}
    digits = spec.head_levels or tuple(tuple(range(count)) for count in spec.category_counts)
    return {
        _LEVELS: np.concatenate([np.array(line, dtype=np.int64) for line in spec.levels]),
        _HEAD_LEVELS: np.concatenate([np.array(line, dtype=np.int64) for line in digits]),
        _RESOLUTIONS: np.array(fit.resolutions, dtype=np.int64),
    }


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
