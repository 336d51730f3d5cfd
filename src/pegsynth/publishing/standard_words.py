"""Sentences that several catalogues ask for, each said once."""

from __future__ import annotations

from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import rows_counted
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.messages import Messages
from pegsynth.publishing.privacy_pages import level_of, named_unit


def described(facts: Facts) -> str:
    """Return what the publisher said of the release, or what is known of it anyway."""
    size = facts.size.replace("`", "")
    return (
        f"{facts.about.description or facts.mark} {size}; {len(facts.schema.features)} features."
    ).strip()


def unit_word(facts: Facts) -> str:
    """Return what is protected, in a word."""
    return named_unit(facts.ledger.guarantee, facts.about, Messages("en"))


def protection(facts: Facts) -> str:
    """Say what protects the people of the original table."""
    guarantee = facts.ledger.guarantee
    if not facts.private:
        return f"{facts.mark} Entropy l-diversity, and no differential privacy."
    delta = f" at delta = {display_up(guarantee.delta)}" if guarantee.delta else ""
    return (
        f"{facts.mark} One {unit_word(facts)} of the original table is protected by differential "
        f"privacy with epsilon = {display_up(guarantee.epsilon or 0.0)}{delta} "
        f"({level_of(guarantee)} by public thresholds); privacy.json lists every event."
    )


def adjacency(facts: Facts) -> str:
    """Say exactly which tables the promise compares."""
    guarantee, unit = facts.ledger.guarantee, unit_word(facts)
    if guarantee.unit == "unit":
        return (
            f"Adjacent tables differ by adding or removing one {unit} with all its rows, of which "
            f"at most {rows_counted(facts.ledger)} count; the limit was enforced when the table "
            "was read."
        )
    return f"Adjacent tables differ by adding or removing one row ({unit})."


def limitations(facts: Facts) -> str:
    """Say what users must not expect."""
    return (
        "Rows are synthetic and may not be linked to people. Small groups carry more noise than "
        "large ones, and relations that no published table holds are not there: QUALITY.json lists "
        "what is held, and how precisely. Standard errors need the rules of HOW-TO-ANALYSE.md."
    )


def maintained(facts: Facts) -> str:
    """Say what is planned, as far as it was stated."""
    about = facts.about
    parts = [
        f"Further releases, as stated: {about.refresh.rstrip('.')}." if about.refresh else "",
        f"To be reviewed by {about.review_date}." if about.review_date else "",
    ]
    return " ".join(part for part in parts if part)
