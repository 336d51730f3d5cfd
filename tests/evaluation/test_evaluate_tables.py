import tracemalloc
from itertools import combinations, permutations

import distance_twins as twins
import numpy as np
import pytest

from checks.bench.distances import tvd1, tvd2, tvd3
from pegsynth.codec import tabulation
from pegsynth.errors import DataError, ParameterError
from pegsynth.evaluation import Metrics, evaluate_codes
from pegsynth.evaluation.records import SUMMARY_KEYS
from pegsynth.evaluation.utility.distances import MOST_TRIPLES, triples
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema

SIZES = (2, 5, 3, 7)


def make_schema(sizes=SIZES, quasi=(0, 2)):
    return Schema(
        tuple(
            Feature(
                f"f{i}",
                categories=tuple(f"c{c}" for c in range(size)),
                role="quasi-identifier" if i in quasi else "other",
                label=f"feature {i}",
            )
            for i, size in enumerate(sizes)
        )
    )


def codes(rows, seed, sizes=SIZES):
    rng = np.random.default_rng(seed)
    start = rng.random(rows)
    skewed = [np.minimum(rng.random(rows), start) ** 2 * size for size in sizes]
    return np.stack(skewed, axis=1).astype(np.uint8)


@pytest.fixture(scope="module")
def compared():
    original, synthetic = codes(120, 1), codes(37, 2)
    return original, synthetic, evaluate_codes(original, [synthetic], make_schema())


def test_every_figure_equals_its_twin(compared):
    original, synthetic, metrics = compared
    rows, others = original.tolist(), synthetic.tolist()
    for i in range(4):
        expected = twins.total_variation(rows, others, [i])
        assert metrics.record("tvd1", f"f{i}").value == pytest.approx(expected)
        expected = twins.marginal(rows, others, i)
        assert metrics.record("marginal_distance", f"f{i}").value == pytest.approx(expected)
    for i, j in combinations(range(4), 2):
        expected = twins.total_variation(rows, others, [i, j])
        assert metrics.record("tvd2", f"f{i}, f{j}").value == pytest.approx(expected)
    for i, j in permutations(range(4), 2):
        expected = twins.conditional(rows, others, i, j, SIZES)
        record = metrics.record("conditional_distance", f"f{i} | f{j}")
        assert record.value == pytest.approx(expected)
    for three in combinations(range(4), 3):
        expected = twins.total_variation(rows, others, three)
        name = ", ".join(f"f{i}" for i in three)
        assert metrics.record("tvd3", name).value == pytest.approx(expected)


def test_the_summary_is_the_mean_of_the_records(compared):
    _, _, metrics = compared
    assert tuple(metrics.summary) == SUMMARY_KEYS
    assert metrics.summary["regression_distance"] is None
    for name in ("tvd1", "tvd2", "tvd3", "marginal_distance", "conditional_distance"):
        values = [r.value for r in metrics.records if r.name == name and r.subject]
        assert metrics.summary[name] == pytest.approx(np.mean(values))
        assert metrics.record(name).n == 37
        assert metrics.record(name).better == "lower"
        assert metrics.record(name).note


def test_bare_distances_agree_with_the_summary(compared):
    original, synthetic, metrics = compared
    for function in (tvd1, tvd2, tvd3):
        value = function(original, synthetic, SIZES)
        assert value == pytest.approx(metrics.summary[function.__name__])


def test_sparse_counting_gives_the_same(compared, monkeypatch):
    original, synthetic, metrics = compared
    monkeypatch.setattr(tabulation, "DENSE_CELLS", 1)
    again = evaluate_codes(original, [synthetic], make_schema(), threads=1)
    assert again.to_json() == metrics.to_json()


def test_identical_tables_are_at_zero():
    table = codes(200, 5)
    metrics = evaluate_codes(table, [table[::-1]], make_schema())
    for name, value in metrics.summary.items():
        if name not in ("regression_distance", "uniqueness"):
            assert value == pytest.approx(0, abs=1e-15)
    record = metrics.record("uniqueness")
    assert record.value == record.baseline


def test_a_bootstrap_is_at_its_floor():
    # Means over several tables and three seeded bootstraps: within a quarter of the floor.
    original = codes(20_000, 6, (6, 18, 3, 4, 7, 16))
    rng = np.random.default_rng(7)
    again = [original[rng.integers(0, len(original), 5_000)] for _ in range(3)]
    metrics = evaluate_codes(original, again, make_schema((6, 18, 3, 4, 7, 16)))
    for name in ("tvd1", "tvd2", "tvd3", "marginal_distance", "conditional_distance"):
        record = metrics.record(name)
        assert record.value == pytest.approx(record.baseline, rel=0.25), name
        assert record.low <= record.value <= record.high


def test_independent_columns_are_far_above_the_floor():
    original = codes(5_000, 8)
    rng = np.random.default_rng(9)
    apart = np.stack([rng.permutation(column) for column in original.T], axis=1)
    record = evaluate_codes(original, [apart], make_schema()).record("tvd2")
    assert record.value > 3 * record.baseline


