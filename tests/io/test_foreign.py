"""Files of SPSS, Stata, SAS, Excel and DuckDB: read in a process of their own, and written."""

import datetime as dt
import importlib.util
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pegsynth
from checks.doors.foreign_here import foreign_here
from checks.fuzz.office import sas_sample
from command import check_refused, pegs
from pegsynth.codec.codec import encode
from pegsynth.errors import DataError, OutputError, ParameterError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.codebooks import read_codebook
from pegsynth.tables import foreign_read
from pegsynth.tables.table_input import named_source, open_table
from pegsynth.tables.table_output import open_writer

pyreadstat = pytest.importorskip("pyreadstat")
duckdb = pytest.importorskip("duckdb")
xlsxwriter = pytest.importorskip("xlsxwriter")
pytest.importorskip("fastexcel")

BOOK = Schema(
    (
        Feature(
            "sex",
            categories=("1", "2"),
            missing=("", "-9"),
            dtype="double",
            label="sex of the person",
            value_labels=(("1", "male"), ("2", "female"), ("-9", "refused")),
        ),
        Feature("town", categories=("Köln", "Bonn", "=x"), missing=("",)),
        Feature("price", kind="numeric", edges=(0.0, 10.0, 100.0), missing=("",)),
        Feature("day", categories=("2020-02-29", "1950-01-01"), dtype="date32", missing=("",)),
    ),
    reviewed=True,
)
FRAME = pl.DataFrame(
    {
        "sex": [1.0, 2.0, None],
        "town": ["Köln", "=x", None],
        "price": [9.75, 10.0, None],
        "day": [dt.date(2020, 2, 29), dt.date(1950, 1, 1), None],
    }
)
CODES = [[0, 0, 0, 0], [1, 2, 1, 1], [2, 3, 2, 2]]
WRITTEN = ("sav", "zsav", "dta", "xlsx")


def table(source):
    with open_table(source) as reader:
        return pl.concat(list(reader.batches()))


def written(path, frame=FRAME, book=BOOK):
    with open_writer(path, codebook=book) as writer:
        for piece in frame.iter_slices(2):
            writer.write(piece)
    return str(path)


@pytest.mark.parametrize("extension", WRITTEN)
def test_what_is_written_is_read_again(tmp_path, extension):
    path = written(tmp_path / f"t.{extension}")
    assert encode(path, BOOK).tolist() == CODES
    assert [each.name for each in tmp_path.iterdir()] == [f"t.{extension}"]


def test_labels_and_missing_codes_are_in_the_file(tmp_path):
    _, header = pyreadstat.read_sav(written(tmp_path / "t.sav"), user_missing=True)
    assert header.variable_value_labels == {"sex": {1: "male", 2: "female", -9: "refused"}}
    assert header.missing_ranges == {"sex": [{"lo": -9, "hi": -9}]}
    assert header.column_names_to_labels["sex"] == "sex of the person"
    _, header = pyreadstat.read_dta(written(tmp_path / "t.dta"))
    assert header.variable_value_labels == {"sex": {1: "male", 2: "female", -9: "refused"}}
    labels = table(named_source(written(tmp_path / "t.xlsx"), table="codebook"))
    assert labels.rows()[0] == ("sex", None, "sex of the person") or labels.rows()[0][1] == ""
    assert ("sex", "1", "male") in labels.rows()


def test_user_missing_codes_stay_codes(tmp_path):
    path = tmp_path / "t.sav"
    frame = pl.DataFrame({"x": [1.0, -9.0, 2.5]})
    pyreadstat.write_sav(frame, path, missing_ranges={"x": [-9]})
    assert table(str(path))["x"].to_list() == [1.0, -9.0, 2.5]


