"""Templates: what every page shares, and the study's page made of sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pegsynth.reporting.figure import Figure, Table, drawn

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Section:
    """One section of a page.

    Parameters
    ----------
    heading
        Its title; an anchor and an entry of the contents are made from it.
    paragraphs
        Plain text.
    figures, tables
        What follows it, figures first.
    narrow
        Whether two figures fit side by side on paper.
    """

    heading: str
    paragraphs: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    narrow: bool = False


def page(template: str, **content: Any) -> str:
    """Fill a template."""
    return _environment().get_template(template).render(**content)


def render_study(title: str, sections: Sequence[Section], *, warning: str = "") -> str:
    """Write a self-contained page made of sections.

    Parameters
    ----------
    title
        Heading of the page.
    sections
        Text, figures and tables in order.
    warning
        What a reader must be warned of, first of all; nothing when empty.
    """
    return page(
        "study.html.j2",
        title=title,
        warning=warning,
        sections=[
            {
                "heading": section.heading,
                "paragraphs": section.paragraphs,
                "figures": [drawn(figure) for figure in section.figures],
                "tables": section.tables,
                "narrow": section.narrow,
            }
            for section in sections
        ],
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("pegsynth.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
