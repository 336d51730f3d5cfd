"""What the user asked for, checked before anything is read.

`FitOptions` say how the table is cut into blocks, `DrawOptions` how rows are drawn from
them. Both hold public choices only; their defaults depend on the schema and the budget,
never on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pegsynth.errors import ParameterError
from pegsynth.hashing.order import check_head_count
from pegsynth.privacy import Budget
from pegsynth.schema import Schema

Method = Literal["pegs", "pegs-rs"]
Order = Literal["public", "data"]

METHODS: tuple[str, ...] = get_args(Method)
ORDERS: tuple[str, ...] = get_args(Order)
DEFAULT_HEADS = 2


@dataclass(frozen=True)
class FitOptions:
    """How a table is disintegrated.

    Parameters
    ----------
    heads
        Head features per target, m; None for 2, or M-1 if that is less.
    tail_bits
        Tail bits, t.
    order
        ``public``: heads from the schema. ``data``: the paper's mutual information of the
        data, recorded as not private (R10).
    """

    heads: int | None = None
    tail_bits: int = 1
    order: Order | None = None

    def __post_init__(self) -> None:
        if self.order is not None and self.order not in ORDERS:
            raise ParameterError(f"--order is one of {', '.join(ORDERS)}, not {self.order!r}")

    def head_count(self, schema: Schema) -> int:
        """Return m for a schema."""
        features = len(schema.features)
        if self.heads is None:
            return min(DEFAULT_HEADS, features - 1)
        return check_head_count(self.heads, features)


@dataclass(frozen=True)
class DrawOptions:
    """How rows are drawn.

    Parameters
    ----------
    method
        ``pegs`` or ``pegs-rs``.
    rows, datasets
        n rows in each of K datasets.
    sweeps
        Sweeps per row, S.
    block_size
        Rows per block of ``pegs-rs``, B.
    seed_pool
        ``uniform``, or the name of a public file of rows.
    """

    rows: int
    method: Method = "pegs"
    datasets: int = 1
    sweeps: int = 1
    block_size: int = 10
    seed_pool: str | Path = "uniform"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"--method is one of {', '.join(METHODS)}, not {self.method!r}")
        for name in ("rows", "datasets", "sweeps", "block_size"):
            check_whole(name, getattr(self, name))


def check_whole(name: str, value: object) -> int:
    """Return a whole number of at least 1, refusing everything else by name."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        flag = "--" + name.replace("_", "-")
        raise ParameterError(f"{flag} must be a whole number of at least 1; it was {value}")
    return value


def diversity_levels(schema: Schema, budget: Budget) -> dict[int, float]:
    """Return the l of every feature that ``--l`` applies to (R7).

    A feature's own `l` in the schema, else the stated l for the sensitive features, or
    for all features when none is marked sensitive.
    """
    if budget.l is None:
        return {}
    sensitive = [i for i, f in enumerate(schema.features) if f.role == "sensitive"]
    levels = dict.fromkeys(sensitive or range(len(schema.features)), budget.l)
    own = {i: f.l for i, f in enumerate(schema.features) if f.l is not None}
    return levels | own
