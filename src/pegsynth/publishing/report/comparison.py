"""Releases side by side: their promises, figures and verdicts, and risk against utility.

Goes in: saved metrics of several releases of one table. Comes out: tables, figures and a page. It
computes nothing; all of it is made from real data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegsynth.evaluation.records import Metrics, Record, headline
from pegsynth.publishing.report.figure import Figure, Table, table_of
from pegsynth.publishing.report.html import Section, render_study
from pegsynth.publishing.report.measures import (
    figure_text,
    in_percent,
    measure,
    range_text,
    titled_form,
)
from pegsynth.publishing.report.risk_figures import map_point, risk_map
from pegsynth.publishing.report.verdict import by_kind, titled_kind, verdict
from pegsynth.publishing.report.wording import Lookup, guarantee_headline, short

TITLE = "Releases side by side"
WARNING = "Made from real data. Not for release."
_UTILITY = "tvd2_weighted"
_MAPPED = ("membership_auc", "intruder_error", "reappearing_uniques", "uniqueness")
_CHOICE = (
    "Whoever chooses a release by these figures has looked at the original through all of them: "
    "their guarantees add up, those that are thrown away included."
)


@dataclass(frozen=True)
class Compared:
    """One release.

    Parameters
    ----------
    name
        What it is called here.
    metrics
        Its saved figures.
    guarantee
        The ``guarantee`` of its ledger; None where it has none.
    """

    name: str
    metrics: Metrics
    guarantee: Mapping[str, Any] | None = None

    @property
    def found(self) -> Lookup:
        """Its records, to be looked up."""
        return Lookup(self.metrics)


def comparison_tables(releases: Sequence[Compared]) -> list[Table]:
    """Return promises, faults and headline figures, a column for each release."""
    names = [each.name for each in releases]
    found = [each.found for each in releases]
    promises = [
        ("Guarantee", *(_promise(each) for each in releases)),
        ("Rows", *(_rows(each) for each in found)),
    ]
    kinds = dict.fromkeys(kind for each in found for kind in by_kind(each))
    faults = [
        (titled_kind(kind), *(f"{len(by_kind(each).get(kind, ())):,}" for each in found))
        for kind in kinds
    ]
    measures = dict.fromkeys(name for each in releases for name in each.metrics.summary)
    chosen = [worst for name in measures if (worst := _strongest(found, name)) is not None]
    figures = {
        group: [
            (titled_form(worst), *(_figure(each, worst) for each in found), worst.better)
            for worst in chosen
            if measure(worst.name).group == group
        ]
        for group in ("utility", "risk")
    }
    columns = ("Measure", *names, "Better")
    return [
        table_of(("Release", *names), promises, caption="What is promised"),
        table_of(("Fault", *names), faults, caption="What is off, number of faults of each kind"),
        table_of(columns, figures["utility"], caption="Utility"),
        table_of(columns, figures["risk"], caption="Risk, every attack in its strongest form"),
    ]


def comparison_figures(releases: Sequence[Compared]) -> list[Figure]:
    """Draw the releases on maps of risk and utility."""
    found = [each.found for each in releases]
    figures = []
    for name in _MAPPED:
        worst = _strongest(found, name)
        if worst is None:
            continue
        pairs = [
            (each.record(_UTILITY) or each.record("tvd2"), each.record(name, worst.subject))
            for each in found
        ]
        points = [
            map_point(release.name, *pair) | {"label": short(release.name)}
            for release, pair in zip(releases, pairs, strict=True)
            if all(record is not None and record.value is not None for record in pair)
        ]
        if len(points) > 1:
            figures.append(
                risk_map(
                    f"map-{name.replace('_', '-')}",
                    worst,
                    points,
                    named={"Release": "series"},
                    x_title=measure(_UTILITY).title,
                    order=[point["series"] for point in points],
                )
            )
    return figures


def render_comparison(releases: Sequence[Compared]) -> str:
    """Write the page."""
    promises, faults, utility, risk = comparison_tables(releases)
    said = [(each.name, verdict(each.found)) for each in releases]
    return render_study(
        TITLE,
        (
            Section("Promises", (_CHOICE,), tables=(promises,)),
            Section(
                "Verdicts",
                tuple(f"{name}: {words['utility']} {words['risk']}" for name, words in said),
                tables=(faults,) if faults.rows else (),
            ),
            Section(
                "Risk and utility on one map",
                figures=tuple(comparison_figures(releases)),
                narrow=True,
            ),
            Section("Figures", tables=(utility, risk)),
        ),
        warning=WARNING,
    )


def _promise(release: Compared) -> str:
    if release.guarantee is None:
        return "no ledger"
    return guarantee_headline(release.guarantee).removesuffix(", for the whole release")


def _rows(found: Lookup) -> str:
    record = found.record("tvd1")
    return f"{record.n:,}" if record is not None and record.n else "n/a"


def _strongest(found: Sequence[Lookup], name: str) -> Record | None:
    """Return the form of a measure that is worst in any release; all are compared in it."""
    forms = [record for each in found if (record := each.headline(name)) is not None]
    return headline(forms, name)


def _figure(found: Lookup, form: Record) -> str:
    record = found.record(form.name, form.subject)
    value = None if record is None else record.value
    as_percent = in_percent(form.name, record)
    text = figure_text(value, as_percent=as_percent)
    ends = range_text(record, as_percent=as_percent)
    return f"{text} ({ends})" if ends and value is not None else text
