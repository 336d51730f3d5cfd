"""Predicted error against epsilon, from public quantities alone: figures, text and a picture.

What each method could do with a budget, from public quantities alone.

`forecast` settles a plan for every method that can predict and asks it how far pair tables
will be from those of the data, given the schema and the stated number of original rows.
`settle_method` takes the best of them for ``--method auto``, on the command line and in
Python. No data is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.base import Plan, Prediction
from pegsynth.methods.plan_model import PublicFigures, beaten, figures_of
from pegsynth.methods.registry import methods
from pegsynth.options import AUTO, PAPER_METHOD
from pegsynth.privacy import Budget, Guarantee, Ledger, Unspent
from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import promise
from pegsynth.schema.panel import MOST_FOLDED
from pegsynth.views import Picture, card, table

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.schema import Schema


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
            "log_x": True,
            "log_y": True,
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


CARRIES = 0.1
"""A budget carries a table if columns are off by no more than this share of the rows."""


_HEADER = (
    "method",
    "heads",
    "alpha",
    "virtual rows",
    "prior share",
    "columns off",
    "pairs off",
    "pure total",
    "total",
    "detail",
)


@dataclass(frozen=True, repr=False)
class Forecast:
    """All methods under one budget, those that cannot meet it with the reason.

    Parameters
    ----------
    predictions, refused
        Methods that can meet it, and the others with the reason.
    figures
        What the formula went by, which like tables are found by; None: unknown.
    at
        Makes the same for another epsilon; None where there is no other.
    notes
        What is measured for the schema's numbers and declarations, and what it costs.
    """

    predictions: tuple[Prediction, ...]
    refused: tuple[tuple[str, str], ...]
    figures: PublicFigures | None = None
    at: Callable[[float], Forecast] | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Prediction | None:
        """The method with the smallest predicted error.

        One that measured worse than another of them on like tables is never taken, whatever
        is predicted.
        """
        listed = [each.method for each in self.predictions]
        kept = [
            each
            for each in self.predictions
            if self.figures is None or not beaten(each.method, listed, self.figures)
        ]
        return min(kept, key=lambda each: each.error, default=None)

    @property
    def warning(self) -> str:
        """Say that the budget cannot carry the table, if so; empty otherwise."""
        best = self.best
        if best is None or best.columns_error is None or best.columns_error <= CARRIES:
            return ""
        return (
            f"This budget cannot carry this table: expect columns off by {best.columns_error:.0%} "
            f"and pairs by {best.error:.0%}. A larger epsilon, more original rows, or fewer and "
            "coarser columns would help."
        )

    def curve(self, epsilons: Sequence[float] = EPSILONS) -> ErrorCurve:
        """Predict errors over a range of epsilons, all else the same."""
        if self.at is None:
            raise ParameterError("a curve follows from pegsynth.plan and from pegs plan")
        return error_curve(self.at, epsilons)

    @property
    def reason(self) -> str:
        """Say why the best method is the best, in one sentence."""
        best = self.best
        if best is None:
            return "no method can meet this budget"
        others = [p for p in self.predictions if p is not best]
        named = ", ".join(f"{p.method} {p.error:.3f}" for p in others)
        than = f" ({named})" if others else ""
        smallest = all(best.error <= p.error for p in others)
        why = (
            "for its smallest predicted error of pair tables"
            if smallest
            else "which measured best on tables like this one; predicted error of pair tables"
        )
        return (
            f"{best.method}, {why}, {best.error:.3f}{than}; predicted from the schema, the budget "
            "and the stated numbers of rows alone"
        )

    def lines(self) -> Iterator[str]:
        """Yield an aligned table of the methods, and why others cannot meet the budget."""
        cells = [_HEADER, *map(_cells, self.predictions)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for each in cells:
            row = zip(each, widths, strict=True)
            yield "  ".join(text.ljust(width) for text, width in row).rstrip()
        for method, why in self.refused:
            yield f"{method}: {why}"

    def __repr__(self) -> str:
        said = [f"Choice: {self.reason}.", *([self.warning] if self.warning else [])]
        return "\n\n".join(["\n".join(self.lines()), *self.notes, *said])

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each method (Polars); those that cannot meet it have a reason."""
        import polars as pl

        kinds = {"method": pl.String, "error": pl.Float64, "columns_error": pl.Float64}
        kinds |= {"pure_epsilon": pl.Float64}
        kinds |= {"epsilon": pl.Float64, "delta": pl.Float64, "reason": pl.String}
        lines: list[tuple[Any, ...]] = [
            (p.method, p.error, p.columns_error, p.pure.epsilon, *_stated(p.stated), "")
            for p in self.predictions
        ]
        lines += [(method, None, None, None, None, None, why) for method, why in self.refused]
        return pl.DataFrame(lines, schema=kinds, orient="row")

    def plot(self) -> Picture:
        """Draw the predicted error of every method."""
        rows = [{"label": p.method, "value": p.error, "series": ""} for p in self.predictions]
        return Picture("forest_plot", rows, "predicted error of pair tables", {"zero": True})

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, ...]] = [
            (p.method, p.columns_error, p.error, promise(p.stated), "") for p in self.predictions
        ]
        rows += [(method, None, None, "", why) for method, why in self.refused]
        header = ("method", "columns off", "pairs off", "promised", "why not")
        said = [self.reason, *([self.warning] if self.warning else [])]
        return card("Methods under one budget", said, table=table(header, rows))


