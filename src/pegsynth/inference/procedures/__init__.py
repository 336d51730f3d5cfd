"""Procedures that analysts use, on tables with replicate weights (R28).

`replicated` takes a formula, one of the statistics below, or any function of a table and weights,
computes it with the weights of a table and with each of its replicates, and returns estimates with
their covariance matrix.

Statistics
    `means`, `shares`, `quantiles`: of a column, by groups if wanted.
    `kaplan_meier`, `hazards`: of times to an event.
    `rates`: events by exposure.
Tests
    `rao_scott`: whether two columns have to do with each other.
    `anova`: terms of a model, or nested models.
Tables
    `person_periods`: a row for every period that somebody was at risk, for hazard regressions.
"""

from pegsynth.inference.pooled_result import Pooled, WaldTest, anova
from pegsynth.inference.procedures.replicating import replicated
from pegsynth.inference.procedures.survival import hazards, kaplan_meier, person_periods, rao_scott
from pegsynth.inference.procedures.weighted_statistics import (
    Statistic,
    means,
    quantiles,
    rates,
    shares,
)

__all__ = [
    "Pooled",
    "Statistic",
    "WaldTest",
    "anova",
    "hazards",
    "kaplan_meier",
    "means",
    "person_periods",
    "quantiles",
    "rao_scott",
    "rates",
    "replicated",
    "shares",
]
