"""The sentences of PRIVACY.md in several languages, all from ``messages.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from pegsynth.errors import ParameterError

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
