"""Whether a published model can answer an analysis, by its structure alone (R28).

A relation that no published table holds cannot be estimated from the model, and its
replicates do not tell: all of them lack it. Which tables there are is public.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pegsynth.errors import ParameterError
from pegsynth.evaluation.formula import is_declared
from pegsynth.released.held import cell_deviation, merged_categories, missing_pairs, together
from pegsynth.released.published import Released
from pegsynth.schema import Schema

Status: TypeAlias = Literal["held", "pairs only", "not held"]

_TOKEN = re.compile(
    r"""`(?P<ticks>[^`]+)` | Q\((?P<quote>["'])(?P<quoted>.+?)(?P=quote)\)
    | (?P<name>[^\W\d][\w.]*) (?P<call>\s*\()? | (?P<text>"[^"]*"|'[^']*')
    | (?P<mark>[-+~():*]) | \S""",
    re.VERBOSE,
)
_MEANINGS: Final = {
    "held": "one published table holds all of these features",
    "pairs only": "published tables hold every pair of these features, which serves main effects",
    "not held": "not supported: no published table holds what this analysis needs",
}
_DECLARED = "this analysis was declared, and the sums that it needs were measured"
_MOST_NAMED = 8


@dataclass(frozen=True)
class Support:
    """What a published model holds of an analysis.

    Parameters
    ----------
    status
        "held": one table holds all features. "pairs only": tables hold every pair, and
        every interaction with its response. "not held": something is missing.
    features
        Names of the features of the analysis.
    missing
        Features that no table holds together: pairs, and interactions with their response.
    merged
        Names of features with categories that tables of several features merge.
    below_noise
        Names of features to the labels of their categories whose published count is below
        two deviations of its noise.
    declared
        Whether the analysis was declared, and its sums measured (R26).
    """

    status: Status
    features: tuple[str, ...]
    missing: tuple[tuple[str, ...], ...]
    merged: tuple[str, ...]
    below_noise: dict[str, tuple[str, ...]]
    declared: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """The status, and "merged" and "below the noise" where they apply."""
        return (
            self.status,
            *(("merged",) if self.merged else ()),
            *(("below the noise",) if self.below_noise else ()),
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.status}: {_DECLARED if self.declared else _MEANINGS[self.status]}"
        if self.missing:
            yield "no table holds: " + _listed([" x ".join(names) for names in self.missing])
        if self.merged:
            yield (
                f"merged: {_listed(self.merged)} have rare categories that share a level; "
                "relations within a level are not held"
            )
        for name, labels in self.below_noise.items():
            yield f"below the noise: {name} ({_listed(labels)})"


def supported(released: Released, schema: Schema, formula: str) -> Support:
    """Say what published tables hold of an analysis.

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
    status: Status = "not held" if missing else "pairs only"
    declared = bool(released.sums) and is_declared(formula, schema)
    if declared or together(released, features):
        status, missing = "held", []
    names = schema.names
    merged = [f for f in features if len(features) > 1 and merged_categories(released, f)]
    return Support(
        status,
        tuple(names[feature] for feature in features),
        tuple(dict.fromkeys(tuple(names[feature] for feature in each) for each in missing)),
        tuple(names[feature] for feature in merged),
        {names[f]: labels for f in features if (labels := _quiet(released, schema, f))},
        declared,
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


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
