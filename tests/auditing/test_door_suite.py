"""Door invariance (R30): one row more changes nothing in how the others are read.

Exact: whatever differs is a defect. A twin restores each break that was found and mended;
the suite must catch it.
"""

from dataclasses import replace
from importlib.util import find_spec
from itertools import islice

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from checks.doors import run
from checks.doors.comparing import failures, tried
from checks.doors.tables import pairs
from command import check_refused, pegs
from door_twins import BY_NAME, FOUND, TWINS
from pegsynth.codec.encoding import ColumnEncoder

PAIRS = 10
SEEDS = {"1b, refusals": "7", "8, objects, codes": "1"}
"""Seeds of twins that few pairs show, since 1.0 is read as 1; "0" for all others."""


@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=2, phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 1 << 32))
def test_one_row_more_changes_nothing(name, seed):
    door = BY_NAME[name]
    if door.needs and find_spec(door.needs) is None:
        pytest.skip(f"{door.needs} is not installed")
    for failure in failures(door, PAIRS, seed=str(seed)):
        pytest.fail(str(failure))


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_mended(name):
    door, pair = FOUND[name]
    assert tried(BY_NAME[door], pair) == []


@pytest.mark.parametrize("name", TWINS)
def test_the_suite_catches_what_was_broken(name):
    door, what = TWINS[name]
    assert any(what in line for found in caught(door, 300, SEEDS.get(name, "0")) for line in found)


def caught(door, count, seed):
    """Yield what differs at a door, pair by pair; what a twin cannot read at all is left out."""
    for pair in islice(pairs(door.holding, seed), count):
        try:
            yield tried(door, pair, twice=False)
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            continue


def test_the_suite_catches_a_hint_that_reads_nan_as_a_number(monkeypatch):
    """Blocks of CSV were read as numbers, or as text, by what else was in them."""
    monkeypatch.setattr(ColumnEncoder, "hint", property(old_hint))
    door, pair = FOUND["NaN as a text of its own"]
    assert tried(BY_NAME[door], pair)


def old_hint(encoder):
    if encoder._numeric and "" in encoder._missing:
        return pl.Int64() if encoder.feature.integer else pl.Float64()
    return None


# The command


def test_the_command_prints_a_line_for_every_door(capsys):
    assert run.main(["--pairs", "1"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.partition(", 1 pairs")[0] for line in lines] == list(BY_NAME)
    assert all(line.endswith(("holds", "is not installed")) for line in lines)
    assert last == "every door is sound"


def test_the_command_says_what_is_broken_and_what_is_not_installed(monkeypatch, capsys):
    twin, _ = TWINS["6, folders"]
    missing = replace(BY_NAME["Polars"], needs="no_such_package")
    monkeypatch.setattr(run, "DOORS", (replace(twin, name="folders"), missing))
    assert run.main(["--pairs", "40"]) == 1
    printed = capsys.readouterr().out
    assert "BROKEN" in printed
    assert "folders:\ntypes differ" in printed
    assert "extra: (" in printed
    assert "skipped: no_such_package is not installed" in printed
    assert printed.endswith("1 doors are broken\n")


def test_one_door_is_tried_by_name(capsys):
    assert run.main(["--pairs", "2", "--door", "Polars"]) == 0
    assert capsys.readouterr().out.startswith("Polars, 2 pairs")


def test_the_audit_of_the_product_has_no_doors():
    check_refused(pegs("audit", "--method", "doors"), "pegs-once", "recodings", "interference, not")
