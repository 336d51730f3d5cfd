import errno
import os
import stat

import pytest

from pegsynth.errors import DataError, OutputError
from pegsynth.tables.atomic import atomic_file, atomic_text, check_target


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_the_file_appears_whole_and_nothing_else_stays(tmp_path):
    path = tmp_path / "out.json"
    with atomic_file(path) as temporary:
        assert temporary.stat().st_dev == tmp_path.stat().st_dev
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert names(tmp_path) == ["out.json"]


def test_mode_follows_the_umask_unless_given(tmp_path):
    before = os.umask(0o027)
    try:
        atomic_text(tmp_path / "a", "x")
        atomic_text(tmp_path / "b", "x", mode=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), DataError("bad")])
def test_failure_leaves_the_earlier_file(tmp_path, error):
    path = tmp_path / "out"
    path.write_text("old")

    def fail():
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE])
def test_system_errors_name_the_path_and_the_remedy(tmp_path, code):
    path = tmp_path / "out.csv"

    def fail():
        with atomic_file(path):
            raise OSError(code, os.strerror(code))

    with pytest.raises(OutputError, match=r"out\.csv.*choose another"):
        fail()
    assert names(tmp_path) == []


def test_errors_about_other_files_pass_through(tmp_path):
    def fail():
        with atomic_file(tmp_path / "out"):
            (tmp_path / "input").read_text()

    with pytest.raises(FileNotFoundError):
        fail()


@pytest.mark.parametrize("name", ["none/out", "folder", "file/out", "x" * 300])
def test_impossible_places(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        atomic_text(tmp_path / name, "x")
    assert names(tmp_path) == ["file", "folder"]


def test_devices_are_not_replaced():
    with pytest.raises(OutputError, match="not an ordinary file"):
        atomic_text("/dev/null", "x")
    with pytest.raises(OutputError, match="not an ordinary file"):
        check_target("/dev/null")


def test_links_are_followed(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    atomic_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_check_target_refuses_early(tmp_path):
    check_target(tmp_path / "fine.csv")
    with pytest.raises(OutputError, match="folder does not exist"):
        check_target(tmp_path / "none" / "x.csv")
    with pytest.raises(OutputError, match="is a folder"):
        check_target(tmp_path)
