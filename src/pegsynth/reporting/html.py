"""The internal report: one HTML page from saved metrics.

Goes in: `Metrics`, the privacy statement and the guarantee. Comes out: a page that opens
offline, runs no script and fetches nothing. Every text that may stem from a file is
escaped, by the template engine or where a figure is cleaned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegsynth.privacy.promise_levels import level
from pegsynth.reporting.features import feature_cards
from pegsynth.reporting.figure import Figure, Table, drawn, table_of
from pegsynth.reporting.lookup import Lookup
from pegsynth.reporting.measures import (
    FAULTS,
    figure_text,
    in_percent,
    measure,
    range_text,
    reference_of,
)
from pegsynth.reporting.missing import missing_entries, reason_of
from pegsynth.reporting.number_figures import number_figures, number_tables
from pegsynth.reporting.page import page
from pegsynth.reporting.pair_figures import pair_figures, worst
from pegsynth.reporting.regression_figures import regression_figures
from pegsynth.reporting.risk_figures import risk_figures, risk_maps
from pegsynth.reporting.verdict import by_kind, rules_of, titled_kind, verdict
from pegsynth.reporting.wording import guarantee_facts, guarantee_headline, paragraphs, short

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics, Record

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
    points: Sequence[Mapping[str, Any]] = (),
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
    points
        More points for the first map of risk and utility, as `risk_maps` takes them.
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
        faults=_listed(
            [
                (measure(record.name).title, record.subject, reason_of(record))
                for record in metrics.records
                if record.name in FAULTS
            ]
        ),
        deeds=_deeds(found),
        verdict=verdict(found),
        rules=rules_of(found),
        summaries=_summaries(found),
        features=feature_cards(found),
        pair_figures=_drawings(pair_figures(found)),
        pairs=worst(found, "tvd2", WORST_SHOWN),
        conditionals=worst(found, "conditional_distance", WORST_SHOWN),
        numbers=_drawings(number_figures(found)),
        number_tables=number_tables(found),
        off=_off(found),
        drafts=_drafts(found),
        regressions=_drawings(regression_figures(found)),
        risks=_drawings(risk_figures(found)),
        maps=_drawings(risk_maps(found, points)),
        missing=_listed(missing_entries(found)),
    )


def _drawings(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    return [drawn(figure, scale=_SCALE) for figure in figures]


def _summaries(found: Lookup) -> list[dict[str, Any]]:
    groups = (("utility", "Utility"), ("risk", "Risk"))
    return [
        {
            "name": group,
            "caption": caption,
            "rows": [
                _summary_row(found, name, value)
                for name, value in found.metrics.summary.items()
                if measure(name).group == group
            ],
        }
        for group, caption in groups
    ]


def _summary_row(found: Lookup, name: str, value: float | None) -> dict[str, Any]:
    record = found.headline(name)
    words = measure(name)
    as_percent = in_percent(name, record)
    return {
        "title": words.title,
        "name": name,
        "meaning": _meaning(words.meaning, record),
        "value": figure_text(value, as_percent=as_percent),
        "range": range_text(record, as_percent=as_percent),
        "baseline": figure_text(record.baseline if record else None, as_percent=as_percent),
        "reference": reference_of(found, record) if record else "",
        "better": record.better if record else "",
        "note": "; ".join(filter(None, (record.note, record.no_power))) if record else "",
        "n": record.n if record else 0,
        "reason": reason_of(record) if value is None else "",
    }


def _meaning(words: str, record: Record | None) -> str:
    """Say what a measure means; of one that was taken in several forms, which is shown."""
    if record is None or not record.subject:
        return words
    return f"{words}; shown: {short(record.subject)}" if words else short(record.subject)


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
                measure(each.name).title,
                short(each.subject) if each.subject else "all rows",
                figure_text(each.value, as_percent=True),
                each.note,
            )
            for each in records
        ],
        caption="What was done to the original before it was counted",
    )


def _off(found: Lookup) -> list[dict[str, Any]]:
    """List all that is off, kind by kind, the worst of each first."""
    return [
        {
            "title": titled_kind(kind),
            "words": [each.note for each in records[:MOST_LISTED]],
            "more": max(0, len(records) - MOST_LISTED),
        }
        for kind, records in by_kind(found).items()
    ]


def _drafts(found: Lookup) -> list[dict[str, str]]:
    """List drafts of rules against rows that cannot be."""
    return [
        {"text": record.note.strip(), "rows": f"{record.value or 0:,.0f}"}
        for record in found.subjects("drafted_rule")
    ]


def _listed(entries: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    rows = [
        {"title": title, "subject": short(subject) if subject else "", "reason": reason}
        for title, subject, reason in entries[:MOST_LISTED]
    ]
    return {"rows": rows, "more": len(entries) - len(rows)}
