"""Verification with a budget: whether an analysis of the original agrees with a release (R32)."""

from pegsynth.verification.agreement import Agreement, agreement_event, measured
from pegsynth.verification.asked_rows import Rows, read_rows
from pegsynth.verification.regions import Asked, Region, regions_of
from pegsynth.verification.verified import Verification, VerifiedTerm

__all__ = [
    "Agreement",
    "Asked",
    "Region",
    "Rows",
    "Verification",
    "VerifiedTerm",
    "agreement_event",
    "measured",
    "read_rows",
    "regions_of",
]
