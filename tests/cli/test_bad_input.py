"""Every kind of bad input through the command: one message, exit 2, nothing written."""

import contextlib
import errno
import os
import random
import resource
import subprocess
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checks.fuzz.containers import put_together, taken_apart
from command import (
    PEGS,
    SECRET,
    Outcome,
    bytes_written,
    check_refused,
    done,
    pegs,
    pegs_process,
    snapshot,
)

BUDGET = ("--epsilon-per-row", 1)
EARLIER = b"an earlier result"

BAD_TABLES = {
    "empty": (b"", ("empty",)),
    "a field too many": (f"a,b,c,n\nx,p,k,1\nx,p,k,1,{SECRET}\n".encode(), ("line 3", "5 fields")),
    "a field too few": (f"a,b,c,n\nx,p,k,1\nx,p,{SECRET}\n".encode(), ("line 3", "3 fields")),
    "blank line": (f"a,b,c,n\nx,p,k,1\n\nx,p,{SECRET},1\n".encode(), ("line 3", "blank")),
    "open quote": (f'a,b,c,n\nx,p,"{SECRET},1\n'.encode(), ("quote",)),
    "Latin-1": (f"a,b,c,n\n{SECRET}é,p,k,1\n".encode("latin-1"), ("line 2", "UTF-8")),
    "UTF-16": (f"a,b,c,n\n{SECRET},p,k,1\n".encode("utf-16"), ("UTF-16", "--encoding")),
    "zero bytes": (f"a,b,c,n\n{SECRET}\0,p,k,1\n".encode(), ("line 2", "zero bytes")),
    "semicolons": (f"a;b;c;n\n{SECRET};p;k;1\n".encode(), ("commas",)),
    "twice the same name": (f"a,b,c,a\nx,p,k,{SECRET}\n".encode(), ("'a'", "twice", "rename")),
    "no name": (f"a,,c,n\nx,p,k,{SECRET}\n".encode(), ("column 2", "name")),
}
RECOGNISED = ("Latin-1", "UTF-16", "semicolons")
UNFIT_TABLES = {
    "column not in the schema": (
        f"a,b,c,n,more\nx,p,k,1,{SECRET}\n".encode(),
        ("'more'", "not in the schema", "identifier"),
    ),
    "column not in the table": (
        f"a,b,n\nx,{SECRET},1\n".encode(),
        ("'c'", "not in the table", "add it"),
    ),
    "value outside the categories": (
        f"a,b,c,n\nx,p,k,1\n{SECRET},p,k,1\n{SECRET},p,k,1\n".encode(),
        ("'a'", "2 values", "not in the schema", "categories"),
    ),
    "text for a number": (
        f"a,b,c,n\nx,p,k,{SECRET}\n".encode(),
        ("'n'", "1 value", "not a number"),
    ),
    "missing where nothing may be": (b"a,b,c,n\n,p,k,1\n", ("'a'", "missing")),
    "case matters": (b"a,b,c,n\nX,p,k,1\n", ("'a'", "1 value")),
}


def synthesize(folder, *extra, data="data.csv", schema="schema.toml", output="out.csv"):
    paths = (folder / data, "--schema", folder / schema, "-o", folder / output)
    return pegs("synthesize", *paths, *(extra or ("--rows", 10, *BUDGET)))


@contextlib.contextmanager
def untouched(folder, *names):
    """Earlier files called `names` stay as they are and nothing else appears."""
    for name in names:
        (folder / name).write_bytes(EARLIER)
    before = snapshot(folder)
    yield
    assert snapshot(folder) == before


@pytest.mark.parametrize("case", BAD_TABLES)
@pytest.mark.parametrize("command", ["schema", "synthesize", "fit", "release"])
def test_tables_that_cannot_be_read(folder, case, command):
    content, words = BAD_TABLES[case]
    (folder / "bad.csv").write_bytes(content)
    if command == "schema" and case in RECOGNISED:
        pytest.skip("a draft recognises the dialect")
    outputs = {"schema": "new.toml", "synthesize": "o.csv", "fit": "o.pegs", "release": "folder"}
    output = outputs[command]
    arguments = [command, folder / "bad.csv", "-o", folder / output]
    if command != "schema":
        arguments += ["--schema", folder / "schema.toml"]
    if command in {"synthesize", "release"}:
        arguments += ["--rows", 10, *BUDGET]
    with untouched(folder, *((output,) if command != "release" else ())):
        check_refused(pegs(*arguments), folder / "bad.csv", *words)


