"""From trees to bins, shapes and values: what is measured is what comes out (R21)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pegsynth.auditing.measured_codecs import exact_counts
from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.codec import Decoder, decode_values, encode, value_decoder
from pegsynth.codec.inside import fit_inside
from pegsynth.codec.measured_numbers import measure, settle
from pegsynth.codec.measured_rows import count_grid
from pegsynth.codec.number_grid import grid_schema
from pegsynth.errors import ParameterError
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.privacy import Allowance
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema
from significance import ALPHA

PAY = Feature("pay", kind="numeric", edges="private", dtype="int64", missing=("", "-9"))
AGE = Feature("age", kind="numeric", edges="private", dtype="int64", lowest=0, highest=120)
SEX = Feature("sex", categories=("f", "m"))


def measured(table, schema, *, amount=10**6, bins=8):
    """Settle a schema by trees with next to no noise."""
    grids = grid_schema(schema)
    counts = count_grid([encode(table, grids)], grids)
    budget_filter = PrivacyFilter(Allowance("zcdp", Fraction(amount)), RandomStream("values"))
    share = 1 / len(grids.names)
    trees = {
        name: measure(counts[name], schema[name], budget_filter, share) for name in grids.names
    }
    return settle(schema, trees, bins)


def table_of(rows=20_000, seed=1):
    generator = np.random.default_rng(seed)
    sex = generator.integers(0, 2, rows)
    age = np.clip(np.floor(generator.normal(45, 20, rows)), 0, 120)
    pay = np.floor(np.exp(7 + 0.02 * age + 0.7 * sex + generator.normal(0, 0.6, rows)))
    pay[generator.random(rows) < 0.4] = 0
    gone = generator.random(rows) < 0.1
    return pl.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "age": age.astype(np.int64),
            "pay": pl.Series([None if g else int(p) for p, g in zip(pay, gone, strict=True)]),
        }
    )


SCHEMA = Schema((SEX, AGE, PAY), reviewed=True)
TABLE = table_of()
SETTLED = measured(TABLE, SCHEMA)
CODES = encode(TABLE, SETTLED.schema)


def distance(first, second):
    return float(stats.ks_2samp(first, second).statistic)


def test_a_settled_schema_has_bins_and_stays_reviewed():
    schema = SETTLED.schema
    assert schema.reviewed
    assert not schema.unsettled
    assert schema["age"].bin_count == 8
    assert schema["pay"].missing == PAY.missing
    assert schema["pay"].edges[0] == 0
    assert schema["pay"].edges[1] > 0
    counts = np.bincount(CODES[:, 1], minlength=8)
    assert counts.max() < 2 * counts.min()


def test_a_frequent_number_has_a_bin_of_its_own():
    shape = SETTLED.shapes["pay"]
    assert shape.shares[0] == pytest.approx(0.4, abs=0.02)
    assert set(shape.values(np.zeros(100, dtype=np.int64), np.linspace(0, 0.999, 100))) == {0.0}


@pytest.mark.parametrize("mode", ["values", "model"])
def test_values_have_the_shape_that_was_measured(mode):
    frame = decode_values(
        CODES, SETTLED.schema, SETTLED.shapes, RandomStream("v"), model=mode == "model"
    )
    assert frame.schema == pl.Schema({"sex": pl.String, "age": pl.Int64, "pay": pl.Int64})
    assert frame["pay"].null_count() == TABLE["pay"].null_count()
    assert (frame["pay"] == 0).sum() == (TABLE["pay"] == 0).sum()
    for name in ("age", "pay"):
        assert distance(frame[name].drop_nulls(), TABLE[name].drop_nulls()) < 0.02
        bins = encode(frame, SETTLED.schema)
    assert (bins == CODES).all()


def test_the_model_keeps_what_numbers_have_to_do_with_each_other():
    def slopes(frame):
        kept = frame.filter(pl.col("pay") > 0)
        design = np.column_stack(
            [np.ones(len(kept)), kept["age"].to_numpy(), (kept["sex"] == "m").to_numpy()]
        )
        return np.linalg.lstsq(design, np.log(kept["pay"].to_numpy()), rcond=None)[0][1:]

    few = measured(TABLE, SCHEMA, bins=4)
    codes = encode(TABLE, few.schema)
    wanted = slopes(TABLE)
    errors = {
        mode: np.abs(
            slopes(
                decode_values(
                    codes, few.schema, few.shapes, RandomStream("m"), model=mode == "model"
                )
            )
            / wanted
            - 1
        ).max()
        for mode in ("values", "model")
    }
    assert errors["model"] < 0.08
    assert errors["model"] < errors["values"] / 2


def test_rows_are_decoded_by_their_own_words():
    decoder = value_decoder(SETTLED.schema, SETTLED.shapes, CODES, RandomStream("a"))
    assert decoder._model is not None
    words = RandomStream("b").substream().take(decoder.words_needed(1000))
    whole = decoder.decode(CODES[:1000], words)
    cut = decoder.words_needed(300)
    parts = [decoder.decode(CODES[:300], words[:cut]), decoder.decode(CODES[300:1000], words[cut:])]
    assert whole.equals(pl.concat(parts))
    with pytest.raises(ParameterError, match="random words"):
        decoder.decode(CODES[:10], words[:10])


def test_a_seed_decides_everything():
    first, second, other = (
        decode_values(CODES[:500], SETTLED.schema, SETTLED.shapes, RandomStream(seed))
        for seed in ("s", "s", "t")
    )
    assert first.equals(second)
    assert not first.equals(other)


def test_ranks_are_uniform_inside_bins():
    model = fit_inside(CODES, SETTLED.schema, SETTLED.shapes, RandomStream("r"))
    words = RandomStream("w").substream()
    lines = words.take(len(CODES) * model.words_per_row).reshape(len(CODES), -1)
    ranks = model.ranks(CODES, lines, words.take(2 * len(CODES)).reshape(-1, 2))
    inside = ranks[CODES[:, 2] == 3, 1]
    assert stats.kstest(inside, "uniform").pvalue > ALPHA
    # The twin: ranks that are squared are no longer uniform.
    assert stats.kstest(inside**2, "uniform").pvalue < ALPHA


def test_as_many_rows_as_were_fitted_fill_their_bins_evenly():
    """The mean inside a bin is that of its shape but for 1 part in its rows, and for no draw."""
    model = fit_inside(CODES, SETTLED.schema, SETTLED.shapes, RandomStream("r"))
    words = RandomStream("w").substream()

    def ranks(codes):
        lines = words.take(len(codes) * model.words_per_row).reshape(len(codes), -1)
        return model.ranks(codes, lines, words.take(2 * len(codes)).reshape(-1, 2))

    here = CODES[:, 2] == 3
    inside = np.sort(ranks(CODES)[here, 1])
    assert (np.floor(inside * len(inside)) == np.arange(len(inside))).all()
    # Few rows are ranked one by one among those that were fitted, and do not.
    few = CODES[: len(CODES) // 3]
    inside = np.sort(ranks(few)[few[:, 2] == 3, 1])
    assert (np.floor(inside * len(inside)) != np.arange(len(inside))).any()


def test_numbers_alone_and_rows_without_any_number_are_decoded():
    alone = Schema((PAY,))
    settled = measured(TABLE.select("pay"), alone, bins=5)
    codes = encode(TABLE.select("pay"), settled.schema)
    frame = decode_values(codes, settled.schema, settled.shapes, RandomStream("n"))
    assert distance(frame["pay"].drop_nulls(), TABLE["pay"].drop_nulls()) < 0.02
    gone = np.full((5, 1), settled.schema["pay"].missing_code, dtype=np.uint8)
    assert (
        decode_values(gone, settled.schema, settled.shapes, RandomStream())["pay"].null_count() == 5
    )
    none = decode_values(gone[:0], settled.schema, settled.shapes, RandomStream())
    assert none.height == 0


def test_numbers_that_mean_missing_are_never_drawn():
    schema = Schema((Feature("x", kind="numeric", edges="private", dtype="int64", missing=("5",)),))
    table = pl.DataFrame({"x": [4] * 500 + [5] * 500 + [6] * 500})
    settled = measured(table, schema, bins=2)
    frame = decode_values(
        encode(table, settled.schema), settled.schema, settled.shapes, RandomStream("t")
    )
    assert set(frame["x"].drop_nulls()) == {4, 6}
    assert frame["x"].null_count() == 500


def test_decimals_stay_as_many_as_they_are():
    money = Feature("x", kind="numeric", edges="private", dtype="double", decimals=2, lowest=0)
    values = np.round(np.random.default_rng(2).lognormal(3, 1, 5000), 2)
    table = pl.DataFrame({"x": values})
    settled = measured(table, Schema((money,)))
    frame = decode_values(
        encode(table, settled.schema), settled.schema, settled.shapes, RandomStream("d")
    )
    drawn = frame["x"].to_numpy()
    assert (drawn == np.round(drawn, 2)).all()
    assert distance(drawn, values) < 0.03


def test_decimals_hold_in_public_bins_too():
    feature = Feature("x", kind="numeric", edges=(0.005, 1.0, 2.0), decimals=1)
    words = RandomStream("p").substream().take(1000)
    drawn = Decoder(Schema((feature,))).decode(np.ones((1000, 1), dtype=np.uint8), words)["x"]
    assert set(np.round(drawn.to_numpy() * 10, 9)) == set(range(10, 20))


def test_a_shape_inside_public_edges_keeps_the_edges():
    feature = Feature("x", kind="numeric", edges=(0, 10, 1000), inside="measured", dtype="int64")
    table = pl.DataFrame({"x": [3] * 400 + [500] * 300 + [501] * 300})
    settled = measured(table, Schema((feature,)))
    assert settled.schema["x"].edges == (0, 10, 1000)
    frame = decode_values(
        encode(table, settled.schema), settled.schema, settled.shapes, RandomStream("e")
    )
    assert (frame["x"] == 3).sum() == 400
    assert frame.filter(pl.col("x") > 10)["x"].is_between(496, 504).mean() > 0.95


def test_heaps_stay_heaps():
    generator = np.random.default_rng(4)
    pay = np.floor(generator.lognormal(9, 0.8, 20_000))
    heaped = generator.random(20_000) < 0.5
    table = pl.DataFrame({"x": np.where(heaped, np.round(pay, -3), pay).astype(np.int64)})
    schema = Schema((Feature("x", kind="numeric", edges="private", dtype="int64"),))
    settled = measured(table, schema)
    frame = decode_values(
        encode(table, settled.schema), settled.schema, settled.shapes, RandomStream("h")
    )
    shares = [(each["x"] % 1000 == 0).mean() for each in (table, frame)]
    assert shares[1] == pytest.approx(shares[0], abs=0.05)


def test_uniform_is_uniform():
    schema = SCHEMA.with_feature("pay", inside="uniform")
    settled = measured(TABLE, schema)
    shape, edges = settled.shapes["pay"], settled.schema["pay"].edges
    assert len(shape.low) == len(edges) - 1
    middle = shape.values(np.array([3]), np.array([0.5]))
    assert middle[0] == pytest.approx((edges[3] + edges[4]) / 2, rel=0.01)


def test_rules_on_what_is_known_survive():
    rule = Rule.forbid({"sex": "m", "pay": "(missing)"})
    settled = measured(TABLE, Schema((SEX, AGE, PAY), rules=(rule,)), bins=5)
    code = settled.schema["pay"].missing_code
    assert settled.schema.rules[0].forbidden[1] == (2, frozenset({code}))


def test_a_feature_that_was_not_measured_is_named():
    with pytest.raises(ParameterError, match="'age'"):
        settle(SCHEMA, {}, 8)


MASSES = st.lists(st.floats(0, 100), min_size=2, max_size=12).filter(lambda line: sum(line) > 1)


@settings(deadline=None)
@given(MASSES, st.data())
def test_quantiles_go_up_and_stay_in_their_bin(masses, data):
    cells = np.arange(len(masses) + 1, dtype=np.float64)
    inner = data.draw(st.sets(st.integers(1, len(masses) - 1), max_size=4))
    edges = [0.0, *sorted(map(float, inner)), float(len(masses))]
    shape = Shape.of(edges, cells, np.array(masses), data.draw(st.sampled_from([0.0, 1.0])))
    assert shape.shares.sum() == pytest.approx(1.0)
    ranks = np.linspace(0, 1 - 2**-53, 40)
    for each in range(len(edges) - 1):
        values = shape.values(np.full(40, each), ranks)
        assert (np.diff(values) >= 0).all()
        assert (values >= edges[each]).all()
        assert (values < edges[each + 1]).all()


@settings(deadline=None)
@given(st.lists(st.integers(-200, 200), min_size=1, max_size=80), st.integers(2, 10))
def test_edges_are_strict_and_no_more_than_asked_for(values, bins):
    feature = Feature("x", kind="numeric", edges="private", dtype="int64", bins=bins)
    budget_filter = PrivacyFilter(Allowance("zcdp", Fraction(10**6)), RandomStream("edges"))
    tree = measure(exact_counts(feature, values), feature, budget_filter, 1.0)
    settled = settle(Schema((feature,)), {"x": tree}, 99)
    edges = settled.schema["x"].edges
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= bins + 1
    assert edges[0] <= min(values)
    assert max(values) <= edges[-1]
