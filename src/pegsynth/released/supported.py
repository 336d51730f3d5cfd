"""Whether a published model can answer an analysis, by its structure alone (R28).

A relation that no published table holds cannot be estimated from the model, and its
replicates do not tell: all of them lack it. Which tables there are is public.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pegsynth.errors import ParameterError
from pegsynth.evaluation.formula import is_declared
from pegsynth.inference.ledger_support import (
    BY_BINS,
    DECLARED,
    MERGED,
    NOT_SUPPORTED,
    ONLY_PAIRS,
    SUPPORTED,
    Status,
    has_wide_bins,
    listed,
    note_of,
)
from pegsynth.released.held import cell_deviation, merged_categories, missing_pairs, together
from pegsynth.released.published import Released
from pegsynth.schema import Schema

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