@pytest.mark.parametrize("content", [b"a,b,c,n\n", b"a,b,c,n"])
def test_a_header_alone_is_no_table_to_draft_from(folder, content):
    """A release takes it: whether a confidential table has a row may decide nothing."""
    (folder / "bare.csv").write_bytes(content)
    with untouched(folder, "new.toml"):
        drafted = pegs("schema", folder / "bare.csv", "-o", folder / "new.toml")
        check_refused(drafted, folder / "bare.csv", "no rows")
    told = ("--schema", folder / "schema.toml", "--rows", 10, *BUDGET)
    done("synthesize", folder / "bare.csv", *told, "-o", folder / "o.csv")


@pytest.mark.parametrize("case", UNFIT_TABLES)
@pytest.mark.parametrize("command", ["synthesize", "fit"])
def test_tables_that_do_not_fit_the_schema(folder, case, command):
    content, words = UNFIT_TABLES[case]
    (folder / "bad.csv").write_bytes(content)
    extra = ("--rows", 10, *BUDGET) if command == "synthesize" else ()
    paths = (folder / "bad.csv", "--schema", folder / "schema.toml", "-o", folder / "o.parquet")
    with untouched(folder, "o.parquet", "o.parquet.privacy.json"):
        check_refused(pegs(command, *paths, *extra), folder / "bad.csv", *words)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.arrow", "none*.csv", ""])
def test_missing_tables(folder, name):
    with untouched(folder, "out.csv"):
        outcome = pegs("schema", f"{folder}/{name}", "-o", folder / "out.csv")
    check_refused(outcome, f"{folder}/{name}" if name else folder)


def test_missing_schema_and_model(folder):
    with untouched(folder, "out.csv"):
        check_refused(synthesize(folder, schema="none.toml"), folder / "none.toml", "no such file")
        check_refused(synthesize(folder, schema="."), folder, "folder")
        paths = (folder / "none.pegs", "-o", folder / "out.csv")
        outcome = pegs("sample", *paths, "--rows", 1, *BUDGET)
        check_refused(outcome, folder / "none.pegs", "such")
        check_refused(pegs("trace", folder / "none.pegs"), folder / "none.pegs", "such")
        check_refused(pegs("inspect", folder / "none.json"), folder / "none.json", "no such")


@pytest.mark.parametrize("rows", ["0", "-1", "1.5", "abc", "", "nan", "1e3"])
def test_rows(folder, rows):
    with untouched(folder, "out.csv"):
        check_refused(synthesize(folder, "--rows", rows, *BUDGET), "--rows")
        paths = (folder / "m.pegs", "-o", folder / "out.csv")
        check_refused(pegs("sample", *paths, "--rows", rows, *BUDGET), "--rows")


@pytest.mark.parametrize("flag", ["--epsilon", "--epsilon-per-row"])
@pytest.mark.parametrize("value", ["0", "-1", "inf", "-inf", "nan", "1e999", "abc"])
def test_epsilon(folder, flag, value):
    with untouched(folder, "out.csv"):
        outcome = synthesize(folder, "--rows", 10, flag, value)
    check_refused(outcome, "epsilon")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ((), ("budget", "epsilon")),
        (("--epsilon", 1, "--epsilon-per-row", 1), ("together", "exactly one")),
        (("--epsilon", 1, "--alpha", 1), ("together", "exactly one")),
        (("--l", 2, "--epsilon-per-row", 1), ("together", "exactly one")),
        (("--l", 2, "--alpha", 0), ("together", "exactly one")),
        (("--delta", 1e-9), ("budget", "epsilon")),
        (("--delta", 1e-9, "--epsilon-per-row", 1), ("delta", "epsilon")),
        (("--epsilon", 1, "--delta", 1), ("delta",)),
        (("--epsilon", 1, "--delta", 2), ("delta",)),
        (("--epsilon", 1, "--delta", 0), ("delta",)),
        (("--epsilon", 1, "--delta", "nan"), ("delta",)),
        (("--l", 0.5), ("l must",)),
        (("--l", "inf"), ("l must",)),
        (("--l", "nan"), ("l must",)),
        (("--l", 7), ("feature 'a'", "3 categories")),
        (("--alpha", -1), ("alpha",)),
        (("--alpha", "nan"), ("alpha",)),
        (("--alpha", "inf"), ("alpha",)),
    ],
)
def test_budgets(folder, budget, words):
    with untouched(folder, "out.csv"):
        check_refused(synthesize(folder, "--rows", 10, *budget), *words)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--method", "magic"), ("--method", "pegs-rs")),
        (("--order", "magic"), ("--order", "public")),
        (("--decode", "magic"), ("--decode", "labels")),
        (("--heads", 4), ("heads", "3")),
        (("--heads", -1), ("heads",)),
        (("--tail-bits", 17), ("tail",)),
        (("--sweeps", 0), ("--sweeps",)),
        (("--method", "pegs-rs", "--block-size", 0), ("--block-size",)),
        (("--seed-pool", "none.csv"), ("none.csv",)),
        (("--magic",), ("--magic",)),
    ],
)
def test_other_flags(folder, flags, words):
    with untouched(folder, "out.csv"):
        check_refused(synthesize(folder, "--rows", 10, *BUDGET, *flags), *words)


