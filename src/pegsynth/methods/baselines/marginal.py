"""`marginal`: independent features by urns, the marginal Bayesian bootstrap (R9, R17).

It is the bootstrap of McClure and Reiter. The probabilities of each feature are drawn once from
the Dirichlet posterior of its one-way counts and the values from these probabilities. Urns do
exactly that in integers, without ever forming the probabilities:
P(j) = (n_j + alpha_j + x_j)/(N + A + x) with x the values drawn so far (R17). T draws from each of
M urns cost M log(1 + T/a) (R9).

Every attempt at a row draws once from every urn, and a row that breaks a rule is thrown
away as a whole while its values stay in the urns. What is published is thus a function of
M independent sequences of at most T draws, whatever the rules (R17, R18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pegsynth.errors import BudgetError, DataError, ParameterError, SchemaError
from pegsynth.kernels.arrays import Int64
from pegsynth.kernels.urns import DRAWN, draw_urn
from pegsynth.mechanisms.answers import drawn_from
from pegsynth.methods.base import Fitted, Fitting, Model, Rows, Sampler
from pegsynth.methods.baselines.bootstrap import obeying
from pegsynth.methods.gibbs.block_fitting import counted_alone, load_blocks, one_way_counts
from pegsynth.methods.gibbs.blocks import MOST_ROWS
from pegsynth.methods.pricing import PricedMethod, PricedPlan, need_rows
from pegsynth.methods.prior import MOST_TOTAL, Prior, dirichlet
from pegsynth.methods.registry import MarginalOptions
from pegsynth.methods.seed_rows import WORD_BITS, Codes, weighted_pool
from pegsynth.methods.stored_model import StoredModel
from pegsynth.privacy import Budget, Draws
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.privacy.draw_events import UrnDraws
from pegsynth.random import RandomStream, Words
from pegsynth.schema import Schema
from pegsynth.schema.rules import Rule

DRAWS_PER_ROW = 4
"""Attempts per row that a budget pays for by default where rules may reject some."""

_MOST_ATTEMPTS_PER_ROW = 50
_LEAST_ATTEMPTS = 10_000
_MOST_WORDS = 1 << 20
_SLACK = 64


def default_draws(rows: int, rules: Sequence[Rule]) -> int:
    """Return T for `rows` rows from one set of urns: public, and known before any draw."""
    return rows * DRAWS_PER_ROW if rules else rows


def check_urns(prior: Prior, cap: int) -> None:
    """Refuse urns whose totals might not fit in 64 bits, whatever the table holds.

    The number of rows is taken to be the most that any table may have, so that the answer
    is public.
    """
    for weights, multiplier in zip(prior.weights, prior.multipliers, strict=True):
        if prior.scale * (MOST_ROWS + cap) + multiplier * int(weights.sum()) >= MOST_TOTAL:
            raise BudgetError(
                "the urns of this release do not fit in 64-bit totals; raise epsilon or draw "
                "fewer rows"
            )


@dataclass(frozen=True)
class MarginalTable:
    """Exact one-way counts of every feature.

    Parameters
    ----------
    counts
        n_j of every feature, rows that break a rule included (R18). Confidential.
    """

    counts: tuple[Int64, ...] = field(repr=False)

    def draw(
        self,
        rows: int,
        *,
        prior: Prior,
        words: Words,
        rules: Sequence[Rule] = (),
        most_draws: int | None = None,
    ) -> Codes:
        """Return `rows` rows from one set of fresh urns.

        After `most_draws` attempts the urns are silent. The rows still missing come from
        the public distribution alpha_j/A of every feature, restricted to the rules by
        drawing whole rows again; these draws read nothing of the data and are free, so the
        price is that of `most_draws` attempts however many rows had to be thrown away.

        Parameters
        ----------
        prior
            Virtual rows; a multiplier of 0 is the Bayesian bootstrap without perturbation.
        most_draws
            T, the most attempts, those that a rule rejects included; at least `rows`. None
            stands for `rows` when there are no rules, and for no public cap when there are
            no virtual rows; under rules and a prior it must be given.
        """
        cap = _checked_cap(rows, prior, rules, most_draws)
        kept = _Urns(self.counts, prior, cap).rows_within(rows, rules, words)
        if len(kept) == rows:
            return kept
        if most_draws is None:
            raise SchemaError(
                f"hardly any row of independent features obeys the schema's rules: {len(kept)} of "
                f"{cap} did; use a method of the pegs family"
            )
        public = weighted_pool(prior.weights, rules)
        return np.concatenate([kept, public.draw(rows - len(kept), words.take)])

    def seen_by(self, stream: RandomStream, rows: int) -> MarginalTable:
        """Return what draws of so many rows read; audits get a table without rows."""
        empty = MarginalTable(tuple(map(np.zeros_like, self.counts)))
        return drawn_from(self, lambda: empty, stream, rows=rows)


class _Urns:
    """One urn per feature, and everything drawn from them so far."""

    def __init__(self, counts: Sequence[Int64], prior: Prior, cap: int) -> None:
        if [len(line) for line in counts] != [len(line) for line in prior.weights]:
            raise ParameterError("the prior and the counts speak of different categories")
        self._counts = [np.cumsum(line, dtype=np.uint64) for line in counts]
        self._weights = [np.cumsum(line, dtype=np.uint64) for line in prior.weights]
        self._prior, self._cap = prior, cap
        self._drawn = np.zeros((len(counts), 0), dtype=np.uint32)
        check_urns(prior, cap)
        if any(int(held[-1]) > MOST_ROWS for held in self._counts):
            raise DataError(f"the table has more than {MOST_ROWS} rows; split it")

    def rows_within(self, rows: int, rules: Sequence[Rule], words: Words) -> Codes:
        """Return the first `rows` attempts that obey the rules, or fewer at the cap."""
        attempts = min(rows, self._cap)
        while True:
            self._extend(attempts, words)
            tried = np.ascontiguousarray(self._drawn.T)
            kept = allowed_rows(tried, rules, rows)
            if len(kept) == rows or attempts == self._cap:
                return kept
            # How many attempts to make next decides speed only: the cap is what is paid.
            share = max(len(kept), 1) / attempts
            attempts = min(self._cap, attempts + int((rows - len(kept)) / share) + _SLACK)

    def _extend(self, attempts: int, words: Words) -> None:
        """Draw from every urn until each has given `attempts` values."""
        before = self._drawn
        self._drawn = np.zeros((len(before), attempts), dtype=np.uint32)
        self._drawn[:, : before.shape[1]] = before
        for feature in range(len(before)):
            state = np.array([before.shape[1], 0], dtype=np.int64)
            while not draw_urn(
                self._drawn[feature],
                state,
                self._counts[feature],
                self._weights[feature],
                np.uint64(self._prior.scale),
                np.uint64(self._prior.multipliers[feature]),
                True,  # what is drawn goes back with one more of its kind
                words.take(min(attempts - int(state[DRAWN]), _MOST_WORDS) + _SLACK),
                WORD_BITS,
            ):
                pass


def allowed_rows(attempts: Codes, rules: Sequence[Rule], rows: int) -> Codes:
    """Return the first `rows` attempts that break no rule; the urns never hear of it."""
    return attempts[obeying(attempts, rules)][:rows]


def _checked_cap(rows: int, prior: Prior, rules: Sequence[Rule], most_draws: int | None) -> int:
    if rows < 0 or (most_draws is not None and most_draws < rows):
        raise ParameterError("every row takes at least one draw: most_draws must not be below rows")
    if not rules:
        return rows
    if most_draws is not None:
        return most_draws
    if any(prior.multipliers):
        raise BudgetError(
            "where rules may reject draws, the most draws of the urns must be stated: they are "
            "what is paid for"
        )
    return max(_LEAST_ATTEMPTS, _MOST_ATTEMPTS_PER_ROW * rows)


class Marginal(PricedMethod[MarginalOptions, PricedPlan, MarginalTable]):
    """Urns of one-way counts, new ones for every dataset."""

    name = "marginal"
    summary = "independent features, each drawn from an urn of its own counts"
    options = MarginalOptions
    plan_type = PricedPlan

    def settle(
        self,
        schema: Schema,
        budget: Budget,
        options: MarginalOptions,
        *,
        scale: int = DEFAULT_SCALE,
    ) -> PricedPlan:
        """Find the smallest alpha; refuse urns that might not fit in 64 bits."""
        need_rows(self.name, options, total=budget.epsilon is not None)
        plan = self.price(schema, budget, options, scale=scale)
        if isinstance(plan.draws, UrnDraws):
            check_urns(dirichlet(schema.category_counts, plan.numerator, scale), plan.draws.visits)
        return plan

    def shape(self, schema: Schema, options: MarginalOptions) -> UrnDraws:
        """T draws from each of M urns, for every dataset."""
        size = self.drawn_size(schema, options)
        visits = default_draws(size["rows"], schema.rules)
        return UrnDraws.shape(**size, visits=visits, urns=size["datasets"])

    def per_row(self, shape: Draws) -> int | None:
        """Urns are priced by their cap."""
        return None

    def lot(self, plan: PricedPlan) -> int:
        """Return n: every dataset has urns of its own, paid for whole."""
        return plan.options.rows or 0

    def limited(self, plan: PricedPlan) -> bool:
        """Urns are priced by their cap, so they are limited whatever the budget's kind (R17)."""
        total = plan.budget.epsilon is not None
        return bool(plan.options.rows) and (total or plan.draws is not None)

    def fit(self, plan: PricedPlan, work: Fitting) -> Fitted[PricedPlan, MarginalTable]:
        """Count every feature by itself."""
        return Fitted(MarginalTable(tuple(counted_alone(work))), plan, work.ledger)

    def sampler(self, model: Model, plan: PricedPlan, *, threads: int) -> Sampler:
        """Make the urns ready; T was settled with the price."""
        shape = self.shape(model.schema, plan.options)
        most = shape.visits if plan.draws is not None else None
        return _UrnTables(model.content, model.schema, plan, most)

    def store(self, content: MarginalTable) -> StoredModel:
        """Return the counts as cells without a key."""
        cells = []
        for counts in content.counts:
            held = np.flatnonzero(counts)
            cells.append((np.zeros(len(held), dtype=np.int64), held, counts[held]))
        return StoredModel(heads=((),) * len(cells), cells=cells)

    def load(self, stored: StoredModel, schema: Schema, plan: PricedPlan | None) -> MarginalTable:
        """Rebuild the counts."""
        return MarginalTable(tuple(one_way_counts(load_blocks(stored, schema).blocks)))


class _UrnTables(Sampler):
    """Urns that start anew for every dataset, which is proper synthesis (R16, R17)."""

    def __init__(
        self, held: MarginalTable, schema: Schema, plan: PricedPlan, most: int | None
    ) -> None:
        super().__init__()
        self._held, self._schema, self._most = held, schema, most
        self._prior = dirichlet(schema.category_counts, plan.numerator, plan.scale)

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K tables, each from urns of its own."""
        held = self._held.seen_by(stream, rows * datasets)
        drawn = [
            held.draw(
                rows,
                prior=self._prior,
                words=stream.substream(),
                rules=self._schema.rules,
                most_draws=self._most,
            )
            for _ in range(datasets)
        ]
        return [iter([table.astype(self._schema.code_dtype)]) for table in drawn]


MARGINAL = Marginal()
