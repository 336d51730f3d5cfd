"""The page that is printed and signed: what is released, its hashes, who decided and when."""

from __future__ import annotations

from pathlib import Path

from pegsynth.privacy.statement import rows_counted
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.folder import CHECKSUMS, sha256
from pegsynth.publishing.privacy_pages import SUSPICIONS, Messages, certainty, level_of, named_unit
from pegsynth.publishing.rendering import page


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