def test_an_unreviewed_schema(folder):
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(text.replace("reviewed = true", "reviewed = false"))
    with untouched(folder, "out.csv"):
        outcome = synthesize(folder)
    check_refused(outcome, folder / "schema.toml", "reviewed = true", "--accept-unreviewed-schema")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("none/out.csv", ("folder does not exist",)),
        ("data.csv/out.csv", ("not a folder",)),
        ("dir.csv", ("folder",)),
        ("out.ods", ("extension", ".parquet")),
        ("out", ("extension", ".csv")),
        ("n" * 300 + ".csv", ("too long",)),
    ],
)
def test_outputs_that_cannot_be(folder, output, words):
    (folder / "dir.csv").mkdir()
    with untouched(folder):
        check_refused(synthesize(folder, output=output), folder / output, *words)
        paths = (folder / "m.pegs", "-o", folder / output)
        outcome = pegs("sample", *paths, "--rows", 10, *BUDGET)
        check_refused(outcome, folder / output, *words)


@pytest.mark.parametrize("output", ["none/out", "data.csv/out", "dir"])
@pytest.mark.parametrize("command", ["schema", "fit"])
def test_folders_that_cannot_be_written(folder, command, output):
    (folder / "dir").mkdir()
    extra = ("--schema", folder / "schema.toml") if command == "fit" else ()
    with untouched(folder):
        outcome = pegs(command, folder / "data.csv", *extra, "-o", folder / output)
    check_refused(outcome, folder / output, "folder")


def test_a_folder_without_permission(folder):
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    if os.access(closed, os.W_OK):
        pytest.skip("this user may write everywhere")
    with untouched(folder):
        check_refused(synthesize(folder, output="closed/out.csv"), closed, "permissions")


def test_ledger_paths(folder):
    with untouched(folder, "out.csv"):
        for ledger in (folder / "none" / "l.json", folder, folder / "out.csv"):
            outcome = synthesize(folder, "--rows", 10, *BUDGET, "--ledger", ledger)
            check_refused(outcome)


def test_an_existing_release_folder(folder):
    (folder / "run").mkdir()
    paths = (folder / "data.csv", "--schema", folder / "schema.toml", "-o", folder / "run")
    with untouched(folder, "run/mine"):
        outcome = pegs("release", *paths, "--rows", 10, *BUDGET)
        check_refused(outcome, folder / "run", "choose another")
        outcome = pegs("release", *paths[:-1], folder / "data.csv", "--rows", 10, *BUDGET)
        check_refused(outcome, folder / "data.csv")


