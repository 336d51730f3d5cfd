"""What the published tables of a release hold of an analysis, read off its ledger (R28).

`pegsynth.supported` reads it off a model. Whoever has a release alone has its ledger, which
names the features and levels of every noisy table, and of every declared analysis.

What all replicates share is in no interval of theirs; `shared_bias` says what becomes of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Final, Literal, TypeAlias, get_args

from pegsynth.errors import ParameterError
from pegsynth.inference.choice import from_released_blocks, rows_in_of
from pegsynth.inference.combining_rules import Floor, Numbers
from pegsynth.privacy import Ledger, NoisyCounts, NoisyResiduals, NoisySums
from pegsynth.privacy.noise_events import PublishedCounts
from pegsynth.schema import Schema

Status: TypeAlias = Literal["supported", "supported by bins only", "merged", "not supported"]
SUPPORTED, BY_BINS, MERGED, NOT_SUPPORTED = get_args(Status)
LEDGER_NEEDED: Final = "whether an analysis is supported is read off the ledger; state it"
NO_LEDGER: Final = "not known: state the ledger"
NO_ANALYSIS: Final = "not known: state the analysis"
MEANINGS: Final[dict[Status, str]] = {
    SUPPORTED: "one published table has all features of the analysis",
    BY_BINS: "published tables have bins of {}; values inside them are related to no other feature",
    MERGED: "rare categories of {} are merged in published tables, which relate them to nothing",
    NOT_SUPPORTED: "no published table holds {}; the interval may be far off",
}
ONLY_PAIRS: Final = "published tables have every pair of features, which serves main effects"
DECLARED: Final = "the analysis was declared, and what it needs was measured"
NOT_ASKED = (
    "the interval holds the sampling error and the noise; for a relation that no published table "
    f"holds it is {NOT_SUPPORTED} (see supported, or state the analysis)"
)
ONE_WAY, EDGES = "marginals", "edges"
LOUDEST: Final = 2.0
"""A table of louder noise on a cell, in rows of an average cell, says next to nothing: rows keep to
what they would be without it, and so do all replicates."""
CHANCE = 3e-5
"""Chance that noise alone makes an octave one of those that are seen (`pegsynth.codec.tails`)."""

_MOST_NAMED = 5
MOST_TOGETHER = 3


def support_note(
    ledger: Ledger,
    analysis: str,
    *,
    declared: bool = True,
    schema: Schema | None = None,
    joint: bool = False,
) -> str:
    """Return the status of an analysis and the reason for it; nothing if no tables are published.

    Parameters
    ----------
    analysis
        A formula such as ``los ~ age + sev``, or a list of features.
    declared
        Whether a declared analysis of these features counts: its terms may be others.
    schema
        The codebook, which tells of public bins; without it, measured ones are known.
    joint
        Whether one table must have all features, as for an interaction.

    Raises
    ------
    ParameterError
        The ledger names none of the features.
    """
    if not from_released_blocks(ledger):
        return ""
    tables = [frozenset(event.features) for event in _tables(ledger)]
    features = named_features(ledger, analysis)
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
        return f"{SUPPORTED}: {DECLARED}"
    together = len(features) == 1 or any(set(features) <= each for each in tables)
    missing = [
        " x ".join(pair)
        for pair in combinations(features, 2)
        if not any(set(pair) <= each for each in tables)
    ]
    if joint and not together:
        missing = missing or [" x ".join(features)]
    if missing:
        return note_of(NOT_SUPPORTED, missing)
    if len(features) > 1:
        numbers = [name for name in features if _is_binned(ledger, name, schema)]
        merged = [name for name in features if name not in numbers and _merged(ledger, name)]
        for status, names in ((MERGED, merged), (BY_BINS, numbers)):
            if names:
                return note_of(status, names)
    return note_of(SUPPORTED) if together else f"{SUPPORTED}: {ONLY_PAIRS}"


def drowned(ledger: Ledger, analysis: str, rows: float) -> list[str]:
    """Return the pairs of features that only tables hold whose noise drowns so many rows."""
    tables = [(frozenset(event.features), _loudness(event) / rows) for event in _tables(ledger)]
    found = []
    for pair in combinations(named_features(ledger, analysis), 2):
        noise = [loud for features, loud in tables if set(pair) <= features]
        if noise and min(noise) > LOUDEST:
            found.append(" x ".join(pair))
    return found


def _loudness(event: NoisyCounts | NoisyResiduals | PublishedCounts) -> float:
    """Return the deviation of the noise on a cell, times the number of cells."""
    if isinstance(event, PublishedCounts):
        return 0.0  # rounding drowns no table
    # That of a residual is in as many parts of a row as it has cells (R27).
    return _deviation(event) * (1 if isinstance(event, NoisyResiduals) else math.prod(event.levels))


def _deviation(event: NoisyCounts | NoisyResiduals) -> float:
    scale = event.scale_numerator / event.scale_denominator
    return scale * math.sqrt(2.0) if event.mechanism == "discrete-laplace" else math.sqrt(scale)


def status_of(note: str) -> str:
    """Return the status that a note begins with."""
    return note if note in (NO_LEDGER, NO_ANALYSIS) else note.partition(":")[0]


def worst(statuses: Iterable[str]) -> str:
    """Return the status of what needs several figures; what is not known counts most."""
    order = list(get_args(Status))
    return max(statuses, key=lambda each: order.index(each) if each in order else len(order))


def note_of(status: Status, names: Sequence[str] = ()) -> str:
    """Return a status and what it means for these names."""
    return f"{status}: " + MEANINGS[status].format(listed(names))


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _is_binned(ledger: Ledger, name: str, schema: Schema | None) -> bool:
    """Whether a feature is a number whose published counts are of bins with several values."""
    if schema is not None and name in schema.names:
        return has_wide_bins(schema, name)
    return any(
        isinstance(event, NoisyCounts) and event.purpose == EDGES and event.features == (name,)
        for event in ledger.events
    )


def has_wide_bins(schema: Schema, name: str) -> bool:
    """Whether a feature of a codebook has bins that hold more than one value."""
    feature = schema[name]
    one_each = feature.integer and all(b - a == 1 for a, b in pairwise(feature.edges))
    return feature.binned and not (feature.edges and one_each)


def names_features(ledger: Ledger, analysis: str) -> bool:
    """Whether an analysis names features of a ledger of released blocks."""
    return from_released_blocks(ledger) and bool(named_features(ledger, analysis))


def named_features(ledger: Ledger, analysis: str) -> list[str]:
    """Return the features of the ledger that an analysis names."""
    known = {name for event in (*_one_ways(ledger), *_tables(ledger)) for name in event.features}
    return [name for name in sorted(known) if _named(name, analysis)]


def _tables(ledger: Ledger) -> Iterator[NoisyCounts | NoisyResiduals | PublishedCounts]:
    """Yield the events of tables of several features."""
    for event in ledger.events:
        if isinstance(event, NoisyResiduals) or (
            isinstance(event, NoisyCounts | PublishedCounts)
            and len(event.features) > 1
            and _is_one(event)
        ):
            yield event


def _is_one(event: NoisyCounts | PublishedCounts) -> bool:
    """Whether an event is of one table, and not of a one-way table of each of its features."""
    return (
        isinstance(event, PublishedCounts)
        or event.table_cells is None
        or event.table_cells == math.prod(event.levels)
    )


def _one_ways(ledger: Ledger) -> Iterator[NoisyCounts | PublishedCounts]:
    for event in ledger.events:
        if isinstance(event, NoisyCounts | PublishedCounts) and len(event.features) == 1:
            yield event


def _alone(event: NoisyCounts | PublishedCounts) -> bool:
    """Whether an event is of the one-way counts of a feature."""
    return isinstance(event, PublishedCounts) or event.purpose == ONE_WAY


def _merged(ledger: Ledger, name: str) -> bool:
    """Whether every table of several features has fewer levels of one than were counted alone."""
    alone = [
        event.levels[0]
        for event in _one_ways(ledger)
        if event.features == (name,) and event.levels and _alone(event)
    ]
    shared = [
        event.levels[event.features.index(name)]
        for event in _tables(ledger)
        if name in event.features and event.levels
    ]
    return bool(alone and shared) and max(shared) < max(alone)


def _named(name: str, analysis: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", analysis) is not None


def hidden_rows(ledger: Ledger, name: str) -> float:
    """Return how many rows an octave of a number may have without being seen; 0: not measured."""
    events = [each for each in _counts(ledger, EDGES, name) if each.levels]
    # Octaves are measured twice where none can be divided.
    tops = [each for each in events if each.levels == events[0].levels]
    if not tops:
        return 0.0
    deviation = _deviation(tops[0]) / math.sqrt(len(tops))
    if tops[0].mechanism == "discrete-laplace":
        return -deviation * math.log(2 * CHANCE) / math.sqrt(2.0)
    from scipy.special import ndtri

    return -deviation * float(ndtri(CHANCE))


def floor_of_shares(
    ledger: Ledger, name: str, weights: Numbers, names: Iterable[str]
) -> Floor | None:
    """Return the floor of the shares of a feature's categories; None where none were counted.

    Noise of tables with more features may be less, which makes the floor a little high.

    Parameters
    ----------
    names
        Of the shares.
    """
    if not from_released_blocks(ledger) or hidden_rows(ledger, name):
        return None
    deviations = [_deviation(event) for event in _counts(ledger, ONE_WAY, name)]
    if not deviations:
        return None
    total = rows_in_of(ledger) or float(weights.sum())
    return Floor(dict.fromkeys(names, min(deviations) / total), total)


def _counts(ledger: Ledger, purpose: str, name: str) -> list[NoisyCounts]:
    return [
        event
        for event in ledger.events
        if isinstance(event, NoisyCounts) and event.purpose == purpose and event.features == (name,)
    ]


def published_noise(ledger: Ledger, schema: Schema) -> Mapping[frozenset[str], float]:
    """Return the standard deviation of the noise on counts of features, for every known set.

    A count of fewer features than a table has is a sum of its cells, with the noise of them all.
    Tables in which categories of one of the features were merged do not count these.
    """
    sizes = dict(zip(schema.names, schema.category_counts, strict=True))
    best: dict[frozenset[str], float] = {}
    for event in ledger.events:
        if not isinstance(event, NoisyCounts) or not event.levels or not event.features:
            continue
        if event.table_cells != math.prod(event.levels):
            continue
        variance = noise_variance(event)
        levels = dict(zip(event.features, event.levels, strict=True))
        whole = [name for name, level in levels.items() if level >= sizes.get(name, 0)]
        for count in range(1, min(MOST_TOGETHER, len(whole)) + 1):
            for names in combinations(whole, count):
                summed = math.prod(levels[name] for name in levels if name not in names)
                deviation = math.sqrt(float(variance) * summed)
                key = frozenset(names)
                best[key] = min(best.get(key, math.inf), deviation)
    return best


def noise_variance(event: NoisyCounts | NoisyResiduals) -> Fraction:
    """Return the variance of the noise on one cell, for Laplace noise that of the continuous law.

    The discrete laws vary a little less.
    """
    scale = Fraction(event.scale_numerator, event.scale_denominator)
    return scale if event.mechanism == "discrete-gaussian" else 2 * scale * scale
