"""Texts that have an order which everybody knows: words of a scale, and brackets of numbers.

In go the categories of a column; out come the same in their order, or None where they have none.
The words are a public list, and brackets are read by their numbers: nothing depends on counts.

Whether a column holds dates or times, and how they are written: for drafts.

In go the distinct values of a column, batch by batch; out comes the first kind and format that
all of them have. It is found by looking at the data, so a person reviews it (R10).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import polars as pl

from pegsynth.schema.calendar_units import OFFSET
from pegsynth.schema.date_text import DateText
from pegsynth.schema.feature import Feature
from pegsynth.schema.keys import PRIVATE

LEAST_ON_A_SCALE = 3
MOST_BESIDE = 1
"""How many values may stand beside a scale, such as "other" or "did not ride"."""
MOST_CHARACTERS = 80

# Ranks of a scale from low to high; words between bars are as high as each other.
_SCALES = tuple(
    {word: rank for rank, words in enumerate(scale.split(",")) for word in words.split("|")}
    for scale in (
        # amount, size, severity, risk
        "none|no|absent|nil|keine,very low|minimal|very mild|very small|tiny|very light|"
        "very slow,low|minor|mild|small|slight|light|weak|little|slow|short|gering|niedrig|"
        "leicht|klein,moderate|medium|mid|middle|intermediate|average|normal|mittel,high|major|"
        "severe|large|heavy|big|strong|fast|long|hoch|schwer|gross|groß,very high|very severe|"
        "very large|extreme|critical|very heavy|very strong|very fast|sehr hoch,fatal|"
        "catastrophic",
        # quality, health
        "terrible|awful|very poor|very bad|sehr schlecht,poor|bad|inadequate|schlecht,fair|"
        "so so|ok|okay|acceptable|mediocre|mässig|mäßig,average|adequate|satisfactory,good|gut,"
        "very good|sehr gut,premium,excellent|ideal|outstanding|perfect|great",
        # frequency
        "never|not at all|nie,almost never|very rarely|hardly ever,rarely|seldom|selten,"
        "occasionally|now and then|gelegentlich,sometimes|some of the time|several days|"
        "manchmal,often|frequently|regularly|usually|more than half the days|oft|häufig,"
        "very often|mostly|most of time|most of the time|almost always|nearly always|"
        "nearly every day,always|all the time|all of the time|immer",
        "never|nie,less than yearly,yearly|annually|jährlich,quarterly,less than monthly,"
        "monthly|monatlich,less than weekly,weekly|wöchentlich,several times a week,daily|"
        "every day|täglich,hourly",
        # agreement
        "strongly disagree|disagree strongly|completely disagree|fully disagree|"
        "totally disagree,disagree|mostly disagree|tend to disagree,somewhat disagree|"
        "slightly disagree|disagree somewhat|disagree slightly|disagree a little,neutral|"
        "neither|neither agree nor disagree|undecided|no opinion|not sure,somewhat agree|"
        "slightly agree|agree somewhat|agree slightly|agree a little,agree|mostly agree|"
        "tend to agree,strongly agree|agree strongly|completely agree|fully agree|totally agree",
        # satisfaction
        "very dissatisfied|very unsatisfied|completely dissatisfied,dissatisfied|unsatisfied|"
        "somewhat dissatisfied|fairly dissatisfied,neutral|neither|"
        "neither satisfied nor dissatisfied,somewhat satisfied|fairly satisfied,satisfied,"
        "very satisfied,completely satisfied",
        "very unhappy,unhappy|not happy|not too happy,fairly happy|pretty happy,happy,very happy",
        # importance, interest, trust
        "not|not at all|none|none at all|not at all important|unimportant|not important,"
        "not very|notvery|a little|slightly|hardly any|not very important|slightly important|"
        "only a little,some|somewhat|moderately|fairly|somewhat important|fairly important|"
        "moderately important,quite|quite a bit|quite a lot|a lot|important|quite important,"
        "very|very much|very important|a great deal,extremely|extremely important",
        # likelihood, support
        "impossible,very unlikely,unlikely,possible|even chance,likely|probable,very likely,"
        "certain",
        "strongly oppose,oppose|somewhat oppose,neutral|neither,favor|favour|support|"
        "somewhat support,strongly favor|strongly favour|strongly support",
        # too little, too much; comparisons
        "too little|too few|too low|not enough,about right|just right|right|right amount,"
        "too much|too many|too high",
        "much worse,worse|somewhat worse|a little worse,same|the same|about the same|no change|"
        "unchanged|stayed same|stayed the same,better|somewhat better|a little better,"
        "much better",
        "decreased|decrease|down|fell|falling,same|the same|unchanged|no change|stable|steady,"
        "increased|increase|up|rose|rising",
        "less|fewer|lower|below,same|the same|about the same|equal,more|higher|above",
        # education
        "none|no schooling|no formal education|never attended|preschool,some primary,primary|"
        "elementary|primary school|elementary school|grade school|less than 8th grade,less hs|"
        "< hs|< hs grad|<hs|no hs|less than high school|lt high school|some high school|"
        "some hs|did not finish high school|no high school|lower secondary|hs dropout,ged,hs|"
        "high school|highschool|hs grad|hs graduate|high school grad|high school graduate|"
        "high school diploma|secondary|secondary school|upper secondary|hs or lower|hs or less|"
        "high school or less,some college|some ps|some postsecondary|some university|"
        "vocational|trade school|hs+some college,college|junior college|associate|associates|"
        "associate degree|associates degree|post secondary,bachelor|bachelors|ba|bs|"
        "bachelor degree|bachelors degree|college grad|college graduate|college degree|"
        "university|tertiary|undergraduate|4 year degree,master|masters|ma|masters degree|grad|"
        "graduate|graduate degree|graduate school|advanced degree|higher|postgraduate|"
        "post graduate|professional|professional degree,phd|doctorate|doctoral|doctoral degree",
        "freshman,sophomore,junior,senior",
        # class, age
        "lower|lower class|poor,working|working class,lower middle|lower middle class,middle|"
        "middle class,upper middle|upper middle class,upper|upper class|rich",
        "newborn,infant|baby,toddler,child|children,adolescent|teen|teenager|youth,young|"
        "young adult,adult,middle aged|middle age,old|older|senior|elderly|older adult",
        # sizes, grades, sequences
        "xxs,xs,s,m,l,xl,xxl,xxxl",
        "i,ii,iii,iv,v,vi,vii,viii,ix,x",
        "stage i,stage ii,stage iii,stage iv",
        "q1,q2,q3,q4",
        "first|1st,second|2nd,third|3rd,fourth|4th,fifth|5th,sixth|6th,seventh|7th,eighth|8th,"
        "ninth|9th,tenth|10th",
        "zero,one,two,three,four,five,six,seven,eight,nine,ten",
        # calendar
        "january|jan|januar,february|feb|februar,march|mar|märz|mär,april|apr,may|mai,june|jun|"
        "juni,july|jul|juli,august|aug,september|sep|sept,october|oct|oktober|okt,november|nov,"
        "december|dec|dezember|dez",
        "monday|mon|montag|mo,tuesday|tue|tues|dienstag|di,wednesday|wed|mittwoch|mi,thursday|"
        "thu|thurs|donnerstag|do,friday|fri|freitag|fr,saturday|sat|samstag|sa,sunday|sun|"
        "sonntag|so",
    )
)

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
    for ranks in ({text: scale.get(plain[text]) for text in texts} for scale in _SCALES):
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
