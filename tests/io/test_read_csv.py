import csv
import io
import random
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.errors import DataError
from pegsynth.tables import csv_read
from pegsynth.tables.table_input import open_table

SECRET = "Zebulon"


def rows_of(path, columns=None):
    return pl.concat(open_table(path).batches(columns))


def write(tmp_path, data, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("a,b\n1,2\n", [("1", "2")]),
        ("a,b\n1,2", [("1", "2")]),
        ("a,b\r\n1,2\r\n3,4\r\n", [("1", "2"), ("3", "4")]),
        ("a,b\n1,2\n\n\n", [("1", "2")]),
        ("a,b\r\n1,2\r\n\r\n", [("1", "2")]),
        ("\ufeffa,b\n007, x \n", [("007", " x ")]),
        ('a,b\n"x,y","say ""hi"""\n', [("x,y", 'say "hi"')]),
        ('a,b\n"two\nlines","\n"\n"\r\n",z\n', [("two\nlines", "\n"), ("\r\n", "z")]),
        ("a,b\n😀,é\n", [("😀", "é")]),
        ('a,b\n"",\n', [("", None)]),
        ('"a","b"\n"1","2"\n', [("1", "2")]),
        ('a,b\n"""",""""""\n', [('"', '""')]),
    ],
)
def test_what_must_be_read(tmp_path, data, expected):
    frame = rows_of(write(tmp_path, data))
    assert frame.columns == ["a", "b"]
    assert frame.rows() == expected


def test_a_long_cell(tmp_path):
    long = "x," * 500_000
    assert rows_of(write(tmp_path, f'a,b\n1,"{long}"\n')).rows() == [("1", long)]


def test_reader_properties(tmp_path):
    path = write(tmp_path, "a,b\n1,2\n")
    reader = open_table(str(path))
    assert reader.columns == ("a", "b")
    assert reader.source == str(path)
    assert not reader.typed
    assert reader.arrow_schema is None
    assert reader.frame_kind is None
    assert [b.rows() for b in reader.batches(["b"])] == [[("2",)]]
    assert [b.rows() for b in reader.batches(["b", "a"])] == [[("2", "1")]]


def test_formula_guard_comes_off_column_names(tmp_path):
    assert open_table(write(tmp_path, "'=a,'b\n1,2\n")).columns == ("=a", "'b")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n\n\n", "no rows"),
        (f"a,b\n1,2\n{SECRET}\n", "line 3: 1 fields where the header has 2"),
        (f"a,b\n1,2\n{SECRET},2,3\n", "line 3: 3 fields"),
        (f'a,b\n"x\ny",2\n{SECRET},2,3\n4,5\n', "line 4: 3 fields"),
        (f"a,b\n1,2\n\n{SECRET},4\n", "line 3 is blank"),
        (f"a\n1\n\n{SECRET}\n", "line 3 is blank"),
        (f'a,b\n1,"{SECRET}\n2,3\n', "never closed"),
        (f'a,b\n1,2\n{SECRET}" x,6" y\n', "line 3: a quote stands inside"),
        (f'a,b\n5" {SECRET},b\n6" x,b\n', "line 2: a quote stands inside"),
        (f'a,b\n"{SECRET}"x,2\n', "line 2: a quote stands inside"),
        (f"a,b\n1,2\n{SECRET},".encode() + b"\xe9\n", "line 3: the text is not UTF-8"),
        (f"a,b\n{SECRET},2\n".encode("utf-16"), "UTF-16"),
        (f"a,b\n{SECRET},\0\n".encode(), "line 2: the file has zero bytes"),
        (f"a,a\n{SECRET},2\n".encode(), "'a' appears twice"),
        (f"a,\n{SECRET},2\n".encode(), "column 2 has no name"),
        (f"a;b\n{SECRET};2\n".encode(), "not separated by commas"),
    ],
)
def test_bad_files_are_refused_without_their_values(tmp_path, data, words):
    path = write(tmp_path, data)
    with pytest.raises(DataError) as caught:
        rows_of(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_random_bytes(tmp_path):
    path = write(tmp_path, random.Random(5).randbytes(5000))
    with pytest.raises(DataError, match=r"data\.csv"):
        rows_of(path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.csv", "no such file"),
        ("", "x.ods: the extension"),
        ("x.ods", r"known are \.csv, \.tsv"),
    ],
)
def test_files_that_are_none(tmp_path, name, words):
    write(tmp_path, "a\n1\n", "x.ods")
    with pytest.raises(DataError, match=words):
        open_table(tmp_path / name)


