"""The page that is printed and signed: what is released, its hashes, who decided and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import rows_counted
from pegsynth.publishing.facts import Facts, sha256
from pegsynth.publishing.folder import CHECKSUMS
from pegsynth.publishing.privacy_pages import SUSPICIONS, Messages, certainty, level_of, named_unit
from pegsynth.publishing.rendering import page

NO_BOOK = "None was named: nothing adds this release to others from the same table."


def sign_off_page(facts: Facts, public: Path, *, book: str = "") -> str:
    """Return the page for a sealed public folder.

    Parameters
    ----------
    book
        Where the run is written down, in words; empty: nowhere.
    """
    guarantee, about = facts.ledger.guarantee, facts.about
    rows = {
        "Release": facts.title,
        "Publisher": about.owner,
        "Contact": about.contact,
        "Purpose": about.purpose,
        "Date": facts.date,
        "Method": facts.method,
        "Made by": facts.programs,
        "Tables": f"{facts.size.replace('`', '')}; {facts.table_format}",
        "Promise": _promise(facts),
        "Why this epsilon": about.why_epsilon,
        "Before the budget": about.preprocessing,
        "Further releases": about.refresh,
        "Budget book": book or NO_BOOK,
        "To be reviewed by": about.review_date,
    }
    odds = (
        [(f"{int(100 * each)} %", certainty(each, guarantee.epsilon)) for each in SUSPICIONS]
        if facts.private and guarantee.epsilon is not None
        else []
    )
    lines = (public / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    return page(
        "sign_off.html.j2",
        title=f"Sign-off: {facts.title}",
        level=level_of(guarantee),
        rows=[(name, text) for name, text in rows.items() if text],
        unit=named_unit(guarantee, about, Messages("en")),
        odds=odds,
        not_covered=facts.ledger.not_covered,
        checks=list(_to_check(facts, booked=bool(book))),
        hashes=[tuple(line.split("  ", 1)) for line in lines],
        whole=sha256(public / CHECKSUMS),
        not_stated=", ".join(facts.not_stated),
    )


def _to_check(facts: Facts, *, booked: bool) -> Iterator[str]:
    """Yield what is to be ticked before anybody signs."""
    if facts.schema.reviewed:
        by = facts.schema.reviewer
        who = f"who reviewed it ({by})" if by else "who reviewed it"
        yield f"The schema holds public knowledge only, and the person {who} is known."
    else:
        yield "Nobody reviewed the schema: what it lists may be published all the same."
    first = [*facts.drafted, *(["its rules"] if facts.rules_drafted else [])]
    if first:
        yield (
            "What the schema marks as first read off a table is public knowledge from elsewhere: "
            f"{', '.join(first)}."
        )
    yield "The assumptions in PRIVACY.md are true."
    if facts.private:
        yield (
            "Earlier releases from the same table are in the budget book, and the sum is "
            "acceptable."
            if booked
            else "Earlier releases from the same table are added up, and the sum is acceptable."
        )
        yield (
            "The epsilon was chosen before the internal report was read, or all tries are counted."
        )
    yield "Nothing of internal/ leaves the house."
    purpose = "the purpose above" if facts.about.purpose else "their purpose"
    yield f"The tables are fit for {purpose}, as the internal report shows."


def _promise(facts: Facts) -> str:
    guarantee = facts.ledger.guarantee
    if guarantee.kind == "none":
        return "None. Publishing these tables is a decision without a guarantee."
    if guarantee.kind == "l-diversity":
        return f"Entropy l-diversity, l = {guarantee.l:g}; no differential privacy."
    unit = named_unit(guarantee, facts.about, Messages("en"))
    delta = f", delta = {display_up(guarantee.delta)}" if guarantee.delta else ", delta = 0"
    rows = rows_counted(facts.ledger)
    most = f", with at most {rows} rows" if guarantee.unit == "unit" else ""
    return f"One {unit} is protected{most}: epsilon = {display_up(guarantee.epsilon or 0)}{delta}."
