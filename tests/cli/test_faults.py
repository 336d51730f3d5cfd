"""Faults in the middle of the work: one message, no partial output, nothing left of the data."""

import errno
import os
import signal
import subprocess
import time

import polars as pl
import pytest

from command import PEGS, SECRET, Outcome, bytes_written, check_refused, pegs, snapshot
from pegsynth.tables import table_output
from pegsynth.tables.table_output import write_table
from small_release import small_schema, small_table

BUDGET = ("--rows", 100, "--epsilon-per-row", 1, "--method", "pegs")
PARTS = 10


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Give a folder with a table in ten parts, its schema, and a place for temporary files."""
    (tmp_path / "data").mkdir()
    (tmp_path / "tmp").mkdir()
    table = small_table(5000)
    for number in range(PARTS):
        write_table(tmp_path / "data" / f"{number}.parquet", table.slice(500 * number, 500))
        write_table(tmp_path / "data" / f"{number}.csv", table.slice(500 * number, 500))
    small_schema().save(tmp_path / "schema.toml")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path


def run(command, place, source, *, output="out.parquet", extra=()):
    flags = () if command == "schema" else ("--schema", place / "schema.toml")
    flags += BUDGET if command in {"synthesize", "release"} else ()
    return pegs(command, f"{place}/data/{source}", *flags, *extra, "-o", place / output)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_disk_that_is_full_at_part_7_of_10(place, kind, monkeypatch):
    opened = []
    original = table_output.open_writer

    def failing(path, **options):
        if str(path).endswith(f".{kind}"):
            opened.append(path)
        if len(opened) == 7:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return original(path, **options)

    monkeypatch.setattr("pegsynth.publishing.public_part.open_writer", failing)
    before = snapshot(place)
    flags = ("--datasets", 10, "--format", kind)
    outcome = run("release", place, "*.parquet", output="run", extra=flags)
    check_refused(outcome, place / "run", "the disk is full")
    assert len(opened) == 7
    assert snapshot(place) == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_system_that_fills_up_between_the_parts(place, kind):
    """Ten tables on a real file system that has room for about seven."""
    target = place / "small"
    target.mkdir()
    size = {"csv": "850k", "parquet": "88k"}[kind]
    shell = (
        f'mount -t tmpfs -o size={size} tmpfs "$0" || exit 77; "$@"; code=$?; '
        'test -z "$(ls -A "$0")" || exit 9; exit $code'
    )
    flags = ("--schema", place / "schema.toml", "--rows", "20000", "--epsilon-per-row", "1")
    flags += ("--method", "pegs")
    more = ("--datasets", "10", "--format", kind, "-o", target / "run")
    command = (*PEGS, "release", f"{place}/data/*.csv", *map(str, flags), *map(str, more))
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", shell, str(target)]
    done = subprocess.run([*prefix, *command], capture_output=True, check=False)
    if done.returncode == 77 or done.stderr.startswith(b"unshare:"):
        pytest.skip("no file system can be mounted here")
    outcome = Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
    check_refused(outcome, target / "run", "the disk is full")


DRIFTS = {
    "a column more": lambda t: t.with_columns(more=pl.lit(SECRET)),
    "a column less": lambda t: t.drop("c"),
    "another name": lambda t: t.rename({"c": "d"}),
    "another type": lambda t: t.with_columns(c=pl.lit(1)),
}


@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("command", ["schema", "fit", "synthesize", "release"])
def test_columns_that_change_between_files(place, drift, command):
    part = place / "data" / "6.parquet"
    write_table(part, DRIFTS[drift](pl.read_parquet(part)))
    before = snapshot(place)
    outcome = run(command, place, "*.parquet")
    check_refused(outcome, part, "alike")
    assert snapshot(place) == before


@pytest.mark.parametrize("command", ["schema", "fit", "synthesize", "release"])
@pytest.mark.parametrize("extension", ["parquet", "csv"])
def test_a_part_that_breaks_off_in_its_middle(place, command, extension):
    """The part opens; only reading its rows shows that it is damaged."""
    part = place / "data" / f"6.{extension}"
    content = bytearray(part.read_bytes())
    if extension == "csv":
        content[-3:] = f'"{SECRET}'.encode()
    else:
        content[4:40] = bytes(36)
    part.write_bytes(content)
    before = snapshot(place)
    check_refused(run(command, place, f"*.{extension}"), part)
    assert snapshot(place) == before


def test_a_part_that_goes_away(place, monkeypatch):
    from pegsynth.tables import table_input

    original = table_input._open_files

    def opened(*arguments):
        reader = original(*arguments)
        (place / "data" / "6.csv").unlink()
        return reader

    monkeypatch.setattr(table_input, "_open_files", opened)
    outcome = run("fit", place, "*.csv")
    check_refused(outcome, "cannot be read", "No such file")
    assert not (place / "out.parquet").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("command", "output"),
    [("synthesize", "out.csv"), ("synthesize", "out.parquet"), ("release", "run")],
)
def test_ctrl_c_while_rows_are_drawn(place, command, output, number):
    before = snapshot(place)
    # So many that they take long, and not so many that they could not fit on the disk.
    flags = ("--schema", "schema.toml", "--rows", str(10**9), "--epsilon-per-row", "1")
    flags += ("--method", "pegs")
    process = subprocess.Popen(
        [*PEGS, command, "data/*.parquet", *flags, "-o", output], cwd=place, stderr=subprocess.PIPE
    )
    while process.poll() is None and bytes_written(process) < 100_000:
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert errors == b"pegs: stopped; every output is as it was, or whole\n"
    assert process.returncode == 128 + number
    assert snapshot(place) == before