def test_glob(tmp_path):
    write(tmp_path, "a,b\n1,2\n", "p1.csv")
    write(tmp_path, "b,a\n4,3\n", "p2.csv")
    write(tmp_path, "a,b\n", "p3.csv")
    reader = open_table(str(tmp_path / "p*.csv"))
    assert pl.concat(reader.batches()).rows() == [("1", "2"), ("3", "4")]
    assert pl.concat(reader.batches()).height == 2
    with pytest.raises(DataError, match="no file matches"):
        open_table(str(tmp_path / "q*.csv"))


@pytest.mark.parametrize("header", ["a,c", "a", "a,b,c"])
def test_glob_with_drift(tmp_path, header):
    write(tmp_path, "a,b\n1,2\n", "p1.csv")
    write(tmp_path, f"{header}\n1,2\n", "p2.csv")
    with pytest.raises(DataError, match=r"p2\.csv: column '[bc]'"):
        open_table(str(tmp_path / "p*.csv"))


def test_glob_of_header_only_files(tmp_path):
    write(tmp_path, "a,b\n", "p1.csv")
    write(tmp_path, "a,b\n", "p2.csv")
    with pytest.raises(DataError, match="no rows"):
        open_table(str(tmp_path / "p*.csv"))


CELL = st.text("ab ,\"\n\r;é😀'=", max_size=6)


@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=12),
    block=st.integers(1, 40),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_rows_do_not_depend_on_the_block_size(tmp_path_factory, rows, block, end):
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    path = write(tmp_path_factory.mktemp("csv"), text.getvalue())
    frame = pl.concat(csv_read.read_batches(path, block_bytes=block))
    assert frame.rows() == rows


@given(
    widths=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    block=st.integers(1, 30),
    quote=st.booleans(),
)
def test_ragged_rows_are_found_wherever_blocks_end(tmp_path_factory, widths, block, quote):
    cell = '"x\ny"' if quote else "x"
    lines = [",".join([cell] * width) for width in widths]
    path = write(tmp_path_factory.mktemp("csv"), "a,b\n" + "\n".join(lines) + "\n")
    bad = next((i for i, width in enumerate(widths) if width != 2), None)
    if bad is None:
        assert pl.concat(csv_read.read_batches(path, block_bytes=block)).height == len(widths)
        return
    line = 2 + sum(1 + width * quote for width in widths[:bad])
    with pytest.raises(DataError, match=f"line {line}: {widths[bad]} fields"):
        list(csv_read.read_batches(path, block_bytes=block))


def test_record_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_read, "RECORD_BYTES", 1000)
    path = write(tmp_path, 'a,b\n1,"' + "x\n" * 5000)
    with pytest.raises(DataError, match="never closed"):
        list(csv_read.read_batches(path, block_bytes=100))


def test_text_tables_load_no_heavy_library(tmp_path):
    path = write(tmp_path, "a\n1\n")
    code = (
        "import sys; from pegsynth.tables.table_input import open_table; "
        f"list(open_table({str(path)!r}).batches()); "
        "sys.exit(any(name in sys.modules for name in ('pyarrow', 'pandas', 'numba')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_file_that_vanishes(tmp_path):
    path = write(tmp_path, "a\n1\n")
    reader = open_table(path)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        list(reader.batches())
