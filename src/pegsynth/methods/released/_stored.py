"""Released blocks as a model file holds them: noisy counts and public structure, in arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.errors import ModelError
from pegsynth.kernels.arrays import Int64
from pegsynth.methods.released._declared import published_designs
from pegsynth.methods.released._details import details_of, details_on_levels, told_details
from pegsynth.methods.released._pairs import PAIR, cell_noise
from pegsynth.methods.released._terms import SCORED, design_of
from pegsynth.methods.released._values import Detail, MeasuredSums, NoisyTable, Released
from pegsynth.methods.stored_model import Arrays, StoredModel

if TYPE_CHECKING:
    from pegsynth.schema import Schema


PREFIX = "released: "
TRANSITIONS = "transitions: "
MOST_SCORED = 1 << 20
_ON_CATEGORIES = (0, 3)
"""Kinds of tables that are not on merged levels: one-way counts and maps."""
_TYPES: dict[str, type] = {
    "deviations": np.float64,
    "public": np.bool_,
    "loud": np.bool_,
    "ordered": np.bool_,
    "sum_deviations": np.float64,
    "sum_bounds": np.float64,
}


def released_arrays(released: Released) -> Arrays:
    """Return released blocks as arrays: noisy counts and public structure only."""
    groups = (
        released.one_ways,
        released.blocks,
        released.extra,
        released.maps,
        released.residuals if released.by_pairs else (),
        () if released.by_pairs else released.residuals,
    )
    tables = [table for group in groups for table in group]
    kinds = [kind for kind, group in enumerate(groups) for _ in group]
    return {
        "total": np.array([released.total[0]], dtype=np.int64),
        "deviations": np.array([released.total[1], *(t.deviation for t in tables)]),
        "kinds": np.array(kinds, dtype=np.int64),
        "widths": np.array([len(t.features) for t in tables], dtype=np.int64),
        "features": np.array([f for t in tables for f in t.features], dtype=np.int64),
        "counts": np.concatenate([t.counts for t in tables]),
        "public": np.array(released.public, dtype=np.bool_),
        "loud": np.array([released.loud], dtype=np.bool_),
        "ordered": np.array(released.ordered, dtype=np.bool_),
        "levels": np.concatenate(released.levels),
        "order": np.array(released.order, dtype=np.int64),
        **_sum_arrays(released.sums),
    }


def _sum_arrays(sums: tuple[MeasuredSums, ...]) -> Arrays:
    """Return the sums of declared analyses as arrays; none where there are no sums."""
    if not sums:
        return {}
    return {
        "sums": np.concatenate([each.sums for each in sums]),
        "sum_sizes": np.array([len(each.sums) for each in sums], dtype=np.int64),
        "sum_deviations": np.array([each.deviation for each in sums]),
        "sum_bounds": np.concatenate([each.bounds for each in sums]),
        "sum_bound_sizes": np.array([len(each.bounds) for each in sums], dtype=np.int64),
        "sum_scored_at": np.concatenate([each.scored_at for each in sums]),
    }


def _sums(held: Arrays, schema: Schema) -> tuple[MeasuredSums, ...]:
    """Return the sums of declared analyses, checked against the schema."""
    if "sums" not in held:
        _require(not schema.analyses)
        return ()
    sizes, bound_sizes = held["sum_sizes"].tolist(), held["sum_bound_sizes"].tolist()
    deviations = held["sum_deviations"].tolist()
    designs = [design_of(analysis, schema) for analysis in schema.analyses]
    _require(len(sizes) == len(bound_sizes) == len(deviations) == len(designs))
    _require(sum(sizes) == len(held["sums"]) and sum(bound_sizes) == len(held["sum_bounds"]))
    _require(all(0 < each < math.inf for each in deviations))
    _require(bound_sizes == [2 * len(design.parts) for design in designs])
    sums = np.split(held["sums"].astype(np.int64), np.cumsum(sizes)[:-1])
    bounds = np.split(held["sum_bounds"], np.cumsum(bound_sizes)[:-1])
    columns = [d.columns(schema) if d.analysis.family in SCORED else 0 for d in designs]
    scored = [count + (count - 1) ** 2 if count else 0 for count in columns]
    _require(sum(scored) == len(held["sum_scored_at"]))
    _require(bool((np.abs(held["sum_scored_at"]) < MOST_SCORED).all()))
    scored_at = np.split(held["sum_scored_at"].astype(np.int64), np.cumsum(scored)[:-1])
    for declared, numbers in zip(designs, scored_at, strict=True):
        _require(not len(numbers) or numbers[declared.columns(schema) - 1] > 0)
    found = tuple(map(MeasuredSums, bounds, sums, deviations, scored_at))
    for design, each in zip(published_designs(schema, found), found, strict=True):
        _require(len(design.factors) == len(each.sums))
    return found


def stored_released(released: Released) -> StoredModel:
    """Return what a model file holds of released blocks."""
    held = released_arrays(released)
    return StoredModel(arrays={PREFIX + name: array for name, array in held.items()})


def stored_pooled(first: Released, transitions: Released) -> StoredModel:
    """Return what a model file holds of first rows and of transitions (R24)."""
    parts = {PREFIX: first, TRANSITIONS: transitions}
    return StoredModel(
        arrays={
            prefix + name: array
            for prefix, released in parts.items()
            for name, array in released_arrays(released).items()
        }
    )


def loaded_released(stored: StoredModel, schema: Schema) -> Released:
    """Rebuild released blocks, checked against the schema."""
    return loaded_under(
        stored, PREFIX, schema.category_counts, details_of(schema), lambda held: _sums(held, schema)
    )


def loaded_under(
    stored: StoredModel,
    prefix: str,
    counts: Sequence[int],
    details: Sequence[Detail],
    sums: Callable[[Arrays], tuple[MeasuredSums, ...]] = lambda _: (),
) -> Released:
    """Rebuild released blocks, checked against the categories and details of their features."""
    held = stored.under(prefix)
    if not held:
        raise ModelError("it does not hold what its method needs")
    try:
        return _checked_released(held, counts, details, sums)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError):
        raise ModelError("its released blocks do not fit its schema") from None


def _checked_released(
    held: Arrays,
    counts: Sequence[int],
    details: Sequence[Detail],
    sums: Callable[[Arrays], tuple[MeasuredSums, ...]],
) -> Released:
    """Raise ValueError for anything that a release could not have written."""
    for name, array in held.items():
        _require(array.ndim == 1 and array.dtype == _TYPES.get(name, np.int64))
    levels = tuple(np.split(held["levels"].astype(np.int64), np.cumsum(counts)[:-1]))
    for line, count in zip(levels, counts, strict=True):
        found = np.unique(line)
        _require(len(line) == count and np.array_equal(found, np.arange(len(found))))
    sizes = [int(line.max()) + 1 for line in levels]
    _require(max(sizes) < 1 << 16)
    features = [
        tuple(part.tolist()) for part in np.split(held["features"], np.cumsum(held["widths"])[:-1])
    ]
    deviations = held["deviations"].astype(np.float64)
    _require(len(deviations) == len(features) + 1 == len(held["kinds"]) + 1)
    _require(bool(((deviations > 1e-140) & (deviations < 1e140)).all()))
    tables: tuple[list[NoisyTable], ...] = ([], [], [], [], [], [])
    start, noisy = 0, held["counts"].astype(np.int64)
    for names, kind, deviation in zip(
        features, held["kinds"].tolist(), deviations[1:], strict=True
    ):
        _require(len(set(names)) == len(names) > 0 and all(0 <= f < len(counts) for f in names))
        _require(0 <= kind < len(tables))
        cells = math.prod((counts if kind in _ON_CATEGORIES else sizes)[f] for f in names)
        _require(start + cells <= len(noisy))
        tables[kind].append(NoisyTable(names, noisy[start : start + cells], float(deviation)))
        start += cells
    residuals = (*tables[4], *tables[5])
    _require(all(sizes[f] > 1 for t in residuals for f in t.features))
    _require(all(len(t.features) in (2, 3) for t in tables[4]))
    _require(all(len(t.features) == 2 for t in tables[5]))
    _require(all(list(t.features) == sorted(t.features) for t in residuals))
    _require(not tables[4] or not (tables[2] or tables[5]))
    order = tuple(held["order"].tolist())
    placed = {feature: place for place, feature in enumerate(order)}
    _require(start == len(noisy) and sorted(order) == list(range(len(counts))))
    _require([t.features for t in tables[0]] == [(f,) for f in range(len(counts))])
    drawn = [t.features[-1] for t in tables[1]]
    _require(len(set(drawn)) == len(drawn))
    _require(all(placed[h] < placed[t.features[-1]] for t in tables[1] for h in t.features[:-1]))
    told = _told(tables[3], counts)
    _require(all(placed[each.parent] < placed[each.feature] for each in told))
    _require(not {each.feature for each in told} & set(drawn))
    _require(len(held["ordered"]) == len(held["public"]) == len(counts))
    _require(len(held["total"]) == len(held["loud"]) == 1)
    return Released(
        (int(held["total"][0]), float(deviations[0])),
        tuple(tables[0]),
        tuple(bool(flag) for flag in held["public"]),
        tuple(bool(flag) for flag in held["ordered"]),
        bool(held["loud"][0]),
        levels,
        order,
        tuple(tables[1]),
        tuple(tables[2]),
        (*_details(details, levels, placed), *details_on_levels((), told, levels)),
        tuple(tables[3]),
        residuals=residuals,
        by_pairs=bool(tables[4]),
        sums=sums(held),
    )


def _told(maps: list[NoisyTable], counts: Sequence[int]) -> tuple[Detail, ...]:
    """Return the features that others tell, each once and none by what it tells itself."""
    _require(all(len(table.features) == 2 for table in maps))
    _require(len({table.features[1] for table in maps}) == len(maps))
    try:
        return told_details(maps, counts)
    except StopIteration:
        raise ValueError from None


def _details(
    details: Sequence[Detail], levels: tuple[Int64, ...], placed: Mapping[int, int]
) -> tuple[Detail, ...]:
    """Return public details on merged levels, none of which crosses its parent."""
    found = []
    for each in details:
        line = levels[each.feature]
        on_levels = each.on_levels(line)
        _require(bool((on_levels.allowed[:, line] == each.allowed).all()))
        _require(len(np.unique(levels[each.parent])) == len(levels[each.parent]))
        _require(placed[each.parent] < placed[each.feature])
        found.append(on_levels)
    return tuple(found)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def describe_released(released: Released, names: Sequence[str]) -> Iterator[str]:
    """Yield the structure of released blocks: all of it was paid for."""
    heads = {block.features[-1]: block for block in released.blocks}
    told = {table.features[1]: table for table in released.maps}
    rows = max(released.total[0], 0)
    yield f"about {rows} rows (noisy); noise is given as its standard deviation, in rows"
    yield "features in the order of drawing:"
    for feature in released.order:
        if feature in told:
            teller, loud = names[told[feature].features[0]], told[feature].deviation
            yield f"  {names[feature]}: told by {teller}, a map with noise of {loud:.4g} rows"
            continue
        block = heads.get(feature)
        given = ", ".join(names[h] for h in block.features[:-1]) if block else "nothing"
        noise = f", {_size(released, block)}" if block else ""
        after = "" if _drawn_by_pairs(released) else f", given {given}{noise}"
        yield f"  {names[feature]}: {_levels(released, feature)}{after}"
    yield from _residuals(released, names)
    if released.extra:
        yield "tables of the second round, in the order of measuring:"
    times: dict[tuple[int, ...], int] = {}
    for number, table in enumerate(released.extra, start=1):
        shown = " x ".join(names[f] for f in table.features)
        times[table.features] = times.get(table.features, 0) + 1
        again = f", time {times[table.features]}" if times[table.features] > 1 else ""
        yield f"  {number}. {shown}{again}: {_size(released, table)}"


def _residuals(released: Released, names: Sequence[str]) -> Iterator[str]:
    """Yield a line for all pairs, and one for each residual that was chosen after them."""
    seen: set[tuple[int, ...]] = set()
    first: list[NoisyTable] = []
    chosen: list[NoisyTable] = []
    for table in released.residuals:
        again = not released.by_pairs or len(table.features) > PAIR or table.features in seen
        (chosen if again else first).append(table)
        seen.add(table.features)
    if first:
        noise = [cell_noise(t.deviation, [released.sizes[f] for f in t.features]) for t in first]
        drawn = "; features are drawn by the pair tables that they give"
        yield (
            f"residuals of {_counted(len(first), 'pair')}, noise {min(noise):.4g} to "
            f"{max(noise):.4g} rows{drawn if _drawn_by_pairs(released) else ''}"
        )
    if chosen:
        yield "residuals of the second round, in the order of measuring:"
    for number, table in enumerate(chosen, start=1):
        levels = [released.sizes[f] for f in table.features]
        shown = " x ".join(names[f] for f in table.features)
        yield f"  {number}. {shown}: noise {cell_noise(table.deviation, levels):.4g} rows"


def _drawn_by_pairs(released: Released) -> bool:
    """Say whether pair tables decide order and heads; quiet tables have blocks for that."""
    return released.by_pairs and not released.blocks


def _levels(released: Released, feature: int) -> str:
    """Say how many levels a feature has, and of how many categories they were merged."""
    levels, categories = released.sizes[feature], len(released.levels[feature])
    merged = f" of {categories} categories" if levels < categories else ""
    return f"{_counted(levels, 'level')}{merged}"


def _size(released: Released, table: NoisyTable) -> str:
    """Say how large a table is, on levels and not on categories, and how loud its noise."""
    levels = " x ".join(str(released.sizes[feature]) for feature in table.features)
    cells = _counted(len(table.counts), "cell")
    return f"{cells} ({levels} levels), noise {table.deviation:.4g} rows"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
