"""The sentences of PRIVACY.md in several languages, all from ``messages.toml``.

PRIVACY.md: the promise in words that a data-protection officer can read, in five languages.

Made from the ledger, from what the publisher said, and from public thresholds. English assumptions
and reasons are those of the ledger, word for word; other languages state them in general and
leave the parameters to ``privacy.json``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Final

from pegsynth.errors import ParameterError
from pegsynth.privacy import Event, Guarantee, Ledger, NotPrivate
from pegsynth.privacy.assumptions import Assumption
from pegsynth.privacy.guarantee import uncovered_places
from pegsynth.privacy.guesses import TOLD, gain_of_ledger
from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import (
    AMBER_ABOVE,
    LARGEST_USUAL_DELTA,
    RED_ABOVE,
    Level,
    factor_text,
    level,
    rows_counted,
)
from pegsynth.publishing.about import About
from pegsynth.publishing.policy import Policy
from pegsynth.publishing.rendering import markdown

LANGUAGES: Final = ("en", "de", "fr", "es", "pt")


@cache
def all_messages() -> dict[str, dict[str, str]]:
    """Return every message in every language."""
    text = files("pegsynth.publishing").joinpath("messages.toml").read_text("utf-8")
    return tomllib.loads(text)


@dataclass(frozen=True)
class Messages:
    """The messages of one language."""

    language: str

    def __call__(self, key: str, **places: Any) -> str:
        """Return a message with its places filled."""
        return all_messages()[key][self.language].format(**places)

    def figure(self, text: str) -> str:
        """Return a figure with the decimal mark of the language."""
        return text if self.language == "en" else text.replace(".", ",")

    def known(self, key: str) -> bool:
        """Whether there is such a message."""
        return key in all_messages()


def check_languages(asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return the languages beside English that were asked for, each once."""
    names = asked.split(",") if isinstance(asked, str) else tuple(asked or ())
    found = tuple(dict.fromkeys(name.strip().lower() for name in names if name.strip()))
    for name in found:
        if name not in LANGUAGES:
            raise ParameterError(f"--language takes {', '.join(LANGUAGES)}; it was {name!r}")
    return tuple(name for name in found if name != "en")


SUSPICIONS: Final = (Decimal("0.01"), Decimal("0.1"), Decimal("0.5"))
_LARGEST: Final = 300
_REASONS: Final = ("why_epsilon", "preprocessing", "refresh")
"""What a publisher may say of a promise; each has a message of that name."""


def level_of(guarantee: Guarantee) -> Level:
    """Return the colour of a promise."""
    return level(guarantee.kind, guarantee.epsilon, guarantee.delta)


def certainty(suspicion: Decimal, epsilon: float) -> str:
    """Return how sure somebody can become of what he suspected, in per cent, rounded up."""
    context = Context(prec=400)
    factor = context.exp(Decimal(min(epsilon, _LARGEST)))
    doubt = context.divide(1 - suspicion, context.add(1 - suspicion, suspicion * factor)) * 100
    if doubt >= 1:
        sure = Context(prec=3, rounding=ROUND_CEILING).plus(100 - doubt)
        return f"{sure.normalize():f} %"
    left = Context(prec=1, rounding=ROUND_FLOOR).plus(doubt)
    return "100 %" if doubt < Decimal("1e-6") else f"{100 - left:f} %"


def privacy_page(
    ledger: Ledger, *, about: About, date: str, policy: Policy, language: str = "en"
) -> str:
    """Return PRIVACY.md in a language."""
    say = Messages(language)
    guarantee = ledger.guarantee
    epsilon, delta = guarantee.epsilon or 0.0, guarantee.delta or 0.0
    stated = ("title", "owner", "contact", "purpose", *_REASONS, "review_date")
    return markdown(
        "privacy.md.j2",
        say=say,
        guarantee=guarantee,
        about=about,
        date=date,
        policy=policy,
        programs=", ".join(map(str, ledger.programs)),
        unit=named_unit(guarantee, about, say),
        rows=rows_counted(ledger),
        epsilon=say.figure(display_up(epsilon)),
        delta=say.figure(display_up(delta)),
        factor=factor_text(epsilon),
        gain=gain_of_ledger(ledger),
        told=f"{100 * TOLD:g}",
        odds=[(f"{int(100 * each)} %", certainty(each, epsilon)) for each in SUSPICIONS],
        # The colour of delta is said in a sentence of its own.
        by_epsilon=level(guarantee.kind, guarantee.epsilon, None),
        amber=f"{AMBER_ABOVE:g}",
        red=f"{RED_ABOVE:g}",
        usual_delta=LARGEST_USUAL_DELTA,
        reasons=_REASONS,
        not_stated=", ".join(key for key in stated if not getattr(about, key)),
        uncovered=list(_uncovered(ledger, say)),
        assumed=list(dict.fromkeys(_assumption(each, say) for each in ledger.assumptions)),
    )


def named_unit(guarantee: Guarantee, about: About, say: Messages) -> str:
    """Return what is protected, in the publisher's word for it."""
    if guarantee.unit == "unit":
        return about.unit or say("a_unit")
    return about.row or say("a_row")


def _uncovered(ledger: Ledger, say: Messages) -> Iterator[str]:
    if say.language == "en":
        yield from ledger.not_covered
        return
    places = uncovered_places(ledger.events, delta=ledger.delta or None)
    for place, reason in places.items():
        yield f"{place + 1}: {_reason(ledger.events[place], reason, say)}"


def _reason(event: Event, reason: str, say: Messages) -> str:
    key = f"reason_{event.code}" if isinstance(event, NotPrivate) else ""
    return say(key) if say.known(key) else say("reason_other", text=reason)


def _assumption(each: Assumption, say: Messages) -> str:
    if say.language == "en":
        return each.text
    key = f"assumed_{each.code}"
    if not say.known(key):
        return say("assumed_other", text=each.text)
    if each.code in _IN_PARTS:
        return say(key, parts="; ".join(_parts(each, say)))
    if each.code == "public-rules" and each.parameters.get("drafted"):
        key = "rules_drafted"
    names = [
        name for value in each.parameters.values() if isinstance(value, list) for name in value
    ]
    about = f" ({', '.join(dict.fromkeys(names))})" if names else ""
    return f"{say(key)}{about}"


_IN_PARTS: Final = {"reviewed-schema": "schema", "unlisted-values": "unlisted"}
"""Assumptions that are said parameter by parameter, and how the messages of these begin."""


def _parts(each: Assumption, say: Messages) -> Iterator[str]:
    prefix = _IN_PARTS[each.code]
    if each.code == "reviewed-schema" and not set(each.parameters) - set(_ORIGINS):
        yield say("schema_names")
    for name, value in sorted(each.parameters.items(), key=lambda pair: pair[0] in _ORIGINS):
        names = ", ".join(value) if isinstance(value, list) else str(value)
        if say.known(f"{prefix}_{name}"):
            yield say(f"{prefix}_{name}", names=names)


_ORIGINS: Final = ("drafted_from_data", "drafted_rules")
"""Parameters that say where something comes from, and not what was declared."""
