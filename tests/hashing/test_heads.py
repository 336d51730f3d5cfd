"""Which features become heads: from the schema alone, or from scores."""

import numpy as np
import pytest

from pegsynth.errors import ParameterError
from pegsynth.methods.gibbs.order import heads_by_score, public_heads
from pegsynth.schema import Feature, Schema


def feature(name, *heads):
    return Feature(name, categories=("x", "y"), heads=heads)


SCHEMA = Schema(
    (
        Feature("id", role="identifier"),
        feature("a"),
        feature("b", "d", "a"),
        feature("c", "d"),
        feature("d"),
    )
)


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (0, ((), (), (), ())),
        (1, ((1,), (3,), (3,), (0,))),
        (2, ((1, 2), (3, 0), (3, 0), (0, 1))),
        (3, ((1, 2, 3), (3, 0, 2), (3, 0, 1), (0, 1, 2))),
    ],
)
def test_public_heads_follow_the_schema_then_its_order(heads, expected):
    assert public_heads(SCHEMA, heads) == expected


SCORES = np.array(
    [
        [9.0, 0.5, 0.5, 0.7],
        [0.5, 0.0, 0.0, 0.0],
        [0.5, 0.0, 0.0, 0.1],
        [0.7, 0.0, 0.1, 9.0],
    ]
)


def test_scores_rank_the_others_and_ties_follow_schema_order():
    assert heads_by_score(SCORES, 3) == ((3, 1, 2), (0, 2, 3), (0, 3, 1), (0, 2, 1))
    assert heads_by_score(SCORES, 1) == ((3,), (0,), (0,), (0,))
    assert heads_by_score(np.zeros((3, 3)), 2) == ((1, 2), (0, 2), (0, 1))


@pytest.mark.parametrize("heads", [-1, 4])
def test_a_number_of_heads_out_of_range_is_refused(heads):
    with pytest.raises(ParameterError, match=f"--heads {heads}.*between 0 and 3"):
        public_heads(SCHEMA, heads)
    with pytest.raises(ParameterError, match=f"--heads {heads}.*between 0 and 3"):
        heads_by_score(SCORES, heads)


def test_one_feature_has_no_heads():
    assert public_heads(Schema((feature("a"),)), 0) == ((),)
    assert heads_by_score(np.zeros((1, 1)), 0) == ((),)
