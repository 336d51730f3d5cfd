"""What each method could do with a budget, from public quantities alone.

`forecast` settles a plan for every method that can predict and asks it how far pair tables
will be from those of the data, given the schema and the stated number of original rows.
`settle_method` takes the best of them for ``--method auto``, on the command line and in
Python. No data is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.base import Plan, Prediction
from pegsynth.methods.registry import methods
from pegsynth.notebook import card, table
from pegsynth.options import AUTO, DEFAULT_METHOD
from pegsynth.picture import Picture
from pegsynth.privacy import Budget, Guarantee, Ledger
from pegsynth.privacy.ledger_views import promise

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.schema import Schema

UNIFORM_LOSS = 0.4
MARGINAL_LOSS = 0.1
"""How far a pair table of the data is from that of the prior, in total variation: about
these figures on the built-in data for uniform virtual rows (independent columns of equal
shares) and for marginal ones (independent columns of the right shares)."""


@dataclass(frozen=True)
class Forecast:
    """All methods under one budget, those that cannot meet it with the reason."""

    predictions: tuple[Prediction, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def best(self) -> Prediction | None:
        """The method with the smallest predicted error."""
        return min(self.predictions, key=lambda each: each.error, default=None)

    @property
    def reason(self) -> str:
        """Say why the best method is the best, in one sentence."""
        best = self.best
        if best is None:
            return "no method can meet this budget"
        others = [f"{p.method} {p.error:.3f}" for p in self.predictions if p is not best]
        than = f" ({', '.join(others)})" if others else ""
        return (
            f"{best.method}, for its smallest predicted error of pair tables, {best.error:.3f}"
            f"{than}; predicted from the schema, the budget and the stated numbers of rows alone"
        )

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each method (Polars); those that cannot meet it have a reason."""
        import polars as pl

        kinds = {"method": pl.String, "error": pl.Float64, "pure_epsilon": pl.Float64}
        kinds |= {"epsilon": pl.Float64, "delta": pl.Float64, "reason": pl.String}
        lines: list[tuple[Any, ...]] = [
            (p.method, p.error, p.pure.epsilon, p.stated.epsilon, p.stated.delta, "")
            for p in self.predictions
        ]
        lines += [(method, None, None, None, None, why) for method, why in self.refused]
        return pl.DataFrame(lines, schema=kinds, orient="row")

    def plot(self) -> Picture:
        """Draw the predicted error of every method."""
        rows = [{"label": p.method, "value": p.error, "series": ""} for p in self.predictions]
        return Picture("forest_plot", rows, "predicted error of pair tables", {"zero": True})

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, ...]] = [
            (p.method, p.error, promise(p.stated), "") for p in self.predictions
        ]
        rows += [(method, None, "", why) for method, why in self.refused]
        header = ("method", "predicted error", "promised", "why not")
        return card("Methods under one budget", [self.reason], table=table(header, rows))


Asked: TypeAlias = Callable[[str], tuple[Budget, Any]]
"""What was asked for, in the terms of a method; raises where the method does not take it."""


def settle_method(
    method: str,
    schema: Schema,
    asked: Asked,
    *,
    epsilon: float | None,
    partial: bool,
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
    """
    if method != AUTO:
        return method, ""
    if partial:
        return (
            DEFAULT_METHOD,
            f"{DEFAULT_METHOD}, because features of the original rows are replaced",
        )
    if epsilon is None:
        return DEFAULT_METHOD, f"{DEFAULT_METHOD}, because no total epsilon was stated"
    found = forecast(schema, asked)
    if found.best is None:
        raise _none_can(found)
    return found.best.method, found.reason


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
    return Forecast(tuple(predictions), tuple(refused))


def _none_can(found: Forecast) -> BudgetError:
    """Say why no method can be chosen, once where all say the same."""
    reasons = {reason for _, reason in found.refused}
    if len(reasons) == 1:
        return BudgetError(reasons.pop())
    why = "; ".join(f"{method}: {reason}" for method, reason in found.refused)
    return BudgetError(f"no method can do this ({why})")


def guarantees(plan: Plan) -> tuple[Guarantee, Guarantee]:
    """Return what a plan guarantees without a delta, and at the stated one."""
    stated = Ledger(plan.events, (), plan.budget.delta or 0.0)
    return Ledger(plan.events).guarantee, stated.guarantee
