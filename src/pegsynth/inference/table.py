"""Combined estimates as columns, as text, as a picture and as a card for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from pegsynth.inference.combine import Combined
from pegsynth.notebook import card, table
from pegsynth.picture import Picture

HEADER: Final = ("term", "estimate", "std_error", "dof", "low", "high", "rule")
_MOST_PANELS = 60


def columns(combined: Combined, level: float = 0.95) -> dict[str, list[Any]]:
    """Return the figures as lists, one entry per quantity."""
    low, high = combined.interval(level)
    figures = (combined.estimate, combined.std_error, combined.degrees_of_freedom, low, high)
    lists = [[float(x) for x in np.atleast_1d(figure)] for figure in figures]
    count = len(lists[0])
    names = combined.names or [f"quantity {place}" for place in range(1, count + 1)]
    every: list[list[Any]] = [list(names), *lists, [combined.rule] * count]
    found: dict[str, list[Any]] = dict(zip(HEADER, every, strict=True))
    if combined.statuses:
        found["status"] = list(combined.statuses)
    return found


def text(
    combined: Combined, level: float = 0.95, more: Mapping[str, list[Any]] | None = None
) -> str:
    """Return an aligned table, with more columns if wanted, the level of intervals, and notes."""
    found = columns(combined, level)
    rule = found.pop("rule")
    status = {"status": found.pop("status")} if "status" in found else {}
    found |= {**(more or {}), **status, "rule": rule}
    lines = [tuple(found), *(_line(row) for row in zip(*found.values(), strict=True))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [_aligned(line, widths) for line in lines]
    notes = [f"- {note}" for note in combined.notes]
    return "\n".join([*aligned, "", f"low to high: {level:.4g} interval", *notes])


def picture(combined: Combined, level: float = 0.95) -> Picture:
    """Draw the estimates with their intervals, each on a scale of its own."""
    found = columns(combined, level)
    names = ("term", "estimate", "low", "high")
    rows = [
        {**dict(zip(names, row, strict=True)), "series": ""}
        for row in zip(*(found[name] for name in names), strict=True)
    ]
    title = f"estimates and {level:.4g} intervals by the rule {combined.rule}"
    return Picture(
        "forest_plot", rows[:_MOST_PANELS], title, {"label": "term", "value": "estimate"}
    )


def combined_card(combined: Combined) -> str:
    """Return the figures with 0.95 intervals; what is drawn from released tables is public."""
    found = columns(combined)
    title = f"Estimates combined by the rule {combined.rule}, with 0.95 intervals"
    rows = zip(*found.values(), strict=True)
    return card(title, [" ".join(combined.notes)], table=table(tuple(found), rows))


def _line(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(_number(x) if isinstance(x, float) else " ".join(str(x).split()) for x in row)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    """Put text to the left and figures to the right of their columns."""
    first, *middle, last = zip(line, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in middle), last[0]]
    return "  ".join(cells).rstrip()
