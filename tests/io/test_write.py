import io
import resource

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.errors import OutputError
from pegsynth.tables.csv_read import protect, unprotect
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import check_writable, open_writer, write_table

FRAME = pl.DataFrame(
    {
        "n": [1, None, 3],
        "f": [0.1, 2.0, None],
        "s": ['a"b', "x,\ny", None],
        "e": pl.Series(["u", "v", None], dtype=pl.Enum(["u", "v"])),
    }
)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.pq", "o.arrow", "o.feather"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_batches_make_one_file(tmp_path, name, step):
    path = tmp_path / name
    with open_writer(path) as writer:
        for part in FRAME.iter_slices(step):
            writer.write(part)
            assert not path.exists()
    frame = pl.concat(open_table(path).batches())
    text = FRAME.cast({"e": pl.String})
    if name == "o.csv":
        assert frame.equals(text.cast(pl.String))
        assert pd.read_csv(path)["s"].tolist()[:2] == ['a"b', "x,\ny"]
    else:
        assert frame.cast({"e": pl.String}).equals(text)
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.arrow"])
def test_failure_leaves_nothing(tmp_path, name):
    (tmp_path / name).write_text("old")

    def fail():
        with open_writer(tmp_path / name) as writer:
            writer.write(FRAME)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / name).read_text() == "old"
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.arrow"])
def test_full_disk(tmp_path, name):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    big = pl.DataFrame({"a": pl.int_range(200_000, eager=True).hash().cast(pl.String)})
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OutputError, match=name):
            write_table(tmp_path / name, big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == []


def test_check_writable(tmp_path):
    assert check_writable(tmp_path / "o.CSV") == "csv"
    with pytest.raises(OutputError, match=r"known are \.csv, \.tsv"):
        check_writable(tmp_path / "o.ods")
    with pytest.raises(OutputError, match="folder does not exist"):
        check_writable(tmp_path / "none" / "o.csv")


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.arrow"])
def test_no_rows_keep_the_columns(tmp_path, name):
    write_table(tmp_path / name, FRAME.clear())
    data = (tmp_path / name).read_bytes()
    assert data == b"n,f,s,e\n" if name == "o.csv" else len(data) > 20


@pytest.mark.parametrize("values", [[None, "x", None], [1, None], [None]])
def test_null_alone_on_its_line_survives(tmp_path, values):
    path = tmp_path / "o.csv"
    write_table(path, pl.DataFrame({"a": values}))
    texts = [None if v in {None, ""} else v for v in pl.concat(open_table(path).batches())["a"]]
    assert texts == [None if v is None else str(v) for v in values]
    assert len(pd.read_csv(path)) == len(values)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+x", "'+x"),
        ("-", "'-"),
        ("@a", "'@a"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("-5", "-5"),
        ("+3.5e2", "+3.5e2"),
        ("-1-1", "'-1-1"),
        (",x", ",x"),
        ("?", "?"),
        ("", ""),
    ],
)
def test_formulas_are_protected(tmp_path, text, written):
    assert protect(text) == written
    assert unprotect(written) == text
    for dtype in (pl.String, pl.Enum([text]), pl.Categorical):
        path = tmp_path / "o.csv"
        write_table(path, pl.DataFrame({"=h": pl.Series([text], dtype=dtype), "b": ["z"]}))
        reader = open_table(path)
        assert reader.columns == ("=h", "b")
        assert path.read_text().startswith("'=h,b")
        assert next(reader.batches())["=h"].to_list() == [written]


@given(st.lists(st.text('ab",\n\r é0', max_size=5), min_size=1, max_size=8), st.booleans())
def test_text_survives_for_us_and_for_pandas(tmp_path_factory, texts, alone):
    texts = ["." + text for text in texts]
    frame = pl.DataFrame({"a": texts} if alone else {"a": texts, "b": texts})
    path = tmp_path_factory.mktemp("csv") / "o.csv"
    write_table(path, frame)
    assert pl.concat(open_table(path).batches()).equals(frame)
    data = io.StringIO(path.read_bytes().decode(), newline="")
    assert pd.read_csv(data, dtype=str, keep_default_na=False)["a"].tolist() == texts
