"""``pegs plan``: what every method could do with a budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pegsynth.analyses.declared_plan import declared_costs
from pegsynth.errors import BudgetError
from pegsynth.io.atomic import check_target
from pegsynth.methods.base import Prediction
from pegsynth.numbers import check_budget, wants_codec
from pegsynth.numbers.codec_costs import codec_costs
from pegsynth.numbers.edges_plan import price_of
from pegsynth.numbers.paying import whole_of
from pegsynth.privacy.rounding import display_up
from pegsynth.request import Request
from pegsynth.schema import Schema
from pegsynth.schema.panel import MOST_FOLDED
from pegsynth.schema.wide_schema import wide_schema

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


def show(schema_file: Path, request: Request, curve: Path | None = None) -> None:
    """Print the table, the curve and the choice.

    Parameters
    ----------
    curve
        Where to draw the curve too, as SVG and PNG; the suffix does not matter.
    """
    if curve is not None:
        check_target(curve.with_suffix(".svg"))
    if request.epsilon is None:
        raise BudgetError("a plan needs --epsilon, the total for the whole release")
    budget = request.budget  # A budget that cannot be is refused as such.
    schema = wide_schema(request.written(Schema.load(schema_file)))
    if wants_codec(schema):
        check_budget(schema, budget)
    costs = tuple(codec_costs(schema, budget, request.rows_in)) if wants_codec(schema) else ()
    found = request.forecast(schema)
    planned = request.planned_schema(schema)
    lines = [_HEADER, *(_line(each) for each in found.predictions)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER))]
    for line in lines:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
    for method, why in found.refused:
        print(f"{method}: {why}")
    declared = declared_costs(planned, price_of(planned, whole_of(budget)))
    for note in (*costs, *declared, *_folded(planned), *request.assumed()):
        print(f"\n{note}")
    if found.best is None:
        raise BudgetError(
            "no method can meet this budget; raise epsilon, add delta or draw fewer rows"
        )
    errors = found.curve()
    print("\nPredicted for the best method at other budgets:", *errors.lines(), sep="\n")
    if curve is not None:
        errors.plot().save(curve.with_suffix(""))
    # The choice is that of --method auto: methods that do not take a flag are left out.
    _, (choice, *_) = request.settled(schema)
    print(f"\nChoice: {choice.removeprefix('Method: ')}")


def _folded(schema: Schema) -> Iterator[str]:
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


def _line(each: Prediction) -> tuple[str, ...]:
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
