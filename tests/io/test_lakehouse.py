"""Folders whose files hold rows that their table no longer has are refused by name."""

import polars as pl
import pytest
from pyarrow import fs

from command import check_refused, done, pegs, snapshot
from pegsynth.errors import DataError
from pegsynth.schema import Schema
from pegsynth.tables import file_sets
from pegsynth.tables.table_input import open_table
from small_release import small_schema, small_table

FORMATS = {
    "Delta": ("_delta_log/00000000000000000000.json", "delta_scan"),
    "Hudi": (".hoodie/hoodie.properties", 'format("hudi")'),
    "Iceberg": ("metadata/v3.metadata.json", "iceberg_scan"),
}


def lakehouse(folder, kind="Delta", inside="ward=a"):
    """A table of two files, one of which its log has removed."""
    mark, _ = FORMATS[kind]
    (folder / mark).parent.mkdir(parents=True)
    (folder / mark).write_text("{}")
    (folder / inside).mkdir(parents=True, exist_ok=True)
    for name in ("part-0", "removed"):
        small_table().write_parquet(folder / inside / f"{name}.parquet")
    return folder


def refused(source, folder, kind):
    with pytest.raises(DataError, match=f"{kind} table") as said:
        open_table(source)
    assert str(said.value).startswith(f"{folder}: ")
    assert FORMATS[kind][1] in str(said.value)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_way_into_the_folder_is_refused(tmp_path, kind):
    lake = lakehouse(tmp_path / "lake" / "people", kind)
    for source in (
        lake,
        lake / "ward=a",
        lake / "ward=a" / "part-0.parquet",
        tmp_path / "lake",
        tmp_path,
        f"{lake}/",
        f"{lake}/*/*.parquet",
        f"{lake}/ward=a/part-?.parquet",
        f"{tmp_path}/**/*.parquet",
        f"file://{lake}",
    ):
        refused(source if isinstance(source, str) else str(source), lake, kind)
    refused(lake, lake, kind)


def test_links_do_not_hide_the_folder(tmp_path):
    lake = lakehouse(tmp_path / "lake")
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "part.parquet").symlink_to(lake / "ward=a" / "part-0.parquet")
    (tmp_path / "ward").symlink_to(lake / "ward=a")
    for source in (plain, f"{plain}/*.parquet", tmp_path / "ward"):
        refused(source, lake, "Delta")


def test_a_log_alone_is_enough(tmp_path):
    """An empty log, and a table whose files lie elsewhere."""
    (tmp_path / "_delta_log").mkdir()
    refused(tmp_path, tmp_path, "Delta")


def test_iceberg_tables_by_their_names_and_by_their_folders(tmp_path):
    """A table migrated in place has no data/; other catalogues name their files otherwise."""
    migrated = lakehouse(tmp_path / "migrated", "Iceberg", inside="year=1")
    refused(migrated / "year=1", migrated, "Iceberg")
    other = lakehouse(tmp_path / "other", "Iceberg", inside="data")
    (other / "metadata" / "v3.metadata.json").rename(other / "metadata" / "t.metadata.json")
    refused(other / "data", other, "Iceberg")


def test_other_folders_are_read(tmp_path):
    """A neighbour of such a table, a description of one's own, an older table of plain files."""
    lakehouse(tmp_path / "lake")
    plain = tmp_path / "plain" / "year=1"
    plain.mkdir(parents=True)
    small_table().write_parquet(plain / "a.parquet")
    (tmp_path / "plain" / "_metadata").write_text("x")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "survey.metadata.json").write_text("{}")
    for source in (tmp_path / "plain", f"{tmp_path}/plain/*/*.parquet", plain / "a.parquet"):
        assert open_table(str(source)).expected_rows == 80
    # A way that only passes through the folder's name ends elsewhere.
    assert open_table(str(tmp_path / "lake" / ".." / "plain")).expected_rows == 80


@pytest.fixture
def far(tmp_path, monkeypatch):
    """A folder that is reached through PyArrow under s3://bucket alone."""
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(
        file_sets, "_filesystem", lambda address: (store, address.removeprefix("s3://bucket/"))
    )
    return tmp_path


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "inside",
    [
        "lake/people",
        "lake/people/",
        "lake/people/ward=a",
        "lake/people/ward=a/part-0.parquet",
        "lake",
        "lake/people/*/*.parquet",
        "lake/*/*/part-0.parquet",
    ],
)
def test_addresses_are_refused_likewise(far, kind, inside):
    lakehouse(far / "lake" / "people", kind)
    refused(f"s3://bucket/{inside}", "lake/people", kind)


def test_addresses_beside_such_a_folder_are_read(far):
    lakehouse(far / "lake" / "people")
    (far / "lake" / "plain").mkdir()
    small_table().write_parquet(far / "lake" / "plain" / "x.parquet")
    for inside in ("plain", "plain/x.parquet", "*/x.parquet"):
        assert open_table(f"s3://bucket/lake/{inside}").expected_rows == 80


@pytest.mark.parametrize(
    "command",
    [
        ("schema", "LAKE", "-o", "OUT/new.toml"),
        ("synthesize", "LAKE", "--schema", "OUT/schema.toml", "-o", "OUT/s.csv", "--rows", 9,
         "--epsilon", 1, "--book", "OUT/budget.book"),
        ("release", "LAKE", "--schema", "OUT/schema.toml", "-o", "OUT/r", "--rows", 9,
         "--epsilon", 1, "--book", "OUT/budget.book"),
        ("evaluate", "LAKE", "OUT/plain.parquet", "--schema", "OUT/schema.toml"),
        ("evaluate", "OUT/plain.parquet", "LAKE", "--schema", "OUT/schema.toml"),
    ],
    ids=lambda command: f"{command[0]}-{command[1][:3]}",
)  # fmt: skip
def test_commands_name_the_folder_and_charge_nothing(tmp_path, command):
    lake = lakehouse(tmp_path / "lake", inside=".")
    small_schema().save(tmp_path / "schema.toml")
    small_table().write_parquet(tmp_path / "plain.parquet")
    done("book", "create", tmp_path / "budget.book", "--epsilon", 2)
    before = snapshot(tmp_path)
    places = {"LAKE": str(lake), "OUT": str(tmp_path)}
    given = [str(part) for part in command]
    for name, place in places.items():
        given = [part.replace(name, place) for part in given]
    check_refused(pegs(*given), lake, "Delta table", "snapshot.parquet")
    changed = {name for name, held in snapshot(tmp_path).items() if before.get(name) != held}
    assert changed <= {str(tmp_path / "budget.book")}
    shown = done("book", "show", tmp_path / "budget.book").out
    assert "withdrawn" in shown or not changed


def test_drafts_in_python_are_refused(tmp_path):
    lake = lakehouse(tmp_path)
    with pytest.raises(DataError, match="Delta table"):
        Schema.draft(str(lake))
    assert pl.read_parquet(lake / "ward=a" / "part-0.parquet").height == 80
