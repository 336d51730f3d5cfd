"""Values of all cells, by arm, level and figure.

`Results` is what tables, figures and findings read. Nothing in it depends on the order in
which cells were finished.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.inference.statistics import Estimate
from studies.paper.cell_file import CellValues
from studies.paper.repeats import mean
from studies.paper.work_cells import REASON, Cell

if TYPE_CHECKING:
    import polars as pl

Place = tuple[str, float | None]


@dataclass(frozen=True)
class Results:
    """What was measured.

    Parameters
    ----------
    repeats
        Values of every repeat, by arm and level.
    floors
        What chance alone would give, by population and figure.
    coefficients
        The regression coefficients of each population, by figure.
    """

    repeats: Mapping[Place, Sequence[CellValues]]
    floors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    coefficients: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cells: Mapping[Cell, CellValues],
        *,
        floors: Mapping[str, Mapping[str, float]] | None = None,
        coefficients: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Results:
        """Sort cells by arm and level, repeats in order."""
        places: dict[Place, list[CellValues]] = {}
        for cell in sorted(cells, key=lambda each: each.repeat):
            places.setdefault((cell.arm, cell.level), []).append(cells[cell])
        return cls(places, floors or {}, coefficients or {})

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each figure of each repeat (Polars)."""
        import polars as pl

        kinds = {
            "arm": pl.String,
            "level": pl.Float64,
            "repeat": pl.Int64,
            "figure": pl.String,
            "value": pl.Float64,
        }
        lines = [
            (arm, level, number, figure, value)
            for (arm, level), cells in self.repeats.items()
            for number, cell in enumerate(cells, start=1)
            for figure, value in cell.items()
            if isinstance(value, int | float)
        ]
        return pl.DataFrame(lines, schema=kinds, orient="row")

    def values(self, arm: str, level: float | None, figure: str) -> NDArray[np.float64]:
        """Return a figure of all repeats, NaN where it could not be computed."""
        found = [each.get(figure) for each in self.repeats.get((arm, level), ())]
        return np.array([math.nan if not isinstance(v, (int, float)) else v for v in found])

    def mean(self, arm: str, level: float | None, figure: str) -> Estimate:
        """Return the mean of a figure over repeats, with its interval."""
        return mean(self.values(arm, level, figure))

    def levels(self, arm: str) -> list[float]:
        """Return the levels at which an arm was drawn, in order."""
        return sorted(level for name, level in self.repeats if name == arm and level is not None)

    def figures(self) -> list[str]:
        """List the names of all figures, in the order of their first appearance."""
        lines = (line for lines in self.repeats.values() for line in lines)
        return [name for name in dict.fromkeys(n for line in lines for n in line) if name != REASON]

    def reasons(self) -> dict[Place, str]:
        """Say why an arm has no values at a level, where it has none."""
        return {
            place: str(line[REASON])
            for place, lines in self.repeats.items()
            for line in lines
            if REASON in line
        }
