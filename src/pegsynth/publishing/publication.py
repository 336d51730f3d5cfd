"""What a release folder takes beside its run: texts, policy, and what is measured of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from pegsynth.errors import DataError, ParameterError
from pegsynth.options import Publication
from pegsynth.pipeline.settling import Settled
from pegsynth.publishing.about import About
from pegsynth.publishing.facts import NO_PAPERS, Papers
from pegsynth.publishing.policy import NO_POLICY, Policy
from pegsynth.publishing.privacy_pages import check_languages
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

    @classmethod
    def of(cls, publication: Publication) -> Judging:
        """Return what a publication asks of the report."""
        return cls(publication.holdout, publication.target, publication.formulas)

    def check(self, schema: Schema) -> None:
        """Refuse, before any budget is spent, what could not be measured afterwards."""
        from pegsynth.evaluation.evaluate import options_of
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
class Content:
    """What a release folder holds beside the rows of its run, settled and checked.

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
    policy: Policy = NO_POLICY
    papers: Papers = NO_PAPERS
    judging: Judging = NO_JUDGING
    bought: Bought | None = None

    @classmethod
    def of(cls, publication: Publication, settled: Settled) -> Content:
        """Read what a publication names, refusing what cannot be done."""
        from pegsynth.publishing.bought_quality import Bought

        book, request = settled.book, settled.request
        papers = Papers(About.of(publication.about), check_languages(publication.languages))
        judging, bought = Judging.of(publication), Bought.of(publication)
        judging.check(book)
        policy = Policy.of(publication).settled(
            book, labels=request.decode == "labels", completed=bool(request.versions)
        )
        papers.about.check(has_unit=bool(book.unit))
        if bought is not None:
            bought.check(book)
        two_tables = book.panel is not None and book.panel.tables is not None
        if policy and two_tables and not request.wide:
            raise ParameterError("--k and --round do not go with two tables; state --wide for one")
        return cls(
            publication.table_format,
            publication.weights_inside,
            publication.public_only,
            policy,
            papers,
            judging,
            bought,
        )


def checked_format(table_format: str) -> TableFormat:
    """Return how tables are written, refusing what tables of a release are never written as."""
    for known in get_args(TableFormat):
        if table_format == known:
            return cast("TableFormat", known)
    raise ParameterError(f"--format is csv or parquet, not {table_format!r}")
