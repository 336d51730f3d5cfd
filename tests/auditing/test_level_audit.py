"""The exact audit of samplers on levels, and the broken twins that it must find (R10, R25)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lanes import long_form
from oracle import worst_loss
from pegsynth.auditing.level_cases import (
    LevelCase,
    level_case,
    level_cases,
    level_private_case,
    worst_path,
)

CASES = level_cases()


def loss_of(each):
    return worst_loss(each.distribution, each.schema.category_counts, each.most_rows)


def holds(each, claim):
    guarantee = claim.guarantee
    return loss_of(each).within(guarantee.epsilon, guarantee.rho)


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.name)
def test_levels_keep_the_price_of_their_draws(each):
    fit = each.fitted(())
    assert max(fit.blocks.spec.category_counts) < max(each.schema.category_counts)
    assert holds(each, each.claim)


def test_the_claim_is_that_of_categories():
    for each in CASES:
        uniform = replace(each.plan, prior="uniform")
        assert each.plan.events == uniform.events


@long_form
@pytest.mark.slow(seconds=60)
def test_paid_counts_and_draws_together_keep_their_total():
    each = level_private_case()
    loss = worst_path(each)
    assert 0 < loss.epsilon <= each.claim.guarantee.epsilon


class ByTrueCounts(LevelCase):
    """A twin that merges by the counts of the table itself."""

    def merging_shares(self, table):
        found = []
        for feature, line in enumerate(self.shares):
            counts = np.bincount([row[feature] for row in table], minlength=len(line))
            found.append(tuple((counts / counts.sum()).tolist()))
        return tuple(found)


class Finer(LevelCase):
    """A twin that draws with a smaller alpha than is charged."""

    def fitted(self, table, heads=None):
        fit = super().fitted(table, heads)
        return replace(fit, resolutions=tuple(1 for _ in fit.resolutions))


def twin(kind, each):
    return kind(each.name, each.schema, each.plan, each.most_rows, each.shares)


def realised(each, table, row):
    """Return the worst log-ratio between a table and its neighbour with one more row."""
    first, second = each.distribution(table), each.distribution((*table, row))
    return max(abs(math.log(second[outcome] / share)) for outcome, share in first.items())


@pytest.mark.parametrize("method", ["pegs", "pegs-rs"])
def test_levels_by_true_counts_are_caught(method):
    """One row more of a small category, and it stands alone instead of in a level of three."""
    draws = {"block_size": 1} if method == "pegs-rs" else {}
    each = level_case(
        "many rows",
        ((0.4, 0.2, 0.2, 0.2),),
        method=method,
        heads=0,
        epsilon=0.3,
        most_rows=100,
        **draws,
    )
    table = ((0,),) * 90 + ((1,),) * 2 + ((2,),) * 2
    claimed = each.claim.guarantee.epsilon
    assert realised(each, table, (1,)) <= claimed
    assert realised(twin(ByTrueCounts, each), table, (1,)) > 5 * claimed


def test_virtual_rows_below_the_charged_alpha_are_caught():
    each = CASES[0]
    fewer = replace(each, plan=replace(each.plan, numerator=each.plan.numerator // 2))
    assert not holds(fewer, each.claim)


def test_no_resolution_in_a_file_takes_virtual_rows_away():
    each = CASES[0]
    assert holds(twin(Finer, each), each.claim)
