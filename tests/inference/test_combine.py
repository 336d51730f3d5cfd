"""`combine`: forms of input, the choice by the ledger, and what is refused."""

import dataclasses
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pegsynth
from pegsynth import Ledger, ParameterError, combine
from pegsynth.inference.choice import (
    from_released_blocks,
    rows_in_of,
    rows_of,
    rule_for,
    without_intervals,
)
from pegsynth.privacy import NoisyCounts, NotPrivate, UnknownEvent, Unspent
from pegsynth.privacy.assumptions import Assumption, stated
from pegsynth.privacy.draw_events import (
    BlockDraws,
    CappedDraws,
    ContingencyDraws,
    ImputationDraws,
    PegsDraws,
    UrnDraws,
)

ESTIMATES = np.array([[1.0, 10.0], [2.0, 14.0], [4.0, 11.0]])
VARIANCES = np.array([[0.5, 2.0], [0.4, 3.0], [0.6, 1.0]])
ROWS = {"rows": 500, "rows_in": 1000}
NAMES = ("age", "sex")
ALPHA = {"alpha_numerator": 1, "alpha_denominator": 2, "features": 4}


def named(values):
    return {name: values[:, place].tolist() for place, name in enumerate(NAMES)}


@pytest.mark.parametrize("rule", ["plug-in", "shared-urn", "partial", "fully"])
def test_a_vector_is_its_scalars(rule):
    whole = combine(ESTIMATES, VARIANCES, rule=rule, **ROWS)
    low, high = whole.interval(0.9)
    assert whole.names == ()
    for place in range(2):
        one = combine(ESTIMATES[:, place], VARIANCES[:, place], rule=rule, **ROWS)
        assert isinstance(one.estimate, float)
        assert isinstance(one.interval()[0], float)
        assert whole.estimate[place] == one.estimate
        assert whole.variance[place] == one.variance
        assert whole.degrees_of_freedom[place] == one.degrees_of_freedom
        assert (low[place], high[place]) == pytest.approx(one.interval(0.9))


