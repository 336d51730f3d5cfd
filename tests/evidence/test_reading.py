"""Published tables in every form that they come in, and what is refused of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from people_counted import SCHEMA, counts, exact, people

from pegsynth.errors import DataError, ParameterError
from pegsynth.tables.published_tables import labels_of, read_evidence

CODES = people(400, 3)
AGES, SEXES = ("0-17", "18-64", "65+"), ("Female", "m")
JOBS = """
[[tables]]
file = "jobs.csv"
features = ["job"]
count = "n"
error = "exact"
"""


def listed(folder, entry, *, frame=None, name="table.csv"):
    """Read one table beside one of jobs, and return those of age and sex by their features."""
    pl.DataFrame({"job": ["1", "2", "3", "4"], "n": counts(CODES, (2,)).astype(int)}).write_csv(
        folder / "jobs.csv"
    )
    if frame is not None:
        writer = {"csv": frame.write_csv, "parquet": frame.write_parquet, "xlsx": frame.write_excel}
        writer[name.rpartition(".")[2]](folder / name)
    (folder / "tables.toml").write_text(f'[[tables]]\nfile = "{name}"\n{entry}\n{JOBS}')
    found = read_evidence(folder / "tables.toml", SCHEMA)
    return {each.features: each for each in found.tables if 2 not in each.features}, found


def long(cells=None):
    """Return a table with a row for each cell, sex first."""
    cells = counts(CODES, (0, 1)).astype(int).reshape(3, 2) if cells is None else cells
    rows = [(s, a, cells[i][j]) for j, s in enumerate(SEXES) for i, a in enumerate(AGES)]
    return pl.DataFrame(rows, schema=["sex", "age", "n"], orient="row")


ENTRY = 'features = ["sex", "age"]\ncount = "n"\nerror = "exact"'


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.xlsx"])
def test_a_long_table_of_any_kind_of_file(tmp_path, name):
    if name.endswith("xlsx"):
        pytest.importorskip("xlsxwriter")
    found, evidence = listed(tmp_path, ENTRY, frame=long(), name=name)
    assert found[0, 1].low.tolist() == exact(CODES, (0, 1)).low.tolist()
    assert found[0, 1].exact
    assert [len(each.sha256) for each in evidence.sources] == [64, 64]


def test_a_cross_table_with_totals(tmp_path):
    cells = counts(CODES, (0, 1)).astype(int).reshape(3, 2)
    whole = np.vstack([np.column_stack([cells, cells.sum(axis=1)]), [*cells.sum(axis=0), 400]])
    frame = pl.DataFrame(
        {"age": [*AGES, "Total"], **dict(zip([*SEXES, "Total"], whole.T.tolist(), strict=True))}
    )
    entry = 'features = ["age", "sex"]\nacross = "sex"\nerror = "exact"'
    found, _ = listed(tmp_path, entry, frame=frame)
    assert set(found) == {(0, 1), (0,), (1,), ()}
    for features, table in found.items():
        assert table.low.tolist() == (counts(CODES, features).tolist() if features else [400])


def test_sdmx_csv_needs_no_name_of_the_count_and_reads_the_rows_of_one_year(tmp_path):
    one = long().rename({"sex": "SEX", "n": "OBS_VALUE"})
    frame = pl.concat(
        [
            one.with_columns(TIME_PERIOD=pl.lit(year), OBS_VALUE=pl.col("OBS_VALUE") + year - 2024)
            for year in (2023, 2024)
        ]
    )
    entry = 'features = ["sex", "age"]\ncolumns = { sex = "SEX" }\nerror = "exact"\n'
    found, _ = listed(tmp_path, entry + 'where = { TIME_PERIOD = "2024" }', frame=frame)
    assert found[0, 1].low.tolist() == counts(CODES, (0, 1)).tolist()
    with pytest.raises(DataError, match="listed twice"):
        listed(tmp_path, entry, frame=frame)


def test_bounds_of_rounded_and_suppressed_cells(tmp_path):
    cells = [["10", "<5"], ["0", "15"], ["c", "2-7"]]
    entry = ENTRY.replace("exact", "rounded") + "\nbase = 5\nbelow = 4\nmark = 'c'"
    (table,) = (listed(tmp_path, entry, frame=long(cells))[0][0, 1],)
    assert table.low.tolist() == [8, 0, 0, 13, 0, 2]
    assert table.high.tolist() == [12, 4, 2, 17, 3, 7]
    assert not table.variance.any()


def test_random_rounding_is_an_estimate_but_for_zeros(tmp_path):
    cells = [["9", "3"], ["0", "12"], ["6", "3"]]
    entry = ENTRY.replace("exact", "rounded") + "\nbase = 3\nrandom = true"
    table = listed(tmp_path, entry, frame=long(cells))[0][0, 1]
    assert table.variance.tolist() == pytest.approx([4 / 3, 4 / 3, 0, 4 / 3, 4 / 3, 4 / 3])
    assert (table.low[2], table.high[2]) == (0, 2)


def test_standard_errors_stand_in_a_column(tmp_path):
    frame = long().with_columns(error=pl.int_range(1, 7))
    entry = ENTRY.replace('"exact"', '"variance"\nse = "error"')
    table = listed(tmp_path, entry, frame=frame)[0][0, 1]
    assert sorted(table.variance.tolist()) == [1, 4, 9, 16, 25, 36]


def test_columns_of_bounds(tmp_path):
    frame = long().with_columns(low=pl.col("n") - 1, high=pl.col("n") + 2)
    entry = 'features = ["sex", "age"]\nerror = "interval"\nlow = "low"\nhigh = "high"'
    table = listed(tmp_path, entry, frame=frame)[0][0, 1]
    assert (table.high - table.low).tolist() == [3] * 6


def test_cells_that_are_not_listed_are_what_the_entry_says(tmp_path):
    frame = long().slice(1)
    with pytest.raises(DataError, match=r"1 of 6 cells of age x sex are not listed.*absent"):
        listed(tmp_path, ENTRY, frame=frame)
    zero = listed(tmp_path, ENTRY + '\nabsent = "zero"', frame=frame)[0][0, 1]
    unknown = listed(tmp_path, ENTRY + '\nabsent = "unknown"', frame=frame)[0][0, 1]
    assert (zero.low[0], zero.high[0]) == (0, 0)
    assert (unknown.low[0], unknown.high[0]) == (0, np.inf)


def test_bands_are_known_by_their_usual_names():
    known = labels_of(SCHEMA.features[0])
    for text, code in (("[0, 18)", 0), ("0-17", 0), ("under 18", 0), ("18 to 64", 1), ("65+", 2)):
        assert known[text] == code


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (ENTRY.replace("sex", "race"), "'race' is no feature of the schema"),
        (ENTRY.replace('count = "n"', 'count = "m"'), "there is no column 'm'; its columns are"),
        (ENTRY.replace("exact", "rounded") + "\nbase = 5", "is no multiple of base 5"),
        (ENTRY + '\nwhere = { age = "x" }', "no row has 'x' in column 'age'"),
        (ENTRY + '\nlabels = { age = { young = "baby" } }', "'baby' is no category"),
    ],
)
def test_what_does_not_fit_is_refused_by_file_and_column(tmp_path, entry, said):
    with pytest.raises(DataError, match=said) as refused:
        listed(tmp_path, entry, frame=long())
    assert "table.csv" in str(refused.value)


def test_a_label_that_is_no_category_is_refused_with_the_remedy(tmp_path):
    frame = long().with_columns(pl.col("age").replace("65+", "old"))
    with pytest.raises(DataError, match=r"'old', which is no category of 'age'.*labels.age"):
        listed(tmp_path, ENTRY, frame=frame)
    entry = ENTRY + '\nlabels = { age = { old = "[65, 110]" } }'
    assert listed(tmp_path, entry, frame=frame)[0][0, 1].exact


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('features = ["age"]\nerror = "rounded"\ncount = "n"', "needs base"),
        ('features = ["age"]\nerror = "variance"\ncount = "n"', "one of variance and se"),
        ('features = ["age"]\nerror = "exact"\nbelow = 5', "below and mark"),
        ('features = ["age"]\nerror = "exact"\nmarks = "x"', "marks"),
        ('features = ["age"]\nerror = "guessed"', "guessed"),
        ('features = ["age", "age"]\nerror = "exact"', "twice"),
    ],
)
def test_an_entry_that_is_not_whole_is_refused(tmp_path, entry, said):
    with pytest.raises(ParameterError, match=said) as refused:
        listed(tmp_path, entry, frame=long())
    assert "tables.toml" in str(refused.value)


def test_a_feature_without_any_table_is_refused(tmp_path):
    listed(tmp_path, ENTRY, frame=long())
    (tmp_path / "tables.toml").write_text(f'[[tables]]\nfile = "table.csv"\n{ENTRY}\n')
    with pytest.raises(DataError, match="'job' of the schema is in no table"):
        read_evidence(tmp_path / "tables.toml", SCHEMA)
