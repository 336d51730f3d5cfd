"""One model fitted with every replicate weight of a table, and one table of coefficients (R28)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.choice import check_rule, design_of, from_released_blocks, weights_of
from pegsynth.inference.combine import Combined, Floor, combine
from pegsynth.inference.combining_rules import Numbers
from pegsynth.inference.ledger_support import NO_ANALYSIS, NOT_ASKED, status_of, support_note
from pegsynth.inference.pooled import estimates_of
from pegsynth.inference.pooled_result import Pooled
from pegsynth.inference.shared_bias import with_shared_bias
from pegsynth.options.weight_names import WEIGHT, named_weights
from pegsynth.privacy import Ledger
from pegsynth.schema import Schema
from pegsynth.tables.caller_frames import frame_kind


def replicated(
    fit: Callable[[Any, Numbers], Any],
    frame: Any,
    *,
    names: Sequence[str] | None = None,
    weight: str | None = None,
    ledger: Ledger | None = None,
    floor: Floor | None = None,
    analysis: str | None = None,
    schema: Schema | None = None,
) -> Pooled:
    """Fit a model with the weights of a table and with each of its replicates.

    Parameters
    ----------
    fit
        Takes the table and an array of weights; returns a result with `params`, as
        statsmodels does, or estimates: a number, an array or a mapping. Standard errors
        are not looked at.
    frame
        A dataframe with the columns `pegs_weight`, `pegs_weight_1`, `pegs_weight_2`, ..
    names
        Coefficients to keep, or names for those that have none.
    weight
        The name of the first column of weights; None: as the ledger says, or as
        `weight_columns` finds it.
    ledger, floor, analysis
        As for `combine`.
    schema
        The codebook, which tells of public bins.

    Returns
    -------
    Pooled
        One line per coefficient; `to_frame()` gives a dataframe.
    """
    if weight is None and ledger is not None:
        weight = next(iter(weights_of(ledger)), None)
    main, *rest = (
        estimates_of(fit(frame, weights), names) for weights in weights_in(frame, weight)
    )
    if ledger is not None and not from_released_blocks(ledger):
        check_rule("replicate-weights", ledger)
    # The ledger of a model says nothing of weights that were drawn from it; the columns do.
    design = None if ledger is None else design_of(ledger)
    part = None if design is None else design.part
    result = combine(rest, rule="replicate-weights", main=main, floor=floor, part=part)
    if analysis is not None:
        if ledger is None:
            raise ParameterError(
                "whether an analysis is supported is read off the ledger; state it"
            )
        result = with_note(result, support_note(ledger, analysis, schema=schema))
        result = with_shared_bias(
            result,
            lambda weights: estimates_of(fit(frame, weights), names),
            frame,
            weights_in(frame, weight)[0],
            ledger,
            analysis,
        )
    elif ledger is not None:
        result = result.with_status(NO_ANALYSIS)
    return Pooled(result, frame_kind(frame))


def with_note(found: Combined, note: str) -> Combined:
    """Say of all quantities what published tables hold of them."""
    kept = tuple(each for each in found.notes if each != NOT_ASKED)
    if not note:
        return replace(found, notes=kept, statuses=())
    return replace(found, notes=(*kept, note)).with_status(status_of(note))


def weight_columns(columns: Sequence[str], features: Collection[str] = ()) -> tuple[str, ...]:
    """Find the weights of a table by their names: NAME, NAME_1, NAME_2, .., none of them a feature.

    NAME is `pegs_weight`; without that, the only one that a table has of such names.
    A lone column of that name is no weight.
    """
    free = [name for name in columns if name not in features]
    found = [each for name in free if (each := _replicated_columns(name, free))]
    named = [each for each in found if each[0] == WEIGHT] or found
    return named[0] if len(named) == 1 else ()


def _replicated_columns(name: str, columns: Collection[str]) -> tuple[str, ...]:
    """Return NAME, NAME_1, NAME_2, .. as far as they go; none where there are fewer than three."""
    more = next(n for n in count() if f"{name}_{n + 1}" not in columns)
    return named_weights(name, more) if name in columns and more > 1 else ()


def weights_in(frame: Any, weight: str | None) -> list[Numbers]:
    """Return the weights of a table: those of the published counts, and the replicates."""
    columns = [str(name) for name in getattr(frame, "column_names", None) or frame.columns]
    found = weight_columns(columns) if weight is None else _replicated_columns(weight, columns)
    if not found:
        name = weight or WEIGHT
        raise ParameterError(
            f"replicate weights are the columns {name}, {name}_1, {name}_2, ..; this table lacks "
            "them; if they are called otherwise, state weight"
        )
    return [np.asarray(frame[name], dtype=np.float64) for name in found]
