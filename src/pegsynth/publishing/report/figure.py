"""A figure of a page and a table of text: what sections are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegsynth.publishing.report.charts import Draw
    from pegsynth.publishing.report.drawing import Drawing

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


def table_of(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", most: int = 200
) -> Table:
    """Make a table of at most so many rows; the caption says when there are more."""
    kept = tuple(tuple(row) for row in rows[:most])
    if len(rows) > most:
        caption = f"{caption} (the first {most:,} of {len(rows):,} rows)".strip()
    return Table(tuple(columns), kept, caption)


@dataclass(frozen=True)
class Figure:
    """One figure, which is drawn when somebody looks at it.

    Parameters
    ----------
    name
        A word for its anchor and its files.
    title, caption
        Heading, and what to see in it.
    kind, rows, look
        What the chart builder draws (`pegsynth.publishing.report.charts.plot`).
    table
        The same in figures, for those who do not see it; None where another figure has it.
    """

    name: str
    title: str
    caption: str
    kind: str | Draw
    rows: Sequence[Mapping[str, Any]]
    look: Mapping[str, Any] = field(default_factory=dict)
    table: Table | None = None

    def drawn(self) -> Drawing:
        """Draw it."""
        from pegsynth.publishing.report.charts import plot

        return plot(self.kind, self.rows, **self.look)

    def inline(self, *, scale: float = 1.0) -> str:
        """Draw it for a page, at `scale` times its size where there is room."""
        return self.drawn().inline(self.title, scale=scale)
