"""``dp-registry.yaml``: a record for the registry of differential-privacy deployments (OpenDP).

Filled from the ledger and from ``about.toml``. What nobody stated is left out and named in a
comment, and the record says of which tier it is then. Without differential privacy there is none.
Texts are double-quoted as in JSON, which YAML reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pegsynth.privacy import NoisyCounts, NoisyResiduals, NoisySums, Selection
from pegsynth.privacy.draw_events import DRAWS, ImputationDraws
from pegsynth.privacy.events import CategoriesFound, PooledRows, Unspent
from pegsynth.privacy.recorded import total
from pegsynth.privacy.rounding import float_up
from pegsynth.privacy.statement import rows_counted
from pegsynth.publishing.catalogues import described, limitations, unit_word
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.rendering import page

NEEDED: Final = ("region", "owner", "owner_type", "purpose")
_SECOND: Final = ("row",)
_THIRD: Final = ("why_epsilon", "preprocessing", "refresh")


def dp_registry(facts: Facts) -> str:
    """Return the record as YAML, with a comment on what is missing."""
    events, guarantee = facts.ledger.events, facts.ledger.guarantee
    unspent = any(isinstance(event, Unspent) for event in events)
    pure = total("pure", events, rows_per_unit=guarantee.rows_per_unit)
    return page(
        "dp_registry.yaml.j2",
        facts=facts,
        missing=[*_absent(facts, NEEDED), *([] if facts.date else ["date"])],
        left_out=_absent(facts, (*_SECOND, *_THIRD)),
        slug=_slug(f"{facts.title} {facts.about.owner} {facts.date[:4]}"),
        described=described(facts),
        unit=unit_word(facts),
        rows=rows_counted(facts.ledger),
        limitations=limitations(facts),
        mechanisms=list(dict.fromkeys(_named(facts))),
        fitted=any(isinstance(event, ImputationDraws) for event in events),
        adds_up=pure is not None and float_up(pure) == guarantee.epsilon,
        left=", what was left unspent included" if unspent else "",
        tier=tier_of(facts),
    )


def tier_of(facts: Facts) -> int:
    """Return how complete the record is, in the registry's own counting."""
    if _absent(facts, NEEDED) or _absent(facts, _SECOND):
        return 1
    return 2 if _absent(facts, _THIRD) else 3


def _absent(facts: Facts, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not getattr(facts.about, name)]


_NOISE: Final = {
    NoisyCounts: "counts",
    NoisyResiduals: "residuals of counts",
    NoisySums: "sums of clipped values",
}
_OTHERS: Final = {
    Selection: "choices by the exponential mechanism",
    CategoriesFound: "categories found by noisy counts above a threshold",
    ImputationDraws: "draws from fitted models mixed with virtual rows (bounded range)",
}


def _named(facts: Facts) -> Iterator[str]:
    for recorded in facts.ledger.events:
        event = recorded.step if isinstance(recorded, PooledRows) else recorded
        if isinstance(event, NoisyCounts | NoisyResiduals | NoisySums):
            law = "Laplace" if event.mechanism == "discrete-laplace" else "Gaussian"
            yield f"discrete {law} noise on {_NOISE[type(event)]}"
        elif type(event) in _OTHERS:
            yield _OTHERS[type(event)]
        elif isinstance(event, DRAWS):
            yield "draws from counts with virtual rows (bounded range)"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
