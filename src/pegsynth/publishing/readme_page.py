"""README.md of the public folder: what is in it, who made it, whom to ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import rows_folded
from pegsynth.publishing.facts import Facts, blanks
from pegsynth.publishing.privacy_pages import Messages, level_of, named_unit
from pegsynth.schema import Feature

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


def readme_page(facts: Facts, public: Path, *, more: Sequence[str] = ()) -> str:
    """Return README.md for a folder whose other files, but the checksums and `more`, are there."""
    sections = [
        f"# {facts.title}",
        f"**{facts.mark}**",
        facts.about.description,
        _who(facts),
        _promise(facts),
        _tables(facts),
        *_columns(facts),
        blanks(facts.schema),
        _files(facts, public, more),
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
    row = f" {sentence}" if (sentence := _row(facts)) else ""
    return f"## Tables\n\n{facts.size}.{row} Read `HOW-TO-ANALYSE.md` before you estimate anything."


def _row(facts: Facts) -> str:
    """Say what a row is; of a panel that is written wide, a unit."""
    panel, about = facts.schema.panel, facts.about
    folded = panel is None and rows_folded(facts.ledger) is not None
    what = about.unit if folded else about.row
    if not what:
        return ""
    of = "" if panel is None or panel.tables is None else f" of `{panel.tables[1]}`"
    return f"One row{of} stands for one {what}."


def _columns(facts: Facts) -> Iterator[str]:
    """Yield a section for every kind of table: the columns of its files, in order."""
    panel = facts.schema.panel
    names = [""] if panel is None or panel.tables is None else [f" of {n}" for n in panel.tables]
    for name, table in zip(names, facts.tables(), strict=False):
        lines = [f"## Columns{name}", ""]
        if facts.kept:
            lines += [f"With values of the original rows: {', '.join(facts.kept)}.", ""]
        lines += ["| column | kind | categories or bins | role |", "|---|---|---|---|"]
        for column, feature in facts.described(table):
            cells = " | ".join(map(_cell, (column, *_about(facts, column, feature))))
            lines.append(f"| {cells} |")
        yield "\n".join(lines)


def _about(facts: Facts, column: str, feature: Feature | None) -> tuple[str, str, str]:
    """Return kind, number of categories and role of a column."""
    weights = facts.weight_columns
    if column in weights:
        return "weight" if column == weights[0] else "replicate weight", "", ""
    if feature is None:
        return "number of the unit", "", ""
    if feature.label_of is not None:
        return f"text for {feature.label_of}", "", feature.role
    return feature.kind, str(feature.category_count), feature.role


def _files(facts: Facts, public: Path, more: Sequence[str]) -> str:
    there = (path.name for path in public.iterdir())
    names = sorted({*there, *more, "SHA256SUMS", "README.md"})
    lines = [f"| `{name}` | {what} |" for name in names if (what := _what(facts, name))]
    return "\n".join(("## Files", "", "| file | what it is |", "|---|---|", *lines))


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
