"""Columns of dates and times to whole numbers of their resolution, and back.

Typed columns and texts of the same moment give the same number, and every value is read by
itself (R30). Times of a zone are told by its clocks; parts below the resolution are cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Int64
from pegsynth.schema.calendar_units import (
    ISO,
    MOMENT,
    OFFSET,
    SECONDS,
    DateFormat,
    Form,
    per_day,
)
from pegsynth.schema.dtypes import PER_SECOND, in_zone, within_calendar
from pegsynth.schema.feature import Feature
from pegsynth.schema.keys import PRIVATE

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PIVOT = 69
"""Years of two digits from here on are of the last century."""
_NONE = -1
_FEW, _MANY = 64, 1 << 12
_WRITTEN = {"date": "%Y-%m-%d", "time": "%H:%M:%S", "datetime": "%Y-%m-%dT%H:%M:%S"}

Truth = NDArray[np.bool_]

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31: no earlier and no later date can be written and read again."""
_LONGEST = 999_999_999
"""Days of the longest length of time that can be."""


class DateText:
    """How the values of a feature of dates, times or lengths of time are written.

    Parameters
    ----------
    feature
        What the column holds; its kind, resolution and format count.
    """

    usual = False
    """Texts are no numbers as they are."""

    def __init__(self, feature: Feature) -> None:
        self.kind = feature.kind
        self._resolution = feature.resolution
        self._dtype = feature.dtype
        # A format with an offset counts moments, which are written as those of UTC.
        self._format = feature.format.replace("%z", "Z") or _WRITTEN.get(feature.kind, "")
        stated = [DateFormat(feature.format, feature.kind).form] if feature.format else []
        iso = MOMENT if any("offset" in form.parts for form in stated) else ISO[feature.kind]
        self._forms: list[Form] = [*stated, iso]

    def typed(self, values: pl.Series) -> pl.Series | None:
        """Return the numbers of a column whose type says what it holds; None for others."""
        dtype, dates = values.dtype, self.kind in ("date", "datetime")
        whole = per_day(self._resolution)
        if dtype == pl.Date and dates:
            return values.to_physical().cast(pl.Int64) * whole
        if isinstance(dtype, pl.Datetime) and dates:
            local = values
            if dtype.time_zone:
                local = in_zone(within_calendar(values), self._dtype).dt.replace_time_zone(None)
            return self._divided(local, PER_SECOND[dtype.time_unit])
        if dtype == pl.Time and self.kind == "time":
            return self._divided(values, PER_SECOND["ns"])
        if isinstance(dtype, pl.Duration) and self.kind == "duration":
            return self._divided(values, PER_SECOND[dtype.time_unit])
        return None

    def _divided(self, values: pl.Series, per_second: int) -> pl.Series:
        return values.to_physical().cast(pl.Int64) // (per_second * SECONDS[self._resolution])

    def numbers(self, texts: pl.Series) -> pl.Series:
        """Return the number of every text; null where it is of another form, or no date."""
        if len(texts) >= _MANY:
            # Many rows have few days: every text is read once.
            distinct = texts.drop_nulls().unique()
            if 0 < len(distinct) <= len(texts) // 4:
                once = self._numbers(distinct)
                return texts.replace_strict(distinct, once, default=None, return_dtype=pl.Float64)
        return self._numbers(texts)

    def _numbers(self, texts: pl.Series) -> pl.Series:
        found = np.full(len(texts), np.nan)
        left = np.ones(len(texts), dtype=bool)
        for form in self._forms:
            hit = left & texts.str.contains(form.pattern).fill_null(value=False).to_numpy()
            if hit.any():
                found[hit] = self._read(texts.filter(pl.Series(hit)), form)
            # A text of the stated form that is no date is none in any other form.
            left &= ~hit
        return pl.Series(found).fill_nan(None)

    def all_fit(self, texts: pl.Series) -> bool:
        """Say whether all texts have the stated form, or that of ISO 8601, and exist.

        Dates with a time are none here, although they are read as dates.
        """
        form = self._forms[0]
        if not texts.head(_FEW).str.contains(form.pattern).all():
            return False
        if self.kind == "date" and texts.str.contains(":", literal=True).any():
            return False
        fits = texts.str.contains(form.pattern).all()
        return bool(fits) and not np.isnan(self._read(texts, form)).any()

    def number(self, text: str) -> float | None:
        """Return the number of one text."""
        (found,) = self.numbers(pl.Series([text], dtype=pl.String))
        return None if found is None else float(found)

    def _read(self, texts: pl.Series, form: Form) -> NDArray[np.float64]:
        """Return numbers of texts that all have a form, NaN for what does not exist."""
        groups = texts.str.extract_groups(form.pattern).struct.unnest()
        given = dict(zip(form.parts, groups.get_columns(), strict=True))
        part = {name: _whole(column, name) for name, column in given.items()}
        nothing = np.zeros(len(texts), dtype=np.int64)
        hour, minute, second = (
            np.maximum(part.get(name, nothing), 0) for name in ("hour", "minute", "second")
        )
        seconds = hour * 3600 + minute * 60 + second
        if self.kind == "duration":
            return self._length(part, seconds)
        valid = (hour < 24) & (minute < 60) & (second < 60)
        if self.kind != "time":
            short = part.get("short year", nothing)
            year = part.get("year", short + np.where(short >= _PIVOT, 1900, 2000))
            month = part.get("month", part.get("month name", nothing))
            days, exist = _days(year, month, part["day"])
            valid &= exist
            seconds = seconds + days * SECONDS["day"] - part.get("offset", nothing)
        return np.where(valid, seconds // SECONDS[self._resolution], np.nan)

    def _length(self, part: dict[str, Int64], seconds: Int64) -> NDArray[np.float64]:
        """Return lengths of time: a part of a second goes down, as it does in typed columns."""
        named = [name for name in ("day", "hour", "minute", "second") if name in part]
        valid = np.any([part[name] >= 0 for name in named], axis=0)
        whole = seconds + np.maximum(part["day"], 0) * SECONDS["day"] + part["fraction"] / 2
        signed = np.where(part["sign"] > 0, -whole, whole)
        return np.where(valid, np.floor(signed / SECONDS[self._resolution]), np.nan)

    def written(self, numbers: pl.Series) -> pl.Series:
        """Return numbers as texts of the stated format, or as ISO texts.

        What cannot be written and read again is held at the first or the last that can.
        """
        day = per_day(self._resolution)
        if self.kind == "duration":
            held = numbers.clip(-_LONGEST * day, _LONGEST * day)
            return self.as_type(held, pl.Duration("ms")).dt.to_string("iso")
        if self.kind != "time":
            numbers = numbers.clip(FIRST_DAY * day, (LAST_DAY + 1) * day - 1)
        plain: dict[str, pl.DataType] = {"date": pl.Date(), "time": pl.Time()}
        typed = self.as_type(numbers, plain.get(self.kind, pl.Datetime("ms")))
        return typed.dt.to_string(self._format)

    def as_type(self, numbers: pl.Series, dtype: pl.DataType) -> pl.Series:
        """Return numbers as a column of dates, times or lengths of time, held where it ends."""
        if dtype == pl.Date:
            return (numbers // per_day(self._resolution)).cast(pl.Int32).cast(dtype)
        unit = getattr(dtype, "time_unit", "ns")
        each = SECONDS[self._resolution] * PER_SECOND[unit]
        most = ((1 << 63) - 1) // each
        moments = numbers.clip(-most, most) * each
        if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
            return _in_zone(moments.cast(pl.Datetime(dtype.time_unit)), dtype)
        return moments.cast(dtype)


def is_temporal(dtype: object, kind: str) -> bool:
    """Say whether a type can hold values of a kind of feature."""
    if kind in ("date", "datetime"):
        return dtype == pl.Date or isinstance(dtype, pl.Datetime)
    return dtype == pl.Time if kind == "time" else isinstance(dtype, pl.Duration)


def _in_zone(local: pl.Series, dtype: pl.Datetime) -> pl.Series:
    """Return clock times of a zone; one that its clocks skip is an hour later."""

    def zoned(times: pl.Series) -> pl.Series:
        zone = str(dtype.time_zone)
        return times.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")

    found = zoned(local)
    skipped = found.is_null() & local.is_not_null()
    return zoned(local.dt.offset_by("1h")).zip_with(skipped, found) if skipped.any() else found


def _whole(column: pl.Series, name: str) -> Int64:
    """Return a part of a text as a number, -1 where the text leaves it out."""
    if name == "offset":
        return _offset_seconds(column)
    if name == "month name":
        months = pl.Series(range(1, 13), dtype=pl.Int64)
        column = column.str.to_lowercase().replace_strict(
            pl.Series(_MONTH_NAMES), months, default=0, return_dtype=pl.Int64
        )
    elif name in ("sign", "fraction"):
        pattern = "-" if name == "sign" else "[1-9]"
        column = column.str.contains(pattern).fill_null(value=False)
    return column.cast(pl.Int64).fill_null(_NONE).to_numpy()


def _offset_seconds(offsets: pl.Series) -> Int64:
    """Return how many seconds the clocks of an offset are ahead of UTC; 0 for ``Z``."""
    digits = offsets.str.replace_all("[^0-9]", "")
    hours, minutes = (
        digits.str.slice(start, 2).cast(pl.Int64, strict=False).fill_null(0) for start in (0, 2)
    )
    ahead = (hours * 3600 + minutes * 60).to_numpy()
    behind = offsets.str.starts_with("-").fill_null(value=False).to_numpy()
    return np.where(behind, -ahead, ahead)


def _days(year: Int64, month: Int64, day: Int64) -> tuple[Int64, Truth]:
    """Return days since 1970-01-01, and which of them exist."""
    valid = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    starts, ends = (
        (months + more).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        for more in (0, 1)
    )
    days = starts + day - 1
    return days, valid & (days < ends)


_DATES = (
    *("", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %b %Y", "%d%b%Y", "%d-%b-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
)
_CLOCKS = ("%H:%M", "%H:%M:%S")
_ENDING = rf":[0-9]{{2}}(?:\.[0-9]+)?( ?(?:{OFFSET}))\s*$"
_OFFSETS_LEFT = "offsets from UTC are left out: times are those that clocks showed"
_MOMENTS = 'format = "%Y-%m-%dT%H:%M:%S%z" would count moments and write them in UTC'


# Whether a column holds dates or times, and how they are written: for drafts. In go the distinct
# values of a column, batch by batch; out comes the first kind and format that all of them have. It
# is found by looking at the data, so a person reviews it (R10).


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
            # One offset that all texts may share becomes a part of the format.
            endings = values.str.extract(_ENDING).drop_nulls()
            self._offsets = len(endings) > 0
            if self._offsets and not self._seen:
                shared = (f"%Y-%m-%d{m}{clock}{endings[0]}" for m in "T " for clock in _CLOCKS)
                self._left = (*(Guess("datetime", each) for each in shared), *self._left)
        self._seen = True
        if typed is not None:
            self._left = tuple(each for each in self._left if each == typed)
        elif values.dtype != pl.String:
            self._left = ()
        else:
            self._left = tuple(each for each in self._left if _text(each).all_fit(values))


def guess_of_type(dtype: pl.DataType) -> Guess | None:
    """Return the kind that a type declares, None where it is of no dates or times."""
    kinds = {"Date": "date", "Datetime": "datetime", "Time": "time", "Duration": "duration"}
    kind = kinds.get(type(dtype).__name__)
    return None if kind is None else Guess(kind)


@cache
def _text(guess: Guess) -> DateText:
    return DateText(Feature("x", kind=guess.kind, format=guess.format, edges=PRIVATE))  # type: ignore[arg-type]
