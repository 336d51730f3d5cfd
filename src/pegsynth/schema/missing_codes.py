"""What "missing" is: one category, or one for every text that means it.

Files of offices tell reasons apart: -8 for "refused", -9 for "does not know". A feature with
`keep_missing_codes` has a category for each, and writes them as they were; otherwise all are
one category, written as a null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature

MISSING_LABEL = "(missing)"
UNKNOWN_LABEL = "(other)"


def missing_count(feature: Feature) -> int:
    """Return how many categories mean that a value is missing."""
    return len(feature.missing) if feature.keep_missing_codes else bool(feature.missing)


def missing_codes(feature: Feature) -> range:
    """Return all codes that mean that a value is missing."""
    return range(feature.category_count - missing_count(feature), feature.category_count)


def missing_code_of(feature: Feature, text: str) -> int | None:
    """Return the code of a text that means missing; None if it has none.

    Where codes are kept apart, a null is the empty text, and has no code unless that is listed.
    """
    codes = missing_codes(feature)
    if not feature.keep_missing_codes:
        return codes[0] if codes else None
    return codes[feature.missing.index(text)] if text in feature.missing else None


def missing_labels(feature: Feature) -> list[str]:
    """Return the names of these codes, in order; a code alone could be the name of a bin."""
    if feature.keep_missing_codes:
        return [f"(missing: {text})" if text.strip() else MISSING_LABEL for text in feature.missing]
    return [MISSING_LABEL] if feature.missing else []


def kept_codes(feature: Feature) -> dict[int, str]:
    """Return the codes that are written as the texts they were, with these texts."""
    if not feature.keep_missing_codes:
        return {}
    pairs = zip(missing_codes(feature), feature.missing, strict=True)
    return {code: text for code, text in pairs if text.strip()}
