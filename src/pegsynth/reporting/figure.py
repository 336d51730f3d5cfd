"""A figure of a page: how to draw it at any width, and the same figures as a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegsynth.reporting.drawing import svg_of
from pegsynth.reporting.inline import inline_svg

if TYPE_CHECKING:
    from pegsynth.reporting.drawing import Chart


# A number, with a sign, unit or interval; what was not computed; nothing.
_FIGURE = re.compile(r"(?:[<>~≤≥≈(\[]?\s*[-+]?[\d.][^a-zA-Z]{0,24}|n/a|)$|-?[\d.,%]+ to ")


@dataclass(frozen=True)
class Table:
    """A table of text; the first column names its rows.

    Parameters
    ----------
    columns
        Headings.
    rows
        Cells as text, as many in each row as there are columns.
    caption
        What it shows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    @property
    def figures(self) -> tuple[bool, ...]:
        """Say of each column but the first whether it holds short figures and no words."""
        return tuple(
            place > 0 and all(_FIGURE.match(row[place]) for row in self.rows)
            for place in range(len(self.columns))
        )


@dataclass(frozen=True)
class Figure:
    """One figure.

    Parameters
    ----------
    name
        A word for its anchor and its files.
    title, caption
        Heading, and what to see in it.
    chart
        A chart, or a function that makes one when it is needed.
    table
        The same in figures, for those who do not see it; None where another figure has it.
    targets
        Whether its points can be pointed at one by one.
    """

    name: str
    title: str
    caption: str
    chart: Chart | Callable[[], Chart]
    table: Table | None = None
    targets: bool = False


def chart_of(figure: Figure) -> Chart:
    """Return the chart of a figure."""
    return figure.chart() if callable(figure.chart) else figure.chart


def drawn(figure: Figure, *, scale: float = 1.0) -> dict[str, Any]:
    """Draw a figure for the page, at `scale` times its size where there is room."""
    svg = svg_of(chart_of(figure))
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "svg": inline_svg(svg, label=figure.title, targets=figure.targets, scale=scale),
        "table": figure.table,
    }


def table_of(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", most: int = 200
) -> Table:
    """Make a table of at most so many rows; the caption says when there are more."""
    kept = tuple(tuple(row) for row in rows[:most])
    if len(rows) > most:
        caption = f"{caption} (the first {most:,} of {len(rows):,} rows)".strip()
    return Table(tuple(columns), kept, caption)
