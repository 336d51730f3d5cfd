"""Released blocks in words, for ``pegs inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pegsynth.methods.released.pair_residuals import PAIR, cell_noise
from pegsynth.methods.released.published import NoisyTable, Released


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
