"""What the user asked for, checked before anything is read.

`FitOptions` say how the table is cut into blocks, `DrawOptions` how rows are drawn from
them. Both hold public choices only. What the user left open is None here and is settled
by `pegsynth.synthesizers.recipe` from the schema and the budget, never from the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pegsynth.errors import ParameterError
from pegsynth.hashing.order import detail_features, plain_features
from pegsynth.privacy import Budget
from pegsynth.schema import Schema

Method = Literal[
    "pegs",
    "pegs-rs",
    "pegs-capped",
    "pegs-once",
    "contingency",
    "marginal",
    "bootstrap",
    "mi",
    "pmi",
    "cart",
    "forest",
]
Order = Literal["public", "private", "data"]
PriorKind = Literal["uniform", "marginal"]

METHODS: tuple[str, ...] = get_args(Method)
PEGS_METHODS = ("pegs", "pegs-rs", "pegs-capped")
"""Gibbs sweeps over blocks; the other methods work on the table itself."""

IMPUTATION_METHODS = ("mi", "pmi", "cart", "forest")
"""Sequential draws from fitted conditional models."""

CHAINLESS_METHODS = ("contingency", "marginal", "bootstrap")
"""Rows drawn one by one, without seed rows and sweeps."""

PARTIAL_METHODS = ("pegs", *IMPUTATION_METHODS)
"""Methods that can replace some features of the original rows."""

UNBUDGETED_METHODS = ("bootstrap", "mi", "cart", "forest")
"""Methods for which no privacy result is known; they take no budget."""

ORDERS: tuple[str, ...] = get_args(Order)
PRIORS: tuple[str, ...] = get_args(PriorKind)
LARGEST_WHOLE = 10**12
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

    heads: int | None = None
    tail_bits: int = 1
    order: Order | None = None
    order_rows: int | None = None

    def __post_init__(self) -> None:
        check_choice("order", self.order, ORDERS)
        if self.order_rows is not None:
            check_whole("order-rows", self.order_rows)
            if self.order != "data":
                raise ParameterError(
                    "--order-rows goes with --order data; a private order is paid by the row and "
                    "looks at all of them"
                )


@dataclass(frozen=True)
class DrawOptions:
    """How rows are drawn.

    Parameters
    ----------
    method
        One of `METHODS`.
    rows, datasets
        n rows in each of K datasets; rows may be None where the price does not grow with
        them.
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

    rows: int | None
    method: Method = "pegs"
    datasets: int = 1
    sweeps: int = 1
    block_size: int = DEFAULT_BLOCK_SIZE
    visits: int | None = None
    chains: int | None = None
    urn: bool | None = None
    prior: PriorKind | None = None
    seed_pool: str | Path | None = None
    rows_in: int | None = None
    where: tuple[tuple[str, str], ...] = ()
    synthesize: tuple[str, ...] = ()
    log_linear: bool = False
    proper: bool = False

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("prior", self.prior, PRIORS)
        for name in ("datasets", "sweeps", "block_size"):
            check_whole(name, getattr(self, name))
        for name in ("rows", "visits", "chains", "rows_in"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))
        if self.visits is not None and self.visits > MOST_VISITS:
            raise ParameterError(f"--visits must be at most {MOST_VISITS}; it was {self.visits}")
        if self.method != "pegs-capped" and (self.visits or self.chains or self.urn):
            raise ParameterError("--visits, --chains and --urn go with --method pegs-capped only")
        if self.urn and (self.chains or 1) > 1:
            raise ParameterError("--urn draws one chain; leave out --chains")
        object.__setattr__(self, "where", tuple((name, text) for name, text in self.where))
        object.__setattr__(self, "synthesize", tuple(dict.fromkeys(self.synthesize)))
        if self.where and self.method == "marginal":
            raise ParameterError("--where says nothing to independent columns; use another method")
        if self.synthesize:
            self._check_partial()
        self._check_ignored()
        if self.log_linear and self.method != "contingency":
            raise ParameterError("--log-linear goes with --method contingency only")
        if self.proper and self.method not in ("mi", "cart", "forest"):
            raise ParameterError("--proper goes with mi, cart and forest; marginal always is")
        if self.seed_pool is not None and not str(self.seed_pool):
            raise ParameterError("--seed-pool is uniform, marginal or a file of public rows")

    def _check_ignored(self) -> None:
        """Refuse flags that the method would not use."""
        if self.method != "pegs-rs" and self.block_size != DEFAULT_BLOCK_SIZE:
            raise ParameterError("--block-size goes with --method pegs-rs only")
        if self.method not in CHAINLESS_METHODS:
            return
        if self.sweeps != 1 or self.seed_pool is not None:
            raise ParameterError(f"--sweeps and --seed-pool have no meaning for {self.method}")

    def _check_partial(self) -> None:
        if self.method not in PARTIAL_METHODS:
            raise ParameterError(
                f"--synthesize goes with {', '.join(PARTIAL_METHODS)}, not with {self.method}"
            )
        if self.where or self.seed_pool not in (None, "original"):
            raise ParameterError(
                "--synthesize starts from the original rows; leave out --where and --seed-pool"
            )


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the known ones; None is left open."""
    if value is not None and value not in known:
        flag = "--" + name.replace("_", "-")
        raise ParameterError(f"{flag} is one of {', '.join(known)}, not {value!r}")


def check_whole(name: str, value: object) -> int:
    """Return a whole number of at least 1, refusing everything else by name."""
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(f"{flag} must be a whole number of at least 1; it was {value}")
    if value > LARGEST_WHOLE:
        raise ParameterError(f"{flag} must be at most {LARGEST_WHOLE}; it was {value}")
    return value


def clamped_codes(schema: Schema, draw: DrawOptions) -> dict[int, int]:
    """Return the features that ``--where`` keeps fixed, with the code of their value."""
    import polars as pl

    from pegsynth.schema.encoding import ColumnEncoder

    clamped: dict[int, int] = {}
    for name, text in draw.where:
        feature = schema.features[schema.index(name)]
        encoder = ColumnEncoder(feature)
        code = int(encoder.encode(pl.Series(name, [text], dtype=pl.String))[0])
        if encoder.unknown or encoder.absent:
            raise ParameterError(f"--where {name}={text}: the schema has no such category")
        if schema.index(name) in clamped:
            raise ParameterError(f"--where {name}: the feature is given twice")
        clamped[schema.index(name)] = code
    if len(clamped) == len(schema.features):
        raise ParameterError("--where fixes every feature; leave at least one to be drawn")
    return clamped


def drawn_features(schema: Schema, draw: DrawOptions) -> tuple[int, ...]:
    """Return the features that are drawn, in order."""
    if draw.synthesize:
        chosen = {schema.index(name) for name in draw.synthesize}
    else:
        chosen = set(range(len(schema.features))) - set(clamped_codes(schema, draw))
    # Details come last: they are drawn given what their parent has become.
    order = (*plain_features(schema), *detail_features(schema))
    return tuple(feature for feature in order if feature in chosen)


def stated_levels(schema: Schema, budget: Budget) -> dict[int, float]:
    """Return the l that ``--l`` states for features, drawn or not (R7).

    A feature's own `l` in the schema, else the stated l for the sensitive features, or
    for all features when none is marked sensitive.
    """
    if budget.l is None:
        return {}
    sensitive = [i for i, f in enumerate(schema.features) if f.role == "sensitive"]
    levels = dict.fromkeys(sensitive or range(len(schema.features)), budget.l)
    own = {i: f.l for i, f in enumerate(schema.features) if f.l is not None}
    return levels | own


def diversity_levels(schema: Schema, budget: Budget, draw: DrawOptions) -> dict[int, float]:
    """Return the l of every feature that ``--l`` applies to and that is drawn (R7).

    Given values and kept columns are drawn from no distribution. Features that are there
    because none is marked sensitive do not count then; those that the schema asks an l
    for are refused.
    """
    levels = stated_levels(schema, budget)
    drawn = drawn_features(schema, draw) if levels else ()
    for index in levels.keys() - set(drawn):
        feature = schema.features[index]
        if feature.role == "sensitive" or feature.l is not None:
            why = (
                "keeps its original values; name it in --synthesize too"
                if draw.synthesize
                else "has a given value; leave it out of --where"
            )
            raise ParameterError(
                f"feature {feature.name!r}: --l asks for l-diverse values of it, which only drawn "
                f"values can be, and it {why}, or leave out --l"
            )
    return {index: levels[index] for index in drawn if index in levels}
