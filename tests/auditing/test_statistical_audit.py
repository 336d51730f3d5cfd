"""The statistical audit: sound samplers pass, broken ones are proved wrong.

False alarm rate of a sound sampler: 0.1 % per bound by construction; at the claims used
here the proved epsilon lies far below the claim, so the real rate is much smaller. With so
many releases the chance that a sound `pegs-rs` proves less than 0.3 is below 1e-9.
"""

from dataclasses import replace

import numpy as np
import pytest

from pegsynth.auditing.statistical import clopper_pearson, lower_bound, trial

RELEASES = 100_000


@pytest.mark.parametrize("method", ["pegs", "pegs-rs", "pegs-capped"])
def test_sound_samplers_stay_below_their_claim(method):
    each = trial(method)
    assert 0.3 < lower_bound(each, RELEASES) < each.claim


def test_a_forgotten_reset_is_proved():
    each = trial("pegs-rs", rows=6, numerator=1, scale=8)
    assert lower_bound(each, RELEASES) < each.claim
    assert lower_bound(replace(each, limit=0), RELEASES) > each.claim


def test_a_forgotten_cap_is_proved():
    each = trial("pegs-capped", rows=8, visits=1, numerator=1, scale=8)
    assert lower_bound(replace(each, limit=0), RELEASES) > each.claim


def test_an_alpha_far_too_small_is_proved():
    each = trial("pegs-rs", rows=1, numerator=8, scale=4)
    assert lower_bound(replace(each, numerator=1, scale=8), RELEASES) > each.claim


def test_clopper_pearson_against_the_binomial_itself():
    from scipy.stats import binom

    low, high = clopper_pearson(7, 50)
    assert binom.sf(6, 50, low) == pytest.approx(0.0005)
    assert binom.cdf(7, 50, high) == pytest.approx(0.0005)
    assert clopper_pearson(0, 10)[0] == 0
    assert clopper_pearson(10, 10)[1] == 1


def test_intervals_cover_as_often_as_they_say():
    generator = np.random.default_rng(1)
    hits = generator.binomial(200, 0.1, size=2000)
    missed = sum(not low <= 0.1 <= high for low, high in (clopper_pearson(h, 200) for h in hits))
    assert missed <= 12
