"""What fuzzing found, each as the smallest file that shows it, through the command."""

import base64
import hashlib
import json
import sqlite3
import struct
import zlib
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz.tables import pickled

from command import SECRET, check_refused, done, pegs, pegs_process, review
from pegsynth.errors import ModelError, SchemaError, escaped, legible
from pegsynth.evaluation.records import Metrics
from pegsynth.schema.toml import loads
from pegsynth.study.cell_file import open_checkpoint
from pegsynth.study.output import Folder
from pegsynth.tables.checkpoint import Checkpoint

PER_ROW = ("--epsilon-per-row", 1)
DEEP = b"[" * 100_000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    rows = "".join(f"{'xyz'[i % 3]},{'pq'[i % 2]},{i}.5\n" for i in range(40))
    (folder / "data.csv").write_text("a,b,n\n" + rows)
    done("schema", folder / "data.csv", "--binning", "equal-width", "-o", folder / "schema.toml")
    review(folder / "schema.toml")
    table = (folder / "data.csv", "--schema", folder / "schema.toml", "--threads", 1)
    done("fit", *table, "-o", folder / "plain.pegs")
    done("fit", *table, "-o", folder / "once.pegs", "--method", "pegs-once", "--epsilon", 1)
    capped = ("--method", "pegs-capped", "--epsilon", 1, "--rows", 5)
    done("fit", *table, "-o", folder / "capped.pegs", *capped)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def sample(model):
    budget = PER_ROW if model.name.startswith("plain") else ()
    output = model.with_name("out.csv")
    return pegs("sample", model, "--rows", 3, *budget, "--threads", 1, "-o", output)


def rewrite(model, change_table=lambda t: t, change=lambda m: m):
    """Write a model again with its cells and its manifest changed."""
    table = pq.read_table(model)
    manifest = change(json.loads(table.schema.metadata[b"pegsynth"]))
    text = json.dumps(manifest, separators=(",", ":")).encode()
    pq.write_table(change_table(table).replace_schema_metadata({b"pegsynth": text}), model)


SEEDS = sorted(Path(__file__).parents[2].glob("fuzz/seeds/*.parquet"))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_files_that_once_ended_the_process(folder, seed):
    paths = (seed, "--schema", folder / "schema.toml", "-o", folder / "m.pegs")
    check_refused(pegs_process("fit", *paths), seed)


# model.pegs


def test_a_model_with_a_count_that_is_missing(folder):
    def gap(table):
        counts = table.column("count").to_pylist()
        return table.set_column(
            3, table.schema.field(3), [pa.array([None, *counts[1:]], pa.int64())]
        )

    rewrite(folder / "plain.pegs", gap)
    check_refused(sample(folder / "plain.pegs"), folder / "plain.pegs", "cells that no model")


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.int32(), pa.decimal128(30, 2)])
def test_a_model_with_columns_of_another_type(folder, kind):
    rewrite(folder / "plain.pegs", lambda t: t.set_column(3, "count", t.column(3).cast(kind)))
    check_refused(sample(folder / "plain.pegs"), folder / "plain.pegs", "not those of a model")


def test_a_model_with_more_cells_than_its_size_can_hold(folder, monkeypatch):
    monkeypatch.setattr("pegsynth.storage.model_file._MOST_CELLS", 3)
    monkeypatch.setattr("pegsynth.storage.model_file._CELLS_PER_BYTE", 0)
    check_refused(sample(folder / "plain.pegs"), folder / "plain.pegs", "no model of its size")


def test_a_model_that_unpacks_to_too_much(folder, monkeypatch):
    monkeypatch.setattr("pegsynth.storage.model_file._MOST_BYTES", 1)
    monkeypatch.setattr("pegsynth.storage.model_file._MOST_GROWTH", 0)
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "unpacks to more than")


def test_a_model_with_an_array_that_is_there_twice(folder):
    rewrite(folder / "once.pegs", lambda t: pa.concat_tables([t, t.slice(t.num_rows - 1)]))
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "arrays")


