"""The study's folder: findings, tables, figures, results and a page.

Every file appears whole or not at all. Of a user's own table everything is confidential:
files are readable by their owner only, and say so.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegsynth.publishing.report.drawing import save_drawing
from pegsynth.publishing.report.figure import Table, table_of
from pegsynth.publishing.report.html import Section, render_study
from pegsynth.tables.atomic import atomic_text, output_error
from pegsynth.tables.csv_read import protect
from studies.paper.album import Drawing
from studies.paper.checks import RULE
from studies.paper.conclude import Conclusion, tally
from studies.paper.results import Results

FORMAT = 1
INTERNAL = (
    "CONFIDENTIAL: made from the original table of a user. Everything here tells something about "
    "it that no privacy guarantee covers; keep it inside."
)
INVENTED = "Made from built-in, invented data: nothing here is about a person."
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_MOST_TABLE_ROWS = 60


@dataclass(frozen=True)
class Folder:
    """Where a study is written, and who may read it."""

    path: Path
    confidential: bool

    @property
    def mode(self) -> int | None:
        """Permissions of its files; None leaves them to the umask."""
        return PRIVATE_FILE if self.confidential else None

    @property
    def notice(self) -> str:
        """What a reader must know first."""
        return INTERNAL if self.confidential else INVENTED

    def make(self) -> None:
        """Make the folder and its parts, where they are missing."""
        for path in (self.path, self.path / "tables", self.path / "figures"):
            try:
                path.mkdir(parents=False, exist_ok=True)
                if self.confidential:
                    path.chmod(PRIVATE_FOLDER)
            except OSError as error:
                raise output_error(path, error) from None

    def text(self, name: str, content: str) -> None:
        """Write a text file."""
        atomic_text(self.path / name, content, self.mode)

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows as ``tables/NAME.csv``; columns as they first appear."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(map(protect, columns))
        writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
        self.text(f"tables/{name}.csv", buffer.getvalue())

    def drawing(self, drawing: Drawing) -> None:
        """Write a figure and the rows behind it."""
        stem = self.path / "figures" / drawing.figure.name
        save_drawing(drawing.figure.drawn(), stem, mode=self.mode)
        self.table(drawing.figure.name, drawing.rows)


def results_text(
    results: Results,
    estimates: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Conclusion],
    decisions: Sequence[tuple[str, str]],
    configuration: Mapping[str, Any],
    *,
    notice: str,
) -> str:
    """Write ``results.json``: every figure of every arm and level, and the verdicts."""
    content = {
        "format": FORMAT,
        "notice": notice,
        "configuration": dict(configuration),
        "decisions": dict(decisions),
        "findings": [_finding(each) for each in conclusions],
        "floors": {name: dict(values) for name, values in results.floors.items()},
        "coefficients": {name: dict(values) for name, values in results.coefficients.items()},
        "estimates": list(estimates),
        "not_computed": [
            {"arm": arm, "level": level, "reason": reason}
            for (arm, level), reason in results.reasons().items()
        ],
    }
    return json.dumps(_plain(content), indent=1) + "\n"


def estimate_rows(results: Results) -> list[dict[str, Any]]:
    """Return the mean and interval of every figure of every arm and level."""
    rows = []
    for arm, level in results.repeats:
        for name in results.figures():
            found = results.mean(arm, level, name)
            if found.known:
                rows.append(
                    {
                        "arm": arm,
                        "level": level,
                        "figure": name,
                        "value": found.value,
                        "low": found.low,
                        "high": found.high,
                        "repeats": found.n,
                    }
                )
    return rows


def check_rows(conclusions: Sequence[Conclusion]) -> list[dict[str, Any]]:
    """Return every check of every finding under all choices."""
    return [
        {
            "finding": each.number,
            "choice": outcome.words,
            "part": part.claim,
            "check": check.what,
            "value": check.estimate.value,
            "low": check.estimate.low,
            "high": check.estimate.high,
            "repeats": check.estimate.n,
            "agrees": check.agrees,
        }
        for each in conclusions
        for outcome in (each.main, *each.others)
        for part in outcome.parts
        for check in part.checks
    ]


def page(
    title: str,
    notice: str,
    conclusions: Sequence[Conclusion],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    drawings: Sequence[Drawing],
    decisions: Sequence[tuple[str, str]],
    left_out: Sequence[str],
    *,
    confidential: bool,
) -> str:
    """Write the study as one self-contained page."""
    verdicts = Table(
        ("Finding", "Verdict", "Checks that agree", "Looked into"),
        tuple(
            (
                f"{each.number}. {each.title}",
                each.verdict,
                tally(each.main.parts),
                "".join(each.remarks[:1]),
            )
            for each in conclusions
        ),
        "FINDINGS.md has every check with its interval.",
    )
    first = (*(() if confidential else (notice,)), RULE)
    heading = "Findings of the paper, and what was seen here"
    sections = [Section(heading, first, tables=(verdicts,))]
    headings = dict.fromkeys(drawing.section for drawing in drawings if drawing.section)
    for heading in headings:
        figures = tuple(drawing.figure for drawing in drawings if drawing.section == heading)
        sections.append(Section(heading, figures=figures))
    sections.append(
        Section("Tables", tables=tuple(_page_table(name, rows) for name, rows in tables.items()))
    )
    settled = Table(("What", "How"), tuple(decisions), "Printed with every result.")
    sections.append(Section("What was settled where the paper is silent", tables=(settled,)))
    if left_out:
        sections.append(Section("Left out", tuple(left_out)))
    return render_study(title, sections, warning=notice if confidential else "")


def _page_table(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [[str(_cell(row.get(column))) for column in columns] for row in rows]
    return table_of(columns, lines, caption=name, most=_MOST_TABLE_ROWS)


def _finding(each: Conclusion) -> dict[str, Any]:
    return {
        "number": each.number,
        "title": each.title,
        "verdict": each.verdict,
        "parts": [
            {"claim": part.claim, "agreeing": part.agreeing, "checks": len(part.checks)}
            for part in each.main.parts
        ],
        "other_choices": {outcome.words: outcome.verdict for outcome in each.others},
        "remarks": list(each.remarks),
    }


def _cell(value: Any) -> Any:
    """Return a value as a table holds it: nothing for what is not known, and no formulas."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return protect(value)
    return f"{value:.10g}" if isinstance(value, float) else value


def _plain(value: Any) -> Any:
    """Return content that JSON can hold: what is not known is null."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
