"""README.md of the public folder: what is in it, who made it, whom to ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import rows_folded
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.messages import Messages
from pegsynth.publishing.missing_texts import blanks
from pegsynth.publishing.privacy_pages import level_of, named_unit
from pegsynth.schema import Schema

_FILES = {
    "README.md": "this page",
    "privacy.json": "every event that touched the original table, and the promise that follows",
    "PRIVACY.md": "the promise in words",
    "HOW-TO-ANALYSE.md": "what the tables are good for, and code",
    "QUALITY.md": "what the tables hold, and what they do not",
    "QUALITY.html": "what the tables hold, and what they do not, as a page for browsers",
    "QUALITY.json": "what the tables hold, and what they do not, for programs",
    "schema.toml": "every column with its categories",
    "croissant.json": "the release for machine-learning catalogues (Croissant)",
    "dcat.jsonld": "the release for data catalogues (DCAT)",
    "dp-registry.yaml": "a record for the registry of differential-privacy deployments",
    "release.intoto.json": "checksums and promise as an in-toto statement (not signed)",
    "SHA256SUMS": "checksums of all files: `sha256sum -c SHA256SUMS`",
}

_NAMED = {"de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese"}


def readme_page(facts: Facts, public: Path, *, more: Sequence[str] = ()) -> str:
    """Return README.md for a folder whose other files, but the checksums and `more`, are there."""
    sections = [
        f"# {facts.title}",
        f"**{facts.mark}**",
        facts.about.description,
        _who(facts),
        _promise(facts),
        _tables(facts),
        _columns(facts.schema),
        blanks(facts.schema),
        _files(public, more),
        _missing(facts),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _who(facts: Facts) -> str:
    about = facts.about
    lines = {
        "Publisher": about.owner,
        "Contact": about.contact,
        "Purpose": about.purpose,
        "Date": facts.date,
        "Licence": about.licence,
        "Address": about.url,
        "Method": facts.method,
        "Made by": facts.programs,
        "Review by": about.review_date,
    }
    stated = [f"| {name} | {text} |" for name, text in lines.items() if text]
    return "\n".join(("| | |", "|---|---|", *stated)) if stated else ""


def _promise(facts: Facts) -> str:
    guarantee = facts.ledger.guarantee
    if guarantee.kind == "none":
        text = "This release carries no privacy guarantee; `PRIVACY.md` says why."
    elif guarantee.kind == "l-diversity":
        text = "This release is l-diverse, and not differentially private; see `PRIVACY.md`."
    else:
        unit = named_unit(guarantee, facts.about, Messages("en"))
        delta = f" at delta = {display_up(guarantee.delta)}" if guarantee.delta else ""
        text = (
            f"One {unit} is protected: differential privacy with epsilon = "
            f"{display_up(guarantee.epsilon or 0.0)}{delta} ({level_of(guarantee)}). `PRIVACY.md` "
            "says what that means, and what is assumed."
        )
    return f"## Promise\n\n{text}"


def _tables(facts: Facts) -> str:
    return (
        f"## Tables\n\n{facts.size}.{_row(facts)} Read `HOW-TO-ANALYSE.md` before you estimate "
        "anything."
    )


def _row(facts: Facts) -> str:
    """Say what one row stands for; where a panel is written wide, that is a unit."""
    panel, about = facts.schema.panel, facts.about
    wide = panel is None and rows_folded(facts.ledger) is not None
    what = about.unit if wide else about.row
    of = f" of `{panel.tables[1]}`" if panel is not None and panel.tables is not None else ""
    return f" One row{of} stands for one {what}." if what else ""


def _columns(schema: Schema) -> str:
    lines = ["## Columns", "", "| column | kind | categories | role |", "|---|---|---|---|"]
    for column in schema.columns:
        if column.role == "identifier":
            continue
        count = str(column.category_count) if column.modelled else ""
        lines.append(f"| {_cell(column.name)} | {column.kind} | {count} | {column.role} |")
    return "\n".join(lines)


def _files(public: Path, more: Sequence[str]) -> str:
    there = (path.name for path in public.iterdir())
    names = sorted({*there, *more, "SHA256SUMS", "README.md"})
    lines = [f"| `{name}` | {what} |" for name in names if (what := _what(name))]
    return "\n".join(("## Files", "", "| file | what it is |", "|---|---|", *lines))


def _what(name: str) -> str:
    if name in _FILES:
        return _FILES[name]
    if name.endswith("-metadata.json"):
        return f"says that `{name.removesuffix('-metadata.json')}` is synthetic"
    if name.startswith("PRIVACY."):
        language = name.split(".")[1]
        return f"the promise in words, in {_NAMED[language]}" if language in _NAMED else ""
    if name.startswith("synthetic-"):
        return "a synthetic table"
    if name.startswith("completed-"):
        return "a completed synthetic table"
    return "a table of noisy counts that was asked for" if name.endswith(".csv") else ""


def _missing(facts: Facts) -> str:
    names = facts.not_stated
    if not names:
        return ""
    return (
        "## Not stated\n\nNobody stated "
        f"{', '.join(names)}. Fields of catalogues that need them are left out."
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")
