"""The verdict on a risk is silent where even real rows would not stand out by it."""

from __future__ import annotations

from collections import Counter
from itertools import product

import msgspec
import numpy as np
import polars as pl
import pytest
import risk_twins as twins
from scipy import stats

import pegsynth
from lanes import longer
from pegsynth.evaluation import Metrics
from pegsynth.evaluation.risk.intruder import NO_MORE, NOBODY, PARTS, cells_of, guess
from pegsynth.evaluation.risk.membership import DENSITY, DISTANCE, copy_area
from pegsynth.evaluation.risk.reappearance import (
    ALL_FEATURES,
    TOO_FEW,
    crowded,
    expectation,
    population_expectation,
)
from pegsynth.evaluation.risk.risk_tables import NO_POWER, SEED, risk_tables
from pegsynth.evaluation.utility.distances import evaluate_codes
from pegsynth.inference import statistics
from pegsynth.publishing.report.verdict import risk_verdict
from pegsynth.publishing.report.wording import Lookup
from pegsynth.schema import Schema
from significance import ALPHA

FEW, MANY = (4, 3, 2, 5, 3), (20, 15, 10, 5, 3)
SUBJECT = "f3 | f0, f1, f2"
AMOUNTS = {"kind": "numeric", "categories": (), "edges": (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)}


def people(rows, rng, *, sizes=FEW, right=0.0):
    """Rows whose f3 follows f0 with some probability, and is skewed and of no use otherwise."""
    columns = [rng.integers(0, size, rows) for size in sizes]
    skewed = np.minimum(rng.geometric(0.45, rows) - 1, sizes[3] - 1)
    columns[3] = np.where(rng.random(rows) < right, columns[0] % sizes[3], skewed)
    return np.stack(columns, axis=1).astype(np.uint8)


def drawn_again(table, rows, rng):
    return table[rng.integers(0, len(table), rows)]


def records_of(original, released, *, holdout=None, level=0.95, sizes=FEW, **changes):
    schema = twins.make_schema(sizes, **changes)
    return twins.all_risks(original, [released], schema, holdout=holdout, level=level).records


def judged(records):
    return risk_verdict(Lookup(Metrics(summary={}, records=tuple(records))))


def without_power(records):
    """What the verdict had to go by before: no other people, no reasons to be silent."""
    return [
        msgspec.structs.replace(record, no_power="")
        for record in records
        if not record.name.endswith("_others")
    ]


def find(records, name, subject=SUBJECT):
    return next(r for r in records if (r.name, r.subject) == (name, subject))


def intruder(records):
    """The records of the intruder alone."""
    return [record for record in records if record.name.startswith("intruder_error")]


@pytest.mark.parametrize("changes", [{}, {"f3": AMOUNTS}], ids=["category", "amount"])
@pytest.mark.parametrize("released", [3000, 300, 9000])
def test_nothing_is_said_where_nobody_can_predict(changes, released):
    # The reason is missing, or an alarm raised, if two intervals of level 1 - ALPHA are apart.
    rng = np.random.default_rng(1)
    original = people(3000, rng)
    for table in (people(released, rng), drawn_again(original, released, rng)):
        found = intruder(records_of(original, table, level=1 - ALPHA, **changes))
        assert find(found, "intruder_error").no_power == NOBODY
        verdict = judged(found)
        assert not verdict.alarm
        assert verdict.headline == "No measure of risk could be held against a reference."
        assert verdict.sentences == (f"Intruder's error ({SUBJECT}): {NOBODY}.",)
        assert judged(without_power(found)).alarm


def test_nothing_is_said_where_real_rows_tell_no_more_than_others():
    rng = np.random.default_rng(2)
    original = people(3000, rng, right=0.8)
    for table in (people(3000, rng, right=0.8), drawn_again(original, 3000, rng)):
        found = intruder(records_of(original, table, level=1 - ALPHA))
        assert find(found, "intruder_error").no_power == NO_MORE
        assert not judged(found).alarm


