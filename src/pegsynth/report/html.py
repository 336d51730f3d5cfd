"""The internal report: one HTML page from saved metrics.

Goes in: `Metrics`, the privacy statement and the guarantee. Comes out: a page that opens
offline, runs no script and fetches nothing. Every text that may stem from a file is
escaped by the template engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pegsynth.report.figures import bar_table, worst
from pegsynth.report.words import (
    EXPLANATIONS,
    MEASURES,
    VERDICT_RULE,
    guarantee_facts,
    guarantee_headline,
    paragraphs,
    short,
    value_text,
    verdict,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from pegsynth.evaluation.records import Metrics, Record

WORST_SHOWN = 10


def render(metrics: Metrics, *, statement: str, guarantee: Mapping[str, Any], title: str) -> str:
    """Write the report.

    Parameters
    ----------
    metrics
        Saved results.
    statement
        The ledger in words; blank lines part paragraphs, lines that start with "- " are
        items of a list.
    guarantee
        The ``guarantee`` of ``privacy.json``.
    title
        Heading of the page.

    Returns
    -------
    str
        A self-contained HTML document.
    """
    template = _environment().get_template("report.html.j2")
    return template.render(
        title=title,
        statement=paragraphs(statement),
        kind=str(guarantee.get("kind", "none")),
        headline=guarantee_headline(guarantee),
        facts=guarantee_facts(guarantee),
        verdict=verdict(metrics),
        verdict_rule=VERDICT_RULE,
        summary=_summary(metrics),
        features=[bar_table(metrics, marginal) for marginal in metrics.marginals],
        pairs=worst(metrics, "tvd2", WORST_SHOWN),
        conditionals=worst(metrics, "conditional_distance", WORST_SHOWN),
    )


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("pegsynth.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _summary(metrics: Metrics) -> list[dict[str, str]]:
    return [
        _summary_row(name, value, metrics.record(name)) for name, value in metrics.summary.items()
    ]


def _summary_row(name: str, value: float | None, record: Record | None) -> dict[str, str]:
    return {
        "title": MEASURES.get(name, short(name)),
        "name": name,
        "explanation": EXPLANATIONS.get(name, ""),
        "value": value_text(name, value),
        "range": _range(name, record),
        "baseline": value_text(name, record.baseline if record else None),
        "better": record.better if record else "",
        "note": record.note if record else "",
    }


def _range(name: str, record: Record | None) -> str:
    if record is None or record.low is None or record.high is None:
        return ""
    return f"{value_text(name, record.low)} to {value_text(name, record.high)}"
