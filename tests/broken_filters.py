"""Broken twins of the filter that measures numbers and dates, and of what looks through it."""

from dataclasses import replace

import numpy as np

from pegsynth.auditing.measured_codecs import measured_in_few_steps as measure
from pegsynth.codec.tree import Level


class Looking:
    """A filter that shows the measurement one thing and publishes another."""

    def __init__(self, budget_filter):
        self._filter = budget_filter
        self.route = budget_filter.route
        self.deviation = budget_filter.deviation
        self.noisy = []

    def measure(self, counts, share, **about):
        noisy, deviation = self._filter.measure(counts, share, **about)
        self.noisy.append(noisy)
        return counts, deviation

    def measure_sums(self, sums, share, **about):
        noisy, deviation = self._filter.measure_sums(sums, share, **about)
        self.noisy.append(noisy)
        return noisy, deviation


def split_by_true_counts(counts, feature, budget_filter, share):
    looking = Looking(budget_filter)
    tree = measure(counts, feature, looking, share)
    noisy = iter(looking.noisy)
    levels = tuple(
        Level(each.nodes, next(noisy), each.deviation) if len(each.nodes) else each
        for each in tree.levels
    )
    return replace(tree, levels=levels)


class Skipping(Looking):
    """A filter that leaves out what is empty."""

    def measure(self, counts, share, **about):
        seen = np.flatnonzero(counts > 0)
        noisy = np.zeros_like(counts)
        if len(seen):
            noisy[seen], deviation = self._filter.measure(counts[seen], share, **about)
            return noisy, deviation
        return noisy, self.deviation(share)
