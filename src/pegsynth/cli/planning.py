"""``pegs plan``: what every method could do with a budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pegsynth.errors import BudgetError
from pegsynth.option_kinds import check_whole
from pegsynth.options import AUTO, DEFAULT_BLOCK_SIZE
from pegsynth.privacy.rounding import display_up
from pegsynth.schema import Schema
from pegsynth.synthesizers.plan import Option, plan
from pegsynth.synthesizers.request import Request

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
    schema = Schema.load(schema_file)
    # Flags of the capped method are allowed here; the plan leaves them out for the others.
    capped = replace(request, method="pegs-capped", block_size=DEFAULT_BLOCK_SIZE)
    found = plan(
        schema,
        replace(request, method="pegs-once").budget,
        request.fit_options,
        capped.draw_options,
        block_size=check_whole("block_size", request.block_size),
    )
    lines = [_HEADER, *(_line(option) for option in found.options)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER))]
    for line in lines:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
    for method, why in found.refused:
        print(f"{method}: {why}")
    for note in request.assumed():
        print(f"\n{note}")
    if found.best is None:
        raise BudgetError(
            "no method can meet this budget; raise epsilon, add delta or draw fewer rows"
        )
    # The choice is that of --method auto: methods that do not take a flag are left out.
    _, (choice, *_) = replace(request, method=AUTO).settled(schema)
    print(f"\nChoice: {choice.removeprefix('Method: ')}")


def _line(option: Option) -> tuple[str, ...]:
    recipe, draw = option.recipe, option.recipe.draw
    detail = {
        "pegs": f"{draw.sweeps} sweeps per row",
        "pegs-rs": f"blocks of {draw.block_size}",
        "pegs-capped": f"{draw.visits} {'urn ' if draw.urn else ''}visits, {draw.chains} chains",
        "pegs-once": f"noise of {option.noise or 0:.4g} rows on a block, then any number of rows",
    }[draw.method]
    once = option.noise is not None
    pure = option.pure.epsilon
    stated = option.stated
    return (
        option.method,
        str(recipe.heads),
        "-" if once else f"{recipe.numerator / recipe.scale:.4g}",
        "-" if option.virtual_rows is None else f"{option.virtual_rows:.4g}",
        "-" if option.prior_share is None else f"{option.prior_share:.0%}",
        f"{option.predicted_error:.3f}",
        "none" if pure is None else display_up(pure),
        "none" if stated.epsilon is None else f"{display_up(stated.epsilon)} at {stated.delta:g}",
        detail
        if once
        else f"{detail}; order {recipe.order}, prior {recipe.prior}, seeds {recipe.seed_pool}",
    )
