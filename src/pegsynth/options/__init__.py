"""Every option of a release, declared once: name, type, default and help.

The options of a method are one frozen dataclass, put together from the groups in `_methods`
(`RowOptions`, `KeyOptions`, ..). `BudgetOptions` say what may be spent, `RunOptions` and
`SourceOptions` how the work is done and where the table is, `Publication` what a release folder
takes. `pegsynth.pipeline.request.Request` is all of them together but the last, as a command or a
call states them. All are public choices.

The flags of the command line, the keyword arguments in Python, their checks, the help texts
and docs/options.md are made of these declarations. Which method takes an option follows from
the dataclass of the method (`pegsynth.methods`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.options._kinds import check_options, option
from pegsynth.options._methods import (
    AUTO,
    DEFAULT_BLOCK_SIZE,
    MOST_REPLICATES,
    MOST_VISITS,
    PAPER_METHOD,
    REPLICATES,
    ROW,
    WEIGHT,
    BlockSizeOptions,
    CapOptions,
    GivenOptions,
    HeadOptions,
    KeyOptions,
    LogLinearOptions,
    MethodChoice,
    MethodOptions,
    Order,
    PartialOptions,
    PriorKind,
    PriorOptions,
    ProperOptions,
    ReplicateOptions,
    RowOptions,
    SweepOptions,
    TablesOptions,
    named_weights,
    weight_file,
)
from pegsynth.runtime import usable_processors

if TYPE_CHECKING:
    from pegsynth.privacy import Shares
    from pegsynth.schema import Schema
    from pegsynth.schema.dialect import Dialect

How = Literal["model", "values", "labels"]

DEFAULT_IMPUTATIONS = 3
_BY_SCHEMA = "as the schema says"


@dataclass(frozen=True)
class CompletionOptions:
    """Whether missing values of synthetic rows are imputed from synthetic rows (R23).

    There are then r completed versions of every table; they cost nothing.
    """

    complete: bool = option(
        False, "flag", "Impute missing values from synthetic rows, which costs nothing."
    )
    imputations: int | None = option(
        None,
        "whole",
        "Completed versions of each table, with --complete.",
        least=2,
        unless=str(DEFAULT_IMPUTATIONS),
    )

    @property
    def versions(self) -> int:
        """Completed versions of each table; 0 where none were asked for."""
        return (self.imputations or DEFAULT_IMPUTATIONS) if self.complete else 0


@dataclass(frozen=True)
class BudgetOptions:
    """What may be spent: one of epsilon (with or without delta), epsilon per row, l, alpha."""

    epsilon: float | None = option(None, "number", "Total epsilon for everything together.")
    delta: float | None = option(None, "number", "Delta of the total, beside --epsilon.")
    epsilon_per_row: float | None = option(
        None, "number", "Epsilon per synthetic row, as the paper counts."
    )
    l: float | None = option(None, "number", "Entropy l-diversity instead.")  # noqa: E741
    alpha: float | None = option(None, "number", "Virtual rows per category; 0: unperturbed.")
    shares: Shares | None = option(
        None,
        "shares",
        "Share of --epsilon for order, marginals or draws.",
        flag="--share",
        metavar="NAME=SHARE",
        unless="0.1, 0.1, 0.8",
    )
    no_guarantee: bool = option(
        False, "flag", "Perturb with --synthesize although nothing can hold."
    )


@dataclass(frozen=True)
class BookOptions:
    """Where it is written down what was spent on a table, over all runs."""

    book: Path | None = option(
        None,
        "file",
        "Budget book of the table (pegs book): what the run can cost is reserved there before "
        "anything is read, or refused.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class RunOptions:
    """How the work is done.

    A seed is for tests and studies. A panel that is `wide` is written as it is folded (R24).
    """

    decode: How | None = option(
        None,
        "choice",
        "Numbers inside their bin: model (they follow the other features), values (drawn one by "
        "one), or labels of bins.",
        choices=get_args(How),
        unless="model for numbers that were measured, else values",
    )
    threads: int | None = option(None, "whole", "Threads.", unless="all")
    wide: bool = option(
        False, "flag", "Write a panel with one row for each unit, as it is modelled."
    )
    seed: int | None = option(
        None, "whole", "Reproducible draws for tests; the guarantee is then none.", least=-(10**12)
    )
    accept_unreviewed_schema: bool = option(
        False, "flag", "Go on although nobody reviewed the schema; recorded as not private."
    )
    resume: Path | None = option(
        None,
        "file",
        "Save counts here on the way (CONFIDENTIAL), and go on from there; deleted at the end.",
        metavar="FILE",
    )

    @property
    def thread_count(self) -> int:
        """Threads to use."""
        return self.threads or usable_processors()


@dataclass(frozen=True)
class SourceOptions:
    """Which rows are the table, and how it is written, where the schema does not say it."""

    table: str | None = option(None, "text", "Table of the database to read, as it spells it.")
    query: str | None = option(None, "text", "SELECT to run on the database instead of a table.")
    query_is_rowwise: bool = option(
        False,
        "flag",
        "You declare that the query or view selects rows one by one; recorded.",
    )
    separator: str | None = option(
        None, "text", "What stands between the fields of a text file.", unless=_BY_SCHEMA
    )
    decimal: str | None = option(
        None, "text", "Decimal mark of numbers that are text.", unless=_BY_SCHEMA
    )
    thousands: str | None = option(
        None, "text", "Mark between groups of three digits.", unless=_BY_SCHEMA
    )
    encoding: str | None = option(None, "text", "Encoding of a text file.", unless=_BY_SCHEMA)
    analyses: Path | None = option(
        None,
        "file",
        "TOML file of analyses and tables that the release is to hold (R26).",
        unless=_BY_SCHEMA,
    )

    def source(self, data: Any) -> Any:
        """Return a table, or two, with what was said here of where it is and which rows."""
        from pegsynth.tables.table_input import named_source

        rowwise = self.query_is_rowwise
        return named_source(data, table=self.table, query=self.query, rowwise=rowwise)

    @property
    def dialect(self) -> Dialect:
        """What was said of how the table is written; nothing, mostly."""
        from pegsynth.schema.dialect import Dialect

        try:
            return Dialect(
                self.separator or "", self.decimal or "", self.thousands or "", self.encoding or ""
            )
        except SchemaError as error:
            raise ParameterError(f"--{error}") from None

    def written(self, schema: Schema) -> Schema:
        """Return a schema with what was said here of how the table is written, and wanted."""
        stated = self.dialect
        if stated:
            schema = replace(schema, dialect=stated.over(schema.dialect))
        if self.analyses is None:
            return schema
        from pegsynth.schema.declared import load_declared

        analyses, tables = load_declared(self.analyses)
        try:
            return replace(
                schema,
                analyses=(*schema.analyses, *analyses),
                tables_wanted=(*schema.tables_wanted, *tables),
            )
        except SchemaError as error:
            raise SchemaError(f"{self.analyses}: {error}") from None


@dataclass(frozen=True)
class EngineOptions:
    """Where the work is done: on this machine, or on a Spark cluster."""

    engine: Literal["local", "spark"] = option(
        "local",
        "choice",
        "local: this machine; spark: a cluster (pegsynth[spark]).",
        choices=("local", "spark"),
    )
    master: str | None = option(
        None,
        "text",
        "Cluster of --engine spark.",
        metavar="URL",
        unless="Spark's own setting",
    )


@dataclass(frozen=True)
class Publication:
    """What a release folder takes beside its rows; files are read when the folder is made.

    Rounding and blanking are policy and no further protection (R31). `quality` buys distances out
    of epsilon (R34). In Python `holdout` may be a table, and `about` the content of its file.
    """

    force: bool = option(False, "flag", "Replace an earlier release or an empty folder.")
    public_only: bool = option(False, "flag", "Do not write the internal folder.")
    table_format: str = option(
        "csv", "text", "Files of the tables: csv or parquet.", flag="--format"
    )
    weights_inside: bool = option(
        False,
        "flag",
        "Write replicate weights into the table, and not into a file beside it.",
    )
    k: int | None = option(
        None,
        "whole",
        "Blank --k-features in synthetic rows whose combination fewer rows share; policy, no "
        "further protection.",
    )
    k_features: tuple[str, ...] = option(
        (), "names", "Features for --k.", metavar="F,F", unless="quasi-identifiers"
    )
    round_to: tuple[tuple[str, float], ...] = option(
        None,
        "steps",
        "Round a synthetic number to multiples; policy too.",
        flag="--round",
        metavar="F=STEP",
    )
    about: Any = option(None, "document", "about.toml: who publishes what, for whom and why.")
    languages: tuple[str, ...] = option(
        (),
        "names",
        "PRIVACY.md in further languages: de, fr, es, pt.",
        flag="--language",
        metavar="L,L",
    )
    holdout: Any = option(None, "rows", "Real rows that the synthesizer never saw.")
    target: str | None = option(None, "text", "Feature to predict in real rows.", metavar="F")
    formulas: tuple[str, ...] = option(
        (),
        "texts",
        "Regression, such as 'charge ~ age + C(sev)'.",
        flag="--formula",
        metavar="TEXT",
    )
    quality: float | None = option(
        None,
        "number",
        "Part of --epsilon that buys noisy distances to the original, published in QUALITY.json "
        "with intervals, such as 0.1.",
        metavar="SHARE",
    )
    quality_tables: tuple[tuple[str, ...], ...] = option(
        (), "tables", "Another table for --quality.", flag="--quality-table", metavar="F,F"
    )
    accept: Path | None = option(
        None, "file", "Publish only if figures of --quality meet the criteria in this file."
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.k_features and self.k is None:
            raise ParameterError("--k-features requires --k; state how many rows must be alike")
        if self.quality is None and (self.quality_tables or self.accept is not None):
            raise ParameterError(
                "--quality-table and --accept require --quality SHARE, which pays for them"
            )
        if self.evaluates and self.public_only:
            raise ParameterError(
                "--holdout, --target and --formula are for the internal report, which "
                "--public-only leaves out; drop one of them"
            )

    @property
    def evaluates(self) -> bool:
        """Whether the internal report is to measure more than the tables."""
        return self.holdout is not None or bool(self.target or self.formulas)


GROUPS = (
    MethodChoice,
    RowOptions,
    HeadOptions,
    KeyOptions,
    PriorOptions,
    SweepOptions,
    TablesOptions,
    BlockSizeOptions,
    CapOptions,
    GivenOptions,
    PartialOptions,
    LogLinearOptions,
    ProperOptions,
    ReplicateOptions,
    CompletionOptions,
    BudgetOptions,
    BookOptions,
    RunOptions,
    SourceOptions,
    EngineOptions,
)
"""The groups whose options together are a `Request`."""


__all__ = [
    "AUTO",
    "DEFAULT_BLOCK_SIZE",
    "DEFAULT_IMPUTATIONS",
    "GROUPS",
    "MOST_REPLICATES",
    "MOST_VISITS",
    "PAPER_METHOD",
    "REPLICATES",
    "ROW",
    "WEIGHT",
    "BlockSizeOptions",
    "BookOptions",
    "BudgetOptions",
    "CapOptions",
    "CompletionOptions",
    "EngineOptions",
    "GivenOptions",
    "HeadOptions",
    "How",
    "KeyOptions",
    "LogLinearOptions",
    "MethodChoice",
    "MethodOptions",
    "Order",
    "PartialOptions",
    "PriorKind",
    "PriorOptions",
    "ProperOptions",
    "Publication",
    "ReplicateOptions",
    "RowOptions",
    "RunOptions",
    "SourceOptions",
    "SweepOptions",
    "TablesOptions",
    "named_weights",
    "weight_file",
]
