"""Units of several rows: bounded at random before anything is counted (R12)."""

import json
import math

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.codec.code_table import CodeTable, kept_rows
from pegsynth.errors import DataError
from pegsynth.methods.gibbs.block_fitting import one_way_counts
from pegsynth.random import RandomStream
from pegsynth.tables.table_input import open_table
from small_release import LEVELS, small_model, small_schema, small_session, small_table, taken


def people(*sizes):
    """A table in which person i has sizes[i] rows, mixed up."""
    names = [f"id{i}" for i, size in enumerate(sizes) for _ in range(size)]
    order = np.random.default_rng(2).permutation(len(names))
    return small_table(len(names)).with_columns(person=pl.Series([names[i] for i in order]))


def kept_of(table, k, seed: int | None = None):
    return kept_rows(open_table(table), "person", k, RandomStream(seed)).mask(0, len(table))


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_at_most_k_rows_of_every_unit_are_kept(k):
    table = people(1, 2, 3, 4, 9, 1)
    kept = table.filter(kept_of(table, k))
    sizes = dict(kept.group_by("person").len().iter_rows())
    assert sizes == {f"id{i}": min(size, k) for i, size in enumerate((1, 2, 3, 4, 9, 1))}


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 5.0, "rows": 5},
        {"epsilon": 5.0, "rows": 5, "order": "public"},
        {"alpha": 1.0, "rows": 5},
        {"alpha": 1.0, "rows": 5, "order": "data"},
    ],
    ids=["private order", "public order", "alpha", "order of the data"],
)
def test_blocks_count_the_kept_rows_only(k, options):
    table = people(1, 2, 3, 4, 9, 1)
    model, _ = small_model(small_schema(rows_per_unit=k), table, **options)
    total = sum(min(size, k) for size in (1, 2, 3, 4, 9, 1))
    assert [int(line.sum()) for line in one_way_counts(model.content.blocks)] == [total] * 3


def test_both_passes_see_the_same_rows():
    """Pairs and blocks are counted in two passes; a unit may not give k rows to each."""
    table = people(5, 5, 5)
    stream = CodeTable(open_table(table), small_schema(rows_per_unit=2), RandomStream()).batches
    first, second = (np.concatenate(list(stream())) for _ in range(2))
    assert len(first) == 6
    assert np.array_equal(first, second)


@pytest.mark.parametrize("most_held", [1, 3, 10, 50, 10**6])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_shares_change_nothing(k, most_held):
    """However few rows are held at once, the same rows are kept."""
    table = people(*[1, 2, 3, 4, 9, 30] * 6)
    reader = open_table(table)
    kept = kept_rows(reader, "person", k, RandomStream(5), most_held=most_held)
    assert np.array_equal(kept.mask(0, len(table)), kept_of(table, k, seed=5))
    # The choice takes one keystream, however often the units are read.
    stream, other = RandomStream(5), RandomStream(5)
    kept_rows(reader, "person", k, stream, most_held=most_held)
    other.substream()
    assert np.array_equal(stream.substream().take(3), other.substream().take(3))


def test_the_choice_is_that_of_the_smallest_words():
    """The slow twin: sort all rows by their word and take the first k of each unit."""
    table = people(*range(1, 12))
    words = RandomStream(7).substream().take(len(table))
    chosen = (
        table.with_columns(word=pl.Series(words), row=pl.int_range(len(table)))
        .sort("word")
        .group_by("person", maintain_order=True)
        .head(3)
    )
    expected = np.zeros(len(table), dtype=bool)
    expected[chosen["row"].to_numpy()] = True
    assert np.array_equal(kept_of(table, 3, seed=7), expected)


def test_parts_of_the_mask():
    table = people(*[3] * 20)
    kept = kept_rows(open_table(table), "person", 2, RandomStream(1))
    whole = kept.mask(0, 60)
    for first in range(0, 60, 7):
        for count in range(60 - first):
            assert np.array_equal(kept.mask(first, count), whole[first : first + count])


def test_which_rows_are_kept_is_random():
    """False alarms: 15 pairs of C(40, 3)^2 choices, 2e-7; then 24 rows, 5 of 60 or fewer, 3e-10."""
    table = people(40, 40)
    runs = [kept_of(table, 3).tolist() for _ in range(6)]
    assert len({tuple(run) for run in runs}) == 6
    assert kept_of(table, 3, seed=1).tolist() == kept_of(table, 3, seed=1).tolist()
    # Neither the first rows nor the last ones are favoured: all 12 of each half turn up.
    table = people(12, 12)
    seen = np.sum([kept_of(table, 6) for _ in range(60)], axis=0)
    assert seen.min() > 5
    assert seen.max() < 55