@pytest.mark.parametrize("command", ["schema", "fit", "synthesize", "release"])
def test_a_disk_that_fails_when_synced(folder, command, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    output = "run" if command == "release" else "out.csv"
    arguments = [command, folder / "data.csv", "-o", folder / output]
    if command != "schema":
        arguments += ["--schema", folder / "schema.toml"]
    if command in {"synthesize", "release"}:
        arguments += ["--rows", 10, *BUDGET]
    monkeypatch.setattr(os, "fsync", full)
    with untouched(folder, *((output,) if command != "release" else ())):
        check_refused(pegs(*arguments), folder / output, "the disk is full")


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_a_disk_that_fills_up(folder, output):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))

    paths = (folder / "data.csv", "--schema", folder / "schema.toml", "-o", folder / output)
    with untouched(folder, output, output + ".privacy.json"):
        outcome = pegs_process("synthesize", *paths, "--rows", 20_000, *BUDGET, preexec_fn=limit)
    check_refused(outcome, folder / output, "grew beyond the size allowed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "options", "words"),
    [
        ("out.csv", "size=48k", "the disk is full"),
        ("out.parquet", "size=48k", "the disk is full"),
        ("run", "size=48k", "the disk is full"),
        ("out.csv", "ro", "may not be written to"),
    ],
)
def test_a_small_or_read_only_file_system(folder, output, options, words):
    """A file system of its own, mounted where only the command sees it."""
    place = folder / "place"
    place.mkdir()
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = 'mount -t tmpfs -o "$OPTIONS" tmpfs "$PLACE" || exit 77; "$@"; code=$?'
    tidy = 'test -z "$(ls -A "$PLACE")" || exit 9; exit $code'
    command = ("release" if output == "run" else "synthesize", str(folder / "data.csv"))
    flags = ("--schema", str(folder / "schema.toml"), "--rows", "20000", "-o", str(place / output))
    pegs_command = (*PEGS, *command, *flags, "--epsilon-per-row", "1")
    run = subprocess.run(
        [*prefix, f"{mount}; {tidy}", "sh", *pegs_command],
        capture_output=True,
        check=False,
        env={**os.environ, "OPTIONS": options, "PLACE": str(place)},
    )
    if run.returncode == 77 or run.stderr.startswith(b"unshare:"):
        pytest.skip("no file system can be mounted here")
    outcome = Outcome(run.returncode, run.stdout.decode(), run.stderr.decode())
    check_refused(outcome, place / output, words)


def test_a_command_that_is_told_to_stop(folder):
    """What was half-written goes away, and an earlier result stays."""
    arguments = ["synthesize", "data.csv", "--schema", "schema.toml", "--rows", str(10**12)]
    with untouched(folder, "out.csv"):
        run = subprocess.Popen(
            [*PEGS, *arguments, "--epsilon-per-row", "1", "-o", "out.csv"],
            cwd=folder,
            stderr=subprocess.PIPE,
        )
        while run.poll() is None and bytes_written(run) < 100_000:
            time.sleep(0.05)
        run.terminate()
        _, errors = run.communicate(timeout=60)
    assert b"Traceback" not in errors
    assert run.returncode != 0


def model_bytes(folder):
    return (folder / "m.pegs").read_bytes()


def rewritten(folder, change=lambda m: m, **header):
    """Give the model with its manifest changed by `change`, and its header."""
    parts = taken_apart(model_bytes(folder))
    manifest = {"manifest": change(parts.manifest)}
    parts = replace(parts, header={**parts.header, **manifest, **header})
    (folder / "bad.pegs").write_bytes(put_together(parts))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda f: (f / "bad.pegs").write_bytes(b""), ("not a model",)),
        (lambda f: (f / "bad.pegs").write_bytes(model_bytes(f)[:-9]), ("truncated",)),
        (lambda f: (f / "bad.pegs").write_bytes(model_bytes(f)[:100]), ("truncated",)),
        (lambda f: (f / "bad.pegs").write_bytes(SECRET.encode() * 99), ("not a model",)),
        (lambda f: (f / "bad.pegs").write_bytes(random.Random(3).randbytes(4096)), ("not a",)),
        (
            lambda f: pq.write_table(pa.table({"a": [SECRET]}), f / "bad.pegs"),
            ("not a model", "pegs fit"),
        ),
        (lambda f: rewritten(f, format=99), ("format 99", "the version of pegsynth that wrote it")),
        (lambda f: rewritten(f, lambda m: {"other": 1}, format=4), ("format 4", "wrote it")),
        (lambda f: rewritten(f, pegsynth=2), ("the version of pegsynth that wrote it",)),
        (lambda f: rewritten(f, kind="checkpoint"), ("this is a checkpoint", "pegs fit")),
        (lambda f: rewritten(f, lambda m: {"other": 1}), ("manifest", "damaged")),
        (lambda f: rewritten(f, format=0), ("damaged",)),
        (lambda f: rewritten(f, format="3"), ("damaged",)),
        (lambda f: rewritten(f, lambda m: [m]), ("damaged",)),
        (lambda f: rewritten(f, lambda m: {**m, "heads": [[77]]}), ("heads",)),
        (lambda f: rewritten(f, lambda m: {**m, "schema": "no = toml ="}), ("damaged",)),
        (lambda f: rewritten(f, lambda m: {**m, "ledger": {"format": 1}}), ("ledger",)),
    ],
    ids=lambda value: "" if callable(value) else " ".join(value),
)
def test_model_files(folder, make, words):
    make(folder)
    bad = folder / "bad.pegs"
    with untouched(folder, "out.csv"):
        outcome = pegs("sample", bad, "-o", folder / "out.csv", "--rows", 5, *BUDGET)
        check_refused(outcome, bad, *words)
        check_refused(pegs("trace", bad), bad, *words)
        check_refused(pegs("inspect", bad), bad, *words)


