"""Texts of dates and times: what they say, and how they are written back.

A format such as ``%d.%m.%Y`` becomes a pattern with a group for every part. A text that has
another form, and a date that does not exist, have no number; a text without the stated form may
still be ISO text. What is read of a text depends on that text alone (R30).

ISO text may end with an offset from UTC. It is read past: a time is told by the clock that the text
shows, as are times of a zone. Only a format with ``%z`` counts moments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

OFFSET = "[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?"
"""An offset from UTC, as ISO 8601 and databases write it."""

PARTS: dict[str, tuple[str, str]] = {
    "Y": ("year", "[0-9]{4}"),
    "y": ("short year", "[0-9]{2}"),
    "m": ("month", "[0-9]{1,2}"),
    "b": ("month name", "[A-Za-z]{3}"),
    "d": ("day", "[0-9]{1,2}"),
    "H": ("hour", "[0-9]{1,2}"),
    "M": ("minute", "[0-9]{1,2}"),
    "S": ("second", "[0-9]{1,2}"),
    "z": ("offset", OFFSET),
}
"""What may stand after a percent sign: the part, and how its text looks."""

_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]+)?)?"
_PASSED = rf"(?: ?(?:{OFFSET}))?"
_DATE_PARTS, _CLOCK_PARTS = ("year", "month", "day"), ("hour", "minute", "second", "fraction")
_LENGTH = (
    r"(-)?P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?"
    r"(?:([0-9]{1,12})(\.[0-9]+)?S)?)?"
)
_LENGTH_PARTS = ("sign", "day", "hour", "minute", "second", "fraction")


@dataclass(frozen=True)
class Form:
    """A pattern of text, and what its groups are."""

    pattern: str
    parts: tuple[str, ...]


ISO: dict[str, Form] = {
    "date": Form(rf"^\s*{_DATE}(?:[T ]{_CLOCK}{_PASSED})?\s*$", _DATE_PARTS + _CLOCK_PARTS),
    "datetime": Form(rf"^\s*{_DATE}(?:[T ]{_CLOCK}{_PASSED})?\s*$", _DATE_PARTS + _CLOCK_PARTS),
    "time": Form(rf"^\s*{_CLOCK}{_PASSED}\s*$", _CLOCK_PARTS),
    "duration": Form(rf"^\s*{_LENGTH}\s*$", _LENGTH_PARTS),
}
"""How values are written where no format is stated."""

MOMENT = Form(
    rf"^\s*{_DATE}(?:[T ]{_CLOCK}(?: ?({OFFSET}))?)?\s*$",
    (*_DATE_PARTS, *_CLOCK_PARTS, "offset"),
)
"""ISO text of a feature whose format has an offset: it counts there, too."""


@dataclass(frozen=True)
class DateFormat:
    """A format that a schema states.

    Parameters
    ----------
    text
        Literal characters, and parts such as ``%d``.
    kind
        The kind of feature that it is for.

    Raises
    ------
    ValueError
        It is none that can be read back; the message says why.

    Examples
    --------
    >>> DateFormat("%d.%m.%Y", "date").form.parts
    ('day', 'month', 'year')
    """

    text: str
    kind: str

    def __post_init__(self) -> None:
        found = self.form.parts
        if len(set(found)) < len(found):
            raise ValueError("names a part twice; name each once")
        have = {part.split()[-1] if part == "short year" else part.split()[0] for part in found}
        needed: tuple[str, ...] = ("hour",) if self.kind == "time" else ("year", "month", "day")
        lacking = [part for part in needed if part not in have]
        if lacking:
            raise ValueError(f"lacks the {lacking[0]}; a {self.kind} has {', '.join(needed)}")
        if "offset" in have and self.kind != "datetime":
            raise ValueError('has an offset from UTC; kind = "datetime" is for such columns')
        if "offset" in have and "hour" not in have:
            raise ValueError("has an offset from UTC and no hour; add %H")
        if self.kind == "date" and have & {"hour", "minute", "second"}:
            raise ValueError('has a time of day; kind = "datetime" is for such columns')
        if self.kind == "time" and have & {"year", "month", "day"}:
            raise ValueError('has a date; kind = "datetime" is for such columns')

    @cached_property
    def form(self) -> Form:
        """The pattern of its texts."""
        pieces, parts = [], []
        for piece in re.split(r"(%.?)", self.text, flags=re.DOTALL):
            if not piece.startswith("%"):
                pieces.append(re.escape(piece))
                continue
            if piece[1:] not in PARTS:
                known = ", ".join(f"%{each}" for each in PARTS)
                raise ValueError(f"has a part that is not known; known are {known}")
            part, pattern = PARTS[piece[1:]]
            pieces.append(f"({pattern})")
            parts.append(part)
        return Form(rf"^\s*{''.join(pieces)}\s*$", tuple(parts))
