"""Where chains start: seed rows from public weights, paid marginals, a file or the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.codec import check_columns, encode
from pegsynth.errors import DataError, ModelError
from pegsynth.mechanisms import rule_tables
from pegsynth.mechanisms.marginals import Marginals, seed_weights
from pegsynth.methods.drawn_features import clamped_codes, replaced_features
from pegsynth.methods.gibbs.seeds import FilePool, SeedPool, WeightedPool
from pegsynth.methods.prior import uniform_weights
from pegsynth.privacy.assumptions import Assumption, public_seed_pool
from pegsynth.schema.rules import conditioned
from pegsynth.tables.table_input import opened

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes
    from pegsynth.schema import Schema

_WORDS = ("uniform", "marginal", "original")


def seed_pool(
    schema: Schema,
    source: str | Path,
    options: Any,
    *,
    marginals: Marginals | None = None,
    rows: Codes | None = None,
) -> tuple[SeedPool, tuple[Assumption, ...]]:
    """Return where chains start, and what that takes for public.

    Parameters
    ----------
    source
        ``uniform``, ``marginal``, ``original``, or the name of a file of public rows.
    marginals, rows
        Paid marginals and original rows, where they are needed.
    """
    clamped = clamped_codes(schema, options)
    conditioned(schema.rules, clamped)  # refuses values that a rule forbids together
    if source in ("uniform", "marginal"):
        weights = (
            seed_weights(marginals)
            if source == "marginal" and marginals
            else uniform_weights(schema.category_counts)
        )
        # A clamped feature has all its weight on one category.
        for feature, code in clamped.items():
            alone = np.zeros_like(weights[feature])
            alone[code] = 1
            weights = (*weights[:feature], alone, *weights[feature + 1 :])
        cumulative = np.concatenate([np.cumsum(w, dtype=np.uint64) for w in weights])
        start = category_starts(schema)
        rules = rule_tables(schema.rules, schema.category_counts)
        return WeightedPool(start, cumulative, rules), ()
    if source == "original":
        if replaced_features(options):
            return FilePool(whole_rows(schema, rows).astype(np.uint32)), ()
        return FilePool(_valid(schema, rows, clamped)), ()
    valid = _valid(schema, encode(source, schema, need_unit=False), clamped)
    name = str(source).rsplit("/", maxsplit=1)[-1]
    return FilePool(valid), (public_seed_pool(name),)


def check_seed_pool(schema: Schema, plan: Any) -> None:
    """Refuse given values or a file of seed rows that could not be drawn from; no data is read.

    Where the codec is measured later, only the columns of the file are known to fit.
    """
    source = getattr(plan, "seed_pool", "uniform")
    if not schema.unsettled:
        conditioned(schema.rules, clamped_codes(schema, plan.options))
    if source in _WORDS:
        return
    if not schema.unsettled:
        seed_pool(schema, source, plan.options)
        return
    with opened(source, dialect=schema.dialect) as reader:
        check_columns(schema, reader.columns, source=reader.source, need_unit=False)


def category_starts(schema: Schema) -> NDArray[np.int64]:
    """Return where the categories of each feature begin in a line of all of them."""
    return np.concatenate([[0], np.cumsum(schema.category_counts)]).astype(np.int64)


def whole_rows(schema: Schema, rows: Codes | None) -> Codes:
    """Return the original rows whose features are to be replaced; all must obey the rules."""
    if rows is None:
        raise ModelError("this model holds no original rows to start from; use pegs synthesize")
    if broken := int(schema.breaks_a_rule(rows).sum()):
        raise DataError(
            f"{broken} rows break a rule of the schema, and --synthesize keeps what is wrong with "
            "them; mend or drop these rows"
        )
    return rows


def _valid(schema: Schema, rows: Codes | None, clamped: dict[int, int]) -> NDArray[np.uint32]:
    """Return the rows that obey the schema's rules, as seed rows with clamped values."""
    if rows is None:
        raise ModelError("this model holds no original rows to start from; use pegs synthesize")
    rows = rows.copy()
    for feature, code in clamped.items():
        rows[:, feature] = code
    return rows[~schema.breaks_a_rule(rows)].astype(np.uint32)
