"""A picture of a result: plain rows, and the kind of chart that shows them.

A result knows what there is to see and nothing of how it is drawn; the chart builder of
`reporting` draws rows and does not import results. A `Picture` stands between them: it is
drawn when somebody looks at it, in a notebook or in a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pegsynth.errors import ParameterError
from pegsynth.notebook import CONFIDENTIAL

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
    def chart(self) -> Any:
        """The chart, an Altair object that can be changed and combined."""
        # Looked up when it is needed: results must not depend on how they are drawn, and
        # the libraries that draw take long to load.
        build = getattr(import_module("pegsynth.reporting.charts"), self.kind)
        return build(self.rows, **self.options)

    @cached_property
    def svg(self) -> str:
        """The drawing as SVG; the same rows give the same text."""
        drawn: str = import_module("pegsynth.reporting.drawing").svg_of(self.chart)
        return drawn

    def save(self, path: str | Path) -> tuple[Path, Path]:
        """Write the drawing as ``.svg`` and ``.png``; a confidential one for its owner alone.

        Parameters
        ----------
        path
            Path of the two files without a suffix.
        """
        mode = _OWNER_ONLY if self.confidential else None
        written: tuple[Path, Path] = import_module("pegsynth.reporting.drawing").save_chart(
            self.chart, path, mode=mode
        )
        return written

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        warning = f"<b>{CONFIDENTIAL}</b><br>" if self.confidential else ""
        caption = f"<figcaption>{warning}{escape(self.title)}</figcaption>"
        return f"<figure>{caption}{self.svg}</figure>"
