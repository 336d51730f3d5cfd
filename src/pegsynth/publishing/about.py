"""``about.toml``: what only the publisher knows of a release, for all papers of its folder.

Nothing is guessed. What is not stated is left out of the papers and named there.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from pegsynth.errors import ParameterError, escaped

NEEDED: Final = ("title", "owner", "contact", "row", "purpose")
_DATES: Final = ("date", "review_date")
_MOST = 4000
SECTORS: Final = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
CURATORS: Final = ("Government", "Industry", "Nonprofit")
_CHOICES: Final = {"sector": SECTORS, "owner_type": CURATORS}


@dataclass(frozen=True)
class About:
    """What a publisher says of a release; empty texts are not stated.

    Parameters
    ----------
    title, owner, contact
        What the release is called, who publishes it, and whom to ask.
    row, unit
        What one row is, such as a hospital stay, and whom a unit column names, such as a patient;
        without such a column, of whom each row is the only one.
    purpose
        What the tables are for.
    why_epsilon
        Why this budget was chosen.
    preprocessing
        What was done to the table before the command read it.
    refresh
        Whether there will be further releases from the same table.
    review_date, date
        When the papers are to be looked at again; when the release is made.
    description, licence, url, region, sector, owner_type, keywords
        For catalogues and registries.
    """

    title: str = ""
    owner: str = ""
    contact: str = ""
    row: str = ""
    unit: str = ""
    purpose: str = ""
    why_epsilon: str = ""
    preprocessing: str = ""
    refresh: str = ""
    review_date: str = ""
    date: str = ""
    description: str = ""
    licence: str = ""
    url: str = ""
    region: str = ""
    sector: str = ""
    owner_type: str = ""
    keywords: tuple[str, ...] = ()

    @property
    def not_stated(self) -> tuple[str, ...]:
        """The keys that nobody stated, in order; how the date is found is another matter."""
        return tuple(e.name for e in fields(self) if e.name != "date" and not getattr(self, e.name))

    def check(self, *, has_unit: bool, source: str = "about.toml") -> None:
        """Ask for the name of a unit that the schema has.

        A unit without a column is a statement of the publisher: each has one row.
        """
        if self == NOTHING:
            return
        if has_unit and not self.unit:
            raise ParameterError(
                f"{source}: the schema protects units; say whom its unit column names, as "
                'unit = "patient"'
            )

    @classmethod
    def of(cls, given: About | str | Path | dict[str, Any] | None) -> About:
        """Make it of a file, of its content, or of nothing."""
        if given is None:
            return NOTHING
        if isinstance(given, About):
            return given
        if isinstance(given, dict):
            return _checked(given, "about")
        return _checked(_read(Path(given)), str(given))


NOTHING = About()


def release_date(about: About, *, seeded: bool) -> str:
    """Return the day that papers bear, UTC; empty for a seeded release of which none is stated.

    It is the one in ``about.toml``, else that of ``SOURCE_DATE_EPOCH``, else today. A seed is for
    results that can be repeated, so that it takes no day from the clock.
    """
    if about.date:
        return about.date
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    if stated:
        try:
            return datetime.fromtimestamp(int(stated), UTC).date().isoformat()
        except (ValueError, OverflowError, OSError):
            raise ParameterError(
                "SOURCE_DATE_EPOCH must be a number of seconds since 1970; unset it or mend it"
            ) from None
    return "" if seeded else datetime.now(UTC).date().isoformat()


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror}); check the name") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(f"{path}: this is no TOML that can be read: {error}") from None


def _checked(content: dict[str, Any], source: str) -> About:
    known = {each.name for each in fields(About)}
    for name in content:
        if name not in known:
            raise ParameterError(
                f"{source}: unknown key {name!r}; known are {', '.join(sorted(known))}"
            )
    values = {name: _value(name, value, source) for name, value in content.items()}
    for name in NEEDED:
        if not values.get(name):
            raise ParameterError(f'{source}: {name} is missing; state it, as {name} = ".."')
    return About(**values)


def _value(name: str, value: object, source: str) -> Any:
    if name == "keywords":
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise ParameterError(f"{source}: keywords is a list of texts")
        return tuple(_text(each) for each in value)
    if name in _DATES:
        return _day(name, value, source)
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(f"{source}: {name} must be a text that is not empty")
    if len(value) > _MOST:
        raise ParameterError(f"{source}: {name} has more than {_MOST} characters; shorten it")
    text = _text(value)
    if name in _CHOICES and text not in _CHOICES[name]:
        raise ParameterError(f"{source}: {name} is one of {', '.join(_CHOICES[name])}")
    return text


def _day(name: str, value: Any, source: str) -> str:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise ParameterError(f"{source}: {name} must be a day, such as 2027-01-31") from None


def _text(value: str) -> str:
    """Return a text on one line, without characters that steer a terminal."""
    return escaped(" ".join(value.split()))
