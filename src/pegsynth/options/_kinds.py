"""How an option is declared, and what follows from that: its check, flag and argument.

A group of options is a frozen dataclass whose fields are made by `option`;
`pegsynth.options` declares those of a release. Messages of the library name flags, and
`keywords` turns them into names of arguments for callers in Python.
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from pegsynth.errors import BudgetError, ParameterError, PegsynthError, with_notes_of

Kind = Literal[
    "whole",
    "number",
    "flag",
    "choice",
    "text",
    "path",
    "file",
    "values",
    "names",
    "shares",
    "steps",
    "texts",
    "tables",
    "rows",
    "document",
]
METADATA = "option"
LARGEST_WHOLE = 10**12
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z]|[a-z])(?![\w-])")

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Group = TypeVar("_Group")


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name and type.

    Parameters
    ----------
    kind
        What its values are: a whole number of at least 1, a number, yes or no, one of
        `choices`, a text, a word or the name of a file, a file, values of features, names
        of features, shares of a budget, steps of numeric features, texts, lists of names, or
        rows or a document, which are files on the command line.
    help
        One line for ``--help`` and for the docs; or what makes it.
    choices
        The values that a choice may have; or what lists them.
    least
        The smallest whole number.
    metavar
        What ``--help`` calls its value.
    unless
        What is taken where it is left out, in words.
    flag
        Its flag, where that is not its name.
    harmless
        Values that say what every method does anyway.
    """

    kind: Kind
    help: str | Callable[[], str]
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    least: int = 1
    metavar: str = ""
    unless: str = ""
    flag: str = ""
    harmless: tuple[object, ...] = ()
    default: Any = None

    @property
    def text(self) -> str:
        """The line for ``--help``."""
        return self.help() if callable(self.help) else self.help

    @property
    def known(self) -> tuple[str, ...]:
        """The values that a choice may have."""
        return self.choices() if callable(self.choices) else self.choices

    @property
    def typed(self) -> Any:
        """The type of what is typed on the command line."""
        return _KINDS[self.kind][0]

    @property
    def several(self) -> bool:
        """Whether it has several values, and none of them unless it is stated."""
        return self.kind == "names" or self.typed == list[str]

    def flag_of(self, name: str) -> str:
        """Return the flag of this option."""
        return self.flag or flag_of(name)

    def checked(self, name: str, value: Any) -> Any:
        """Return a value in its plain form, refusing one of another kind by its flag."""
        if value is None:
            return () if self.several and self.kind != "shares" else None
        return _KINDS[self.kind][1](self, self.flag_of(name), value)


def option(
    default: Any,
    kind: Kind,
    help: str | Callable[[], str],  # noqa: A002
    **more: Any,
) -> Any:
    """Declare an option of a group; see `Option`."""
    return field(default=default, metadata={METADATA: Option(kind, help, default=default, **more)})


def again(group: type, name: str) -> Any:
    """Declare an option that another group has too, in the same words."""
    each = {each.name: each for each in fields(group)}[name]
    return field(default=each.default, metadata=each.metadata)


def declared(*groups: type) -> dict[str, Option]:
    """Return the options of some groups by name, in their order."""
    return {
        each.name: each.metadata[METADATA]
        for group in groups
        for each in fields(group)
        if METADATA in each.metadata
    }


def made_of(group: type[_Group], options: dict[str, Any]) -> _Group:
    """Take the options of a group out of some, and return them as one value."""
    return group(**{name: options.pop(name) for name in declared(group) if name in options})


def check_options(group: Any) -> None:
    """Check every option of a group and put it in its plain form."""
    for name, each in declared(type(group)).items():
        value = getattr(group, name)
        if value is None and each.kind == "whole" and each.default is not None:
            check_whole(name, None, least=each.least)
        object.__setattr__(group, name, each.checked(name, value))


def flag_of(name: str) -> str:
    """Return the flag of an option."""
    return "--" + name.replace("_", "-")


# What values of each kind look like