def test_released_blocks_of_another_shape(folder):
    def turned(manifest):
        for each in manifest["arrays"]:
            if each["name"].endswith("counts"):
                each["shape"] = [*each["shape"], 1]
        return manifest

    rewrite(folder / "once.pegs", change=turned)
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "do not fit its schema")


def test_released_blocks_of_another_type(folder):
    def floats(manifest):
        for each in manifest["arrays"]:
            if each["name"].endswith("counts"):
                each["dtype"] = "<f8"
        return manifest

    rewrite(folder / "once.pegs", change=floats)
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "do not fit its schema")


@pytest.mark.parametrize("deviation", [0.0, -1.0, 1e-200, 1e200, float("nan")])
def test_noise_of_a_size_that_no_release_has(folder, deviation):
    def change(table):
        contents, names = (table.column(name).to_pylist() for name in ("content", "name"))
        place = names.index("released: deviations")
        contents[place] = struct.pack("<d", deviation) + contents[place][8:]
        return table.set_column(5, table.schema.field(5), [pa.array(contents, pa.large_binary())])

    rewrite(folder / "once.pegs", change)
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "do not fit its schema")


def test_events_that_steer_a_terminal_are_shown_as_escapes(folder):
    def change(manifest):
        manifest["ledger"]["events"].append({"kind": "\x7f"})
        return manifest

    rewrite(folder / "plain.pegs", change=change)
    outcome = sample(folder / "plain.pegs")
    assert "\x7f" not in outcome.out + outcome.err


@pytest.mark.parametrize("kind", ["\ud800", "\x1b[31m"])
def test_events_of_a_recipe_that_no_ledger_can_hold(folder, kind):
    def change(manifest):
        events = [*json.loads(manifest["recipe"]["events"]), {"kind": kind}]
        manifest["recipe"]["events"] = json.dumps(events)
        return manifest

    rewrite(folder / "once.pegs", change=change)
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "recipe is damaged")


def test_inspect_shows_names_that_steer_a_terminal_as_escapes(folder):
    text = (folder / "schema.toml").read_text().replace('name = "a"', 'name = "a\\u007f"')
    (folder / "schema.toml").write_text(text)
    assert "a\\u007f" in done("inspect", folder / "schema.toml").out


def test_shares_that_are_empty(folder):
    rewrite(folder / "plain.pegs", change=lambda m: {**m, "shares": [[], [], []]})
    check_refused(sample(folder / "plain.pegs"), folder / "plain.pegs", "marginals")


def test_a_manifest_that_is_nested_too_deeply(folder):
    table = pq.read_table(folder / "plain.pegs")
    text = table.schema.metadata[b"pegsynth"][:-1] + b',"x":' + DEEP + b"}"
    pq.write_table(table.replace_schema_metadata({b"pegsynth": text}), folder / "plain.pegs")
    check_refused(pegs("inspect", folder / "plain.pegs"), "manifest is damaged")


def test_inspect_goes_by_the_content_and_not_by_the_notice(folder):
    rewrite(folder / "plain.pegs", change=lambda m: {**m, "notice": "SHAREABLE: \x1b[31m trust me"})
    outcome = done("inspect", folder / "plain.pegs")
    assert outcome.out.startswith("CONFIDENTIAL")
    assert "trust me" not in outcome.out


# The record of what was spent


@pytest.mark.parametrize("content", [DEEP, b'{"format":1,"notice":"\xff"}', b"", b"null"])
def test_damaged_records_of_what_was_spent(folder, content):
    (folder / "capped.pegs.spent").write_bytes(content)
    check_refused(sample(folder / "capped.pegs"), "capped.pegs.spent", "damaged")
    check_refused(pegs("inspect", folder / "capped.pegs"), "capped.pegs.spent", "damaged")


def test_counters_that_unpack_to_more_than_they_say(folder):
    record = json.loads((folder / "capped.pegs.spent").read_text())
    record["counters"] = [base64.b85encode(zlib.compress(bytes(1 << 26))).decode()]
    (folder / "capped.pegs.spent").write_text(json.dumps(record))
    check_refused(sample(folder / "capped.pegs"), "capped.pegs.spent", "damaged")


# The file of --resume


