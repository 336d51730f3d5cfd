"""Made-up results of a study, from a formula for every method, epsilon and figure."""

from __future__ import annotations

from collections.abc import Callable

from pegsynth.datasets import discharge_schema
from studies.paper.findings import View
from studies.paper.results import Results
from studies.paper.setting import setting_of
from studies.paper.study_design import NO_RESET, RESET, Variant
from studies.paper.work_cells import Cell

SETTING = setting_of(discharge_schema())
VARIANT = Variant("public", "made-up choices")
EPSILONS = (0.1, 1.0, 10.0, 50.0, 100.0)
LENGTHS = (1.0, 100.0)
METHODS = ("pegs", "pegs-rs", "pmi")
UNIQUE = "uniqueness[age.yrs, sex, patzip]"
DISTANCES = (
    "marginal_distance",
    "conditional_distance[* | age.yrs]",
    "conditional_distance[* | patzip]",
)
REGRESSIONS = ("regression_distance[logistic]", "regression_distance[linear]")
ATTACKS = tuple(f"intruder_error[{attack.subject}]" for attack in SETTING.attacks)
COEFFICIENTS = {
    "coefficient[linear :: Intercept]": -10.0,
    "coefficient[linear :: los]": 4.0,
}
NOISE = (-0.004, 0.0, 0.004)
"""Relative deviations of the three repeats."""

Value = Callable[[str, float, str], float]


def view_of(
    value: Value,
    *,
    bootstrap: float = 1.0,
    original_unique: float = 0.1,
    chains: Callable[[str, float], float] = lambda arm, length: 1.0,
) -> View:
    """Results of the paper's methods, each repeat a little off the formula."""
    figures = (*DISTANCES, *REGRESSIONS, *ATTACKS, UNIQUE, *COEFFICIENTS, "alpha")
    cells = {}
    for repeat, noise in enumerate(NOISE):
        for method in METHODS:
            for epsilon in EPSILONS:
                cells[Cell(VARIANT.arm(method), epsilon, repeat)] = {
                    name: value(method, epsilon, name) * (1 + noise) for name in figures
                }
        cells[Cell("bootstrap", None, repeat)] = dict.fromkeys(
            (*ATTACKS, *REGRESSIONS), bootstrap * (1 + noise)
        )
        cells[Cell("fresh", None, repeat)] = dict.fromkeys(ATTACKS, bootstrap * (1 + noise))
        for arm in (RESET, NO_RESET):
            for length in LENGTHS:
                uneven = chains(arm, length) * (1 + noise)
                cells[Cell(arm, length, repeat)] = {
                    f"{name}[{feature}]": uneven if name == "unevenness" else 1 - uneven
                    for feature in SETTING.histograms
                    for name in ("unevenness", "tvd1")
                }
    floors = {UNIQUE: original_unique, **dict.fromkeys(DISTANCES, 0.01)}
    results = Results.of(cells, floors={"main": floors}, coefficients={"main": COEFFICIENTS})
    return View(results, VARIANT, SETTING)
