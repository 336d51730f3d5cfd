"""One model fitted with every replicate weight of a table, and one table of coefficients (R28)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.choice import check_rule, from_released_blocks
from pegsynth.inference.combine import Floor, combine
from pegsynth.inference.combining_rules import Numbers
from pegsynth.inference.ledger_support import NOT_ASKED, support_note
from pegsynth.inference.pooled import Pooled, estimates_of
from pegsynth.io.caller_frames import frame_kind
from pegsynth.privacy import Ledger

WEIGHT = "weight"


def replicated(
    fit: Callable[[Any, Numbers], Any],
    frame: Any,
    *,
    names: Sequence[str] | None = None,
    weight: str = WEIGHT,
    ledger: Ledger | None = None,
    floor: Floor | None = None,
    analysis: str | None = None,
) -> Pooled:
    """Fit a model with the weights of a table and with each of its replicates.

    Parameters
    ----------
    fit
        Takes the table and an array of weights; returns a result with `params`, as
        statsmodels does, or estimates: a number, an array or a mapping. Standard errors
        are not looked at.
    frame
        A dataframe with the columns `weight`, `weight_1`, `weight_2`, ..
    names
        Coefficients to keep, or names for those that have none.
    weight
        The name of the first column of weights.
    ledger, floor, analysis
        As for `combine`.

    Returns
    -------
    Pooled
        One line per coefficient; `to_frame()` gives a dataframe.
    """
    main, *rest = (
        estimates_of(fit(frame, weights), names) for weights in weights_of(frame, weight)
    )
    if ledger is not None and not from_released_blocks(ledger):
        check_rule("replicate-weights", ledger)
    # The ledger of a model says nothing of weights that were drawn from it; the columns do.
    result = combine(rest, rule="replicate-weights", main=main, floor=floor)
    if analysis is not None:
        if ledger is None:
            raise ParameterError("whether an analysis is held is read off the ledger; state it too")
        kept = tuple(note for note in result.notes if note != NOT_ASKED)
        result = replace(result, notes=(*kept, support_note(ledger, analysis)))
    return Pooled(result, frame_kind(frame))


def weights_of(frame: Any, weight: str = WEIGHT) -> list[Numbers]:
    """Return the weights of a table: those of the published counts, and the replicates."""
    columns = [str(name) for name in getattr(frame, "column_names", None) or frame.columns]
    count = 0
    while f"{weight}_{count + 1}" in columns:
        count += 1
    if weight not in columns or count < 2:
        raise ParameterError(
            f"replicate weights are the columns {weight}, {weight}_1, {weight}_2, ..; this table "
            "lacks them"
        )
    wanted = [weight, *(f"{weight}_{number}" for number in range(1, count + 1))]
    return [np.asarray(frame[name], dtype=np.float64) for name in wanted]
