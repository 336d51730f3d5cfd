"""What a command or a call asked for, in the library's own types.

The command line and Python make the same `Request` of the same declarations
(`pegsynth.options`), so that both refuse the same things and settle the same release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pegsynth import options
from pegsynth.codec.paying import (
    codec_costs,
    foreseen,
    price_of,
    wants_codec,
    whole_of,
)
from pegsynth.errors import BudgetError, ParameterError, SchemaError
from pegsynth.methods import get, methods, taking
from pegsynth.methods.registry import method_options
from pegsynth.options._kinds import check_options
from pegsynth.privacy import Budget, Shares
from pegsynth.privacy.guesses import gain_of
from pegsynth.privacy.statement import attacker_gains
from pegsynth.random import RandomStream, Streams
from pegsynth.schema.wide_schema import at_all_positions, measured_positions, wide_schema

if TYPE_CHECKING:
    from pegsynth.methods.base import AnyMethod, Plan
    from pegsynth.methods.forecast import Asked, Forecast
    from pegsynth.schema import Schema

_BUDGET_WORDS = re.compile(r"(?<![\w-])(?:epsilon per row|epsilon|delta|alpha|l)(?![\w-])")
_BUDGETS = ("epsilon", "epsilon_per_row", "l", "alpha")
_NOT_DECLARED = "it measures no declared analyses and tables"
Able: TypeAlias = "Callable[[AnyMethod], None]"
"""Raises a `ParameterError` for a method that cannot do what is to be done."""

_FITTED = ("heads", "tail_bits", "order", "order_rows")
"""Options on how a table is counted, which drawing does not take."""


@dataclass(frozen=True)
class Request(
    options.EngineOptions,
    options.SourceOptions,
    options.RunOptions,
    options.BookOptions,
    options.BudgetOptions,
    options.CompletionOptions,
    options.TablesOptions,
    options.ReplicateOptions,
    options.ProperOptions,
    options.LogLinearOptions,
    options.CapOptions,
    options.BlockSizeOptions,
    options.PriorOptions,
    options.PartialOptions,
    options.KeyOptions,
    options.RowOptions,
    options.MethodChoice,
):
    """All options of a release. Options that do not go together are refused when it is settled.

    Parameters
    ----------
    own
        Options of methods that were registered from outside, by name.
    streams
        Makes the random stream. It is no option: only who starts a command can state another.
    """

    own: Mapping[str, Any] = field(default_factory=dict)
    streams: Streams = field(default=RandomStream, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_options(self)
        if self.master is not None and self.engine != "spark":
            raise ParameterError("--master requires --engine spark")
        self._check_completion()

    def _check_completion(self) -> None:
        """Refuse completed tables where no rule says how to analyse them (R23)."""
        if not self.complete:
            if self.imputations is not None:
                raise ParameterError("--imputations requires --complete; add that")
        elif self.replicates:
            raise ParameterError(
                "--complete cannot be combined with --replicates: replicate weights do not hold "
                "how uncertain imputed values are. Several tables with noise of their own do: "
                "state --datasets instead of --replicates"
            )
        elif self.synthesize:
            raise ParameterError(
                "--complete imputes from synthetic rows, and --synthesize keeps the original ones; "
                "leave one of the two out"
            )
        elif self.engine == "spark":
            raise ParameterError(
                "--complete requires --engine local; complete tables of Spark with pegs impute"
            )

    @classmethod
    def of(cls, **stated: Any) -> Request:
        """Make a request of options, those of registered methods among them."""
        known = cls.__dataclass_fields__
        own = {name: value for name, value in stated.items() if name not in known}
        return cls(**{n: v for n, v in stated.items() if n in known}, own=own)

    def source(self, data: Any) -> Any:
        """Return the table, or the two tables, that were named; None for published tables."""
        if (data is None) == (self.from_tables is None):
            raise ParameterError(
                "name a table to read, or published tables with --from-tables, and not both"
            )
        return super().source(data)

    def stated(self, name: str, default: Any = None) -> Any:
        """Return an option by its name, that of a registered method or ours."""
        return self.own.get(name, getattr(self, name, default))

    def stream(self) -> RandomStream:
        """Return the random stream of this run."""
        return self.streams(self.seed)

    @property
    def has_budget(self) -> bool:
        """Whether any budget was stated."""
        return any(getattr(self, name) is not None for name in _BUDGETS)

    @property
    def unpriced(self) -> bool:
        """Whether nothing was said of a budget."""
        return not self.has_budget and self.delta is None

    @property
    def budget(self) -> Budget:
        """The stated budget."""
        return self.budget_of(self.method or options.PAPER_METHOD)

    def budget_of(self, name: str) -> Budget:
        """Return the stated budget for a method; those without any proof take none."""
        stated, partial = not self.unpriced, bool(self.synthesize)
        if partial and stated and not self.no_guarantee:
            raise BudgetError(
                "partially synthetic tables publish their other columns as they are, so no budget "
                "can hold; leave it out, or perturb without a guarantee with --no-guarantee"
            )
        if name != options.AUTO and not get(name).has_proof:
            if stated:
                raise BudgetError(
                    f"{name} has no privacy guarantee at any price; leave the budget out"
                )
            return Budget(alpha=0.0)
        if partial and not stated:
            return Budget(alpha=0.0)
        given = {name: getattr(self, name) for name in (*_BUDGETS, "delta")}
        return _stated_budget(self.shares or Shares(), **given)

    def options_for(
        self, method: AnyMethod, *, saved: bool = False, lenient: bool = False
    ) -> options.RowOptions:
        """Return the options of a method, refusing what it does not take.

        Parameters
        ----------
        saved
            Whether the model is saved and sampled later.
        lenient
            Leave out what the method does not take, as a comparison of methods does.
        """
        for name, each in method_options().items():
            value = self.stated(name)
            taken = name in method.options.__dataclass_fields__
            meant = method.harmless.get(name, each.harmless)
            if not (taken or lenient) and value not in (None, (), False, each.default, *meant):
                others = ", ".join(taking(name))
                raise ParameterError(f"{each.flag_of(name)} requires --method {others}")
        given = {each.name: self.stated(each.name, each.default) for each in fields(method.options)}
        made: options.RowOptions = method.options(**given)
        return method.saved_options(made) if saved else made

    def settled(
        self, schema: Schema, *, saved: bool = False, able: Able | None = None
    ) -> tuple[Request, tuple[str, ...]]:
        """Return the request with ``--method auto`` settled, and lines that say how and why.

        Parameters
        ----------
        schema
            The codebook as it is written; what it leaves to be measured is foreseen here.
        saved
            Whether the model is saved and sampled later.
        able
            Refuses methods that ``auto`` must not take.
        """
        found = self._declared_method(schema)
        if found is None and self.method != options.AUTO:
            return self if self.method else replace(self, method=options.PAPER_METHOD), ()
        from pegsynth.methods.forecast import settle_method

        partial = bool(self.synthesize)
        method, reason = found or settle_method(
            options.AUTO,
            self.planned_schema(schema),
            self.asked(schema, saved=saved, able=able),
            epsilon=self.epsilon,
            partial=partial,
            unpriced=saved and self.unpriced,
        )
        settled = replace(self, method=method)
        if not reason:
            return settled, ()
        assumed = () if partial or self.epsilon is None else self.assumed()
        return settled, (f"Method: {reason}.", *assumed)

    def with_replicates(self, schema: Schema) -> Request:
        """Return the request with replicate weights, if its method can make them (R28).

        Parameters
        ----------
        schema
            The codebook of what is counted.
        """
        panel = schema.panel
        apart = panel is not None and (panel.pooled or (bool(panel.tables) and not self.wide))
        without = self.datasets > 1 or self.complete or apart
        if without or "replicates" not in get(self.method or "").options.__dataclass_fields__:
            return self
        return replace(self, replicates=options.REPLICATES)

    def _declared_method(self, schema: Schema) -> tuple[str, str] | None:
        """Return the method that what is declared calls for, and why; None if any will do."""
        if self.from_tables is not None:
            (maker,) = taking("from_tables")
            if self.method not in (options.AUTO, maker):
                raise ParameterError(f"--from-tables requires --method {maker}; leave --method out")
            return maker, ""
        if not (schema.analyses or schema.tables_wanted):
            return None
        method = self.method or options.PAPER_METHOD
        able = [each.name for each in methods() if each.released and each.reads_table]
        if method == options.AUTO and able and not self.synthesize:
            return able[0], f"{able[0]}, because analyses or tables were declared"
        if method not in able or self.synthesize:
            raise ParameterError(
                "declared analyses and tables (analyses, tables_wanted) require --method "
                f"{' or '.join(able)} only; use that, or leave them out"
            )
        return None

    def asked(
        self,
        schema: Schema,
        *,
        saved: bool = False,
        lenient: bool = False,
        able: Able | None = None,
    ) -> Asked:
        """Return what is asked of each method by its name: the budget that its codec leaves."""
        book = wide_schema(schema)

        def of(name: str) -> tuple[Budget, options.RowOptions]:
            method = get(name)
            if able is not None:
                able(method)
            if (book.analyses or book.tables_wanted) and not (
                method.released and method.reads_table
            ):
                raise ParameterError(_NOT_DECLARED)
            taken = self.options_for(method, saved=saved, lenient=lenient)
            budget = self.budget_of(name)
            if not wants_codec(book):
                return budget, taken
            rows = self.rows_in or self.rows
            return foreseen(book, budget, rows=rows, private=method.has_proof).budget, taken

        return of

    def forecast(self, schema: Schema) -> Forecast:
        """Compare all methods under the stated epsilon, each with the flags that it takes."""
        from pegsynth.methods.forecast import forecast

        found = forecast(self.planned_schema(schema), self.asked(schema, lenient=True))
        return replace(found, at=lambda epsilon: replace(self, epsilon=epsilon).forecast(schema))

    def planned(self, schema: Schema) -> Forecast:
        """Compare all methods, and say what is measured and what it costs; no data is read.

        Raises
        ------
        BudgetError, ParameterError, SchemaError
            There is no total epsilon, or a fit would refuse the schema or what it declares.
        """
        if self.epsilon is None:
            raise BudgetError(
                "a plan needs --epsilon, the total for the whole release, or a goal that finds it: "
                "--pairs-off or --risk"
            )
        from pegsynth.methods.forecast import folded_notes, none_can
        from pegsynth.methods.released import declared_costs

        budget = self.budget  # A budget that cannot be is refused as such.
        schema = wide_schema(self.written(schema))
        notes: list[str] = []
        if wants_codec(schema):
            notes += codec_costs(schema, budget, self.rows_in)
        book = self.planned_schema(schema)
        notes += declared_costs(book, price_of(book, whole_of(budget)))
        found = self.forecast(schema)
        if schema.analyses or schema.tables_wanted:
            if found.best is None:
                raise none_can(found)
            self.check_declared(schema)
        return replace(
            found, notes=(*notes, *folded_notes(book), *self.assumed(), *_gains(found, schema))
        )

    def at_goal(
        self, schema: Schema, *, pairs_off: float | None = None, risk: float | None = None
    ) -> Request:
        """Return the request with the epsilon that meets a goal (`epsilon_for`); without, itself.

        Raises
        ------
        BudgetError
            An epsilon was stated as well, or the goal cannot be reached.
        """
        if pairs_off is None and risk is None:
            return self
        if self.epsilon is not None:
            raise BudgetError("--pairs-off and --risk find the epsilon; remove --epsilon")
        book = wide_schema(self.written(schema))
        from pegsynth.methods.goals import epsilon_for

        epsilon = epsilon_for(
            lambda epsilon: replace(self, epsilon=epsilon).forecast(book),
            delta=self.delta,
            pairs_off=pairs_off,
            risk=risk,
        )
        return replace(self, epsilon=epsilon)

    def check_declared(self, schema: Schema) -> None:
        """Refuse declared analyses and tables that could not be drawn or written later."""
        if not (schema.analyses or schema.tables_wanted):
            return
        from pegsynth.methods.released import check_asked, labels_of_declared, settle_declared

        for table in schema.tables_wanted:
            check_asked(table.features)
        calibrated = self.decode == "labels" and schema.analyses and not self.where
        if calibrated and settle_declared(self.planned_schema(schema)).sums:
            raise labels_of_declared()

    def assumed(self) -> tuple[str, ...]:
        """Say that predictions are guesses where the number of original rows was not stated."""
        if self.rows_in is not None:
            return ()
        instead = f"{self.rows:,}, as --rows" if self.rows is not None else "1, for want of --rows"
        return (
            "The number of original rows was not stated (--rows-in), so predicted errors are a "
            f"guess: taken to be {instead}.",
        )

    def changed(self) -> list[str]:
        """Return the flags on how to draw that differ from their defaults."""
        known = method_options()
        ways = [name for name in known if name not in ("rows", "datasets", *_FITTED)]
        plain = Request(method=None)  # type: ignore[arg-type]
        stated = [each for each in ways if self.stated(each) != plain.stated(each)]
        named = ["--method"] if self.method is not None else []
        return [*named, *(known[name].flag_of(name) for name in stated)]

    def check_rows(self) -> None:
        """Ask for the number of rows, except where the original rows are kept."""
        if self.synthesize and self.rows is not None:
            raise ParameterError("--synthesize keeps the original rows; leave out --rows")
        if not self.synthesize and self.rows is None:
            raise ParameterError("--rows is needed: how many synthetic rows to draw")

    def plan(
        self, schema: Schema, *, source: str, saved: bool = False, budget: Budget | None = None
    ) -> Plan:
        """Settle the release from public quantities; refuse a schema that nobody reviewed.

        Parameters
        ----------
        source
            What messages call the schema.
        saved
            Whether the model is saved and sampled later.
        budget
            What is left of the stated budget, where a part of it was set aside.
        """
        method = get(self.method or options.PAPER_METHOD)
        budget = budget or self.budget
        private = budget.epsilon is not None or budget.epsilon_per_row is not None
        if private and not schema.reviewed and not self.accept_unreviewed_schema:
            # No guarantee rests on what nobody has declared public (R10).
            raise SchemaError(
                f"{source}: the schema is not reviewed. Check that its categories, order, bin "
                "edges and rows per unit are public knowledge, then set reviewed = true; or go on "
                "without a guarantee with --accept-unreviewed-schema"
            )
        if wants_codec(schema):
            schema, budget = self._foreseen(schema, budget, private=method.has_proof)
        plan: Plan = method.settle(schema, budget, self.options_for(method, saved=saved))
        return plan

    def planned_schema(self, schema: Schema) -> Schema:
        """Return the schema with as many bins and categories as a measured codec may have.

        That of a panel is the codebook of the folded table (R24).
        """
        schema = wide_schema(schema)
        if not schema.unsettled:
            return schema
        private = self.epsilon is not None
        budget = self.budget_of(options.AUTO) if private else Budget(alpha=0.0)
        return self._foreseen(schema, budget, private=private)[0]

    def _foreseen(self, schema: Schema, budget: Budget, *, private: bool) -> tuple[Schema, Budget]:
        """Return the codebook that measuring may give at most, and what it leaves to be spent."""
        rows = self.rows_in or self.rows
        seen = foreseen(measured_positions(schema), budget, rows=rows, private=private)
        return at_all_positions(seen.schema, schema), seen.budget


@lru_cache(maxsize=1)
def _stated_budget(shares: Shares, **given: float | None) -> Budget:
    """Return a budget that flags state; a request that was settled states the same again."""
    try:
        return Budget(**given, shares=shares)  # type: ignore[arg-type]
    except BudgetError as error:
        # `privacy` knows no flags, so the message is completed here.
        raise BudgetError(
            _BUDGET_WORDS.sub(lambda found: "--" + found[0].replace(" ", "-"), str(error))
        ) from None


def _gains(found: Forecast, schema: Schema) -> Iterator[str]:
    """Say what an attacker gains by a release of the best method (R35)."""
    if found.best is not None:
        stated = found.best.stated
        private = any(feature.private_categories for feature in schema.features)
        taken = (stated.delta or 0.0) if private else 0.0
        yield " ".join(attacker_gains(stated, gain_of(stated, delta_taken=taken)))


def registered_options() -> tuple[str, ...]:
    """Return the options of methods that were registered from outside."""
    ours = Request.__dataclass_fields__
    return tuple(name for name in method_options() if name not in ours)
