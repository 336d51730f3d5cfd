"""Folders with partitions, globs, addresses and object stores, through the same readers."""

import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import polars as pl
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from command import SECRET, done
from pegsynth.errors import DataError
from pegsynth.tables import file_sets
from pegsynth.tables.file_sets import RemoteFile, find_files, fingerprint
from pegsynth.tables.reader import Place, Track
from pegsynth.tables.table_input import open_table, table_files
from pegsynth.tables.table_output import write_table
from small_release import small_schema, small_table

TABLE = pl.DataFrame({"a": range(10), "b": [f"x{k % 3}" for k in range(10)]})


def read(source, columns=None, **options):
    return pl.concat(list(open_table(source).batches(columns, **options)))


def hive(folder, extension=".parquet"):
    """Write a table cut by year and month, with marker files in between."""
    for number, (year, month) in enumerate([(2019, "01"), (2019, "02"), (2020, "01")]):
        place = folder / f"year={year}" / f"month={month}"
        place.mkdir(parents=True)
        write_table(place / f"part-0{extension}", TABLE.slice(3 * number, 3))
        (place / ".part-0.crc").write_bytes(b"x")
    (folder / "_SUCCESS").touch()
    (folder / "_metadata").write_text("x")
    return folder


@pytest.mark.parametrize("extension", [".parquet", ".arrow", ".csv"])
def test_folders_give_columns(tmp_path, extension):
    frame = read(str(hive(tmp_path, extension)))
    assert frame.columns == ["a", "b", "year", "month"]
    years = [2019] * 6 + [2020] * 3
    assert frame["year"].cast(pl.Int64).to_list() == years
    assert frame["month"].to_list() == ["01"] * 3 + ["02"] * 3 + ["01"] * 3
    assert frame["a"].cast(pl.Int64).to_list() == list(range(9))
    assert frame.schema["year"] == pl.String


def test_columns_of_folders_alone_and_in_any_order(tmp_path):
    source = str(hive(tmp_path))
    assert read(source, ["month"])["month"].to_list() == ["01"] * 3 + ["02"] * 3 + ["01"] * 3
    assert read(source, ["year", "a"]).columns == ["year", "a"]
    reader = open_table(source)
    assert reader.expected_rows == 9
    assert reader.columns == ("a", "b", "year", "month")
    assert reader.arrow_schema.names == ["a", "b"]
    assert reader.untyped == {"year", "month"}


def test_odd_values_of_folders(tmp_path):
    for text in ("__HIVE_DEFAULT_PARTITION__", "a%2Fb", "x=y"):
        (tmp_path / f"k={text}").mkdir()
        write_table(tmp_path / f"k={text}" / "f.parquet", TABLE.head(1))
    assert read(str(tmp_path), ["k"])["k"].to_list() == [None, "a/b", "x=y"]


def test_a_column_of_the_files_comes_from_the_files(tmp_path):
    (tmp_path / "b=from the folder").mkdir()
    write_table(tmp_path / "b=from the folder" / "f.parquet", TABLE)
    assert read(str(tmp_path)).equals(TABLE)


def test_folders_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="holds no files"):
        open_table(str(tmp_path))
    hive(tmp_path)
    (tmp_path / "other.parquet").write_bytes((next(tmp_path.rglob("*.parquet"))).read_bytes())
    with pytest.raises(DataError, match="its folders name other columns"):
        open_table(str(tmp_path))


def test_file_addresses(tmp_path):
    write_table(tmp_path / "a b%.parquet", TABLE)
    address = (tmp_path / "a b%.parquet").as_uri()
    assert read(address).equals(TABLE)
    assert table_files(address) == [tmp_path / "a b%.parquet"]
    assert read(f"file://localhost{tmp_path}/*.parquet").equals(TABLE)
    with pytest.raises(DataError, match="of this machine"):
        open_table("file://elsewhere/x.csv")


@pytest.mark.parametrize(
    "address",
    [
        f"s3://{SECRET}:{SECRET}@bucket/x.parquet",
        f"s3://bucket/x.parquet?secret_key={SECRET}",
        f"gs://bucket/x.parquet?token={SECRET}",
        f"abfs://container@account/x?X-Amz-Signature={SECRET}",
    ],
)
def test_addresses_with_keys_are_refused(address):
    with pytest.raises(DataError, match="holds a password or key") as refused:
        open_table(address)
    assert SECRET not in str(refused.value)


def test_unknown_addresses():
    with pytest.raises(DataError, match="ftp:// cannot be read; known are file://, s3://") as said:
        open_table(f"ftp://u:{SECRET}@host/x.csv")
    assert SECRET not in str(said.value)


# A file system of PyArrow's that is not this machine's


@pytest.fixture
def far(tmp_path, monkeypatch):
    """A folder that is reached through PyArrow under s3://bucket alone."""
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def filesystem(address):
        assert address.startswith("s3://bucket/")
        return store, urlsplit(address).path.lstrip("/")

    monkeypatch.setattr(file_sets, "_filesystem", filesystem)
    return tmp_path


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.arrow"])
def test_remote_files(far, name):
    write_table(far / name, TABLE)
    frame = read(f"s3://bucket/{name}")
    assert frame.cast({"a": pl.Int64}).equals(TABLE)
    assert table_files(f"s3://bucket/{name}") == []
    later = Track()
    rest = read(f"s3://bucket/{name}", start=Place(0, 4, 4), track=later)
    assert rest.cast({"a": pl.Int64}).equals(TABLE.slice(4))
    assert later.place(7) == Place(0, 7, 7)


