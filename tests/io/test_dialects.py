"""Text files of other dialects: read as declared, recognised by drafts, written as they were."""

import codecs
import gzip
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command import check_refused, pegs
from pegsynth.codec.codec import encode
from pegsynth.errors import DataError, OutputError, SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import ENCODINGS, SEPARATORS, Dialect
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.toml import dumps, loads
from pegsynth.tables.csv_read import FIRST_NAME, protect, protect_frame, read_batches
from pegsynth.tables.dialect_guess import recognised
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import open_writer

GERMAN = Dialect(separator=";", decimal=",", thousands=".", encoding="windows-1252")
BOOK = Schema(
    (
        Feature("town", categories=("Köln", "Bonn", "a;b", "-1,5")),
        Feature("price", kind="numeric", edges=(0, 10, 1000, 2000), missing=("", "-9,0")),
    ),
    dialect=GERMAN,
)


def table(path):
    return pl.concat(list(open_table(str(path)).batches()))


def test_a_table_of_an_office_is_read_and_written_as_it_is(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('town;price\nKöln;1.234,50\n"a;b";9,5\nBonn;-9,0\n'.encode("cp1252"))
    assert encode(str(path), BOOK).tolist() == [[0, 2], [2, 0], [1, 3]]
    out = tmp_path / "o.csv"
    frame = pl.DataFrame({"town": ["Köln", "a;b", "-1,5"], "price": [1234.5, 0.25, None]})
    with open_writer(out, codebook=BOOK) as writer:
        writer.write(frame)
        writer.write(frame)
    # A number of this dialect, which no spreadsheet takes for a formula.
    lines = 'Köln;1234,5\n"a;b";0,25\n-1,5;\n'
    assert out.read_bytes().decode("cp1252") == "town;price\n" + lines * 2
    assert encode(str(out), BOOK).tolist() == [[0, 2], [2, 0], [3, 3]] * 2


def test_numbers_with_either_mark_are_no_formulas_and_all_else_is():
    for number in ("-1,5", "+1,5", "-1.5", "-,5", "-1,5e-3", "-9"):
        assert protect(number) == number
    for text in ("-1,5+1", "-1,2,3", "-1.234,5", "-a1,5", "-1,5 ", "=1,5", "@1,5", "-,", "-1,5\n"):
        assert protect(text) == f"'{text}"
        frame = pl.DataFrame({"x": [text]})
        assert protect_frame(frame)["x"].to_list() == [f"'{text}"]


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "txt"])
def test_names_say_the_separator_and_the_compression(tmp_path, kind, packed):
    path = tmp_path / f"t.{kind}{packed}"
    mark = "\t" if kind == "tsv" else ","
    text = f"a{mark}b\n1{mark}x\n".encode()
    codec = {".gz": "gzip", ".zst": "zstd"}.get(packed)
    path.write_bytes(pa.Codec(codec).compress(text, asbytes=True) if codec else text)
    if packed == ".gz":
        path.write_bytes(gzip.compress(text[:4]) + gzip.compress(text[4:]))
    assert table(path).to_dict(as_series=False) == {"a": ["1"], "b": ["x"]}
    out = tmp_path / f"o.{kind}{packed}"
    with open_writer(out) as writer:
        writer.write(table(path))
    assert table(out).equals(table(path))


@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_a_truncated_or_false_archive_is_refused(tmp_path, packed):
    codec = {".gz": "gzip", ".zst": "zstd"}[packed]
    whole = pa.Codec(codec).compress(b"a,b\n" + b"1,x\n" * 5000, asbytes=True)
    for content in (whole[:-6], b"a,b\n1,x\n", whole[:9]):
        path = tmp_path / f"t.csv{packed}"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"truncated|not compressed"):
            table(path)