def test_extended_missing_values_of_stata_stay_where_they_have_a_label(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "t.dta"
    frame = pd.DataFrame({"o": [1.0, "a", 2.5], "q": [1.0, "b", 2.0]})
    pyreadstat.write_dta(
        frame,
        path,
        variable_value_labels={"o": {1: "one", "a": "refused"}},
        missing_user_values={"o": ["a"], "q": ["b"]},
    )
    with open_table(str(path)) as reader:
        assert reader.untyped == {"o"}
    assert table(str(path)).rows() == [("1", 1.0), (".a", None), ("2.5", 2.0)]


@pytest.mark.parametrize("kind", ["sav", "dta", "xpt"])
def test_formats_say_what_is_a_date(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    days = [dt.date(2020, 2, 29), None, dt.date(1899, 12, 31)]
    times = [
        dt.datetime(2020, 2, 29, 12, 30, 0, 500_000),
        None,
        dt.datetime(1600, 1, 1, 23, 59, 59),
    ]
    frame = pl.DataFrame({"d": days, "t": times})
    {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}[kind](
        frame, path
    )
    found = table(str(path))
    assert found["d"].dt.date().to_list() == days
    assert found["t"].to_list() == times


def test_a_date_beyond_the_calendar_is_refused(tmp_path):
    path = tmp_path / "t.sav"
    frame = pl.DataFrame({"d": [1e300, 0.0]})
    pyreadstat.write_sav(frame, path, variable_format={"d": "DATE11"})
    with pytest.raises(DataError, match=r"column 'd': 1 dates lie outside"):
        table(str(path))


def test_sas_data_sets_are_read(tmp_path):
    path = tmp_path / "iris.sas7bdat"
    path.write_bytes(sas_sample())
    own, _ = pyreadstat.read_sas7bdat(str(path), output_format="dict")
    found = table(str(path))
    assert found.shape == (150, 5)
    assert found.columns == list(own)
    for name, values in own.items():
        # Numbers are those that pyreadstat reads, bit for bit; texts lose spaces at their end.
        held = list(values)
        assert found[name].to_list() == held, name
    assert found["Species"].unique().sort().to_list() == ["setosa", "versic", "virgin"]
    # Its header is a codebook, of which no row is read.
    book = read_codebook(path)
    assert book["Species"].private_categories
    assert book["Sepal_Length"].private_edges
    # The same table from a transport file gives the same codes.
    schema = Schema((Feature("Species", categories=("setosa", "versic", "virgin")),))
    other = tmp_path / "iris.xpt"
    pyreadstat.write_xport(found, other, file_format_version=8)
    both = [encode(table(str(each)).select("Species"), schema).tolist() for each in (path, other)]
    assert both[0] == both[1]


def test_a_truncated_sas_data_set_is_refused(tmp_path):
    path = tmp_path / "iris.sas7bdat"
    path.write_bytes(sas_sample()[:70_000])
    check_refused(pegs("schema", path, "-o", tmp_path / "s.toml"), path)


def test_cells_of_a_workbook_are_texts_each_for_itself(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("first")
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        sheet.write_row(0, 0, ["a", "b"])
        cells = [1, 1.5, "1", "x", True, 2**53, None]
        for row, cell in enumerate(cells, start=1):
            sheet.write(row, 0, cell)
        sheet.write_datetime(8, 0, dt.datetime(2020, 2, 29), day)
        sheet.write_datetime(9, 0, dt.datetime(2020, 2, 29, 12, 30), day)
        sheet.write_number(10, 1, 7)
        book.add_worksheet("second").write_row(0, 0, ["c"])
    found = table(str(path))
    expected = ["1", "1.5", "1", "x", "true", "9007199254740992", "2020-02-29"]
    assert found["a"].to_list() == [*expected, "2020-02-29T12:30:00", None]
    with pytest.raises(DataError, match="no sheet 'third'; its sheets are first, second"):
        table(named_source(str(path), table="third"))
    with pytest.raises(DataError, match="no rows"):
        table(named_source(str(path), table="second"))


@pytest.mark.parametrize(
    ("names", "words"), [(["a", "a"], "appears twice"), (["a", ""], "column 2 has no name")]
)
def test_headers_of_a_workbook_are_checked(tmp_path, names, words):
    with xlsxwriter.Workbook(str(tmp_path / "t.xlsx")) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, names)
        sheet.write_row(1, 0, [1, 2])
    with pytest.raises(DataError, match=words):
        table(str(tmp_path / "t.xlsx"))


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE stays (a INTEGER, b VARCHAR, h HUGEINT)")
        connection.execute("INSERT INTO stays SELECT i, 'x' || i, i FROM range(5) t(i)")
        connection.execute("CREATE VIEW few AS SELECT a FROM stays LIMIT 2")
    return path


def test_tables_views_and_queries_of_duckdb(database):
    rows = [(i, f"x{i}", str(i)) for i in range(5)]
    with open_table(named_source(str(database), table="stays")) as reader:
        assert reader.selection == "whole"
        assert pl.concat(list(reader.batches())).rows() == rows
        assert next(reader.batches(["b"])).rows()[0] == ("x0",)
    address = f"duckdb:///{database}"
    with open_table(named_source(address, table="few")) as reader:
        assert reader.selection == "view"
    with open_table(named_source(address, query="SELECT a FROM stays WHERE a > 3")) as reader:
        assert reader.selection == "other"
        assert pl.concat(list(reader.batches())).rows() == [(4,)]
    with open_table(named_source(address, query="SELECT a FROM stays", rowwise=True)) as reader:
        assert reader.selection == "declared"
    with pytest.raises(DataError, match="say which table is meant with --table; there are few, st"):
        table(str(database))
    with pytest.raises(DataError, match="there are few, stays"):
        table(named_source(address, table="none"))
    with pytest.raises(DataError, match="does not take the query"):
        table(named_source(address, query="SELECT a FROM nowhere"))


def test_a_query_that_changes_is_refused(database):
    query = "SELECT a + random() AS a FROM stays"
    with open_table(named_source(str(database), query=query)) as reader:
        list(reader.batches())
        with pytest.raises(DataError, match="came differently the second time"):
            list(reader.batches())


def test_a_query_reaches_no_other_file(database):
    query = "SELECT * FROM read_csv('/etc/passwd')"
    with pytest.raises(DataError, match="does not take the query"):
        table(named_source(str(database), query=query))


def test_a_database_that_is_being_written_is_refused(database):
    program = (
        f"import duckdb, sys; c = duckdb.connect({str(database)!r}); print(1, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        with pytest.raises(DataError, match="another program has it open"):
            table(named_source(str(database), table="stays"))
        other.stdin.close()


def test_relations_of_duckdb_are_tables():
    relation = duckdb.sql("SELECT i % 2 AS a, 'x' AS b FROM range(60) t(i)")
    book = Schema(
        (Feature("a", categories=("0", "1")), Feature("b", categories=("x",))), reviewed=True
    )
    released = pegsynth.synthesize(relation, book, rows=5, epsilon=5.0, method="pegs-once")
    assert released.frames[0].shape == (5, 2)


def test_options_that_do_not_fit_the_file(tmp_path):
    path = written(tmp_path / "t.sav")
    with pytest.raises(ParameterError, match="require the address of a database"):
        named_source(path, table="x")
    with pytest.raises(ParameterError, match="--query requires a database"):
        open_table(named_source(written(tmp_path / "t.xlsx"), query="SELECT 1"))


@pytest.mark.parametrize("extension", ["sav", "dta", "xpt", "sas7bdat", "xlsx", "xls", "duckdb"])
def test_files_that_are_none_of_it(tmp_path, extension):
    path = tmp_path / f"t.{extension}"
    path.write_bytes(b"a,b\n1,2\n" * 50)
    with pytest.raises(DataError, match=r"truncated or is not an? "):
        table(str(path))


def test_a_reader_that_crashes_is_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    path = written(tmp_path / "t.sav")
    crash = ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(foreign_read, "COMMAND", crash)
    with pytest.raises(DataError, match="truncated or is not an SPSS file"):
        table(path)


def test_a_process_ends_with_its_reader(tmp_path):
    path = written(tmp_path / "t.sav", pl.concat([FRAME] * 5000))
    reader = open_table(path)
    rows = reader.pieces()
    next(rows)
    rows.close()
    assert sum(batch.height for batch in reader.batches(["sex"])) == 15_000
    process = reader.parts[0]._idle._process
    reader.close()
    assert process.returncode == 0


@pytest.mark.parametrize("package", ["pyreadstat", "fastexcel", "duckdb", "xlsxwriter"])
def test_an_extra_that_is_not_installed_is_one_message(tmp_path, package, monkeypatch):
    blocked = f"import sys; sys.modules[{package!r}] = None; "
    serve = "from pegsynth.tables.foreign.serve import main; sys.exit(main())"
    monkeypatch.setattr(foreign_read, "COMMAND", ("-P", "-c", blocked + serve))
    if package == "xlsxwriter":
        real = importlib.util.find_spec
        monkeypatch.setattr(
            "pegsynth.tables.table_output.find_spec", lambda n: None if n == package else real(n)
        )
        with pytest.raises(OutputError, match=r"pip install 'pegsynth\[office\]'"):
            written(tmp_path / "t.xlsx")
        return
    path = {"pyreadstat": "t.sav", "fastexcel": "t.xlsx", "duckdb": "t.duckdb"}[package]
    (tmp_path / path).write_bytes(b"x")
    with pytest.raises(DataError, match=rf"needs {package}; install it with pip install"):
        table(str(tmp_path / path))


def test_names_and_sizes_that_a_format_lacks(tmp_path):
    for extension in ("dta", "sav"):
        with pytest.raises(OutputError, match="the column name 'a b' is not allowed"):
            written(tmp_path / f"t.{extension}", pl.DataFrame({"a b": [1.0]}))
    tall = pl.DataFrame({"a": [1.0]}).select(pl.col("a").repeat_by(1_048_576).explode())
    with pytest.raises(OutputError, match="a sheet holds at most"):
        written(tmp_path / "t.xlsx", tall)
    with pytest.raises(OutputError, match="the extension is not known"):
        written(tmp_path / "t.xls")
    assert not list(tmp_path.iterdir())


def test_a_release_from_and_into_office_files(tmp_path):
    path = written(tmp_path / "t.sav", pl.concat([FRAME] * 20))
    BOOK.save(tmp_path / "s.toml")
    out = tmp_path / "o.dta"
    common = ("--schema", tmp_path / "s.toml", "--rows", "8", "--epsilon", "5", "-o")
    done = pegs("synthesize", path, *common, out, "--method", "pegs-once")
    assert done.code == 0, done.err
    assert encode(str(out), BOOK).shape == (8, 4)
    done = pegs("schema", path, "-o", tmp_path / "d.toml")
    assert done.code == 0, done.err
    Path(path).write_bytes(Path(path).read_bytes()[:300])
    check_refused(pegs("synthesize", path, *common, out), "truncated or is not an SPSS file")


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@pytest.mark.slow(seconds=10)
@pytest.mark.parametrize("extension", [*WRITTEN, "xpt", "duckdb"])
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(TEXTS, st.none() | NUMBERS), min_size=1, max_size=6))
def test_every_format_round_trips(tmp_path_factory, extension, rows):
    rows = [(text.strip(), number) for text, number in rows]
    frame = pl.DataFrame(
        [(f"{n}{text}", number) for n, (text, number) in enumerate(rows)],
        schema={"a": pl.String, "b": pl.Float64},
        orient="row",
    )
    path = Path(tmp_path_factory.mktemp("f"), f"t.{extension}")
    if extension == "duckdb":
        arrow = frame.to_arrow()  # noqa: F841 (DuckDB finds it by its name)
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    elif extension == "xpt":
        frame = frame.with_columns(pl.col("b").clip(-1e70, 1e70).round_sig_figs(12))
        pyreadstat.write_xport(frame, path, file_format_version=8)
    else:
        written(path, frame)
    with foreign_here():
        back = table(str(path)).with_columns(pl.col("b").cast(pl.Float64))
    assert back["a"].to_list() == frame["a"].str.strip_chars_end().to_list()
    assert back["b"].is_null().to_list() == frame["b"].is_null().to_list()
    found, held = (each["b"].fill_null(0).to_list() for each in (back, frame))
    assert found == pytest.approx(held, rel=1e-14, abs=1e-70)
