"""The marginal Bayesian bootstrap of McClure and Reiter: independent features by urns.

The probabilities of each feature are drawn once from the Dirichlet posterior of its
one-way counts and the values from these probabilities. Urns do exactly that in integers,
without ever forming the probabilities: P(j) = (n_j + alpha_j + x_j)/(N + A + x) with x the
values drawn so far (R17). T draws from each of M urns cost M log(1 + T/a) (R9).

Every attempt at a row draws once from every urn, and a row that breaks a rule is thrown
away as a whole while its values stay in the urns. What is published is thus a function of
M independent sequences of at most T draws, whatever the rules (R17, R18).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import BudgetError, DataError, ParameterError, SchemaError
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.kernels.urn import DRAWN, draw_urn
from pegsynth.mechanisms.answers import drawn_from
from pegsynth.mechanisms.rule_patterns import rule_tables
from pegsynth.methods.baselines.bootstrap_rows import obeying
from pegsynth.methods.gibbs.blocks import MOST_ROWS
from pegsynth.methods.gibbs.seeds import WORD_BITS, Codes, WeightedPool
from pegsynth.methods.prior import MOST_TOTAL, Prior
from pegsynth.random import RandomStream, Words
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
    """One-way counts of every feature.

    Parameters
    ----------
    counts
        n_j of every feature, rows that break a rule included (R18). Confidential.
    """

    counts: tuple[NDArray[np.int64], ...]

    @classmethod
    def count(cls, batches: Iterable[AnyCodes], category_counts: Sequence[int]) -> MarginalTable:
        """Count batches of rows."""
        counts = [np.zeros(size, dtype=np.int64) for size in category_counts]
        for batch in batches:
            for feature, size in enumerate(category_counts):
                counts[feature] += np.bincount(batch[:, feature], minlength=size)
        return cls(tuple(counts))

    def draw(
        self,
        rows: int,
        *,
        prior: Prior,
        words: Words,
        rules: Sequence[Rule] = (),
        most_draws: int | None = None,
        add_back: bool = True,
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
        add_back
            False leaves the urns as they are: M draws of R1 per attempt, each paid in full.
        """
        cap = _checked_cap(rows, prior, rules, most_draws)
        urns = _Urns(self.counts, prior, cap, add_back)
        kept = urns.rows_within(rows, rules, words)
        if len(kept) == rows:
            return kept
        if most_draws is None:
            raise SchemaError(
                f"hardly any row of independent features obeys the schema's rules: {len(kept)} of "
                f"{cap} did; use a method of the pegs family"
            )
        return np.concatenate([kept, _public_rows(rows - len(kept), prior, rules, words)])

    def draw_datasets(
        self,
        rows: int,
        datasets: int,
        *,
        prior: Prior,
        stream: RandomStream,
        rules: Sequence[Rule] = (),
        most_draws: int | None = None,
        shared: bool = False,
        add_back: bool = True,
    ) -> list[Codes]:
        """Return K datasets of `rows` rows each.

        Parameters
        ----------
        most_draws
            T of one set of urns: of one dataset, or of all K together when `shared`.
        shared
            False: the urns start anew for each dataset, which is proper synthesis at K
            times the price (R16, R17). True: all rows come from one set of urns, so the
            datasets share one draw of the probabilities, and are dealt to the datasets by
            a public permutation (R13).
        """
        held = drawn_from(self, self._without_rows, stream, rows=rows * datasets)

        def draw(count: int) -> Codes:
            return held.draw(
                count,
                prior=prior,
                words=stream.substream(),
                rules=rules,
                most_draws=most_draws,
                add_back=add_back,
            )

        if not shared:
            return [draw(rows) for _ in range(datasets)]
        everything = draw(rows * datasets)
        order = np.argsort(stream.substream().take(len(everything)), kind="stable")
        return [everything[part] for part in np.split(order, datasets)]

    def _without_rows(self) -> MarginalTable:
        return MarginalTable(tuple(map(np.zeros_like, self.counts)))


class _Urns:
    """One urn per feature, and everything drawn from them so far."""

    def __init__(
        self, counts: Sequence[NDArray[np.int64]], prior: Prior, cap: int, add_back: bool
    ) -> None:
        if [len(line) for line in counts] != [len(line) for line in prior.weights]:
            raise ParameterError("the prior and the counts speak of different categories")
        self._counts = [np.cumsum(line, dtype=np.uint64) for line in counts]
        self._weights = [np.cumsum(line, dtype=np.uint64) for line in prior.weights]
        self._prior, self._cap, self._add_back = prior, cap, add_back
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
                self._add_back,
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


def _public_rows(count: int, prior: Prior, rules: Sequence[Rule], words: Words) -> Codes:
    """Draw rows from alpha_j/A of every feature, restricted to the rules."""
    sizes = [len(line) for line in prior.weights]
    pool = WeightedPool(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.cumsum(line, dtype=np.uint64) for line in prior.weights]),
        rule_tables(rules, sizes),
    )
    return pool.draw(count, words.take)
