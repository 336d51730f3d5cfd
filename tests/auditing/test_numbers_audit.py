"""The exact audit of private edges and shapes, and the broken twins that it must find (R21)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from broken_filters import Looking, Skipping, split_by_true_counts
from pegsynth.auditing.measured_codecs import NUMBERS, number_cases, settled_by_tree
from pegsynth.auditing.measured_codecs import measured_in_few_steps as measure
from pegsynth.auditing.paths import audit_paths
from pegsynth.auditing.run import audit
from pegsynth.codec.clipped_sum import SUM_PART, steps_of
from pegsynth.codec.number_grid import grid_of
from pegsynth.codec.tree import Level, measure_tree
from pegsynth.privacy import NoisyCounts, NoisySums

CASES = number_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_path_costs_more_than_is_claimed_and_the_claim_is_used(case):
    worst = audit_paths(case)
    assert worst.holds(case.stated)
    used = worst.loss.epsilon / worst.epsilon if case.delta is None else worst.loss.rho / worst.rho
    assert used > 0.99


def test_every_level_is_reached():
    deepest = {case.name: 0 for case in CASES}
    for case in CASES:
        for table, _ in case.pairs:
            path = next(case.paths(table, 0))
            deepest[case.name] = max(deepest[case.name], len(path.steps))
    # The clipped sum is one step more.
    assert deepest["whole numbers"] == 4
    assert deepest["real numbers"] == deepest["round numbers"] == 5


def empty_octaves_left_out(counts, feature, budget_filter, share):
    return measure(counts, feature, Skipping(budget_filter), share)


class Generous(Looking):
    """A filter that charges the first level only."""

    def measure(self, counts, share, **about):
        if not self.noisy:
            return super().measure(counts, share, **about)
        paid = self._filter._left
        noisy, deviation = self._filter.measure(counts, share, **about)
        self._filter._left = paid
        self._filter._events.pop()
        return noisy, deviation


def level_not_charged(counts, feature, budget_filter, share):
    generous = Generous(budget_filter)
    tree = split_free(counts, feature, generous, share)
    rest = budget_filter.left * (1 - 1e-9)
    budget_filter.measure(np.array([counts.sum()]), rest, purpose="total")
    return tree


def split_free(counts, feature, budget_filter, share):
    """Measure as shipped; what the first level published is noisy."""
    tree = measure(counts, feature, budget_filter, share)
    first = Level(tree.levels[0].nodes, budget_filter.noisy[0], tree.levels[0].deviation)
    return replace(tree, levels=(first, *tree.levels[1:]))


def with_another_sum(counts, feature, budget_filter, share, *, steps, bound):
    """Measure a tree as shipped, and a sum of other steps that is charged as one of one step."""
    tree = measure_tree(counts, feature, budget_filter, (1 - SUM_PART) * share)
    grid = grid_of(feature)
    cell = int(np.flatnonzero(counts[: grid.cells])[-1]) if counts[: grid.cells].any() else 1
    bound = cell if bound is None else bound
    total = steps_of(grid, 0, max(bound, 1), steps) @ counts[: grid.cells]
    noisy, deviation = budget_filter.measure_sums(
        np.array([total]), SUM_PART * share, largest_sum=1, largest_square=1, features=(0,)
    )
    sums = Level(np.array([0, bound, 1, steps]), noisy, deviation)
    return replace(tree, levels=(*tree.levels, sums))


def sum_not_clipped(counts, feature, budget_filter, share):
    return with_another_sum(counts, feature, budget_filter, share, steps=2, bound=20)


def sum_clipped_at_the_largest(counts, feature, budget_filter, share):
    return with_another_sum(counts, feature, budget_filter, share, steps=1, bound=None)


def sum_not_charged(counts, feature, budget_filter, share):
    tree = measure(counts, feature, budget_filter, share)
    event = budget_filter._events.pop()
    assert isinstance(event, NoisySums | NoisyCounts)
    return tree


def clipped_to_the_largest(schema, trees, counts):
    settled = settled_by_tree(schema, trees, counts)
    feature = schema.features[0]
    edges = settled.schema[feature.name].edges
    occupied = np.flatnonzero(counts)
    top = edges[-1] + (float(occupied[-1]) if len(occupied) else 0.0)
    changed = replace(settled.schema.columns[0], edges=(*edges[:-1], top))
    return replace(settled, schema=replace(settled.schema, columns=(changed,)))


@pytest.mark.parametrize("case", [CASES[0], CASES[1], CASES[2]], ids=lambda case: case.name)
@pytest.mark.parametrize(
    "twin",
    [
        {"measure": split_by_true_counts},
        {"measure": empty_octaves_left_out},
        {"measure": level_not_charged},
        {"measure": sum_not_clipped},
        {"measure": sum_clipped_at_the_largest},
        {"measure": sum_not_charged},
        {"settle": clipped_to_the_largest},
    ],
    ids=lambda twin: next(iter(twin.values())).__name__,
)
def test_broken_twins_are_found(case, twin):
    assert not audit_paths(replace(case, **twin)).holds(case.stated)


def test_the_command_audits_numbers():
    findings = list(audit(NUMBERS))
    assert [finding.name for finding in findings] == [case.name for case in CASES]
    assert all(finding.holds for finding in findings)