def test_remote_folders_and_globs(far):
    hive(far / "data")
    assert read("s3://bucket/data").columns == ["a", "b", "year", "month"]
    assert read("s3://bucket/data/year=2019/*/part-*.parquet")["a"].to_list() == list(range(6))
    with pytest.raises(DataError, match="no file matches"):
        open_table("s3://bucket/data/*.none")
    with pytest.raises(DataError, match="no such file"):
        open_table("s3://bucket/none.parquet")


def test_a_remote_file_that_is_cut_short(far):
    write_table(far / "t.parquet", TABLE)
    (far / "t.parquet").write_bytes((far / "t.parquet").read_bytes()[:-30])
    with pytest.raises(DataError, match="or the connection was lost"):
        open_table("s3://bucket/t.parquet")


def test_a_fingerprint_changes_with_the_files(far):
    write_table(far / "t.parquet", TABLE)
    near, remote = far / "t.parquet", find_files("s3://bucket/t.parquet")[0].file
    assert isinstance(remote, RemoteFile)
    before = [fingerprint([each]) for each in (near, remote)]
    assert before == [fingerprint([each]) for each in (near, remote)]
    write_table(far / "t.parquet", TABLE.head(5))
    assert all(fingerprint([each]) != was for each, was in zip((near, remote), before, strict=True))


# An object store of the tests' own


class Store(BaseHTTPRequestHandler):
    """Enough of S3 to read: one bucket, HEAD, GET of a range, and a list."""

    folder: Path

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        parts = urlsplit(self.path)
        _, bucket, *names = unquote(parts.path).split("/")
        asked = parse_qs(parts.query)
        file = self.folder.joinpath(*names)
        if bucket != "bucket":
            self.reply(404)
        elif "list-type" in asked:
            self.reply(200, self.listing(asked).encode(), kind="application/xml")
        elif not names or names == [""]:
            self.reply(200)
        elif not file.is_file():
            self.reply(404)
        else:
            content = file.read_bytes()
            first, last = 0, len(content) - 1
            if asked_range := self.headers.get("Range"):
                first, last = map(int, asked_range.removeprefix("bytes=").split("-"))
            last = min(last, len(content) - 1)
            span = f"bytes {first}-{last}/{len(content)}"
            self.reply(206 if asked_range else 200, content[first : last + 1], body=body, span=span)

    def listing(self, asked):
        prefix = asked.get("prefix", [""])[0]
        found = [
            (path.relative_to(self.folder).as_posix(), path.stat().st_size)
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.relative_to(self.folder).as_posix().startswith(prefix)
        ][: int(asked.get("max-keys", ["1000"])[0])]
        entries = "".join(
            f"<Contents><Key>{key}</Key><Size>{size}</Size>"
            "<LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>"
            for key, size in found
        )
        return (
            '<?xml version="1.0"?><ListBucketResult><Name>bucket</Name>'
            f"<Prefix>{prefix}</Prefix><KeyCount>{len(found)}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
        )

    def reply(self, status, content=b"", *, body=True, kind="binary/octet-stream", span=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", kind)
        self.send_header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
        if span:
            self.send_header("Content-Range", span)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """Serve a folder as s3://bucket; give the folder and what an address must end with."""
    handler = type("OneStore", (Store,), {"folder": tmp_path})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=partial(server.serve_forever, 0.05), daemon=True).start()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "name")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "word")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    host = f"127.0.0.1:{server.server_port}"
    yield tmp_path, f"?region=nowhere&scheme=http&endpoint_override={host}"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(not hasattr(fs, "S3FileSystem"), reason="this PyArrow has no S3")
def test_an_object_store(bucket, tmp_path_factory):
    folder, options = bucket
    table = small_table(400)
    for number in range(4):
        place = folder / "data" / f"batch={number}"
        place.mkdir(parents=True)
        pq.write_table(
            table.slice(100 * number, 100).to_arrow(), place / "part.parquet", row_group_size=30
        )
    address = f"s3://bucket/data{options}"
    frame = read(address)
    assert frame.drop("batch").equals(table)
    assert frame["batch"].to_list() == [str(number) for number in range(4) for _ in range(100)]
    assert read(f"s3://bucket/data/batch=2/*.parquet{options}").equals(table.slice(200, 100))
    with pytest.raises(DataError, match="no such file"):
        open_table(f"s3://bucket/none.parquet{options}")
    out = tmp_path_factory.mktemp("out")
    small_schema().save(out / "schema.toml")
    one = f"s3://bucket/data/*/*.parquet{options}"
    done("fit", one, "--schema", out / "schema.toml", "--resume", out / "c", "-o", out / "m.pegs")
    assert sorted(path.name for path in out.iterdir()) == ["m.pegs", "schema.toml"]
