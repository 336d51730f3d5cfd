"""Counts that a published model holds, as a table for people: ``pegs tables``, release folders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.random import RandomStream
from pegsynth.released.asked_counts import asked_counts

if TYPE_CHECKING:
    from pegsynth.methods.base import Plan
    from pegsynth.schema import Schema

FIGURES = ("count", "std_error", "low", "high", "shrunk")


def check_asked(of: Sequence[str]) -> None:
    """Refuse a table that cannot be written; only public choices are looked at."""
    if clash := [name for name in of if name in FIGURES]:
        raise ParameterError(f"a feature is called {clash[0]!r}, as a figure of the table is")


def asked_frame(
    content: Any,
    schema: Schema,
    plan: Plan | None,
    of: Sequence[str],
    *,
    level: float = 0.95,
    threads: int = 1,
) -> pl.DataFrame:
    """Return a line for each cell of the table of some features.

    Parameters
    ----------
    content, plan
        A fitted model of `pegs-once`, and its plan.
    of
        Names of the features.
    """
    released = getattr(content, "released", None)
    if getattr(content, "transitions", None) is not None:
        raise ParameterError(
            "the model pools transitions over positions, so it has no counts of the rows of the "
            'table; fit one with transitions = "folded" in [panel]'
        )
    if released is None or plan is None:
        raise ParameterError("only models of pegs-once publish counts")
    if not 0 < level < 1:
        raise ParameterError("--level is above 0 and below 1, such as 0.95")
    if not of or len(set(of)) < len(of):
        raise ParameterError("--of names features, each once, such as --of zip,MDC")
    check_asked(of)
    features = tuple(schema.index(name) for name in of)
    counts = asked_counts(
        released,
        features,
        schema.names,
        # Rows that counts are shrunk towards come from published numbers, so drawing them needs
        # no secret, and a model gives the same table at every call.
        RandomStream(0),
        pure=plan.budget.delta is None,
        rules=schema.rules,
        threads=threads,
    )
    reach = counts.reach(level)
    cells = list(product(*(schema.features[feature].labels for feature in features)))
    columns = {name: [cell[place] for cell in cells] for place, name in enumerate(of)}
    figures = (
        np.round(counts.raw, 1),
        np.full(len(cells), round(counts.deviation, 2)),
        np.round(np.maximum(counts.raw - reach, 0.0), 1),
        np.round(np.maximum(counts.raw + reach, 0.0), 1),
        np.round(counts.shrunk, 1),
    )
    return pl.DataFrame(columns | dict(zip(FIGURES, figures, strict=True)))