def test_several_tables_give_mean_and_range():
    original, parts = codes(300, 1), [codes(50, 2), codes(80, 3)]
    both = evaluate_codes(original, parts, make_schema())
    single = [evaluate_codes(original, [part], make_schema()) for part in parts]
    for record in both.records:
        if record.value is None:
            continue
        alone = [m.record(record.name, record.subject) for m in single]
        values = [r.value for r in alone]
        assert record.value == pytest.approx(np.mean(values))
        assert record.baseline == pytest.approx(np.mean([r.baseline for r in alone]))
        if record.name == "uniqueness":
            # It has an interval of its own, which is narrower for several tables.
            assert record.high - record.low < min(each.high - each.low for each in alone)
            continue
        assert (record.low, record.high) == pytest.approx((min(values), max(values)))
        assert alone[0].low is None
    assert both.records[0].n == 50


def test_uniqueness_by_hand():
    original = np.array([[0, 0], [0, 1], [1, 1], [1, 1]], dtype=np.uint8)
    synthetic = np.array([[0, 0], [1, 0]], dtype=np.uint8)
    record = evaluate_codes(original, [synthetic], make_schema((2, 2), (0, 1))).record("uniqueness")
    assert record.value == 1.0
    assert record.baseline == pytest.approx(5 / 6)  # 1 of 6 pairs of rows is alike
    assert "f0, f1" in record.note


def test_what_cannot_be_computed_is_none():
    single = evaluate_codes(codes(9, 1, (3,)), [codes(5, 2, (3,))], make_schema((3,), ()))
    for name in ("tvd2", "tvd3", "conditional_distance", "uniqueness"):
        assert single.summary[name] is None
        assert single.record(name).note.startswith("not computed")


def test_marginals_hold_every_category(compared):
    original, synthetic, metrics = compared
    marginal = metrics.marginals[3]
    assert (marginal.feature, marginal.label) == ("f3", "feature 3")
    assert marginal.categories == tuple(f"c{c}" for c in range(7))
    assert marginal.original == tuple(np.bincount(original[:, 3], minlength=7) / 120)
    assert marginal.synthetic == tuple(np.bincount(synthetic[:, 3], minlength=7) / 37)


def test_json_round_trip(compared):
    metrics = compared[2]
    assert Metrics.from_json(metrics.to_json()) == metrics


def test_threads_do_not_matter(compared):
    original, synthetic, metrics = compared
    assert evaluate_codes(original, [synthetic], make_schema(), threads=3) == metrics


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((0, 4), np.uint8), "no rows"),
        (np.zeros((3, 2), np.uint8), "2 columns"),
        (np.zeros((3, 4)), "integer codes"),
        (np.full((3, 4), 2, np.uint8), "column 1 holds a code outside"),
        (np.full((3, 4), -1), "outside"),
    ],
)
def test_tables_that_do_not_fit_the_schema(table, message):
    with pytest.raises(DataError, match=message):
        evaluate_codes(codes(9, 1), [table], make_schema())


def test_bad_parameters():
    with pytest.raises(ParameterError, match="no synthetic table"):
        evaluate_codes(codes(9, 1), [], make_schema())
    with pytest.raises(ParameterError, match="threads"):
        evaluate_codes(codes(9, 1), [codes(9, 1)], make_schema(), threads=0)


def test_triples_are_fixed_and_public():
    assert triples([2] * 4) == list(combinations(range(4), 3))
    for features in (10, 13, 300):
        chosen = triples([5] * features)
        assert len(set(chosen)) == MOST_TRIPLES
        assert all(a < b < c < features for a, b, c in chosen)
    assert triples([5] * 13) == triples([9] * 13)
    assert triples([5] * 13)[:3] == [(0, 1, 8), (0, 1, 9), (0, 1, 12)]
    assert len({i for triple in triples([5] * 13) for i in triple}) == 13


def test_triples_too_large_to_number_are_left_out():
    assert triples([1 << 22, 1 << 22, 1 << 22, 2]) == [(0, 1, 3), (0, 2, 3), (1, 2, 3)]


def test_many_categories_take_memory_by_rows():
    sizes, rows = (50_000, 40_000, 3), 20_000
    rng = np.random.default_rng(1)
    tables = [np.stack([rng.integers(0, c, rows) for c in sizes], 1) for _ in range(2)]
    tracemalloc.start()
    metrics = evaluate_codes(
        tables[0].astype(np.uint16), [tables[1].astype(np.uint16)], make_schema(sizes, (0, 1, 2))
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # the two-way table alone would take 16 GB
    assert 0.9 < metrics.record("tvd2", "f0, f1").value <= 1


def test_group_sizes_beyond_63_bits():
    columns = np.array([[1, 1, 2], [5, 5, 5], [7, 7, 7], [1, 1, 1]], dtype=np.uint64)
    found = tabulation.group_sizes(columns.astype(np.int64), [1 << 20] * 4)
    assert sorted(found.tolist()) == [1, 2]
