"""What a codebook tells of one column, and the feature that follows from it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from pegsynth.schema.binning import round_edges, within_type
from pegsynth.schema.feature import Feature, Role, number_text
from pegsynth.schema.keys import PRIVATE

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
    """Return the feature that a codebook describes; what it does not tell is left for review.

    Edges of numbers are measured by the release then, and categories are found by it.
    """
    if told.identifier:
        return Feature(told.name, role="identifier", notes=("an identifier, by the codebook",))
    missing = tuple(dict.fromkeys(("", *told.missing)))
    return Feature(
        told.name,
        label=told.label,
        missing=missing,
        dtype=told.written,
        role=told.role,
        value_labels=tuple((code, text) for code, text in told.codes if text),
        **_values(told, missing),
    )


def _values(told: Described, missing: Collection[str]) -> dict[str, Any]:
    """Return kind, and categories or edges; what is open has a note."""
    numbers = told.type in ("whole", "number")
    listed = tuple(dict.fromkeys(code for code, _ in told.codes if code not in missing))
    if told.type == "bool" and not listed:
        listed = ("false", "true")
    low, high = told.lowest, told.highest
    limits = low is not None and high is not None
    if listed and not (limits and numbers and len(listed) < 3):
        return {"kind": "ordinal" if told.ordered else "nominal", "categories": listed}
    if low is not None and high is not None and told.type in ("whole", "number", ""):
        whole = told.type == "whole"
        if whole and 0 <= high - low <= MOST_LISTED_RANGE:
            values = map(str, range(math.ceil(low), math.floor(high) + 1))
            return {
                "kind": "ordinal",
                "categories": tuple(each for each in values if each not in missing),
            }
        edges = within_type(round_edges(low, high, BINS, whole=whole), told.written)
        return {"kind": "numeric", "edges": edges}
    if numbers:
        note = (
            "OPEN: the codebook tells no limits, so that edges are measured; list edges or state "
            "lowest and highest if they are public knowledge"
        )
        return {"kind": "numeric", "edges": PRIVATE, "notes": (note,)}
    if told.type in ("date", "time"):
        note = "OPEN: edges of these dates are measured; state the format of texts"
        kind = "date" if told.type == "date" else "datetime"
        return {"kind": kind, "edges": PRIVATE, "notes": (note,)}
    note = (
        "OPEN: the codebook tells no values, so that categories are found; list those that are "
        "public knowledge, or make it an identifier, which is dropped"
    )
    return {"categories": PRIVATE, "notes": (note,)}


def code_text(value: object) -> str:
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


def texts(values: object) -> tuple[str, ...]:
    """Return a list of codes as texts; one alone counts as a list."""
    if values is None:
        return ()
    listed: Any = [values] if isinstance(values, str | int | float) else values
    return tuple(
        code_text(value.get("value", "") if isinstance(value, dict) else value) for value in listed
    )
