"""Documents from templates: pages for browsers, and texts in Markdown.

What is said stands in ``templates/``, what is true of a run in the values that fill them. Names
that end in ``.html.j2`` are pages, in which every text that may stem from a file is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pegsynth.privacy.rounding import display_up
from pegsynth.publishing.report.wording import number, percent, short

if TYPE_CHECKING:
    from jinja2 import Environment

    from pegsynth.schema import Feature

_MOST_NAMED = 12


def page(template: str, **content: Any) -> str:
    """Fill a template."""
    return _environment().get_template(template).render(**content)


def markdown(template: str, **content: Any) -> str:
    """Fill a template of Markdown, whose sections are parted by one blank line each."""
    return page(template, **content).strip("\n") + "\n"


def code(name: str) -> str:
    """Return a name as code in Markdown, on one line, whatever it holds."""
    return f"`{' '.join(name.split()).replace('`', chr(39))}`"


def names_in(names: Sequence[str]) -> str:
    """List names as code; a long list ends with the number of those left out."""
    listed = ", ".join(map(code, names[:_MOST_NAMED]))
    more = len(names) - _MOST_NAMED
    return f"{listed} and {more} more" if more > 0 else listed


def cell(text: str) -> str:
    """Return a text for a cell of a table in Markdown."""
    return text.replace("|", "\\|").replace("`", "'")


def _section(text: str) -> str:
    """Return a section of a document with a blank line after it; nothing where it is empty."""
    text = text.strip("\n")
    return f"{text}\n\n" if text else ""


def _lines(text: str) -> str:
    """Break lines where the text does, but for empty ones."""
    return "  \n".join(filter(None, text.split("\n")))


def _paragraph(text: str) -> str:
    """Put sentences that stand on lines of their own on one line."""
    return " ".join(filter(None, (line.strip(" ") for line in text.split("\n"))))


def _scalar(value: float | str) -> str:
    """Return a value as YAML reads it."""
    if isinstance(value, float):
        # YAML 1.1 takes 1e-09 for a text, and 1.0e-09 for a number.
        text = repr(value)
        return text if "e" not in text or "." in text else text.replace("e", ".0e")
    return json.dumps(value, ensure_ascii=False)


def _rounded_up(value: float | None) -> float:
    return float(display_up(value or 0.0))


def _missing_texts(feature: Feature) -> list[str]:
    """Return the texts of the original that mean "missing", but for blank cells."""
    return [text for text in feature.missing if text.strip()]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pegsynth.publishing", "templates"),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "section": _section,
        "lines": _lines,
        "paragraph": _paragraph,
        "code": code,
        "names": names_in,
        "cell": cell,
        "number": number,
        "percent": percent,
        "short": short,
        "extract": lambda place, values: values[place],
        "figure": display_up,
        "scalar": _scalar,
        "rounded_up": _rounded_up,
        "missing_texts": _missing_texts,
    }
    return environment