def test_a_nameless_first_column_has_a_name(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text('"","a"\n"1","x"\n')
    assert table(path).columns == [FIRST_NAME, "a"]
    path.write_text(",a,\n1,x,2\n")
    with pytest.raises(DataError, match="column 3 has no name"):
        table(path)


def test_a_release_does_not_sniff(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\nü,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8; say which encoding"):
        table(path)
    path.write_text("a;b\nx;1\n")
    with pytest.raises(DataError, match="separated by commas; if they are by semicolons, say"):
        table(path)
    path.write_bytes("a;b\nx;1\n".encode("utf-16"))
    with pytest.raises(DataError, match=r"--encoding utf-16"):
        table(path)


def test_bytes_that_an_encoding_has_not_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nx,\x81\n")
    reader = open_table(str(path), dialect=Dialect(encoding="cp1252"))
    assert reader.columns == ("a", "b")
    with pytest.raises(DataError, match=r"line 2: the text is not windows-1252"):
        list(reader.batches())
    path.write_bytes("a,b\nx,y\n".encode("utf-16")[:-1])
    with pytest.raises(DataError, match="not utf-16"):
        list(open_table(str(path), dialect=Dialect(encoding="utf-16")).batches())


# Whole, and with a surrogate without its pair, which says a place after the start.
@pytest.mark.parametrize("rows", [b"", b"\x00\xdc,\x00"])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-8"])
def test_utf_16_needs_its_byte_order_mark(tmp_path, codec, rows):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\nx,y\n".encode(codec) + rows)
    with pytest.raises(DataError, match="line 1: the text is not utf-16"):
        open_table(str(path), dialect=Dialect(encoding="utf-16"))


def test_a_character_that_the_encoding_lacks_is_refused_in_writing(tmp_path):
    book = Schema((Feature("a", categories=("Ł",)),), dialect=Dialect(encoding="latin-1"))
    with pytest.raises(OutputError, match="latin-1 does not have"):  # noqa: SIM117
        with open_writer(tmp_path / "o.csv", codebook=book) as writer:
            writer.write(pl.DataFrame({"a": ["Ł"]}))
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("a;b\nx;1,5\ny;2,75\n", "utf-8", Dialect(separator=";", decimal=",")),
        ("a;b\nx;1.234,5\ny;1.000\n", "utf-8", Dialect(";", ",", ".")),
        ('a,b\nx,"108,429.42"\ny,7\n', "utf-8", Dialect(thousands=",")),
        ('a,b\nx,"1,429"\ny,"7,000"\n', "utf-8", Dialect(thousands=",")),
        ("a;b\nx;1.234.567\ny;7\n", "utf-8", Dialect(";", ",", ".")),
        ("a\tb\nx\t1\n", "utf-16", Dialect(separator="\t", encoding="utf-16")),
        ("a|b\nKöln|1\n", "cp1252", Dialect(separator="|", encoding="windows-1252")),
        ("a|b\nK\x81ln|1\n", "latin-1", Dialect(separator="|", encoding="latin-1")),
        ("a,b\nx,1.5\ny,2.25\n", "utf-8", Dialect()),
        ("a,b\n1.5,x\n", "utf-8", Dialect()),
        ("a\nx\n", "utf-8", Dialect()),
    ],
)
def test_drafts_recognise_dialects(tmp_path, text, encoding, expected):
    path = tmp_path / "t.csv"
    path.write_bytes((text + text.partition("\n")[2] * 20).encode(encoding))
    assert recognised(path, Dialect()) == expected


def test_the_draft_of_a_command_says_and_writes_the_dialect(tmp_path):
    path, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    lines = [f"{'Köln' if n % 3 else 'Bonn'};{n},5" for n in range(40)]
    path.write_bytes(("ort;preis\n" + "\n".join(lines) + "\n").encode("cp1252"))
    done = pegs("schema", path, "-o", schema, "--binning", "equal-width")
    assert done.code == 0
    assert "recognised" in done.err
    book = Schema.load(schema)
    assert book.dialect == Dialect(";", ",", "", "windows-1252")
    assert book["preis"].kind == "numeric"
    assert len(encode(str(path), book)) == 40
    check_refused(pegs("schema", path, "-o", schema, "--separator", "xx"), "separator must be one")


def test_the_schema_file_holds_the_dialect():
    book = loads(dumps(BOOK))
    assert book == BOOK
    with pytest.raises(SchemaError, match=r"\[table\]: encoding must be one of utf-8"):
        loads('[table]\nencoding = "ebcdic"\n[[features]]\nname = "a"\ncategories = ["x"]\n')
    with pytest.raises(SchemaError, match="the same mark"):
        Dialect(decimal=",", thousands=",")


def test_numbers_are_those_of_the_dialect():
    german = NumberText(GERMAN)
    texts = ["1.234,5", "12,5", "1234,5", "1.5", "1,2,3", "1.23.456", "7", "1e3", "inf", "x", ",5"]
    found = german.numbers(pl.Series(texts)).to_list()
    assert found == [1234.5, 12.5, 1234.5, None, None, None, 7, 1000, float("inf"), None, 0.5]
    assert [german.number(text) for text in texts] == found


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    cells=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8),
    mark=st.sampled_from(SEPARATORS),
    encoding=st.sampled_from(sorted(ENCODINGS)),
    packed=st.sampled_from(["", ".gz", ".zst"]),
    block=st.sampled_from([8, 64, 1 << 16]),
)
def test_every_dialect_round_trips(tmp_path_factory, cells, mark, encoding, packed, block):
    codec = codecs.lookup(ENCODINGS[encoding]).name
    cells = [tuple(t.encode(codec, "ignore").decode(codec) for t in pair) for pair in cells]
    frame = pl.DataFrame(cells, schema={"a": pl.String, "b": pl.String}, orient="row")
    # What spreadsheets would run is protected, and a reader takes that off by the schema.
    frame = frame.with_columns(pl.all().str.replace(r"^[=+\-@\t']+", ""))
    dialect = Dialect(separator=mark, encoding=encoding)
    book = Schema((Feature("a", categories=("x",)),), dialect=dialect)
    path = Path(tmp_path_factory.mktemp("d"), f"t.csv{packed}")
    with open_writer(path, codebook=book) as writer:
        writer.write(frame)
    settled = dialect.settled(str(path))
    back = pl.concat(list(read_batches(path, dialect=settled, block_bytes=block)))
    assert back.equals(frame)