def checkpoint_file(path, *, body=bytes(16), **changes):
    """Write a checkpoint whose checksum fits, whatever it says."""
    array = {"stage": "s", "name": "tables", "dtype": "<i8", "length": 2}
    header = {"format": 1, "belongs": "me", "rows": 0, "stages": {"s": [0, 0, 0, False]}}
    header |= {"arrays": [array | changes.pop("array", {})], "sha256": ""} | changes
    digest = hashlib.sha256(msgspec.json.encode(header) + body).hexdigest()
    text = msgspec.json.encode(header | {"sha256": digest})
    notice = (
        b"CONFIDENTIAL: counts of a confidential table, kept for pegs --resume; not for release"
    )
    path.write_bytes(notice + b"\n" + text + b"\n" + body)
    return path


def test_a_sound_checkpoint_is_read(tmp_path):
    found = Checkpoint(checkpoint_file(tmp_path / "c"), "me")
    assert found.stage("s") is not None
    found.release()


@pytest.mark.parametrize(
    "changes",
    [
        {"array": {"length": 10**12}},
        {"array": {"length": -1}},
        {"array": {"length": 1 << 63}},
        {"array": {"dtype": "|O"}},
        {"array": {"dtype": "no type"}},
        {"array": {"dtype": "|V0"}},
        {"array": {"dtype": "<f8"}},
        {"array": {"dtype": "<i4,<i4"}},
        {"stages": {"s": [-1, 0, 0, False]}},
        {"stages": {"s": [0, 9, 3, False]}},
        {"stages": {"s": [0, 0, 1 << 70, False]}},
        {"rows": 5},
        {"rows": -5},
    ],
)
def test_checkpoints_that_lie(tmp_path, changes):
    with pytest.raises(ModelError, match="damaged"):
        Checkpoint(checkpoint_file(tmp_path / "c", **changes), "me")


# The checkpoint of a study


def study_file(path, *lines):
    """Write a checkpoint of a study; every line has the checksum that it needs."""
    with path.open("w") as handle:
        for line in ({"format": 1, "configuration": {}}, *lines):
            check = zlib.crc32(json.dumps(line, sort_keys=True).encode())
            handle.write(json.dumps({"check": check, **line}) + "\n")
    return path


@pytest.mark.parametrize(
    "line",
    [
        {"cell": "a"},
        {"values": {}},
        {"cell": 1, "values": {}},
        {"cell": "a", "values": []},
        {"cell": "a", "values": {"x": [1]}},
        {"cell": "a", "values": {"x": 10**400}},
        {"cell": "a", "values": {"x": float("nan")}},
        {"cell": "a", "values": {"x": float("inf")}},
        {"cell": "a", "values": {}, "more": 1},
    ],
)
def test_cells_that_no_study_wrote(tmp_path, line):
    path = study_file(tmp_path / "c.jsonl", line, {"cell": "b", "values": {"x": 1.0}})
    with pytest.raises(ModelError, match="line 2"), open_checkpoint(path, {}):
        pass


@pytest.mark.parametrize("configuration", [[], 1, None, "x"])
def test_a_configuration_of_another_kind(tmp_path, configuration):
    path = tmp_path / "c.jsonl"
    line = {"format": 1, "configuration": configuration}
    check = zlib.crc32(json.dumps(line, sort_keys=True).encode())
    path.write_text(json.dumps({"check": check, **line}) + "\n")
    with pytest.raises(ModelError, match="not a checkpoint"), open_checkpoint(path, {}):
        pass


def test_a_line_that_is_nested_too_deeply(tmp_path):
    path = study_file(tmp_path / "c.jsonl", {"cell": "a", "values": {}})
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + DEEP + b"\n" + second)
    with pytest.raises(ModelError, match="line 2"), open_checkpoint(path, {}):
        pass


def test_tables_of_a_study_hold_no_formulas(tmp_path):
    folder = Folder(tmp_path / "study", confidential=False)
    folder.make()
    folder.table("t", [{"=name": "=1+1", "b": -1.5, "c": "-1", "d": "@x"}])
    text = (tmp_path / "study" / "tables" / "t.csv").read_text()
    assert text == "'=name,b,c,d\n'=1+1,-1.5,-1,'@x\n"


# schema.toml


