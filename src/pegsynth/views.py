"""Results as short HTML, for the cell of a notebook.

A result says what its card holds: lines, a table, whether it is confidential. All escaping
and all cutting is done here. No card is longer than `LONGEST` characters, however many
features, events or terms a result has, because notebooks are saved, mailed and compared
with whatever they show; `to_frame()` gives everything.

A picture of a result: plain rows, and the kind of chart that shows them.

A result knows what there is to see and nothing of how it is drawn; the chart builder of
`publishing.report` draws rows and does not import results. A `Picture` stands between them: it is
drawn when somebody looks at it, in a notebook or in a file.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

from pegsynth.errors import ParameterError

LONGEST: Final = 6_000
"""The most characters of a card."""

CONFIDENTIAL: Final = "CONFIDENTIAL: computed from the original table"
"""What a card says first that holds figures of the original."""

_TABLE_SPACE = 3_800
_LINE_SPACE = 700
_MOST_LINES = 2
_MOST_COLUMNS = 9
_CELL, _HEADING = 48, 80
_WARNING = "color:#b00020;font-weight:bold"


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of cells as text, the cells of a column below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def card(
    title: str,
    lines: Sequence[str] = (),
    *,
    table: str = "",
    warning: str = "",
) -> str:
    """Put a card together.

    Parameters
    ----------
    title
        What the result is; plain text.
    lines
        A sentence or two; plain text, cut where it is long.
    table
        As `table` returns it.
    warning
        Why the card must not be passed on, shown first.
    """
    parts = [
        f'<p style="{_WARNING}">{_fitting(warning, _HEADING * 2)}</p>' if warning else "",
        f"<p><b>{_fitting(title, _HEADING * 2)}</b></p>",
        *(f"<p>{_fitting(line, _LINE_SPACE)}</p>" for line in lines[:_MOST_LINES]),
        table,
    ]
    return f'<div class="pegsynth">{"".join(parts)}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of as many lines as there is space for; the rest is counted."""
    rows = [tuple(row) for row in rows]
    shown = range(min(len(header), _MOST_COLUMNS))
    cells = "".join(f"<th>{_fitting(str(header[column]), _CELL)}</th>" for column in shown)
    head = f"<tr>{cells}</tr>"
    lines: list[str] = []
    space = _TABLE_SPACE - len(head)
    for row in rows:
        line = "".join(f"<td>{_fitting(cell_text(row[column]), _CELL)}</td>" for column in shown)
        line = f"<tr>{line}</tr>"
        if len(line) > space:
            break
        space -= len(line)
        lines.append(line)
    rest = [
        f"{count:,} more {what}"
        for count, what in (
            (len(rows) - len(lines), "lines"),
            (len(header) - len(shown), "columns"),
        )
        if count
    ]
    more = f"<p>… {' and '.join(rest)}: to_frame() gives all</p>" if rest else ""
    return f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>{more}"


def cell_text(value: Any) -> str:
    """Return one figure or text as a cell shows it; what is not known is blank."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _fitting(text: str, most: int) -> str:
    """Return text escaped and cut so that what comes out is no longer than `most`.

    Cut before it is escaped: half an entity would be shown as it stands.
    """
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    escaped = html.escape(plain)
    if len(escaped) <= most:
        return escaped
    pieces, space = [], most - 1
    for character in plain:
        piece = html.escape(character)
        if len(piece) > space:
            break
        space -= len(piece)
        pieces.append(piece)
    return "".join(pieces) + "…"


Kind = Literal["histograms", "forest_plot", "curves", "heat_map", "risk_utility_map"]

_OWNER_ONLY = 0o600


@dataclass(frozen=True, eq=False)
class Picture:
    """Rows and how to draw them; a notebook shows the drawing.

    Parameters
    ----------
    kind
        The function of the chart builder that draws them.
    rows
        What is drawn, as plain dictionaries.
    title
        What is to be seen, in words.
    options
        Further arguments of that function.
    confidential
        Whether the rows hold figures of the original table.
    """

    kind: Kind
    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    title: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    confidential: bool = False

    def __post_init__(self) -> None:
        if not self.rows:
            raise ParameterError(f"there is nothing to draw: {self.title} has no figures")

    @cached_property
    def _drawing(self) -> Any:
        # Looked up when it is needed: results must not depend on how they are drawn.
        plot = import_module("pegsynth.publishing.report.charts").plot
        return plot(self.kind, self.rows, **self.options)

    @property
    def svg(self) -> str:
        """The drawing as SVG; the same rows give the same text."""
        drawn: str = self._drawing.svg
        return drawn

    def save(self, path: str | Path) -> list[Path]:
        """Write the drawing; a confidential one for its owner alone.

        Parameters
        ----------
        path
            Path of the files without a suffix: ``.svg``, and ``.png`` where the extra ``figures``
            is installed.
        """
        save = import_module("pegsynth.publishing.report.drawing").save_drawing
        mode = _OWNER_ONLY if self.confidential else None
        written: list[Path] = save(self._drawing, path, mode=mode)
        return written

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        warning = f"<b>{CONFIDENTIAL}</b><br>" if self.confidential else ""
        caption = f"<figcaption>{warning}{escape(self.title)}</figcaption>"
        return f"<figure>{caption}{self.svg}</figure>"
