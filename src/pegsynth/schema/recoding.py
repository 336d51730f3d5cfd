"""Recodings of one feature, applied to every row by itself before anything is counted (R31).

A `Recoding` turns the value of a row into another one by public rules: numbers are bounded and
rounded, codes become groups or what they belong to. No rule looks at another row. Whoever wants
one that does, such as a percentile, is told why it cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from pegsynth.errors import SchemaError
from pegsynth.kernels.arrays import Float64
from pegsynth.schema.binning import exact
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.keys import documented, optional

PAID: Final = "paid"
RARE_LABEL: Final = "(rare)"
_WHY: Final = (
    "it would be a function of the whole table: one row could move the values of other rows, and "
    "no guarantee holds then (R31, docs/recodings.md)"
)
_NUMBERS: Final = ("top", "bottom", "round")


_RECODED = "public, applied row by row: assumption `public-recodings` (R31)"


@documented
@dataclass(frozen=True)
class Recoding:
    """Public rules for the values of one feature."""

    top: float | None = optional(None, "90", "Numbers above count as this one.", _RECODED)
    bottom: float | None = optional(None, "0", "Numbers below count as this one.", _RECODED)
    round: float | None = optional(
        None, "5", "Numbers become the nearest multiple of this one.", _RECODED
    )
    groups: tuple[tuple[str, tuple[str, ...]], ...] = optional(
        (),
        '{ heart = ["I20", "I21"] }',
        "Categories by name, each with the values that become it; others stay as they are.",
        _RECODED,
        form="groups",
    )
    hierarchy: Hierarchy | None = optional(
        None,
        '"prefix:3"',
        "What codes belong to: a CSV file beside the schema (code, parent, its parent ..), "
        "the first characters of a code, or a table of parents "
        "([recodings.md](recodings.md)).",
        _RECODED,
        form="hierarchy",
    )
    level: int = optional(
        1,
        "0",
        "How many steps of the hierarchy codes go up. At 0 they stay: the hierarchy says which are "
        "alike, and to which category of `parent` they belong.",
        _RECODED,
    )
    rare: str | None = optional(
        None,
        '"paid"',
        'Categories with a small noisy count become one, "(rare)".',
        "the noisy counts are paid for; true counts are refused (R31)",
        choices=(PAID,),
    )

    def __post_init__(self) -> None:
        groups: Any = self.groups
        pairs = groups.items() if isinstance(groups, Mapping) else groups
        object.__setattr__(self, "groups", tuple((name, tuple(texts)) for name, texts in pairs))
        for key in _NUMBERS:
            check_public_number(key, getattr(self, key))
        check_paid(self.rare)
        self._check_numbers()
        self._check_groups()
        if self.level != 1 and self.hierarchy is None:
            raise SchemaError("level requires a hierarchy; state one")
        if self.hierarchy is not None:
            self._check_level(self.hierarchy)

    def _check_numbers(self) -> None:
        if self.round is not None and self.round <= 0:
            raise SchemaError("round must be greater than 0")
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise SchemaError("bottom must be less than top")
        for key in ("top", "bottom"):
            value = getattr(self, key)
            if value is not None and self.round and exact(value) % exact(self.round):
                raise SchemaError(f"{key} must be a multiple of round; change one of them")

    def _check_groups(self) -> None:
        names = [name for name, _ in self.groups]
        members = [text for _, texts in self.groups for text in texts]
        if not all(isinstance(text, str) and text for text in (*names, *members)):
            raise SchemaError('groups name texts, as groups = { heart = ["I20", "I21"] }')
        if len(set(names)) < len(names) or not all(texts for _, texts in self.groups):
            raise SchemaError("a group is listed twice, or is empty; list each once, with values")
        if len(set(members)) < len(members):
            raise SchemaError("groups overlap: a value is in two of them; keep it in one")
        owned = {text: name for name, texts in self.groups for text in texts}
        if any(owned.get(name, name) != name for name in names):
            raise SchemaError("a group is itself a value of another group; list its values there")

    def _check_level(self, hierarchy: Hierarchy) -> None:
        most = len(hierarchy.prefixes)
        if self.level < 0 or (most and self.level > most):
            raise SchemaError(f"level must be a whole number from 0{f' to {most}' if most else ''}")
        if not most:
            hierarchy.at(self.level)

    @property
    def bounds_numbers(self) -> bool:
        """Whether it changes numbers."""
        return any(getattr(self, key) is not None for key in _NUMBERS)

    def public(self) -> Recoding:
        """Return the rules that are public, without those that are measured."""
        return replace(self, rare=None)

    # Categories

    def text(self, text: str) -> str:
        """Return what a value that is text becomes; a category of the feature becomes itself."""
        if text in self._names:
            return text
        if self.hierarchy is not None and self.level:
            prefixes = self.hierarchy.prefixes
            text = text[: prefixes[self.level - 1]] if prefixes else self._up.get(text, text)
        if self.bounds_numbers:
            text = self._bounded(text)
        return self._owned.get(text, text)

    @cached_property
    def _names(self) -> dict[str, None]:
        return dict.fromkeys(name for name, _ in self.groups)

    @cached_property
    def _owned(self) -> dict[str, str]:
        return {text: name for name, texts in self.groups for text in texts}

    @cached_property
    def _up(self) -> dict[str, str]:
        """What codes of a listed hierarchy become, groups aside."""
        hierarchy = self.hierarchy
        listed = hierarchy is not None and self.level and not hierarchy.prefixes
        return hierarchy.at(self.level) if hierarchy is not None and listed else {}

    def _bounded(self, text: str) -> str:
        from pegsynth.schema.feature import number_text

        try:
            number = float(text)
        except ValueError:
            return text
        if not math.isfinite(number):
            return text
        value = exact(number)
        if self.round is not None:
            value = nearest_multiple(value, exact(self.round))
        if self.top is not None:
            value = min(value, exact(self.top))
        if self.bottom is not None:
            value = max(value, exact(self.bottom))
        return number_text(float(value))

    def categories(self, listed: Sequence[str]) -> tuple[str, ...]:
        """Return the categories after recoding: listed ones may be those before or after it."""
        texts: Iterable[str] = listed
        if not listed and self.hierarchy is not None:
            texts = self.hierarchy.codes
        return tuple(dict.fromkeys((*map(self.text, texts), *self._names)))

    @property
    def listed_texts(self) -> Iterator[tuple[str, str]]:
        """All values that the rules list, and what each becomes."""
        return ((text, self.text(text)) for text in (*self._up, *self._owned))

    # Numbers

    def cut(self, edges: tuple[float, ...]) -> tuple[float, ...]:
        """Return edges that end at top and bottom; values beyond fall in the end bins."""
        if self.top is not None and edges and edges[-1] > self.top:
            edges = (*(edge for edge in edges if edge < self.top), self.top)
        if self.bottom is not None and edges and edges[0] < self.bottom:
            edges = (self.bottom, *(edge for edge in edges if edge > self.bottom))
        if len(edges) == 1:
            raise SchemaError("top or bottom leaves no bin between the edges; change one of them")
        return edges

    def inner_edges(self, edges: Sequence[float]) -> Float64:
        """Return where bins begin for values that are not rounded yet.

        A rounded value lies at or above an edge exactly if the value lies at or above half a
        step below the first multiple there; the least such number takes the edge's place.
        """
        inner = np.asarray(edges[1:-1], dtype=np.float64)
        if self.round is None:
            return inner
        step = exact(self.round)
        marks = [(math.ceil(exact(edge) / step) - Fraction(1, 2)) * step for edge in inner.tolist()]
        near = [(float(mark), mark) for mark in marks]
        return np.array([f if Fraction(f) >= m else math.nextafter(f, math.inf) for f, m in near])

    def said(self) -> str:
        """Return the rules in words."""
        parts = [
            f"{key} {getattr(self, key):g}" for key in _NUMBERS if getattr(self, key) is not None
        ]
        if self.groups:
            parts.append(f"{len(self.groups)} {'group' if len(self.groups) == 1 else 'groups'}")
        if self.hierarchy is not None:
            what = f"{len(self.hierarchy.codes)} codes"
            if self.hierarchy.prefixes:
                what = "first " + " or ".join(map(str, self.hierarchy.prefixes)) + " characters"
            parts.append(f"level {self.level} of a hierarchy ({what})")
        if self.rare:
            parts.append("rare categories merged by noisy counts")
        return ", ".join(parts)


def check_public_number(key: str, value: object) -> None:
    """Refuse what is no number that can be public, with the reason."""
    if value is None:
        return
    if isinstance(value, str):
        raise SchemaError(
            f"{key} must be a public number, not a percentile or the like: {_WHY}; state the "
            "number that a codebook or a law gives"
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"{key} must be a number, without quotes")
    if not math.isfinite(value):
        raise SchemaError(f"{key} must be a finite number")


def check_paid(value: object) -> None:
    """Refuse to merge rare categories by anything but counts that were paid for."""
    if value is not None and value != PAID:
        raise SchemaError(
            'rare is "paid": categories are merged by noisy counts that the release pays for. By '
            f'true counts below a threshold {_WHY}; write rare = "paid", or list groups'
        )


_FILLED = (
    "{key} cannot be filled by what the table holds, such as its mode: {why}; list the texts that "
    'mean missing, as missing = [""], and fill the synthetic rows afterwards'
)
_SUPPRESSED = (
    "{key}: rows that are rare cannot be suppressed before counting: {why}; use pegs release --k, "
    "which suppresses in the synthetic rows"
)
_GROUPED = (
    "{key}: categories cannot be grouped by how many rows they have: {why}; write rare = "
    '"paid", or list groups'
)
_REFUSED = {
    **dict.fromkeys(("fill", "impute", "fill_missing", "default"), _FILLED),
    **dict.fromkeys(("k", "k_anonymity", "suppress", "suppress_below"), _SUPPRESSED),
    **dict.fromkeys(("min_count", "least", "group_below", "threshold"), _GROUPED),
}
"""Keys of recodings that would look at the table, and what to do instead."""


def refuse_by_data(raw: Mapping[str, object]) -> None:
    """Refuse what a feature of a file says if it would depend on other rows, and say why."""
    reasons = {key: reason for key, reason in _REFUSED.items() if key in raw}
    if raw.get("missing") in ("mode", "mean", "median", "most frequent"):
        reasons["missing"] = _FILLED
    if isinstance(raw.get("groups"), str | int | float):
        reasons["groups"] = _GROUPED
    if reasons:
        key, reason = next(iter(reasons.items()))
        raise SchemaError(reason.format(key=key, why=_WHY))
    for key in _NUMBERS:
        if isinstance(raw.get(key), str):
            check_public_number(key, raw[key])
    check_paid(raw.get("rare"))


def nearest_multiple(value: Fraction, step: Fraction) -> Fraction:
    """Return the nearest multiple, the upper of two as near."""
    return math.floor(value / step + Fraction(1, 2)) * step