def test_the_unit_column_is_not_in_the_output():
    found = pegsynth.synthesize(people(3, 3), small_schema(rows_per_unit=1), rows=7, epsilon=5.0)
    assert found.frames[0].columns == list(LEVELS)


@pytest.mark.parametrize(
    "values",
    [
        ["a", None, "b", None],
        ["a", "", "b", "  "],
        [1, None, 2, None],
        [1.0, float("nan"), 2.0, None],
    ],
    ids=["nulls", "blanks", "numbers", "not a number"],
)
def test_missing_units_are_refused_with_their_number(values):
    table = small_table(4).with_columns(person=pl.Series(values, strict=False))
    with pytest.raises(DataError, match=r"'person': 2 values are missing.*drop these rows"):
        small_model(small_schema(rows_per_unit=2), table, epsilon=1.0)


def test_missing_units_through_the_command(tmp_path):
    table = people(2, 2).with_columns(person=pl.Series(["SECRET-4711", None, "", "b"]))
    table.write_csv(tmp_path / "data.csv")
    small_schema(rows_per_unit=2).save(tmp_path / "schema.toml")
    source = (tmp_path / "data.csv", "--schema", tmp_path / "schema.toml")
    outcome = pegs("synthesize", *source, "--rows", 5, "--epsilon", 1, "-o", tmp_path / "out.csv")
    check_refused(outcome, "'person'", "2 values are missing")


def test_a_table_without_its_unit_column():
    with pytest.raises(DataError, match="'person'"):
        small_model(small_schema(rows_per_unit=2), small_table(5), epsilon=1.0)


# What is promised


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_guarantee_is_per_unit(k):
    table = people(6, 6, 6)
    pure = pegsynth.synthesize(
        table, small_schema(rows_per_unit=k), rows=3, epsilon_per_row=0.5
    ).ledger.guarantee
    assert (pure.unit, pure.rows_per_unit) == ("unit", k)
    assert pure.epsilon == pytest.approx(1.5 * k, rel=1e-4)
    assert pure.epsilon_per_row == pytest.approx(0.5, rel=1e-4)
    eta = 0.5 / 3
    assert pure.rho == pytest.approx(9 * eta**2 / 8 * k**2, rel=1e-4)


@pytest.mark.parametrize("k", [1, 4])
def test_a_total_is_per_unit_too(k):
    book, table = small_schema(rows_per_unit=k), people(6, 6)
    release = pegsynth.synthesize(table, book, rows=10, epsilon=3.0, delta=1e-9)
    claim = release.ledger.guarantee
    assert claim.kind == "approximate"
    assert 0.97 * 3 < claim.epsilon <= 3
    assert (claim.unit, claim.rows_per_unit) == ("unit", k)
    assert "unit" in release.ledger.statement()


def test_more_rows_per_unit_cost_more_virtual_rows():
    alphas = []
    for k in (1, 2, 4):
        _, settled = small_model(
            small_schema(rows_per_unit=k), people(5, 5), epsilon=1.0, delta=1e-9, rows=200
        )
        alphas.append(settled.numerator / settled.scale)
    # In rho the price goes with the square of k, so alpha grows about k times.
    assert alphas[1] / alphas[0] == pytest.approx(2, rel=0.2)
    assert alphas[2] / alphas[0] == pytest.approx(4, rel=0.2)


def test_k_is_public_and_never_the_observed_maximum():
    """Nobody has more than two rows, and the price is still that of five."""
    book = small_schema(rows_per_unit=5)
    few, many = (
        small_session(seed=None, book=book, data=people(*sizes), epsilon_per_row=1.0, rows=4)
        for sizes in ((1, 2), (9, 9))
    )
    for session in (few, many):
        taken(session, 4)
    assert few.ledger == many.ledger
    assert few.ledger.epsilon == pytest.approx(4 * 5, rel=1e-3)


def test_the_ledger_of_the_command_names_the_unit(tmp_path):
    people(4, 4, 4).write_csv(tmp_path / "data.csv")
    small_schema(rows_per_unit=3).save(tmp_path / "schema.toml")
    source = (tmp_path / "data.csv", "--schema", tmp_path / "schema.toml")
    done("synthesize", *source, "--rows", 5, "--epsilon-per-row", 1, "-o", tmp_path / "out.csv")
    ledger = json.loads((tmp_path / "out.csv.privacy.json").read_text())
    assert ledger["guarantee"]["rows_per_unit"] == 3
    assert math.isclose(ledger["guarantee"]["epsilon"], 15, rel_tol=1e-4)
    assert pl.read_csv(tmp_path / "out.csv").columns == list(LEVELS)
