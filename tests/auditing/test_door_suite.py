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

from command import check_refused, done, pegs
from door_twins import BY_NAME, FOUND, TWINS
from pegsynth.auditing import run
from pegsynth.auditing.door_tables import pairs
from pegsynth.auditing.doors import failures, tried
from pegsynth.schema.encoding import ColumnEncoder

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


def test_the_audit_prints_a_line_for_every_door(monkeypatch):
    monkeypatch.setattr(run, "PAIRS", 1)
    outcome = done("audit", "--method", "doors")
    lines = outcome.out.splitlines()[1:-1]
    assert [line[13:47].partition(", 1 pairs")[0] for line in lines] == list(BY_NAME)
    assert all(line.endswith("holds") for line in lines)


def test_the_audit_says_what_is_broken_and_what_is_not_installed(monkeypatch):
    twin, _ = TWINS["6, folders"]
    missing = replace(BY_NAME["Polars"], needs="no_such_package")
    monkeypatch.setattr(run, "DOORS", (replace(twin, name="folders"), missing))
    outcome = pegs("audit", "--method", "doors")
    assert outcome.code == 1
    assert "BROKEN" in outcome.out
    assert "folders:\ntypes differ" in outcome.out
    assert "extra: (" in outcome.out
    assert "skipped: no_such_package is not installed" in outcome.out
    check_refused(
        pegs("audit", "--method", "windows"), "pegs-once", "recodings", "doors", "interference, not"
    )