FORMS = {
    "lists": (np.ndarray.tolist, ()),
    "tuples": (lambda values: tuple(map(tuple, values)), ()),
    "mapping": (named, NAMES),
    "mappings": (lambda values: [dict(zip(NAMES, row, strict=True)) for row in values], NAMES),
    "series": (lambda values: [pd.Series(row, index=NAMES) for row in values], NAMES),
    "pandas": (lambda values: pd.DataFrame(named(values)), NAMES),
    "polars": (lambda values: pl.DataFrame(named(values)), NAMES),
    "pyarrow": (lambda values: pa.table(named(values)), NAMES),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_input(form):
    make, names = FORMS[form]
    wanted = combine(ESTIMATES, VARIANCES, **ROWS)
    found = combine(make(ESTIMATES), make(VARIANCES), **ROWS)
    assert found.names == names
    np.testing.assert_array_equal(found.estimate, wanted.estimate)
    np.testing.assert_array_equal(found.variance, wanted.variance)


def test_k_numbers_in_any_form():
    wanted = combine([1, 2, 4], [0.5, 0.4, 0.6], **ROWS)
    for form in (np.array, pd.Series, pl.Series, tuple):
        found = combine(form([1.0, 2.0, 4.0]), form([0.5, 0.4, 0.6]), **ROWS)
        assert found.variance == wanted.variance


def test_names_are_matched_whatever_their_order():
    turned = {name: named(VARIANCES)[name] for name in reversed(NAMES)}
    found = combine(named(ESTIMATES), turned, **ROWS)
    np.testing.assert_array_equal(found.variance, combine(ESTIMATES, VARIANCES, **ROWS).variance)
    age = found["age"]
    assert (age.estimate, age.variance) == (found.estimate[0], found.variance[0])
    assert age.interval()[0] == pytest.approx(found.interval()[0][0])
    assert age.notes == found.notes
    with pytest.raises(KeyError):
        found["size"]


def test_a_result_cannot_be_altered():
    found = combine(ESTIMATES, VARIANCES, **ROWS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.rule = "partial"
    with pytest.raises(ValueError, match="read-only"):
        found.variance[0] = 0


@pytest.mark.parametrize("rule", ["plug-in", "shared-urn", "partial", "fully"])
def test_what_no_rule_covers_is_always_said(rule):
    notes = combine(ESTIMATES, VARIANCES, rule=rule, **ROWS).notes
    assert any("alpha" in note and "all datasets share" in note for note in notes)


def test_few_datasets_are_said():
    for datasets in (2, 4, 5, 6):
        values = list(range(datasets))
        notes = combine(values, values, **ROWS).notes
        assert any("fewer than 5 datasets" in note for note in notes) == (datasets < 5)


def test_adjusted_quantities_are_named_or_counted():
    values = {"a": [1, 1], "b": [1, 9], "c": [2, 2]}
    found = combine(values, {name: [1, 1] for name in values}, rule="fully", **ROWS)
    assert any("not positive for a, c;" in note for note in found.notes)
    found = combine(np.ones((2, 3)), np.ones((2, 3)), rule="fully", **ROWS)
    assert any("not positive for quantity 1, quantity 2, quantity 3;" in n for n in found.notes)
    found = combine(np.ones((2, 9)), np.ones((2, 9)), rule="fully", **ROWS)
    assert any("not positive for 9 of 9 quantities;" in note for note in found.notes)


def test_the_partial_rule_asks_for_as_many_rows():
    found = combine(ESTIMATES, VARIANCES, rule="partial", rows=500, rows_in=1000)
    assert any("n = N" in note for note in found.notes)
    found = combine(ESTIMATES, VARIANCES, rule="partial", rows=500, rows_in=500)
    assert not any("n = N" in note for note in found.notes)


PLUG_IN = [
    PegsDraws(**ALPHA, rows=500, datasets=3),
    BlockDraws(**ALPHA, rows=500, block_size=10, datasets=3),
    CappedDraws(**ALPHA, visits=5, rows=500, datasets=3),
    ImputationDraws(**ALPHA, rows=500, datasets=3),
    ContingencyDraws(**ALPHA, rows=500, datasets=3),
    UrnDraws(**ALPHA, visits=5, rows=500, datasets=3, urns=3),
]
SHARED = [
    UrnDraws(**ALPHA, visits=5, rows=500, datasets=3),
    # Urns of chains that all datasets share are not urns of datasets.
    UrnDraws(**ALPHA, visits=5, rows=500, datasets=3, urns=2),
    UrnDraws(**ALPHA, visits=5, rows=500, datasets=3, urns=6),
]


@pytest.mark.parametrize("event", PLUG_IN, ids=lambda event: type(event).__name__)
def test_a_ledger_of_separate_draws(event):
    assert rule_for(Ledger((event,)), 3).rule == "plug-in"


@pytest.mark.parametrize("event", SHARED, ids=lambda event: f"{event.urns} urns")
def test_a_ledger_of_shared_urns(event):
    assert rule_for(Ledger((event,)), 3).rule == "shared-urn"


def test_a_method_without_virtual_rows_has_no_note_on_them():
    ledger = Ledger((NotPrivate.because("no-proof"),))
    found = combine([1.0, 2.0], [1.0, 1.0], rows=5, rows_in=5, ledger=ledger)
    assert not any("virtual rows" in note for note in found.notes)
    assert "gets wrong about the original" in found.notes[-1]
    assert "virtual rows" in combine([1.0, 2.0], [1.0, 1.0], rows=5, rows_in=5).notes[-1]


@pytest.mark.parametrize("event", [*PLUG_IN, *SHARED], ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("rule", [None, "plug-in", "fully"])
def test_draws_under_virtual_rows_get_no_interval(event, rule):
    """What virtual rows do to the estimates is in no spread: see docs/inference.md."""
    ledger = Ledger((event,), (stated("rows-in", {"rows_in": 1000}),))
    assert without_intervals(ledger)
    with pytest.raises(ParameterError, match=r"no interval for these datasets.*virtual rows"):
        combine(ESTIMATES, VARIANCES, ledger=ledger, rule=rule, **ROWS)


def test_tables_without_virtual_rows_get_intervals():
    plain = Ledger((NotPrivate.because("no-proof"),), (stated("rows-in", {"rows_in": 1000}),))
    assert not without_intervals(plain)
    found = combine(ESTIMATES, VARIANCES, ledger=plain, rows=500)
    assert "by the ledger" in found.notes[0]


def test_more_estimates_than_the_ledger_has_datasets_share_its_urn():
    event = UrnDraws(**ALPHA, visits=5, rows=1500)
    assert rule_for(Ledger((event,)), 3).rule == "shared-urn"
    assert rows_of(Ledger((event,)), 3) is None


def test_a_ledger_of_kept_columns():
    events = (NotPrivate.because("kept-columns"), PLUG_IN[0], SHARED[0])
    assert rule_for(Ledger(events), 3).rule == "partial"
    assert combine(ESTIMATES, VARIANCES, ledger=Ledger(events[:1])).rule == "partial"


def test_other_ledgers_mean_plug_in():
    noise = NoisyCounts.laplace(2, cells=4, purpose="blocks")
    for event in (noise, NotPrivate.because("no-proof"), UnknownEvent("new", {"kind": "new"})):
        choice = rule_for(Ledger((event,)), 3)
        assert choice.rule == "plug-in"
        assert ("newer version" in choice.reason) == isinstance(event, UnknownEvent)
    assert rule_for(Ledger(), 3).rule == "plug-in"


def test_a_ledger_of_released_blocks_means_plug_in():
    """All datasets come from the same released counts (R11, R16)."""
    noise = NoisyCounts.laplace(2, cells=1, purpose="block")
    ledger = Ledger(
        (noise, Unspent.of(Fraction(1, 9), route="pure")), (stated("rows-in", {"rows_in": 1000}),)
    )
    assert from_released_blocks(ledger)
    assert not from_released_blocks(Ledger((noise,)))
    found = combine(ESTIMATES, VARIANCES, ledger=ledger, rows=500)
    assert found.rule == "plug-in"
    assert "released counts" in found.notes[0]
    np.testing.assert_array_equal(found.variance, combine(ESTIMATES, VARIANCES, **ROWS).variance)
    # Draws write down how many rows they gave; drawing from released counts is no event.
    assert rows_of(ledger, 3) is None


def test_what_is_stated_goes_before_the_ledger():
    ledger = Ledger((), (stated("rows-in", {"rows_in": 7}),))
    found = combine(ESTIMATES, VARIANCES, rule="plug-in", ledger=ledger, **ROWS)
    np.testing.assert_array_equal(found.variance, combine(ESTIMATES, VARIANCES, **ROWS).variance)


def test_row_counts_a_ledger_cannot_tell():
    other = PegsDraws(**ALPHA, rows=400, datasets=3)
    assert rows_of(Ledger(PLUG_IN), 3) == 500
    assert rows_of(Ledger(PLUG_IN), 2) == 500
    assert rows_of(Ledger((PLUG_IN[0], other)), 3) is None
    assert rows_of(Ledger((CappedDraws(**ALPHA, visits=5, datasets=3),)), 3) is None
    # A session without a total writes all its rows as one dataset.
    assert rows_of(Ledger((PegsDraws(**ALPHA, rows=1500),)), 3) is None
    assert (
        rows_in_of(
            Ledger((), (stated("rows-in", {"rows_in": 10}), stated("rows-in", {"rows_in": 20})))
        )
        is None
    )
    odd = Assumption(code="rows-in", text="", parameters={"rows_in": "many"})
    assert rows_in_of(Ledger((), (odd,))) is None


@pytest.mark.parametrize(
    "ledger", [None, Ledger(), Ledger((), (stated("rows-in", {"rows_in": 9}),))]
)
def test_missing_row_counts_are_asked_for(ledger):
    with pytest.raises(ParameterError, match=r"rule needs rows.*rows_in"):
        combine(ESTIMATES, VARIANCES, ledger=ledger)


def test_a_real_release_knows_its_rule():
    data = pegsynth.datasets.discharge(200, 1)
    asked = {"rows": 40, "datasets": 3, "rows_in": 200, "epsilon": 50.0, "threads": 1}
    schema = pegsynth.datasets.discharge_schema()
    own = pegsynth.synthesize(data, schema, method="pegs-once", **asked)
    assert combine([0.4, 0.5, 0.6], ledger=own.ledger).rule == "own-noise"
    release = pegsynth.synthesize(data, schema, method="pegs-once", shared_noise=True, **asked)
    shares = [float((frame["sex"] == "Male").mean()) for frame in release.frames]
    found = combine(shares, [p * (1 - p) / 40 for p in shares], ledger=release.ledger)
    assert found.rule == "plug-in"
    assert (
        found.variance
        == combine(shares, [p * (1 - p) / 40 for p in shares], rows=40, rows_in=200).variance
    )


BAD = {
    "one dataset": (([1], [1]), "at least 2 datasets"),
    "one dataset of a vector": (([[1, 2]], [[1, 2]]), "at least 2 datasets"),
    "no dataset": (([], []), "at least 2 datasets"),
    "no quantity": (({}, {}), "every name needs"),
    "empty rows": (([[], []], [[], []]), "no estimates"),
    "other shape": (([1, 2], [1, 2, 3]), "same shape"),
    "matrices": ((ESTIMATES, np.ones((3, 2, 2))), "K numbers, or K rows"),
    "one number": ((1.0, 2.0), "K numbers, or K rows"),
    "ragged": (([[1], [1, 2]], [[1], [1, 2]]), "as many from every dataset"),
    "text": ((["a", "b"], [1, 2]), "estimates must be numbers"),
    "negative": (([1, 2], [1, -1]), "cannot be negative"),
    "missing": (([1, None], [1, 1]), "finite"),
    "infinite": (([1, 2], [1, float("inf")]), "variances must be finite"),
    "other names": (({"a": [1, 2]}, {"b": [1, 2]}), "variances lacks the quantity 'a'"),
    "a name more": (([{"a": 1}, {"a": 1, "b": 2}], [1, 2]), "dataset 2 has the quantity 'b'"),
    "a name less": (([{"a": 1, "b": 2}, {"a": 1}], [1, 2]), "dataset 2 lacks the quantity 'b'"),
    "numbers by name": (({"a": 1, "b": 2}, {"a": 1, "b": 2}), "every name needs K numbers"),
    "lists by name": (([{"a": [1, 2]}] * 2, [{"a": [1, 2]}] * 2), "one number per name"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_numbers(case):
    (estimates, variances), words = BAD[case]
    with pytest.raises(ParameterError, match=words):
        combine(estimates, variances, **ROWS)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "proper"},
        *({"rows": bad} for bad in (0, -1, 2.5, "9", True)),
        *({"rows_in": bad} for bad in (0, -1, 2.5, "9", True)),
    ],
    ids=str,
)
def test_refused_options(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        combine(ESTIMATES, VARIANCES, **{**ROWS, **options})


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, float("nan"), "high"])
def test_refused_levels(level):
    with pytest.raises(ParameterError, match="level must lie between 0 and 1"):
        combine(ESTIMATES, VARIANCES, **ROWS).interval(level)


def test_a_whole_number_of_any_kind_counts_rows():
    found = combine(ESTIMATES, VARIANCES, rows=np.int64(500), rows_in=np.uint16(1000))
    np.testing.assert_array_equal(found.variance, combine(ESTIMATES, VARIANCES, **ROWS).variance)


def test_scipy_is_loaded_for_intervals_only():
    import subprocess

    code = (
        "import sys, pegsynth\n"
        "found = pegsynth.combine([1, 2], [1, 1], rows=9, rows_in=9)\n"
        "assert 'scipy.stats' not in sys.modules and 'statsmodels' not in sys.modules\n"
        "assert found.interval()[0] < 1.5\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
