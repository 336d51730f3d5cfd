"""The papers of a release folder: what is written before the tables, and what after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pegsynth.publishing import catalogues as attestation
from pegsynth.publishing.catalogues import croissant, write_sidecars
from pegsynth.publishing.dcat import dcat
from pegsynth.publishing.dp_registry import dp_registry
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.privacy_pages import LANGUAGES, privacy_page
from pegsynth.publishing.readme_page import readme_page
from pegsynth.publishing.texts import how_to_analyse
from pegsynth.tables.atomic import atomic_text


def write_privacy(public: Path, facts: Facts) -> None:
    """Write PRIVACY.md, and one more for every language that was asked for."""
    for language in (LANGUAGES[0], *facts.papers.languages):
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


def marks_of(facts: Facts) -> dict[str, str]:
    """Return what a file of a table says of itself."""
    synthetic = "false" if facts.resampled else "true"
    return {"synthetic": synthetic, "description": facts.mark, "title": facts.title}


def header_of(facts: Facts) -> list[tuple[str, str]]:
    """Return what the internal report says of the release in its header."""
    lines = (
        ("Release", facts.about.title),
        ("Publisher", facts.about.owner),
        ("Method", facts.method),
        ("Date", facts.date),
        ("Made by", facts.programs),
    )
    return [(name, text) for name, text in lines if text]
