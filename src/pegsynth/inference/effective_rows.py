"""How many rows of equal weight weighted rows are worth (Kish), counted as they are written.

Goes in: the weights of a table, in parts. Comes out: (sum w)^2 / sum w^2. It is a figure of the
released weights alone, so it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from pegsynth.arrays import Float64


@dataclass(frozen=True)
class EffectiveRows:
    """Sums over the weights of a table.

    Parameters
    ----------
    rows
        How many weights there are.
    total, squares
        Their sum, and the sum of their squares.
    what
        What has a weight: rows, or units.

    Notes
    -----
    Kish (1965), Survey Sampling, section 8.2.
    """

    rows: int = 0
    total: float = 0.0
    squares: float = 0.0
    what: str = "rows"

    def plus(self, weights: Float64) -> EffectiveRows:
        """Return the sums with further weights."""
        return EffectiveRows(
            self.rows + len(weights),
            self.total + float(weights.sum()),
            self.squares + float(weights @ weights),
            self.what,
        )

    @property
    def value(self) -> float:
        """The number of rows of equal weight; 0 where no row counts."""
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    @property
    def share(self) -> float:
        """The same as a proportion of the rows."""
        return self.value / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        """Say it in half a sentence.

        >>> str(EffectiveRows(rows=4, total=4.0, squares=10.0))
        '1.6 effective rows of 4 (40 %)'
        """
        few = f"{self.value:.1f}" if self.value < 10 else f"{self.value:,.0f}"
        return f"{few} effective {self.what} of {self.rows:,} ({self.share:.0%})".replace("%", " %")


def effective_rows(weights: Float64) -> float:
    """Return as how many rows of equal weight weighted rows count."""
    return EffectiveRows().plus(weights).value
