"""Events that are draws from perturbed counts or fits.

How many draws one row can influence is never a free number: it follows from the structure
of the release (features M, rows n, sweeps S, datasets K, block size B, visits T).
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final, Self, TypeAlias, get_args

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.privacy.conversion import Route
from pegsynth.privacy.recorded import EIGHTH, HALF, Recorded, rows_in_words
from pegsynth.privacy.rounding import log_one_plus_up, product_up, ratio_up, sum_up

DETAILS: Final = "details, drawn given their parent"
"""Label of the draws of detail features, which stand on a line of their own."""


def draw_price(numerator: int, denominator: int) -> Decimal:
    """Price of one draw, eta = log(1 + 1/a) with a = numerator/denominator, rounded up (R1)."""
    return log_one_plus_up(denominator, numerator)


class PerturbedDraws(Recorded, frozen=True, kw_only=True):
    """Draws from counts that are perturbed by virtual rows.

    Parameters
    ----------
    alpha_numerator, alpha_denominator
        The smallest alpha_j used anywhere in these draws (a), as an exact fraction.
    """

    alpha_numerator: int
    alpha_denominator: int
    price_is_settled: ClassVar[bool] = True

    @classmethod
    def shape(cls, **fields: int) -> Self:
        """Return draws whose alpha is still open: their public structure, at an alpha of 1."""
        return cls(alpha_numerator=1, alpha_denominator=1, **fields)  # type: ignore[arg-type]

    def at(self, numerator: int, denominator: int) -> Self:
        """Return the same draws at another alpha."""
        return msgspec.structs.replace(
            self, alpha_numerator=numerator, alpha_denominator=denominator
        )

    @property
    def eta(self) -> Decimal:
        """The price of one draw (R1)."""
        return draw_price(self.alpha_numerator, self.alpha_denominator)

    @property
    def virtual(self) -> str:
        """What is drawn from, in words."""
        alpha = Fraction(self.alpha_numerator, self.alpha_denominator)
        return f"counts with at least {float(alpha):.6g} virtual rows for every value"

    @property
    def draws_per_row(self) -> int | None:
        """Draws behind one synthetic row; None where there is no such figure."""
        return None

    def price_per_row(self) -> Decimal | None:
        """Return the pure price of a synthetic row; None where there is no such figure."""
        draws = self.draws_per_row
        return None if draws is None else product_up(draws, self.eta)


class CountedDraws(PerturbedDraws, frozen=True, kw_only=True):
    """Draws of which one row of the original can influence so many."""

    @property
    def count(self) -> int:
        """Draws that one row can influence."""
        raise NotImplementedError

    @property
    def influence(self) -> str:
        """The same in words."""
        return f"one row of the original can influence {self.count:,} draws"

    def price_of_row(self, route: Route) -> Decimal | None:
        """Charge every draw (R3, R4, R5, R9)."""
        if route == "pure":
            return product_up(self.count, self.eta)
        # R6: an eta-bounded-range draw is (eta^2/8)-zCDP.
        return product_up(EIGHTH, self.count, self.eta, self.eta)


class SweptDraws(CountedDraws, frozen=True, kw_only=True):
    """Draws of all features of every row, in every sweep."""

    features: int
    rows: int
    sweeps: int = 1
    datasets: int = 1

    @property
    def count(self) -> int:
        """Draws that one row can influence: K n S M (R3, R8, R13)."""
        return self.datasets * self.rows * self.draws_per_row

    @property
    def draws_per_row(self) -> int:
        """Draws behind one synthetic row: S M (R2, R8)."""
        return self.sweeps * self.features

    @property
    def sweeps_in_words(self) -> str:
        """How often all features were drawn."""
        return "in one sweep" if self.sweeps == 1 else f"in {self.sweeps:,} sweeps"


class PegsDraws(SweptDraws, frozen=True, kw_only=True, tag="pegs"):
    """Gibbs sweeps over perturbed entries: every draw counts (R3)."""

    def described(self) -> tuple[str, str]:
        """Return what was drawn, and what that means."""
        how = f"feature by feature from {self.virtual}, {self.sweeps_in_words}"
        return _drawn(self, how, self.influence)


class BlockDraws(CountedDraws, frozen=True, kw_only=True, tag="pegs-rs"):
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

    def price_per_row(self) -> Decimal | None:
        """Return the pure price of a synthetic row."""
        # R4: a block of B rows costs M eta, so one row counts for M eta / B.
        return product_up(ratio_up(self.features, self.block_size), self.eta)

    def described(self) -> tuple[str, str]:
        """Return what was drawn, and what that means."""
        how = (
            f"from {self.virtual} in {self.blocks:,} blocks of at most {self.block_size:,} rows "
            "that start anew"
        )
        return _drawn(self, how, f"an entry answers once in a block, so {self.influence}")


class CappedDraws(CountedDraws, frozen=True, kw_only=True, tag="pegs-capped"):
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

    def described(self) -> tuple[str, str]:
        """Return what was drawn, and what that means."""
        how = f"from {self.virtual}, an entry answering {self.visits:,} times at most"
        return _drawn(self, how, f"{self.influence}, however many rows are drawn")


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

    def price_of_row(self, route: Route) -> Decimal | None:
        """Charge what T visits to one urn tell of it, in each of the independent sets (R17)."""
        eta = self.eta
        # The range of T visits to one urn: log(1 + T/a).
        width = log_one_plus_up(self.visits * self.alpha_denominator, self.alpha_numerator)
        if route == "pure":
            telescoped, each_draw = width, product_up(self.visits, eta)
        else:
            each_draw = product_up(EIGHTH, self.visits, eta, eta)
            # R17: min(T eta^2/8, log^2(1 + T/a)/8) per urn.
            telescoped = min(each_draw, product_up(EIGHTH, width, width))
        # R17, R18: where a rule restricts, every draw is paid in full.
        parts = (
            product_up(self.features - self.restricted, telescoped),
            product_up(self.restricted, each_draw),
        )
        return product_up(self.urns, sum_up(parts))

    def described(self) -> tuple[str, str]:
        """Return what was drawn, and what that means."""
        how = (
            f"from {self.virtual} and put every drawn value back as one more row, "
            f"{self.visits:,} draws from an entry at most"
        )
        limit = (
            f"one row of the original changes {self.features} entries in each of {self.urns} sets, "
            "however many rows are drawn"
        )
        return _drawn(self, how, limit)


class ImputationDraws(SweptDraws, frozen=True, kw_only=True, tag="pmi"):
    """Perturbed multiple imputation: every draw touches every row (R8)."""

    def price(self, route: Route, *, rows_per_unit: int = 1) -> Decimal | None:
        """Return the price, which is the same for a unit of any size.

        R8, R12: an imputation draw is eta-DP under any change of the table. It is not
        eta-bounded-range, so that its rho is eta^2/2.
        """
        if route == "pure":
            return product_up(self.count, self.eta)
        return product_up(HALF, self.count, self.eta, self.eta)

    def described(self) -> tuple[str, str]:
        """Return what was drawn, and what that means."""
        how = f"from models fitted to all rows, mixed with {self.virtual}, {self.sweeps_in_words}"
        limit = f"every row of the original can influence all {self.count:,} draws"
        return _drawn(self, how, limit)


class ContingencyDraws(CountedDraws, frozen=True, kw_only=True, tag="contingency"):
    """One draw per synthetic row from the full contingency table (R9)."""

    features: int
    rows: int
    datasets: int = 1

    @property
    def draws_per_row(self) -> int:
        """Draws behind one synthetic row: one (R9)."""
        return 1

    @property
    def count(self) -> int:
        """Draws that one row can influence: K n (R9)."""
        return self.datasets * self.rows

    def described(self) -> tuple[str, str]:
        """Return what was drawn, and what that means."""
        how = f"from the full table of all features, that is from {self.virtual}"
        return _drawn(self, how, self.influence)


Draws: TypeAlias = (
    PegsDraws | BlockDraws | CappedDraws | ImputationDraws | ContingencyDraws | UrnDraws
)

DRAWS: Final = get_args(Draws)


def _drawn(event: Draws, how: str, limit: str) -> tuple[str, str]:
    rows, datasets = event.rows, event.datasets
    many = f"{datasets:,} tables of " if datasets > 1 else ""
    what = "rows" if rows is None else f"{many}{rows:,} {rows_in_words(rows)}"
    return (
        f"The sampler drew {what} {how}{event.labelled}",
        f"{limit}, and each is blurred by the virtual rows",
    )
