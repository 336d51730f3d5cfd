"""Locks on files, with `flock` and with what Windows has; and a system that has less."""

import errno
import os
import subprocess
import sys

import pytest

from pegsynth.tables import atomic as file_locks
from pegsynth.tables.atomic import lock

# A system without these modules and signals, as far as Python can tell.
LESS = """
import importlib.abc, os, signal, sys

MISSING = {"fcntl", "resource", "termios", "pwd", "grp", "msvcrt"} - set(sys.argv[1].split(","))

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
for name in ("SIGHUP", "SIGALRM", "SIGQUIT", "setitimer", "ITIMER_REAL"):
    delattr(signal, name)
for name in ("O_NOFOLLOW", "fchmod"):
    delattr(os, name)
"""


@pytest.fixture
def two(tmp_path):
    """Give two descriptors of one file."""
    (tmp_path / "f").write_text("content")
    handles = [os.open(tmp_path / "f", os.O_RDWR) for _ in range(2)]
    yield handles
    for handle in handles:
        os.close(handle)


def test_one_has_it_and_the_other_does_not(two):
    first, second = two
    assert lock(first, wait=False)
    assert not lock(second, wait=False)
    assert lock(first, wait=True)


class Windows:
    """`msvcrt`, as far as it is used: one byte of a file belongs to one descriptor."""

    LK_NBLCK = 2

    def __init__(self, refusals=0, number=errno.EACCES):
        self.refusals, self.number, self.places = refusals, number, []

    def locking(self, handle, mode, count):
        assert (mode, count) == (self.LK_NBLCK, 1)
        self.places.append(os.lseek(handle, 0, os.SEEK_CUR))
        if self.refusals:
            self.refusals -= 1
            raise OSError(self.number, os.strerror(self.number))


@pytest.fixture
def windows(monkeypatch):
    """Give what replaces the modules by those of Windows."""

    def use(*arguments):
        found = Windows(*arguments)
        monkeypatch.setattr(file_locks, "_FCNTL", None)
        monkeypatch.setattr(file_locks, "_MSVCRT", found)
        return found

    return use


def test_windows_locks_a_byte_that_nobody_reads(windows, two):
    found = windows()
    os.lseek(two[0], 3, os.SEEK_SET)
    assert lock(two[0], wait=False)
    assert found.places == [file_locks._PLACE]
    assert os.read(two[0], 9) == b"tent"


def test_windows_says_so_or_waits(windows, two):
    windows(1)
    assert not lock(two[0], wait=False)
    found = windows(3)
    assert lock(two[0], wait=True)
    assert len(found.places) == 4


def test_windows_with_another_fault(windows, two):
    windows(1, errno.EBADF)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        lock(two[0], wait=True)


def test_a_system_without_locks(windows, two, monkeypatch):
    windows()
    monkeypatch.setattr(file_locks, "_MSVCRT", None)
    with pytest.raises(OSError, match="no file locks"):
        lock(two[0], wait=False)


def less(code, *arguments, has=""):
    return subprocess.run(
        [sys.executable, "-c", LESS + code, has, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_package_is_imported_where_there_is_less():
    names = "pegsynth.spark.spark_session, studies.paper.cell_file, pegsynth.tables.foreign.serve"
    every = f"pegsynth, pegsynth.cli.commands, pegsynth.cli.working, pegsynth.api.fitted, {names}"
    code = f"import {every}\nprint(sorted(MISSING & set(sys.modules)))"
    found = less(code)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "[]\n"


@pytest.mark.parametrize("arguments", [("--help",), ("fit", "--help"), ("--version",)])
def test_the_command_answers_where_there_is_less(arguments):
    code = "sys.argv = ['pegs', *sys.argv[2:]]\nfrom pegsynth.cli.main import main\nmain()"
    found = less(code, *arguments)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout


@pytest.mark.slow
def test_a_model_is_fitted_and_drawn_from_where_there_is_less(tmp_path):
    """With `flock`, since its twin is not on this system: files appear and messages come."""
    from small_release import small_schema, small_table

    small_table(100).write_csv(tmp_path / "data.csv")
    small_schema().save(tmp_path / "schema.toml")
    code = "sys.argv = ['pegs', *sys.argv[2:]]\nfrom pegsynth.cli.main import main\nmain()"
    table = (tmp_path / "data.csv", "--schema", tmp_path / "schema.toml")
    budget = ("--method", "pegs", "--epsilon", 20, "--rows", 10, "--resume", tmp_path / "c")
    model = ("-o", tmp_path / "m.pegs")
    made = less(code, "fit", *table, *budget, *model, has="fcntl")
    assert made.returncode == 0, made.stderr
    drawn = less(code, "sample", model[1], "--rows", 5, "-o", tmp_path / "o.csv", has="fcntl")
    assert drawn.returncode == 0, drawn.stderr
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 6
    refused = less(code, "inspect", tmp_path / "none.pegs", has="fcntl")
    assert refused.returncode == 2
    assert refused.stderr.startswith("pegs: ")
    assert refused.stderr.count("\n") == 1
