"""Which criterion of anonymisation every measure of risk speaks to.

The three criteria are those of Opinion 05/2014 of the Article 29 Working Party (WP216), which
ISO/IEC 27559 names as well.
"""

from __future__ import annotations

from typing import Final

CRITERIA: Final = ("singling out", "linkability", "inference")

RISK_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "intruder_error": ("inference",),
    "intruder_matched": ("linkability",),
    "uniqueness": ("singling out",),
    "reappearing_uniques": ("singling out",),
    "reappearing_as_unique": ("singling out",),
    "reappearing_histories": ("singling out", "linkability"),
    "reiter_risk": ("singling out", "linkability"),
    "reiter_true_match_rate": ("linkability",),
    "reiter_false_match_rate": ("linkability",),
    "recognition": ("linkability",),
    "membership_auc": ("inference",),
    "membership_advantage": ("inference",),
    "k_anonymity_violations": ("singling out",),
    "l_diversity_violations": ("inference",),
}
