"""A command that is killed while it counts goes on where it stopped."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from checks.faults.works import model_content
from command import check_refused, done, pegs
from pegsynth.tables.table_output import write_table
from small_release import small_schema, small_table

ROWS, PARTS = 4000, 40
# A checkpoint after every batch, batches of one file, and time to be killed in between.
SLOWLY = """
import sys, time
from pegsynth.codec import codec
from pegsynth.methods import checkpoint
codec._ROWS_TOGETHER = 1
checkpoint.SECONDS_BETWEEN = 0.0
checkpoint.Checkpoint.due = property(lambda self: time.sleep(0.2) or True)
from pegsynth.cli.main import main
sys.argv = ["pegs", *sys.argv[1:]]
main()
"""


@pytest.fixture
def place(tmp_path):
    """Give a folder with a table in many files, and its schema."""
    (tmp_path / "data").mkdir()
    table = small_table(ROWS, units=300)
    for number in range(PARTS):
        part = table.slice(ROWS // PARTS * number, ROWS // PARTS)
        write_table(tmp_path / "data" / f"{number:03}.parquet", part)
    small_schema(rows_per_unit=2).save(tmp_path / "schema.toml")
    return tmp_path


def killed(place, *arguments, checkpoint, number=signal.SIGKILL, after=3):
    """Run the command and kill it when its checkpoint was replaced a few times."""
    run = subprocess.Popen([sys.executable, "-c", SLOWLY, *map(str, arguments)], cwd=place)
    seen = set()
    end = time.monotonic() + 300
    while run.poll() is None and len(seen) < after and time.monotonic() < end:
        # A file system may give the inode of a replaced file to the next one.
        with suppress(FileNotFoundError):
            seen.add((checkpoint.stat().st_ino, checkpoint.stat().st_mtime_ns))
        time.sleep(0.01)
    run.send_signal(number)
    run.wait(timeout=60)
    assert len(seen) >= after, "it ended before it could be killed"
    assert run.returncode != 0


def names(place):
    return {path.name for path in place.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("order", ["public", "data"])
def test_a_killed_fit_resumes_to_the_identical_model(place, order, number):
    checkpoint = place / "counts.checkpoint"
    flags = ("--schema", place / "schema.toml", "--order", order, "--seed", 3)
    done("fit", place / "data", *flags, "-o", place / "whole.pegs")
    arguments = ("fit", place / "data", *flags, "--resume", checkpoint, "-o", place / "m.pegs")
    killed(place, *arguments, checkpoint=checkpoint, number=number)
    assert "m.pegs" not in names(place)
    assert checkpoint.read_bytes().startswith(b"CONFIDENTIAL: ")
    assert checkpoint.stat().st_mode & 0o777 == 0o600
    # A kill in the middle of writing may leave this; the next run replaces it.
    assert names(place) <= {
        *("data", "schema.toml", "whole.pegs", checkpoint.name, f"{checkpoint.name}.new")
    }
    done(*arguments)
    assert names(place) == {"data", "schema.toml", "whole.pegs", "m.pegs"}
    whole, resumed = (model_content(place / name) for name in ("whole.pegs", "m.pegs"))
    assert whole == resumed


@pytest.mark.slow
@pytest.mark.parametrize("command", ["synthesize", "release"])
def test_drawing_starts_again(place, command):
    """Counts are kept; rows are drawn anew, and nothing of the killed attempt is shown."""
    checkpoint = place / "counts"
    output = place / ("run" if command == "release" else "out.csv")
    flags = ("--schema", place / "schema.toml", "--rows", 50, "--epsilon-per-row", 1)
    flags += ("--method", "pegs")
    arguments = (command, place / "data", *flags, "--resume", checkpoint, "-o", output)
    killed(place, *arguments, checkpoint=checkpoint)
    assert names(place) <= {"data", "schema.toml", "counts", "counts.new"}
    done(*arguments)
    left = {"data", "schema.toml", output.name}
    assert names(place) == (left if command == "release" else left | {"out.csv.privacy.json"})


def test_what_resume_refuses(place):
    flags = ("--schema", place / "schema.toml", "-o", place / "m.pegs")
    fit = ("fit", place / "data", *flags)
    check_refused(pegs(*fit, "--resume", place / "m.pegs"), "--resume", "written")
    check_refused(pegs(*fit, "--resume", place / "schema.toml"), "schema.toml", "input")
    check_refused(pegs(*fit, "--resume", place / "data" / "000.parquet"), "000.parquet", "input")
    check_refused(pegs(*fit, "--resume", place / "none" / "c"), "folder does not exist")
    (place / "notes.txt").write_text("my notes")
    check_refused(pegs(*fit, "--resume", place / "notes.txt"), "no checkpoint")
    assert (place / "notes.txt").read_text() == "my notes"
    assert not (place / "m.pegs").exists()


@pytest.mark.slow
def test_a_changed_table_is_refused(place):
    checkpoint = place / "c"
    flags = ("--schema", place / "schema.toml", "--resume", checkpoint, "-o", place / "m.pegs")
    killed(place, "fit", place / "data", *flags, checkpoint=checkpoint)
    os.utime(place / "data" / "020.parquet")
    check_refused(pegs("fit", place / "data", *flags), checkpoint, "has changed", "delete it")
    checkpoint.unlink()
    done("fit", place / "data", *flags)