def check_whole(name: str, value: object, *, least: int = 1) -> int:
    """Return a whole number of at least 1, refusing everything else by its flag."""
    flag = flag_of(name)
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]
        bound = "" if least == -LARGEST_WHOLE else f" of at least {least}"
        raise ParameterError(f"{flag} must be a whole number{bound}; it was {_shown(value)}")
    number: int = int(value)  # type: ignore[call-overload]
    if number > LARGEST_WHOLE:
        raise ParameterError(f"{flag} must be at most {LARGEST_WHOLE}; it was {number}")
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}.."


def _number(each: Option, flag: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise BudgetError(f"{flag} must be a number; it was {_shown(value)}")
    return float(value)


def _yes_or_no(each: Option, flag: str, value: object) -> bool:
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise ParameterError(f"{flag} is true or false, not {_shown(value)}")
    return bool(value)


def _choice(each: Option, flag: str, value: object) -> str:
    if not isinstance(value, str) or value not in each.known:
        known = ", ".join(each.known)
        raise ParameterError(f"{flag} is one of {known}, not {_shown(value)}")
    return value


def _text(each: Option, flag: str, value: object) -> str:
    if not isinstance(value, str):
        raise ParameterError(f"{flag} must be a text; it was {_shown(value)}")
    return value


def _path(each: Option, flag: str, value: object) -> str | Path:
    if not isinstance(value, str | Path):
        raise ParameterError(f"{flag} must be the name of a file; it was {_shown(value)}")
    if not str(value):
        raise ParameterError(f"{flag} is empty; leave it out or fill it in")
    return value


def _values(each: Option, flag: str, value: object) -> tuple[tuple[str, str], ...]:
    """Return features with their values: a mapping, pairs, or texts ``FEATURE=VALUE``."""
    if isinstance(value, Mapping):
        return tuple((str(name), _as_value(text)) for name, text in value.items())
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParameterError(f"{flag} takes features with their values; it was {_shown(value)}")
    found = []
    for item in value:
        if isinstance(item, str):
            name, equals, text = item.partition("=")
            if not equals:
                raise ParameterError(f"{flag} {item}: write it as FEATURE=VALUE")
        else:
            name, text = item
        found.append((str(name), _as_value(text)))
    return tuple(found)


def _as_value(value: object) -> str:
    # A truth value is written as tables write it.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names(each: Option, flag: str, value: object) -> tuple[str, ...]:
    """Return names of features: a sequence, or one text with commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise ParameterError(f"{flag} takes names of features; it was {_shown(value)}")
    return tuple(dict.fromkeys(filter(None, map(str.strip, value))))


def _shares(each: Option, flag: str, value: Any) -> Any:
    """Return shares of the budget: those of the library, a mapping, or texts NAME=SHARE."""
    from pegsynth.privacy import Shares

    if isinstance(value, Shares):
        return value
    if isinstance(value, Mapping):
        value = [f"{name}={share}" for name, share in value.items()]
    stated: dict[str, float] = {}
    for text in value:
        name, _, share = str(text).partition("=")
        if name not in ("order", "marginals", "draws"):
            raise BudgetError(f"{flag} {text}: the shares are order, marginals and draws")
        try:
            stated[name] = float(share)
        except ValueError:
            raise BudgetError(f"{flag} {text}: write it as NAME=SHARE, such as order=0.1") from None
    if stated and "draws" not in stated:
        others = [stated.get("order", 0.1), stated.get("marginals", 0.1)]
        stated["draws"] = round(1 - sum(others), 12) if sum(others) <= 1 else 0.0
    return Shares(**stated)


def _several(flag: str, value: object) -> Sequence[object]:
    """Return values, of which one alone may be a text."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence):
        raise ParameterError(f"{flag} takes a list of values; it was {_shown(value)}")
    return value


def _steps(each: Option, flag: str, value: object) -> tuple[tuple[str, Any], ...]:
    """Return features with the multiples they are rounded to: a mapping, or texts FEATURE=STEP."""
    if isinstance(value, Mapping):
        return tuple(value.items())
    found = []
    for text in _several(flag, value):
        name, _, step = _text(each, flag, text).rpartition("=")
        try:
            number = float(step)
        except ValueError:
            number = math.nan
        if not name or math.isnan(number):
            raise ParameterError(f"{flag} is written FEATURE=STEP, as {flag} charge=100")
        found.append((name, number))
    return tuple(found)


def _tables(each: Option, flag: str, value: object) -> tuple[tuple[str, ...], ...]:
    """Return lists of names, each a sequence or one text with commas."""
    found = []
    for names in _several(flag, value):
        listed = names.split(",") if isinstance(names, str) else _several(flag, names)
        found.append(tuple(_text(each, flag, name).strip() for name in listed))
    return tuple(found)


_KINDS: Mapping[Kind, tuple[Any, Callable[[Option, str, Any], object]]] = {
    "whole": (int, lambda o, flag, v: check_whole(flag.removeprefix("--"), v, least=o.least)),
    "number": (float, _number),
    "flag": (bool, _yes_or_no),
    "choice": (str, _choice),
    "text": (str, _text),
    "path": (str, _path),
    "file": (Path, lambda *stated: Path(_path(*stated))),
    "values": (list[str], _values),
    "names": (str, _names),
    "shares": (list[str], _shares),
    "steps": (list[str], _steps),
    "texts": (list[str], lambda o, flag, v: tuple(_text(o, flag, t) for t in _several(flag, v))),
    "tables": (list[str], _tables),
    # What reads rows or a document refuses what it cannot read.
    "rows": (str, lambda _, __, value: value),
    "document": (Path, lambda _, __, value: value),
}
"""What is typed on the command line, and how a value becomes plain or is refused."""


# Options as keyword arguments in Python


def in_python(message: str, renamed: Mapping[str, str] | None = None) -> str:
    """Return a message that calls options by their arguments and not by their flags.

    Parameters
    ----------
    renamed
        Flags that are not spelled as their arguments, with these.
    """
    known = renamed or {}
    return _FLAG.sub(lambda found: known.get(found[0], found[1].replace("-", "_")), message)


@contextmanager
def python_names(renamed: Mapping[str, str] | None = None) -> Iterator[None]:
    """Let errors name the arguments of the caller, who typed no flags."""
    try:
        yield
    except PegsynthError as error:
        message = str(error)
        if (spoken := in_python(message, renamed)) == message:
            raise
        raise with_notes_of(type(error)(spoken), error) from None


def keywords(
    *groups: type,
    without: Sequence[str] = (),
    more: Callable[[], Collection[str]] = tuple,
    **defaults: Any,
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Give a function with ``**options`` the declared options as its keyword arguments.

    Help and editors then show them. What the function does not know is refused by name, with
    what was probably meant.

    Parameters
    ----------
    without
        Options of the groups that this function does not take.
    more
        Names of options that are known only when the function is called.
    **defaults
        Other defaults than those declared.
    """
    options = declared(*groups)
    taken = {
        name: defaults.get(name, each.default)
        for name, each in options.items()
        if name not in without
    }
    renamed = {each.flag: name for name, each in options.items() if each.flag}

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        own = inspect.signature(function)
        named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        known = {*taken, *(parameter.name for parameter in named)}

        @wraps(function)
        def call(*positional: _Parameters.args, **given: _Parameters.kwargs) -> _Result:
            refuse_unknown(given, {*known, *more()}, function.__name__)
            with python_names(renamed):
                return function(*positional, **{**defaults, **given})

        call.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[
                *named,
                *(
                    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                    for name, default in taken.items()
                ),
            ]
        )
        return call

    return decorate


def refuse_unknown(given: Mapping[str, Any], known: set[str], function: str) -> None:
    """Refuse arguments that nobody declared."""
    from difflib import get_close_matches

    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ParameterError(f"{function} has no argument {name!r}{meant}")
