"""What fuzzing found, each as the smallest file that shows it, through the command."""

import json
import sqlite3
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from checks.fuzz.containers import Parts, put_together, taken_apart, with_array
from checks.fuzz.tables import pickled
from checks.fuzz.trees import Raw
from command import SECRET, check_refused, done, pegs, pegs_process, review
from pegsynth.errors import ModelError, SchemaError, escaped, legible
from pegsynth.evaluation.records import Metrics
from pegsynth.methods.checkpoint import NOTICE, Checkpoint
from pegsynth.schema.toml import loads
from studies.paper.cell_file import open_checkpoint
from studies.paper.output import Folder

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
    budget = PER_ROW if "plain" in model.name else ()
    output = model.with_name("out.csv")
    return pegs("sample", model, "--rows", 3, *budget, "--threads", 1, "-o", output)


def rewrite(model, change=lambda m: m, **header):
    """Write a model again with its manifest and its header changed."""
    parts = taken_apart(model.read_bytes())
    manifest = {"manifest": change(parts.manifest)}
    model.write_bytes(put_together(replace(parts, header={**parts.header, **manifest, **header})))


def rewrite_array(model, array, change=lambda raw: raw, **entry):
    """Write a model again with the bytes of an array changed, and what is said of it."""
    parts = taken_apart(model.read_bytes())
    model.write_bytes(put_together(with_array(parts, array, change(parts.plain(array)), **entry)))


SEEDS = sorted(Path(__file__).parents[2].glob("fuzz/seeds/*.parquet"))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_files_that_once_ended_the_process(folder, seed):
    paths = (seed, "--schema", folder / "schema.toml", "-o", folder / "m.pegs")
    check_refused(pegs_process("fit", *paths), seed)


# model.pegs

KEYS, CATEGORIES, COUNTS = (
    f"cells of feature 0: {part}" for part in ("keys", "categories", "counts")
)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "<f8"},
        {"dtype": "<u8"},
        {"name": "cells of feature 0"},
        {"name": "cells of feature 99: counts"},
        {"shape": [1, 1]},
    ],
)
def test_a_model_with_cells_of_another_form(folder, entry):
    model = folder / "plain.pegs"
    count = len(taken_apart(model.read_bytes()).plain(COUNTS)) // 8
    entry = {**entry, "shape": [1, count]} if "shape" in entry else entry
    rewrite_array(model, COUNTS, **entry)
    check_refused(sample(model), model, "cells")


def test_a_model_with_a_count_missing(folder):
    model = folder / "plain.pegs"
    count = len(taken_apart(model.read_bytes()).plain(COUNTS)) // 8
    rewrite_array(model, COUNTS, lambda raw: raw[8:], shape=[count - 1])
    check_refused(sample(model), model, "cells are not those of a model")


def test_a_model_that_unpacks_to_too_much(folder, monkeypatch):
    monkeypatch.setattr("pegsynth.tables.container.MOST_UNPACKED", 1)
    monkeypatch.setattr("pegsynth.tables.container.MOST_GROWTH", 0)
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "unpacks to far more")


def test_a_model_with_an_array_that_is_there_twice(folder):
    rewrite_array(folder / "once.pegs", "released: order", name="released: total")
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "an array twice")


def test_released_blocks_of_another_shape(folder):
    model = folder / "once.pegs"
    cells = len(taken_apart(model.read_bytes()).plain("released: counts")) // 8
    rewrite_array(model, "released: counts", shape=[cells, 1])
    check_refused(sample(model), model, "do not fit its schema")


def test_released_blocks_of_another_type(folder):
    rewrite_array(folder / "once.pegs", "released: counts", dtype="<f8")
    check_refused(sample(folder / "once.pegs"), folder / "once.pegs", "do not fit its schema")


@pytest.mark.parametrize("deviation", [0.0, -1.0, 1e-200, 1e200, float("nan")])
def test_noise_of_a_size_that_no_release_has(folder, deviation):
    first = struct.pack("<d", deviation)
    rewrite_array(folder / "once.pegs", "released: deviations", lambda raw: first + raw[8:])
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
    rewrite(folder / "plain.pegs", lambda m: {**m, "x": Raw(DEEP.decode())})
    check_refused(pegs("inspect", folder / "plain.pegs"), "manifest is damaged")


def test_inspect_goes_by_the_content_and_not_by_the_notice(folder):
    parts = taken_apart((folder / "plain.pegs").read_bytes())
    lying = replace(parts, notice=b"SHAREABLE: \x1b[31m trust me")
    (folder / "plain.pegs").write_bytes(put_together(lying))
    outcome = done("inspect", folder / "plain.pegs")
    assert outcome.out.startswith("CONFIDENTIAL")
    assert "trust me" not in outcome.out


# The record of what was spent


@pytest.mark.parametrize("content", [DEEP, b'{"format":1,"notice":"\xff"}', b"", b"null"])
def test_damaged_records_of_what_was_spent(folder, content):
    (folder / "capped.pegs.spent").write_bytes(content)
    check_refused(sample(folder / "capped.pegs"), "capped.pegs.spent", "damaged")
    check_refused(pegs("inspect", folder / "capped.pegs"), "capped.pegs.spent", "damaged")


@pytest.mark.parametrize("packed", [zlib.compress(bytes(1 << 26)), b"", b"x"])
def test_counters_that_unpack_to_something_else_than_they_say(folder, packed):
    model = folder / "capped.pegs.spent"
    parts = taken_apart(model.read_bytes())
    model.write_bytes(put_together(with_array(parts, "counters of chain 0", packed, packed=True)))
    check_refused(sample(folder / "capped.pegs"), "capped.pegs.spent", "damaged")


# The file of --resume


def checkpoint_file(path, *, body=bytes(16), array=None, **changes):
    """Write a checkpoint whose checksum fits, whatever it says."""
    entry = {"name": "0: tables", "dtype": "<i8", "shape": [2], "stored": 16, "packed": False}
    manifest = {"belongs": "me", "rows": 0, "stages": {"s": [0, 0, 0, False]}} | changes
    header = {"pegsynth": 1, "kind": "checkpoint", "format": 2, "manifest": manifest}
    header |= {"arrays": [entry | (array or {})]}
    path.write_bytes(put_together(Parts(NOTICE.encode(), header, [body])))
    return path


def test_a_sound_checkpoint_is_read(tmp_path):
    found = Checkpoint(checkpoint_file(tmp_path / "c"), "me")
    assert found.stage("s").arrays["tables"].tolist() == [0, 0]
    found.release()


PLACES = [
    {"stages": {"s": [-1, 0, 0, False]}},
    {"stages": {"s": [0, 9, 3, False]}},
    {"stages": {"s": [0, 0, 1 << 70, False]}},
    {"rows": 5},
    {"rows": -5},
]
TYPES = ["|O", "no type", "|V0", "<f8", "<i4,<i4"]


@pytest.mark.parametrize(
    "changes",
    [
        *({"array": {"shape": [length]}} for length in (10**12, -1, 1 << 63)),
        *({"array": {"shape": [length], "packed": True}} for length in (10**12, -1, 1 << 63)),
        {"array": {"stored": 1 << 40}},
        {"array": {"stored": -16}},
        {"array": {"packed": True}},
        *({"array": {"dtype": dtype}} for dtype in TYPES),
        *PLACES,
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
    name = "released: order"
    rewrite_array(folder / "once.pegs", name, lambda raw: pickled(), dtype="|O", shape=[1])
    monkeypatch.chdir(folder)
    check_refused(sample(folder / "once.pegs"), "arrays are damaged")
    assert not list(folder.glob("canary"))
