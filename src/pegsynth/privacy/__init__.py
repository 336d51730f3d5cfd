"""What a release costs and what it promises: events, accountants, ledger, budget.

Nothing here sees data. A mechanism records an *event* with its public parameters;
*accountants* read events; the *ledger* states the one claim that follows; a *budget* is
turned into an exact alpha by *calibration*.
"""

from pegsynth.privacy.assumptions import Assumption
from pegsynth.privacy.budget import Allowance, Budget, Shares
from pegsynth.privacy.calibrate import (
    DEFAULT_SCALE,
    alpha_per_row,
    calibrate,
    stated_alpha,
)
from pegsynth.privacy.draw_events import (
    BlockDraws,
    CappedDraws,
    ContingencyDraws,
    Draws,
    ImputationDraws,
    PegsDraws,
    UrnDraws,
)
from pegsynth.privacy.events import (
    CategoriesFound,
    Diversity,
    Event,
    NotPrivate,
    PooledRows,
    RunBegins,
    Selection,
    UnitBound,
    UnknownEvent,
    Unspent,
)
from pegsynth.privacy.guarantee import Guarantee
from pegsynth.privacy.ledger import Ledger
from pegsynth.privacy.noise_events import AgreementCounts, NoisyCounts, NoisyResiduals, NoisySums
from pegsynth.privacy.privacy_json import verify
from pegsynth.privacy.program import Program, this_program

__all__ = [
    "DEFAULT_SCALE",
    "AgreementCounts",
    "Allowance",
    "Assumption",
    "BlockDraws",
    "Budget",
    "CappedDraws",
    "CategoriesFound",
    "ContingencyDraws",
    "Diversity",
    "Draws",
    "Event",
    "Guarantee",
    "ImputationDraws",
    "Ledger",
    "NoisyCounts",
    "NoisyResiduals",
    "NoisySums",
    "NotPrivate",
    "PegsDraws",
    "PooledRows",
    "Program",
    "RunBegins",
    "Selection",
    "Shares",
    "UnitBound",
    "UnknownEvent",
    "Unspent",
    "UrnDraws",
    "alpha_per_row",
    "calibrate",
    "stated_alpha",
    "this_program",
    "verify",
]
