"""What a command or a call asked for, in the library's own types.

The command line and Python make the same `Request` of the same declarations
(`pegsynth.options`), so that both refuse the same things and settle the same release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pegsynth.errors import BudgetError, ParameterError, SchemaError
from pegsynth.option_kinds import check_options, declared, narrowed
from pegsynth.options import (
    UNBUDGETED_METHODS,
    BudgetOptions,
    DrawOptions,
    EngineOptions,
    FitOptions,
    RunOptions,
    SourceOptions,
)
from pegsynth.privacy import Budget, Shares
from pegsynth.synthesizers.plan import settle_method
from pegsynth.synthesizers.recipe import Recipe, make_recipe

if TYPE_CHECKING:
    from pegsynth.schema import Schema

_BUDGET_WORDS = re.compile(r"(?<![\w-])(?:epsilon per row|epsilon|delta|alpha|l)(?![\w-])")
_BUDGETS = ("epsilon", "epsilon_per_row", "l", "alpha")


@dataclass(frozen=True)
class Request(EngineOptions, SourceOptions, RunOptions, BudgetOptions, FitOptions, DrawOptions):
    """All options of a release. Options that do not go together are refused when it is settled."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.master is not None and self.engine != "spark":
            raise ParameterError("--master goes with --engine spark")

    @property
    def has_budget(self) -> bool:
        """Whether any budget was stated."""
        return any(getattr(self, name) is not None for name in _BUDGETS)

    @property
    def budget(self) -> Budget:
        """The stated budget."""
        given = {name: getattr(self, name) for name in (*_BUDGETS, "delta", "shares")}
        try:
            return budget_for(
                self.method or "pegs",
                partial=bool(self.synthesize),
                no_guarantee=self.no_guarantee,
                **given,
            )
        except BudgetError as error:
            # `privacy` knows no flags; whoever stated the budget does.
            raise BudgetError(_with_flags(str(error))) from None

    @property
    def fit_options(self) -> FitOptions:
        """How to disintegrate."""
        return narrowed(FitOptions, self)

    @property
    def draw_options(self) -> DrawOptions:
        """How to draw."""
        return narrowed(DrawOptions, self, method=self.method or "pegs")

    def settled(self, schema: Schema, *, saved: bool = False) -> tuple[Request, tuple[str, ...]]:
        """Return the request with ``--method auto`` settled, and lines that say how and why.

        Parameters
        ----------
        saved
            Whether the model is saved and sampled later. Urns are not saved, so that visits
            are counted then unless the user asks for urns, which is refused.
        """

        def taken(method: Any) -> Request:
            counted = saved and method == "pegs-capped" and self.urn is None
            return replace(self, method=method, urn=False if counted else self.urn)

        def asked(method: str) -> tuple[Budget, DrawOptions]:
            options = taken(method).draw_options
            return taken(method).budget, options

        partial = bool(self.synthesize)
        method, reason = settle_method(
            self.method or "pegs",
            schema,
            self.fit_options,
            asked,
            epsilon=self.epsilon,
            partial=partial,
        )
        if not reason:
            return taken(method), ()
        assumed = () if partial or self.epsilon is None else self.assumed()
        return taken(method), (f"Method: {reason}.", *assumed)

    def assumed(self) -> tuple[str, ...]:
        """Say what a method is chosen by where the number of original rows was not stated."""
        if self.rows_in is not None:
            return ()
        instead = "--rows" if self.rows is not None else "1, for want of --rows"
        return (f"The number of original rows was not stated (--rows-in); taken to be {instead}.",)

    def changed(self) -> list[str]:
        """Return the flags on how to draw that differ from their defaults."""
        plain = Request(method=None)  # type: ignore[arg-type]
        return [
            each.flag_of(name)
            for name, each in declared(DrawOptions).items()
            if name not in ("rows", "datasets") and getattr(self, name) != getattr(plain, name)
        ]

    def check_rows(self) -> None:
        """Ask for the number of rows, except where the original rows are kept."""
        if self.synthesize and self.rows is not None:
            raise ParameterError("--synthesize keeps the original rows; leave out --rows")
        if not self.synthesize and self.rows is None:
            raise ParameterError("--rows is needed: how many synthetic rows to draw")

    def recipe(self, schema: Schema, *, source: str) -> Recipe:
        """Settle the release from public quantities; refuse a schema that nobody reviewed.

        Parameters
        ----------
        source
            What messages call the schema.
        """
        budget = self.budget
        check_reviewed(schema, budget, accept=self.accept_unreviewed_schema, source=source)
        return make_recipe(schema, budget, self.fit_options, self.draw_options)


def _with_flags(message: str) -> str:
    """Call the ways of stating a budget by their flags."""
    return _BUDGET_WORDS.sub(lambda found: "--" + found[0].replace(" ", "-"), message)


def budget_for(
    method: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    epsilon_per_row: float | None = None,
    l: float | None = None,  # noqa: E741
    alpha: float | None = None,
    shares: Shares | None = None,
    partial: bool = False,
    no_guarantee: bool = False,
) -> Budget:
    """Return the stated budget of a method; those without any proof take none."""
    stated = any(value is not None for value in (epsilon, delta, epsilon_per_row, l, alpha))
    if partial and stated and not no_guarantee:
        raise BudgetError(
            "partially synthetic tables publish their other columns as they are, so no budget can "
            "hold; leave it out, or perturb without a guarantee with --no-guarantee"
        )
    if method not in UNBUDGETED_METHODS and (stated or not partial):
        return Budget(
            epsilon=epsilon,
            delta=delta,
            epsilon_per_row=epsilon_per_row,
            l=l,
            alpha=alpha,
            shares=shares or Shares(),
            released_blocks=method == "pegs-once",
        )
    if stated:
        raise BudgetError(f"{method} has no privacy guarantee at any price; leave the budget out")
    return Budget(alpha=0.0)


def check_reviewed(schema: Schema, budget: Budget, *, accept: bool, source: str) -> None:
    """Refuse a differentially private run under a schema that nobody has reviewed (R10)."""
    private = budget.epsilon is not None or budget.epsilon_per_row is not None
    if private and not schema.reviewed and not accept:
        raise SchemaError(
            f"{source}: the schema is not reviewed. Check that its categories, order, bin edges "
            "and rows per unit are public knowledge, then set reviewed = true; or go on without "
            "a guarantee with --accept-unreviewed-schema"
        )
