"""Events that are draws from perturbed counts or fits.

How many draws one row can influence is never a free number: it follows from the structure
of the release (features M, rows n, sweeps S, datasets K, block size B, visits T).
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Final, TypeAlias, get_args

import msgspec

from pegsynth.errors import ParameterError

LARGEST_INTEGER: Final = 2**256

DETAILS: Final = "details, drawn given their parent"
"""Label of the draws of detail features, which stand on a line of their own."""


class Recorded(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True
):
    """Fields and checks that all events share.

    Parameters
    ----------
    label
        Free words for the reader of the ledger, such as the name of a table. Public.
    """

    label: str = ""

    def __post_init__(self) -> None:
        for name, optional in _integer_fields(type(self)):
            value = getattr(self, name)
            if value is not None or not optional:
                checked = checked_integer(type(self).__name__, name, value)
                msgspec.structs.force_setattr(self, name, checked)


@lru_cache(maxsize=64)
def _integer_fields(event: type[Recorded]) -> tuple[tuple[str, bool], ...]:
    """Names of an event's whole-number fields, and whether each may be None."""
    annotations = {
        k: v for base in event.__mro__ for k, v in vars(base).get("__annotations__", {}).items()
    }
    return tuple((k, v != "int") for k, v in annotations.items() if v in ("int", "int | None"))


def checked_integer(event: str, name: str, value: object) -> int:
    """Return a field that must be a whole number, refusing everything else by name."""
    lowest = 0 if name == "restricted" else 1
    try:
        whole = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        whole = -1
    if isinstance(value, bool) or not lowest <= whole <= LARGEST_INTEGER:
        raise ParameterError(f"{event}: {name} must be a whole number of at least {lowest}")
    return whole


class PerturbedDraws(Recorded, frozen=True, kw_only=True):
    """Draws from counts that are perturbed by virtual rows.

    Parameters
    ----------
    alpha_numerator, alpha_denominator
        The smallest alpha_j used anywhere in these draws (a), as an exact fraction.
    """

    alpha_numerator: int
    alpha_denominator: int


class PegsDraws(PerturbedDraws, frozen=True, kw_only=True, tag="pegs"):
    """Gibbs sweeps over perturbed entries: every draw counts (R3)."""

    features: int
    rows: int
    sweeps: int = 1
    datasets: int = 1

    @property
    def count(self) -> int:
        """Draws that one row can influence: K n S M (R3, R13)."""
        return self.datasets * self.rows * self.draws_per_row

    @property
    def draws_per_row(self) -> int:
        """Draws behind one synthetic row: S M (R2)."""
        return self.sweeps * self.features


class BlockDraws(PerturbedDraws, frozen=True, kw_only=True, tag="pegs-rs"):
    """Block PeGS with reset: an entry answers once per block, whatever the sweeps (R4)."""

    features: int
    rows: int
    block_size: int
    sweeps: int = 1
    datasets: int = 1

    @property
    def blocks(self) -> int:
        """Blocks over all datasets: K ceil(n/B) (R4, R13)."""
        return self.datasets * -(-self.rows // self.block_size)

    @property
    def count(self) -> int:
        """Draws that one row can influence: M per block (R4)."""
        return self.blocks * self.features


class CappedDraws(PerturbedDraws, frozen=True, kw_only=True, tag="pegs-capped"):
    """PeGS with a visit cap: an entry answers `visits` times in the whole release (R5).

    The counters belong to the data. Sampling again from the same counters is the same
    event; a second copy of the counters, or other hash functions, is another one.
    `rows`, `sweeps`, `datasets` and `chains` are recorded for the reader: the price does
    not depend on them (R13).
    """

    features: int
    visits: int
    hashings: int = 1
    rows: int | None = None
    sweeps: int = 1
    datasets: int = 1
    chains: int = 1

    @property
    def count(self) -> int:
        """Draws that one row can influence: G M T (R5)."""
        return self.hashings * self.features * self.visits


class UrnDraws(PerturbedDraws, frozen=True, kw_only=True, tag="urn"):
    """Polya visits: each drawn value goes back into its entry (R17).

    Parameters
    ----------
    features
        Features M, one entry of each is changed by one row. Marginals count alike.
    visits
        The most draws T from one entry, those rejected by a rule included.
    urns
        Independent sets of urns: datasets or chains that do not share them.
    restricted
        How many of the features are drawn under a rule without rejection. Their factors
        do not telescope and each draw is paid in full (R17, R18).
    """

    features: int
    visits: int
    urns: int = 1
    restricted: int = 0
    rows: int | None = None
    datasets: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.restricted > self.features:
            raise ParameterError("UrnDraws: restricted cannot exceed features")


class ImputationDraws(PerturbedDraws, frozen=True, kw_only=True, tag="pmi"):
    """Perturbed multiple imputation: every draw touches every row (R8)."""

    features: int
    rows: int
    sweeps: int = 1
    datasets: int = 1

    @property
    def count(self) -> int:
        """Draws that one row can influence: K n S M (R8)."""
        return self.datasets * self.rows * self.draws_per_row

    @property
    def draws_per_row(self) -> int:
        """Draws behind one synthetic row: S M (R8)."""
        return self.sweeps * self.features


class ContingencyDraws(PerturbedDraws, frozen=True, kw_only=True, tag="contingency"):
    """One draw per synthetic row from the full contingency table (R9)."""

    features: int
    rows: int
    datasets: int = 1

    @property
    def count(self) -> int:
        """Draws that one row can influence: K n (R9)."""
        return self.datasets * self.rows

    @property
    def draws_per_row(self) -> int:
        """Draws behind one synthetic row: one (R9)."""
        return 1


class MarginalDraws(PerturbedDraws, frozen=True, kw_only=True, tag="marginal"):
    """Independent draws from M perturbed marginals (R9)."""

    features: int
    rows: int
    datasets: int = 1

    @property
    def count(self) -> int:
        """Draws that one row can influence: K n M (R9)."""
        return self.datasets * self.rows * self.features

    @property
    def draws_per_row(self) -> int:
        """Draws behind one synthetic row: M (R9)."""
        return self.features


CountedDraws: TypeAlias = (
    PegsDraws | BlockDraws | CappedDraws | ImputationDraws | ContingencyDraws | MarginalDraws
)
Draws: TypeAlias = CountedDraws | UrnDraws

DRAWS: Final = get_args(Draws)
