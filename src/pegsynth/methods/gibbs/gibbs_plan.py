"""What a Gibbs sampler over hashed blocks settles before it sees the data.

A plan says how a table is cut into blocks, and what of the budget pays for order and marginals. It
depends on public quantities only, and its events are exactly what the ledger will say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pegsynth.errors import BudgetError, escaped
from pegsynth.mechanisms.marginals import CAP_RESOLUTION, URN_RESOLUTION, Marginals
from pegsynth.methods.gibbs.merging import Merging, merge
from pegsynth.methods.gibbs.order import check_head_count, plain_features
from pegsynth.methods.pricing import PricedPlan
from pegsynth.options import MOST_VISITS, CapOptions, KeyOptions, MethodOptions, Order, PriorKind
from pegsynth.privacy import Allowance, NoisyCounts, Selection

if TYPE_CHECKING:
    from pegsynth.methods.gibbs.spec import HashSpec
    from pegsynth.schema import Schema

DEFAULT_HEADS = 2
ENTRIES_EXPONENT = 2 / 3


@dataclass(frozen=True)
class Keys:
    """How a table is cut into blocks.

    Parameters
    ----------
    heads, tail_bits, order
        m, t, and where the heads come from.
    order_rows
        About how many rows an order of the data looks at; None for all.
    """

    heads: int = 0
    tail_bits: int = 0
    order: Order = "public"
    order_rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class GibbsPlan(PricedPlan):
    """A release of a Gibbs sampler, settled.

    Parameters
    ----------
    keys
        How the table is cut into blocks.
    prior
        Where virtual rows come from.
    """

    keys: Keys = Keys()
    prior: PriorKind = "uniform"

    @property
    def choice(self) -> Selection | None:
        """The event of all private head choices, if they are private."""
        return next((each for each in self.before if isinstance(each, Selection)), None)

    @property
    def merges(self) -> bool:
        """Whether small categories are merged by the paid counts."""
        return self.prior == "levels"

    def merging(self, schema: Schema, spec: HashSpec, marginals: Marginals) -> Merging:
        """Merge small categories by paid counts (R25)."""
        return merge(schema, spec, marginals, numerator=self.numerator, scale=self.scale)

    @property
    def resolution(self) -> int:
        """How finely a marginal prior follows its marginal."""
        return URN_RESOLUTION if draws_urns(self.options) else CAP_RESOLUTION


def draws_urns(options: MethodOptions) -> bool:
    """Whether drawn values go back into their entry (R17)."""
    return isinstance(options, CapOptions) and bool(options.urn)


def settle_keys(schema: Schema, options: KeyOptions, *, total: bool, heads: int) -> Keys:
    """Return m, t and order.

    Parameters
    ----------
    heads
        m where the user left it open.
    """
    features = len(plain_features(schema))
    if options.heads is not None:
        heads = check_head_count(options.heads, features)
    heads = min(heads, features - 1)
    listed = any(feature.heads for feature in schema.features)
    open_order: Order = "private" if total and not listed else "public"
    order = (options.order or open_order) if heads else "public"
    return Keys(heads, options.tail_bits, order, options.order_rows)


def default_visits(schema: Schema, rows: int, heads: int, tail_bits: int) -> int:
    """Return the visit cap T that lets most entries answer all of their visits.

    A chain of n rows visits the entries of a feature n times in all. Visits crowd on few
    entries: on real tables about K**(2/3) of K keys take most of them, so n / K**(2/3)
    visits each are enough and a larger cap would only cost alpha.
    """
    wanted = math.ceil(rows / used_entries(schema, heads, tail_bits))
    return min(max(1, wanted), MOST_VISITS)


def used_entries(schema: Schema, heads: int, tail_bits: int) -> float:
    """Estimate how many entries of a feature take most visits: K**(2/3) of K keys."""
    counts = schema.category_counts
    mean = math.exp(sum(map(math.log, counts)) / len(counts))
    return float((mean**heads * 2**tail_bits) ** ENTRIES_EXPONENT)


def marginal_event(
    schema: Schema, allowed: Allowance, unit: int, *, purpose: str = "marginals"
) -> NoisyCounts:
    """Return the least noise on all one-way counts within an allowance (R11, R12)."""
    features = len(schema.features)
    scale = Fraction(features * unit) / allowed.amount
    pure = allowed.route == "pure"
    noise = NoisyCounts.laplace if pure else NoisyCounts.gaussian
    return noise(
        _float_above(scale) if pure else _root_above(scale * unit / 2),
        cells=features,
        purpose=purpose,
        features=tuple(map(escaped, schema.names)),
        levels=schema.category_counts,
        table_cells=sum(schema.category_counts),
    )


def _float_above(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _root_above(value: Fraction) -> float:
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def choice_event(schema: Schema, allowed: Allowance, heads: int, unit: int) -> Selection:
    """Return the largest epsilon of each private choice within an allowance (R10, R12)."""
    # A detail's only head is its parent, which nobody has to choose.
    plain = plain_features(schema)
    choices = len(plain) * heads
    each = allowed.amount / (choices * unit)
    if allowed.route == "zcdp":
        square = 8 * allowed.amount / (choices * unit * unit)
        each = Fraction(math.sqrt(square))
        while each * each > square:
            each = Fraction(math.nextafter(float(each), 0.0))
    # A short fraction keeps the exact choices quick; rounding down spends less.
    epsilon = Fraction(math.floor(each * (1 << 40)), 1 << 40)
    if epsilon <= 0:
        raise BudgetError(
            "the share of order is too small to choose heads privately; raise epsilon or use "
            "--order public"
        )
    return Selection.of(
        epsilon,
        count=choices,
        purpose="order",
        features=tuple(escaped(schema.names[i]) for i in plain),
        candidates=len(plain) - 1,
        among="the other features, as heads",
    )