@pytest.mark.parametrize("spot", range(0, 4000, 400))
def test_a_model_with_one_byte_changed(folder, spot):
    """Its checksum tells."""
    content = bytearray(model_bytes(folder))
    content[spot % len(content)] ^= 0x55
    (folder / "bad.pegs").write_bytes(content)
    outcome = pegs("sample", folder / "bad.pegs", "-o", folder / "o.csv", "--rows", 5, *BUDGET)
    check_refused(outcome, folder / "bad.pegs")


@pytest.mark.parametrize("extension", [".csv", ".parquet", ".pq", ".arrow", ".feather", ".ipc"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_bytes_as_a_table(folder, extension, seed):
    bad = folder / f"bad{extension}"
    bad.write_bytes(random.Random(seed).randbytes(2000))
    with untouched(folder, "out.csv"):
        check_refused(pegs("schema", bad, "-o", folder / "out.csv"), bad)
        check_refused(synthesize(folder, data=bad.name), bad)


@pytest.mark.parametrize("extension", [".toml", ".json", ".pegs", ".xlsx", ""])
def test_random_bytes_under_other_names(folder, extension):
    bad = folder / f"bad{extension}"
    bad.write_bytes(SECRET.encode() + random.Random(4).randbytes(2000))
    with untouched(folder, "out.csv"):
        check_refused(pegs("schema", bad, "-o", folder / "out.csv"), bad, "extension")
        check_refused(pegs("inspect", bad), bad)
        check_refused(synthesize(folder, schema=bad.name), bad)
        outcome = pegs("sample", bad, "-o", folder / "out.csv", "--rows", 5, *BUDGET)
        check_refused(outcome, bad)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_truncated_tables(folder, kind):
    table = pa.table({"a": ["x"] * 5000, "b": ["p"] * 5000, "c": ["k"] * 5000, "n": [1.0] * 5000})
    path = folder / f"bad.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    path.write_bytes(path.read_bytes()[:-30])
    with untouched(folder, "out.csv"):
        check_refused(synthesize(folder, data=path.name), path)


def test_tables_of_odd_types(folder):
    pq.write_table(pa.table({"a": [[SECRET]], "b": ["p"]}), folder / "bad.parquet")
    with untouched(folder, "out.csv"):
        outcome = pegs("schema", folder / "bad.parquet", "-o", folder / "out.csv")
    check_refused(outcome, folder / "bad.parquet", "'a'", "list")


def test_no_arguments_and_unknown_commands():
    assert "Usage: pegs" in "".join(vars(pegs())[key] for key in ("out", "err"))
    check_refused(pegs("magic"), "magic")
    check_refused(pegs("synthesize"), "DATA")
    check_refused(pegs("inspect"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("synthesize", "none.csv", "--rows", "10", "--epsilon", "1"),
        ("synthesize", "bad.csv", "--rows", "10", "--epsilon-per-row", "1"),
        ("synthesize", "data.csv", "--rows", "1.5", "--epsilon", "1"),
    ],
)
def test_a_real_process(folder, arguments):
    (folder / "bad.csv").write_text(f"a,b,c,n\n{SECRET},p,k,1\n")
    with untouched(folder, "out.csv"):
        check_refused(
            pegs_process(*arguments, "--schema", "schema.toml", "-o", "out.csv", cwd=folder)
        )


def test_a_reader_that_goes_away(folder):
    """``pegs inspect .. | head -1`` ends quietly."""
    run = subprocess.Popen(
        [*PEGS, "inspect", str(folder / "schema.toml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    run.stdout.close()
    errors = run.stderr.read()
    run.stderr.close()
    run.wait(timeout=60)
    assert b"Traceback" not in errors
    assert run.returncode in {0, 1}
