"""Predicted error against epsilon, from public quantities alone: figures, text and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegsynth.picture import Picture

if TYPE_CHECKING:
    from pegsynth.methods.forecast import Forecast

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_BAR = 40


@dataclass(frozen=True)
class CurvePoint:
    """What the best method would give at one epsilon.

    Parameters
    ----------
    columns, pairs
        Predicted shares of rows out of place; `columns` is None where only pairs are known.
    """

    epsilon: float
    method: str
    columns: float | None
    pairs: float


@dataclass(frozen=True)
class ErrorCurve:
    """Predicted errors over a range of budgets."""

    points: tuple[CurvePoint, ...]

    def lines(self) -> list[str]:
        """Write it as text, a bar for every epsilon as long as the error of pairs."""
        largest = max((each.pairs for each in self.points), default=1.0)
        found = [f"{'epsilon':>8}  {'columns off':>11}  {'pairs off':>9}"]
        for each in self.points:
            columns = "-" if each.columns is None else f"{each.columns:.1%}"
            bar = "#" * max(round(_BAR * each.pairs / largest), 1)
            found.append(
                f"{each.epsilon:>8g}  {columns:>11}  {each.pairs:>9.1%}  {bar} {each.method}"
            )
        return found

    def plot(self) -> Picture:
        """Draw both errors against epsilon."""
        named = (("columns", "columns off"), ("pairs", "pairs off"))
        rows = [
            {"x": each.epsilon, "y": value, "series": series}
            for field, series in named
            for each in self.points
            if (value := getattr(each, field)) is not None
        ]
        options = {
            "x_title": "epsilon",
            "y_title": "predicted share of rows out of place",
            "as_percent": True,
            "width": 420,
            "height": 260,
        }
        return Picture("curves", rows, "predicted error against epsilon", options)


def error_curve(
    at: Callable[[float], Forecast], epsilons: Sequence[float] = EPSILONS
) -> ErrorCurve:
    """Predict for every epsilon what the best method would give; budgets that none meets lack.

    Parameters
    ----------
    at
        The forecast for an epsilon, all else the same.
    """
    points = []
    for epsilon in epsilons:
        best = at(epsilon).best
        if best is not None:
            points.append(CurvePoint(epsilon, best.method, best.columns_error, best.error))
    return ErrorCurve(tuple(points))
