"""What the published tables of a release hold of an analysis, read off its ledger (R28).

`pegsynth.supported` reads it off a model. Whoever has a release alone has its ledger, which
names the features and levels of every noisy table, and of every declared analysis.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import combinations

from pegsynth.errors import ParameterError
from pegsynth.inference.choice import from_released_blocks
from pegsynth.privacy import Ledger, NoisyCounts, NoisyResiduals, NoisySums

NOT_SUPPORTED = "not supported"
NOT_ASKED = (
    "the interval holds the sampling error and the noise; for a relation that no published table "
    f"holds it is {NOT_SUPPORTED} (see supported, or state the analysis)"
)
ONE_WAY = "marginals"
_MOST_NAMED = 5


def support_note(ledger: Ledger, analysis: str, *, declared: bool = True) -> str:
    """Say whether the published tables hold the features of an analysis; nothing if none are.

    Parameters
    ----------
    analysis
        A formula such as ``los ~ age + sev``, or a list of features.
    declared
        Whether a declared analysis of these features counts: its terms may be others.

    Raises
    ------
    ParameterError
        The ledger names none of the features.
    """
    if not from_released_blocks(ledger):
        return ""
    tables = [frozenset(event.features) for event in _tables(ledger)]
    features = _features(ledger, analysis)
    if not features:
        raise ParameterError(
            f"the analysis {analysis!r} names no feature of the ledger; state a formula of its "
            "features, such as 'los ~ age + sev'"
        )
    sums = [
        frozenset(event.features)
        for event in ledger.events
        if isinstance(event, NoisySums) and event.purpose == "analysis"
    ]
    if declared and any(set(features) <= each for each in sums):
        return "held: the analysis was declared, and what it needs was measured"
    missing = [
        " x ".join(pair)
        for pair in combinations(features, 2)
        if not any(set(pair) <= each for each in tables)
    ]
    if missing:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        listed = ", ".join(missing[:_MOST_NAMED]) + more
        return f"{NOT_SUPPORTED}: no published table holds {listed}; the interval may be far off"
    merged = [name for name in features if _merged(ledger, name)] if len(features) > 1 else []
    if merged:
        return (
            f"{NOT_SUPPORTED} within merged levels: rare categories of {', '.join(merged)} share a "
            "level in published tables"
        )
    if any(set(features) <= each for each in tables) or len(features) == 1:
        return "held: one published table has all features of the analysis"
    return "pairs only: published tables hold every pair of features, which serves main effects"


def names_features(ledger: Ledger, analysis: str) -> bool:
    """Whether an analysis names features of a ledger of released blocks."""
    return from_released_blocks(ledger) and bool(_features(ledger, analysis))


def _features(ledger: Ledger, analysis: str) -> list[str]:
    """Return the features of the ledger that an analysis names."""
    known = {name for event in (*_one_ways(ledger), *_tables(ledger)) for name in event.features}
    return [name for name in sorted(known) if _named(name, analysis)]


def _tables(ledger: Ledger) -> Iterator[NoisyCounts | NoisyResiduals]:
    """Yield the events of tables of several features."""
    for event in ledger.events:
        if isinstance(event, NoisyResiduals) or (
            isinstance(event, NoisyCounts) and len(event.features) > 1 and _is_one(event)
        ):
            yield event


def _is_one(event: NoisyCounts) -> bool:
    """Whether an event is of one table, and not of a one-way table of each of its features."""
    return event.table_cells is None or event.table_cells == math.prod(event.levels)


def _one_ways(ledger: Ledger) -> Iterator[NoisyCounts]:
    for event in ledger.events:
        if isinstance(event, NoisyCounts) and len(event.features) == 1:
            yield event


def _merged(ledger: Ledger, name: str) -> bool:
    """Whether every table of several features has fewer levels of one than were counted alone."""
    alone = [
        event.levels[0]
        for event in _one_ways(ledger)
        if event.features == (name,) and event.purpose == ONE_WAY and event.levels
    ]
    shared = [
        event.levels[event.features.index(name)]
        for event in _tables(ledger)
        if name in event.features and event.levels
    ]
    return bool(alone and shared) and max(shared) < max(alone)


def _named(name: str, analysis: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", analysis) is not None
