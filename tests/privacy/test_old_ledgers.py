"""Ledgers and models of format 1 are read, and mean and cost what they did.

The files were written by the program before events said what they are about. Their prices,
to the last digit, and their statements are those that it gave.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from command import done
from pegsynth.privacy import Ledger, UnitBound, verify
from pegsynth.privacy.accountant import PureAccountant, ZCDPAccountant

FOLDER = Path(__file__).parent / "format_1"
MODELS = FOLDER.parent.parent / "methods" / "format_1"
EXPECTED = json.loads((FOLDER / "prices.json").read_text())


def prices(ledger):
    unit = max((e.rows_per_unit for e in ledger.events if isinstance(e, UnitBound)), default=1)
    accountants = (PureAccountant(), ZCDPAccountant())
    return [
        [
            None if (price := each.price(event, rows_per_unit=unit)) is None else str(price)
            for each in accountants
        ]
        for event in ledger.events
    ]


@pytest.mark.parametrize("name", EXPECTED)
def test_an_old_ledger_means_what_it_meant(name):
    text = (FOLDER / f"{name}.json").read_text()
    expected = EXPECTED[name]
    ledger = Ledger.from_json(text)
    assert json.loads(text)["format"] == 1
    assert verify(text) == []
    assert ledger.programs == ()
    found = hashlib.sha256(json.dumps(prices(ledger)).encode()).hexdigest()
    assert found == expected["prices_sha256"]
    assert (ledger.epsilon, ledger.rho) == (expected["epsilon"], expected["rho"])
    old = expected["statement"].replace("Assumed to be public knowledge:", "Assumed:")
    assert ledger.statement() == old
    # Written again, it is a ledger of today with the same claim.
    again = ledger.to_json()
    assert verify(again) == []
    assert prices(Ledger.from_json(again)) == prices(ledger)
    assert Ledger.from_json(again).guarantee == ledger.guarantee


@pytest.mark.parametrize("name", EXPECTED)
def test_the_figures_would_show_a_change(name):
    """A twin whose `cells` were taken for the size of a table costs something else."""
    content = json.loads((FOLDER / f"{name}.json").read_text())
    priced = [event for event in content["events"] if "cells" in event]
    for event in priced:
        event["cells"] += 1
    twin = Ledger.from_json(json.dumps(content))
    found = hashlib.sha256(json.dumps(prices(twin)).encode()).hexdigest()
    assert (found != EXPECTED[name]["prices_sha256"]) == bool(priced)


def test_old_and_new_ledgers_add_up():
    old = Ledger.from_json((FOLDER / "once.json").read_text())
    both = Ledger.combine([old, old])
    assert both.epsilon == pytest.approx(2 * old.epsilon)


def test_an_old_ledger_is_inspected():
    shown = done("inspect", FOLDER / "once-delta-unit.json").out
    assert "epsilon = 2" in shown
    assert "purpose block" in shown
    assert "table cells" not in shown
    assert "candidates" not in shown


def test_an_old_model_of_released_blocks_is_drawn_from(tmp_path):
    model = tmp_path / "m.pegs"
    shutil.copy(MODELS / "once.model", model)
    assert "SHAREABLE" in done("inspect", model).out
    done("sample", model, "--rows", 30, "-o", tmp_path / "o.csv")
    ledger = Ledger.from_json((tmp_path / "o.csv.privacy.json").read_text())
    assert ledger.epsilon == 0.999999999999
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 31


def test_an_old_model_with_a_budget_is_drawn_from(tmp_path):
    model = tmp_path / "m.pegs"
    shutil.copy(MODELS / "capped.model", model)
    shutil.copy(MODELS / "capped.model.spent", tmp_path / "m.pegs.spent")
    assert "CONFIDENTIAL" in done("inspect", model).out
    done("sample", model, "--rows", 30, "-o", tmp_path / "o.csv")
    ledger = Ledger.from_json((tmp_path / "o.csv.privacy.json").read_text())
    assert 7.9 < ledger.epsilon <= 8
    assert ledger.guarantee.unit == "unit"
