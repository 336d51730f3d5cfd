"""The papers of a release folder: what is written before the tables, and what after.

README.md says what is in the public folder, who made it, whom to ask. The sign-off page is printed
and signed: what is released, its hashes, who decided and when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pegsynth.privacy.guesses import gain_of_ledger
from pegsynth.privacy.statement import rows_counted, rows_folded
from pegsynth.publishing import catalogues as attestation
from pegsynth.publishing.catalogues import croissant, dcat, dp_registry, write_sidecars
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.folder import CHECKSUMS, sha256
from pegsynth.publishing.how_to_analyse import how_to_analyse
from pegsynth.publishing.privacy_pages import (
    LANGUAGES,
    SUSPICIONS,
    Messages,
    certainty,
    level_of,
    named_unit,
    privacy_page,
)
from pegsynth.publishing.quality import quality_fields, write_quality
from pegsynth.publishing.rendering import markdown, page
from pegsynth.schema.toml import dumps
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.atomic import atomic_text

_FILES = {
    "README.md": "this page",
    "privacy.json": "every event that touched the original table, and what follows from it",
    "PRIVACY.md": "what is promised, in words",
    "HOW-TO-ANALYSE.md": "what the tables are good for, and code",
    "QUALITY.md": "what the tables can be trusted for",
    "QUALITY.html": "what the tables can be trusted for, as a page for browsers",
    "QUALITY.json": "what the tables can be trusted for, for programs",
    "schema.toml": "the schema: every feature with its categories or bins",
    "croissant.json": "the release for machine-learning catalogues (Croissant)",
    "dcat.jsonld": "the release for data catalogues (DCAT)",
    "dp-registry.yaml": "a record for the registry of differential-privacy deployments",
    "release.intoto.json": "checksums and promise as an in-toto statement (not signed)",
    "SHA256SUMS": "checksums of all files: `sha256sum -c SHA256SUMS`",
}

_NAMED = {"de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese"}


def write_texts(public: Path, facts: Facts) -> None:
    """Write ledger, promise, schema and quality statement; the ledger comes first."""
    atomic_text(public / "privacy.json", facts.ledger.to_json())
    write_privacy(public, facts)
    atomic_text(public / "schema.toml", dumps(facts.schema))
    if facts.ledger.guarantee.kind != "none":
        # What was measured of a panel are features of the folded table (R24).
        measured = facts.counted or wide_schema(facts.schema)
        write_quality(public, quality_fields(measured, facts.ledger, published=facts.schema))


def write_privacy(public: Path, facts: Facts) -> None:
    """Write PRIVACY.md, and one more for every language that was asked for."""
    for language in (LANGUAGES[0], *facts.languages):
        name = "PRIVACY.md" if language == LANGUAGES[0] else f"PRIVACY.{language}.md"
        page = privacy_page(
            facts.ledger,
            about=facts.about,
            date=facts.date,
            policy=facts.policy,
            language=language,
        )
        atomic_text(public / name, page)


def finish_papers(public: Path, facts: Facts) -> None:
    """Write what describes the finished tables; the checksums come after it."""
    atomic_text(public / "HOW-TO-ANALYSE.md", how_to_analyse(facts))
    write_sidecars(public, facts)
    promised = facts.ledger.guarantee.kind != "none"
    if promised:
        _write_json(public / "croissant.json", croissant(facts, public))
        _write_json(public / "dcat.jsonld", dcat(facts, public))
    if facts.private:
        atomic_text(public / "dp-registry.yaml", dp_registry(facts))
    last = (attestation.NAME,) if promised else ()
    atomic_text(public / "README.md", readme_page(facts, public, more=last))
    if promised:
        _write_json(public / attestation.NAME, attestation.attestation(facts, public))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    atomic_text(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def readme_page(facts: Facts, public: Path, *, more: Sequence[str] = ()) -> str:
    """Return README.md for a folder whose other files, but the checksums and `more`, are there."""
    guarantee, panel = facts.ledger.guarantee, facts.schema.panel
    # Of a panel that is written wide, a row is a unit.
    folded = panel is None and rows_folded(facts.ledger) is not None
    kinds = ("",) if panel is None or panel.tables is None else panel.tables
    names = sorted({*(path.name for path in public.iterdir()), *more, "SHA256SUMS", "README.md"})
    return markdown(
        "readme.md.j2",
        facts=facts,
        guarantee=guarantee,
        unit=named_unit(guarantee, facts.about, Messages("en")),
        level=level_of(guarantee),
        gain=gain_of_ledger(facts.ledger),
        row=facts.about.unit if folded else facts.about.row,
        tables=[
            (kind, list(_columns(facts, table)))
            for kind, table in zip(kinds, facts.tables(), strict=False)
        ],
        files=[(name, what) for name in names if (what := _what(facts, name))],
    )


def _columns(facts: Facts, table: str) -> Iterator[tuple[str, ...]]:
    """Yield name, label, kind, number of categories and role of the columns of a table."""
    weights = facts.weight_columns
    for column, feature in facts.described(table):
        if column in weights:
            yield column, "", "weight" if column == weights[0] else "replicate weight", "", ""
        elif feature is None:
            yield column, "", "number of the unit", "", ""
        elif feature.label_of is not None:
            yield column, feature.label, f"text for {feature.label_of}", "", feature.role
        else:
            count = str(feature.category_count)
            yield column, feature.label, feature.kind, count, feature.role


def _what(facts: Facts, name: str) -> str:
    if name in _FILES:
        return _FILES[name]
    if name.endswith("-metadata.json"):
        return f"what `{name.removesuffix('-metadata.json')}` is"
    if name.startswith("PRIVACY."):
        language = name.split(".")[1]
        return f"{_FILES['PRIVACY.md']}, in {_NAMED[language]}" if language in _NAMED else ""
    if name.startswith("synthetic-"):
        weights = "replicate weights of the rows of the table, which give intervals"
        return weights if name == facts.weight_file else f"a {facts.kind_of_data} table"
    if name.startswith("completed-"):
        return "a synthetic table whose missing values were imputed"
    return "a table of noisy counts that was requested" if name.endswith(".csv") else ""


def sign_off_page(facts: Facts, public: Path, *, book: str = "") -> str:
    """Return the page for a sealed public folder.

    Parameters
    ----------
    book
        Where the run is written down, in words; empty: nowhere.
    """
    guarantee = facts.ledger.guarantee
    epsilon = guarantee.epsilon if facts.private else None
    lines = (public / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    return page(
        "sign_off.html.j2",
        title=f"Sign-off: {facts.title}",
        facts=facts,
        level=level_of(guarantee),
        unit=named_unit(guarantee, facts.about, Messages("en")),
        rows=rows_counted(facts.ledger),
        book=book,
        odds=[
            (f"{int(100 * each)} %", certainty(each, epsilon))
            for each in SUSPICIONS
            if epsilon is not None
        ],
        hashes=[tuple(line.split("  ", 1)) for line in lines],
        whole=sha256(public / CHECKSUMS),
    )
