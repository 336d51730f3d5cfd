"""Results of docs/maths.md that no release relies on, and ideas that it refutes, enumerated.

R19 and R20 are proved and left out of the samplers; R22 is why keys have no tail; R25 is behind
levels, and is checked here for any kernel. Everything is exact or a sum over all outcomes, so
a failure is a defect and never chance.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest

from pegsynth.privacy.conversion import rho_at


def tables(categories, most):
    return [n for n in product(range(most + 1), repeat=categories) if sum(n) <= most]


def law(counts, alpha, kernel=None):
    """Return the probabilities of a draw, the counts sent through a kernel."""
    c = len(counts)
    kernel = kernel or [[Fraction(int(i == j)) for j in range(c)] for i in range(c)]
    total = sum(counts) + sum(alpha)
    return [
        (sum((counts[i] * kernel[i][j] for i in range(c)), Fraction(0)) + alpha[j]) / total
        for j in range(c)
    ]


def more(counts, place):
    return tuple(n + (i == place) for i, n in enumerate(counts))


def log_range(first, second):
    ratios = [math.log(a / b) for a, b in zip(first, second, strict=True)]
    return max(ratios), min(ratios)


def box(categories, width):
    """Return a public kernel that spreads a category over its neighbours."""
    lines = []
    for i in range(categories):
        start = min(max(i - width // 2, 0), categories - width)
        lines.append([Fraction(int(start <= j < start + width), width) for j in range(categories)])
    return lines


# R25


def worst_range(alpha, kernel, most=4):
    c = len(alpha)
    found = 0.0
    for counts in tables(c, most):
        for place in range(c):
            high, low = log_range(
                law(more(counts, place), alpha, kernel), law(counts, alpha, kernel)
            )
            found = max(found, high - low)
            assert low <= 0 <= high or math.isclose(high, low)
    return found


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_kernel_draw_costs_what_its_largest_entry_says(width):
    kernel = box(4, width)
    alpha = [Fraction(2, width)] * 4
    claim = math.log1p(max(k / a for line in kernel for k, a in zip(line, alpha, strict=True)))
    assert worst_range(alpha, kernel) == pytest.approx(claim)


def test_levels_split_by_shares_are_a_kernel_that_keeps_the_marginal():
    shares = [Fraction(1, 2), Fraction(1, 20), Fraction(3, 20), Fraction(3, 10)]
    level = [0, 1, 1, 2]
    sums = [sum(s for s, own in zip(shares, level, strict=True) if own == k) for k in range(3)]
    kernel = [
        [shares[j] / sums[level[j]] if level[i] == level[j] else Fraction(0) for j in range(4)]
        for i in range(4)
    ]
    kept = [sum(shares[i] * kernel[i][j] for i in range(4)) for j in range(4)]
    assert kept == shares
    smallest = Fraction(3, 2)
    alpha = [smallest / min(sums) * s for s in shares]
    claim = math.log1p(1 / smallest)
    assert worst_range(alpha, kernel) == pytest.approx(claim)


def test_a_category_that_keeps_its_mass_while_all_alphas_shrink_is_caught():
    kernel = box(4, 2)
    kernel[3] = [Fraction(0), Fraction(0), Fraction(0), Fraction(1)]
    alpha = [Fraction(1)] * 4
    claim = math.log1p(Fraction(1, 2))
    assert worst_range(alpha, kernel) > claim + 0.2


# R20


def renyi(first, second, order):
    total = sum(
        float(a) ** order * float(b) ** (1 - order) for a, b in zip(first, second, strict=True)
    )
    return math.log(total) / (order - 1)


def truncated(alpha, order):
    whole = float(sum(alpha))
    return max(
        float(a) / whole * math.log1p(1 / float(a)) ** 2 * (1 + 1 / float(a)) ** order
        for a in alpha
    )


PRIORS = [
    (Fraction(1, 2), Fraction(1, 2), Fraction(3)),
    (Fraction(2), Fraction(1), Fraction(4), Fraction(1)),
    (Fraction(1), Fraction(1, 4), Fraction(1, 8)),
    (Fraction(5), Fraction(5)),
]


@pytest.mark.parametrize("alpha", PRIORS)
@pytest.mark.parametrize("order", [2.0, 3.5, 8.0])
def test_the_truncated_price_holds_on_every_table_in_both_directions(alpha, order):
    eta = math.log1p(1 / float(min(alpha)))
    bound = order / 2 * min(eta**2 / 4, truncated(alpha, order))
    for counts in tables(len(alpha), 4):
        for place in range(len(alpha)):
            pair = law(more(counts, place), alpha), law(counts, alpha)
            for first, second in (pair, pair[::-1]):
                assert renyi(first, second, order) <= bound * (1 + 1e-12)


def test_the_empty_table_is_not_always_the_worst():
    """The broken twin of R20 looks at N = 0 alone."""
    alpha, order, found = (Fraction(1, 8), Fraction(1, 64)), 8.0, {}
    for counts in tables(2, 4):
        for place in range(2):
            pair = law(more(counts, place), alpha), law(counts, alpha)
            worst = max(renyi(*pair, order), renyi(*pair[::-1], order))
            found[counts] = max(found.get(counts, 0.0), worst)
    assert max(found.values()) > found[0, 0] * 1.5


# R19


def laplace(scale, most=200):
    weight = np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    return weight / weight.sum()


def delta_of_known_large(margin, claimed_at, *, scale=2.0, a0=1.0, a1=1e-9, row=9):
    """Return delta at epsilon log(1 + 1/a0) for draws given noisy counts, and the claim for it.

    One cell of interest, all others large: the draw shows it with odds (n + alpha) to a public
    total. y is the noisy count; alpha falls with it.
    """
    noise = laplace(scale)
    size = np.arange(-200, 201)
    worst = 0.0
    for count in range(row):
        excess = 0.0
        for y in range(count - 150, count + 150):
            alpha = max(a0 - max(y - margin, 0), a1)
            with_row = noise[y - count - 1 + 200] if abs(y - count - 1) <= 200 else 0.0
            # The larger table's draw of the cell against e^eps times the smaller one's.
            excess += with_row * max(0.0, 1 - (1 + 1 / a0) * (count + alpha) / (count + 1 + alpha))
        worst = max(worst, excess)
    return worst, float(noise[size > claimed_at].sum())


@pytest.mark.parametrize("margin", [4, 6, 8, 10])
def test_known_large_entries_keep_their_delta_and_the_twin_does_not(margin):
    realised, claimed = delta_of_known_large(margin, margin - 1)
    assert realised <= claimed * (1 + 1e-9)
    # The larger table's noisy count is centred one higher, which the twin forgets.
    realised, claimed = delta_of_known_large(margin, margin)
    assert realised > claimed * 1.5


# R22


@pytest.mark.parametrize("features", [1, 2, 4, 8])
def test_the_parity_of_independent_bits_tells_geometrically_little(features):
    """E(-1)^bit is a product: what a tail of F features tells falls geometrically in F."""
    tilt = Fraction(3, 10)
    one = {0: (1 + tilt) / 2, 1: (1 - tilt) / 2}
    parity = {0: Fraction(0), 1: Fraction(0)}
    for bits in product((0, 1), repeat=features):
        parity[sum(bits) % 2] += math.prod((one[bit] for bit in bits), start=Fraction(1))
    assert parity[0] - parity[1] == tilt**features


def test_rows_that_differ_in_one_feature_share_a_bit_of_the_tail_half_of_the_time():
    from pegsynth.methods.gibbs.spec import tail_codes

    codes = tail_codes((4_000,), 1)
    left, right = codes[::2], codes[1::2]
    assert abs(float(np.mean(left == right)) - 0.5) < 0.05


# Refuted ideas


def test_hashing_protects_no_better_than_a_constant_hash():
    """The loss of one draw tends to eta as rows of other categories fill the entry (R1)."""
    alpha = (Fraction(3), Fraction(3))
    eta = math.log1p(1 / 3)
    losses = []
    for others in (0, 10, 1_000, 10**6):
        high, _ = log_range(law((1, others), alpha), law((0, others), alpha))
        losses.append(high)
    assert losses == sorted(losses)
    assert eta - 1e-6 < losses[-1] < eta


def test_a_secret_hash_protects_no_better_than_a_public_one():
    """A row meets the entry of its own key under every hash, and that path is the worst."""
    alpha = (Fraction(1), Fraction(1))
    hashes = list(product((0, 1), repeat=2))

    def drawn(table, hashing, seed):
        counts = [0, 0]
        for key, value in table:
            counts[value] += hashing[key] == hashing[seed]
        return law(tuple(counts), alpha)[0]

    def ratio(mixture):
        with_row, without = (
            sum(drawn(table, hashing, 0) for hashing in mixture) for table in (((0, 0),), ())
        )
        return with_row / without

    assert ratio(hashes) == ratio([(0, 0)]) == ratio([(0, 1)])


def sampled_law(counts, share, alpha):
    """Return the probability of the first of two categories, rows kept with a public chance."""
    total = 0.0
    for kept in product(*(range(n + 1) for n in counts)):
        ways = math.prod(math.comb(n, k) for n, k in zip(counts, kept, strict=True))
        chance = ways * share ** sum(kept) * (1 - share) ** (sum(counts) - sum(kept))
        total += chance * (kept[0] + alpha) / (sum(kept) + 2 * alpha)
    return total


def sampled_loss(share, alpha):
    found = 0.0
    for counts in tables(2, 6):
        first, second = (sampled_law(n, share, alpha) for n in (counts, more(counts, 0)))
        ratios = second / first, (1 - second) / (1 - first)
        found = max(found, *(abs(math.log(ratio)) for ratio in ratios))
    return found


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_subsampling_before_counting_buys_next_to_nothing(share):
    """The alpha that the same loss needs falls with q, and so do the counts."""
    alpha = 4.0
    allowed, low, high = sampled_loss(1.0, alpha), alpha * share / 4, alpha
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if sampled_loss(share, middle) > allowed else (low, middle)
    whole, sampled = sampled_law((6, 0), 1.0, alpha), sampled_law((6, 0), share, high)
    assert whole < sampled < 1.01 * whole


def test_a_smoothing_kernel_keeps_its_bias_however_many_rows_there_are():
    counts = (0, 10**9, 0, 0)
    smoothed = law(counts, [Fraction(1)] * 4, box(4, 3))
    assert smoothed[1] < Fraction(34, 100)
    assert law(counts, [Fraction(1)] * 4)[1] > Fraction(99, 100)


@pytest.mark.parametrize(("categories", "fan"), [(16, 4), (64, 8), (64, 2)])
def test_a_tree_over_few_categories_is_noisier_than_flat_counts(categories, fan):
    """Variance of a leaf by least squares over the tree; flat counts have 1 at the same rho."""
    lines, width = [], 1
    while width < categories:
        lines += [
            [float(start <= j < start + width) for j in range(categories)]
            for start in range(0, categories, width)
        ]
        width *= fan
    depth = round(math.log(categories, fan))
    design = np.array(lines)
    covariance = depth * np.linalg.inv(design.T @ design)
    assert np.diag(covariance).min() > 1.2


def test_draws_are_no_local_reports_that_shuffling_could_amplify():
    """All outputs of a release depend on the same row: their order tells nothing to begin with."""
    alpha = (Fraction(2), Fraction(2))
    ordered, shuffled = {}, {}
    for counts in ((1, 0), (0, 0)):
        p = law(counts, alpha)
        ordered[counts] = {out: p[out[0]] * p[out[1]] for out in product((0, 1), repeat=2)}
        mixed = {}
        for out, share in ordered[counts].items():
            mixed[tuple(sorted(out))] = mixed.get(tuple(sorted(out)), 0) + share
        shuffled[counts] = mixed
    worst = [
        max(abs(math.log(each[1, 0][o] / each[0, 0][o])) for o in each[0, 0])
        for each in (ordered, shuffled)
    ]
    assert worst[0] == worst[1]


# Gaussian trade-offs


def normal_delta(epsilon, mu):
    """Delta of a continuous Gaussian mechanism of sensitivity mu and variance 1."""
    below = NormalDist().cdf
    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("variance", "times"), [(4, 1.34), (25, 1.06), (400, 1.003)])
def test_discrete_noise_is_not_dominated_by_continuous(variance, times):
    reach = np.arange(-20 * int(variance**0.5) - 20, 20 * int(variance**0.5) + 21)
    law = np.exp(-(reach**2) / (2 * variance))
    law /= law.sum()
    mu = variance**-0.5
    ratios = [
        np.maximum(law[:-1] - math.exp(epsilon) * law[1:], 0).sum() / normal_delta(epsilon, mu)
        for epsilon in np.linspace(4.5, 6, 60) * mu
    ]
    assert max(ratios) > times


def test_a_choice_costs_more_in_gaussian_terms_than_in_rho():
    eta, quantile = 0.1, NormalDist().inv_cdf
    found = []
    for part in np.linspace(0.01, 0.99, 99):
        # Two outcomes whose log-ratios lie eta apart, anywhere around 0.
        up, down = math.exp(part * eta), math.exp(part * eta - eta)
        chance = (1 - down) / (up - down)
        found.append(quantile(up * chance) - quantile(chance))
    assert (max(found) / (eta / 2)) ** 2 == pytest.approx(math.pi / 2, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "gain"), [(0.1, 0.12), (1.0, 0.106), (10.0, 0.084)])
def test_what_the_exact_conversion_of_one_gaussian_would_gain(epsilon, gain):
    low, high = 1e-4, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_delta(epsilon, middle) <= 1e-9 else (low, middle)
    assert low**2 / 2 / float(rho_at(epsilon, delta=1e-9)) - 1 == pytest.approx(gain, abs=0.003)
