"""Rules on order, as ``order = ["admitted", "discharged"]``: no feature is above the next (R18).

Such a rule forbids pairs of categories. It is decided by categories alone, so every pair has to be
in order or out of order as a whole; where bins overlap it is not, and the rule is refused: a date
or number that is counted from the other (`after`) is never before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pegsynth.schema.entry import Entry, shown
from pegsynth.schema.feature import Feature
from pegsynth.schema.rules import Rule
from pegsynth.schema.temporal import chain

_LEAST = 2


def order_rules(
    entry: Entry, positions: Mapping[str, int], features: Sequence[Feature]
) -> Iterator[Rule]:
    """Yield the rules that forbid what is out of order."""
    names = entry.texts("order")
    if len(names) < _LEAST or len(set(names)) < len(names):
        raise entry.error('order names two or more features, as order = ["admitted", "discharged"]')
    for name in names:
        if name not in positions:
            raise entry.error(f"order names {shown(name)}, which is not a modelled feature")
    for first, second in pairwise(names):
        low, high = features[positions[first]], features[positions[second]]
        if low in chain(high, features):
            # It is counted from the other, and never before it.
            continue
        lows, highs = _spans(entry, low), _spans(entry, high)
        for code, (least, most) in enumerate(highs):
            above = [place for place, span in enumerate(lows) if span[0] > most]
            if any(span[0] <= most and span[1] > least for span in lows):
                raise _undecided(entry, low, high)
            if above:
                forbidden = {positions[first]: above, positions[second]: [code]}
                yield Rule.of(forbidden, entry.text("label"))


def _undecided(entry: Entry, low: Feature, high: Feature) -> Exception:
    return entry.error(
        f"bins of {low.name!r} and {high.name!r} overlap, so categories do not tell their order; "
        f'for dates write after = "{low.name}" under {high.name!r} instead'
    )


def _spans(entry: Entry, feature: Feature) -> list[tuple[float, float]]:
    """Return the lowest and the highest value of every category or bin."""
    if feature.private_edges or feature.after is not None:
        raise entry.error(
            f"{feature.name!r} has no public bins of its own to be put in order; for dates write "
            "after = .. under the later one instead"
        )
    if feature.binned:
        last = len(feature.edges) - 2
        # The highest value of a bin; with any decimals it comes as near to the edge as it likes.
        step = 1.0 if feature.integer else 0.0
        return [
            (low, high if place == last else high - step if step else math.nextafter(high, low))
            for place, (low, high) in enumerate(pairwise(feature.closed_edges))
        ]
    if feature.kind != "ordinal":
        raise entry.error(f"{feature.name!r} is nominal and has no order; make it ordinal")
    try:
        values = [float(text) for text in feature.categories]
    except ValueError:
        raise entry.error(
            f"categories of {feature.name!r} are no numbers; forbid what is out of order"
        ) from None
    return [(value, value) for value in values]
