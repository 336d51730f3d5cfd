"""``pegs plan``: what every method could do with a budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pegsynth.errors import BudgetError
from pegsynth.methods.base import Prediction
from pegsynth.methods.forecast import forecast
from pegsynth.numbers import check_budget, wants_codec
from pegsynth.numbers.codec_costs import codec_costs
from pegsynth.options import AUTO
from pegsynth.privacy.rounding import display_up
from pegsynth.request import Request
from pegsynth.schema import Schema

_HEADER = (
    "method",
    "heads",
    "alpha",
    "virtual rows",
    "prior share",
    "error",
    "pure total",
    "total",
    "detail",
)


def show(schema_file: Path, request: Request) -> None:
    """Print the table and the choice."""
    if request.epsilon is None:
        raise BudgetError("a plan needs --epsilon, the total for the whole release")
    budget = replace(request, method=AUTO).budget  # A budget that cannot be is refused as such.
    schema = Schema.load(schema_file)
    if wants_codec(schema):
        check_budget(schema, budget)
    costs = tuple(codec_costs(schema, budget, request.rows_in)) if wants_codec(schema) else ()
    # Flags that only one method takes are left out for the others.
    schema = request.planned_schema(schema)
    found = forecast(schema, request.asked(lenient=True))
    lines = [_HEADER, *(_line(each) for each in found.predictions)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER))]
    for line in lines:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
    for method, why in found.refused:
        print(f"{method}: {why}")
    for note in (*costs, *request.assumed()):
        print(f"\n{note}")
    if found.best is None:
        raise BudgetError(
            "no method can meet this budget; raise epsilon, add delta or draw fewer rows"
        )
    # The choice is that of --method auto: methods that do not take a flag are left out.
    _, (choice, *_) = replace(request, method=AUTO).settled(schema)
    print(f"\nChoice: {choice.removeprefix('Method: ')}")


def _line(each: Prediction) -> tuple[str, ...]:
    pure, stated = each.pure.epsilon, each.stated
    return (
        each.method,
        "-" if each.heads is None else str(each.heads),
        "-" if each.alpha is None else f"{each.alpha:.4g}",
        "-" if each.virtual_rows is None else f"{each.virtual_rows:.4g}",
        "-" if each.prior_share is None else f"{each.prior_share:.0%}",
        f"{each.error:.3f}",
        "none" if pure is None else display_up(pure),
        "none" if stated.epsilon is None else f"{display_up(stated.epsilon)} at {stated.delta:g}",
        each.detail,
    )
