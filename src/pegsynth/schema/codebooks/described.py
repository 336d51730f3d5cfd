"""What a codebook tells of one column, and the feature that follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pegsynth.schema.binning import round_edges, within_type
from pegsynth.schema.feature import PRIVATE, Feature, Role, number_text

Type = Literal["", "text", "whole", "number", "bool", "date", "time"]

BINS = 20
MOST_LISTED_RANGE = 50
_DTYPES = {
    "": "",
    "text": "string",
    "whole": "int64",
    "number": "double",
    "bool": "bool",
    "date": "date32",
    "time": "timestamp[us]",
}


@dataclass(frozen=True)
class Described:
    """One column of a codebook.

    Parameters
    ----------
    codes
        Its values, as pairs of a code and a label (empty if there is none).
    missing
        Codes that mean that the value is not known.
    lowest, highest
        Limits of its numbers.
    ordered
        Whether the order of the codes means something.
    identifier
        Whether it names rows or people.
    """

    name: str
    type: Type = ""
    label: str = ""
    codes: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    ordered: bool = False
    identifier: bool = False
    role: Role = "other"
    dtype: str = ""

    @property
    def written(self) -> str:
        """The Arrow type of the column."""
        return self.dtype or _DTYPES[self.type]


def feature_of(told: Described) -> Feature:
    """Return the feature that a codebook describes; what it does not tell is left for review."""
    if told.identifier:
        return Feature(told.name, role="identifier", notes=("an identifier, by the codebook",))
    missing = tuple(dict.fromkeys(("", *told.missing)))
    listed = [code for code, _ in told.codes if code not in missing]
    if told.type == "bool" and not listed:
        listed = ["false", "true"]
    limits = told.lowest is not None and told.highest is not None
    common: dict[str, Any] = {
        "label": told.label,
        "missing": missing,
        "dtype": told.written,
        "role": told.role,
        "value_labels": tuple((code, text) for code, text in told.codes if text),
    }
    if listed and not (limits and told.type in ("whole", "number") and len(listed) < 3):
        kind: Any = "ordinal" if told.ordered else "nominal"
        return Feature(told.name, kind, categories=tuple(dict.fromkeys(listed)), **common)
    if limits and told.type in ("whole", "number", ""):
        return _numeric(told, common)
    return left_for_review(told)


def _numeric(told: Described, common: dict[str, Any]) -> Feature:
    low, high = told.lowest or 0.0, told.highest or 0.0
    whole = told.type == "whole"
    if whole and 0 <= high - low <= MOST_LISTED_RANGE:
        values = tuple(str(number) for number in range(math.ceil(low), math.floor(high) + 1))
        codes = tuple(each for each in values if each not in common["missing"])
        return Feature(told.name, "ordinal", categories=codes, **common)
    edges = within_type(round_edges(low, high, BINS, whole=whole), told.written)
    return Feature(told.name, "numeric", edges=edges, **common)


def left_for_review(told: Described) -> Feature:
    """Return the column of which a codebook tells neither values nor limits.

    Edges of numbers are measured by the release, and categories are found by it.
    """
    common: dict[str, Any] = {
        "missing": tuple(dict.fromkeys(("", *told.missing))),
        "dtype": told.written,
        "role": told.role,
        "label": told.label,
        "value_labels": tuple((code, text) for code, text in told.codes if text),
    }
    if told.type in ("whole", "number"):
        return Feature(
            told.name,
            "numeric",
            edges=PRIVATE,  # type: ignore[arg-type]
            **common,
            notes=(
                "OPEN: the codebook tells no limits, so that edges are measured; list edges or "
                "state lowest and highest if they are public knowledge",
            ),
        )
    if told.type in ("date", "time"):
        return Feature(
            told.name,
            "date" if told.type == "date" else "datetime",
            edges=PRIVATE,  # type: ignore[arg-type]
            **common,
            notes=("OPEN: edges of these dates are measured; state the format of texts",),
        )
    return Feature(
        told.name,
        categories=PRIVATE,  # type: ignore[arg-type]
        **common,
        notes=(
            "OPEN: the codebook tells no values, so that categories are found; list those that are "
            "public knowledge, or make it an identifier, which is dropped",
        ),
    )


def code_text(value: Any) -> str:
    """Return a code as the text that tables have for it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return number_text(value)
    return str(value)


def number_of(value: Any) -> float | None:
    """Return a limit as a number, if it is one."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def texts(values: Any) -> tuple[str, ...]:
    """Return a list of codes as texts; one alone counts as a list."""
    if values is None:
        return ()
    if isinstance(values, str | int | float):
        values = [values]
    return tuple(code_text(value) for value in _flat(values))


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        yield value.get("value", "") if isinstance(value, dict) else value
