"""Combined estimates as columns, and as text."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pegsynth.inference.combine import Combined

HEADER: Final = ("term", "estimate", "std_error", "dof", "low", "high", "rule")


def columns(combined: Combined, level: float = 0.95) -> dict[str, list[Any]]:
    """Return the figures as lists, one entry per quantity."""
    low, high = combined.interval(level)
    figures = (combined.estimate, combined.std_error, combined.degrees_of_freedom, low, high)
    lists = [[float(x) for x in np.atleast_1d(figure)] for figure in figures]
    count = len(lists[0])
    names = combined.names or [f"quantity {place}" for place in range(1, count + 1)]
    return dict(zip(HEADER, [list(names), *lists, [combined.rule] * count], strict=True))


def text(combined: Combined, level: float = 0.95) -> str:
    """Return an aligned table, the level of its intervals, and the notes."""
    found = columns(combined, level)
    lines = [HEADER, *(_line(row) for row in zip(*found.values(), strict=True))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [_aligned(line, widths) for line in lines]
    notes = [f"- {note}" for note in combined.notes]
    return "\n".join([*aligned, "", f"low to high: {level:.4g} interval", *notes])


def _line(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(_number(x) if isinstance(x, float) else " ".join(str(x).split()) for x in row)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    """Put text to the left and figures to the right of their columns."""
    first, *middle, last = zip(line, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in middle), last[0]]
    return "  ".join(cells).rstrip()
