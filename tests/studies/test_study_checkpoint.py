"""Finished cells in a file: round trip, torn ends, damage, strangers."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path

import pytest

from pegsynth.errors import ModelError, OutputError
from studies.paper.cell_file import open_checkpoint

SETTINGS = {"seed": 3, "size": {"rows": [1, 2]}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A checkpoint with three cells."""
    path = tmp_path / "cells.jsonl"
    with open_checkpoint(path, SETTINGS) as book:
        for number in range(3):
            book.add(f"cell {number}", {"value": number / 7, "gone": math.nan})
    return path


def finished(path: Path) -> dict:
    with open_checkpoint(path, SETTINGS) as book:
        return dict(book.finished)


def test_values_come_back_exactly(path: Path) -> None:
    assert finished(path) == {f"cell {n}": {"value": n / 7, "gone": None} for n in range(3)}


def test_every_line_is_json(path: Path) -> None:
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 4


@pytest.mark.parametrize("lost", [1, 2, 10, 30])
def test_a_torn_last_line_is_dropped_and_cut_off(path: Path, lost: int) -> None:
    path.write_bytes(path.read_bytes()[:-lost])
    with open_checkpoint(path, SETTINGS) as book:
        assert set(book.finished) == {"cell 0", "cell 1"}
        book.add("cell 2", {"value": 1.0})
    assert set(finished(path)) == {"cell 0", "cell 1", "cell 2"}


def test_a_last_line_that_was_not_written_whole_is_dropped(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + b"\0" * 20 + b"\n")
    assert set(finished(path)) == {"cell 0", "cell 1"}


def test_a_torn_first_line_starts_anew(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:25])
    assert finished(path) == {}


def test_an_empty_file_starts_anew(path: Path) -> None:
    path.write_bytes(b"")
    assert finished(path) == {}


def test_damage_in_the_middle_is_refused(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace("0.142", "0.143")
    path.write_text("".join(lines))
    before = path.read_bytes()
    with pytest.raises(ModelError, match=r"line 3 .*damaged; remove the file"):
        finished(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "[1]\n[2]\n", "hello"])
def test_a_foreign_file_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(ModelError, match="not one of a checkpoint"):
        finished(path)
    assert path.read_text() == content


def test_another_configuration_is_refused_by_name(path: Path) -> None:
    other = {**SETTINGS, "size": {"rows": [1, 3]}, "new": 1}
    with (
        pytest.raises(ModelError, match=r"another run, which differs in new, size; choose"),
        open_checkpoint(path, other),
    ):
        pass
    assert len(finished(path)) == 3


def test_one_run_at_a_time(path: Path) -> None:
    with (
        open_checkpoint(path, SETTINGS),
        pytest.raises(ModelError, match="another run is writing"),
        open_checkpoint(path, SETTINGS),
    ):
        pass


def test_a_missing_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="folder"), open_checkpoint(tmp_path / "a/b", SETTINGS):
        pass


def test_permissions_of_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with open_checkpoint(path, SETTINGS, mode=0o600):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
