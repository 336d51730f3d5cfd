"""Public words: scales that everybody orders alike, brackets of numbers, and names of columns.

In go the categories or the name of a column; out come the categories in their order, or what the
name says. ``words.toml`` is a public list, and brackets are read by their numbers: nothing depends
on counts.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

LEAST_ON_A_SCALE = 3
MOST_BESIDE = 1
"""How many values may stand beside a scale, such as "other" or "did not ride"."""
MOST_CHARACTERS = 80

_NUMBERED = re.compile(r"^\(?\d{1,2}[.):]\s+")
_NUMBER = r"[$€£]?((?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*|0)(?:\.\d+)?)(?![\d.])\s*(k\b|m\b|%)?"
_RANGE = re.compile(rf"[\[(]?{_NUMBER}\s*(?:-|\u2013|to|thru|through|,\s|,|;)\s*<?{_NUMBER}[\])]?")
_BELOW = re.compile(
    rf"(?:<=?|≤|under|below|less than|fewer than|up to|at most|\blt|\ble)\s*{_NUMBER}"
    rf"|{_NUMBER}\s*(?:or less|or fewer|or under|or younger|and under|and younger)"
)
_ABOVE = re.compile(
    rf"(?:>=?|≥|over|above|more than|at least|\bgt|\bge)\s*{_NUMBER}"
    rf"|{_NUMBER}\s*(?:\+|or more|or over|or older|and over|and older|and above|and more|plus\b)"
)
_ALONE = re.compile(_NUMBER)
_UNITS = {"k": 1e3, "m": 1e6}
_NOTHING = re.compile(r"^(never|no|not|none|did not|do not|does not|without)\b")


def in_order(texts: Sequence[str]) -> tuple[str, ...] | None:
    """Return texts in the order that everybody knows, or None if there is none.

    A value beside the scale comes first if it says that there is nothing, and else last.

    Examples
    --------
    >>> in_order(["High", "Low", "Medium"])
    ('Low', 'Medium', 'High')
    >>> in_order(["85+", "<5", "5-17", "18-84"])
    ('<5', '5-17', '18-84', '85+')
    >>> in_order(["red", "green", "blue"])
    """
    if len(texts) < LEAST_ON_A_SCALE:
        return None
    plain = {text: _plain(text) if len(text) <= MOST_CHARACTERS else "" for text in texts}
    for ranks in ({text: scale.get(plain[text]) for text in texts} for scale in _scales()):
        if found := _sorted(ranks, plain):
            return found
    return _sorted(_brackets(plain), plain)


def _plain(text: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", _NUMBERED.sub("", text.strip()))
    return re.sub(r"\s+", " ", re.sub(r"[_\u2019'.]+(?!\d)|_", " ", spaced.lower())).strip()


def _sorted(ranks: Mapping[str, float | None], plain: Mapping[str, str]) -> tuple[str, ...] | None:
    """Order values by their ranks, which must be all different."""
    on = [text for text, rank in ranks.items() if rank is not None]
    beside = [text for text, rank in ranks.items() if rank is None]
    if len(on) < LEAST_ON_A_SCALE or len(beside) > MOST_BESIDE:
        return None
    if len({ranks[text] for text in on}) < len(on):
        return None
    first = [text for text in beside if _NOTHING.search(plain[text])]
    last = [text for text in beside if text not in first]
    return (*first, *sorted(on, key=lambda text: ranks[text] or 0.0), *last)


def _brackets(plain: Mapping[str, str]) -> dict[str, float | None]:
    """Return where brackets begin; nothing if they overlap, or are all mere numbers."""
    read = {text: found for text, each in plain.items() if (found := _bracket(each))}
    none: dict[str, float | None] = dict.fromkeys(plain)
    if len({beside for _, _, beside in read.values()}) != 1:
        return none
    ends = sorted((low, high) for low, high, _ in read.values())
    apart = all(a < c and b <= c for (a, b), (c, _) in pairwise(ends))
    if not apart or all(low == high for low, high in ends):
        return none
    return none | {text: low for text, (low, _, _) in read.items()}


def _bracket(text: str) -> tuple[float, float, str] | None:
    """Return the ends of a bracket and the words around it, such as a unit."""
    for pattern in (_RANGE, _BELOW, _ABOVE, _ALONE):
        if found := pattern.search(text):
            numbers, units = found.groups()[::2], found.groups()[1::2]
            # What stands behind the last number holds for both: 10-19k.
            factor = _UNITS.get(units[-1] or units[0] or "", 1.0)
            ends = [float(each.replace(",", "")) * factor for each in numbers if each]
            low = -math.inf if pattern is _BELOW else ends[0]
            high = math.inf if pattern is _ABOVE else ends[-1]
            words = text[: found.start()] + " " + text[found.end() :]
            if low > high or re.search(r"\d", words):
                return None
            return low, high, re.sub(r"\W+", " ", re.sub(r"s\b", "", words)).strip()
    return None


@cache
def public_words() -> dict[str, Any]:
    """Return what ``words.toml`` says."""
    text = resources.files(__package__).joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _scales() -> tuple[dict[str, int], ...]:
    """Return the ranks of words on every scale."""
    return tuple(
        {word: rank for rank, words in enumerate(scale) for word in words.split("|")}
        for scale in public_words()["scales"].values()
    )


def named(name: str, what: str) -> bool:
    """Say whether the name of a column says something of it, one of ``names`` in ``words.toml``."""
    return bool(_pattern(what).search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)))


@cache
def _pattern(what: str) -> re.Pattern[str]:
    return re.compile(public_words()["names"][what], re.IGNORECASE | re.VERBOSE)


def names_codes(name: str) -> bool:
    """Say whether a column is called as one of codes, which have no order."""
    return named(name, "codes") and not named(name, "codes_in_order")
