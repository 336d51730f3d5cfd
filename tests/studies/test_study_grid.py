"""The engine: a grid is a loop, whatever the threads, whatever the interruptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pegsynth.errors import BudgetError, ModelError, ParameterError
from pegsynth.random import RandomStream
from studies.paper.work_cells import REASON, Cell, run

CELLS = [Cell(arm, level, r) for arm in "ab" for level in (None, 0.5, 2.0) for r in range(4)]

SCRIPT = """
import sys, time
from studies.paper.work_cells import run
sys.path.insert(0, {folder!r})
from test_study_grid import CELLS, work

def slow(cell, stream):
    time.sleep(0.05)
    return work(cell, stream)

run(CELLS, slow, seed=9, checkpoint={path!r}, configuration={{"n": 1}}, threads=2)
"""


def work(cell: Cell, stream: RandomStream) -> dict:
    """A value that depends on the cell and on its random stream."""
    return {"drawn": float(stream.substream().below(10**9)), "level": cell.level}


def looped(seed: int) -> dict:
    """The obvious twin: one cell after the other."""
    return {cell: work(cell, RandomStream(f"study {seed} {cell.name}")) for cell in CELLS}


@pytest.mark.parametrize("threads", [1, 3])
def test_a_grid_is_a_loop(threads: int) -> None:
    found = run(CELLS, work, seed=9, threads=threads)
    assert found == looped(9)
    assert list(found) == CELLS


def test_cells_draw_from_streams_of_their_own() -> None:
    drawn = [values["drawn"] for values in run(CELLS, work, seed=9).values()]
    assert len(set(drawn)) == len(CELLS)
    assert run(CELLS, work, seed=10) != run(CELLS, work, seed=9)


def test_killed_and_continued_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    script = SCRIPT.format(folder=str(Path(__file__).parent), path=str(path))
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") > 6:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    done = path.read_bytes().count(b"\n") - 1
    assert 0 < done < len(CELLS)

    asked = []

    def counted(cell: Cell, stream: RandomStream) -> dict:
        asked.append(cell)
        return work(cell, stream)

    found = run(CELLS, counted, seed=9, checkpoint=path, configuration={"n": 1})
    assert found == looped(9)
    assert len(asked) == len(CELLS) - done


def test_a_finished_grid_is_read_and_not_drawn(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    first = run(CELLS, work, seed=9, checkpoint=path)

    def never(cell: Cell, stream: RandomStream) -> dict:
        raise AssertionError

    assert run(CELLS, never, seed=9, checkpoint=path) == first


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run(CELLS, work, seed=9, checkpoint=path)
    with pytest.raises(ModelError, match="differs in seed"):
        run(CELLS, work, seed=8, checkpoint=path)


def test_a_cell_that_cannot_be_done_says_why() -> None:
    def poor(cell: Cell, stream: RandomStream) -> dict:
        if cell.level == 0.5:
            raise BudgetError("too small")
        return work(cell, stream)

    found = run(CELLS, poor, seed=9)
    assert {cell.level for cell, values in found.items() if REASON in values} == {0.5}
    assert found[Cell("a", 0.5, 0)] == {REASON: "too small"}


def test_a_fault_stops_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"

    def faulty(cell: Cell, stream: RandomStream) -> dict:
        if cell == CELLS[5]:
            raise ZeroDivisionError
        return work(cell, stream)

    with pytest.raises(ZeroDivisionError):
        run(CELLS, faulty, seed=9, checkpoint=path)
    assert run(CELLS, work, seed=9, checkpoint=path) == looped(9)


def test_progress_counts_cells_that_were_finished_before(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run(CELLS[:10], work, seed=9, checkpoint=path)
    seen = []
    run(CELLS, work, seed=9, checkpoint=path, progress=lambda *step: seen.append(step))
    assert seen[0] == ("cells", 10, len(CELLS))
    assert seen[-1] == ("cells", len(CELLS), len(CELLS))


def test_bad_grids_are_refused() -> None:
    with pytest.raises(ParameterError, match="same name"):
        run([CELLS[0], CELLS[0]], work, seed=1)
    with pytest.raises(ParameterError, match="threads"):
        run(CELLS, work, seed=1, threads=0)
