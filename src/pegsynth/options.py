"""Every option of a release, declared once: name, type, default, help, and who takes it.

`FitOptions` say how the table is cut into blocks, `DrawOptions` how rows are drawn,
`BudgetOptions` what may be spent, `RunOptions` and `SourceOptions` how the work is done and
where the table is. `Request` is all of them together, as a command or a call states them. All
are public choices. What the user left open is None here and is settled by
`pegsynth.synthesizers.recipe` from the schema and the budget, never from the data.

The flags of the command line, the keyword arguments in Python, their checks, the help texts
and docs/options.md are made of these declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.option_kinds import check_options, declared, option
from pegsynth.processors import usable_processors

if TYPE_CHECKING:
    from pegsynth.privacy import Shares
    from pegsynth.schema import Schema
    from pegsynth.schema.dialect import Dialect

Order = Literal["public", "private", "data"]
PriorKind = Literal["uniform", "marginal"]
How = Literal["values", "labels"]

AUTO = "auto"
PEGS_METHODS = ("pegs", "pegs-rs", "pegs-capped")
"""Gibbs sweeps over blocks; the other methods work on the table itself."""

IMPUTATION_METHODS = ("mi", "pmi", "cart", "forest")
"""Sequential draws from fitted conditional models."""

METHODS = (*PEGS_METHODS, "pegs-once", "contingency", "marginal", "bootstrap", *IMPUTATION_METHODS)

CHAIN_METHODS = (*PEGS_METHODS, *IMPUTATION_METHODS)
"""Methods whose rows start from seed rows and come out of sweeps."""

PARTIAL_METHODS = ("pegs", *IMPUTATION_METHODS)
"""Methods that can replace some features of the original rows."""

UNBUDGETED_METHODS = ("bootstrap", "mi", "cart", "forest")
"""Methods for which no privacy result is known; they take no budget."""

_BY_SCHEMA = "as the schema says"
MOST_VISITS = 2**31
DEFAULT_BLOCK_SIZE = 10


@dataclass(frozen=True)
class FitOptions:
    """How a table is disintegrated.

    Parameters
    ----------
    heads
        Head features per target, m.
    tail_bits
        Tail bits, t.
    order
        ``public``: heads from the schema. ``private``: chosen by the exponential mechanism
        and paid for. ``data``: the paper's mutual information, recorded as not private (R10).
    order_rows
        About how many rows ``data`` looks at, spread over the table; None for all.
    """

    heads: int | None = option(
        None,
        "whole",
        "Head features per target.",
        least=0,
        methods=(*PEGS_METHODS, "pegs-once"),
        unless="2",
    )
    tail_bits: int = option(
        1, "whole", "Tail bits of the key, 0 to 16.", least=0, methods=PEGS_METHODS
    )
    order: Order | None = option(
        None,
        "choice",
        "Where heads come from: public, private (paid) or data (the paper's; not private).",
        choices=get_args(Order),
        methods=PEGS_METHODS,
        unless="private with --epsilon if the schema lists no heads, else public",
    )
    order_rows: int | None = option(
        None, "whole", "Rows that --order data looks at.", methods=PEGS_METHODS, unless="all"
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.order_rows is not None and self.order != "data":
            raise ParameterError(
                "--order-rows goes with --order data; a private order is paid by the row and "
                "looks at all of them"
            )


@dataclass(frozen=True)
class DrawOptions:
    """How rows are drawn.

    Parameters
    ----------
    rows, datasets
        n rows in each of K datasets; rows may be None where the price does not grow with
        them.
    method
        One of `METHODS`.
    sweeps
        Sweeps per row, S.
    block_size
        Rows per block of ``pegs-rs``, B.
    visits, chains
        Visit cap T and parallel chains G of ``pegs-capped``.
    urn
        Whether its drawn values go back into their entry (R17), which is cheaper when
        epsilon is large; None lets the price decide.
    prior
        ``uniform`` virtual rows, or in proportion to a paid ``marginal``.
    seed_pool
        ``uniform``, a paid ``marginal``, the name of a public file of rows, or
        ``original`` rows, which leaves no guarantee.
    rows_in
        Public or rounded number of original rows.
    where
        Features and the value that each keeps in every row; they are not drawn.
    synthesize
        Features to replace in the original rows, all others being kept as they are; no
        guarantee holds then.
    log_linear
        Whether ``contingency`` draws from a log-linear fit of all pairs instead of counts.
    proper
        Whether imputation models are refitted for every dataset with Bayesian-bootstrap
        weights, which redraws their parameters (R16).
    """

    rows: int | None = option(None, "whole", "Rows of each synthetic table.")
    method: str = option(
        "pegs", "choice", f"{AUTO}, {', '.join(METHODS)}.", choices=(AUTO, *METHODS)
    )
    datasets: int = option(1, "whole", "How many synthetic tables.")
    sweeps: int = option(1, "whole", "Gibbs sweeps per row.", methods=CHAIN_METHODS)
    block_size: int = option(
        DEFAULT_BLOCK_SIZE, "whole", "Rows per block of pegs-rs.", methods=("pegs-rs",)
    )
    visits: int | None = option(
        None,
        "whole",
        "Visit cap of pegs-capped.",
        methods=("pegs-capped",),
        unless="from rows and schema",
    )
    chains: int | None = option(
        None, "whole", "Chains of pegs-capped.", methods=("pegs-capped",), unless="4"
    )
    urn: bool | None = option(
        None,
        "flag",
        "Whether pegs-capped puts drawn values back into their entry.",
        methods=("pegs-capped",),
        unless="if cheaper",
    )
    prior: PriorKind | None = option(
        None,
        "choice",
        "uniform or marginal (paid) virtual rows.",
        choices=get_args(PriorKind),
        methods=PEGS_METHODS,
        unless="marginal for pegs-capped with --epsilon, else uniform",
        harmless=("uniform",),
    )
    seed_pool: str | Path | None = option(
        None,
        "path",
        "Where chains start: uniform, marginal (paid), a file of public rows, or original (no "
        "guarantee).",
        methods=CHAIN_METHODS,
        unless="marginal with --epsilon, else uniform",
        harmless=("uniform",),
    )
    rows_in: int | None = option(
        None, "whole", "Public or rounded number of original rows, if it is public."
    )
    where: tuple[tuple[str, str], ...] = option(
        (),
        "values",
        "Keep a feature at this value.",
        methods=tuple(method for method in METHODS if method != "marginal"),
        metavar="FEATURE=VALUE",
    )
    synthesize: tuple[str, ...] = option(
        (),
        "names",
        "Replace only these features of the original rows.",
        methods=PARTIAL_METHODS,
        metavar="F,F",
    )
    log_linear: bool = option(
        False,
        "flag",
        "Let contingency draw from a log-linear fit of all pairs.",
        methods=("contingency",),
    )
    proper: bool = option(
        False,
        "flag",
        "Refit mi, cart or forest for every dataset (redrawn weights).",
        methods=("mi", "cart", "forest"),
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.method == AUTO:
            raise ParameterError("--method auto is settled before anything is drawn")
        if self.visits is not None and self.visits > MOST_VISITS:
            raise ParameterError(f"--visits must be at most {MOST_VISITS}; it was {self.visits}")
        if self.urn and (self.chains or 1) > 1:
            raise ParameterError("--urn draws one chain; leave out --chains")
        refuse_ignored(self, self.method)
        if self.synthesize and (self.where or self.seed_pool not in (None, "original")):
            raise ParameterError(
                "--synthesize starts from the original rows; leave out --where and --seed-pool"
            )


@dataclass(frozen=True)
class BudgetOptions:
    """What may be spent: exactly one of epsilon (with or without delta), epsilon per row, l, alpha.

    Parameters
    ----------
    epsilon, delta
        The total for everything together.
    epsilon_per_row
        The paper's convention.
    l
        Entropy l-diversity; beside epsilon for ``pegs-once`` only.
    alpha
        Virtual rows per category.
    shares
        How epsilon is split over order, marginals and draws.
    """

    epsilon: float | None = option(None, "number", "Total epsilon for everything together.")
    delta: float | None = option(None, "number", "Delta that goes with --epsilon.")
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
class RunOptions:
    """How the work is done.

    Parameters
    ----------
    decode
        ``values``: numbers are drawn inside their bin; ``labels``: bins are written.
    seed
        For tests and studies: reproducible, and without any guarantee.
    resume
        For files: where to save counts on the way (CONFIDENTIAL) and go on from; deleted at
        the end.
    """

    decode: How = option(
        "values",
        "choice",
        "values: numbers drawn inside their bin; or labels.",
        choices=get_args(How),
    )
    threads: int | None = option(None, "whole", "Threads.", unless="all")
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
    """Which rows are the table, and how it is written.

    Parameters
    ----------
    table, query
        A table as the database spells it, or a SELECT.
    query_is_rowwise
        The caller's word that the query or view selects rows one by one.
    separator, decimal, thousands, encoding
        How a text file is written, where that is not what the schema says under ``[table]``.
    """

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
        """Return a schema with what was said here of how the table is written."""
        stated = self.dialect
        return replace(schema, dialect=stated.over(schema.dialect)) if stated else schema


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


GROUPS = (DrawOptions, BudgetOptions, FitOptions, RunOptions, SourceOptions, EngineOptions)


def refuse_ignored(options: object, method: str) -> None:
    """Refuse options that were stated and that the method does not take."""
    for group in GROUPS:
        for name, each in declared(group).items():
            if not each.methods or method in each.methods or not hasattr(options, name):
                continue
            value = getattr(options, name)
            default = group.__dataclass_fields__[name].default
            if value not in (None, (), False, default, *each.harmless):
                taken = ", ".join(each.methods)
                raise ParameterError(f"{each.flag_of(name)} goes with --method {taken} only")
