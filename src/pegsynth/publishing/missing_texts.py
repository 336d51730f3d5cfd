"""Which texts of the original mean "missing", and what became of them."""

from __future__ import annotations

from pegsynth.schema import Schema

_SHOWN = 8


def blanks(schema: Schema) -> str:
    """Say which texts that mean "missing" became blank cells, and which were kept."""
    lines = []
    for feature in schema.features:
        texts = [text for text in feature.missing if text.strip()]
        if not texts:
            continue
        names = ", ".join(f"`{text}`" for text in texts[:_SHOWN])
        more = f" and {len(texts) - _SHOWN} others" if len(texts) > _SHOWN else ""
        kept = "kept as it was" if feature.keep_missing_codes else "blank in the tables here"
        mean = "means" if len(texts) == 1 else "mean"
        lines.append(f"- {feature.name}: {names}{more} {mean} that a value is missing; {kept}.")
    return "\n".join(("## Missing values", "", *lines)) if lines else ""
