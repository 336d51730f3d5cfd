"""What a release folder takes beside its run, read from its `Publication` and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

from pegsynth.errors import DataError, ParameterError
from pegsynth.options import Publication
from pegsynth.pipeline.settling import Settled
from pegsynth.publishing.about import About
from pegsynth.publishing.policy import Policy
from pegsynth.publishing.privacy_pages import check_languages
from pegsynth.publishing.result import TableFormat
from pegsynth.schema import Schema

if TYPE_CHECKING:
    from pegsynth.publishing.bought_quality import Bought


@dataclass(frozen=True)
class Content:
    """What a release folder holds beside the rows of its run, settled and checked.

    Parameters
    ----------
    stated
        What was asked for.
    policy
        What is done to synthetic rows before they are published.
    about, languages
        Who publishes, and in which languages beside English the promise is stated.
    bought
        What of its distance to the original is bought, and what it must meet (R34).
    """

    stated: Publication
    policy: Policy
    about: About
    languages: tuple[str, ...]
    bought: Bought | None

    @classmethod
    def of(cls, stated: Publication, settled: Settled) -> Content:
        """Read what a publication names, refusing what cannot be done."""
        from pegsynth.publishing.bought_quality import Bought

        book, request = settled.book, settled.request
        about, languages = About.of(stated.about), check_languages(stated.languages)
        bought = Bought.of(stated)
        _check_evaluated(stated, book)
        policy = Policy.of(stated).settled(
            book, labels=request.decode == "labels", completed=bool(request.versions)
        )
        about.check(has_unit=bool(book.unit))
        if bought is not None:
            bought.check(book)
        two_tables = book.panel is not None and book.panel.tables is not None
        if policy and two_tables and not request.wide:
            raise ParameterError("--k and --round cannot be combined with two tables; add --wide")
        return cls(stated, policy, about, languages, bought)


def _check_evaluated(stated: Publication, schema: Schema) -> None:
    """Refuse, before any budget is spent, what could not be measured afterwards."""
    from pegsynth.evaluation.evaluate import options_of
    from pegsynth.tables.table_input import open_table

    options_of(schema, target=stated.target, formulas=stated.formulas or None)
    if stated.holdout is None:
        return
    with open_table(stated.holdout, dialect=schema.dialect) as reader:
        lacking = [name for name in schema.names if name not in reader.columns]
        if lacking:
            raise DataError(
                f"{reader.source}: the hold-out lacks the column {lacking[0]!r}; give rows "
                "with all columns of the schema"
            )


def checked_format(table_format: str) -> TableFormat:
    """Return how tables are written, refusing what tables of a release are never written as."""
    for known in get_args(TableFormat):
        if table_format == known:
            return cast("TableFormat", known)
    raise ParameterError(f"--format is csv or parquet, not {table_format!r}")
