"""The golden corpus in short, and that it reports an output which changed.

`make golden` compares all of it.
"""

import json
from pathlib import Path

import pytest

from checks.golden import run, snapshots
from checks.golden.cases import CASES

SHORT = ("command-marginal", "python-bootstrap", "release-pegs-once", "read-parquet", "errors")
KEPT = json.loads(run.HASHES.read_text())


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize("case", SHORT)
def test_outputs_are_those_that_are_kept(case, tmp_path):
    done = run.run_case(case, tmp_path)
    assert done.error == ""
    assert run.differences(KEPT[case], done.hashes) == []


def test_every_case_is_kept():
    assert list(KEPT) == list(CASES)


@pytest.mark.parametrize("name", ["names", "helps"])
def test_public_names_and_help(name):
    kept = (run.HERE / {"names": "names.txt", "helps": "help.txt"}[name]).read_text()
    assert getattr(snapshots, name)() == kept


def test_a_changed_output_is_reported(tmp_path):
    def broken():
        CASES["command-bootstrap"]()
        rows = Path("rows.csv")
        rows.write_text(rows.read_text().replace("yes", "no", 1))
        Path("inspect.txt").unlink()
        Path("more.txt").write_text("more")

    done = run.run_case("command-bootstrap", tmp_path, broken)
    assert run.differences(KEPT["command-bootstrap"], done.hashes) == [
        "inspect.txt: is no longer written",
        "more.txt: is new",
        "rows.csv: differs",
    ]


def test_a_case_that_breaks_off_is_reported(tmp_path):
    def broken():
        raise ValueError("broken")

    assert "ValueError: broken" in run.run_case("broken", tmp_path, broken).error
