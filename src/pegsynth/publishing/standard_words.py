"""Sentences that several catalogues ask for, each said once."""

from __future__ import annotations

from pegsynth.inference.choice import from_released_blocks, replicates_of, without_intervals
from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import rows_counted
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.messages import Messages
from pegsynth.publishing.privacy_pages import level_of, named_unit


def described(facts: Facts) -> str:
    """Return what the publisher said of the release, or what is known of it anyway."""
    size, count = facts.size.replace("`", ""), len(facts.schema.features)
    features = "1 feature" if count == 1 else f"{count} features"
    return f"{facts.about.description or facts.mark} {size}; {features}.".strip()


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
    named = f" ({unit})" if facts.about.row else ""
    return f"Adjacent tables differ by adding or removing one row{named}."


def limitations(facts: Facts) -> str:
    """Say what users must not expect."""
    said = ["Rows are synthetic and may not be linked to people."]
    if from_released_blocks(facts.ledger):
        said.append(
            "Small groups carry more noise than large ones, and relations that no published table "
            "supports are not there: QUALITY.json lists what is supported, and how precisely."
        )
    else:
        said.append(
            "Virtual rows pull the tables towards a prior distribution, small groups the most."
        )
    several = facts.datasets > 1 and not without_intervals(facts.ledger)
    intervals = several or replicates_of(facts.ledger) is not None
    said.append(
        "Standard errors need the rules of HOW-TO-ANALYSE.md."
        if intervals
        else "No standard errors can be estimated from them: see HOW-TO-ANALYSE.md."
    )
    return " ".join(said)


def maintained(facts: Facts) -> str:
    """Say what is planned, as far as it was stated."""
    about = facts.about
    parts = [
        f"Further releases, as stated: {about.refresh.rstrip('.')}." if about.refresh else "",
        f"To be reviewed by {about.review_date}." if about.review_date else "",
    ]
    return " ".join(part for part in parts if part)
