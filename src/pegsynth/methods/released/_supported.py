"""What published tables hold of a set of features, by their structure alone (R28).

Whether a published model can answer an analysis, by its structure alone (R28).

A relation that no published table holds cannot be estimated from the model, and its
replicates do not tell: all of them lack it. Which tables there are is public.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.formula import is_declared
from pegsynth.inference.ledger_support import (
    BY_BINS,
    DECLARED,
    LOUDEST,
    MERGED,
    NOT_SUPPORTED,
    ONLY_PAIRS,
    SUPPORTED,
    Status,
    has_wide_bins,
    listed,
    note_of,
)
from pegsynth.methods.released._draw import released_total
from pegsynth.methods.released._pairs import cell_noise
from pegsynth.methods.released._row_pool import cell_count
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.schema import Schema


def published_tables(released: Released) -> tuple[NoisyTable, ...]:
    """Return the tables of several features.

    A residual counts as one, because one-way counts and pairs tell the rest of it (R27).
    """
    return (*released.blocks, *released.extra, *released.residuals)


def together(released: Released, features: Collection[int]) -> bool:
    """Whether one published table holds all of these features, and noise does not drown it."""
    wanted = set(features)
    loudest = LOUDEST * max(released_total(released), 1.0)
    return len(wanted) < 2 or any(
        wanted <= set(table.features) and table.deviation * _parts(released, table) <= loudest
        for table in published_tables(released)
    )


def _parts(released: Released, table: NoisyTable) -> int:
    """Return the number of cells; 1 for a residual, whose noise is in parts of a row (R27)."""
    return 1 if any(table is each for each in released.residuals) else len(table.counts)


def missing_pairs(released: Released, features: Collection[int]) -> list[tuple[int, int]]:
    """Return the pairs of these features that no published table holds."""
    pairs = combinations(sorted(set(features)), 2)
    return [pair for pair in pairs if not together(released, pair)]


def merged_categories(released: Released, feature: int) -> list[int]:
    """Return the categories of a feature that share their level with others."""
    levels = released.levels[feature]
    sizes = np.bincount(levels)
    found: list[int] = np.flatnonzero(sizes[levels] > 1).tolist()
    return found


def cell_deviation(released: Released, cell: Mapping[int, int]) -> float:
    """Return the deviation of the noise on a published count, of all tables that hold it.

    Independent noise is averaged by the inverse of its variance. Infinite where no table
    holds the cell.

    Parameters
    ----------
    cell
        Feature to category.
    """
    precision = sum(1.0 / variance for variance in _variances(released, cell))
    return 1.0 / math.sqrt(precision) if precision else math.inf


def _variances(released: Released, cell: Mapping[int, int]) -> Iterator[float]:
    if len(cell) == 1:
        (feature,) = cell
        # Public shares have no noise to speak of.
        yield released.one_ways[feature].deviation ** 2
    if any(code in merged_categories(released, feature) for feature, code in cell.items()):
        return
    if released.residuals and len(cell) > 1:
        yield variance_by_parts(released, tuple(cell))
    for table in (*released.blocks, *released.extra):
        if set(cell) <= set(table.features):
            own = cell_count(tuple(cell), released.sizes)
            yield table.deviation**2 * (len(table.counts) / own)


def variance_by_parts(released: Released, features: tuple[int, ...]) -> float:
    """Return the variance of a cell that is the sum of residuals of all its parts (R27).

    Infinite if one of these was not measured. Public shares were not: their counts have the noise
    of the number of rows, and are as true as the shares that were stated.
    """
    if any(released.public[feature] for feature in features):
        return math.inf
    sizes = released.sizes
    variance = released.total[1] ** 2 / cell_count(features, sizes) ** 2
    for width in range(1, len(features) + 1):
        for part in combinations(features, width):
            apart = cell_count(features, sizes) / cell_count(part, sizes)
            variance += _residual_variance(released, part) / apart**2
    return variance


def _residual_variance(released: Released, features: tuple[int, ...]) -> float:
    levels = [released.sizes[feature] for feature in features]
    if len(features) == 1:
        return released.one_ways[features[0]].deviation ** 2 * (1 - 1 / levels[0])
    precision = sum(
        cell_noise(table.deviation, levels) ** -2
        for table in released.residuals
        if set(table.features) == set(features)
    )
    return 1.0 / precision if precision else math.inf


_TOKEN = re.compile(
    r"""`(?P<ticks>[^`]+)` | Q\((?P<quote>["'])(?P<quoted>.+?)(?P=quote)\)
    | (?P<name>[^\W\d][\w.]*) (?P<call>\s*\()? | (?P<text>"[^"]*"|'[^']*')
    | (?P<mark>[-+~():*]) | \S""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Support:
    """What a published model supports of an analysis.

    Parameters
    ----------
    status
        "supported": tables have every pair of features, and every interaction with its
        response, or the analysis was declared. "supported by bins only": so they have, but for
        values inside the bins of numbers. "merged": but for relations of rare categories.
        "not supported": something is missing.
    features
        Names of the features of the analysis.
    missing
        Features that no table holds together: pairs, and interactions with their response.
    merged
        Names of features with categories that tables of several features merge.
    binned
        Names of numbers whose values inside bins are related to no other feature.
    below_noise
        Names of features to the labels of their categories whose published count is below
        two deviations of its noise.
    declared
        Whether the analysis was declared, and its sums measured (R26).
    only_pairs
        Whether tables have all pairs, but none has all features.
    """

    status: Status
    features: tuple[str, ...]
    missing: tuple[tuple[str, ...], ...]
    merged: tuple[str, ...]
    below_noise: dict[str, tuple[str, ...]]
    declared: bool = False
    binned: tuple[str, ...] = ()
    only_pairs: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """The status, and "below the noise" where it applies."""
        return (self.status, *(("below the noise",) if self.below_noise else ()))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if self.declared:
            yield f"{SUPPORTED}: {DECLARED}"
        elif self.status != SUPPORTED or not self.only_pairs:
            names = {
                NOT_SUPPORTED: [" x ".join(names) for names in self.missing],
                MERGED: self.merged,
                BY_BINS: self.binned,
            }
            yield note_of(self.status, names.get(self.status, ()))
        if self.only_pairs:
            yield f"{SUPPORTED}: {ONLY_PAIRS}" if self.status == SUPPORTED else ONLY_PAIRS
        for name, labels in self.below_noise.items():
            yield f"below the noise: {name} ({listed(labels)})"


def supported(released: Released, schema: Schema, formula: str) -> Support:
    """Say what published tables support of an analysis.

    Parameters
    ----------
    released
        The published model.
    schema
        Its codebook.
    formula
        As statsmodels and R read it, such as ``charge ~ age + sev*cat``; without ``~`` the
        features of a table.

    Raises
    ------
    ParameterError
        If the formula names no feature, or something that is no feature.
    """
    terms = _terms(formula, schema)
    features = sorted(set().union(*terms))
    if not features:
        raise ParameterError("the formula names no feature of the schema")
    response, *others = terms if "~" in formula else [set(), *terms]
    joint = [response | term for term in others if len(term) > 1 and response]
    missing: list[Sequence[int]] = [*missing_pairs(released, features)]
    missing += [sorted(each) for each in joint if not together(released, each)]
    declared = bool(released.sums) and is_declared(formula, schema)
    whole = declared or together(released, features)
    if whole:
        missing = []
    names = schema.names
    several = features if len(features) > 1 and not declared else []
    binned = [f for f in several if has_wide_bins(schema, names[f])]
    merged = [f for f in several if f not in binned and merged_categories(released, f)]
    status: Status = SUPPORTED
    for each, found in ((BY_BINS, binned), (MERGED, merged), (NOT_SUPPORTED, missing)):
        status = each if found else status
    return Support(
        status,
        tuple(names[feature] for feature in features),
        tuple(dict.fromkeys(tuple(names[feature] for feature in each) for each in missing)),
        tuple(names[feature] for feature in merged),
        {names[f]: labels for f in features if (labels := _quiet(released, schema, f))},
        declared,
        tuple(names[feature] for feature in binned),
        only_pairs=not (whole or missing),
    )


def _quiet(released: Released, schema: Schema, feature: int) -> tuple[str, ...]:
    """Return the categories whose published count its noise could have made."""
    if released.public[feature]:
        return ()
    labels = schema.features[feature].labels
    counts = released.one_ways[feature].counts.tolist()
    return tuple(
        label
        for code, (label, count) in enumerate(zip(labels, counts, strict=True))
        if count < 2 * cell_deviation(released, {feature: code})
    )


def _terms(formula: str, schema: Schema) -> list[set[int]]:
    """Return the features of every term; the response comes first if there is one.

    What stands in brackets is one term: it asks for more than the analysis may need.
    """
    if formula.count("~") > 1:
        raise ParameterError("a formula has one ~ at most: response ~ explanatory features")
    codes = {name: code for code, name in enumerate(schema.names)}
    terms: list[set[int]] = [set()]
    depth = 0
    for token in _TOKEN.finditer(formula):
        mark, name = token["mark"], token["ticks"] or token["quoted"] or token["name"]
        if name is not None and (token["call"] is None or name in codes):
            if name not in codes:
                raise ParameterError(
                    f"the formula names {name!r}, which is no feature of the schema; its features "
                    f"are {', '.join(schema.names)}"
                )
            terms[-1].add(codes[name])
        depth += (mark == "(" or token["call"] is not None) - (mark == ")")
        if mark == "~" or (mark in ("+", "-") and depth == 0):
            terms.append(set())
    first = terms[:1] if "~" in formula else []
    return [*first, *(term for term in terms[len(first) :] if term)]
