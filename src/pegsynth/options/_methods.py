"""Which method makes the rows, and what the options of the methods are made of.

The options of a method are one frozen dataclass, put together from the groups here. What the user
left open is None; the method settles it from the schema and the budget, never from the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal, get_args

from pegsynth.errors import ParameterError
from pegsynth.options._kinds import check_options, option

Order = Literal["public", "private", "data"]
PriorKind = Literal["uniform", "marginal", "levels"]

AUTO = "auto"
PAPER_METHOD = "pegs"
"""What ``auto`` takes without a total epsilon; also draws from a model without a budget."""

WEIGHT = "pegs_weight"
"""The weight of a row, unless it is called otherwise; replicates have _1, _2, .. behind."""
ROW = "row"
"""The column of a file of weights that numbers the rows of the table beside it, from 1 on."""
_WEIGHTS = "-weights"
_WEIGHT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,23}")
MOST_VISITS = 2**31
MOST_REPLICATES = 1000
REPLICATES = 20
"""Replicate weights of a release, unless another number is stated."""
DEFAULT_BLOCK_SIZE = 10


def _method_names() -> tuple[str, ...]:
    from pegsynth.methods import names

    return (AUTO, *names())


@dataclass(frozen=True)
class MethodChoice:
    """Which method makes the rows."""

    method: str = option(
        AUTO,
        "choice",
        lambda: f"{', '.join(_method_names())}; auto: the smallest predicted error.",
        choices=_method_names,
    )


@dataclass(frozen=True)
class MethodOptions:
    """What the options of every method have in common: they are checked when they are made."""

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class RowOptions(MethodOptions):
    """How many rows, n in each of K datasets; every method takes these.

    `rows` may be None where the price does not grow with them.
    """

    rows: int | None = option(None, "whole", "Rows of each synthetic table.")
    datasets: int = option(1, "whole", "How many synthetic tables.")
    rows_in: int | None = option(
        None, "whole", "Public or rounded number of original rows, if it is public."
    )


@dataclass(frozen=True)
class HeadOptions(MethodOptions):
    """How many features each feature is drawn from, m."""

    heads: int | None = option(None, "whole", "Head features per target.", least=0, unless="2")


@dataclass(frozen=True)
class KeyOptions(HeadOptions):
    """How a table is cut into blocks by hashed keys.

    The paper takes one tail bit, t. A bit by XOR tells next to nothing of the target and halves the
    rows of every entry (R22), so there is none unless it is asked for. An order that is read off
    the `data` is the paper's mutual information, recorded as not private (R10).
    """

    tail_bits: int = option(
        0,
        "whole",
        "Tail bits of the key, 0 to 16; the paper's 1 halves every entry and tells next to "
        "nothing (R22).",
        least=0,
    )
    order: Order | None = option(
        None,
        "choice",
        "Where heads come from: public, private (paid) or data (the paper's; not private).",
        choices=get_args(Order),
        harmless=("public",),
        unless="private with --epsilon if the schema lists no heads, else public",
    )
    order_rows: int | None = option(None, "whole", "Rows that --order data looks at.", unless="all")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order_rows is not None and self.order != "data":
            raise ParameterError(
                "--order-rows requires --order data; a private order is paid by the row and "
                "looks at all of them"
            )


@dataclass(frozen=True)
class PriorOptions(MethodOptions):
    """Where virtual rows come from.

    With ``levels`` small categories are merged by paid counts before anything is drawn, neighbours
    where there is an order, and virtual rows are in proportion to what the levels hold (R25).
    """

    prior: PriorKind | None = option(
        None,
        "choice",
        "Virtual rows: uniform, marginal (paid), or levels (paid; small neighbours merged).",
        choices=get_args(PriorKind),
        unless="levels with --epsilon, marginal for pegs-capped, else uniform",
        harmless=("uniform",),
    )


@dataclass(frozen=True)
class SweepOptions(MethodOptions):
    """How rows come out of sweeps over seed rows: S sweeps per row."""

    sweeps: int = option(1, "whole", "Gibbs sweeps per row.")
    seed_pool: str | Path | None = option(
        None,
        "path",
        "Where chains start: uniform, marginal (paid), a file of public rows, or original (no "
        "guarantee).",
        unless="marginal with --epsilon, else uniform",
        harmless=("uniform",),
    )


@dataclass(frozen=True)
class BlockSizeOptions(MethodOptions):
    """How many rows a block has before what it visited is reset, B."""

    block_size: int = option(DEFAULT_BLOCK_SIZE, "whole", "Rows per block of pegs-rs.")


@dataclass(frozen=True)
class CapOptions(MethodOptions):
    """How visits are capped: at T, in G parallel chains.

    Drawn values may go back into their entry (R17), which is cheaper when epsilon is large; None
    lets the price decide.
    """

    visits: int | None = option(
        None, "whole", "Visit cap of pegs-capped.", unless="from rows and schema"
    )
    chains: int | None = option(None, "whole", "Chains of pegs-capped.", unless="4")
    urn: bool | None = option(
        None,
        "flag",
        "Whether pegs-capped puts drawn values back into their entry.",
        unless="if cheaper",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.visits is not None and self.visits > MOST_VISITS:
            raise ParameterError(f"--visits must be at most {MOST_VISITS}; it was {self.visits}")
        if self.urn and (self.chains or 1) > 1:
            raise ParameterError("--urn draws one chain; leave out --chains")


@dataclass(frozen=True)
class GivenOptions(MethodOptions):
    """Which features keep a given value in every row; they are not drawn."""

    where: tuple[tuple[str, str], ...] = option(
        (), "values", "Keep a feature at this value.", metavar="FEATURE=VALUE"
    )


@dataclass(frozen=True)
class PartialOptions(SweepOptions, GivenOptions):
    """Which features of the original rows are replaced, all others being kept as they are.

    No guarantee holds then.
    """

    synthesize: tuple[str, ...] = option(
        (), "names", "Replace only these features of the original rows.", metavar="F,F"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.synthesize and (self.where or self.seed_pool not in (None, "original")):
            raise ParameterError(
                "--synthesize starts from the original rows; leave out --where and --seed-pool"
            )


@dataclass(frozen=True)
class LogLinearOptions(MethodOptions):
    """Whether ``contingency`` draws from a log-linear fit of all pairs instead of counts."""

    log_linear: bool = option(
        False, "flag", "Let contingency draw from a log-linear fit of all pairs."
    )


@dataclass(frozen=True)
class ProperOptions(MethodOptions):
    """Whether imputation models are refitted for every dataset.

    Bayesian-bootstrap weights redraw their parameters (R16).
    """

    proper: bool = option(
        False, "flag", "Refit mi, cart or forest for every dataset (redrawn weights)."
    )


@dataclass(frozen=True)
class TablesOptions(MethodOptions):
    """Which published tables rows are made of, in place of a confidential table (R36)."""

    from_tables: str | None = option(
        None,
        "text",
        "Make rows of the published tables that this file lists (docs/evidence.md); no microdata "
        "is read.",
        metavar="TABLES.toml",
    )


@dataclass(frozen=True)
class ReplicateOptions(MethodOptions):
    """How the noise of released counts gets into intervals (R28).

    A release has 20 replicates by default, where its method can make them. Several tables that do
    not share their noise have sampling and noise of their own.
    """

    replicates: int | None = option(
        None, "whole", "Replicate weights of rows, for intervals; 0 for none.", least=0
    )
    weight_name: str = option(
        WEIGHT,
        "text",
        "Column of the weight; replicates are called NAME_1, NAME_2, ..",
        metavar="NAME",
    )
    shared_noise: bool = option(
        False,
        "flag",
        "Draw several tables from the same noisy counts; intervals then leave the noise out.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # R, Stata, SAS and SPSS take such names, with the number of a replicate behind.
        if not _WEIGHT_NAME.fullmatch(self.weight_name):
            raise ParameterError(
                "--weight-name is a letter and up to 23 letters, digits and underscores; choose "
                "such a name"
            )
        if self.replicates == 1 or (self.replicates or 0) > MOST_REPLICATES:
            raise ParameterError(
                f"--replicates must be 0, or 2 to {MOST_REPLICATES}; it was {self.replicates}"
            )

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The columns that weights add: that of the published counts, and K replicates."""
        return named_weights(self.weight_name, self.replicates or 0)


def named_weights(name: str, replicates: int) -> tuple[str, ...]:
    """Return the names of a weight and of its replicates; none where there are no replicates."""
    numbered = tuple(f"{name}_{number}" for number in range(1, replicates + 1))
    return (name, *numbered) if numbered else ()


def weight_file(table: str | PurePath) -> str:
    """Return the name of the file of weights that belongs to the file of a table.

    >>> weight_file("synthetic-1.csv")
    'synthetic-1-weights.csv'
    """
    path = PurePath(table)
    return f"{path.stem}{_WEIGHTS}{path.suffix}"
