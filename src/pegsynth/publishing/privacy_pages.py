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
from pegsynth.privacy.ledger import LARGEST_USUAL_DELTA
from pegsynth.privacy.ledger_views import AMBER_ABOVE, RED_ABOVE, Level, level
from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import factor_text, rows_counted
from pegsynth.publishing.about import About
from pegsynth.publishing.policy import Policy

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
    sections = [
        f"# {say('title')}",
        _head(ledger, about, date, say),
        " ".join(_claim(guarantee, about, say)),
        _protected(ledger, about, say),
        _means(guarantee, about, say),
        _reasons(about, say),
        _list(say("not_covered"), list(_uncovered(ledger, say))),
        _list(say("assumed"), list(_assumed(ledger, say))),
        say("wording") if language != "en" and (ledger.assumptions or ledger.not_covered) else "",
        _done(policy, say, promised=guarantee.kind != "none"),
        f"## {say('check')}\n\n{say('check_text')}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(ledger: Ledger, about: About, date: str, say: Messages) -> str:
    lines = [
        f"**{about.title}**" if about.title else "",
        say("published", owner=about.owner, contact=about.contact) if about.owner else "",
        say("dated", date=date) if date else "",
        say("made_by", programs=", ".join(map(str, ledger.programs))) if ledger.programs else "",
        say("purpose", text=about.purpose) if about.purpose else "",
        say("review", date=about.review_date) if about.review_date else "",
    ]
    return "  \n".join(line for line in lines if line)


def named_unit(guarantee: Guarantee, about: About, say: Messages) -> str:
    """Return what is protected, in the publisher's word for it."""
    if guarantee.unit == "unit":
        return about.unit or say("a_unit")
    return about.row or say("a_row")


def _claim(guarantee: Guarantee, about: About, say: Messages) -> Iterator[str]:
    if guarantee.kind == "none":
        yield say("claim_none")
        return
    if guarantee.kind == "l-diversity":
        yield say("claim_diversity", l=say.figure(f"{guarantee.l:g}"))
        return
    amounts = (guarantee.epsilon or 0.0, guarantee.delta or 0.0)
    epsilon, delta = (say.figure(display_up(each)) for each in amounts)
    yield say(f"claim_{guarantee.kind}", epsilon=epsilon, delta=delta)
    unit = named_unit(guarantee, about, say)
    yield say("odds", factor=say.figure(factor_text(guarantee.epsilon or 0.0)), unit=unit)
    if guarantee.delta:
        yield say("odds_delta", delta=delta)
    if guarantee.epsilon_per_row is not None:
        yield say("per_row", epsilon=say.figure(display_up(guarantee.epsilon_per_row)))


def _protected(ledger: Ledger, about: About, say: Messages) -> str:
    guarantee = ledger.guarantee
    if guarantee.kind not in ("pure", "approximate"):
        return ""
    unit = named_unit(guarantee, about, say)
    if guarantee.unit == "unit":
        return say("protected_unit", unit=unit, rows=rows_counted(ledger))
    if about.unit and about.unit != about.row:
        return say("protected_single", unit=about.unit, row=unit)
    return say("protected_row", row=unit)


def _means(guarantee: Guarantee, about: About, say: Messages) -> str:
    epsilon = guarantee.epsilon
    if level_of(guarantee) == "none" or epsilon is None:
        return ""
    unit = named_unit(guarantee, about, say)
    amber, red = f"{AMBER_ABOVE:g}", f"{RED_ABOVE:g}"
    by_epsilon = "red" if epsilon > RED_ABOVE else "amber" if epsilon > AMBER_ABOVE else "green"
    lines = [
        f"## {say('means', epsilon=say.figure(display_up(epsilon)))}\n",
        f"| {say('means_before', unit=unit)} | {say('means_after')} |",
        "|---|---|",
        *(
            f"| {int(100 * each)} % | {say.figure(certainty(each, epsilon))} |"
            for each in SUSPICIONS
        ),
        "",
        f"**{say(f'level_{by_epsilon}', amber=amber, red=red)}**",
    ]
    if (guarantee.delta or 0.0) > LARGEST_USUAL_DELTA:
        lines.append(
            f"\n**{say('delta_amber', most=say.figure(display_up(LARGEST_USUAL_DELTA)))}**"
        )
    lines.append(f"\n{say('means_note', unit=unit)} {say('thresholds', amber=amber, red=red)}")
    return "\n".join(lines)


def _reasons(about: About, say: Messages) -> str:
    stated = ("why_epsilon", "preprocessing", "refresh")
    lines = [
        say(key, text=getattr(about, key).rstrip(".") if key == "refresh" else getattr(about, key))
        for key in stated
        if getattr(about, key)
    ]
    missing = [
        key
        for key in ("title", "owner", "contact", "purpose", *stated, "review_date")
        if not getattr(about, key)
    ]
    if missing:
        lines.append(say("not_stated", names=", ".join(missing)))
    return "\n\n".join(lines)


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


def _assumed(ledger: Ledger, say: Messages) -> Iterator[str]:
    lines = (_assumption(each, say) for each in ledger.assumptions)
    yield from dict.fromkeys(lines)


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


def _list(heading: str, lines: list[str]) -> str:
    """Write lines as a list; white space is collapsed, so that none can pose as a paragraph."""
    return "\n".join((heading, *(f"- {' '.join(line.split())}" for line in lines))) if lines else ""


def _done(policy: Policy, say: Messages, *, promised: bool) -> str:
    if not policy:
        return ""
    lines = []
    if policy.k is not None:
        lines.append(say("done_k", names=", ".join(policy.k_features), k=policy.k))
    lines += [
        say("done_round", name=name, step=say.figure(f"{step:g}")) for name, step in policy.round_to
    ]
    kind = say("done_policy" if promised else "done_policy_alone")
    return "\n".join((f"## {say('done')}\n\n{kind}\n", *(f"- {x}" for x in lines)))
