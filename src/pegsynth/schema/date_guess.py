"""Whether a column holds dates or times, and how they are written: for drafts.

In go the distinct values of a column, batch by batch; out comes the first kind and format that
all of them have. It is found by looking at the data, so a person reviews it (R10).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import polars as pl

from pegsynth.schema.date_format import OFFSET
from pegsynth.schema.date_text import DateText
from pegsynth.schema.feature import PRIVATE, Feature

_DATES = (
    *("", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %b %Y", "%d%b%Y", "%d-%b-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
)
_CLOCKS = ("%H:%M", "%H:%M:%S")
_ENDING = rf":[0-9]{{2}}(?:\.[0-9]+)?( ?(?:{OFFSET}))\s*$"
_OFFSETS_LEFT = "offsets from UTC are left out: times are those that clocks showed"
_MOMENTS = 'format = "%Y-%m-%dT%H:%M:%S%z" would count moments and write them in UTC'


@dataclass(frozen=True)
class Guess:
    """A kind of feature, and the format of its texts."""

    kind: str
    format: str = ""

    @property
    def said(self) -> str:
        """The format in words."""
        return self.format or "ISO 8601"


def _candidates() -> tuple[Guess, ...]:
    stamps = [Guess("datetime", f"{date} {clock}") for date in _DATES[1:] for clock in _CLOCKS]
    dates = [Guess("date", each) for each in _DATES]
    return (*dates, Guess("datetime"), *stamps, Guess("time"), Guess("duration"))


@dataclass
class DateGuess:
    """The kinds and formats that all values so far have had."""

    _left: tuple[Guess, ...] = field(default_factory=_candidates)
    _seen: bool = False
    _offsets: bool = False

    @property
    def open(self) -> bool:
        """Whether any is left."""
        return bool(self._left)

    @property
    def found(self) -> Guess | None:
        """The first that suits all values, if there were any."""
        return self._left[0] if self._seen and self._left else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reviewer should know: the format that was recognised, and others that fit."""
        found = self.found
        if found is not None and self._offsets and not found.format:
            return (_OFFSETS_LEFT, *([_MOMENTS] if found.kind == "datetime" else ()))
        if found is None or not any(each.format for each in self._left):
            return ()
        others = [each.format for each in self._left[1:] if each.kind == found.kind and each.format]
        also = f"; {', '.join(others)} would fit as well, so check it" if others else ""
        return (f"recognised as text of the form {found.said}{also}",)

    def add(self, values: pl.Series) -> None:
        """Take in distinct values that are not missing."""
        if not self._left or values.is_empty():
            return
        typed = guess_of_type(values.dtype)
        if values.dtype == pl.String and not self._offsets:
            self._look_for_offsets(values)
        self._seen = True
        if typed is not None:
            self._left = tuple(each for each in self._left if each == typed)
        elif values.dtype != pl.String:
            self._left = ()
        else:
            self._left = tuple(each for each in self._left if _fits(each, values))

    def _look_for_offsets(self, values: pl.Series) -> None:
        """Note offsets from UTC; one that all texts may share becomes a part of the format."""
        endings = values.str.extract(_ENDING).drop_nulls()
        self._offsets = len(endings) > 0
        if self._offsets and not self._seen:
            end = endings[0]
            shared = (f"%Y-%m-%d{mark}{clock}{end}" for mark in "T " for clock in _CLOCKS)
            self._left = (*(Guess("datetime", each) for each in shared), *self._left)


def guess_of_type(dtype: pl.DataType) -> Guess | None:
    """Return the kind that a type declares, None where it is of no dates or times."""
    kinds = {"Date": "date", "Datetime": "datetime", "Time": "time", "Duration": "duration"}
    kind = kinds.get(type(dtype).__name__)
    return None if kind is None else Guess(kind)


def _fits(guess: Guess, values: pl.Series) -> bool:
    return _text(guess).all_fit(values)


@cache
def _text(guess: Guess) -> DateText:
    return DateText(Feature("x", kind=guess.kind, format=guess.format, edges=PRIVATE))  # type: ignore[arg-type]