@pytest.mark.parametrize("right", [0.0, 0.6], ids=["not predictable", "predictable"])
def test_real_rows_are_named_where_they_tell_of_their_people(right):
    """Few share what is known, so that a row of one's own tells more than those of others."""
    rng = np.random.default_rng(3)
    original, table = (people(3000, rng, sizes=MANY, right=right) for _ in range(2))
    real = drawn_again(original, 3000, rng)
    found = intruder(records_of(original, real, sizes=MANY, level=1 - ALPHA))
    assert find(found, "intruder_error").no_power == ""
    verdict = judged(found)
    assert verdict.alarm
    assert verdict.headline == "Not clearly better than releasing real rows: Intruder's error."
    fresh = judged(intruder(records_of(original, table, sizes=MANY, level=1 - ALPHA)))
    assert not fresh.alarm
    assert fresh.headline == "No measure of risk stands out against its reference."


@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["large groups", "small groups"])
@pytest.mark.parametrize("right", [0.0, 0.6], ids=["not predictable", "predictable"])
def test_a_private_release_is_not_named(sizes, right):
    """`pegs-once` at epsilon 1; an alarm needs intervals of level 1 - ALPHA apart."""
    rng = np.random.default_rng(4)
    original = people(3000, rng, sizes=sizes, right=right)
    schema = Schema(twins.make_schema(sizes).columns, reviewed=True)
    texts = [feature.categories for feature in schema.features]
    frame = pl.DataFrame(
        {name: [texts[i][code] for code in original[:, i]] for i, name in enumerate(schema.names)}
    )
    release = pegsynth.synthesize(
        frame, schema=schema, method="pegs-once", epsilon=1.0, delta=1e-9, rows=3000, seed=1
    ).to_frame()
    table = np.stack(
        [[texts[i].index(text) for text in release[name]] for i, name in enumerate(schema.names)],
        axis=1,
    ).astype(np.uint8)
    found = intruder(records_of(original, table, sizes=sizes, level=1 - ALPHA))
    assert not judged(found).alarm


def named(records):
    """Measures of attacks that raise an alarm, each form of its own."""
    return [
        (record.name, record.subject)
        for record in records
        if record.subject
        and judged(
            [
                each
                for each in records
                if each.subject == record.subject and each.name.startswith(record.name)
            ]
        ).alarm
    ]


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize(
    ("rows", "released", "held"), [(600, 600, 0), (600, 60, 0), (600, 600, 20), (600, 600, 300)]
)
@pytest.mark.parametrize(
    ("sizes", "right"),
    [
        pytest.param(FEW, 0.0, id="few values, not predictable"),
        pytest.param(MANY, 0.8, id="many values, predictable"),
        longer(FEW, 0.8, id="few values, predictable"),
        longer(MANY, 0.0, id="many values, not predictable"),
    ],
)
def test_fresh_people_raise_no_more_alarms_than_stated(rows, released, held, sizes, right):
    """Fresh rows tell nothing of anybody: at 95 % each form is named in 1 of 20 runs at most."""
    rng, runs = np.random.default_rng([5, released, held, int(10 * right)]), 20
    alarms, before = Counter(), Counter()
    for _ in range(runs):
        original, table = (people(n, rng, sizes=sizes, right=right) for n in (rows, released))
        holdout = people(held, rng, sizes=sizes, right=right) if held else None
        found = records_of(original, table, holdout=holdout, sizes=sizes)
        alarms.update(named(found))
        before.update(named(without_power(found)))
    for count in alarms.values():
        assert stats.binomtest(count, runs, 0.05, alternative="greater").pvalue > ALPHA
    if not held and sizes is FEW:
        # The twin: by the rule of before, tables that tell nothing were named again and again.
        assert before.most_common(1)[0][1] > runs / 2


