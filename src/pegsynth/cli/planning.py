"""``pegs plan``: what every method could do with a budget."""

from __future__ import annotations

from pathlib import Path

from pegsynth.errors import BudgetError
from pegsynth.pipeline.request import Request
from pegsynth.schema import Schema
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.atomic import check_target


def show(schema_file: Path, request: Request, curve: Path | None = None) -> None:
    """Print the table, the curve and the choice.

    Parameters
    ----------
    curve
        Where to draw the curve too, as SVG and PNG; the suffix does not matter.
    """
    if curve is not None:
        check_target(curve.with_suffix(".svg"))
    schema = Schema.load(schema_file)
    found = request.planned(schema)
    print(*found.lines(), sep="\n")
    for note in found.notes:
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
    _, (choice, *_) = request.settled(wide_schema(request.written(schema)))
    print(f"\nChoice: {choice.removeprefix('Method: ')}")
