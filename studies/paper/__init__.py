"""The paper's study, and risk-utility maps of any methods on any table.

`risk_utility_map` maps any risk against any utility over methods, budgets and repeats.
`run_study` draws, measures and judges everything that the paper reports; `StudySize` says
how much work that is.
"""

from studies.paper.paper_study import Study, run_study
from studies.paper.ru_map import RiskUtilityMap, risk_utility_map
from studies.paper.size import FULL, QUICK, StudySize

__all__ = [
    "FULL",
    "QUICK",
    "RiskUtilityMap",
    "Study",
    "StudySize",
    "risk_utility_map",
    "run_study",
]
