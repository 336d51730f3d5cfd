"""What a release folder takes beside its run: texts, policy, and what is measured of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast, get_args

from pegsynth.errors import DataError, ParameterError
from pegsynth.pipeline.request import Request
from pegsynth.publishing.facts import NO_PAPERS, Papers
from pegsynth.publishing.policy import NO_POLICY, Policy
from pegsynth.publishing.result import TableFormat
from pegsynth.schema import Schema

if TYPE_CHECKING:
    from pegsynth.publishing.bought_quality import Bought


@dataclass(frozen=True)
class Judging:
    """What the internal report measures beside the tables.

    Parameters
    ----------
    holdout
        Real rows that the synthesizer never saw.
    target
        A feature, or a comparison, to predict in real rows.
    formulas
        Regressions to compare; empty: those that go with the schema.
    """

    holdout: Any = None
    target: str | None = None
    formulas: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.holdout is not None or bool(self.target or self.formulas)

    def check(self, schema: Schema) -> None:
        """Refuse, before any budget is spent, what could not be measured afterwards."""
        from pegsynth.evaluation.evaluate_options import options_of
        from pegsynth.tables.table_input import open_table

        options_of(schema, target=self.target, formulas=self.formulas or None)
        if self.holdout is None:
            return
        with open_table(self.holdout, dialect=schema.dialect) as reader:
            lacking = [name for name in schema.names if name not in reader.columns]
            if lacking:
                raise DataError(
                    f"{reader.source}: the hold-out lacks the column {lacking[0]!r}; give rows "
                    "with all columns of the schema"
                )


NO_JUDGING = Judging()


@dataclass(frozen=True)
class Publication:
    """What a release folder takes beside its run.

    Parameters
    ----------
    table_format
        How tables are written.
    weights_inside
        Write replicate weights into the table, and not into a file beside it.
    public_only
        Do not write ``internal/``.
    policy
        What is done to synthetic rows before they are published.
    papers
        Who publishes, and in which languages the promise is stated.
    judging
        What the internal report measures beside the tables.
    bought
        What of its distance to the original is bought, and what it must meet (R34).
    """

    table_format: str = "csv"
    weights_inside: bool = False
    public_only: bool = False
    policy: Policy = field(default=NO_POLICY)
    papers: Papers = field(default=NO_PAPERS)
    judging: Judging = field(default=NO_JUDGING)
    bought: Bought | None = None

    def settled(self, schema: Schema, request: Request) -> Publication:
        """Return it with the features of its policy named, refusing what cannot be done."""
        if self.judging and self.public_only:
            raise ParameterError(
                "--holdout, --target and --formula are for the internal report, which "
                "--public-only leaves out; drop one of them"
            )
        self.judging.check(schema)
        policy = self.policy.settled(
            schema, labels=request.decode == "labels", completed=bool(request.versions)
        )
        self.papers.about.check(has_unit=bool(schema.unit))
        if self.bought is not None:
            self.bought.check(request.written(schema))
        two_tables = schema.panel is not None and schema.panel.tables is not None
        if policy and two_tables and not request.wide:
            raise ParameterError("--k and --round do not go with two tables; state --wide for one")
        return replace(self, policy=policy)


def checked_format(table_format: str) -> TableFormat:
    """Return how tables are written, refusing what tables of a release are never written as."""
    for known in get_args(TableFormat):
        if table_format == known:
            return cast("TableFormat", known)
    raise ParameterError(f"--format is csv or parquet, not {table_format!r}")