Asked: TypeAlias = Callable[[str], tuple[Budget, Any]]
"""What was asked for, in the terms of a method; raises where the method does not take it."""


def settle_method(
    method: str,
    schema: Schema,
    asked: Asked,
    *,
    epsilon: float | None,
    partial: bool,
    unpriced: bool = False,
) -> tuple[str, str]:
    """Settle ``auto``; return the method and, if it was chosen here, the reason.

    Methods are compared when a total epsilon is stated. Otherwise it is `pegs`, whose price
    per row, l and replacing of features are the paper's, the same for every caller.

    Parameters
    ----------
    asked
        Budget and options as they will be used once the method is known. A method that
        does not take all of them is not chosen.
    partial
        Whether features of the original rows are replaced.
    unpriced
        Whether a table is counted now and its budget stated when rows are drawn.
    """
    if method != AUTO:
        return method, ""
    if partial:
        return (
            PAPER_METHOD,
            f"{PAPER_METHOD}, because features of the original rows are replaced",
        )
    if unpriced:
        able = ", ".join(each.name for each in methods() if each.fits_unpriced)
        return PAPER_METHOD, (
            f"{PAPER_METHOD}, because no budget was stated: only {able} can be counted now and "
            "paid for when rows are drawn; state --epsilon to have all methods compared"
        )
    if epsilon is None:
        return PAPER_METHOD, f"{PAPER_METHOD}, because no total epsilon was stated"
    found = forecast(schema, asked)
    if found.best is None:
        raise none_can(found)
    warned = f". {found.warning.removesuffix('.')}" if found.warning else ""
    return found.best.method, found.reason + warned


def forecast(schema: Schema, asked: Asked) -> Forecast:
    """Settle every method that can predict its error, and predict what it would give."""
    predictions, refused = [], []
    for method in methods():
        if not method.predicts:
            continue
        try:
            budget, options = asked(method.name)
            predictions.append(method.predict(schema, method.settle(schema, budget, options)))
        except (BudgetError, ParameterError) as error:
            refused.append((method.name, str(error)))
    figures = figures_of(schema, predictions[0].plan) if predictions else None
    return Forecast(tuple(predictions), tuple(refused), figures)


def folded_notes(schema: Schema) -> Iterator[str]:
    """Say whom a panel protects, and what is counted (R24)."""
    if schema.panel is not None:
        panel = schema.panel
        yield (
            f"Protected is one {panel.unit!r} with all its rows, at most {panel.most}, at the "
            "price of one row; --rows and --rows-in count units."
        )
        if panel.pooled:
            yield (
                f"With {panel.most} rows, more than {MOST_FOLDED} or as stated, pegs-once measures "
                "how one row leads to the next in one table for all positions, in which a unit has "
                f"up to {panel.most - 1} rows and is priced for all of them; that table gets three "
                "quarters of the budget, first rows and the number of rows get the rest."
            )


def _cells(each: Prediction) -> tuple[str, ...]:
    pure, stated = each.pure.epsilon, each.stated
    return (
        each.method,
        "-" if each.heads is None else str(each.heads),
        "-" if each.alpha is None else f"{each.alpha:.4g}",
        "-" if each.virtual_rows is None else f"{each.virtual_rows:.4g}",
        "-" if each.prior_share is None else f"{each.prior_share:.0%}",
        "-" if each.columns_error is None else f"{each.columns_error:.3f}",
        f"{each.error:.3f}",
        "none" if pure is None else display_up(pure),
        "none" if stated.epsilon is None else f"{display_up(stated.epsilon)} at {stated.delta:g}",
        each.detail,
    )


def _stated(guarantee: Guarantee) -> tuple[float | None, float | None]:
    return guarantee.epsilon, guarantee.delta


def none_can(found: Forecast) -> BudgetError:
    """Say why no method can be chosen, once for all methods with the same reason."""
    saying: dict[str, list[str]] = {}
    for method, reason in found.refused:
        saying.setdefault(reason, []).append(method)
    if len(saying) == 1:
        return BudgetError(*saying)
    why = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in saying.items())
    return BudgetError(f"no method can do this ({why})")


def guarantees(plan: Plan) -> tuple[Guarantee, Guarantee]:
    """Return what a plan guarantees without a delta, and at the stated one.

    What was set aside before it, for edges and categories, counts as well.
    """
    paid, events = plan.budget.paid, plan.events
    if paid is not None:
        events = (*events, Unspent.of(paid.amount, route=paid.route))
    stated = Ledger(events, (), plan.budget.delta or 0.0)
    return Ledger(events).guarantee, stated.guarantee
