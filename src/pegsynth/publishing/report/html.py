"""Templates: what every page shares, and the study's page made of sections.

The internal report: one HTML page from saved metrics.

Goes in: `Metrics`, the privacy statement and the guarantee. Comes out: a page that opens
offline, runs no script and fetches nothing. Every text that may stem from a file is
escaped, by the template engine or where a figure is cleaned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.privacy.statement import level
from pegsynth.publishing.rendering import page
from pegsynth.publishing.report import measures
from pegsynth.publishing.report.drawing import save_drawing
from pegsynth.publishing.report.features import (
    feature_cards,
    feature_figures,
    pair_figures,
    worst,
)
from pegsynth.publishing.report.figure import Figure, Table, table_of
from pegsynth.publishing.report.number_figures import (
    number_figures,
    number_tables,
    regression_figures,
)
from pegsynth.publishing.report.risk_figures import risk_figures, risk_maps
from pegsynth.publishing.report.score_card import front_figures, score_card
from pegsynth.publishing.report.verdict import by_kind, rules_of, titled_kind, verdict
from pegsynth.publishing.report.wording import (
    Lookup,
    guarantee_facts,
    guarantee_headline,
    paragraphs,
    short,
)

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics


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
    return page("study.html.j2", title=title, warning=warning, sections=sections)


def figures(metrics: Metrics) -> list[Figure]:
    """List every figure of the report, in its order."""
    found = Lookup(metrics)
    return [
        *feature_figures(found),
        *number_figures(found),
        *pair_figures(found),
        *regression_figures(found),
        *risk_figures(found),
        *risk_maps(found),
    ]


def write_figures(metrics: Metrics, folder: str | Path) -> list[Path]:
    """Write every figure as SVG, and as PNG where the extra ``figures`` is installed.

    Parameters
    ----------
    metrics
        Saved results. The figures are made from real data: only the owner may read them.
    folder
        Where to write; it is made when missing.

    Raises
    ------
    OutputError
        The folder cannot be made or written to.
    """
    from pegsynth.tables.atomic import output_error

    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(target, error) from None
    written: list[Path] = []
    for figure in figures(metrics):
        written += save_drawing(figure.drawn(), target / figure.name, mode=0o600)
    return written


WORST_SHOWN = 10
MOST_LISTED = 60
_SCALE = 1.2
NO_LEDGER = "No ledger was given: nothing is known about a guarantee"


def render(
    metrics: Metrics,
    *,
    statement: str = "",
    guarantee: Mapping[str, Any] | None = None,
    title: str = "Original and synthetic table side by side",
    header: Sequence[tuple[str, str]] = (),
) -> str:
    """Write the report.

    Parameters
    ----------
    metrics
        Saved results.
    statement
        The ledger in words; blank lines part paragraphs, lines that start with "- " are
        items of a list.
    guarantee
        The ``guarantee`` of ``privacy.json``; None (or empty, without a statement) when no
        ledger was given.
    title
        Heading of the page.
    header
        What the release is, by whom and of when: names and texts.

    Returns
    -------
    str
        A self-contained HTML document.
    """
    found = Lookup(metrics)
    unknown = not guarantee and not statement.strip()
    promised = dict(guarantee or {})
    return page(
        "report.html.j2",
        title=title,
        header=list(header),
        level=level(
            str(promised.get("kind", "none")), promised.get("epsilon"), promised.get("delta")
        ),
        statement=paragraphs(statement),
        kind=str(promised.get("kind", "none")),
        adds_up=unknown or promised.get("kind") in ("pure", "approximate"),
        headline=NO_LEDGER if unknown else guarantee_headline(promised),
        facts=guarantee_facts(promised),
        faults=[
            (measures.measure(record.name).title, record.subject, measures.reason_of(record))
            for record in metrics.records
            if record.name in measures.FAULTS
        ],
        deeds=_deeds(found),
        scores=score_card(found),
        front=front_figures(found),
        verdict=verdict(found),
        rules=rules_of(found),
        summary=list(metrics.summary),
        say=measures,
        found=found,
        features=feature_cards(found),
        pair_figures=pair_figures(found),
        pairs=worst(found, "tvd2", WORST_SHOWN),
        conditionals=worst(found, "conditional_distance", WORST_SHOWN),
        numbers=number_figures(found),
        number_tables=number_tables(found),
        off={titled_kind(kind): records for kind, records in by_kind(found).items()},
        most_listed=MOST_LISTED,
        drafts=found.subjects("drafted_rule"),
        regressions=regression_figures(found),
        risks=risk_figures(found),
        maps=risk_maps(found),
        scale=_SCALE,
        missing=measures.missing_entries(found),
    )


def _deeds(found: Lookup) -> Table | None:
    """Tabulate what was done to the original before it was counted."""
    names = (
        *("cap_rows", "cap_units", "rows_compared"),
        *("values_bounded", "values_unlisted", "values_recoded"),
    )
    records = [record for name in names for record in found.named(name)]
    effects = [each for each in found.subjects("cap_effect") if each.value is not None]
    records += sorted(effects, key=lambda each: -(each.value or 0.0))
    if not records:
        return None
    return table_of(
        ("Deed", "Feature", "Share", "What it is"),
        [
            (
                measures.measure(each.name).title,
                short(each.subject) if each.subject else "all rows",
                measures.figure_text(each.value, as_percent=True),
                each.note,
            )
            for each in records
        ],
        caption="What was done to the original before it was counted",
    )
