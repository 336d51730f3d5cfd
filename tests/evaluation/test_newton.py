import numpy as np
import pytest

from pegsynth.inference.newton import Rows, maximise, rank_of, starts_of
from pegsynth.kernels.binomial import add_derivatives, squared_deviation

SIZES = (3, 4, 2)


def drawn(rows=200, seed=1):
    rng = np.random.default_rng(seed)
    columns = np.stack([rng.integers(0, size, rows) for size in SIZES]).astype(np.uint8)
    return columns, rng.integers(1, 4, rows).astype(float), (rng.random(rows) < 0.4).astype(float)


def one_hot(columns):
    blocks = [np.eye(size)[column] for size, column in zip(SIZES, columns, strict=True)]
    return np.column_stack([*blocks, np.ones(columns.shape[1])])


def test_derivatives_equal_those_of_the_full_matrix():
    columns, counts, responses = drawn()
    scores = np.random.default_rng(2).normal(0, 2, sum(SIZES) + 1)
    gradient, upper = np.zeros(len(scores)), np.zeros((len(scores), len(scores)))
    likelihood = add_derivatives(
        columns, counts, responses, starts_of(SIZES), scores[:-1], scores[-1], gradient, upper
    )
    matrix = one_hot(columns)
    chances = 1 / (1 + np.exp(-matrix @ scores))
    np.testing.assert_allclose(gradient, matrix.T @ (counts * (responses - chances)))
    information = matrix.T @ ((counts * chances * (1 - chances))[:, None] * matrix)
    np.testing.assert_allclose(upper + np.triu(upper, 1).T, information, atol=1e-12)
    logs = responses * np.log(chances) + (1 - responses) * np.log1p(-chances)
    assert likelihood == pytest.approx(np.sum(counts * logs))
    squares = squared_deviation(columns, starts_of(SIZES), scores[:-1], scores[-1], 0.3)
    assert squares == pytest.approx(np.sum((chances - 0.3) ** 2))


def test_far_scores_do_not_overflow():
    columns, counts, responses = drawn(rows=5)
    scores = np.full(sum(SIZES), 400.0)
    gradient, upper = np.zeros(len(scores) + 1), np.zeros((len(scores) + 1, len(scores) + 1))
    starts = starts_of(SIZES)
    value = add_derivatives(columns, counts, responses, starts, scores, 0.0, gradient, upper)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_the_maximum_has_no_slope_and_drops_what_depends(threads):
    columns, counts, responses = drawn()
    parts = [Rows(columns, counts, responses)]
    found = maximise(parts, SIZES, threads=threads)
    assert found.settled
    full = maximise(parts, SIZES, np.eye(sum(SIZES)), threads=threads)
    np.testing.assert_allclose(found.scores, full.scores)
    assert found.rank == rank_of(parts, SIZES) == 1 + 2 + 3 + 1
    matrix = one_hot(columns)
    chances = 1 / (1 + np.exp(-matrix @ found.scores))
    slope = matrix.T @ (counts * (responses - chances))
    np.testing.assert_allclose(slope, 0, atol=1e-6)


def test_parts_and_counts_are_as_good_as_rows():
    columns, counts, responses = drawn()
    repeated = np.repeat(np.arange(len(counts)), counts.astype(int))
    rows = Rows(columns[:, repeated], np.ones(len(repeated)), responses[repeated])
    halves = [
        Rows(columns[:, cut], counts[cut], responses[cut])
        for cut in (slice(0, 90), slice(90, None))
    ]
    model = np.eye(sum(SIZES))
    whole, parts = maximise([rows], SIZES, model), maximise(halves, SIZES, model)
    np.testing.assert_allclose(whole.scores, parts.scores, atol=1e-7)
