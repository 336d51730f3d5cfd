"""Released blocks in words, for ``pegs inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pegsynth.released import NoisyTable, Released


def describe_released(released: Released, names: Sequence[str]) -> Iterator[str]:
    """Yield the structure of released blocks: all of it was paid for."""
    heads = {block.features[-1]: block for block in released.blocks}
    rows = max(released.total[0], 0)
    yield f"about {rows} rows (noisy); noise is given as its standard deviation, in rows"
    yield "features in the order of drawing:"
    for feature in released.order:
        block = heads.get(feature)
        given = ", ".join(names[h] for h in block.features[:-1]) if block else "nothing"
        noise = f", {_size(released, block)}" if block else ""
        yield f"  {names[feature]}: {_levels(released, feature)}, given {given}{noise}"
    if released.extra:
        yield "tables of the second round, in the order of measuring:"
    times: dict[tuple[int, ...], int] = {}
    for number, table in enumerate(released.extra, start=1):
        shown = " x ".join(names[f] for f in table.features)
        times[table.features] = times.get(table.features, 0) + 1
        again = f", time {times[table.features]}" if times[table.features] > 1 else ""
        yield f"  {number}. {shown}{again}: {_size(released, table)}"


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
