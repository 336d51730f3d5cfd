"""Where chains start: seed rows from public weights, paid marginals, a file or the data (R10).

A pool is public, or was paid for: independent features drawn from public weights
(`WeightedPool`, uniform by default), or the rows of a public file (`FilePool`). Rows that
break a rule are never handed out, so every chain starts from a valid row (R18).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.codec import check_columns, encode
from pegsynth.errors import DataError, ModelError, ParameterError, SchemaError
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.kernels.gibbs import SWEEP, draw_seeds
from pegsynth.kernels.sampling_arrays import RuleTables
from pegsynth.kernels.uniform import REJECTED, bounded_array
from pegsynth.mechanisms.marginals import Marginals, seed_weights
from pegsynth.mechanisms.rule_patterns import rule_tables
from pegsynth.methods.base import Plan
from pegsynth.methods.drawn_features import clamped_codes, replaced_features
from pegsynth.methods.pricing import PricedPlan
from pegsynth.methods.prior import Weights, uniform_weights
from pegsynth.options import MethodOptions, PartialOptions
from pegsynth.privacy.assumptions import Assumption, stated
from pegsynth.schema import Schema
from pegsynth.schema.rules import Rule, conditioned
from pegsynth.tables.table_input import opened

Codes = NDArray[np.uint32]
WordSource = Callable[[int], NDArray[np.uint64]]

WORD_BITS = np.uint64(64)
_SLACK = 64
_MOST_SLACK = 1 << 16
_MOST_ATTEMPTS = 100_000


class SeedPool(Protocol):
    """A source of seed rows."""

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return `count` rows as codes."""
        ...


@dataclass(frozen=True)
class WeightedPool:
    """Independent features with public (or paid-for) integer weights."""

    category_start: NDArray[np.int64]
    weight_cumulative: NDArray[np.uint64]
    rules: RuleTables

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return rows drawn feature by feature; rows that break a rule are drawn again."""
        features = len(self.category_start) - 1
        rows = np.zeros((count, features), dtype=np.uint32)
        state = np.zeros(4, dtype=np.int64)
        slack = _SLACK
        while not draw_seeds(
            rows,
            state,
            self.category_start,
            self.weight_cumulative,
            self.rules,
            words((count - int(state[0])) * features + slack),
            WORD_BITS,
        ):
            # A row that needs more words than it got would need them again, for ever.
            slack = min(2 * slack, _MOST_SLACK)
            if state[SWEEP] > _MOST_ATTEMPTS:
                raise SchemaError(
                    "hardly any row of independent features obeys the schema's rules, so no "
                    "chain can start; give valid public rows with --seed-pool FILE"
                )
        return rows


@dataclass(frozen=True)
class FilePool:
    """The rows of a file, each as likely as any other."""

    rows: Codes

    def __post_init__(self) -> None:
        if not len(self.rows):
            raise ParameterError("the seed pool holds no row that obeys the schema's rules")

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return rows drawn with replacement."""
        chosen = np.empty(0, dtype=np.uint64)
        while len(chosen) < count:
            drawn = bounded_array(words(count + _SLACK), np.uint64(len(self.rows)), WORD_BITS)
            chosen = np.concatenate([chosen, drawn[drawn != REJECTED]])
        return self.rows[chosen[:count].astype(np.int64)]


@dataclass(frozen=True)
class InOrder:
    """Given rows, each once and in order; for chains that start from rows to be kept."""

    rows: Codes

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return the first `count` rows."""
        return self.rows[:count]


def weighted_pool(weights: Sequence[Weights], rules: Sequence[Rule]) -> WeightedPool:
    """Return rows of independent features, restricted to the rules."""
    sizes = [len(line) for line in weights]
    return WeightedPool(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.cumsum(line, dtype=np.uint64) for line in weights]),
        rule_tables(rules, sizes),
    )


_WORDS = ("uniform", "marginal", "original")

S = TypeVar("S", bound=PartialOptions)


def starts_from_original(schema: Schema, options: S) -> S:
    """Return the options of a release that replaces features of the original rows."""
    if schema.unit:
        raise ParameterError("--synthesize keeps every row, which bounding units would not")
    return replace(options, seed_pool="original")


def declared_pool(source: str | Path) -> str:
    """Return what a ledger says of where seed rows come from."""
    return str(source) if source in _WORDS else "file"


def seed_pool(
    schema: Schema,
    source: str | Path,
    options: MethodOptions,
    *,
    marginals: Marginals | None = None,
    rows: AnyCodes | None = None,
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
        paid = marginals if source == "marginal" else None
        weights = list(seed_weights(paid) if paid else uniform_weights(schema.category_counts))
        # A clamped feature has all its weight on one category.
        for feature, code in clamped.items():
            weights[feature] = np.zeros_like(weights[feature])
            weights[feature][code] = 1
        return weighted_pool(weights, schema.rules), ()
    if source == "original":
        if replaced_features(options):
            return FilePool(whole_rows(schema, rows).astype(np.uint32)), ()
        return FilePool(_valid(schema, rows, clamped)), ()
    valid = _valid(schema, encode(source, schema, need_unit=False), clamped)
    name = str(source).rsplit("/", maxsplit=1)[-1]
    return FilePool(valid), (stated("public-seed-pool", {"file": name}),)


def check_seed_pool(schema: Schema, plan: Plan) -> None:
    """Refuse given values or a file of seed rows that could not be drawn from; no data is read.

    Where the codec is measured later, only the columns of the file are known to fit.
    """
    source = plan.seed_pool if isinstance(plan, PricedPlan) else "uniform"
    if not schema.unsettled:
        conditioned(schema.rules, clamped_codes(schema, plan.options))
    if source in _WORDS:
        return
    if not schema.unsettled:
        seed_pool(schema, source, plan.options)
        return
    with opened(source, dialect=schema.dialect) as reader:
        check_columns(schema, reader.columns, source=reader.source, need_unit=False)


def _original(rows: AnyCodes | None) -> AnyCodes:
    if rows is None:
        raise ModelError("this model holds no original rows to start from; use pegs synthesize")
    return rows


def whole_rows(schema: Schema, rows: AnyCodes | None) -> AnyCodes:
    """Return the original rows whose features are to be replaced; all must obey the rules."""
    rows = _original(rows)
    if broken := int(schema.breaks_a_rule(rows).sum()):
        raise DataError(
            f"{broken} rows break a rule of the schema, and --synthesize keeps what is wrong with "
            "them; mend or drop these rows"
        )
    return rows


def _valid(schema: Schema, rows: AnyCodes | None, clamped: dict[int, int]) -> Codes:
    """Return the rows that obey the schema's rules, as seed rows with clamped values."""
    rows = _original(rows).copy()
    for feature, code in clamped.items():
        rows[:, feature] = code
    return rows[~schema.breaks_a_rule(rows)].astype(np.uint32)