def test_the_error_by_other_people_equals_its_twin():
    rng = np.random.default_rng(6)
    original = people(120, rng, right=0.7)
    part = np.random.default_rng([SEED, 8]).integers(0, PARTS, 120)
    for changes, values in (({}, None), ({"f3": AMOUNTS}, np.array([0.5, 1.5, 3.0, 6.0, 12.0]))):
        found = find(records_of(original, people(50, rng), **changes), "intruder_error_others")
        errors = []
        for known in ((), (0, 1, 2)):
            total = 0.0
            for number in range(PARTS):
                own, rest = original[part == number].tolist(), original[part != number].tolist()
                total += sum(
                    twins.error_by_category(own, rest, known, 3)
                    if values is None
                    else error_by_median(own, rest, known, 3, values)
                )
            errors.append(total / 120)
        assert found.value == pytest.approx(min(errors))


def error_by_median(rows, released, known, sensitive, numbers):
    """Absolute error of the lower median of what matches, None where the truth has no number."""
    errors = []
    for row in rows:
        matching = [r for r in released if twins.values_of(r, known) == twins.values_of(row, known)]
        guesses = sorted(numbers[r[sensitive]] for r in matching)
        guesses = [each for each in guesses if not np.isnan(each)]
        if not guesses:
            guesses = sorted(numbers[r[sensitive]] for r in released)
            guesses = [each for each in guesses if not np.isnan(each)]
        errors.append(abs(guesses[(len(guesses) - 1) // 2] - numbers[row[sensitive]]))
    return errors


def test_medians_equal_their_twin():
    rng = np.random.default_rng(7)
    values = np.array([3.0, np.nan, -1.0, 8.0, 2.0])
    original, released = people(60, rng), people(25, rng)
    tables = [np.ascontiguousarray(table.T) for table in (original, released)]
    crossing = cells_of(tables, [0, 1], 3, FEW)
    counts = crossing.counts(crossing.cells[1])
    found = guess(crossing, counts, values, median=True).errors[crossing.cells[0]]
    expected = error_by_median(original.tolist(), released.tolist(), (0, 1), 3, values)
    np.testing.assert_allclose(found, expected)
    empty = guess(crossing, np.zeros_like(counts), values, median=True)
    assert np.isnan(empty.errors).all()
    assert not empty.matched.any()


@pytest.mark.parametrize("cells", [200, 2000, 50_000])
@pytest.mark.parametrize("released", [(1000,), (200, 300), (5000,)])
def test_how_often_fresh_rows_have_the_values_of_a_unique_row(cells, released):
    """Cells of equal probability: the chance is known; one miss in ALPHA of all runs."""
    rng = np.random.default_rng([8, cells, *released])
    groups = np.bincount(rng.integers(0, cells, 1000)).astype(np.int64)
    found = population_expectation(groups, released, level=1 - ALPHA)
    again, alone = expectation(1 / cells, released)
    assert found.reappearing.low <= again <= found.reappearing.high
    assert found.as_unique.low <= found.as_unique.value <= found.as_unique.high
    if max(released) <= cells:
        assert found.as_unique.low <= alone <= found.as_unique.high
    assert np.isnan(population_expectation(np.array([2, 3]), (4,), level=0.9).reappearing.value)


def test_values_that_nobody_has_are_counted():
    """The original lacks 17 of 20 cells; the release holds two of them, one exactly once."""
    original = np.array([[0, 0], [0, 1], [1, 1]], dtype=np.uint8)
    released = np.array([[0, 0], [3, 3], [3, 3], [2, 3]], dtype=np.uint8)
    schema = twins.make_schema((4, 5), quasi=(0,), sensitive=(1,))
    records = twins.all_risks(original, [released], schema).records
    groups = np.array([1, 1, 1])
    fresh = population_expectation(groups, [4], level=0.95)
    for name, how, share, expected in (
        ("reappearing_uniques", "at all", 2 / 17, fresh.reappearing),
        ("reappearing_as_unique", "exactly once", 1 / 17, fresh.as_unique),
    ):
        found = find(records, f"{name}_others", ALL_FEATURES)
        assert f"lacks {share:.6g} are released {how}" in found.note
        assert found.value == pytest.approx(1 - (1 - expected.value) * (1 - share))
        assert found.low <= found.value <= found.high


def test_a_release_that_scatters_its_rows_is_not_named():
    """Independent columns fill a small table: unique rows reappear, and so does all else."""
    rng = np.random.default_rng(9)
    original = people(2000, rng, right=0.95)
    table = np.stack([rng.permutation(column) for column in original.T], axis=1)
    found = [r for r in records_of(original, table) if r.name.startswith("reappearing")]
    assert find(found, "reappearing_uniques", ALL_FEATURES).value > 0.8
    assert not judged(found).alarm
    assert judged(without_power(found)).alarm


def test_unique_rows_that_are_too_few_say_nothing():
    """One unique row that does not reappear is no alarm, and no comfort."""
    original = np.array([[0, 0]] * 9 + [[1, 1]] * 9 + [[2, 1]], dtype=np.uint8)
    schema = twins.make_schema((4, 5), quasi=(0,), sensitive=(1,))
    found = twins.all_risks(original, [original[:18]], schema).records
    record = find(found, "reappearing_uniques", ALL_FEATURES)
    assert (record.value, record.no_power) == (0, NO_POWER)
    ours = [r for r in found if r.name.startswith("reappearing") and r.subject == ALL_FEATURES]
    assert not judged(ours).alarm
    assert judged(ours).sentences == (
        "Uniques that reappear (all features); Uniques that reappear alone (all features): "
        f"{NO_POWER}.",
    )
    assert judged(without_power(ours)).alarm


def test_the_match_risk_by_other_people_equals_its_twin():
    """Every draw of rows of the others, enumerated."""
    original = np.array([[0, 0], [0, 1], [0, 1], [1, 0]], dtype=np.uint8)
    schema = twins.make_schema((2, 2), quasi=(0,), sensitive=(1,))
    found = twins.all_risks(original, [original[:2]], schema).records
    total = 0.0
    for place, row in enumerate(original.tolist()):
        # A draw of the own row is one that matches nobody.
        for draw in product(range(4), repeat=2):
            others = [original[i].tolist() for i in draw if i != place]
            matching = [other[1] == row[1] for other in others if other[0] == row[0]]
            total += sum(matching) / len(matching) / 16 if matching else 0.0
    assert find(found, "reiter_risk_others", "f1 | f0").value == pytest.approx(total / 4)


def test_copies_of_a_bootstrap_by_enumeration():
    original = np.array([[0, 0], [0, 0], [1, 2]], dtype=np.uint8)
    holdout = np.array([[0, 0], [3, 3]], dtype=np.uint8)
    schema = twins.make_schema((4, 5), quasi=(0,), sensitive=(1,))
    tables = risk_tables(original, [original[:2]], schema, holdout=holdout)
    areas = []
    for draw in product(range(3), repeat=2):
        real = original[list(draw)].tolist()
        scores = [[row in real for row in table.tolist()] for table in (original, holdout)]
        areas.append(twins.area(*scores))
    found = copy_area(tables, tables.holdout, 3, 2)
    assert found.value == pytest.approx(np.mean(areas))


@pytest.mark.parametrize(
    ("released", "held", "power"), [(2000, 1000, True), (2000, 6, False), (3, 1000, False)]
)
def test_membership_is_reassuring_only_where_members_could_be_told(released, held, power):
    rng = np.random.default_rng(10)
    original, table, holdout = (people(n, rng, sizes=MANY) for n in (2000, released, held))
    found = records_of(original, table, holdout=holdout, sizes=MANY, level=1 - ALPHA)
    ours = [r for r in found if r.name == "membership_auc"]
    reasons = {record.subject: record.no_power for record in ours}
    assert reasons == dict.fromkeys((DISTANCE, DENSITY), "" if power else NO_POWER)
    said = " ".join(judged(ours).sentences)
    assert ("cannot be told from the release" in said) == power
    assert (NO_POWER in said) != power
    assert not judged(ours).alarm


def test_few_others_among_whom_nobody_scores_high_are_no_alarm():
    """One row in twenty scores high, whoever it is: of 20 others there is often none."""

    def alarms(area):
        rng = np.random.default_rng(11)
        count = 0
        for _ in range(400):
            scores = ((rng.random(n) < 0.05).astype(float) for n in (2000, 20))
            count += area(*scores) > 0.5
        return count

    def delong(members, others):
        members, others = np.sort(members), np.sort(others)
        below, above = (
            statistics.placements(members, others),
            statistics.placements(others, members),
        )
        spread = below.var(ddof=1) / len(members) + above.var(ddof=1) / len(others)
        return below.mean() - 1.959964 * np.sqrt(spread)

    count = alarms(lambda *both: statistics.roc_area(*both, level=0.95).low)
    assert stats.binomtest(count, 400, 0.025, alternative="greater").pvalue > ALPHA
    assert stats.binomtest(alarms(delong), 400, 0.025, alternative="greater").pvalue < ALPHA


def test_shares_of_rows_that_change_sides_together():
    z = 1.959964
    found = statistics.lumped_share(1.0, 100, 0.0, lump=5, level=0.95)
    assert (found.low, found.high) == pytest.approx((1 - 5 * z * z / 100, 1.0))
    assert statistics.lumped_share(0.0, 100, 0.0, lump=5, level=0.95).low == 0
    # Ten lumps of five rows among twenty.
    found = statistics.lumped_share(0.5, 100, 5 * 5 * 5.0, lump=5, level=0.95)
    half = 5 * z * np.sqrt(5 + z * z / 4) / 100
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half))
    # Lumps of one row, many of them: Wilson's interval.
    found = statistics.lumped_share(0.1, 10**6, 0.09 * 10**6, lump=1, level=0.95)
    assert found.high == pytest.approx(statistics.share(0.1, 10**6, level=0.95).high, abs=1e-8)
    assert 0.1 - found.low < found.high - 0.1


def test_a_small_fresh_table_has_no_more_small_groups_than_it_should():
    """100 of 2,000 people, nearly all alone: the variance is 0 where all are."""
    rng, runs = np.random.default_rng(12), 20
    alarms = 0
    for _ in range(runs):
        original, table = (people(n, rng, sizes=MANY) for n in (2000, 100))
        schema = twins.make_schema(MANY)
        metrics = evaluate_codes(original, [table], schema)
        found = metrics.record("uniqueness")
        alarms += found.low > found.baseline
    assert stats.binomtest(alarms, runs, 0.05, alternative="greater").pvalue > ALPHA


def test_a_share_of_nearly_all_rows_says_nothing():
    assert crowded(0.5, 100, lump=5, level=0.95) == ""
    assert crowded(0.9, 100, lump=5, level=0.95) == TOO_FEW
    assert crowded(0.9, 1000, lump=5, level=0.95) == ""


def test_what_was_found_is_said_whatever_the_odds_were():
    rng = np.random.default_rng(15)
    original, holdout = (people(2000, rng, sizes=MANY) for _ in range(2))
    found = records_of(original, original[::-1], holdout=holdout, sizes=MANY)
    unlikely = [msgspec.structs.replace(r, no_power=NO_POWER) for r in found]
    assert judged(unlikely).headline == judged(found).headline
    assert judged(unlikely).alarm


def test_figures_hold_no_value_of_the_data():
    """Reasons are sentences of the program."""
    rng = np.random.default_rng(16)
    original = people(300, rng)
    reasons = {r.no_power for r in records_of(original, people(300, rng))}
    assert reasons <= {"", NOBODY, NO_MORE, NO_POWER, TOO_FEW}