def test_a_few_lines_that_stand_for_millions_of_bins():
    bins = 'kind = "numeric"\nbins = { lowest = 0, highest = 1, count = 100000 }\n'
    text = "".join(f'[[features]]\nname = "f{i}"\n{bins}' for i in range(11))
    with pytest.raises(SchemaError, match="1,048,576 bins in all"):
        loads(text)


def test_bins_are_the_nearest_numbers():
    from fractions import Fraction

    for lowest, highest, count in (("0", "1", 3), ("-0.1", "0.7", 7), ("1e-300", "3e300", 11)):
        (feature,) = loads(
            f'[[features]]\nname = "a"\nkind = "numeric"\n'
            f"bins = {{ lowest = {lowest}, highest = {highest}, count = {count} }}\n"
        ).features
        low, high = (Fraction(repr(float(each))) for each in (lowest, highest))
        exact = [low + (high - low) * i / count for i in range(count + 1)]
        assert list(feature.edges) == [float(each) for each in exact]


# Tables, and what is said of them


def test_text_in_a_database_that_is_not_text(folder):
    path = folder / "bad.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a TEXT, b TEXT)")
        connection.execute("INSERT INTO t VALUES (CAST(x'ff53fe' AS TEXT), ?)", (SECRET,))
    connection.close()
    outcome = pegs("schema", f"sqlite:///{path}", "--table", "t", "-o", folder / "s.toml")
    check_refused(outcome, "bad.db")


def test_names_do_not_steer_the_terminal(folder):
    text = (folder / "data.csv").read_text()
    first, *rest = text.splitlines()
    (folder / "more.csv").write_text("\n".join([first + ",\x1b[31m", *(r + ",1" for r in rest)]))
    tables = (folder / "data.csv", folder / "more.csv")
    outcome = done("evaluate", *tables, "--schema", folder / "schema.toml", "--threads", 1)
    assert "\\u001b[31m" in outcome.out
    assert "\x1b" not in outcome.out + outcome.err
    (folder / "e.csv").write_text("term,estimate,variance\n\x1b[31m,1,1\n\x1b[31m,2,1\n")
    outcome = done("combine", folder / "e.csv", "--rows", 40, "--rows-in", 40)
    assert "\x1b" not in outcome.out + outcome.err


@pytest.mark.parametrize("key", ["\r", "\x1b[2J", "b" * 70_000])
def test_messages_about_a_ledger_are_legible(folder, key):
    (folder / "p.json").write_text(json.dumps({"format": 1, key: 1}))
    outcome = pegs("inspect", folder / "p.json")
    check_refused(outcome, folder / "p.json")
    assert len(outcome.err) < 4000
    assert not set(outcome.err) & set("\r\x1b")


def test_messages_about_metrics_are_legible():
    text = '{"format": 1, "summary": {}, "records": [{"name": "", "subject": "", "value": 1, '
    with pytest.raises(ModelError) as found:
        Metrics.from_json(f'{text} "better": "{"b" * 70_000}"}}]}}')
    assert len(str(found.value)) < 4000


def test_legible_texts():
    assert escaped("a\x1b\u202e\ud800\té\n") == "a\\u001b\\u202e\\ud800\té\n"
    assert legible("short") == "short"
    assert len(legible("x" * 10_000)) < 3100


def test_arrays_of_objects_are_never_unpickled(folder, monkeypatch):
    """A model that holds a pickle is refused before anybody reads it."""
    table = pq.read_table(folder / "once.pegs")
    contents = table.column("content").to_pylist()
    contents[-1] = pickled()
    changed = table.set_column(5, table.schema.field(5), [pa.array(contents, pa.large_binary())])
    manifest = json.loads(table.schema.metadata[b"pegsynth"])
    manifest["arrays"][-1] |= {"dtype": "|O", "shape": [1]}
    text = json.dumps(manifest, separators=(",", ":")).encode()
    pq.write_table(changed.replace_schema_metadata({b"pegsynth": text}), folder / "once.pegs")
    monkeypatch.chdir(folder)
    check_refused(sample(folder / "once.pegs"), "arrays are damaged")
    assert not list(folder.glob("canary"))
