"""The exact audit of contingency, marginal and pmi: sound releases hold, broken twins do not.

Exact: probabilities are fractions, so a failure here is a defect and never chance.
Cites R8, R9, R17 and R18, whose claims are what is audited.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from command import check_refused, done, pegs
from oracle import worst_loss
from pegsynth.auditing.divergence import repeated
from pegsynth.auditing.exact_laws import enumerate_integers
from pegsynth.auditing.run import audited_methods
from pegsynth.auditing.table_methods import (
    Checksum,
    category_law,
    marginal_law,
    table_case,
    table_cases,
    urn_law,
)
from pegsynth.methods import names
from pegsynth.methods.baselines.sequential_draws import Sweeps
from pegsynth.privacy import Ledger
from pegsynth.privacy.draw_events import BlockDraws, ContingencyDraws, UrnDraws

TABLE_METHODS = ("contingency", "marginal", "pmi")
UNBUDGETED_METHODS = ("bootstrap", "mi", "cart", "forest", "pegs-tables")
CASES = {f"{each.method}: {each.name}": each for each in table_cases()}


def loss_of(each, distribution=None, **changes):
    unit = each.schema.rows_per_unit if each.schema.unit else 1
    return worst_loss(
        distribution or each.distribution,
        each.schema.category_counts,
        changes.get("most_rows", each.most_rows),
        rows_per_unit=unit,
    )


def holds(loss, ledger):
    return loss.within(ledger.guarantee.epsilon, ledger.guarantee.rho)


def fields(event, **changes):
    return {name: getattr(event, name) for name in event.__struct_fields__} | changes


@pytest.mark.parametrize("name", CASES)
def test_the_shipped_code_keeps_its_claim(name):
    each = CASES[name]
    assert each.claim.guarantee.kind == "pure"
    assert each.claim.guarantee.epsilon <= 4
    assert holds(loss_of(each), each.claim)


@pytest.mark.parametrize("name", CASES)
def test_probabilities_are_exact_and_sum_to_one(name):
    each = CASES[name]
    law = each.distribution(((0, 1), (1, 1)))
    assert sum(law.values()) == 1
    assert all(isinstance(share, Fraction) and share > 0 for share in law.values())


def test_every_method_with_a_claim_is_audited():
    # The capped urns are a schedule of pegs-capped, the log-linear fit one of contingency.
    assert set(audited_methods()) == set(names()) - set(UNBUDGETED_METHODS)
    assert {each.method for each in CASES.values()} == set(TABLE_METHODS)


@pytest.mark.parametrize("method", TABLE_METHODS)
def test_the_command_audits_these_methods(method):
    outcome = done("audit", "--method", method)
    lines = [line for line in outcome.out.splitlines() if line.startswith(f"{method} ")]
    assert len(lines) == sum(each.method == method for each in CASES.values())
    assert all(line.endswith("holds") for line in lines)
    assert outcome.out.endswith("every claim holds\n")


@pytest.mark.parametrize("method", ["bootstrap", "mi", "nonsense"])
def test_methods_without_a_claim_are_refused(method):
    check_refused(pegs("audit", "--method", method), "contingency, marginal, pmi")


def test_integers_are_enumerated_exactly():
    law = enumerate_integers(lambda source: (source.below(2), source.below(3)), 2)
    assert law == dict.fromkeys(product(range(2), range(3)), Fraction(1, 6))

    def rejecting(source):
        value = source.below(5)
        while value == 4:
            value = source.below(5)
        return value

    assert enumerate_integers(rejecting, 1) == dict.fromkeys(range(4), Fraction(1, 4))


# The claims are not idle: a table of the domain comes close to each.


def test_the_worst_fit_of_pmi_meets_its_claim_exactly():
    each = CASES["pmi: a fit that any row turns round"]
    assert loss_of(each).epsilon == pytest.approx(each.claim.guarantee.epsilon, rel=1e-9)


# Broken twins. Each takes the claim of a sound release and breaks what is drawn, or the
# reverse.


def with_alpha(each, numerator):
    return replace(each, plan=replace(each.plan, numerator=numerator))


def test_a_contingency_table_with_half_its_virtual_rows_is_caught():
    sound = table_case("halved", "contingency", rows=2, epsilon=1.5, most_rows=1)
    assert sound.plan.numerator > 1
    assert holds(loss_of(sound), sound.claim)
    assert not holds(loss_of(with_alpha(sound, sound.plan.numerator // 2)), sound.claim)


def test_contingency_rows_counted_once_for_all_are_caught():
    sound = CASES["contingency: two rows"]
    once = Ledger((ContingencyDraws(**fields(sound.plan.draws, rows=1)),))
    assert not holds(loss_of(sound), once)


def feature_by_feature(each):
    """A twin that draws every feature from its own margin at the price of one draw."""

    def distribution(table):
        laws = []
        for feature, count in enumerate(each.schema.category_counts):
            held = tuple(sum(row[feature] == j for row in table) for j in range(count))
            laws.append(urn_law(held, 1, each.plan.numerator, each.plan.scale))
        return {(a, b): p * q for (a, p), (b, q) in product(*(law.items() for law in laws))}

    return distribution


def test_a_price_per_feature_forgotten_is_caught():
    """M draws from M margins cost M eta, not the eta of one draw from the full table (R9)."""
    sound = table_case("one row", "contingency", rows=1)
    assert holds(loss_of(sound), sound.claim)
    assert not holds(loss_of(sound, feature_by_feature(sound), most_rows=1), sound.claim)


def test_urns_reopened_for_every_dataset_at_the_price_of_one_are_caught():
    sound = CASES["marginal: two datasets"]
    assert sound.plan.draws.urns == 2
    shared = Ledger((UrnDraws(**fields(sound.plan.draws, urns=1)),))
    loss = loss_of(sound)
    assert holds(loss, sound.claim)
    assert not holds(loss, shared)


def test_urns_reopened_for_every_row_are_caught():
    sound = table_case("four rows", "marginal", (2, 2), rows=4, epsilon=6.0, most_rows=1)

    def reopened(table):
        one = replace(sound, plan=replace(sound.plan, options=replace(sound.plan.options, rows=1)))
        return repeated(marginal_law(one, table), 4)

    assert holds(loss_of(sound), sound.claim)
    assert not holds(loss_of(sound, reopened), sound.claim)


def test_attempts_that_a_rule_rejects_left_unpaid_are_caught():
    """T counts every attempt: with many of them behind one row, the row alone is too cheap."""
    sound = CASES["marginal: rule that a real row breaks"]
    assert sound.plan.draws.visits > sound.plan.draws.rows
    unpaid = Ledger((UrnDraws(**fields(sound.plan.draws, visits=1)),))
    loss = loss_of(sound)
    assert holds(loss, sound.claim)
    assert not holds(loss, unpaid)


def test_a_reset_discount_for_pmi_is_caught():
    """No reset helps: every draw touches every row (R8)."""
    sound = CASES["pmi: a fit that any row turns round"]
    draws = sound.plan.draws
    discounted = BlockDraws(
        features=draws.features,
        rows=draws.rows,
        block_size=draws.rows,
        alpha_numerator=draws.alpha_numerator,
        alpha_denominator=draws.alpha_denominator,
    )
    loss = loss_of(sound)
    assert holds(loss, sound.claim)
    assert not holds(loss, Ledger((discounted,)))


def test_pmi_in_the_cheaper_currency_of_counts_is_caught():
    """eta^2/2 per draw and not eta^2/8: an imputation draw is not eta-bounded-range (R8)."""
    sound = CASES["pmi: a fit that any row turns round"]
    loss, guarantee = loss_of(sound), sound.claim.guarantee
    assert loss.within(guarantee.epsilon, guarantee.rho)
    assert not loss.within(guarantee.epsilon, guarantee.rho / 4)


class Spread:
    """All probability on the first category, or spread over the others with thirds to round."""

    def __init__(self, table, category_counts):
        self.line = np.array([1.0, 0, 0, 0] if len(table) % 2 == 0 else [0, 0.3, 0.3, 0.4])

    def probabilities(self, target, rows):
        return np.tile(self.line, (len(rows), 1))


def nearest(each):
    """A twin of one draw whose weights are rounded to nearest."""

    def distribution(table):
        numerator, scale = each.plan.numerator, each.plan.scale
        fitted = each.fit(table, (4,)).line
        weights = [math.floor(g * scale + 0.5) + numerator for g in fitted]
        return {j: Fraction(w, sum(weights)) for j, w in enumerate(weights)}

    return distribution


def test_weights_rounded_to_nearest_are_caught():
    sound = table_case("one draw", "pmi", (4,), rows=1, fit=Spread, scale=2, epsilon=math.log(3))
    assert (sound.plan.numerator, sound.plan.scale) == (1, 2)
    assert holds(loss_of(sound, most_rows=1), sound.claim)
    assert not holds(loss_of(sound, nearest(sound), most_rows=1), sound.claim)


def test_pmi_with_less_alpha_than_claimed_is_caught():
    sound = CASES["pmi: a fit that any row turns round"]
    assert not holds(loss_of(with_alpha(sound, sound.plan.numerator - 1)), sound.claim)


def test_one_draw_is_the_formula_of_r8():
    law = category_law((1, 0), 1, (0.5, 0.25, 0.25), Sweeps((1,), (2, 3), 3, 4))
    assert law == {0: Fraction(5, 13), 1: Fraction(4, 13), 2: Fraction(4, 13)}
    checksum = Checksum(((0, 1),), (2, 2)).probabilities(0, np.zeros((1, 2), dtype=np.uint32))
    assert checksum.tolist() == [[1.0, 0.0]]
