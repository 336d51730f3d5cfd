"""What the audit takes for the laws of noise and choices is their probability function.

Exact: bounds are whole numbers, so a failure here is a defect and never chance. Cites R10,
R11 and R15.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from noise_laws import choices, gaussian, laplace
from pegsynth.auditing.exact_laws import choice_law, kernel_answer, noise_probability
from pegsynth.auditing.level_cases import noise_ratio
from pegsynth.errors import ParameterError
from pegsynth.mechanisms.bins import Noise
from pegsynth.privacy import NoisyCounts

LAWS = {
    "laplace": (Noise.laplace(Fraction(7, 2)), laplace(3.5)),
    "gaussian": (Noise.gaussian(Fraction(4)), gaussian(2)),
}


@pytest.mark.parametrize("name", LAWS)
def test_probabilities_of_noise(name):
    noise, expected = LAWS[name]
    for value in range(-7, 8):
        found = noise_probability(noise, value)
        assert found <= expected[value] <= found * (1 + Fraction(1, 2**48))


def test_words_between_two_values_are_left_open():
    noise, _ = LAWS["laplace"]
    edge = noise.cumulated(63)[3]
    found = [kernel_answer(noise, (edge + step) << 1) for step in (-1, 0, 1, 2)]
    assert found == [3, None, None, 4]


def test_a_kernel_that_reads_another_table_is_caught(monkeypatch):
    event = NoisyCounts.laplace(2.25, cells=1, purpose="marginals")
    counts = [np.array([3])], [np.array([4])], [np.array([5])]
    assert abs(noise_ratio(event, *counts)) == pytest.approx(1 / 2.25, rel=1e-12)
    shipped = Noise.tables

    def off_by_some(self, bits=64):
        tables = shipped(self, bits)
        return tables._replace(cumulated=tables.cumulated - np.uint64(3))

    monkeypatch.setattr(Noise, "tables", off_by_some)
    noise_probability.cache_clear()
    try:
        assert noise_ratio(event, *counts) == math.inf
    finally:
        noise_probability.cache_clear()


@pytest.mark.parametrize("value", [0, 200])
def test_only_small_noise_and_its_likely_values_are_audited(value):
    wide = Noise.laplace(Fraction(10**6)) if value == 0 else LAWS["laplace"][0]
    with pytest.raises(ParameterError, match="audit"):
        noise_probability(wide, value)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(8)])
def test_probabilities_of_choices(epsilon):
    scores = [3, -2, 0, 3, 9]
    law = choice_law(scores, epsilon)
    assert sum(law) == 1
    for index, share in choices(scores, epsilon).items():
        assert abs(law[index] / share - 1) < 1e-30
