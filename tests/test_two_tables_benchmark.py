"""Two tables beside another tool: the comparison itself, with a stand-in for the other tool."""

import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from checks.bench import two_tables
from checks.bench.peers.execute import Setting
from checks.bench.peers.tools import PROGRAMS, Tool
from pegsynth.datasets import households, households_schema

COPIES = """
import json, shutil
for name in ("units", "rows"):
    shutil.copy(folder / f"{name}.csv", folder / f"synthetic-{name}.csv")
told = json.loads((folder / "keys.json").read_text())
assert told["key"] == "household" and told["features"]["units"][0] == "region"
(folder / "times.json").write_text('{"fit_cpu": 1.5, "sample_cpu": 0.25}')
"""


@pytest.fixture(scope="module")
def tables():
    return households(300, seed=2)


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path / "out", tmp_path / "envs", cap=30)


def stand_in(folder, body):
    head = "import pathlib, sys\nfolder = pathlib.Path(sys.argv[1])\n"
    program = folder / "run_fake.py"
    program.write_text(head + textwrap.dedent(body))
    return Tool("fake", "fake", "peer", "", program, price="none", note="no privacy guarantee")


def test_tables_themselves_are_not_off(tables):
    found = two_tables.compare(tables, tables, households_schema())
    assert found == two_tables.Scores(0, 0, 0, 0, 0, 0)


def test_members_that_belong_nowhere_and_empty_households_are_counted(tables):
    units, rows = tables
    elsewhere = rows.with_columns(
        pl.when(pl.col("household") < 30)
        .then(pl.col("household") + 1_000)
        .otherwise(pl.col("household"))
        .alias("household")
    )
    found = two_tables.compare(tables, (units, elsewhere), households_schema())
    assert found.orphans == pytest.approx((rows["household"] < 30).mean())
    assert found.impossible == found.rows_per_unit == pytest.approx(0.1)
    assert found.pairs_of_units == 0 < found.pairs
    one = rows.with_columns(household=pl.lit(0, dtype=pl.Int64))
    found = two_tables.compare(tables, (units, one), households_schema())
    assert found.orphans == 0
    assert found.impossible == 1


def test_whole_households_are_drawn_with_their_members(tables):
    units, rows = two_tables.resampled(tables, "household")
    assert units["household"].to_list() == list(range(300))
    assert set(rows["household"]) == set(range(300))
    found = two_tables.compare(tables, (units, rows), households_schema())
    assert found.impossible == found.orphans == 0
    assert 0 < found.pairs < 0.2
    assert 0 < found.siblings < 0.2


def test_files_of_another_tool_are_compared(tmp_path, tables, setting):
    line = two_tables.theirs(tables, households_schema(), setting, tool=stand_in(tmp_path, COPIES))
    assert line.scores == two_tables.Scores(0, 0, 0, 0, 0, 0)
    assert line.seconds == 1.75
    assert two_tables.text(line).startswith("| *no privacy guarantee*: fake | .0000 | .0000 |")


def test_a_tool_that_fails_or_takes_too_long_is_told(tmp_path, tables, setting):
    schema = households_schema()
    line = two_tables.theirs(tables, schema, setting, tool=stand_in(tmp_path, "sys.exit(3)"))
    assert line.scores is None
    assert "failed" in two_tables.text(line)
    endless = stand_in(tmp_path, "print('fitted: 1 s', flush=True)\nwhile True: pass")
    short = Setting(setting.output, setting.environments, cap=0.3)
    line = two_tables.theirs(tables, schema, short, tool=endless)
    assert line.scores is None
    assert "ended by the cap of 0.3 s in drawing" in two_tables.text(line)


def test_page_goes_on_with_a_smaller_table(tmp_path, setting):
    copies = stand_in(tmp_path, COPIES)

    def peer(tables, schema):
        if tables[0].height > 200:
            return two_tables.Line("fake", 9.0, why="ended by the cap of 9 s in fitting")
        return two_tables.theirs(tables, schema, setting, tool=copies)

    page = list(two_tables.page([250, 200, 150], 1, peer))
    heads = [line.split(" | ")[0] for line in page if "siblings" in line]
    assert heads == ["| 250 households", "| 200 households"]
    assert page[4] == "| fake | ended by the cap of 9 s in fitting |  |  |  |  |  | 9.0 |"
    ours = [line for line in page if "epsilon 1 " in line or "epsilon 10 " in line]
    assert len(ours) == 4
    assert all("| 0 % | 0 % |" in line for line in ours)


def test_ours_without_the_other_tool(capsys):
    two_tables.main(["--households", "120", "--ours", "--runs", "1"])
    page = capsys.readouterr().out.splitlines()
    assert page[0].startswith("| 120 households |")
    assert page[5].startswith("| HMA, sdv | not run |")
    assert len(page) == 7


def test_program_of_the_other_tool_is_there():
    assert two_tables.HMA.program.parent == PROGRAMS
    assert two_tables.HMA.program.is_file()
